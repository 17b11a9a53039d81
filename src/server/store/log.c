/* log.c - writes and replays the records of Apache's transaction log: checksum, length, payload,
 * 'B'. write.c appends, recovery (the driver's) replays. s->last_zxid is always the zxid of the
 * newest record appended or replayed, or that of the snapshot before the first. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/server_internal.h"
#include "server/store/checksum.h"
#include "server/store/log_read.h"

enum { DIGEST_VERSION = 2 };

/* ---- writing --------------------------------------------------------------------------------- */

clave_err clave__log_append(struct server *s)
{
    struct jwriter w = clave__jwriter(&s->pending);
    size_t begin = clave__buf_len(&s->pending), head = begin + LOG_RECORD_HEAD;
    clave__jput_long(&w, 0);
    clave__jput_int(&w, 0);
    clave__txn_write(&w, &s->txn);
    if (s->txn.head.type != OP_ERROR) {
        clave__jput_int(&w, DIGEST_VERSION);
        clave__jput_long(&w, (int64_t)s->tree.digest);
    }
    if (begin == 0)
        clave__jput_byte(&w, LOG_BATCH_MARK);
    size_t n = clave__buf_len(&s->pending) - head;
    clave__jput_byte(&w, LOG_END_MARK);
    if (w.err != CLAVE_OK) {
        s->pending.tail -= clave__buf_len(&s->pending) - begin;
        return w.err;
    }
    uint32_t sum = clave__checksum(CHECKSUM_START, clave__buf_bytes(&s->pending) + head, n);
    clave__jput_int_at(&w, begin + 4, (int32_t)sum);
    clave__jput_int_at(&w, begin + 8, (int32_t)n);
    if (begin == 0)
        s->pending_first = s->txn.head.zxid;
    s->last_zxid = s->txn.head.zxid;
    s->txns_since_snapshot++;
    return CLAVE_OK;
}

struct log_batch clave__server_log_pending(const struct server *s)
{
    size_t n = clave__buf_len(&s->pending);
    if (n == 0)
        return (struct log_batch){NULL, 0, 0, 0};
    return (struct log_batch){clave__buf_bytes(&s->pending), n, s->pending_first, s->last_zxid};
}

void clave__server_log_taken(struct server *s)
{
    clave__buf_clear(&s->pending);
}

/* Only the memory changes hands, not the limits. */
void clave__server_log_swap(struct server *s, struct buf *empty)
{
    struct buf full = s->pending;
    s->pending.data = empty->data;
    s->pending.cap = empty->cap;
    s->pending.head = s->pending.tail = 0;
    empty->data = full.data;
    empty->cap = full.cap;
    empty->head = full.head;
    empty->tail = full.tail;
}

/* ---- reading --------------------------------------------------------------------------------- */

static clave_err update_sessions(struct server *s)
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

static enum proof check_digest(struct server *s, struct jreader *r)
{
    int64_t zxid = s->txn.head.zxid;
    if (r->n < 12 || clave__jget_int(r) != DIGEST_VERSION)
        return PROOF_NONE;
    uint64_t digest = (uint64_t)clave__jget_long(r);
    if (digest == s->tree.digest)
        return PROOF_SAME;
    if (zxid <= s->fuzzy_zxid)
        return PROOF_NONE;
    if (s->digest_mismatches++ == 0)
        clave__log(&s->log, CLAVE_LOG_WARN,
                   "the tree differs from the one the log was written with, from zxid 0x%llx on: "
                   "digest %llu, not %llu",
                   (unsigned long long)zxid, (unsigned long long)s->tree.digest,
                   (unsigned long long)digest);
    return PROOF_OTHER;
}

void clave__log_check_fuzzy_digest(struct server *s)
{
    if (!s->has_fuzzy_digest || s->last_zxid < s->fuzzy_zxid)
        return;
    s->has_fuzzy_digest = false;
    if (s->last_zxid == s->fuzzy_zxid && s->fuzzy_digest != s->tree.digest) {
        s->digest_mismatches++;
        clave__log(&s->log, CLAVE_LOG_WARN,
                   "the tree differs from the one of the snapshot, at zxid 0x%llx",
                   (unsigned long long)s->fuzzy_zxid);
    }
}

static clave_err replay_record(struct server *s, const struct record *rec, enum proof *proof)
{
    struct jreader r = clave__jreader(rec->payload, rec->n);
    clave_err err = clave__txn_replay(&s->txn, &r);
    if (err == CLAVE_OK)
        err = update_sessions(s);
    if (err != CLAVE_OK)
        return err;
    s->last_zxid = rec->zxid;
    s->txns_since_snapshot++;
    *proof = check_digest(s, &r);
    clave__log_check_fuzzy_digest(s);
    return CLAVE_OK;
}

__attribute__((format(printf, 2, 3))) static clave_err damaged(struct log_replay *out,
                                                               const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out->fault, sizeof out->fault, fmt, ap);
    va_end(ap);
    return CLAVE_ECORRUPT;
}

static clave_err gap_damage(struct log_replay *out)
{
    return damaged(out, "the record at offset %zu has zxid 0x%llx, after 0x%llx", out->gap_at,
                   (unsigned long long)out->gap_to, (unsigned long long)out->gap_from);
}

/* Apache takes a zxid for some requests that it then does not log. The records around such a gap
 * follow each other directly, which damage cannot cause; and the next digest must show that nothing
 * was changed in the gap. */
static clave_err cross_gap(struct server *s, enum proof proof, struct log_replay *out)
{
    if (out->gap_from == 0 || proof == PROOF_NONE)
        return CLAVE_OK;
    if (proof == PROOF_OTHER)
        return gap_damage(out);
    clave__log(&s->log, CLAVE_LOG_WARN,
               "zxid 0x%llx was never logged; ZooKeeper from 3.9.4 on does not start on such a log",
               (unsigned long long)out->gap_from + 1);
    out->gap_from = 0;
    return CLAVE_OK;
}

static clave_err replay_next(struct server *s, const struct record *rec, size_t at,
                             struct log_replay *out)
{
    enum proof proof;
    if (out->last_zxid == 0 && !clave__log_follows(s->last_zxid, rec->zxid))
        return damaged(out,
                       "the record at offset %zu has zxid 0x%llx, but the newest known is 0x%llx",
                       at, (unsigned long long)rec->zxid, (unsigned long long)s->last_zxid);
    clave_err err = replay_record(s, rec, &proof);
    if (err == CLAVE_EPROTO)
        return damaged(out, "the record at offset %zu, zxid 0x%llx, is not a transaction", at,
                       (unsigned long long)rec->zxid);
    return err == CLAVE_OK ? cross_gap(s, proof, out) : err;
}

static clave_err take_record(struct server *s, const struct record *rec, size_t at,
                             struct log_replay *out)
{
    int64_t before = out->last_zxid;
    clave_err err = CLAVE_OK;
    if (rec->zxid == INT64_MAX)
        return damaged(out, "the record at offset %zu has the largest possible zxid", at);
    if (before != 0 && !clave__log_follows(before, rec->zxid)) {
        out->gap_from = before;
        out->gap_to = rec->zxid;
        out->gap_at = at;
        if (rec->zxid <= before)
            return gap_damage(out);
    }
    if (rec->zxid > s->last_zxid)
        err = replay_next(s, rec, at, out);
    else
        out->gap_from = 0; /* the gap is older than the snapshot */
    if (err != CLAVE_OK)
        return err;
    if (before == 0)
        out->first_zxid = rec->zxid;
    out->last_zxid = rec->zxid;
    return CLAVE_OK;
}

static clave_err end_whole(struct log_replay *out)
{
    return out->gap_from != 0 ? gap_damage(out) : CLAVE_OK;
}

static clave_err server_log_end_torn(struct server *s, const uint8_t *p, size_t n,
                                     struct log_replay *out)
{
    int64_t last = out->last_zxid > s->last_zxid ? out->last_zxid : s->last_zxid;
    struct log_tail tail = clave__log_tail(p, out->valid_len, n, last);
    clave_err err = end_whole(out);
    if (err != CLAVE_OK)
        return err;
    out->torn = true;
    out->lost_tail = tail.kind == TAIL_DAMAGED;
    return out->lost_tail ? damaged(out, "%s", tail.fault) : CLAVE_OK;
}

clave_err clave__server_replay_log(struct server *s, const void *p, size_t n,
                                   struct log_replay *out)
{
    const uint8_t *bytes = p;
    struct record rec;
    memset(out, 0, sizeof *out);
    if (clave__log_has_torn_header(bytes, n)) {
        out->torn = n > 0;
        return CLAVE_OK;
    }
    if (n >= 4 && memcmp(bytes, "ZKLG", 4) != 0)
        return damaged(out, "it does not begin with ZKLG, as a transaction log does");
    if (n < SERVER_LOG_HEADER) {
        out->torn = n > 0;
        return CLAVE_OK;
    }
    for (out->valid_len = SERVER_LOG_HEADER;;) {
        size_t at = out->valid_len;
        clave_err err;
        switch (clave__log_look_at(bytes + at, n - at, &rec)) {
        case FOUND_RECORD:
            err = take_record(s, &rec, at, out);
            if (err != CLAVE_OK)
                return err;
            out->valid_len += LOG_RECORD_HEAD + rec.n + 1;
            break;
        case FOUND_END:
            return end_whole(out);
        case FOUND_TORN:
        case FOUND_DAMAGED:
            return server_log_end_torn(s, bytes, n, out);
        }
    }
}
