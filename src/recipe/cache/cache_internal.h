/* cache_internal.h - a clave_async_cache, as the files of this folder share it.
 *
 *   LOADING ──▶ CURRENT ◀──▶ STALE        each ──▶ ENDED
 *
 * What is to be read of a node is noted at the node, which then waits in the queue; so many
 * requests as the window allows are under way. Replies and events of a connection come in one
 * order, that of the server: an answer shows every change whose event came before it, and no later
 * one. */
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
    CACHE_STALE,   /* it was loaded, and the connection went since, or memory was short */
    CACHE_ENDED,
};

struct cache_request {
    clave_async_cache *cache;
    struct cache_node *node; /* NULL: it is free */
    int32_t op;
    struct cache_request *next; /* in the same multiRead; of a free one the next that is free */
};

/* A ring of the nodes that are QUEUED. */
struct cache_queue {
    struct cache_node **at;
    size_t cap, first, count;
};

struct clave_async_cache {
    clave_async_client *client;
    struct clave_mem mem;
    clave_async_cache_cb *cb; /* NULL: none */
    void *arg;
    clave_cache_options o;
    struct cache_tree tree;
    enum cache_phase phase;
    bool freed;
    unsigned refs; /* the user, each request under way, calls that run */

    clave_async_persistent_watcher *watcher;
    struct listener listener; /* when there is a watch for each node instead */
    bool watches_each;

    bool up; /* connected, and the watches are armed or ahead of what is asked */
    struct cache_queue queue;
    struct cache_request *requests; /* o.window */
    struct cache_request *free_requests;
    size_t nfree;
    struct cache_request *gathered, *last_gathered; /* for one multiRead that is not sent yet */
    size_t ngathered;
    size_t batch;        /* how many nodes are read by one multiRead; 1: there is none */
    size_t under_way;    /* requests as they were sent */
    size_t owed;         /* how many nodes the load, the resync or the round still has to read */
    size_t syncs;        /* under way */
    struct timer pause;  /* nothing is asked meanwhile */
    bool must_resync;    /* after the pause: something was missed for want of memory */
    int64_t answer_zxid; /* of the newest answer */
    int64_t zxid;        /* of the newest point at which it was equal to the tree */
    /* Of the client's clock: what was changed before `as_of` is in the cache; what was changed
     * before `since` will be as soon as no node is owed. INT64_MIN: not known. */
    int64_t as_of, since;

    struct timer refresh;
    struct buf refresh_at; /* the path of the node that is next; empty: the root */

    clave_cache_cuts_cb *cuts; /* NULL: data that is longer than max_data is not kept */
    bool full;                 /* FULL was told */
    size_t left_out;           /* how many nodes lack a child or their data for want of room */
    size_t room_made;          /* bytes freed since that was last tried again */
    size_t places_made;        /* likewise nodes */
};

/* ---- cache.c: telling ------------------------------------------------------------------------ */

/* Surround everything that may call the user, who may free the cache. */
void clave__cache_enter(clave_async_cache *cache);
void clave__cache_leave(clave_async_cache *cache);
void clave__cache_end(clave_async_cache *cache, clave_err err);

void clave__cache_tell(clave_async_cache *cache, clave_cache_event_type type, clave_err err);
/* Of a node, whose place in the tree is that of `node`. */
void clave__cache_tell_node(clave_async_cache *cache, clave_cache_event_type type,
                            const struct cache_node *node, const struct cache_value *now,
                            const struct cache_value *was);

/* ---- cache_read.c ---------------------------------------------------------------------------- */

enum cache_want { CACHE_WANT_STAT = 1, CACHE_WANT_DATA = 2, CACHE_WANT_LIST = 4 };

/* Notes that these are to be read. The load or the resync waits for it, if it waits for the parent
 * or for a sync; but not for what changes once that is read. */
void clave__cache_want(clave_async_cache *cache, struct cache_node *n, unsigned wants);
/* The load or the resync waits for what is read of the node now. */
void clave__cache_owe(clave_async_cache *cache, struct cache_node *n);
/* Something about a child of `up` could not be noted for want of memory: later everything is
 * compared once more. NULL: about the root. */
void clave__cache_missed(clave_async_cache *cache, struct cache_node *up);
/* Asks for a whole multiRead, or for all that waits. false: for nothing. */
bool clave__cache_ask_some(clave_async_cache *cache);

/* A place for a child that is new; nothing when the filter does not take it, or it does not fit. */
void clave__cache_add_child(clave_async_cache *cache, struct cache_node *parent, const char *name,
                            size_t len);
/* The node is gone, and so is everything below it. It is freed, unless a request for it is under
 * way. */
void clave__cache_delete(clave_async_cache *cache, struct cache_node *top);

/* Enough was freed that what was left out is tried again. */
bool clave__cache_has_made_room(const clave_async_cache *cache);

/* ---- cache_watch.c --------------------------------------------------------------------------- */

clave_err clave__cache_watch(clave_async_cache *cache, const char *path);
void clave__cache_unwatch(clave_async_cache *cache);
/* The watch to pass to a read of the node; NULL: none. ENOMEM. */
clave_err clave__cache_watch_of(clave_async_cache *cache, struct cache_node *n, bool children,
                                clave_async_watch **out);
/* Beside a persistent watch. The server may have used it up without a word: while the node could
 * not be read. */
void clave__cache_drop_child_watch(const clave_async_cache *cache, struct cache_node *n);
/* Whether the node's children are listed and a change of them will have an event. */
bool clave__cache_watches_children(const clave_async_cache *cache, const struct cache_node *n);

/* Events come again, and anything may have changed. */
void clave__cache_resync(clave_async_cache *cache);
/* Asks for what is wanted, and tells when nothing is left to be asked. */
void clave__cache_pump(clave_async_cache *cache);
/* Something is wanted from now on: keeps as of when the cache is known until then. */
void clave__cache_note_as_of(clave_async_cache *cache);
/* It may lack changes from now on. */
void clave__cache_become_stale(clave_async_cache *cache);

/* Begins, if the options say so. */
void clave__cache_poll_init(clave_async_cache *cache);
void clave__cache_poll_end(clave_async_cache *cache);

#endif
