/* txn_log.c - Apache's transaction log: finds the records in its bytes, appends to it, and replays
 * it. A record is checksum, length, payload, 'B'. Requests append (transaction.c), the driver takes
 * what is pending; recovery replays; `clave data` and the gate walk from record to record.
 *
 * A log ends where there is no further record, and then it has to be decided what the bytes there
 * mean: padding, the torn end of a batch that was never acknowledged, or damage (txn_log.h).
 *
 * What must stay true: what may have been durable is DAMAGED, never TORN, so that no acknowledged
 * write is dropped silently. s->last_zxid is the zxid of the newest record appended or replayed. */
#include "server/store/txn_log.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/server.h"
#include "server/server_internal.h"
#include "server/store/adler32.h"
#include "wire/jute.h"
#include "wire/proto.h"

/* ---- one record ------------------------------------------------------------------------------ */

enum { LEAST_PAYLOAD = 32, TYPE_AT = 28, DIGEST = 12 };
/* The unit that a disk writes whole. */
enum { BLOCK = 512 };

static int64_t log_long_at(const uint8_t *p)
{
    struct jreader r = clave__jreader(p, 8);
    return clave__jget_long(&r);
}

enum found clave__txn_log_look_at(const uint8_t *p, size_t n, struct record *out)
{
    if (n == 0)
        return FOUND_END;
    if (n < LOG_RECORD_HEAD)
        return FOUND_TORN;
    struct jreader r = clave__jreader(p, n);
    int64_t sum = clave__jget_long(&r);
    int32_t len = clave__jget_int(&r);
    if (len <= 0 || (size_t)len >= r.n)
        return FOUND_TORN;
    if (r.p[len] != LOG_END_MARK)
        return FOUND_TORN;
    *out = (struct record){.payload = r.p, .n = (size_t)len};
    if (len < LEAST_PAYLOAD || sum != (int64_t)clave__checksum(CHECKSUM_START, r.p, out->n))
        return FOUND_DAMAGED;
    out->zxid = log_long_at(r.p + 12);
    return FOUND_RECORD;
}

size_t clave__txn_log_skip_zeros(const uint8_t *p, size_t from, size_t n)
{
    assert(from <= n);
    static const uint8_t zeros[4096];
    while (n - from >= sizeof zeros && memcmp(p + from, zeros, sizeof zeros) == 0)
        from += sizeof zeros;
    while (from < n && p[from] == 0)
        from++;
    return from;
}

/* ---- what follows the last record ------------------------------------------------------------ */

enum tail_kind {
    TAIL_PADDING, /* zeros only */
    TAIL_TORN,    /* part of an unfinished newest batch, none of which was acknowledged */
    TAIL_DAMAGED, /* it was durable once, or may have been */
};
struct log_tail {
    enum tail_kind kind;
    char fault[160]; /* DAMAGED */
};

/* The offset of a whole later record, at or after `from`; n: there is none. */
static size_t log_find_record(const uint8_t *p, size_t from, size_t n, int64_t last_zxid)
{
    struct record rec;
    for (size_t at = from; at < n; at++) {
        /* Padding may be long. No record begins further before the first byte that is not zero
         * than the length of a record's head. */
        if (p[at] == 0) {
            size_t other = clave__txn_log_skip_zeros(p, at, n);
            if (other == n)
                return n;
            if (other - at > LOG_RECORD_HEAD)
                at = other - LOG_RECORD_HEAD;
        }
        if (clave__txn_log_look_at(p + at, n - at, &rec) == FOUND_RECORD && rec.zxid > last_zxid)
            return at;
    }
    return n;
}

static bool log_is_marked(const uint8_t *p, size_t n)
{
    return n >= SERVER_LOG_HEADER && memcmp(p + 8, LOG_DBID, 8) == 0;
}

/* The mark comes after the digest, or after the body of a failed request, which has no digest. */
static bool log_record_begins_batch(const struct record *rec)
{
    assert(rec->n >= LEAST_PAYLOAD);
    struct jreader r = clave__jreader(rec->payload + TYPE_AT, rec->n - TYPE_AT);
    if (rec->payload[rec->n - 1] != LOG_BATCH_MARK)
        return false;
    if (clave__jget_int(&r) == OP_ERROR)
        return rec->n == LEAST_PAYLOAD + 4 + 1;
    if (rec->n < LEAST_PAYLOAD + DIGEST + 1)
        return false;
    r = clave__jreader(rec->payload + rec->n - 1 - DIGEST, DIGEST);
    return clave__jget_int(&r) == TXN_DIGEST_VERSION;
}

/* As log_find_record, but only records that begin a batch. */
static size_t log_find_batch(const uint8_t *p, size_t from, size_t n, int64_t last_zxid)
{
    struct record rec;
    while ((from = log_find_record(p, from, n, last_zxid)) < n) {
        clave__txn_log_look_at(p + from, n - from, &rec);
        if (log_record_begins_batch(&rec))
            break;
        from += LOG_RECORD_HEAD + rec.n + 1;
    }
    return from;
}

/* Whether a block between `at` and `end` never reached the disk, which then has zeros there: the
 * block that contains `at`, as it was before the batch, or a later one. Any record begins with four
 * zeros, so those do not count. */
static bool log_lacks_block(const uint8_t *p, size_t at, size_t end, size_t n)
{
    assert(at <= end && end <= n);
    size_t edge = (at / BLOCK + 1) * BLOCK;
    size_t first_end = edge < n ? edge : n;
    if (edge - at > 4 && clave__txn_log_skip_zeros(p, at, first_end) >= first_end)
        return true;
    for (; edge < end; edge += BLOCK) {
        size_t to = n - edge < BLOCK ? n : edge + BLOCK;
        if (clave__txn_log_skip_zeros(p, edge, to) == to)
            return true;
    }
    return false;
}

/* Given bytes that are not a record, with no record after them: whether they cannot be what a power
 * cut left of one. They cannot if the head was never written like this (missing blocks are zeros);
 * if there are bytes at or after the place where the record should have ended, and none of its
 * blocks is missing; or if the checksum matches the bytes, whatever the length says. */
static bool log_cannot_be_torn(const uint8_t *p, size_t at, size_t n)
{
    size_t end = n;
    while (end > at && p[end - 1] == 0)
        end--;
    if (end - at <= LOG_RECORD_HEAD)
        return false;
    struct jreader r = clave__jreader(p + at, n - at);
    int64_t sum = clave__jget_long(&r);
    int32_t len = clave__jget_int(&r);
    size_t there = end - at - LOG_RECORD_HEAD;
    if (sum < 0 || sum > UINT32_MAX || len < 0)
        return true;
    if (len > 0 && (size_t)len < there)
        return !log_lacks_block(p, at, at + LOG_RECORD_HEAD + (size_t)len + 1, n);
    return r.p[there - 1] == LOG_END_MARK &&
           sum == (int64_t)clave__checksum(CHECKSUM_START, r.p, there - 1);
}

__attribute__((format(printf, 1, 2))) static struct log_tail log_tail_damaged(const char *fmt, ...)
{
    struct log_tail t = {.kind = TAIL_DAMAGED};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t.fault, sizeof t.fault, fmt, ap);
    va_end(ap);
    return t;
}

/* Judges the bytes p[0..n) of a whole file from `at` on, where there is no record; `last_zxid` is
 * that of the record before. */
static struct log_tail txn_log_tail(const uint8_t *p, size_t at, size_t n, int64_t last_zxid)
{
    assert(at <= n);
    struct record rec;
    if (clave__txn_log_skip_zeros(p, at, n) == n)
        return (struct log_tail){.kind = TAIL_PADDING};
    bool finished = clave__txn_log_look_at(p + at, n - at, &rec) == FOUND_DAMAGED;
    bool marked = log_is_marked(p, n);
    size_t whole = log_find_record(p, at + 1, n, last_zxid);
    size_t shows = marked ? log_find_batch(p, whole, n, last_zxid) : whole;
    size_t end = finished ? at + LOG_RECORD_HEAD + rec.n + 1 : whole;
    if (!finished && whole == n && log_cannot_be_torn(p, at, n))
        return log_tail_damaged(
            "the record at offset %zu, after zxid 0x%llx, has a wrong head or end", at,
            (unsigned long long)last_zxid);
    if (shows == n && marked && log_lacks_block(p, at, end, n))
        return (struct log_tail){.kind = TAIL_TORN};
    if (finished)
        return log_tail_damaged("the record at offset %zu, after zxid 0x%llx, has a wrong checksum",
                                at, (unsigned long long)last_zxid);
    if (whole < n)
        return log_tail_damaged("a hole at offset %zu, and a whole record after it at offset %zu",
                                at, shows < n ? shows : whole);
    return (struct log_tail){.kind = TAIL_TORN};
}

bool clave__txn_log_follows(int64_t last, int64_t zxid)
{
    return (last < INT64_MAX && zxid == last + 1) ||
           (zxid >> 32 > last >> 32 && (uint32_t)zxid == 1);
}

void clave__server_log_header(uint8_t out[SERVER_LOG_HEADER])
{
    memcpy(out, "ZKLG\0\0\0\2" LOG_DBID, SERVER_LOG_HEADER);
}

/* The size of a file may reach the disk before its first bytes do. From somewhere in the header on
 * the bytes are zeros then, and no record of the file was ever acknowledged. */
static bool txn_log_has_torn_header(const uint8_t *p, size_t n)
{
    uint8_t header[SERVER_LOG_HEADER];
    const size_t read = 8; /* nobody reads the other half */
    size_t same = 0;
    clave__server_log_header(header);
    while (same < n && same < read && p[same] == header[same])
        same++;
    return same < read && clave__txn_log_skip_zeros(p, same, n) == n;
}

/* ---- record by record ------------------------------------------------------------------------ */

/* Notes what is wrong. */
static void txn_log_walk_fault(struct log_walk *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->fault, sizeof w->fault, fmt, ap);
    va_end(ap);
}

/* Notes that the bytes of a record are not a transaction. */
static void txn_log_walk_no_txn(struct log_walk *w, const struct record *rec)
{
    txn_log_walk_fault(w, "the record at offset %zu, zxid 0x%llx, is not a transaction", rec->at,
                       (unsigned long long)rec->zxid);
}

bool clave__txn_log_walk(struct log_walk *w, const void *p, size_t n)
{
    bool begins = n < 4 || memcmp(p, "ZKLG", 4) == 0;
    *w = (struct log_walk){.p = p, .n = n, .at = SERVER_LOG_HEADER, .marked = log_is_marked(p, n)};
    if (txn_log_has_torn_header(p, n) || (begins && n < SERVER_LOG_HEADER)) {
        w->at = 0;
        return true;
    }
    if (!begins)
        txn_log_walk_fault(w, "it does not begin with ZKLG, as a transaction log does");
    return begins;
}

static enum log_step log_walk_tail(struct log_walk *w)
{
    int64_t last = w->last_zxid > w->known_zxid ? w->last_zxid : w->known_zxid;
    struct log_tail tail = txn_log_tail(w->p, w->at, w->n, last);
    if (tail.kind == TAIL_PADDING)
        return LOG_STEP_END;
    if (tail.kind == TAIL_TORN)
        return LOG_STEP_TORN;
    txn_log_walk_fault(w, "%s", tail.fault);
    return LOG_STEP_LOST;
}

static enum log_step txn_log_walk_next(struct log_walk *w, struct record *out)
{
    int64_t last = w->last_zxid;
    if (w->at == 0)
        return LOG_STEP_END;
    assert(w->at <= w->n);
    enum found found = clave__txn_log_look_at(w->p + w->at, w->n - w->at, out);
    if (found != FOUND_RECORD)
        return found == FOUND_END ? LOG_STEP_END : log_walk_tail(w);
    out->at = w->at;
    out->skips = last != 0 && !clave__txn_log_follows(last, out->zxid);
    out->begins_batch = w->marked ? log_record_begins_batch(out) : last == 0;
    if (out->zxid == INT64_MAX) {
        txn_log_walk_fault(w, "the record at offset %zu has the largest possible zxid", w->at);
        return LOG_STEP_DAMAGED;
    }
    if (out->skips && out->zxid <= last) {
        txn_log_walk_fault(w, "the record at offset %zu has zxid 0x%llx, after 0x%llx", w->at,
                           (unsigned long long)out->zxid, (unsigned long long)last);
        return LOG_STEP_DAMAGED;
    }
    if (out->skips && w->gap == 0)
        w->gap = last + 1;
    w->at += LOG_RECORD_HEAD + out->n + 1;
    w->last_zxid = out->zxid;
    return LOG_STEP_RECORD;
}

enum log_step clave__txn_log_next_entry(struct log_walk *w, struct txn_log_entry *out)
{
    struct record rec;
    *out = (struct txn_log_entry){.offset = w->at};
    enum log_step step = txn_log_walk_next(w, &rec);
    out->size = w->at - out->offset;
    if (step != LOG_STEP_RECORD || clave__txn_record_read(&out->txn, rec.payload, rec.n))
        return step;
    txn_log_walk_no_txn(w, &rec);
    return LOG_STEP_DAMAGED;
}

/* ---- appending ------------------------------------------------------------------------------- */

clave_err clave__txn_log_append(struct server *s)
{
    assert(s->txn.head.zxid == s->last_zxid + 1);
    struct jwriter w = clave__jwriter(&s->txn_log.pending);
    size_t begin = clave__buf_len(&s->txn_log.pending), head = begin + LOG_RECORD_HEAD;
    clave__jput_long(&w, 0);
    clave__jput_int(&w, 0);
    clave__txn_write(&w, &s->txn);
    if (s->txn.head.type != OP_ERROR) {
        clave__jput_int(&w, TXN_DIGEST_VERSION);
        clave__jput_long(&w, (int64_t)s->tree.digest);
    }
    if (begin == 0)
        clave__jput_byte(&w, LOG_BATCH_MARK);
    size_t n = clave__buf_len(&s->txn_log.pending) - head;
    clave__jput_byte(&w, LOG_END_MARK);
    if (w.err != CLAVE_OK) {
        s->txn_log.pending.tail -= clave__buf_len(&s->txn_log.pending) - begin;
        return w.err;
    }
    uint32_t sum = clave__checksum(CHECKSUM_START, clave__buf_bytes(&s->txn_log.pending) + head, n);
    clave__jput_int_at(&w, begin + 4, (int32_t)sum);
    clave__jput_int_at(&w, begin + 8, (int32_t)n);
    if (begin == 0)
        s->txn_log.pending_first = s->txn.head.zxid;
    s->last_zxid = s->txn.head.zxid;
    clave__snapshot_count(s, LOG_RECORD_HEAD + n);
    return CLAVE_OK;
}

struct log_batch clave__server_log_pending(const struct server *s)
{
    size_t n = clave__buf_len(&s->txn_log.pending);
    if (n == 0)
        return (struct log_batch){NULL, 0, 0, 0};
    return (struct log_batch){clave__buf_bytes(&s->txn_log.pending), n, s->txn_log.pending_first,
                              s->last_zxid};
}

void clave__server_log_taken(struct server *s)
{
    clave__buf_clear(&s->txn_log.pending);
}

/* Only the memory changes hands, not the limits. */
void clave__server_log_swap(struct server *s, struct buf *empty)
{
    assert(clave__buf_len(empty) == 0);
    struct buf full = s->txn_log.pending;
    s->txn_log.pending.data = empty->data;
    s->txn_log.pending.cap = empty->cap;
    s->txn_log.pending.head = s->txn_log.pending.tail = 0;
    empty->data = full.data;
    empty->cap = full.cap;
    empty->head = full.head;
    empty->tail = full.tail;
}

/* ---- replaying ------------------------------------------------------------------------------- */

static clave_err txn_log_update_sessions(struct server *s)
{
    const struct txn_head *h = &s->txn.head;
    struct session *session;
    if (h->type == OP_CREATE_SESSION)
        return clave__sessions_add(&s->sessions, h->client, s->txn.timeout_ms, &session);
    session = h->type == OP_CLOSE_SESSION ? clave__sessions_find(&s->sessions, h->client) : NULL;
    if (session)
        clave__sessions_remove(&s->sessions, session);
    return CLAVE_OK;
}

/* What the digest after a record says about the tree. */
enum proof { PROOF_NONE, PROOF_SAME, PROOF_OTHER };

static enum proof txn_log_check_digest(struct server *s, const struct txn_record *t)
{
    if (!t->has_digest)
        return PROOF_NONE;
    if (t->digest == s->tree.digest)
        return PROOF_SAME;
    if (t->head.zxid <= s->replay.fuzzy_zxid)
        return PROOF_NONE;
    if (s->replay.digest_mismatches++ == 0)
        clave__log(&s->log, CLAVE_LOG_WARN,
                   "the tree differs from the one the log was written with, from zxid 0x%llx on: "
                   "digest %llu, not %llu",
                   (unsigned long long)t->head.zxid, (unsigned long long)s->tree.digest,
                   (unsigned long long)t->digest);
    return PROOF_OTHER;
}

void clave__txn_log_check_fuzzy_digest(struct server *s)
{
    if (!s->replay.has_fuzzy_digest || s->last_zxid < s->replay.fuzzy_zxid)
        return;
    s->replay.has_fuzzy_digest = false;
    if (s->last_zxid == s->replay.fuzzy_zxid && s->replay.fuzzy_digest != s->tree.digest) {
        s->replay.digest_mismatches++;
        clave__log(&s->log, CLAVE_LOG_WARN,
                   "the tree differs from the one of the snapshot, at zxid 0x%llx",
                   (unsigned long long)s->replay.fuzzy_zxid);
    }
}

/* EPROTO: it is not a transaction; ENOMEM. */
static clave_err txn_log_replay_changes(struct txn *t, const struct txn_record *rec)
{
    struct jreader at = rec->body;
    struct change_record c;
    clave_err err = CLAVE_OK;
    clave__txn_begin(t, &rec->head);
    t->timeout_ms = rec->timeout_ms;
    t->err = rec->err;
    while (err == CLAVE_OK && !rec->failed && clave__txn_record_next(rec, &at, &c))
        if (c.kind->replay)
            err = c.kind->replay(t, &c);
    if (err == CLAVE_OK && rec->head.type == OP_CLOSE_SESSION)
        err = clave__txn_redo_end_of_session(t);
    return err;
}

static clave_err txn_log_replay_record(struct server *s, const struct record *rec,
                                       enum proof *proof)
{
    struct txn_record t;
    if (!clave__txn_record_read(&t, rec->payload, rec->n))
        return CLAVE_EPROTO;
    clave_err err = txn_log_replay_changes(&s->txn, &t);
    if (err == CLAVE_OK)
        err = txn_log_update_sessions(s);
    if (err != CLAVE_OK)
        return err;
    s->last_zxid = rec->zxid;
    clave__snapshot_count(s, LOG_RECORD_HEAD + rec->n);
    *proof = txn_log_check_digest(s, &t);
    clave__txn_log_check_fuzzy_digest(s);
    return CLAVE_OK;
}

/* One file being replayed. */
struct replay {
    struct server *s;
    struct log_walk w;
    /* After this zxid some are skipped, and nothing has shown yet that they were never logged;
     * 0: none. */
    int64_t gap_from;
    int64_t gap_to;
    size_t gap_at;
};

static clave_err txn_log_replay_gap_damage(struct replay *r)
{
    assert(r->gap_from != 0);
    txn_log_walk_fault(&r->w, "the record at offset %zu has zxid 0x%llx, after 0x%llx", r->gap_at,
                       (unsigned long long)r->gap_to, (unsigned long long)r->gap_from);
    return CLAVE_ECORRUPT;
}

/* Apache takes a zxid for some requests that it then does not log. The records around such a gap
 * follow each other directly, which damage cannot cause; and the next digest must show that nothing
 * was changed in the gap. */
static clave_err txn_log_replay_cross_gap(struct replay *r, enum proof proof)
{
    if (r->gap_from == 0 || proof == PROOF_NONE)
        return CLAVE_OK;
    if (proof == PROOF_OTHER)
        return txn_log_replay_gap_damage(r);
    clave__log(&r->s->log, CLAVE_LOG_WARN,
               "zxid 0x%llx was never logged; ZooKeeper from 3.9.4 on does not start on such a log",
               (unsigned long long)r->gap_from + 1);
    r->gap_from = 0;
    return CLAVE_OK;
}

/* A record that is newer than what the server knows; `first` of the file. */
static clave_err txn_log_replay_next(struct replay *r, const struct record *rec, bool first)
{
    enum proof proof;
    if (first && !clave__txn_log_follows(r->s->last_zxid, rec->zxid)) {
        txn_log_walk_fault(
            &r->w, "the record at offset %zu has zxid 0x%llx, but the newest known is 0x%llx",
            rec->at, (unsigned long long)rec->zxid, (unsigned long long)r->s->last_zxid);
        return CLAVE_ECORRUPT;
    }
    clave_err err = txn_log_replay_record(r->s, rec, &proof);
    if (err == CLAVE_EPROTO) {
        txn_log_walk_no_txn(&r->w, rec);
        return CLAVE_ECORRUPT;
    }
    return err == CLAVE_OK ? txn_log_replay_cross_gap(r, proof) : err;
}

static clave_err txn_log_replay_take(struct replay *r, const struct record *rec,
                                     struct log_replay *out)
{
    bool first = out->last_zxid == 0;
    clave_err err = CLAVE_OK;
    if (rec->skips) {
        r->gap_from = out->last_zxid;
        r->gap_to = rec->zxid;
        r->gap_at = rec->at;
    }
    if (rec->zxid > r->s->last_zxid)
        err = txn_log_replay_next(r, rec, first);
    else
        r->gap_from = 0; /* the gap is older than the snapshot */
    if (err != CLAVE_OK)
        return err;
    if (first)
        out->first_zxid = rec->zxid;
    if (rec->begins_batch && !first)
        out->last_batch = rec->at;
    out->last_zxid = rec->zxid;
    out->valid_len = r->w.at;
    return CLAVE_OK;
}

static clave_err txn_log_replay_end(struct replay *r, enum log_step step, struct log_replay *out)
{
    if (step == LOG_STEP_DAMAGED)
        return CLAVE_ECORRUPT;
    if (r->gap_from != 0)
        return txn_log_replay_gap_damage(r);
    out->torn = out->valid_len < r->w.n;
    out->lost_tail = step == LOG_STEP_LOST;
    return out->lost_tail ? CLAVE_ECORRUPT : CLAVE_OK;
}

clave_err clave__server_replay_log(struct server *s, const void *p, size_t n,
                                   struct log_replay *out)
{
    struct replay r = {.s = s};
    struct record rec;
    enum log_step step = LOG_STEP_DAMAGED;
    clave_err err = CLAVE_OK;
    bool is_log = clave__txn_log_walk(&r.w, p, n);
    *out = (struct log_replay){.valid_len = is_log ? r.w.at : 0};
    r.w.known_zxid = s->last_zxid;
    while (is_log && err == CLAVE_OK && s->last_zxid < s->replay.until &&
           (step = txn_log_walk_next(&r.w, &rec)) == LOG_STEP_RECORD && rec.zxid <= s->replay.until)
        err = txn_log_replay_take(&r, &rec, out);
    if (err == CLAVE_OK && step == LOG_STEP_RECORD)
        return CLAVE_OK; /* far enough: what follows does not matter */
    if (err == CLAVE_OK)
        err = txn_log_replay_end(&r, step, out);
    if (err == CLAVE_ECORRUPT)
        snprintf(out->fault, sizeof out->fault, "%s", r.w.fault);
    return err;
}
