/* client_request.h - one request: its bytes, and all the memory its answer will need. Nothing is
 * allocated after it was submitted, so its completion cannot fail. Below that, what requests are
 * made of: paths under the chroot, data, ACLs, the operations of a multi. On an error these set
 * clave_async_client_errmsg. */
#ifndef CLAVE_CLIENT_REQUEST_CLIENT_REQUEST_H
#define CLAVE_CLIENT_REQUEST_CLIENT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "clave/async/client.h"
#include "client/timer.h"
#include "wire/record.h"

/* From this size on, a sixteenth of what servers take by default, a connection that was lost under
 * a request may have been closed because of it. Requests of locks are below 1 KiB; a server that
 * takes less than 64 KiB was told to, and its log says what it closes. */
enum { LARGE_REQUEST = 64 * 1024 };
#define LARGE_REQUEST_ADVICE                                                                       \
    "the server's limit may be smaller (clave serve --max-request; ZooKeeper's jute.maxbuffer)"

/* A server that takes no request so large closes the connection when it has read how long it is,
 * and will do so again: after so many cuts in a row the request is not sent again without a pause.
 */
enum { MOST_CUTS = 3 };

/* What a server may append to the requested name: "2147483647", or "-2147483648". */
enum { SEQUENCE_ROOM = 11 };

bool clave__mode_is_sequential(clave_create_mode mode);

/* Whether a request is sent again when its connection goes before its answer arrives. */
enum request_again {
    AGAIN_BY_OPCODE,  /* in a spec: a write is AGAIN_NEVER, a read AGAIN_BY_POLICY */
    AGAIN_NEVER,      /* it fails: nobody knows whether it was done, or it is not worth repeating */
    AGAIN_NOT_UNSENT, /* likewise; and when it never left, it is not sent at all: ENOTSENT */
    AGAIN_BY_POLICY,  /* the retry policy for reads */
    AGAIN_ALWAYS,     /* a read that decides the outcome of a create */
};

/* Of a create together with its ancestors some errors are no faults. */
enum create_place {
    CREATE_ALONE,
    CREATE_BELOW,    /* ENONODE: the ancestors are created next */
    CREATE_ANCESTOR, /* any: whether one matters shows in the create below it */
};

struct request {
    struct list link;
    clave_async_client *client;
    int32_t op;
    int32_t xid;
    enum request_again again;
    int64_t sent_at;
    uint64_t sent_end; /* where its frame ends in the connection's stream */
    int64_t vouched;   /* what an answer proves to the hold deadline, or HOLD_DEADLINE_NONE */
    bool quiet;
    bool raw;
    uint8_t place; /* an enum create_place */
    bool creates;  /* a node; a multi: one or more */
    bool watches;
    bool sequential; /* these, or some of them */
    unsigned cuts;   /* so often the server closed the connection when some of it had left */

    clave_result_cb *cb; /* may be NULL */
    void *arg;
    clave_async_watch *watch; /* armed by the answer, or NULL */
    uint8_t watch_kind;       /* an enum watch_kind */
    bool watch_freed;         /* the server will be asked to remove the watch */
    bool watch_heir;          /* also if none is armed: another one was disarmed meanwhile */

    int32_t losses; /* how many times the connection went */
    int64_t first_loss;
    struct timer pause; /* before it is sent again */

    clave_err err; /* why there was no answer */
    char *path;    /* as the caller gave it */
    char *created; /* room for the final path that the server will choose */
    size_t created_cap;
    clave_op_result *ops; /* multi */
    clave_stat *stats;    /* of the ops */
    size_t nops;
    uint8_t *frame;
    size_t frame_len;
};

struct request_spec {
    enum request_again again;
    int32_t op;
    const char *path; /* as the caller gave it; copied */
    clave_result_cb *cb;
    void *arg;
    clave_async_watch *watch;
    const clave_op *ops; /* multi; of a multiRead only how many there are */
    size_t nops;
    bool quiet; /* the client's own: its error is not put into clave_async_client_errmsg */
    bool raw;   /* the path is the server's, not below the chroot */
    enum create_place place;
};

/* ETOOBIG, ENOMEM. When it fails, the spec's watch is left idle. */
clave_err clave__request_new(clave_async_client *c, const struct request_spec *spec,
                             const union wire_body *body, struct request **out);
/* Runs the callback, and then frees the request. */
void clave__request_answer(struct request *r, const clave_result *res);

/* ---- what its failure is told as (errmsg.c) -------------------------------------------------- */

/* How many bytes of a path a message shows: what follows the path matters more than its end. */
enum { PATH_SHOWN = 128, PATH_SHOWN_CAP = PATH_SHOWN + sizeof "..." };
/* Writes the path for a message, and dots in place of what is cut. */
const char *clave__path_shown(const char *path, char out[PATH_SHOWN_CAP]);

/* Sets clave_async_client_errmsg, unless the error is no fault; `res`, which may be NULL, says
 * which operation of a multi it was. */
void clave__request_tell(const struct request *r, clave_err err, const clave_result *res);
/* As for a request that the server has refused: the create of an ancestor, which lies at `path` on
 * the server. */
void clave__request_tell_ancestor(clave_async_client *c, char *path, clave_err err);

/* ---- its answer ------------------------------------------------------------------------------ */

/* Decodes the body of a successful reply. EPROTO; ENOMEM, never for a write. */
clave_err clave__reply_decode(struct request *r, struct jreader *body, clave_result *out,
                              clave_stat *stat);

/* ---- what it is made of ---------------------------------------------------------------------- */

/* The path as the server knows it, with the chroot. The slice is valid until the next call. */
clave_err clave__full_path(clave_async_client *c, const char *path, struct jbytes *out);
/* The path below the chroot; the chroot itself and an empty path give "/". n = -1: outside. */
struct jbytes clave__strip_chroot(const clave_async_client *c, struct jbytes full);

/* The path of a create as the server knows it. The number appended to "/" becomes a name below the
 * chroot, not part of the chroot's own name. The slice is valid until the next call. */
clave_err clave__path_to_create(clave_async_client *c, const char *path, clave_create_mode mode,
                                struct jbytes *out);

/* Whether the client takes a request on this path. ECLOSED; EPATH. */
clave_err clave__encode_check(clave_async_client *c, const char *path, bool sequential);
/* Encodes an ACL; the vector lies in c->acls. NULL is the open ACL. */
clave_err clave__encode_acls(clave_async_client *c, const clave_acl *acls, size_t n,
                             struct jvec *out);
/* NULL is null, not empty. ETOOBIG when it does not fit in a frame. */
clave_err clave__encode_data(clave_async_client *c, const char *path, const void *data, size_t len,
                             struct jbytes *out);
/* A multi of the spec's ops, whose op and path it sets. ETOOBIG: the caller says so with the next.
 */
clave_err clave__encode_multi(clave_async_client *c, struct request_spec *spec,
                              union wire_body *body);
/* Sets the fault that the request on this path does not fit in a frame, and returns ETOOBIG. */
clave_err clave__encode_too_big(clave_async_client *c, const char *path);

#endif
