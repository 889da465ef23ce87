# SPDX-License-Identifier: Apache-2.0
# run(COMMAND...): in WORK_DIR; what it prints is in `output`; a failure ends the script.
function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${WORK_DIR} RESULT_VARIABLE rc OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT rc EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "exit code ${rc}: ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()
