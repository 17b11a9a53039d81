/* node_watch.h - one watched znode: a getData that sets a watch, and what is known about both. All
 * memory is allocated in _init; later, only a path that is longer than foreseen and the requests
 * themselves can fail. */
#ifndef CLAVE_RECIPE_CONTENDER_NODE_WATCH_H
#define CLAVE_RECIPE_CONTENDER_NODE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "clave/async/client.h"

struct node_watch {
    clave_async_client *client;
    const struct clave_mem *mem;
    clave_async_watch *watch;
    char *path; /* "": it watches nothing */
    size_t cap;
    bool asking; /* a getData is under way */
    bool moved;  /* that getData is for a path that is no longer wanted */
    bool again;  /* that getData will set no watch, although none is armed any more */
    /* The connection on which the watch is known to be armed. */
    uint64_t connection;
    void (*on_reply)(struct node_watch *w, const clave_result *res);
    void (*on_event)(struct node_watch *w, const clave_event *ev);
};

/* `cap` is the length foreseen for a path. ENOMEM. */
clave_err clave__node_watch_init(struct node_watch *w, clave_async_client *c,
                                 const struct clave_mem *mem, size_t cap);
void clave__node_watch_fini(struct node_watch *w);

/* Sets the path to dir/name or, if `name` is NULL, to dir; requests nothing. ENOMEM: the path is
 * unchanged. */
clave_err clave__node_watch_set(struct node_watch *w, const char *dir, const char *name);
/* Reads the node, and sets the watch unless it is armed. Errors as clave_async_get. */
clave_err clave__node_watch_read(struct node_watch *w);
/* Watches dir/name from now on; reads it only if it is not being watched already. Call it only when
 * processing a reply to a request that was sent on the present connection. */
clave_err clave__node_watch_move(struct node_watch *w, const char *dir, const char *name);
/* Stops watching; the server forgets the watch. */
void clave__node_watch_clear(struct node_watch *w);

/* True if the read that set the watch was answered and the watch has not fired. */
bool clave__node_watch_is_armed(const struct node_watch *w);

#endif
