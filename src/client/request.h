/* request.h - one request: its bytes, and all the room its answer will need. */
#ifndef CLAVE_CLIENT_REQUEST_H
#define CLAVE_CLIENT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "clave/async/client.h"
#include "client/timer.h"
#include "wire/record.h"

/* What a server may put behind the name asked for: "2147483647", or "-2147483648". */
enum { SEQUENCE_ROOM = 11 };

/* What becomes of a request whose connection goes before its answer. */
enum request_kind {
    REQUEST_WRITE,  /* fails: nobody knows whether it was done (or not worth a second time) */
    REQUEST_READ,   /* sent again, by the policy for reads */
    REQUEST_SEARCH, /* sent again, always: a read that an outcome hangs on */
};

struct request {
    struct list link;
    clave_async_client *client;
    int32_t op;
    int32_t xid;
    enum request_kind kind;
    int64_t sent_at;
    uint64_t sent_end; /* where its frame ends in the connection's stream */
    int64_t vouched;   /* what an answer proves to the lease, or LEASE_NONE */
    bool quiet;
    bool raw;

    clave_result_cb *cb; /* may be NULL */
    void *arg;
    clave_async_watch *watch; /* armed by the answer, or NULL */
    bool watch_freed;         /* the server will be told to forget the watch */

    int32_t losses; /* how often the connection went */
    int64_t first_loss;
    struct timer pause; /* before it is sent again */

    clave_err err; /* without an answer */
    char *path;    /* as asked */
    char *created; /* room for a final path, as the server will name it */
    size_t created_cap;
    clave_op_result *ops; /* multi */
    clave_stat *stats;    /* of the ops */
    size_t nops;
    uint8_t *frame;
    size_t frame_len;
};

struct request_spec {
    enum request_kind kind;
    int32_t op;
    const char *path; /* as asked; copied */
    clave_result_cb *cb;
    void *arg;
    clave_async_watch *watch;
    const clave_op *ops; /* multi */
    size_t nops;
    bool creates; /* the answer has a final path */
    bool quiet;   /* the client's own: an error of it is no fault to tell */
    bool raw;     /* the path is the server's, not below the chroot */
};

/* ETOOBIG, ENOMEM. When it fails, a watch of the spec is idle. */
clave_err clave__request_new(clave_async_client *c, const struct request_spec *spec,
                             const union wire_body *body, struct request **out);
void clave__request_free(struct request *r);
/* Each frees the request, after its callback has run: with an answer; with r->err. */
void clave__request_answer(struct request *r, clave_err server_err, const clave_result *res);
void clave__request_fail(struct request *r);

/* From the body of a successful reply. EPROTO; ENOMEM, never for a write. */
clave_err clave__reply_decode(struct request *r, struct jreader *body, clave_result *out,
                              clave_stat *stat);
clave_stat clave__stat_of(const struct wire_stat *s);

#endif
