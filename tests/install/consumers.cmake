# SPDX-License-Identifier: Apache-2.0
# Installs the build, moves the installed tree, and builds and runs two programs against it that know nothing of this
# project: one through find_package, one through pkg-config.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
set(moved "${WORK_DIR}/moved here")
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/installed)
file(RENAME ${WORK_DIR}/installed "${moved}")

# Nothing that is installed may remember where it was built or first installed.
file(GLOB_RECURSE texts "${moved}/*.cmake" "${moved}/*.pc" "${moved}/*.h" "${moved}/*.hpp")
foreach(file IN LISTS texts)
  file(READ "${file}" text)
  foreach(path ${WORK_DIR} ${BUILD_DIR})
    string(FIND "${text}" ${path} found)
    if(NOT found EQUAL -1)
      message(FATAL_ERROR "${file} names ${path}")
    endif()
  endforeach()
endforeach()

# find_package
run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/consumer -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
  "-DCMAKE_PREFIX_PATH=${moved}" -DTILEGLU_WANTED=${VERSION})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/consumer)
run(${WORK_DIR}/consumer/consumer)
message(STATUS "find_package: ${output}")

# pkg-config
find_program(PKG_CONFIG pkg-config REQUIRED)
set(ENV{PKG_CONFIG_PATH} "${moved}/${LIB_DIR}/pkgconfig")
run(${PKG_CONFIG} --exact-version=${VERSION} tileglu)
run(${PKG_CONFIG} --cflags --libs tileglu)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${C_COMPILER} -std=c11 -pedantic -Wall -Werror ${CONSUMER_DIR}/main.c ${flags} -o ${WORK_DIR}/c_consumer)
set(ENV{LD_LIBRARY_PATH} "${moved}/${LIB_DIR}")
run(${WORK_DIR}/c_consumer)
message(STATUS "pkg-config: ${output}")

if(EXISTS "${moved}/bin/tileglu")
  unset(ENV{LD_LIBRARY_PATH})
  run("${moved}/bin/tileglu" --version)
endif()
