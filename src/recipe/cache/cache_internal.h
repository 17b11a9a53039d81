/* cache_internal.h - a clave_async_cache, as the files of this folder share it.
 *
 *   LOADING ──▶ CURRENT ◀──▶ STALE        each ──▶ ENDED
 *
 * What has to be read of a node is noted at the node, which then waits in the queue; as many
 * requests are under way as the window allows. Replies and events of a connection arrive in the
 * order of the server's changes: an answer shows every change whose event came before it, and none
 * whose event comes later. */
#ifndef CLAVE_RECIPE_CACHE_CACHE_INTERNAL_H
#define CLAVE_RECIPE_CACHE_CACHE_INTERNAL_H

#include "clave/async/cache.h"
#include "clave/async/persistent_watcher.h"
#include "client/client_for_recipes.h"
#include "recipe/cache/cache_progress.h"
#include "recipe/cache/cache_tree.h"

enum cache_phase {
    CACHE_LOADING,
    CACHE_CURRENT, /* changes are seen as they happen */
    CACHE_STALE,   /* it was loaded, but since then the connection was lost or memory ran out */
    CACHE_ENDED,
};

struct cache_request {
    clave_async_cache *cache;
    struct cache_node *node; /* NULL: this one is free */
    int32_t op;
    /* The next in the same multiRead or, if this one is free, the next free one. */
    struct cache_request *next;
};

/* A ring buffer of the nodes that are QUEUED. */
struct cache_queue {
    struct cache_node **at;
    size_t cap, first, count;
};

struct clave_async_cache {
    clave_async_client *client;
    struct clave_mem mem;
    clave_async_cache_cb *cb; /* may be NULL */
    void *arg;
    clave_cache_options o;
    struct cache_tree tree;
    enum cache_phase phase;
    bool freed;
    unsigned refs; /* the user, each request under way, and running calls */

    clave_async_persistent_watcher *watcher;
    struct listener listener; /* used if each node has a watch of its own */
    bool watches_each;

    bool up; /* connected, and the watches are armed or will be before anything is read */
    struct cache_queue queue;
    struct cache_request *requests; /* an array of o.window */
    struct cache_request *free_requests;
    size_t nfree;
    struct cache_request *gathered,
        *last_gathered; /* collected for a multiRead that is not sent yet */
    size_t ngathered;
    size_t batch;        /* how many nodes one multiRead reads; 1: multiRead is not used */
    size_t under_way;    /* requests, counting a multiRead as one */
    size_t owed;         /* how many nodes the load, the resync or the round still has to read */
    size_t syncs;        /* how many are under way */
    struct timer pause;  /* while it runs, nothing is requested */
    bool must_resync;    /* when the pause ends, because something was missed for want of memory */
    int64_t answer_zxid; /* from the newest answer */
    int64_t zxid;        /* when the cache was last equal to the tree */
    /* By the client's clock: the cache has every change made before `as_of`, and will have every
     * change made before `since` once no node is owed. INT64_MIN: unknown. */
    int64_t as_of, since;

    struct timer refresh;
    struct buf refresh_at; /* path of the node that is next; empty: the root */

    clave_cache_cuts_cb *cuts; /* NULL: data longer than max_data is not kept */
    bool full;                 /* FULL has been reported */
    size_t left_out;    /* how many nodes lack a child or their data because there is no room */
    size_t room_made;   /* bytes freed since these were last tried again */
    size_t places_made; /* nodes freed since then */
};

/* ---- cache.c: telling ------------------------------------------------------------------------ */

/* Enclose everything that may call the user, who may free the cache. */
void clave__cache_enter(clave_async_cache *cache);
void clave__cache_leave(clave_async_cache *cache);
void clave__cache_end(clave_async_cache *cache, clave_err err);

void clave__cache_tell(clave_async_cache *cache, clave_cache_event_type type, clave_err err);
/* Reports an event of a node, whose place in the tree is that of `node`. */
void clave__cache_tell_node(clave_async_cache *cache, clave_cache_event_type type,
                            const struct cache_node *node, const struct cache_value *now,
                            const struct cache_value *was);

/* ---- cache_read.c ---------------------------------------------------------------------------- */

enum cache_want { CACHE_WANT_STAT = 1, CACHE_WANT_DATA = 2, CACHE_WANT_LIST = 4 };

/* Notes that these parts of a node have to be read. The load or the resync waits for that if it
 * waits for the parent or for a sync, but it does not wait for changes that happen after the node
 * was read. */
void clave__cache_want(clave_async_cache *cache, struct cache_node *n, unsigned wants);
/* Makes the load or the resync wait for what is being read of the node. */
void clave__cache_owe(clave_async_cache *cache, struct cache_node *n);
/* Something about a child of `up` could not be noted for want of memory, so later everything is
 * compared once more. NULL: it was about the root. */
void clave__cache_missed(clave_async_cache *cache, struct cache_node *up);
/* Requests a full multiRead, or whatever is waiting. Returns false if there was nothing to
 * request. */
bool clave__cache_ask_some(clave_async_cache *cache);

/* Makes a place for a new child, unless the filter rejects it or there is no room. */
void clave__cache_add_child(clave_async_cache *cache, struct cache_node *parent, const char *name,
                            size_t len);
/* The node is gone, along with everything below it. Frees it, unless a request for it is under
 * way. */
void clave__cache_delete(clave_async_cache *cache, struct cache_node *top);

/* True if enough was freed to try again what was left out. */
bool clave__cache_has_made_room(const clave_async_cache *cache);

/* ---- cache_watch.c --------------------------------------------------------------------------- */

clave_err clave__cache_watch(clave_async_cache *cache, const char *path);
void clave__cache_unwatch(clave_async_cache *cache);
/* The watch to set with a read of the node, in *out; NULL: none. ENOMEM. */
clave_err clave__cache_watch_of(clave_async_cache *cache, struct cache_node *n, bool children,
                                clave_async_watch **out);
/* Drops a child watch that exists beside the persistent watch. The server may have used it up
 * without sending an event, while the node could not be read. */
void clave__cache_drop_child_watch(const clave_async_cache *cache, struct cache_node *n);
/* True if the node's children are listed and a change of them will cause an event. */
bool clave__cache_watches_children(const clave_async_cache *cache, const struct cache_node *n);

/* Events arrive again, and anything may have changed. */
void clave__cache_resync(clave_async_cache *cache);
/* Requests what is wanted, and reports when nothing is left to be requested. */
void clave__cache_pump(clave_async_cache *cache);
/* Something will be wanted from now on: keeps the time as of which the cache is complete. */
void clave__cache_note_as_of(clave_async_cache *cache);
/* The cache may lack changes from now on. */
void clave__cache_become_stale(clave_async_cache *cache);

/* Starts comparing nodes regularly, if the options say so. */
void clave__cache_poll_init(clave_async_cache *cache);
void clave__cache_poll_end(clave_async_cache *cache);

#endif
