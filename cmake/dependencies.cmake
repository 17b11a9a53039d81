# Found by pkg-config, as their users outside find them (clave-config.cmake, clave.pc). GLOBAL: the
# target that a project links to names them, in a folder other than this.
find_package(PkgConfig REQUIRED)
set(CLAVE_UV_MODULE libuv>=1.40)
pkg_check_modules(CLAVE_UV REQUIRED IMPORTED_TARGET GLOBAL ${CLAVE_UV_MODULE})
pkg_check_modules(CLAVE_ZLIB REQUIRED IMPORTED_TARGET GLOBAL zlib)
pkg_check_modules(CLAVE_SSL REQUIRED libssl>=3.0) # headers only: it is loaded when TLS is used
# Likewise, when HTTP is served: llhttp, or http_parser, from which it comes. The latter has no .pc.
pkg_check_modules(CLAVE_LLHTTP libllhttp>=8)
if(CLAVE_LLHTTP_FOUND)
    set(CLAVE_HTTP_INCLUDE_DIRS ${CLAVE_LLHTTP_INCLUDE_DIRS})
    set(CLAVE_HTTP_DEFINITIONS CLAVE_LLHTTP)
else()
    find_path(CLAVE_HTTP_INCLUDE_DIRS http_parser.h REQUIRED)
endif()
if(CLAVE_PROGRAM)
    # Headers only, but for tests: it is loaded when HTTP is served.
    pkg_check_modules(CLAVE_JANSSON REQUIRED IMPORTED_TARGET jansson>=2.13)
endif()
find_package(Threads REQUIRED)
