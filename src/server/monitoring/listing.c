/* listing.c - the lists of connections, sessions and watches, made in pieces (listing.h): as text
 * for cons, stat, dump, wchs, wchc and wchp, as JSON for the admin commands. Both forms of a list
 * have the same fields in the same order, which is Apache's.
 *
 * A list is a walk with a cursor (base/list.h, base/map.h), which is moved along when the element
 * it points to is removed. What must stay true: each part starts with a cleared place and leaves no
 * cursor behind, otherwise a later removal would write to a listing that is gone. */
#include "server/monitoring/listing.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "server/connection/conn.h"
#include "server/monitoring/server_metrics.h"

/* ---- formatted text; a piece that does not fit is dropped as a whole ------------------------- */

static void text_append(struct text *t, const char *p, size_t n)
{
    clave_err err = clave__buf_append(t->out, p, n);
    if (t->err == CLAVE_OK)
        t->err = err;
}

void clave__text_put(struct text *t, const char *fmt, ...)
{
    char piece[TEXT_PIECE];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(piece, sizeof piece, fmt, ap);
    va_end(ap);
    if (n > 0)
        text_append(t, piece, (size_t)n < sizeof piece ? (size_t)n : sizeof piece - 1);
}

void clave__text_path(struct text *t, struct jbytes path)
{
    if (path.n > 0)
        text_append(t, path.p, (size_t)path.n);
}

/* ---- an answer made in pieces ---------------------------------------------------------------- */

/* Begins the part at l->at. */
static void listing_clear_place(struct listing *l)
{
    list_cursor_close(&l->outer);
    list_cursor_close(&l->inner);
    l->walk = (struct map_walk){0};
    l->begun = l->has_group = false;
}

void clave__listing_begin(struct listing *l, struct server *s, listing_part *const *parts)
{
    *l = (struct listing){.s = s, .json = clave__json_to(NULL)};
    for (size_t i = 0; i < LISTING_PARTS; i++)
        l->parts[i] = parts[i];
    list_cursor_init(&l->outer);
    list_cursor_init(&l->inner);
    clave__buf_init(&l->heap, &s->mem, SIZE_MAX / 2);
}

void clave__listing_enclose(struct listing *l, listing_part *before, listing_part *after)
{
    size_t n = LISTING_PARTS;
    while (n > 0 && !l->parts[n - 1])
        n--;
    for (size_t i = n; i > 0; i--)
        l->parts[i] = l->parts[i - 1];
    l->parts[0] = before;
    assert(n + 2 < sizeof l->parts / sizeof *l->parts); /* a NULL ends them */
    l->parts[n + 1] = after;
}

void clave__listing_end(struct listing *l)
{
    listing_clear_place(l);
    clave__buf_fini(&l->heap);
}

clave_err clave__listing_step(struct listing *l, struct buf *out)
{
    assert(l->at < sizeof l->parts / sizeof *l->parts);
    size_t enough = clave__buf_len(out) + LISTING_BYTES;
    l->text.out = l->json.to = out;
    for (int looks = 0; looks < LISTING_LOOKS && clave__buf_len(out) < enough; looks++) {
        if (clave__listing_is_over(l))
            break;
        if (l->parts[l->at](l)) {
            l->begun = true;
        } else {
            l->at++;
            listing_clear_place(l);
        }
    }
    return l->text.err != CLAVE_OK ? l->text.err : l->json.err;
}

/* The next connection, in the order in which they were accepted. NULL: there are no more. */
static struct server_conn *listing_next_conn(struct listing *l)
{
    struct list *e;
    if (!l->begun)
        list_cursor_open(&l->outer, &l->s->conns.cursors, &l->s->conns.all);
    e = list_cursor_next(&l->outer);
    return e ? LIST_ENTRY(e, struct server_conn, in_conns) : NULL;
}

/* ---- connections ----------------------------------------------------------------------------- */

static const char *list_connections_op(int32_t op)
{
    static const struct {
        int32_t op;
        const char *name;
    } names[] = {
        {OP_CREATE, "CREA"},        {OP_DELETE, "DELE"},        {OP_EXISTS, "EXIS"},
        {OP_GET_DATA, "GETD"},      {OP_SET_DATA, "SETD"},      {OP_GET_ACL, "GETA"},
        {OP_SET_ACL, "SETA"},       {OP_GET_CHILDREN, "GETC"},  {OP_SYNC, "SYNC"},
        {OP_PING, "PING"},          {OP_GET_CHILDREN2, "GETC"}, {OP_MULTI, "MULT"},
        {OP_CREATE2, "CREA"},       {OP_SET_WATCHES, "SETW"},   {OP_AUTH, "AUTH"},
        {OP_CLOSE_SESSION, "CLOS"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].op == op)
            return names[i].name;
    return "NA";
}

/* When the connection was accepted, in ms since the epoch. */
static int64_t list_connections_since(const struct server *s, const struct server_conn *c)
{
    return s->wall - (s->now - c->accepted_at);
}

/* The average latency of a connection, which Apache shows as a whole number. */
static int64_t list_connections_average(const struct latency *l)
{
    return l->sum / (l->count > 0 ? (int64_t)l->count : 1);
}

/* ---- connections as text --------------------------------------------------------------------- */

static void list_connections_put_text(struct server *s, struct text *t, const struct server_conn *c,
                                      bool full)
{
    const struct latency *l = &c->latency;
    clave__text_put(t, " /%s[%d](queued=%zu,recved=%" PRIu64 ",sent=%" PRIu64, c->peer.text,
                    clave__server_conn_wants_read(c) ? 1 : 0, c->undurable, c->received, c->sent);
    if (full && c->session) {
        clave__text_put(t, ",sid=0x%" PRIx64 ",lop=%s,est=%" PRId64 ",to=%d",
                        (uint64_t)c->session->id, list_connections_op(c->last_op),
                        list_connections_since(s, c), (int)c->session->timeout_ms);
        if (c->last_xid >= 0)
            clave__text_put(t, ",lcxid=0x%" PRIx64, (uint64_t)c->last_xid);
        clave__text_put(t, ",lzxid=0x%" PRIx64 ",lresp=%" PRId64, (uint64_t)c->last_zxid,
                        c->last_reply_at);
        clave__text_put(t,
                        ",llat=%" PRId64 ",minlat=%" PRId64 ",avglat=%" PRId64 ",maxlat=%" PRId64,
                        c->last_latency, l->min, list_connections_average(l), l->max);
    }
    clave__text_put(t, ")\n");
}

bool clave__connections_text(struct listing *l)
{
    const struct server_conn *c = listing_next_conn(l);
    if (!c)
        clave__text_put(&l->text, "\n");
    else if (clave__conn_is_open(c))
        list_connections_put_text(l->s, &l->text, c, !l->brief);
    return c;
}

/* ---- connections as JSON --------------------------------------------------------------------- */

static void list_connections_put_json(struct server *s, struct json *j, const struct server_conn *c,
                                      bool full)
{
    const struct latency *l = &c->latency;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "remote_socket_address", c->peer.text);
    clave__json_int(j, "interest_ops", clave__server_conn_wants_read(c) ? 1 : 0);
    clave__json_int(j, "outstanding_requests", (int64_t)c->undurable);
    clave__json_int(j, "packets_received", (int64_t)c->received);
    clave__json_int(j, "packets_sent", (int64_t)c->sent);
    if (full && c->session) {
        clave__json_int(j, "session_id", c->session->id);
        clave__json_string(j, "last_operation", list_connections_op(c->last_op));
        clave__json_int(j, "established", list_connections_since(s, c));
        clave__json_int(j, "session_timeout", c->session->timeout_ms);
        clave__json_int(j, "last_cxid", c->last_xid);
        clave__json_int(j, "last_zxid", c->last_zxid);
        clave__json_int(j, "last_response_time", c->last_reply_at);
        clave__json_int(j, "last_latency", c->last_latency);
        clave__json_int(j, "min_latency", l->min);
        clave__json_int(j, "avg_latency", list_connections_average(l));
        clave__json_int(j, "max_latency", l->max);
    }
    clave__json_close(j, '}');
}

static bool list_connections_put_element(struct listing *l, bool secure)
{
    if (!l->begun)
        clave__json_open(&l->json, secure ? "secure_connections" : "connections", '[');
    const struct server_conn *c = listing_next_conn(l);
    if (!c)
        clave__json_close(&l->json, ']');
    else if (clave__conn_is_open(c) && c->peer.secure == secure)
        list_connections_put_json(l->s, &l->json, c, !l->brief);
    return c;
}

bool clave__connections_json(struct listing *l)
{
    return list_connections_put_element(l, false);
}

bool clave__secure_connections_json(struct listing *l)
{
    return list_connections_put_element(l, true);
}

/* ---- connections: the reset ------------------------------------------------------------------ */

bool clave__connections_reset(struct listing *l)
{
    struct server_conn *c = listing_next_conn(l);
    if (!c)
        return false;
    c->latency = (struct latency){0};
    c->received = c->sent = 0;
    c->last_xid = -1;
    return true;
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* Goes to the next session, or to a place without one (*out is NULL). Returns false if none is
 * left. */
static bool list_sessions_next(struct listing *l, struct session **out)
{
    struct map_node *at;
    bool more = clave__map_walk(&l->s->sessions.table, &l->walk, &at);
    *out = at ? MAP_ENTRY(at, struct session, in_table) : NULL;
    return more;
}

/* ---- sessions: owners of nodes --------------------------------------------------------------- */

/* Goes to the next node of the present owner or, after its last node, to where the next owner may
 * be. */
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

/* ---- sessions as text ------------------------------------------------------------------------ */

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
    if (!l->begun) /* between two requests, every owner has nodes */
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
    const struct server_conn *c = listing_next_conn(l);
    if (c)
        clave__text_put(&l->text, "\tip: /%s sessionId: 0x%" PRIx64 "\n", c->peer.text,
                        c->session ? (uint64_t)c->session->id : 0);
    return c;
}

/* ---- sessions as JSON ------------------------------------------------------------------------ */

/* The sessions, sorted with a heap so that each step is cheap. */
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

/* Writes one key for each time at which sessions expire. */
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

/* ---- watches --------------------------------------------------------------------------------- */

/* Apache lists only one of its two tables of watches: all watches except those on children. */
enum { LISTED = WATCH_DATA | WATCH_PERSISTENT | WATCH_RECURSIVE };

static const struct server_conn *list_watches_conn(const struct watch_seen *seen)
{
    return LIST_ENTRY(seen->by, const struct server_conn, watcher);
}

/* True if a watch is listed: those of a closed connection are about to be dropped. */
static bool list_watches_is_listed(const struct watch_seen *seen)
{
    return (seen->marks & LISTED) && clave__conn_is_open(list_watches_conn(seen));
}

static int64_t list_watches_session(const struct watch_seen *seen)
{
    const struct server_conn *c = list_watches_conn(seen);
    return c->session ? c->session->id : 0;
}

/* The outcome of one step through the watches. A group is the watches of a connection, or those on
 * a path. The end of a group is reported only if something in it was listed. */
enum look { LOOK_NOTHING, LOOK_WATCH, LOOK_GROUP_OVER, LOOK_END };

/* Goes to the next connection, or to the next place where a path may be. Returns false if none is
 * left. */
static bool list_watches_next_group(struct listing *l, bool by_path)
{
    struct watches *t = &l->s->watches;
    struct map_node *path = NULL;
    struct server_conn *c = by_path ? NULL : listing_next_conn(l);
    if (by_path ? !clave__map_walk(&t->paths, &l->walk, &path) : !c)
        return false;
    if (path || c)
        list_cursor_open(&l->inner, &t->cursors,
                         path ? clave__watch_entries(path) : &c->watcher.entries);
    return true;
}

static enum look list_watches_look(struct listing *l, bool by_path, struct watch_seen *seen)
{
    struct list *e = list_cursor_next(&l->inner);
    if (e) {
        *seen = by_path ? clave__watch_of_path(e) : clave__watch_of_watcher(e);
        return list_watches_is_listed(seen) ? LOOK_WATCH : LOOK_NOTHING;
    }
    if (l->has_group) {
        l->has_group = false;
        return LOOK_GROUP_OVER;
    }
    return list_watches_next_group(l, by_path) ? LOOK_NOTHING : LOOK_END;
}

/* Returns true for the first watch of a group. */
static bool list_watches_is_first(struct listing *l)
{
    bool first = !l->has_group;
    l->has_group = true;
    return first;
}

/* ---- watches: how many ----------------------------------------------------------------------- */

bool clave__watches_count_by_connection(struct listing *l)
{
    struct watch_seen seen;
    enum look found = list_watches_look(l, false, &seen);
    if (found == LOOK_WATCH)
        l->counts.conns += list_watches_is_first(l);
    return found != LOOK_END;
}

bool clave__watches_count_by_path(struct listing *l)
{
    struct watch_seen seen;
    enum look found = list_watches_look(l, true, &seen);
    if (found == LOOK_WATCH) {
        l->counts.paths += list_watches_is_first(l);
        l->counts.watches++;
    }
    return found != LOOK_END;
}

/* ---- watches as text ------------------------------------------------------------------------- */

static void list_watches_put_id(struct text *t, const char *indent, const struct watch_seen *seen)
{
    clave__text_put(t, "%s0x%" PRIx64 "\n", indent, (uint64_t)list_watches_session(seen));
}

static void list_watches_put_path(struct text *t, const char *indent, const struct watch_seen *seen)
{
    clave__text_put(t, "%s", indent);
    clave__text_path(t, seen->path);
    clave__text_put(t, "\n");
}

static bool list_watches_put_text(struct listing *l, bool by_path)
{
    struct watch_seen seen;
    enum look found = list_watches_look(l, by_path, &seen);
    if (found == LOOK_WATCH) {
        if (list_watches_is_first(l))
            (by_path ? list_watches_put_path : list_watches_put_id)(&l->text, "", &seen);
        (by_path ? list_watches_put_id : list_watches_put_path)(&l->text, "\t", &seen);
    } else if (found == LOOK_END) {
        clave__text_put(&l->text, "\n");
    }
    return found != LOOK_END;
}

bool clave__watches_text(struct listing *l)
{
    return list_watches_put_text(l, false);
}

bool clave__watches_by_path_text(struct listing *l)
{
    return list_watches_put_text(l, true);
}

/* ---- watches as JSON ------------------------------------------------------------------------- */

/* True if the connection still has its session, so that a session that has moved is listed once. */
static bool list_watches_is_current(const struct watch_seen *seen)
{
    const struct server_conn *c = list_watches_conn(seen);
    return c->session && c->session->conn == c;
}

static void list_watches_put_json(struct listing *l, bool by_path, const struct watch_seen *seen)
{
    struct json *j = &l->json;
    struct jbytes path = seen->path;
    int64_t id = list_watches_session(seen);
    if (list_watches_is_first(l)) {
        if (by_path)
            clave__json_key(j, path.p, (size_t)path.n);
        else
            clave__json_int_key(j, id);
        clave__json_open(j, NULL, '[');
    }
    if (by_path)
        clave__json_int(j, NULL, id);
    else
        clave__json_bytes(j, NULL, path.p, (size_t)path.n);
}

static bool list_watches_look_json(struct listing *l, bool by_path)
{
    struct watch_seen seen;
    if (!l->begun)
        clave__json_open(&l->json, by_path ? "path_to_session_ids" : "session_id_to_watched_paths",
                         '{');
    enum look found = list_watches_look(l, by_path, &seen);
    if (found == LOOK_WATCH && (by_path || list_watches_is_current(&seen)))
        list_watches_put_json(l, by_path, &seen);
    else if (found == LOOK_GROUP_OVER || found == LOOK_END)
        clave__json_close(&l->json, found == LOOK_END ? '}' : ']');
    return found != LOOK_END;
}

bool clave__watches_json(struct listing *l)
{
    return list_watches_look_json(l, false);
}

bool clave__watches_by_path_json(struct listing *l)
{
    return list_watches_look_json(l, true);
}
