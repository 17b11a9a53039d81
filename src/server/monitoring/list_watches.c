/* list_watches.c - the watches: how many, by session and by path; as text for wchs, wchc and wchp,
 * as JSON for watch_summary, watches and watches_by_path. */
#include "server/monitoring/listing.h"
#include "server/monitoring/mntr_and_metrics.h"

#include <inttypes.h>

/* Apache lists one of its two tables of watches: all but those on children. */
enum { LISTED = WATCH_DATA | WATCH_PERSISTENT | WATCH_RECURSIVE };

static const struct server_conn *list_watches_conn(const struct watch_seen *seen)
{
    return LIST_ENTRY(seen->by, const struct server_conn, watcher);
}

/* The watches of a closed connection are about to be dropped. */
static bool list_watches_is_listed(const struct watch_seen *seen)
{
    return (seen->marks & LISTED) && clave__conn_is_open(list_watches_conn(seen));
}

static int64_t list_watches_session(const struct watch_seen *seen)
{
    const struct server_conn *c = list_watches_conn(seen);
    return c->session ? c->session->id : 0;
}

/* What one look at the watches has found. A group is the watches of a connection, or those on a
 * path; it is over only if it had a listed one. */
enum look { LOOK_NOTHING, LOOK_WATCH, LOOK_GROUP_OVER, LOOK_END };

/* Goes to the next connection, or to the next place where a path may be; false: none is left. */
static bool list_watches_next_group(struct listing *l, bool by_path)
{
    struct watches *t = &l->s->watches;
    struct map_node *path = NULL;
    struct server_conn *c = by_path ? NULL : clave__listing_next_conn(l);
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

/* true for the first watch of a group. */
static bool list_watches_is_first(struct listing *l)
{
    bool first = !l->has_group;
    l->has_group = true;
    return first;
}

/* ---- how many -------------------------------------------------------------------------------- */

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

/* ---- as text --------------------------------------------------------------------------------- */

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

/* ---- as JSON --------------------------------------------------------------------------------- */

/* A session that has moved is listed once. */
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
