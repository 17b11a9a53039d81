# The libraries, the headers, the program and its manual, and what other projects find them by:
# clave-config.cmake for find_package, clave.pc and clave-static.pc for pkg-config. All of it may be
# moved to another prefix after it was installed.
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/clave)
install(TARGETS clave_shared clave_static EXPORT clave-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT clave-targets NAMESPACE clave:: DESTINATION ${package})
configure_package_config_file(cmake/clave-config.cmake.in clave-config.cmake
    INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor release may change the interface.
write_basic_package_version_file(clave-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/clave-config.cmake
    ${PROJECT_BINARY_DIR}/clave-config-version.cmake DESTINATION ${package})

# Where the prefix is from where clave.pc is.
set(CLAVE_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
    string(REGEX REPLACE "/$" "" up ${up})
    set(CLAVE_PC_PREFIX "\${pcfiledir}/${up}")
endif()
foreach(dir LIBDIR INCLUDEDIR)
    set(CLAVE_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
        set(CLAVE_PC_${dir} ${CMAKE_INSTALL_${dir}})
    endif()
endforeach()
# Debian calls the archive libuv_a.a and has a module of its own for it.
pkg_check_modules(CLAVE_UV_STATIC QUIET libuv-static>=1.40)
set(CLAVE_PC_UV_STATIC libuv)
if(CLAVE_UV_STATIC_FOUND)
    set(CLAVE_PC_UV_STATIC libuv-static)
endif()
foreach(module clave clave-static)
    configure_file(cmake/${module}.pc.in ${module}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${module}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

install(DIRECTORY include/clave DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(CLAVE_PROGRAM)
    install(TARGETS clave RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(FILES contrib/completion/clave.bash RENAME clave
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES contrib/completion/_clave DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
    install(FILES contrib/completion/clave.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

# The manual pages of the library's nouns are made from the headers.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/clave/*.h)
    set(made ${PROJECT_BINARY_DIR}/man)
    add_custom_command(OUTPUT ${made}/clave_client.3 DEPENDS ${headers} tools/man-pages
        COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/man-pages ${made})
    add_custom_target(clave_man ALL DEPENDS ${made}/clave_client.3)
    install(DIRECTORY ${made}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
else()
    message(STATUS "clave: without Python 3 there are no manual pages of the library's nouns")
endif()
file(GLOB man_pages CONFIGURE_DEPENDS docs/man/*.1 docs/man/*.3)
foreach(page ${man_pages})
    string(REGEX REPLACE ".*\\.([0-9])$" "\\1" section ${page})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
