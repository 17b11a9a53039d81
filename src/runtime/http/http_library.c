/* http_library.c - see http_library.h. */
#include "runtime/http/http_library.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "runtime/load_library.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#ifdef CLAVE_LLHTTP
#define LIBRARY "libllhttp.so." TEXT(LLHTTP_VERSION_MAJOR) "." TEXT(LLHTTP_VERSION_MINOR)
#else
#define LIBRARY                                                                                    \
    "libhttp_parser.so." TEXT(HTTP_PARSER_VERSION_MAJOR) "." TEXT(HTTP_PARSER_VERSION_MINOR)
#endif
LOADS_LIBRARY(LIBRARY, "suggested", "http", "admin pages and metrics of the server, over HTTP");

/* Written once, under `once`. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct http_library functions;
static char fault[256];

static void http_library_load(void)
{
    static const struct load_row wanted[] = {
#define HTTP_LIBRARY_ROW(name) {#name, offsetof(struct http_library, name)},
        HTTP_LIBRARY_FUNCTIONS(HTTP_LIBRARY_ROW)
#undef HTTP_LIBRARY_ROW
    };
    const char *why;
    void *lib = clave__load(LIBRARY, &why);
    if (!lib) {
        snprintf(fault, sizeof fault, "cannot load " LIBRARY ", which HTTP needs: %s", why);
        return;
    }
    const char *missing =
        clave__load_functions(lib, wanted, sizeof wanted / sizeof *wanted, &functions);
    if (missing)
        snprintf(fault, sizeof fault, "%s has no function %s", LIBRARY, missing);
}

const struct http_library *clave__http_library(const char **why)
{
    pthread_once(&once, http_library_load);
    *why = fault;
    return fault[0] ? NULL : &functions;
}
