/* txn_log_read.c - recognises records in the bytes of a log, and decides what the first thing that
 * is not a record means; see txn_log_read.h. txn_log_replay.c (recovery), `clave data` and the gate
 * call it. What may have been durable is DAMAGED, never TORN: no acknowledged write is dropped
 * silently. */
#include "server/store/txn_log_read.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/server.h"
#include "server/store/adler32.h"
#include "server/store/txn_record.h"
#include "wire/jute.h"
#include "wire/proto.h"

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

/* ---- tails ----------------------------------------------------------------------------------- */

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
    if (edge - at > 4 &&
        clave__txn_log_skip_zeros(p, at, edge < n ? edge : n) >= (edge < n ? edge : n))
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

struct log_tail clave__txn_log_tail(const uint8_t *p, size_t at, size_t n, int64_t last_zxid)
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

bool clave__txn_log_has_torn_header(const uint8_t *p, size_t n)
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

void clave__txn_log_walk_fault(struct log_walk *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->fault, sizeof w->fault, fmt, ap);
    va_end(ap);
}

void clave__txn_log_walk_no_txn(struct log_walk *w, const struct record *rec)
{
    clave__txn_log_walk_fault(w, "the record at offset %zu, zxid 0x%llx, is not a transaction",
                              rec->at, (unsigned long long)rec->zxid);
}

bool clave__txn_log_walk(struct log_walk *w, const void *p, size_t n)
{
    bool begins = n < 4 || memcmp(p, "ZKLG", 4) == 0;
    *w = (struct log_walk){.p = p, .n = n, .at = SERVER_LOG_HEADER, .marked = log_is_marked(p, n)};
    if (clave__txn_log_has_torn_header(p, n) || (begins && n < SERVER_LOG_HEADER)) {
        w->at = 0;
        return true;
    }
    if (!begins)
        clave__txn_log_walk_fault(w, "it does not begin with ZKLG, as a transaction log does");
    return begins;
}

static enum log_step log_walk_tail(struct log_walk *w)
{
    int64_t last = w->last_zxid > w->known_zxid ? w->last_zxid : w->known_zxid;
    struct log_tail tail = clave__txn_log_tail(w->p, w->at, w->n, last);
    if (tail.kind == TAIL_PADDING)
        return LOG_STEP_END;
    if (tail.kind == TAIL_TORN)
        return LOG_STEP_TORN;
    clave__txn_log_walk_fault(w, "%s", tail.fault);
    return LOG_STEP_LOST;
}

enum log_step clave__txn_log_walk_next(struct log_walk *w, struct record *out)
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
        clave__txn_log_walk_fault(w, "the record at offset %zu has the largest possible zxid",
                                  w->at);
        return LOG_STEP_DAMAGED;
    }
    if (out->skips && out->zxid <= last) {
        clave__txn_log_walk_fault(w, "the record at offset %zu has zxid 0x%llx, after 0x%llx",
                                  w->at, (unsigned long long)out->zxid, (unsigned long long)last);
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
    enum log_step step = clave__txn_log_walk_next(w, &rec);
    out->size = w->at - out->offset;
    if (step != LOG_STEP_RECORD || clave__txn_record_read(&out->txn, rec.payload, rec.n))
        return step;
    clave__txn_log_walk_no_txn(w, &rec);
    return LOG_STEP_DAMAGED;
}
