/* inspect.c - reads the records of a log without applying them, and walks a loaded server; see
 * inspect.h. `clave data` and the tests call it. Records are read by txn_log_read.c and
 * txn_record.c, as in recovery: both agree on what is a transaction, a torn tail or damage. */
#include "server/store/inspect.h"

#include "server/server_internal.h"

enum log_step clave__txn_log_next_entry(struct log_walk *w, struct log_entry *out)
{
    struct record rec;
    *out = (struct log_entry){.offset = w->at};
    enum log_step step = clave__txn_log_walk_next(w, &rec);
    out->size = w->at - out->offset;
    if (step != LOG_STEP_RECORD || clave__txn_record_read(&out->txn, rec.payload, rec.n))
        return step;
    clave__txn_log_walk_no_txn(w, &rec);
    return LOG_STEP_DAMAGED;
}

/* ---- what a server has loaded ---------------------------------------------------------------- */

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
