# CLAVE_HARDENING, CLAVE_HARDENED_LINK: for the compiler and the linker, in every build.
# CLAVE_SANITIZE_OPTIONS: for whatever links clave's objects.
set(CLAVE_SANITIZE "" CACHE STRING "address,undefined or thread or empty")
set(CLAVE_SANITIZE_OPTIONS)
set(CLAVE_HARDENING -fstack-protector-strong)
set(CLAVE_HARDENED_LINK -Wl,-z,relro,-z,now)
if(CLAVE_SANITIZE)
    set(CLAVE_SANITIZE_OPTIONS -fsanitize=${CLAVE_SANITIZE})
    list(APPEND CLAVE_HARDENING ${CLAVE_SANITIZE_OPTIONS} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
elseif(NOT CMAKE_C_FLAGS MATCHES _FORTIFY_SOURCE)
    # It needs an optimising compiler, which a build without a type has not.
    set(optimised $<OR:$<CONFIG:Release>,$<CONFIG:RelWithDebInfo>,$<CONFIG:MinSizeRel>>)
    list(APPEND CLAVE_HARDENING $<${optimised}:-U_FORTIFY_SOURCE> $<${optimised}:-D_FORTIFY_SOURCE=2>)
endif()
