# SPDX-License-Identifier: Apache-2.0
# What goes into the wheel beside the Python files (pyproject.toml): libraries and tool, and no headers. A wheel holds no
# symbolic links, so the library is one file with the name of its SONAME.
set_target_properties(tileglu PROPERTIES VERSION ${PROJECT_VERSION_MAJOR})
install(TARGETS tileglu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
if(TILEGLU_HAVE_CPU)
  install(TARGETS tileglu_cpu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TILEGLU_HAVE_JAX)
  install(TARGETS tileglu_jax LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS tileglu_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The study's package, whose renderer 'tileglu report' runs. Its folder has another name there than in the sources, which
# scikit-build-core's own list of packages does not allow.
install(DIRECTORY study/ DESTINATION tileglu_study FILES_MATCHING PATTERN "*.py")
