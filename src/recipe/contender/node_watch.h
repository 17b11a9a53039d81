/* node_watch.h - one watched znode: a getData that leaves a watch, and what is
 * known of both. All it needs is taken at _init; only a path longer than foreseen and the
 * requests themselves may fail later. */
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
    char *path; /* "" when it looks at nothing */
    size_t cap;
    bool asking; /* a getData is under way */
    bool moved;  /* and was for a path no longer wanted */
    bool again;  /* and went without a watch, which there is none of any more */
    /* The connection on which the watch is known to be armed. */
    uint64_t connection;
    void (*on_reply)(struct node_watch *l, const clave_result *res);
    void (*on_event)(struct node_watch *l, const clave_event *ev);
};

/* `cap`: bytes foreseen for a path. ENOMEM. */
clave_err clave__node_watch_init(struct node_watch *l, clave_async_client *c,
                                 const struct clave_mem *mem, size_t cap);
void clave__node_watch_fini(struct node_watch *l);

/* The path alone, dir/name or, with `name` NULL, dir. ENOMEM: it is what it was. */
clave_err clave__node_watch_set(struct node_watch *l, const char *dir, const char *name);
/* getData of the path, with the watch unless it is armed. As clave_async_get. */
clave_err clave__node_watch_read(struct node_watch *l);
/* Looks at dir/name from now on; asks only when it does not already. Call it with a reply
 * at hand that was asked for on the present connection. */
clave_err clave__node_watch_move(struct node_watch *l, const char *dir, const char *name);
/* Looks at nothing; the server forgets the watch. */
void clave__node_watch_clear(struct node_watch *l);

/* The watch was answered for and has been silent since. */
bool clave__node_watch_is_armed(const struct node_watch *l);

#endif
