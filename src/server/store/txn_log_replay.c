/* txn_log_replay.c - applies the records of a transaction log to the tree. Recovery, the driver's,
 * calls it. Invariant: s->last_zxid is the zxid of the newest record replayed, or that of the
 * snapshot before the first. */
#include <assert.h>
#include <stdio.h>

#include "server/server_internal.h"
#include "server/store/txn_log_read.h"
#include "server/store/txn_redo.h"

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
    clave__txn_log_walk_fault(&r->w, "the record at offset %zu has zxid 0x%llx, after 0x%llx",
                              r->gap_at, (unsigned long long)r->gap_to,
                              (unsigned long long)r->gap_from);
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
        clave__txn_log_walk_fault(
            &r->w, "the record at offset %zu has zxid 0x%llx, but the newest known is 0x%llx",
            rec->at, (unsigned long long)rec->zxid, (unsigned long long)r->s->last_zxid);
        return CLAVE_ECORRUPT;
    }
    clave_err err = txn_log_replay_record(r->s, rec, &proof);
    if (err == CLAVE_EPROTO) {
        clave__txn_log_walk_no_txn(&r->w, rec);
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
           (step = clave__txn_log_walk_next(&r.w, &rec)) == LOG_STEP_RECORD &&
           rec.zxid <= s->replay.until)
        err = txn_log_replay_take(&r, &rec, out);
    if (err == CLAVE_OK && step == LOG_STEP_RECORD)
        return CLAVE_OK; /* far enough: what follows does not matter */
    if (err == CLAVE_OK)
        err = txn_log_replay_end(&r, step, out);
    if (err == CLAVE_ECORRUPT)
        snprintf(out->fault, sizeof out->fault, "%s", r.w.fault);
    return err;
}
