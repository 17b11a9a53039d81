/* gate_jansson.c - see gate_jansson.h; gate_run.c and verbs of the program call it. */
#include "runtime/gate/gate_jansson.h"

#include <pthread.h>
#include <stdio.h>

#include "runtime/load_library.h"

#define LIBRARY "libjansson.so.4"
LOADS_LIBRARY(LIBRARY, "suggested", "gate", "locks, elections and nodes over HTTP");

/* Written once, under `once`. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct jansson functions;
static char fault[256];

static void gate_jansson_load(void)
{
    static const struct load_row wanted[] = {
#define JANSSON_ROW(name) {#name, offsetof(struct jansson, name)},
        JANSSON_FUNCTIONS(JANSSON_ROW)
#undef JANSSON_ROW
    };
    const char *why;
    void *lib = clave__load(LIBRARY, &why);
    if (!lib) {
        snprintf(fault, sizeof fault, "cannot load jansson, which the gate needs: %s", why);
        return;
    }
    const char *missing =
        clave__load_functions(lib, wanted, sizeof wanted / sizeof *wanted, &functions);
    if (missing)
        snprintf(fault, sizeof fault, "%s has no function %s: 2.13 or newer is needed", LIBRARY,
                 missing);
}

const struct jansson *gate_jansson(const char **why)
{
    pthread_once(&once, gate_jansson_load);
    *why = fault;
    return fault[0] ? NULL : &functions;
}
