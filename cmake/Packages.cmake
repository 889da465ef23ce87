# SPDX-License-Identifier: Apache-2.0
# cpack in a build folder makes the Debian packages libtileglu0, libtileglu-dev and tileglu-tools from the components of
# Install.cmake. Libraries go where the build was configured to install them: CMAKE_INSTALL_PREFIX=/usr gives Debian's
# lib/<triplet>.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tileglu)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "tileglu developers <tileglu@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Gated projection of LLM MLPs as one GPU kernel")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/bin)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# tileglu_package(component name SECTION section DESCRIPTION text [DEPENDS packages])
function(tileglu_package component name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "SECTION;DESCRIPTION;DEPENDS" "")
  string(TOUPPER ${component} upper)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION ${arg_DESCRIPTION} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${arg_SECTION} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${arg_DEPENDS}" PARENT_SCOPE)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/${name} RENAME copyright COMPONENT ${component}
    EXCLUDE_FROM_ALL)
endfunction()

set(runtime_package libtileglu${PROJECT_VERSION_MAJOR})
tileglu_package(runtime ${runtime_package} SECTION libs
  DESCRIPTION "The library with its GPU backends, and the module of its CPU backend.")
tileglu_package(development libtileglu-dev SECTION libdevel DEPENDS "${runtime_package} (= ${PROJECT_VERSION})"
  DESCRIPTION "C and C++ headers, CMake package and pkg-config file.")
if(TARGET tileglu_tool)
  tileglu_package(tools tileglu-tools SECTION utils DEPENDS "${runtime_package} (= ${PROJECT_VERSION})"
    DESCRIPTION "The command-line tool: run, verify, bench, pack and others.")
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "python3-matplotlib") # tileglu report
endif()
include(CPack)
