/* microhttpd.c - see microhttpd.h. */
#include "runtime/http/microhttpd.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "runtime/load_library.h"

#define LIBRARY "libmicrohttpd.so.12"
LOADS_LIBRARY(LIBRARY, "suggested", "http", "admin pages and metrics of the server, over HTTP");

/* Written once, under `once`. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct microhttpd functions;
static char fault[256];

static void microhttpd_load(void)
{
    static const struct load_row wanted[] = {
#define MICROHTTPD_ROW(name) {#name, offsetof(struct microhttpd, name)},
        MICROHTTPD_FUNCTIONS(MICROHTTPD_ROW)
#undef MICROHTTPD_ROW
    };
    const char *why;
    void *lib = clave__load(LIBRARY, &why);
    if (!lib) {
        snprintf(fault, sizeof fault, "cannot load libmicrohttpd, which HTTP needs: %s", why);
        return;
    }
    const char *missing =
        clave__load_functions(lib, wanted, sizeof wanted / sizeof *wanted, &functions);
    if (missing)
        snprintf(fault, sizeof fault, "%s has no function %s: 0.9.75 or newer is needed", LIBRARY,
                 missing);
}

const struct microhttpd *clave__microhttpd(const char **why)
{
    pthread_once(&once, microhttpd_load);
    *why = fault;
    return fault[0] ? NULL : &functions;
}
