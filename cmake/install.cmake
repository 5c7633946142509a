# cmake --install: program, both libraries (shared and static), header, pkg-config files and the CMake package with the components
# core and runtime.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(relayout_shared PROPERTIES EXPORT_NAME relayout)
set_target_properties(relayout_runtime_shared PROPERTIES EXPORT_NAME runtime)
install(TARGETS relayout RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(FILES include/relayout.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT core)
install(TARGETS relayout_shared EXPORT relayout-core LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT core)
install(TARGETS relayout_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT core)
install(TARGETS relayout_runtime_shared EXPORT relayout-runtime LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(TARGETS relayout_runtime_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)

set(RL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/relayout)
install(EXPORT relayout-core NAMESPACE relayout:: DESTINATION ${RL_PACKAGE_DIR} COMPONENT core)
install(EXPORT relayout-runtime NAMESPACE relayout:: DESTINATION ${RL_PACKAGE_DIR} COMPONENT runtime)
configure_package_config_file(cmake/relayout-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/relayout-config.cmake
  INSTALL_DESTINATION ${RL_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/relayout-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/relayout-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/relayout-config-version.cmake
  DESTINATION ${RL_PACKAGE_DIR} COMPONENT core)

file(RELATIVE_PATH RL_PC_PREFIX /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
foreach(name relayout relayout-runtime)
  configure_file(cmake/${name}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT core)
endforeach()

# What the program says of itself, where man and the shells look for it. A program for another machine cannot be asked.
if(NOT CMAKE_CROSSCOMPILING)
  set(RL_PAGES_DIR ${CMAKE_CURRENT_BINARY_DIR}/pages)
  add_custom_command(OUTPUT ${RL_PAGES_DIR}/done
    COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/pages.sh $<TARGET_FILE:relayout> ${RL_PAGES_DIR}
    DEPENDS relayout ${PROJECT_SOURCE_DIR}/cmake/pages.sh VERBATIM)
  add_custom_target(pages ALL DEPENDS ${RL_PAGES_DIR}/done)
  install(DIRECTORY ${RL_PAGES_DIR}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT runtime)
  install(FILES ${RL_PAGES_DIR}/relayout.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME relayout COMPONENT runtime)
  install(FILES ${RL_PAGES_DIR}/_relayout DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT runtime)
  install(FILES ${RL_PAGES_DIR}/relayout.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT runtime)
endif()
