# clave_built(OUT): the date of the build as the server tells it, "MM/DD/YYYY HH:MM UTC": what
# SOURCE_DATE_EPOCH says, so that two builds of one source are alike; else when the source was
# committed, which the tarball knows without git; else now. It is taken when the build is configured.
function(clave_built out)
    set(given "$ENV{SOURCE_DATE_EPOCH}")
    if(given STREQUAL "")
        set(committed "$Format:%ct$") # .gitattributes
        if(NOT committed MATCHES "^[0-9]+$")
            execute_process(COMMAND git log -1 --format=%ct
                WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}
                OUTPUT_VARIABLE committed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
        endif()
        if(committed MATCHES "^[0-9]+$")
            set(ENV{SOURCE_DATE_EPOCH} ${committed}) # string(TIMESTAMP) goes by it
        endif()
    elseif(NOT given MATCHES "^[0-9]+$")
        message(FATAL_ERROR "SOURCE_DATE_EPOCH is '${given}': seconds since 1970 are meant")
    endif()
    string(TIMESTAMP date "%m/%d/%Y %H:%M UTC" UTC)
    if(given STREQUAL "")
        unset(ENV{SOURCE_DATE_EPOCH})
    endif()
    set(${out} ${date} PARENT_SCOPE)
endfunction()
