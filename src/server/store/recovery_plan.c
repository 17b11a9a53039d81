/* recovery_plan.c - the order in which the files of a directory are read, and the verdict on each;
 * see recovery_plan.h. What must stay true: nothing that may have been acknowledged is ever
 * dropped. A file that does not fit is refused. */
#include "server/store/recovery_plan.h"

#include <assert.h>
#include <stdio.h>

#include "base/log_line.h"
#include "server/server_internal.h"
#include "server/store/txn_log.h"

/* The oldest snapshot that the logs reach back to; if there is none, the newest. */
static size_t recovery_oldest(const struct recovery_files *f)
{
    size_t i = 0;
    while (f->nlogs > 0 && i + 1 < f->nsnapshots && f->snapshots[i] < f->logs[0] - 1)
        i++;
    return i;
}

void clave__recovery_plan_begin(struct recovery *r, struct server *s,
                                const struct recovery_files *files, enum recovery_start start)
{
    assert(!s->serving);
    *r = (struct recovery){.s = s, .files = *files, .start = start, .from = -1};
    r->snapshot = start == RECOVER_FROM_NEWEST ? files->nsnapshots - 1 : recovery_oldest(files);
}

void clave__recovery_plan_until(struct recovery *r, int64_t zxid)
{
    assert(r->from < 0 && r->log == 0);
    r->s->replay.until = zxid;
    while (r->snapshot < r->files.nsnapshots && r->files.snapshots[r->snapshot] > zxid)
        r->snapshot--;
}

bool clave__recovery_plan_next(const struct recovery *r, struct recovery_file *out)
{
    const struct recovery_files *f = &r->files;
    bool is_log = r->from >= 0;
    if (is_log ? r->log >= f->nlogs : r->snapshot >= f->nsnapshots)
        return false;
    if (is_log && r->s->last_zxid >= r->s->replay.until)
        return false;
    *out = (struct recovery_file){is_log, is_log ? f->logs[r->log] : f->snapshots[r->snapshot]};
    return true;
}

static void recovery_load(struct recovery *r, const void *p, size_t n, struct recovery_finding *out)
{
    const struct recovery_files *f = &r->files;
    assert(r->snapshot < f->nsnapshots);
    int64_t zxid = f->snapshots[r->snapshot];
    clave__server_snapshot_named(r->s, zxid);
    out->err = clave__server_load_snapshot(r->s, p, n, out->fault, sizeof out->fault);
    if (out->err == CLAVE_OK && r->s->replay.fuzzy_zxid > r->s->replay.until) {
        out->err = CLAVE_ECORRUPT;
        snprintf(out->fault, sizeof out->fault, "it was saved while it changed, up to zxid 0x%llx",
                 (unsigned long long)r->s->replay.fuzzy_zxid);
    }
    if (out->err == CLAVE_ECORRUPT) {
        out->verdict = RECOVERY_SKIPPED;
        r->snapshot += r->start == RECOVER_FROM_NEWEST
                           ? SIZE_MAX
                           : 1; /* to the next older one, or to the next newer one */
        return;
    }
    out->verdict = out->err == CLAVE_OK ? RECOVERY_FINE : RECOVERY_REFUSED;
    r->from = zxid;
    while (r->log + 1 < f->nlogs && f->logs[r->log + 1] <= zxid + 1)
        r->log++;
}

/* Judges a log that was replayed. Apache pads logs with zeros, and after a torn tail it continues
 * in a new file. */
static enum recovery_verdict recovery_judge_log(const struct recovery *r, clave_err err,
                                                const struct log_replay *log, bool padded)
{
    bool newest = r->log + 1 == r->files.nlogs;
    bool continued =
        !newest && clave__recovery_plan_continues(r->s->last_zxid, r->files.logs[r->log + 1]);
    if (err != CLAVE_OK)
        return log->lost_tail && continued ? RECOVERY_FINE : RECOVERY_REFUSED;
    if (log->valid_len < SERVER_LOG_HEADER)
        return newest ? RECOVERY_NO_RECORD : RECOVERY_REFUSED;
    if (!log->torn || padded || continued)
        return RECOVERY_FINE;
    return newest ? RECOVERY_TORN : RECOVERY_UNFINISHED;
}

static void recovery_replay(struct recovery *r, const void *p, size_t n,
                            struct recovery_finding *out)
{
    assert(r->log < r->files.nlogs);
    struct log_replay log;
    clave_err err = clave__server_replay_log(r->s, p, n, &log);
    bool padded = clave__txn_log_skip_zeros(p, log.valid_len, n) == n;
    out->valid_len = log.valid_len;
    out->last_batch = log.last_batch;
    out->verdict = recovery_judge_log(r, err, &log, padded);
    if (out->verdict == RECOVERY_REFUSED) {
        out->err = err == CLAVE_OK ? CLAVE_ECORRUPT : err;
        out->lost_tail = log.lost_tail;
        snprintf(out->fault, sizeof out->fault, "%s", log.fault);
    }
    if (out->verdict == RECOVERY_REFUSED && err == CLAVE_OK)
        snprintf(out->fault, sizeof out->fault, "only %zu byte%s, but newer logs follow", n,
                 clave__plural(n));
    r->log++;
}

void clave__recovery_plan_read(struct recovery *r, const void *p, size_t n,
                               struct recovery_finding *out)
{
    *out = (struct recovery_finding){.verdict = RECOVERY_FINE};
    if (r->from < 0)
        recovery_load(r, p, n, out);
    else
        recovery_replay(r, p, n, out);
}

/* ---- what was loaded ------------------------------------------------------------------------- */

void clave__server_each_node(const struct server *s,
                             void (*visit)(void *arg, const struct node_view *n), void *arg)
{
    for (const struct node *n = s->tree.root; n; n = clave__tree_next(n, s->tree.root)) {
        struct node_view v = {
            .path = clave__node_path_bytes(n),
            .data = clave__node_data(n),
            .acl = clave__acl_entries(n->acl),
            .stat = clave__node_wire_stat(n),
            .stored_cversion = n->stat.cversion,
            .stored_owner = n->stat.owner,
        };
        visit(arg, &v);
    }
}

void clave__server_each_session(const struct server *s,
                                void (*visit)(void *arg, int64_t id, int32_t timeout_ms), void *arg)
{
    const struct map *table = &s->sessions.table;
    for (struct map_node *at = NULL; (at = clave__map_next(table, at));) {
        const struct session *session = MAP_ENTRY(at, struct session, in_table);
        visit(arg, session->id, session->logged_timeout_ms);
    }
}
