/* load_library.h - loads a shared library on first use: OpenSSL, http_parser, jansson, libcurl and
 * ncurses. A file that loads one declares it with LOADS_LIBRARY, for the sake of packagers. */
#ifndef CLAVE_RUNTIME_LOAD_LIBRARY_H
#define CLAVE_RUNTIME_LOAD_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

/* The UAPI group's "ELF dlopen metadata": a note in the section .note.dlopen, from which packagers
 * derive dependencies that the dynamic section does not show. The arguments are literals without
 * quotes in them; priority is "required", "recommended" or "suggested". */
#define LOADS_LIBRARY(soname, priority, feature, description)                                      \
    LOAD_NOTE("[{\"feature\":\"" feature "\",\"description\":\"" description                       \
              "\",\"priority\":\"" priority "\",\"soname\":[\"" soname "\"]}]")
#define LOAD_NOTE(json)                                                                            \
    __attribute__((used, section(".note.dlopen"))) _Alignas(uint32_t) static const struct {        \
        uint32_t owner_size, json_size, type;                                                      \
        char owner[4];                                                                             \
        _Alignas(uint32_t) char json_[sizeof(json)];                                               \
    } load_note = {4, sizeof(json), 0x407c0c0a, "FDO", json}

/* Loads `name` permanently. NULL: *why is the reason, valid until this thread's next call to the
 * dynamic linker. */
void *clave__load(const char *name, const char **why);

/* A function of a library, and where its address goes in a table. */
struct load_row {
    const char *name;
    size_t at;
};
/* Fills in a table. Returns NULL, or the name of a function that the library lacks. */
const char *clave__load_functions(void *library, const struct load_row *rows, size_t n,
                                  void *table);

#endif
