# SPDX-License-Identifier: Apache-2.0
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
foreach(variable commit CUDA_VERSION CUTLASS_VERSION)
  if(NOT ${variable})
    set(${variable} none)
  endif()
endforeach()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#pragma once
#define TILEGLU_BUILD_VERSION "@VERSION@"
#define TILEGLU_BUILD_COMMIT "@commit@"
#define TILEGLU_BUILD_COMPILER "@COMPILER@"
#define TILEGLU_BUILD_CUDA "@CUDA_VERSION@"
#define TILEGLU_BUILD_CUTLASS "@CUTLASS_VERSION@"
]] @ONLY)
