/* txn_record.h - a transaction as a record of the log has it. One table says for each kind of
 * transaction what it is called, which fields its record has, and how it is made again. Everything
 * that writes, replays or shows records goes by it: a new kind is a new line. */
#ifndef CLAVE_SERVER_STORE_TXN_RECORD_H
#define CLAVE_SERVER_STORE_TXN_RECORD_H

#include "server/store/txn.h"

/* In front of the digest that ends a record. */
enum { TXN_DIGEST_VERSION = 2 };

/* What the record of a change has, in the order of the bytes. */
enum txn_field {
    TXN_PATH = 1,
    TXN_DATA = 2,
    TXN_ACL = 4,
    TXN_EPHEMERAL = 8,
    TXN_PARENT_CVERSION = 16, /* the parent's stored cversion; absent before ZooKeeper 3.3 */
    TXN_VERSION = 32,         /* of a check: the one expected; else the resulting one */
    TXN_TTL = 64,
    TXN_ERR = 128,
};

struct change_record;

struct txn_kind {
    int32_t type;     /* enum wire_opcode */
    const char *name; /* as in Apache's own tools */
    unsigned fields;  /* enum txn_field; 0: not a change, but made of some or none */
    /* Makes the change. EPROTO: no such change is possible. NULL: it changes nothing. */
    clave_err (*replay)(struct txn *t, const struct change_record *c);
};

/* One change as recorded; what its kind does not have is empty. */
struct change_record {
    const struct txn_kind *kind;
    struct jbytes path;
    struct jbytes data;
    struct jvec acl;
    bool ephemeral;
    int32_t version; /* TXN_VERSION or TXN_PARENT_CVERSION; -1: absent */
    int64_t ttl_ms;
    int32_t err; /* of an op of a multi that failed */
};

/* A whole record; it points into the bytes that it was read from. */
struct txn_record {
    struct txn_head head;
    const struct txn_kind *kind;
    int32_t timeout_ms; /* createSession */
    int32_t err;        /* of a request that failed */
    int32_t changes;    /* createSession, closeSession without a list, error: 0 */
    bool failed;        /* a multi with an error among its changes: none of them was made */
    bool has_digest;
    uint64_t digest; /* of the tree after it */
    struct jreader body;
};

/* Head and record; without the digest. */
void clave__txn_write(struct jwriter *w, const struct txn *t);
/* false: it is not a transaction. */
bool clave__txn_record_read(struct txn_record *out, const void *p, size_t n);
/* The next change, in order; *at is a copy of the body at first. false: there is none. */
bool clave__txn_record_next(const struct txn_record *t, struct jreader *at,
                            struct change_record *out);
/* After the changes of a closeSession: deletes what the session owned that was not in its list. */
clave_err clave__txn_redo_end_of_session(struct txn *t);

#endif
