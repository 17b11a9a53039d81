/* list_sessions.c - dump: the sessions and their ephemeral nodes. The text adds the connections; in
 * JSON sessions are ordered by expiry, as in Apache's. */
#include "server/figures/mntr_and_metrics.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"

/* ---- as text --------------------------------------------------------------------------------- */

static void list_sessions_put_sessions(struct text *t, const struct server *s)
{
    const struct map *table = &s->sessions.table;
    clave__text_put(t, "SessionTracker dump:\nSession Sets (%zu)/(%zu):\n", table->count,
                    table->count);
    for (struct map_node *at = NULL; (at = clave__map_next(table, at));) {
        const struct session *session = MAP_ENTRY(at, struct session, in_table);
        clave__text_put(t, "1 expire at %" PRId64 ":\n\t0x%" PRIx64 "\n",
                        s->wall + (session->expires - s->now), (uint64_t)session->id);
    }
}

static size_t list_sessions_count_owners(const struct tree *t)
{
    size_t n = 0;
    for (struct map_node *at = NULL; (at = clave__map_next(&t->owners, at));)
        n += !list_empty(&MAP_ENTRY(at, struct owner, in_tree)->nodes);
    return n;
}

static void list_sessions_put_ephemerals(struct text *t, const struct server *s)
{
    clave__text_put(t, "ephemeral nodes dump:\nSessions with Ephemerals (%zu):\n",
                    list_sessions_count_owners(&s->tree));
    for (struct map_node *at = NULL; (at = clave__map_next(&s->tree.owners, at));) {
        const struct owner *o = MAP_ENTRY(at, struct owner, in_tree);
        if (!list_empty(&o->nodes))
            clave__text_put(t, "0x%" PRIx64 ":\n", (uint64_t)o->id);
        for (struct list *e = o->nodes.next; e != &o->nodes; e = e->next) {
            const struct node *n = &LIST_ENTRY(e, struct owned_node, link)->node;
            clave__text_put(t, "\t");
            clave__text_path(t, clave__node_path_bytes(n));
            clave__text_put(t, "\n");
        }
    }
}

static void list_sessions_put_connections(struct text *t, const struct server *s)
{
    clave__text_put(t, "Connections dump:\nConnections Sets (%zu)/(%zu):\n", s->nconns, s->nconns);
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        const struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        clave__text_put(t, "\tip: /%s sessionId: 0x%" PRIx64 "\n", c->peer.text,
                        c->session ? (uint64_t)c->session->id : 0);
    }
}

void clave__sessions_text(struct server *s, struct text *t)
{
    list_sessions_put_sessions(t, s);
    list_sessions_put_ephemerals(t, s);
    list_sessions_put_connections(t, s);
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static int list_sessions_by_expiry(const void *a, const void *b)
{
    const struct session *x = *(struct session *const *)a, *y = *(struct session *const *)b;
    if (x->expires != y->expires)
        return x->expires < y->expires ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* One key for each time at which sessions expire. */
static void list_sessions_put_expiries(struct json *j, struct server *s)
{
    const struct map *table = &s->sessions.table;
    size_t n = 0;
    struct session **all = clave__mem_alloc(&s->mem, (table->count + 1) * sizeof *all);
    if (!all) {
        j->err = j->err == CLAVE_OK ? CLAVE_ENOMEM : j->err;
        return;
    }
    for (struct map_node *at = NULL; (at = clave__map_next(table, at));)
        all[n++] = MAP_ENTRY(at, struct session, in_table);
    qsort(all, n, sizeof *all, list_sessions_by_expiry);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || all[i]->expires != all[i - 1]->expires) {
            if (i > 0)
                clave__json_close(j, ']');
            clave__json_int_key(j, s->wall + (all[i]->expires - s->now));
            clave__json_open(j, NULL, '[');
        }
        clave__json_int(j, NULL, all[i]->id);
    }
    if (n > 0)
        clave__json_close(j, ']');
    clave__mem_free(&s->mem, all);
}

static void list_sessions_put_owners(struct json *j, const struct server *s)
{
    for (struct map_node *at = NULL; (at = clave__map_next(&s->tree.owners, at));) {
        const struct owner *o = MAP_ENTRY(at, struct owner, in_tree);
        if (list_empty(&o->nodes))
            continue;
        clave__json_int_key(j, o->id);
        clave__json_open(j, NULL, '[');
        for (struct list *e = o->nodes.next; e != &o->nodes; e = e->next) {
            struct jbytes path =
                clave__node_path_bytes(&LIST_ENTRY(e, struct owned_node, link)->node);
            clave__json_bytes(j, NULL, path.p, (size_t)path.n);
        }
        clave__json_close(j, ']');
    }
}

void clave__sessions_json(struct server *s, struct json *j)
{
    clave__json_open(j, "expiry_time_to_session_ids", '{');
    list_sessions_put_expiries(j, s);
    clave__json_close(j, '}');
    clave__json_open(j, "session_id_to_ephemeral_paths", '{');
    list_sessions_put_owners(j, s);
    clave__json_close(j, '}');
}
