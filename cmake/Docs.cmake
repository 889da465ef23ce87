# SPDX-License-Identifier: Apache-2.0
# Target docs: the pages of the C and C++ headers, in docs/html of the build folder. A warning of Doxygen is an error.
find_program(DOXYGEN doxygen)
if(DOXYGEN)
  set(DOXYGEN_OUTPUT ${PROJECT_BINARY_DIR}/docs)
  configure_file(cmake/Doxyfile.in ${PROJECT_BINARY_DIR}/Doxyfile @ONLY)
  add_custom_target(docs COMMAND ${DOXYGEN} ${PROJECT_BINARY_DIR}/Doxyfile VERBATIM
    COMMENT "Pages of the headers: ${DOXYGEN_OUTPUT}/html/index.html")
endif()
