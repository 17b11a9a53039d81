/* watch.h - the server's watches, by path and by connection.
 *
 * A connection has at most one entry per path. The entry's marks say which of Apache's tables of
 * watches it would be in, and in which mode. Since they share one entry, a connection gets each
 * event only once. */
#ifndef CLAVE_SERVER_TREE_WATCH_H
#define CLAVE_SERVER_TREE_WATCH_H

#include "base/list.h"
#include "base/map.h"
#include "clave/err.h"
#include "wire/jute.h"

enum watch_marks {
    WATCH_DATA = 1,       /* one-shot; set by getData and exists */
    WATCH_CHILD = 2,      /* one-shot; set by getChildren */
    WATCH_PERSISTENT = 4, /* data and children, until removed */
    WATCH_RECURSIVE = 8,  /* the node and everything below it, until removed */
    WATCH_ALL = 15,
};

struct watches {
    const struct clave_mem *mem;
    struct map paths;
    struct map entries;  /* by path and watcher */
    size_t count;        /* the number of marks in all entries */
    size_t recursive;    /* how many of them are WATCH_RECURSIVE */
    struct list cursors; /* cursors walking lists of entries */
};

/* A connection's part in the watches, embedded in the connection. */
struct watcher {
    struct list entries;
    size_t count;        /* the number of marks in its entries */
    uint64_t last_event; /* the number of the newest event it was sent */
};

struct watch_event {
    int32_t type; /* enum wire_event_type */
    struct jbytes path;
    uint64_t number; /* the number of this event, so that each watcher gets it once */
};
/* Sends an event to a watcher; must not change the watches. */
typedef void watch_send(void *arg, struct watcher *w, const struct watch_event *ev);

/* `seed` keys the hash of the paths, which clients choose. ENOMEM. */
clave_err clave__watches_init(struct watches *t, const struct clave_mem *mem, uint64_t seed);
void clave__watches_fini(struct watches *t); /* all entries must be gone */

void clave__watcher_init(struct watcher *w);
/* Drops at most *most entries of the watcher, and counts *most down. Returns true if none is
 * left. */
bool clave__watcher_drop(struct watches *t, struct watcher *w, size_t *most);

clave_err clave__watch_add(struct watches *t, struct watcher *w, struct jbytes path,
                           unsigned marks);
/* Those of `marks` that the watcher has on this path. */
unsigned clave__watch_marks(const struct watches *t, const struct watcher *w, struct jbytes path,
                            unsigned marks);
void clave__watch_remove(struct watches *t, struct watcher *w, struct jbytes path, unsigned marks);

/* The entries of a path, given a node of the map `paths`. This list and that of a watcher are
 * walked with a cursor in `cursors`. */
struct list *clave__watch_entries(struct map_node *path);
/* What a place in such a list stands for: in the list of a path, or in that of a watcher. */
struct watch_seen {
    struct jbytes path;
    struct watcher *by;
    unsigned marks;
};
struct watch_seen clave__watch_of_path(struct list *e);
struct watch_seen clave__watch_of_watcher(struct list *e);

/* Sends the event to every watcher that it concerns, and removes the one-shot marks that it
 * triggers. */
void clave__watch_fire(struct watches *t, const struct watch_event *ev, watch_send *send,
                       void *arg);

#endif
