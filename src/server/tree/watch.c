/* watch.c - the server's watches; see watch.h. An entry joins a path and a connection: it is in the
 * list of its path, in the list of its watcher, and in a map keyed by both. An entry that has no
 * marks left is freed at once, as is a path that has no entries left. */
#include "server/tree/watch.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "wire/proto.h"

enum { ONE_SHOT = WATCH_DATA | WATCH_CHILD };

/* A path that is watched, with all of its entries. The bytes of the path follow the struct. */
struct watched {
    struct map_node in_paths;
    struct list entries;
    uint32_t len;
};

struct watch {
    struct map_node in_entries;
    struct list of_path;
    struct list of_watcher;
    struct watched *on;
    struct watcher *by;
    unsigned marks;
};

struct pair_key {
    const struct watched *on;
    const struct watcher *by;
};

/* ---- finding --------------------------------------------------------------------------------- */

static bool server_watch_has_path(const struct map_node *node, const void *key)
{
    const struct watched *p = (const void *)node; /* its first member */
    const struct jbytes *path = key;
    return p->len == (uint32_t)path->n && memcmp(p + 1, path->p, p->len) == 0;
}

static struct watched *server_watch_find_path(const struct watches *t, struct jbytes path)
{
    struct map_node *n =
        clave__map_find(&t->paths, clave__map_hash_bytes(&t->paths, path.p, (size_t)path.n),
                        server_watch_has_path, &path);
    return n ? MAP_ENTRY(n, struct watched, in_paths) : NULL;
}

static bool watch_is_pair(const struct map_node *node, const void *key)
{
    const struct watch *e = (const void *)node; /* its first member */
    const struct pair_key *pair = key;
    return e->on == pair->on && e->by == pair->by;
}

static uint32_t watch_pair_hash(const struct pair_key *pair)
{
    return clave__map_hash_u64((uint64_t)(uintptr_t)pair->on ^
                               (uint64_t)(uintptr_t)pair->by * 0x9e3779b97f4a7c15u);
}

static struct watch *watch_find_entry(const struct watches *t, const struct watched *on,
                                      const struct watcher *by)
{
    struct pair_key pair = {on, by};
    struct map_node *n = clave__map_find(&t->entries, watch_pair_hash(&pair), watch_is_pair, &pair);
    return n ? MAP_ENTRY(n, struct watch, in_entries) : NULL;
}

/* "/" and "" are the same node, so they are one path here. */
static struct jbytes watch_canonical(struct jbytes path)
{
    return path.n <= 0 ? clave__jbytes("/") : path;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static size_t watch_count_marks(unsigned marks)
{
    return (marks & 1) + (marks >> 1 & 1) + (marks >> 2 & 1) + (marks >> 3 & 1);
}

static void watch_forget_path_if_unused(struct watches *t, struct watched *p)
{
    if (!list_empty(&p->entries))
        return;
    clave__map_remove(&t->paths, &p->in_paths);
    clave__mem_free(t->mem, p);
}

/* Removes marks. Losing its last mark frees the entry, but never its path, which the caller may
 * still be using. */
static void watch_clear_marks(struct watches *t, struct watch *e, unsigned marks)
{
    marks &= e->marks;
    e->marks &= ~marks;
    assert(t->count >= watch_count_marks(marks) && e->by->count >= watch_count_marks(marks));
    assert(t->recursive > 0 || !(marks & WATCH_RECURSIVE));
    t->count -= watch_count_marks(marks);
    e->by->count -= watch_count_marks(marks);
    t->recursive -= (marks & WATCH_RECURSIVE) ? 1 : 0;
    if (e->marks)
        return;
    clave__map_remove(&t->entries, &e->in_entries);
    list_cursors_leave(&t->cursors, &e->of_path);
    list_cursors_leave(&t->cursors, &e->of_watcher);
    list_remove(&e->of_path);
    list_remove(&e->of_watcher);
    clave__mem_free(t->mem, e);
}

static struct watched *watch_take_path(struct watches *t, struct jbytes path)
{
    struct watched *p = server_watch_find_path(t, path);
    if (p)
        return p;
    p = clave__mem_alloc(t->mem, sizeof *p + (size_t)path.n);
    if (!p)
        return NULL;
    p->len = (uint32_t)path.n;
    list_init(&p->entries);
    memcpy(p + 1, path.p, p->len);
    clave__map_insert(&t->paths, &p->in_paths, clave__map_hash_bytes(&t->paths, path.p, p->len));
    return p;
}

clave_err clave__watch_add(struct watches *t, struct watcher *w, struct jbytes path, unsigned marks)
{
    assert(marks != 0 && (marks & ~(unsigned)WATCH_ALL) == 0);
    struct watched *on = watch_take_path(t, watch_canonical(path));
    if (!on)
        return CLAVE_ENOMEM;
    struct watch *e = watch_find_entry(t, on, w);
    if (!e) {
        e = clave__mem_zalloc(t->mem, sizeof *e);
        if (!e) {
            watch_forget_path_if_unused(t, on);
            return CLAVE_ENOMEM;
        }
        e->on = on;
        e->by = w;
        list_push_back(&on->entries, &e->of_path);
        list_push_back(&w->entries, &e->of_watcher);
        clave__map_insert(&t->entries, &e->in_entries, watch_pair_hash(&(struct pair_key){on, w}));
    }
    unsigned fresh = marks & ~e->marks;
    e->marks |= fresh;
    t->count += watch_count_marks(fresh);
    w->count += watch_count_marks(fresh);
    t->recursive += (fresh & WATCH_RECURSIVE) ? 1 : 0;
    return CLAVE_OK;
}

unsigned clave__watch_marks(const struct watches *t, const struct watcher *w, struct jbytes path,
                            unsigned marks)
{
    struct watched *on = server_watch_find_path(t, watch_canonical(path));
    struct watch *e = on ? watch_find_entry(t, on, w) : NULL;
    return e ? e->marks & marks : 0;
}

void clave__watch_remove(struct watches *t, struct watcher *w, struct jbytes path, unsigned marks)
{
    struct watched *on = server_watch_find_path(t, watch_canonical(path));
    struct watch *e = on ? watch_find_entry(t, on, w) : NULL;
    if (!e)
        return;
    watch_clear_marks(t, e, marks);
    watch_forget_path_if_unused(t, on);
}

/* ---- listing --------------------------------------------------------------------------------- */

static struct jbytes server_watch_path_of(const struct watched *p)
{
    return clave__jbytes_n(p + 1, p->len);
}

struct list *clave__watch_entries(struct map_node *path)
{
    return &MAP_ENTRY(path, struct watched, in_paths)->entries;
}

static struct watch_seen watch_see(const struct watch *e)
{
    return (struct watch_seen){server_watch_path_of(e->on), e->by, e->marks};
}

struct watch_seen clave__watch_of_path(struct list *e)
{
    return watch_see(LIST_ENTRY(e, struct watch, of_path));
}

struct watch_seen clave__watch_of_watcher(struct list *e)
{
    return watch_see(LIST_ENTRY(e, struct watch, of_watcher));
}

/* ---- events ---------------------------------------------------------------------------------- */

/* The marks that are triggered by an event of this type on the watched path itself. */
static unsigned watch_marks_for(int32_t type)
{
    switch (type) {
    case EVENT_DELETED:
        return WATCH_ALL;
    case EVENT_CHILDREN_CHANGED:
        return WATCH_CHILD | WATCH_PERSISTENT;
    default:
        return WATCH_DATA | WATCH_PERSISTENT | WATCH_RECURSIVE;
    }
}

static void watch_send_to_entries(struct watches *t, struct watched *on, unsigned marks,
                                  const struct watch_event *ev, watch_send *send, void *arg)
{
    for (struct list *at = on->entries.next, *next; at != &on->entries; at = next) {
        struct watch *e = LIST_ENTRY(at, struct watch, of_path);
        struct watcher *w = e->by;
        unsigned hit = e->marks & marks;
        next = at->next;
        if (!hit)
            continue;
        watch_clear_marks(t, e, hit & ONE_SHOT);
        if (w->last_event == ev->number)
            continue;
        w->last_event = ev->number;
        send(arg, w, ev);
    }
}

void clave__watch_fire(struct watches *t, const struct watch_event *ev, watch_send *send, void *arg)
{
    assert(ev->number != 0);
    struct jbytes path = watch_canonical(ev->path);
    struct watched *on = t->count ? server_watch_find_path(t, path) : NULL;
    if (on) {
        watch_send_to_entries(t, on, watch_marks_for(ev->type), ev, send, arg);
        watch_forget_path_if_unused(t, on);
    }
    if (t->recursive == 0 || ev->type == EVENT_CHILDREN_CHANGED)
        return;
    while (path.n > 1) {
        path.n = (int32_t)clave__path_parent_len(path.p, (size_t)path.n);
        on = server_watch_find_path(t, path);
        if (on)
            watch_send_to_entries(t, on, WATCH_RECURSIVE, ev, send, arg);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

void clave__watcher_init(struct watcher *w)
{
    list_init(&w->entries);
    w->count = 0;
    w->last_event = 0;
}

bool clave__watcher_drop(struct watches *t, struct watcher *w, size_t *most)
{
    for (; *most > 0 && !list_empty(&w->entries); --*most) {
        struct watch *e = LIST_ENTRY(w->entries.next, struct watch, of_watcher);
        struct watched *on = e->on;
        watch_clear_marks(t, e, WATCH_ALL);
        watch_forget_path_if_unused(t, on);
    }
    return list_empty(&w->entries);
}

clave_err clave__watches_init(struct watches *t, const struct clave_mem *mem, uint64_t seed)
{
    *t = (struct watches){.mem = mem};
    list_init(&t->cursors);
    clave_err err = clave__map_init(&t->paths, mem, seed);
    if (err == CLAVE_OK)
        err = clave__map_init(&t->entries, mem, 0);
    if (err != CLAVE_OK)
        clave__map_fini(&t->paths);
    return err;
}

void clave__watches_fini(struct watches *t)
{
    assert(t->count == 0);
    assert(t->recursive == 0 && t->paths.count == 0);
    clave__map_fini(&t->paths);
    clave__map_fini(&t->entries);
}
