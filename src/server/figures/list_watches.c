/* list_watches.c - the four-letter words that list sessions, their nodes and their watches:
 * dump, wchs, wchc, wchp. four_letter.c has the table of words. */
#include "server/figures/figures.h"

#include <inttypes.h>

/* ---- watches --------------------------------------------------------------------------------- */

struct listing {
    struct text *t; /* NULL: they are only counted */
    size_t watches;
    size_t paths;
    struct jbytes path; /* the newest one */
};

static uint64_t list_watches_id_of(struct watcher *w)
{
    const struct server_conn *c = LIST_ENTRY(w, struct server_conn, watcher);
    return c->session ? (uint64_t)c->session->id : 0;
}

/* Entries come path by path: true for the first of each. */
static bool next_path(struct listing *l, struct jbytes path)
{
    if (l->paths > 0 && l->path.p == path.p)
        return false;
    l->path = path;
    l->paths++;
    return true;
}

static void list_watches_count(void *arg, struct jbytes path, struct watcher *w)
{
    struct listing *l = arg;
    (void)w;
    next_path(l, path);
    l->watches++;
}

static void say_under_path(void *arg, struct jbytes path, struct watcher *w)
{
    struct listing *l = arg;
    if (next_path(l, path)) {
        clave__text_path(l->t, path);
        clave__text_put(l->t, "\n");
    }
    clave__text_put(l->t, "\t0x%" PRIx64 "\n", list_watches_id_of(w));
}

static void say_under_session(void *arg, struct jbytes path, struct watcher *w)
{
    struct listing *l = arg;
    if (l->watches++ == 0)
        clave__text_put(l->t, "0x%" PRIx64 "\n", list_watches_id_of(w));
    clave__text_put(l->t, "\t");
    clave__text_path(l->t, path);
    clave__text_put(l->t, "\n");
}

/* Visits the watches connection by connection; returns how many connections have any. */
static size_t each_conn(struct server *s, struct text *t, watch_visit *visit)
{
    size_t n = 0;
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        const struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        struct listing l = {.t = t};
        clave__watcher_each(&c->watcher, WORDS_WATCHES, visit, &l);
        n += l.watches > 0;
    }
    return n;
}

struct watch_figures clave__watch_figures(struct server *s)
{
    struct listing l = {0};
    size_t conns = each_conn(s, NULL, list_watches_count);
    clave__watches_each(&s->watches, WORDS_WATCHES, list_watches_count, &l);
    return (struct watch_figures){conns, l.paths, l.watches};
}

void clave__say_wchs(struct text *t, struct server *s)
{
    struct watch_figures f = clave__watch_figures(s);
    clave__text_put(t, "%zu connections watching %zu paths\nTotal watches:%zu\n", f.conns, f.paths,
                    f.watches);
}

void clave__say_wchc(struct text *t, struct server *s)
{
    each_conn(s, t, say_under_session);
    clave__text_put(t, "\n");
}

void clave__say_wchp(struct text *t, struct server *s)
{
    struct listing l = {.t = t};
    clave__watches_each(&s->watches, WORDS_WATCHES, say_under_path, &l);
    clave__text_put(t, "\n");
}

/* ---- sessions -------------------------------------------------------------------------------- */

static void say_sessions(struct text *t, struct server *s)
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

static size_t count_owners(const struct tree *t)
{
    size_t n = 0;
    for (struct map_node *at = NULL; (at = clave__map_next(&t->owners, at));)
        n += !list_empty(&MAP_ENTRY(at, struct owner, in_tree)->nodes);
    return n;
}

static void say_ephemerals(struct text *t, struct server *s)
{
    const struct tree *tree = &s->tree;
    clave__text_put(t, "ephemeral nodes dump:\nSessions with Ephemerals (%zu):\n",
                    count_owners(tree));
    for (struct map_node *at = NULL; (at = clave__map_next(&tree->owners, at));) {
        const struct owner *o = MAP_ENTRY(at, struct owner, in_tree);
        if (!list_empty(&o->nodes))
            clave__text_put(t, "0x%" PRIx64 ":\n", (uint64_t)o->id);
        for (struct list *e = o->nodes.next; e != &o->nodes; e = e->next) {
            clave__text_put(t, "\t");
            clave__text_path(t,
                             clave__node_path_bytes(&LIST_ENTRY(e, struct owned_node, link)->node));
            clave__text_put(t, "\n");
        }
    }
}

static void list_watches_say_connections(struct text *t, struct server *s)
{
    clave__text_put(t, "Connections dump:\nConnections Sets (%zu)/(%zu):\n", s->nconns, s->nconns);
    for (struct list *e = s->conns.next; e != &s->conns; e = e->next) {
        struct server_conn *c = LIST_ENTRY(e, struct server_conn, in_conns);
        clave__text_put(t, "\tip: /%s sessionId: 0x%" PRIx64 "\n", c->peer.text,
                        list_watches_id_of(&c->watcher));
    }
}

void clave__say_dump(struct text *t, struct server *s)
{
    say_sessions(t, s);
    say_ephemerals(t, s);
    list_watches_say_connections(t, s);
}
