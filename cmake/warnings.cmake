# Errors in CI (-DCLAVE_WERROR=ON), never in a user's build.
# Not here: -Waggregate-return, -Wpadded (noise in C), -Wswitch-default (would forbid
# what -Wswitch-enum gives: a switch on a state without a default is checked).
option(CLAVE_WERROR "warnings are errors" OFF)
set(CLAVE_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-align
    -Wcast-qual -Wwrite-strings -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes
    -Wold-style-definition -Wswitch-enum -Wimplicit-fallthrough -Wundef -Wvla -Wformat=2
    -Wdouble-promotion -Wdate-time)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    list(APPEND CLAVE_WARNINGS -Wlogical-op -Wduplicated-cond -Wduplicated-branches
        -Wjump-misses-init)
endif()
if(CLAVE_WERROR)
    list(APPEND CLAVE_WARNINGS -Werror)
    # With -O3, as packagers build, it is wrong about entries of lists.
    if(CMAKE_C_COMPILER_ID STREQUAL GNU)
        list(APPEND CLAVE_WARNINGS -Wnull-dereference)
    endif()
endif()
