/* record.h - every message of the protocol as a struct, with a reader and a writer
 * each, used by client and server alike. Slices in a struct that was read point
 * into the frame. Sources: zookeeper.jute of Apache ZooKeeper 3.4 to 3.9.
 *
 * The layer src/wire turns bytes into structs and back; it keeps no state and judges
 * only whether bytes are well-formed, never whether a request is allowed:
 *   proto.h          opcodes, xids, modes: the protocol's numbers
 *   frame            length-prefixed messages on a byte stream
 *   jute             ints, strings and vectors, with a sticky error
 *   opcode           handshake, headers, events, requests and replies, by the table of opcodes */
#ifndef CLAVE_WIRE_RECORD_H
#define CLAVE_WIRE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/jute.h"
#include "wire/proto.h"

struct wire_stat {
    int64_t czxid;
    int64_t mzxid;
    int64_t ctime; /* ms since the epoch, the server's wall clock */
    int64_t mtime;
    int32_t version;
    int32_t cversion;
    int32_t aversion;
    int64_t ephemeral_owner;
    int32_t data_length;
    int32_t num_children;
    int64_t pzxid;
};

struct wire_acl {
    int32_t perms;
    struct jbytes scheme;
    struct jbytes id;
};

struct wire_connect_request {
    int32_t protocol_version;
    int64_t last_zxid_seen;
    int32_t timeout_ms;
    int64_t session_id;
    struct jbytes passwd;
    bool read_only;
    bool has_read_only; /* absent in clients before 3.4; written only when set */
};

struct wire_connect_response {
    int32_t protocol_version;
    int32_t timeout_ms; /* 0: the session was refused */
    int64_t session_id;
    struct jbytes passwd;
    bool read_only;
    bool has_read_only;
};

struct wire_event {
    int32_t type;
    int32_t state;
    struct jbytes path;
};

/* Bodies of requests; the comment after each names the ops that share it. */
struct wire_create { /* create, create2, createContainer, createTTL */
    struct jbytes path;
    struct jbytes data;
    struct jvec acl; /* of wire_acl */
    int32_t flags;   /* enum wire_create_mode */
    int64_t ttl_ms;  /* createTTL only */
};

struct wire_path_watch { /* exists, getData, getChildren, getChildren2 */
    struct jbytes path;
    bool watch;
};

struct wire_path_version { /* delete, check */
    struct jbytes path;
    int32_t version; /* -1: any */
};

struct wire_set_data {
    struct jbytes path;
    struct jbytes data;
    int32_t version;
};

struct wire_set_acl {
    struct jbytes path;
    struct jvec acl;
    int32_t version;
};

struct wire_auth {
    int32_t type;
    struct jbytes scheme;
    struct jbytes auth;
};

struct wire_set_watches { /* setWatches; setWatches2 with all five lists */
    int64_t relative_zxid;
    struct jvec data;
    struct jvec exist;
    struct jvec child;
    struct jvec persistent;
    struct jvec persistent_recursive;
};

struct wire_path_type { /* checkWatches, removeWatches; addWatch (type is the mode) */
    struct jbytes path;
    int32_t type;
};

struct wire_reconfig {
    struct jbytes joining;
    struct jbytes leaving;
    struct jbytes members;
    int64_t config_id;
};

/* The ops of a multi or multiRead, walked once and found well-formed. */
struct wire_ops {
    int32_t count;
    const uint8_t *p; /* begins at the first MultiHeader */
    size_t n;         /* ends after the last one (done) */
};

union wire_body {
    struct wire_create create;
    struct wire_path_watch read;
    struct wire_path_version check;
    struct wire_set_data set;
    struct wire_set_acl set_acl;
    struct wire_auth auth;
    struct wire_set_watches watches;
    struct wire_path_type typed;
    struct wire_reconfig reconfig;
    struct wire_ops multi;
    /* getACL, sync, getEphemerals, getAllChildrenNumber, deleteContainer: a path; sasl: a token.
     * Bodies with more than a path begin with it, so this is the path of any of them. */
    struct jbytes path;
};

struct wire_request {
    int32_t xid;
    int32_t op;
    union wire_body body;
    bool malformed; /* the body could not be read */
};

struct wire_op { /* one op of a multi */
    int32_t op;
    union wire_body body;
};

struct wire_reply_header {
    int32_t xid;
    int64_t zxid;
    int32_t err;
};

/* The parts that a reply may have; the table in opcode.c says which ones it has. */
struct wire_reply {
    struct jbytes path;
    struct jbytes data;
    struct wire_stat stat;
    struct jvec acl;
    struct jvec names;
    struct jvec ids; /* of two strings: scheme, user */
    struct wire_ops results;
    int32_t number;
};

struct wire_result { /* one result of a multi */
    int32_t op;      /* OP_ERROR when err was given as an error result */
    int32_t err;     /* 0; the code of the op that failed; -2 for the ops after it */
    struct wire_reply reply;
};

/* Elements. */
void clave__wire_put_stat(struct jwriter *w, const struct wire_stat *s);
struct wire_acl clave__wire_get_acl(struct jreader *r);
void clave__wire_put_acl(struct jwriter *w, const struct wire_acl *a);
struct jvec clave__wire_get_acls(struct jreader *r);

/* Handshake. */
struct wire_connect_request clave__wire_get_connect_request(struct jreader *r);
void clave__wire_put_connect_request(struct jwriter *w, const struct wire_connect_request *m);
struct wire_connect_response clave__wire_get_connect_response(struct jreader *r);
void clave__wire_put_connect_response(struct jwriter *w, const struct wire_connect_response *m);

/* Headers. */
struct wire_reply_header clave__wire_get_reply_header(struct jreader *r);
void clave__wire_put_reply_header(struct jwriter *w, const struct wire_reply_header *h);
struct wire_event clave__wire_get_event(struct jreader *r);
void clave__wire_put_event(struct jwriter *w, const struct wire_event *e);

/* A whole request. Reading one with an unknown op yields its header, an
 * empty body and no fault (the server answers -6). */
struct wire_request clave__wire_get_request(struct jreader *r);
void clave__wire_put_request(struct jwriter *w, const struct wire_request *q);
/* A body alone. */
void clave__wire_get_body(struct jreader *r, int32_t op, union wire_body *body);
void clave__wire_put_body(struct jwriter *w, int32_t op, const union wire_body *body);

/* The body of a successful reply to `op`. */
struct wire_reply clave__wire_get_reply(struct jreader *r, int32_t op);
void clave__wire_put_reply(struct jwriter *w, int32_t op, const struct wire_reply *m);

/* Multi. To write: _put_op for each op, then _put_ops_end. To read: walk the wire_ops of
 * a request or reply with a reader from _ops_reader; _get_op / _get_result return false
 * at the end. */
static inline struct jreader clave__wire_ops_reader(const struct wire_ops *ops)
{
    return clave__jreader(ops->p, ops->n);
}

bool clave__wire_get_op(struct jreader *r, struct wire_op *op);
void clave__wire_put_op(struct jwriter *w, const struct wire_op *op);
bool clave__wire_get_result(struct jreader *r, struct wire_result *res);
void clave__wire_put_result(struct jwriter *w, const struct wire_result *res);
/* Writes the header of a result whose reply the caller writes itself. With an error there is no
 * reply, and `op` is OP_ERROR. */
void clave__wire_put_result_header(struct jwriter *w, int32_t op, int32_t err);
void clave__wire_put_ops_end(struct jwriter *w);

#endif
