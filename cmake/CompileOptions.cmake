# SPDX-License-Identifier: Apache-2.0
# tileglu_options: what every target of this project compiles with.
add_library(tileglu_options INTERFACE)
# Not CMAKE_CXX_STANDARD: CUDA targets would inherit it as CUDA_STANDARD, and CMake 3.25 does not know that nvcc has 20.
target_compile_features(tileglu_options INTERFACE cxx_std_20)
target_include_directories(tileglu_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tileglu_options INTERFACE tileglu_format Threads::Threads)
target_compile_definitions(tileglu_options INTERFACE TILEGLU_HAVE_CUDA=$<BOOL:${TILEGLU_HAVE_CUDA}>)

set(warnings -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion)
if(TILEGLU_WERROR)
  list(APPEND warnings -Werror)
endif()
target_compile_options(tileglu_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:${warnings}>)

if(TILEGLU_SANITIZE)
  target_compile_options(tileglu_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  target_link_options(tileglu_options INTERFACE -fsanitize=address,undefined)
endif()

# CUDA sources of one architecture list. NDEBUG always: CUTLASS's device asserts put a call into the pipeline, and ptxas
# then serialises the WGMMAs (C7510). cmake/strict_ptxas.sh turns that, spills and local memory into build failures.
function(tileglu_cuda_library target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ARCHITECTURES;SOURCES")
  add_library(${target} OBJECT ${arg_SOURCES})
  set(launcher ${PROJECT_SOURCE_DIR}/cmake/strict_ptxas.sh ${CMAKE_CUDA_COMPILER_LAUNCHER}) # the latter may be empty
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${arg_ARCHITECTURES}"
    CUDA_COMPILER_LAUNCHER "${launcher}")
  target_link_libraries(${target} PRIVATE tileglu_options)
  target_include_directories(${target} SYSTEM PRIVATE ${CUTLASS_INCLUDE_DIR})
  target_compile_definitions(${target} PRIVATE NDEBUG)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr -Xptxas=-v
    -Xcompiler=-Wall>)
  set_property(TARGET ${target} PROPERTY CXX_VISIBILITY_PRESET hidden)
endfunction()
