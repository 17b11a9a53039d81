/* txn_log.h - the records of a transaction log, one by one, and what it means where they end.
 * A record is checksum, length, payload, 'B'.
 *
 * Also decides what the first bytes that are not a record mean. A batch is written whole, and the
 * next one only when it is durable. So a power cut can tear the newest batch and nothing else; but
 * it can tear it anywhere, because a disk writes the blocks of a batch in any order. In clave's
 * logs the first record of each batch is marked, by a byte after everything that Apache reads. So
 * if a marked record follows the bad bytes, these were durable once, and are damaged, not torn. */
#ifndef CLAVE_SERVER_STORE_TXN_LOG_H
#define CLAVE_SERVER_STORE_TXN_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/store/txn_record.h"

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
