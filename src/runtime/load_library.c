/* load_library.c - dlopen, with a check for statically linked programs. */
#include "runtime/load_library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

/* Called for the first object, which is the program itself. */
static int load_library_program_has_loader(struct dl_phdr_info *program, size_t size, void *has)
{
    (void)size;
    for (size_t i = 0; i < program->dlpi_phnum; i++)
        if (program->dlpi_phdr[i].p_type == PT_INTERP)
            *(bool *)has = true;
    return 1;
}

void *clave__load(const char *name, const char **why)
{
    /* dlopen may work in a program linked with -static, but what it loads brings its own libc.
     * OpenSSL and this library would then have different errnos, and closed connections would go
     * unnoticed. */
    bool has_loader = false;
    dl_iterate_phdr(load_library_program_has_loader, &has_loader);
    if (!has_loader) {
        *why = "this program was linked with -static, and cannot load a shared library";
        return NULL;
    }
    void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        *why = dlerror();
    return lib;
}

const char *clave__load_functions(void *library, const struct load_row *rows, size_t n, void *table)
{
    for (size_t i = 0; i < n; i++) {
        void *function = dlsym(library, rows[i].name);
        if (!function)
            return rows[i].name;
        memcpy((char *)table + rows[i].at, &function, sizeof function);
    }
    return NULL;
}
