/* http.h - pages over HTTP/1.1 on a loop: libmicrohttpd without a thread of its own. GET and HEAD,
 * one request a connection. */
#ifndef CLAVE_RUNTIME_SERVER_HTTP_H
#define CLAVE_RUNTIME_SERVER_HTTP_H

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/log.h"
#include "runtime/start_error.h"

/* The number of connections at a time; further ones wait in the kernel's queue. An open file each.
 */
enum { HTTP_MAX_CONNECTIONS = 16 };

struct http; /* opaque */

struct http_page {
    unsigned status;
    const char *type;
    struct buf body;
    clave_err err; /* it could not be produced: 503 instead */
    /* Appends the next piece to the body; *done: it was the last one. An error ends the answer
     * where it is. NULL: `body` is all of it. */
    clave_err (*more)(void *arg, struct buf *body, bool *done);
    void (*end)(void *arg); /* when the answer has been sent, or is given up */
    void *arg;
};

struct http_options {
    uv_loop_t *loop;
    const struct clave_mem *mem; /* outlives it */
    struct log log;
    /* Produces the page of a path, on the loop's thread. The page starts as an empty 200. */
    void (*answer)(void *arg, const char *path, struct http_page *page);
    void *arg;
};

/* Whether _start could be called with this address, without binding it. The faults of _start. */
clave_err clave__http_check(const char *address, const struct fault *f);
/* Serves on the address `spec`, as clave__listen takes it. EINUSE, EINVAL, ENOMEM, EIO: also
 * without libmicrohttpd on the machine. */
clave_err clave__http_start(struct http **out, const char *spec, const struct http_options *o,
                            const struct fault *f);
/* Closes everything at once; freed when the loop has turned. NULL is ignored. */
void clave__http_stop(struct http *h);
/* The first address, as bound. */
const char *clave__http_address(const struct http *h);

#endif
