/* txn_log.h - transactions as log records, and walking through a log record by record.
 *
 * A table in txn_record.c says, for each kind of transaction, what it is called, which fields its
 * record has, and how it is applied again. Everything that writes, replays or shows records goes by
 * that table: a new kind is a new line.
 *
 * A log ends where no record follows (txn_log.c), and then somebody has to decide what the bytes
 * there mean. A batch is written as a whole, and the next one only once it is durable. So a power
 * cut can tear the newest batch and no other, but it can tear it anywhere, because a disk may write
 * the blocks of a batch in any order. Therefore the first record of each batch in clave's logs is
 * marked, by a byte after everything that Apache reads. If a marked record follows the bad bytes,
 * they were durable once, so they are damaged rather than torn. */
#ifndef CLAVE_SERVER_STORE_TXN_LOG_H
#define CLAVE_SERVER_STORE_TXN_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/store/txn.h"

/* ---- a transaction as a record --------------------------------------------------------------- */

/* Precedes the digest at the end of a record. */
enum { TXN_DIGEST_VERSION = 2 };

/* The fields of a change in a record, in the order of their bytes. */
enum txn_field {
    TXN_PATH = 1,
    TXN_DATA = 2,
    TXN_ACL = 4,
    TXN_EPHEMERAL = 8,
    TXN_PARENT_CVERSION = 16, /* the parent's stored cversion; absent before ZooKeeper 3.3 */
    TXN_VERSION = 32,         /* of a check: the version expected; otherwise the resulting one */
    TXN_TTL = 64,
    TXN_ERR = 128,
};

struct change_record;

struct txn_kind {
    int32_t type;     /* enum wire_opcode */
    const char *name; /* as in Apache's own tools */
    unsigned fields;  /* enum txn_field; 0: the record has no fields of its own: it is not a change,
                         or consists of several or none */
    /* Applies the change again. EPROTO: such a change is impossible. NULL: the kind changes
     * nothing. */
    clave_err (*replay)(struct txn *t, const struct change_record *c);
};

/* A change as recorded; fields that its kind does not have are empty. */
struct change_record {
    const struct txn_kind *kind;
    struct jbytes path;
    struct jbytes data;
    struct jvec acl;
    bool ephemeral;
    int32_t version; /* for TXN_VERSION or TXN_PARENT_CVERSION; -1: absent */
    int64_t ttl_ms;
    int32_t err; /* of an operation of a multi that failed */
};

/* A whole record, which points into the bytes that it was read from. */
struct txn_record {
    struct txn_head head;
    const struct txn_kind *kind;
    int32_t timeout_ms; /* of a createSession */
    int32_t err;        /* of a request that failed */
    int32_t changes;    /* 0 for createSession, error, and a closeSession without a list */
    bool failed;        /* a multi that has an error among its operations: none of them was made */
    bool has_digest;
    uint64_t digest; /* of the tree after the transaction */
    struct jreader body;
};

/* Writes head and body of a record, without the digest. */
void clave__txn_write(struct jwriter *w, const struct txn *t);
/* Returns false if the bytes are not a transaction. */
bool clave__txn_record_read(struct txn_record *out, const void *p, size_t n);
/* The next change, in order; *at starts as a copy of the body. Returns false after the last. */
bool clave__txn_record_next(const struct txn_record *t, struct jreader *at,
                            struct change_record *out);
/* To be called after the changes of a closeSession: deletes what else the session owned that was
 * not in the record's list. */
clave_err clave__txn_redo_end_of_session(struct txn *t);

/* ---- the log --------------------------------------------------------------------------------- */

enum { LOG_RECORD_HEAD = 12, LOG_END_MARK = 'B', LOG_BATCH_MARK = 'S' };
/* Written where Apache has its dbid, which it writes as 0 and never reads. It says that the batches
 * of this log are marked. */
#define LOG_DBID "clave\0\0\1"

enum found { FOUND_RECORD, FOUND_END, FOUND_TORN, FOUND_DAMAGED };

struct record {
    size_t at; /* offset in the file; set by _walk_next, like the fields below n */
    const uint8_t *payload;
    size_t n;
    int64_t zxid;
    bool skips; /* some zxids are missing between the previous record and this one */
    bool begins_batch;
};

/* Looks for a record at p. FOUND_DAMAGED is a record that has its end mark but a wrong checksum;
 * payload and n are set. */
enum found clave__txn_log_look_at(const uint8_t *p, size_t n, struct record *out);
/* The offset of the first non-zero byte at or after `from`; n: there is none. */
size_t clave__txn_log_skip_zeros(const uint8_t *p, size_t from, size_t n);

/* True if `zxid` may follow `last`: it is the next one, or the first of a later leader. */
bool clave__txn_log_follows(int64_t last, int64_t zxid);

/* ---- record by record ------------------------------------------------------------------------ */

enum log_step {
    LOG_STEP_RECORD,
    LOG_STEP_END,
    LOG_STEP_TORN,    /* the rest was never completed */
    LOG_STEP_LOST,    /* damage: something that was durable, or may have been, follows after `at` */
    LOG_STEP_DAMAGED, /* a record that cannot be in this place */
};

struct log_walk {
    const uint8_t *p;
    size_t n;
    size_t at;          /* offset of the next record; 0: not even the header is complete */
    int64_t last_zxid;  /* 0: there was no record yet */
    int64_t known_zxid; /* may be set by a caller that has read the previous log; 0: unknown */
    int64_t gap;        /* the first zxid that is missing; 0: none */
    bool marked;        /* its batches are marked; otherwise all of it may be one batch */
    char fault[200];    /* for LOST and DAMAGED */
};

/* Begins a walk. Returns false if this is not a log; w->fault says why. */
bool clave__txn_log_walk(struct log_walk *w, const void *p, size_t n);

/* A transaction as recorded. */
struct txn_log_entry {
    size_t offset; /* in the file */
    size_t size;   /* of the whole record */
    struct txn_record txn;
};

/* Reads the next record as a transaction. Also returns LOG_STEP_DAMAGED if it is not one. */
enum log_step clave__txn_log_next_entry(struct log_walk *w, struct txn_log_entry *out);

#endif
