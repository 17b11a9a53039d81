/* inspect.h - reading the content of Apache's files without serving it: the records of a log one
 * by one, and the nodes and sessions of a server that has loaded the files. */
#ifndef CLAVE_SERVER_STORE_INSPECT_H
#define CLAVE_SERVER_STORE_INSPECT_H

#include "server/server.h"
#include "wire/record.h"

/* ---- a log ----------------------------------------------------------------------------------- */

/* A transaction as recorded. */
struct log_entry {
    size_t offset; /* in the file */
    size_t size;   /* of the whole record */
    int64_t client;
    int32_t cxid;
    int64_t zxid;
    int64_t time;
    int32_t type;       /* enum wire_opcode */
    int32_t timeout_ms; /* createSession */
    int32_t err;        /* of a request that failed */
    int32_t changes;    /* createSession, closeSession without a list, error: 0 */
    bool has_digest;
    uint64_t digest; /* of the tree after it */
    const uint8_t *body;
    size_t body_len;
};

struct log_change {
    int32_t type;
    struct jbytes path;
    struct jbytes data;
    struct jvec acl;
    int32_t version; /* create: the parent's stored cversion; else the resulting one */
    bool ephemeral;
    int64_t ttl_ms; /* createTTL */
    int32_t err;    /* an op of a multi that failed */
};

enum log_step {
    LOG_STEP_ENTRY,
    LOG_STEP_END,
    LOG_STEP_TORN,   /* the rest was never finished */
    LOG_STEP_DAMAGED /* the fault says what is wrong; nothing further can be read */
};

struct log_walk {
    const uint8_t *p;
    size_t n;
    size_t at;         /* offset of the next record */
    int64_t last_zxid; /* 0: none yet */
    int64_t gap;       /* the first zxid that was skipped; 0: none */
    char fault[200];
};

/* false: it is not a log; w->fault says why. */
bool clave__log_walk(struct log_walk *w, const void *p, size_t n);
enum log_step clave__log_walk_next(struct log_walk *w, struct log_entry *out);
/* Change number i of an entry, in order; false: there is none. */
bool clave__log_entry_change(const struct log_entry *e, int32_t i, struct log_change *out);

/* ---- what a server has loaded ---------------------------------------------------------------- */

struct node_view {
    struct jbytes path; /* "" is the root */
    struct jbytes data;
    struct jvec acl;
    struct wire_stat stat;
    int32_t stored_cversion;
    int64_t stored_owner; /* also of containers and of nodes with a TTL */
};

/* Visit every node, parents first, and every session. */
void clave__server_each_node(const struct server *s,
                             void (*visit)(void *arg, const struct node_view *n), void *arg);
void clave__server_each_session(const struct server *s,
                                void (*visit)(void *arg, int64_t id, int32_t timeout_ms),
                                void *arg);

#endif
