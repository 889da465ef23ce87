# SPDX-License-Identifier: Apache-2.0
# find_package(tileglu CONFIG) -> tileglu::tileglu, and a pkg-config file; the installed tree can be moved.
include(CMakePackageConfigHelpers)
# Components, for packages (Packages.cmake): runtime, development, tools.
install(TARGETS tileglu EXPORT tileglu-targets LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
install(FILES include/tileglu/tileglu.h include/tileglu/tileglu.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tileglu
  COMPONENT development)
if(TILEGLU_HAVE_CPU)
  install(TARGETS tileglu_cpu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
endif()
if(TILEGLU_HAVE_JAX)
  install(TARGETS tileglu_jax LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
endif()
if(TARGET tileglu_tool)
  install(TARGETS tileglu_tool RUNTIME COMPONENT tools)
  # The study's package, whose renderer 'tileglu report' runs.
  install(DIRECTORY study DESTINATION share/tileglu COMPONENT tools FILES_MATCHING PATTERN "*.py")
endif()
install(EXPORT tileglu-targets NAMESPACE tileglu:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tileglu
  COMPONENT development)
configure_package_config_file(cmake/tileglu-config.cmake.in ${PROJECT_BINARY_DIR}/cmake/tileglu-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tileglu)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/tileglu-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/tileglu-config.cmake ${PROJECT_BINARY_DIR}/cmake/tileglu-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tileglu COMPONENT development)

# The folder of the .pc file may be lib/pkgconfig or lib/<triplet>/pkgconfig; its way up to the prefix is worked out.
file(RELATIVE_PATH pkgconfig_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH prefix_to_lib ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH prefix_to_include ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/tileglu.pc.in ${PROJECT_BINARY_DIR}/cmake/tileglu.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cmake/tileglu.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)
include(cmake/Packages.cmake)
