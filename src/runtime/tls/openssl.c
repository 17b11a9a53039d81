/* openssl.c - see openssl.h. The table is written once, and only used when every function was
 * found. */
#include "runtime/tls/openssl.h"

#include <pthread.h>
#include <stdio.h>

#include "runtime/load_library.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define LIBSSL "libssl.so." TEXT(OPENSSL_SHLIB_VERSION)
LOADS_LIBRARY(LIBSSL, "recommended", "tls", "TLS between clients and servers");

/* Written once, under `once`. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct openssl functions;
static char fault[256];

static void openssl_load(void)
{
    static const struct load_row wanted[] = {
#define OPENSSL_ROW(name) {#name, offsetof(struct openssl, name)},
        OPENSSL_FUNCTIONS(OPENSSL_ROW)
#undef OPENSSL_ROW
    };
    const char *why;
    void *lib = clave__load(LIBSSL, &why); /* never unloaded: it has thread-local data */
    if (!lib) {
        snprintf(fault, sizeof fault, "cannot load OpenSSL: %s", why);
        return;
    }
    /* some are in libcrypto, which libssl needs */
    const char *missing =
        clave__load_functions(lib, wanted, sizeof wanted / sizeof *wanted, &functions);
    if (missing) {
        snprintf(fault, sizeof fault, "%s has no function %s", LIBSSL, missing);
        return;
    }
    /* The program may exit while a loop's thread is inside OpenSSL. */
    functions.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
}

const struct openssl *clave__openssl(const char **why)
{
    pthread_once(&once, openssl_load);
    *why = fault;
    return fault[0] ? NULL : &functions;
}

const struct openssl *clave__openssl_loaded(void)
{
    const char *why;
    return clave__openssl(&why);
}
