/* list_sessions.c - dump: the sessions and their ephemeral nodes. The text adds the connections; in
 * JSON sessions are ordered by expiry, as in Apache's. */
#include "server/monitoring/listing.h"
#include "server/monitoring/mntr_and_metrics.h"

#include <inttypes.h>

/* The next session, or NULL. false: none is left. */
static bool list_sessions_next(struct listing *l, struct session **out)
{
    struct map_node *at;
    bool more = clave__map_walk(&l->s->sessions.table, &l->walk, &at);
    *out = at ? MAP_ENTRY(at, struct session, in_table) : NULL;
    return more;
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* Goes to the next node of the present owner; after the last of them, to the place where the next
 * owner may be. */
enum owner_look { OWNER_NOTHING, OWNER_NODE, OWNER_BEGINS, OWNER_OVER, OWNER_END };

static enum owner_look list_sessions_look(struct listing *l, struct jbytes *path, int64_t *id)
{
    struct map_node *at;
    struct tree *t = &l->s->tree;
    struct list *e = list_cursor_next(&l->inner);
    if (e) {
        *path = clave__node_path_bytes(&LIST_ENTRY(e, const struct owned_node, link)->node);
        return OWNER_NODE;
    }
    if (l->has_group) {
        l->has_group = false;
        return OWNER_OVER;
    }
    if (!clave__map_walk(&t->owners, &l->walk, &at))
        return OWNER_END;
    const struct owner *o = at ? MAP_ENTRY(at, struct owner, in_tree) : NULL;
    if (!o || list_empty(&o->nodes))
        return OWNER_NOTHING;
    list_cursor_open(&l->inner, &t->cursors, &o->nodes);
    l->has_group = true;
    *id = o->id;
    return OWNER_BEGINS;
}

/* ---- as text --------------------------------------------------------------------------------- */

bool clave__sessions_text(struct listing *l)
{
    const struct server *s = l->s;
    size_t count = s->sessions.table.count;
    struct session *session;
    if (!l->begun)
        clave__text_put(&l->text, "SessionTracker dump:\nSession Sets (%zu)/(%zu):\n", count,
                        count);
    bool more = list_sessions_next(l, &session);
    if (session)
        clave__text_put(&l->text, "1 expire at %" PRId64 ":\n\t0x%" PRIx64 "\n",
                        s->wall + (clave__session_expires(&s->sessions, session) - s->now),
                        (uint64_t)session->id);
    return more;
}

bool clave__owners_text(struct listing *l)
{
    struct text *t = &l->text;
    struct jbytes path;
    int64_t id;
    if (!l->begun) /* between two requests every owner has nodes */
        clave__text_put(t, "ephemeral nodes dump:\nSessions with Ephemerals (%zu):\n",
                        l->s->tree.owners.count);
    enum owner_look found = list_sessions_look(l, &path, &id);
    if (found == OWNER_BEGINS) {
        clave__text_put(t, "0x%" PRIx64 ":\n", (uint64_t)id);
    } else if (found == OWNER_NODE) {
        clave__text_put(t, "\t");
        clave__text_path(t, path);
        clave__text_put(t, "\n");
    }
    return found != OWNER_END;
}

bool clave__session_connections_text(struct listing *l)
{
    size_t count = l->s->conns.n;
    if (!l->begun)
        clave__text_put(&l->text, "Connections dump:\nConnections Sets (%zu)/(%zu):\n", count,
                        count);
    const struct server_conn *c = clave__listing_next_conn(l);
    if (c)
        clave__text_put(&l->text, "\tip: /%s sessionId: 0x%" PRIx64 "\n", c->peer.text,
                        c->session ? (uint64_t)c->session->id : 0);
    return c;
}

/* ---- as JSON --------------------------------------------------------------------------------- */

/* Sessions are sorted by a heap, so that each look costs little. */
struct expiry {
    int64_t at;
    int64_t id;
};

static bool list_sessions_is_before(const struct expiry *a, const struct expiry *b)
{
    return a->at != b->at ? a->at < b->at : a->id < b->id;
}

static void list_sessions_swap(struct expiry *a, struct expiry *b)
{
    struct expiry was = *a;
    *a = *b;
    *b = was;
}

static clave_err list_sessions_push(struct buf *heap, struct expiry e)
{
    clave_err err = clave__buf_append(heap, &e, sizeof e);
    if (err != CLAVE_OK)
        return err;
    struct expiry *all = (void *)clave__buf_bytes(heap);
    for (size_t i = clave__buf_len(heap) / sizeof e - 1; i > 0; i = (i - 1) / 2) {
        if (!list_sessions_is_before(&all[i], &all[(i - 1) / 2]))
            break;
        list_sessions_swap(&all[i], &all[(i - 1) / 2]);
    }
    return CLAVE_OK;
}

static bool list_sessions_pop(struct buf *heap, struct expiry *out)
{
    struct expiry *all = (void *)clave__buf_bytes(heap);
    size_t n = clave__buf_len(heap) / sizeof *all, i = 0;
    if (n == 0)
        return false;
    *out = all[0];
    all[0] = all[--n];
    heap->tail -= sizeof *all;
    for (size_t least; (least = 2 * i + 1) < n; i = least) {
        if (least + 1 < n && list_sessions_is_before(&all[least + 1], &all[least]))
            least++;
        if (!list_sessions_is_before(&all[least], &all[i]))
            break;
        list_sessions_swap(&all[i], &all[least]);
    }
    return true;
}

bool clave__expiries_collect(struct listing *l)
{
    const struct server *s = l->s;
    struct session *session;
    bool more = list_sessions_next(l, &session);
    clave_err err = CLAVE_OK;
    if (session) {
        int64_t left_ms = clave__session_expires(&s->sessions, session) - s->now;
        err = list_sessions_push(&l->heap, (struct expiry){s->wall + left_ms, session->id});
    }
    l->json.err = l->json.err == CLAVE_OK ? err : l->json.err;
    return more;
}

/* One key for each time at which sessions expire. */
bool clave__expiries_json(struct listing *l)
{
    struct json *j = &l->json;
    struct expiry e;
    if (!l->begun)
        clave__json_open(j, "expiry_time_to_session_ids", '{');
    bool more = list_sessions_pop(&l->heap, &e);
    if (l->has_group && (!more || e.at != l->group))
        clave__json_close(j, ']');
    if (!more) {
        clave__json_close(j, '}');
        return false;
    }
    if (!l->has_group || e.at != l->group) {
        clave__json_int_key(j, e.at);
        clave__json_open(j, NULL, '[');
    }
    l->has_group = true;
    l->group = e.at;
    clave__json_int(j, NULL, e.id);
    return true;
}

bool clave__owners_json(struct listing *l)
{
    struct json *j = &l->json;
    struct jbytes path;
    int64_t id;
    if (!l->begun)
        clave__json_open(j, "session_id_to_ephemeral_paths", '{');
    enum owner_look found = list_sessions_look(l, &path, &id);
    if (found == OWNER_BEGINS) {
        clave__json_int_key(j, id);
        clave__json_open(j, NULL, '[');
    } else if (found == OWNER_NODE) {
        clave__json_bytes(j, NULL, path.p, (size_t)path.n);
    } else if (found == OWNER_OVER || found == OWNER_END) {
        clave__json_close(j, found == OWNER_END ? '}' : ']');
    }
    return found != OWNER_END;
}
