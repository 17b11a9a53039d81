/* list_watches.c - the watches: how many, by session and by path; as text for wchs, wchc and wchp,
 * as JSON for watch_summary, watches and watches_by_path. */
#include "server/figures/mntr_and_metrics.h"

#include <inttypes.h>

/* Apache lists one of its two tables of watches: all but those on children. */
enum { LISTED = WATCH_DATA | WATCH_PERSISTENT | WATCH_RECURSIVE };

struct watch_list {
    struct text *text; /* or */
    struct json *json; /* or neither: they are only counted */
    size_t watches;
    size_t paths;
    struct jbytes path; /* the newest one */
};

static int64_t list_watches_session(struct watcher *w)
{
    const struct server_conn *c = LIST_ENTRY(w, struct server_conn, watcher);
    return c->session ? c->session->id : 0;
}

/* Entries come path by path: true for the first of each. */
static bool list_watches_next_path(struct watch_list *l, struct jbytes path)
{
    if (l->paths > 0 && l->path.p == path.p)
        return false;
    l->path = path;
    l->paths++;
    return true;
}

/* ---- how many -------------------------------------------------------------------------------- */

static void list_watches_count(void *arg, struct jbytes path, struct watcher *w)
{
    struct watch_list *l = arg;
    (void)w;
    list_watches_next_path(l, path);
    l->watches++;
}

/* Visits the watches connection by connection; returns how many connections have any. */
static size_t list_watches_each(struct server *s, struct text *t, watch_visit *visit)
{
    size_t n = 0;
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        const struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        struct watch_list l = {.text = t};
        clave__watcher_each(&c->watcher, LISTED, visit, &l);
        n += l.watches > 0;
    }
    return n;
}

struct watch_counts clave__watch_counts(struct server *s)
{
    struct watch_list l = {0};
    size_t conns = list_watches_each(s, NULL, list_watches_count);
    clave__watches_each(&s->watches, LISTED, list_watches_count, &l);
    return (struct watch_counts){conns, l.paths, l.watches};
}

/* ---- as text --------------------------------------------------------------------------------- */

static void list_watches_text_under_session(void *arg, struct jbytes path, struct watcher *w)
{
    struct watch_list *l = arg;
    if (l->watches++ == 0)
        clave__text_put(l->text, "0x%" PRIx64 "\n", (uint64_t)list_watches_session(w));
    clave__text_put(l->text, "\t");
    clave__text_path(l->text, path);
    clave__text_put(l->text, "\n");
}

void clave__watches_text(struct server *s, struct text *t)
{
    list_watches_each(s, t, list_watches_text_under_session);
    clave__text_put(t, "\n");
}

static void list_watches_text_under_path(void *arg, struct jbytes path, struct watcher *w)
{
    struct watch_list *l = arg;
    if (list_watches_next_path(l, path)) {
        clave__text_path(l->text, path);
        clave__text_put(l->text, "\n");
    }
    clave__text_put(l->text, "\t0x%" PRIx64 "\n", (uint64_t)list_watches_session(w));
}

void clave__watches_by_path_text(struct server *s, struct text *t)
{
    struct watch_list l = {.text = t};
    clave__watches_each(&s->watches, LISTED, list_watches_text_under_path, &l);
    clave__text_put(t, "\n");
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void list_watches_json_under_session(void *arg, struct jbytes path, struct watcher *w)
{
    struct watch_list *l = arg;
    if (l->watches++ == 0) {
        clave__json_int_key(l->json, list_watches_session(w));
        clave__json_open(l->json, NULL, '[');
    }
    clave__json_bytes(l->json, NULL, path.p, (size_t)path.n);
}

void clave__watches_json(struct server *s, struct json *j)
{
    clave__json_open(j, "session_id_to_watched_paths", '{');
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        const struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        struct watch_list l = {.json = j};
        if (c->session && c->session->conn == c) /* a session that moved is listed once */
            clave__watcher_each(&c->watcher, LISTED, list_watches_json_under_session, &l);
        if (l.watches > 0)
            clave__json_close(j, ']');
    }
    clave__json_close(j, '}');
}

static void list_watches_json_under_path(void *arg, struct jbytes path, struct watcher *w)
{
    struct watch_list *l = arg;
    if (list_watches_next_path(l, path)) {
        if (l->paths > 1)
            clave__json_close(l->json, ']');
        clave__json_key(l->json, path.p, (size_t)path.n);
        clave__json_open(l->json, NULL, '[');
    }
    clave__json_int(l->json, NULL, list_watches_session(w));
}

void clave__watches_by_path_json(struct server *s, struct json *j)
{
    struct watch_list l = {.json = j};
    clave__json_open(j, "path_to_session_ids", '{');
    clave__watches_each(&s->watches, LISTED, list_watches_json_under_path, &l);
    if (l.paths > 0)
        clave__json_close(j, ']');
    clave__json_close(j, '}');
}
