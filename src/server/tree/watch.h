/* watch.h - who waits for what: by path, and by connection.
 *
 * A connection has at most one entry for a path; its marks say for which of the server's
 * tables it stands, and in which mode, so that one event is told once. */
#ifndef CLAVE_SERVER_TREE_WATCH_H
#define CLAVE_SERVER_TREE_WATCH_H

#include "base/list.h"
#include "base/map.h"
#include "clave/err.h"
#include "wire/jute.h"

enum watch_marks {
    WATCH_DATA = 1,       /* one-shot, by getData and exists */
    WATCH_CHILD = 2,      /* one-shot, by getChildren */
    WATCH_PERSISTENT = 4, /* both, until removed */
    WATCH_RECURSIVE = 8,  /* the node and everything below it, until removed */
    WATCH_ALL = 15,
};

struct watches {
    const struct clave_mem *mem;
    struct map paths;
    struct map entries; /* by path and watcher */
    size_t count;       /* marks */
    size_t recursive;   /* WATCH_RECURSIVE marks */
};

/* One who watches: embedded in a connection. */
struct watcher {
    struct list entries;
    uint64_t told; /* number of the newest event it was told of */
};

struct watch_event {
    int32_t type; /* enum wire_event_type */
    struct jbytes path;
    uint64_t number; /* of this event: a watcher is told of it once */
};
/* Tells a watcher; must not touch the watches. */
typedef void watch_tell(void *arg, struct watcher *w, const struct watch_event *ev);

clave_err clave__watches_init(struct watches *t, const struct clave_mem *mem);
void clave__watches_fini(struct watches *t); /* no watcher has an entry any more */

void clave__watcher_init(struct watcher *w);
/* Drops all its entries. */
void clave__watcher_fini(struct watches *t, struct watcher *w);

clave_err clave__watch_add(struct watches *t, struct watcher *w, struct jbytes path,
                           unsigned marks);
/* The marks among `marks` that it has on this path. */
unsigned clave__watch_marks(const struct watches *t, const struct watcher *w, struct jbytes path,
                            unsigned marks);
void clave__watch_remove(struct watches *t, struct watcher *w, struct jbytes path, unsigned marks);

typedef void watch_visit(void *arg, struct jbytes path, struct watcher *w);
/* Visits every entry with one of these marks, path by path; and those of one watcher. */
void clave__watches_each(const struct watches *t, unsigned marks, watch_visit *visit, void *arg);
void clave__watcher_each(const struct watcher *w, unsigned marks, watch_visit *visit, void *arg);

/* Tells all who wait for this event; one-shot marks are used up. */
void clave__watch_fire(struct watches *t, const struct watch_event *ev, watch_tell *tell,
                       void *arg);

#endif
