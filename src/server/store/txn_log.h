/* txn_log.h - transactions as records, and the log that they are in, one by one.
 *
 * One table (txn_record.c) says for each kind of transaction what it is called, which fields its
 * record has, and how it is made again. Everything that writes, replays or shows records goes by
 * it: a new kind is a new line.
 *
 * A log ends where no record follows (txn_log.c), and what the first bytes that are not a record
 * mean has to be decided. A batch is written whole, and the next one only when it is durable. So a
 * power cut can tear the newest batch and nothing else; but it can tear it anywhere, because a disk
 * writes the blocks of a batch in any order. In clave's logs the first record of each batch is
 * marked, by a byte after everything that Apache reads. So if a marked record follows the bad
 * bytes, these were durable once, and are damaged, not torn. */
#ifndef CLAVE_SERVER_STORE_TXN_LOG_H
#define CLAVE_SERVER_STORE_TXN_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/store/txn.h"

/* ---- a transaction as a record --------------------------------------------------------------- */

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

/* ---- the log --------------------------------------------------------------------------------- */

enum { LOG_RECORD_HEAD = 12, LOG_END_MARK = 'B', LOG_BATCH_MARK = 'S' };
/* In the place of Apache's dbid, which it writes as 0 and never reads: batches are marked. */
#define LOG_DBID "clave\0\0\1"

enum found { FOUND_RECORD, FOUND_END, FOUND_TORN, FOUND_DAMAGED };

struct record {
    size_t at; /* offset in the file; set by _walk_next, as those below n are */
    const uint8_t *payload;
    size_t n;
    int64_t zxid;
    bool skips; /* some zxids between the record before and this one */
    bool begins_batch;
};

/* DAMAGED: a record with its end mark, and a wrong checksum; payload and n are set. */
enum found clave__txn_log_look_at(const uint8_t *p, size_t n, struct record *out);
/* The offset of the first byte at or after `from` that is not zero; n: there is none. */
size_t clave__txn_log_skip_zeros(const uint8_t *p, size_t from, size_t n);

/* Whether `zxid` may follow `last`: it is the next one, or the first of a later leader. */
bool clave__txn_log_follows(int64_t last, int64_t zxid);

/* ---- record by record ------------------------------------------------------------------------ */

enum log_step {
    LOG_STEP_RECORD,
    LOG_STEP_END,
    LOG_STEP_TORN,    /* the rest was never finished */
    LOG_STEP_LOST,    /* damage: what was durable, or may have been, follows after `at` */
    LOG_STEP_DAMAGED, /* a record that cannot be there */
};

struct log_walk {
    const uint8_t *p;
    size_t n;
    size_t at;          /* offset of the next record; 0: there is not even a header */
    int64_t last_zxid;  /* 0: none yet */
    int64_t known_zxid; /* set by a caller that has the log before; 0: none */
    int64_t gap;        /* the first zxid that was skipped; 0: none */
    bool marked;        /* its batches are; otherwise all of it may be one */
    char fault[200];    /* LOST, DAMAGED */
};

/* false: it is not a log; the fault says why. */
bool clave__txn_log_walk(struct log_walk *w, const void *p, size_t n);

/* A transaction as recorded. */
struct txn_log_entry {
    size_t offset; /* in the file */
    size_t size;   /* of the whole record */
    struct txn_record txn;
};

/* The next record. DAMAGED too if it is not a transaction. */
enum log_step clave__txn_log_next_entry(struct log_walk *w, struct txn_log_entry *out);

#endif
