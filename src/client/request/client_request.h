/* client_request.h - a single request: its bytes, and all the memory that its answer will need.
 * Nothing is allocated after submission, so a completion cannot fail. Further down is what requests
 * are made of: paths under the chroot, data, ACLs, the operations of a multi. The encoding
 * functions set clave_async_client_errmsg when they fail. */
#ifndef CLAVE_CLIENT_REQUEST_CLIENT_REQUEST_H
#define CLAVE_CLIENT_REQUEST_CLIENT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "clave/async/client.h"
#include "client/timer.h"
#include "wire/record.h"

/* From this size on, a sixteenth of what servers accept by default, the request may be the reason
 * why a connection was lost. Locks need less than 1 KiB. A server that accepts less than 64 KiB was
 * configured that way, and logs what it refuses. */
enum { LARGE_REQUEST = 64 * 1024 };
#define LARGE_REQUEST_ADVICE                                                                       \
    "the server's limit may be smaller (clave serve --max-request; ZooKeeper's jute.maxbuffer)"

/* A server that does not accept a request of this size closes the connection as soon as it has read
 * the length, and will do so every time. After this many such cuts in a row, the request is not
 * sent again without a pause. */
enum { MOST_CUTS = 3 };

/* What a server may append to a requested name: "2147483647" or "-2147483648". */
enum { SEQUENCE_ROOM = 11 };

bool clave__mode_is_sequential(clave_create_mode mode);

/* Whether a request is sent again if its connection is lost before its answer has arrived. */
enum request_again {
    AGAIN_BY_OPCODE,  /* in a spec: AGAIN_NEVER for a write, AGAIN_BY_POLICY for a read */
    AGAIN_NEVER,      /* it fails: nobody knows whether it was done, or repeating it is pointless */
    AGAIN_NOT_UNSENT, /* it fails too; and if it has not left yet it is not sent at all: ENOTSENT */
    AGAIN_BY_POLICY,  /* by the retry policy for reads */
    AGAIN_ALWAYS,     /* a read that decides the outcome of a create */
};

/* In a create together with its ancestors, some errors are expected and not faults. */
enum create_place {
    CREATE_ALONE,
    CREATE_BELOW,    /* ENONODE: the ancestors will be created next */
    CREATE_ANCESTOR, /* any error: whether it matters will show in the create below it */
};

struct request {
    struct list link;
    clave_async_client *client;
    int32_t op;
    int32_t xid;
    enum request_again again;
    int64_t sent_at;
    uint64_t sent_end; /* where its frame ends in the stream of the connection */
    int64_t vouched;   /* what its answer will prove to the hold deadline, or HOLD_DEADLINE_NONE */
    bool quiet;
    bool raw;
    bool claims;   /* as in the spec */
    uint8_t place; /* an enum create_place */
    bool creates;  /* it creates a node; for a multi, one or more */
    bool watches;
    bool sequential; /* some of these nodes are sequential */
    unsigned cuts; /* how often in a row the server closed the connection after part of the request
                      had left */

    clave_result_cb *cb; /* may be NULL */
    void *arg;
    clave_async_watch *watch; /* the watch that the answer arms, or NULL */
    uint8_t watch_kind;       /* an enum watch_kind */
    bool watch_freed;         /* the server will be asked to remove that watch */
    bool watch_heir; /* the same if nothing is armed, because another watch was disarmed in the
                        meantime */

    int32_t losses; /* how often its connection was lost */
    int64_t first_loss;
    struct timer pause; /* the wait before it is sent again */

    clave_err err; /* why it got no answer */
    char *path;    /* as passed by the caller */
    char *created; /* room for the final path, which the server will choose */
    size_t created_cap;
    clave_op_result *ops; /* for a multi */
    clave_stat *stats;    /* the Stats of its operations */
    size_t nops;
    uint8_t *frame;
    size_t frame_len;
};

struct request_spec {
    enum request_again again;
    int32_t op;
    const char *path; /* as passed by the caller; copied */
    clave_result_cb *cb;
    void *arg;
    clave_async_watch *watch;
    const clave_op *ops; /* for a multi; for a multiRead only their number counts */
    size_t nops;
    bool quiet;  /* a request of the client's own: its error is not put into
                    clave_async_client_errmsg */
    bool claims; /* it leaves although a session that was handed over is not claimed yet */
    bool raw;    /* the path is as the server knows it, not below the chroot */
    enum create_place place;
};

/* Makes a request. ETOOBIG, ENOMEM: the spec's watch is left idle. */
clave_err clave__request_new(clave_async_client *c, const struct request_spec *spec,
                             const union wire_body *body, struct request **out);
/* Runs the callback, then frees the request. */
void clave__request_answer(struct request *r, const clave_result *res);

/* ---- reporting a failure (errmsg.c) ---------------------------------------------------------- */

/* How many bytes of a path a message shows. What the message says after the path matters more than
 * the path's end. */
enum { PATH_SHOWN = 128, PATH_SHOWN_CAP = PATH_SHOWN + sizeof "..." };
/* Writes the path for a message, with dots for what was cut off. */
const char *clave__path_shown(const char *path, char out[PATH_SHOWN_CAP]);

/* Sets clave_async_client_errmsg, unless the error is expected. `res`, which may be NULL, tells
 * which operation of a multi failed. */
void clave__request_tell(const struct request *r, clave_err err, const clave_result *res);
/* The same for the create of an ancestor, at `path` on the server, that was refused. */
void clave__request_tell_ancestor(clave_async_client *c, char *path, clave_err err);

/* ---- decoding the answer --------------------------------------------------------------------- */

/* Decodes the body of a successful reply. EPROTO; ENOMEM, but never for a write. */
clave_err clave__reply_decode(struct request *r, struct jreader *body, clave_result *out,
                              clave_stat *stat);

/* ---- the parts of a request ------------------------------------------------------------------ */

/* The path as the server knows it, chroot included. The result is valid until the next call. */
clave_err clave__full_path(clave_async_client *c, const char *path, struct jbytes *out);
/* The path relative to the chroot; the chroot itself, and an empty path, give "/". n is -1 if the
 * path lies outside. */
struct jbytes clave__strip_chroot(const clave_async_client *c, struct jbytes full);

/* The path of a create as the server knows it. A number appended to "/" becomes a name below the
 * chroot rather than a part of the chroot's own name. The result is valid until the next call. */
clave_err clave__path_to_create(clave_async_client *c, const char *path, clave_create_mode mode,
                                struct jbytes *out);

/* Checks whether the client may send a request for this path. ECLOSED; EPATH. */
clave_err clave__encode_check(clave_async_client *c, const char *path, bool sequential);
/* Encodes an ACL into c->acls; NULL means the open ACL. */
clave_err clave__encode_acls(clave_async_client *c, const clave_acl *acls, size_t n,
                             struct jvec *out);
/* Encodes data; NULL is null, which is different from empty. ETOOBIG: it does not fit in a
 * frame. */
clave_err clave__encode_data(clave_async_client *c, const char *path, const void *data, size_t len,
                             struct jbytes *out);
/* Encodes a multi of the spec's operations, and sets the spec's op and path. ETOOBIG: the caller
 * reports it with clave__encode_too_big. */
clave_err clave__encode_multi(clave_async_client *c, struct request_spec *spec,
                              union wire_body *body);
/* Sets the fault that the request for this path does not fit in a frame, and returns ETOOBIG. */
clave_err clave__encode_too_big(clave_async_client *c, const char *path);

#endif
