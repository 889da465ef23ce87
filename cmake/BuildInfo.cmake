# SPDX-License-Identifier: Apache-2.0
# build_info.hpp, rewritten on every build but only when it changes: commit, compiler, CUDA and CUTLASS versions.
set(build_info_header ${PROJECT_BINARY_DIR}/generated/build_info.hpp)
add_custom_target(tileglu_build_info_header
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${build_info_header}
    -DVERSION=${PROJECT_VERSION} "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    "-DCUDA_VERSION=${CUDAToolkit_VERSION}" "-DCUTLASS_VERSION=${TILEGLU_CUTLASS_VERSION}"
    -P ${PROJECT_SOURCE_DIR}/cmake/WriteBuildInfo.cmake
  BYPRODUCTS ${build_info_header} VERBATIM)
add_library(tileglu_build_info INTERFACE)
target_include_directories(tileglu_build_info INTERFACE ${PROJECT_BINARY_DIR}/generated)
add_dependencies(tileglu_build_info tileglu_build_info_header)
