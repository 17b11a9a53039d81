/* list_sessions.c - the admin commands that list connections, sessions and watches; see
 * list_sessions.h. The same lists as text are in list_watches.c. */
#include "server/figures/list_sessions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

static void put_int_key(struct json *j, int64_t n)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, n);
    clave__json_key(j, text, (size_t)len);
}

static void list_sessions_put_path(struct json *j, const char *key, struct jbytes path)
{
    clave__json_bytes(j, key, path.p, path.n > 0 ? (size_t)path.n : 0);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void put_session(struct json *j, const struct server *s, const struct server_conn *c)
{
    const struct latency *l = &c->latency;
    clave__json_int(j, "session_id", c->session->id);
    clave__json_string(j, "last_operation", clave__op_word(c->last_op));
    clave__json_int(j, "established", s->wall - (s->now - c->accepted_at));
    clave__json_int(j, "session_timeout", c->session->timeout_ms);
    clave__json_int(j, "last_cxid", c->last_xid);
    clave__json_int(j, "last_zxid", c->last_zxid);
    clave__json_int(j, "last_response_time", c->last_reply_at);
    clave__json_int(j, "last_latency", c->last_latency);
    clave__json_int(j, "min_latency", l->min);
    clave__json_int(j, "avg_latency", l->sum / (l->count > 0 ? (int64_t)l->count : 1));
    clave__json_int(j, "max_latency", l->max);
}

static void put_connections(struct json *j, const struct server *s, const char *key, bool secure,
                            bool full)
{
    clave__json_open(j, key, '[');
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        const struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        if (!clave__conn_is_open(c) || c->peer.secure != secure)
            continue;
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "remote_socket_address", c->peer.text);
        clave__json_int(j, "interest_ops", clave__server_conn_wants_read(c) ? 1 : 0);
        clave__json_int(j, "outstanding_requests", (int64_t)c->undurable);
        clave__json_int(j, "packets_received", (int64_t)c->received);
        clave__json_int(j, "packets_sent", (int64_t)c->sent);
        if (full && c->session)
            put_session(j, s, c);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
}

void clave__list_connections(struct server *s, struct json *j, bool full)
{
    put_connections(j, s, "connections", false, full);
    put_connections(j, s, "secure_connections", true, full);
}

/* ---- sessions and their nodes ---------------------------------------------------------------- */

static int by_expiry(const void *a, const void *b)
{
    const struct session *x = *(struct session *const *)a, *y = *(struct session *const *)b;
    if (x->expires != y->expires)
        return x->expires < y->expires ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* One key for each time at which sessions expire. */
static void put_expiries(struct json *j, struct server *s)
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
    qsort(all, n, sizeof *all, by_expiry);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || all[i]->expires != all[i - 1]->expires) {
            if (i > 0)
                clave__json_close(j, ']');
            put_int_key(j, s->wall + (all[i]->expires - s->now));
            clave__json_open(j, NULL, '[');
        }
        clave__json_int(j, NULL, all[i]->id);
    }
    if (n > 0)
        clave__json_close(j, ']');
    clave__mem_free(&s->mem, all);
}

static void list_sessions_put_ephemerals(struct json *j, const struct server *s)
{
    for (struct map_node *at = NULL; (at = clave__map_next(&s->tree.owners, at));) {
        const struct owner *o = MAP_ENTRY(at, struct owner, in_tree);
        if (list_empty(&o->nodes))
            continue;
        put_int_key(j, o->id);
        clave__json_open(j, NULL, '[');
        for (struct list *e = o->nodes.next; e != &o->nodes; e = e->next)
            list_sessions_put_path(
                j, NULL, clave__node_path_bytes(&LIST_ENTRY(e, struct owned_node, link)->node));
        clave__json_close(j, ']');
    }
}

void clave__list_sessions(struct server *s, struct json *j)
{
    clave__json_open(j, "expiry_time_to_session_ids", '{');
    put_expiries(j, s);
    clave__json_close(j, '}');
    clave__json_open(j, "session_id_to_ephemeral_paths", '{');
    list_sessions_put_ephemerals(j, s);
    clave__json_close(j, '}');
}

/* ---- watches --------------------------------------------------------------------------------- */

struct listing {
    struct json *j;
    bool open; /* an array */
    struct jbytes path;
};

static int64_t list_sessions_id_of(struct watcher *w)
{
    const struct server_conn *c = LIST_ENTRY(w, struct server_conn, watcher);
    return c->session ? c->session->id : 0;
}

static void under_session(void *arg, struct jbytes path, struct watcher *w)
{
    struct listing *l = arg;
    if (!l->open) {
        put_int_key(l->j, list_sessions_id_of(w));
        clave__json_open(l->j, NULL, '[');
        l->open = true;
    }
    list_sessions_put_path(l->j, NULL, path);
}

void clave__list_watches(struct server *s, struct json *j)
{
    clave__json_open(j, "session_id_to_watched_paths", '{');
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        const struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        struct listing l = {.j = j};
        if (c->session && c->session->conn == c) /* a session that moved is listed once */
            clave__watcher_each(&c->watcher, WORDS_WATCHES, under_session, &l);
        if (l.open)
            clave__json_close(j, ']');
    }
    clave__json_close(j, '}');
}

/* Entries come path by path. */
static void under_path(void *arg, struct jbytes path, struct watcher *w)
{
    struct listing *l = arg;
    if (!l->open || l->path.p != path.p) {
        if (l->open)
            clave__json_close(l->j, ']');
        clave__json_key(l->j, path.p, path.n > 0 ? (size_t)path.n : 0);
        clave__json_open(l->j, NULL, '[');
        l->open = true;
        l->path = path;
    }
    clave__json_int(l->j, NULL, list_sessions_id_of(w));
}

void clave__list_watches_by_path(struct server *s, struct json *j)
{
    struct listing l = {.j = j};
    clave__json_open(j, "path_to_session_ids", '{');
    clave__watches_each(&s->watches, WORDS_WATCHES, under_path, &l);
    if (l.open)
        clave__json_close(j, ']');
    clave__json_close(j, '}');
}
