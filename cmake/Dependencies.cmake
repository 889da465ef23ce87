# SPDX-License-Identifier: Apache-2.0
# What is needed from outside; docs/dependencies.md says why. Library: fmt and nlohmann-json (headers only).
find_package(fmt 9 REQUIRED)
get_target_property(fmt_includes fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
find_package(Threads REQUIRED)

# --- CUDA and CUTLASS -------------------------------------------------------------------------------------------------
set(TILEGLU_HAVE_CUDA OFF)
if(NOT TILEGLU_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  set(CMAKE_CUDA_ARCHITECTURES OFF) # set per target
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc AND NOT DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # CUTLASS: CUTLASS_DIR (variable or environment; the tree or its include folder), an installed CMake config, or the
    # Python package nvidia-cutlass of the interpreter on PATH.
    find_package(NvidiaCutlass CONFIG QUIET)
    if(TARGET nvidia::cutlass::CUTLASS)
      get_target_property(cutlass_config_include nvidia::cutlass::CUTLASS INTERFACE_INCLUDE_DIRECTORIES)
    endif()
    find_path(CUTLASS_INCLUDE_DIR cutlass/version.h NO_DEFAULT_PATH
      PATHS ${CUTLASS_DIR} $ENV{CUTLASS_DIR} ${cutlass_config_include} ${PROJECT_SOURCE_DIR}/.cache/cutlass
      PATH_SUFFIXES include cutlass_library/source/include)
    if(NOT CUTLASS_INCLUDE_DIR)
      find_package(Python3 COMPONENTS Interpreter QUIET)
      if(Python3_FOUND)
        execute_process(COMMAND ${Python3_EXECUTABLE} -c
          "import importlib.util as u; print(u.find_spec('cutlass_library').submodule_search_locations[0])"
          OUTPUT_VARIABLE cutlass_package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
        find_path(CUTLASS_INCLUDE_DIR cutlass/version.h NO_DEFAULT_PATH PATHS ${cutlass_package}/source/include)
      endif()
    endif()
    if(CUTLASS_INCLUDE_DIR)
      set(TILEGLU_HAVE_CUDA ON)
    endif()
  endif()
  if(TILEGLU_HAVE_CUDA)
    enable_language(CUDA)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    find_package(CUDAToolkit REQUIRED)
    file(STRINGS ${CUTLASS_INCLUDE_DIR}/cutlass/version.h cutlass_lines REGEX "^#define CUTLASS_(MAJOR|MINOR|PATCH) +[0-9]+")
    string(REGEX REPLACE "[^0-9;]" "" cutlass_parts "${cutlass_lines}")
    list(JOIN cutlass_parts . TILEGLU_CUTLASS_VERSION)
    if(TILEGLU_CUTLASS_VERSION VERSION_LESS 4.2.0)
      message(FATAL_ERROR "CUTLASS ${TILEGLU_CUTLASS_VERSION} in ${CUTLASS_INCLUDE_DIR} is older than 4.2.0")
    endif()
  elseif(TILEGLU_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TILEGLU_CUDA=ON needs nvcc (found: ${CMAKE_CUDA_COMPILER}) and the CUTLASS >= 4.2 headers "
      "(found: ${CUTLASS_INCLUDE_DIR}); set CUTLASS_DIR, or pip install --no-deps nvidia-cutlass==4.2.0.0")
  endif()
endif()

# --- oneDNN -----------------------------------------------------------------------------------------------------------
set(TILEGLU_HAVE_CPU OFF)
if(NOT TILEGLU_CPU STREQUAL "OFF")
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(DNNL_LIBRARY dnnl)
  find_package(OpenMP COMPONENTS CXX)
  if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY AND OpenMP_CXX_FOUND)
    set(TILEGLU_HAVE_CPU ON)
  elseif(TILEGLU_CPU STREQUAL "ON")
    message(FATAL_ERROR "TILEGLU_CPU=ON needs oneDNN (Debian: libdnnl-dev) and OpenMP")
  endif()
endif()

# --- XLA FFI headers --------------------------------------------------------------------------------------------------
# Those of the Python package jaxlib, which keeps them where jax.ffi.include_dir() says.
set(TILEGLU_HAVE_JAX OFF)
if(NOT TILEGLU_JAX STREQUAL "OFF" AND NOT TILEGLU_SANITIZE)
  if(NOT XLA_FFI_INCLUDE_DIR)
    find_package(Python3 COMPONENTS Interpreter QUIET)
    if(Python3_FOUND)
      execute_process(COMMAND ${Python3_EXECUTABLE} -c
        "import importlib.util as u; print(u.find_spec('jaxlib').submodule_search_locations[0])"
        OUTPUT_VARIABLE jaxlib_package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    find_path(XLA_FFI_INCLUDE_DIR xla/ffi/api/ffi.h NO_DEFAULT_PATH PATHS ${jaxlib_package}/include)
  endif()
  if(XLA_FFI_INCLUDE_DIR)
    set(TILEGLU_HAVE_JAX ON)
  elseif(TILEGLU_JAX STREQUAL "ON")
    message(FATAL_ERROR "TILEGLU_JAX=ON needs the headers of jaxlib: install jax for ${Python3_EXECUTABLE}, or set "
      "XLA_FFI_INCLUDE_DIR to what jax.ffi.include_dir() says")
  endif()
endif()

message(STATUS "tileglu ${PROJECT_VERSION}: sm90 and cublas backends ${TILEGLU_HAVE_CUDA} (CUTLASS "
  "${TILEGLU_CUTLASS_VERSION}), cpu backend ${TILEGLU_HAVE_CPU}, JAX ${TILEGLU_HAVE_JAX}")
