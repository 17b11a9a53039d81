/* top_feed.h - the data of `clave top`: the locks and elections of a tree, which a cache follows on
 * the loop's thread, and a copy of what a screen shows of them.
 *
 * Map of src/cmd/top:
 *   top_feed      the locks and elections, live
 *   top_screen    the user's selection of them, and the lines of the screen
 *   top           the verb: terminal, keys, revoke and break */
#ifndef CLAVE_CMD_TOP_TOP_FEED_H
#define CLAVE_CMD_TOP_TOP_FEED_H

#include "clave/client.h"
#include "observe/lock_model.h"

struct top_feed;

/* A place in a queue. Its texts are exactly as others wrote them. */
struct top_place {
    const char *role, *client;
    char *node;  /* name of its node */
    char *whose; /* these two as in struct lock_label */
    char *task;
    char *host;  /* NULL: not known */
    int64_t pid; /* 0: not known */
    int64_t token;
    /* wall clock: when it was granted, if it holds; else when it queued; -1: not known */
    int64_t since;
    bool at_most;   /* `since` is a lower bound: it may have been granted later */
    bool waits;     /* waits for a lock or a lease */
    bool outside;   /* it may hold beside the holder (clave__lock_is_outside) */
    bool left_over; /* no session owns its node */
    bool unreadable;
    bool asked; /* asked to release the lock, or to resign */
};

struct top_lock {
    char *path;
    bool leases;
    enum lock_queue_kind kind;
    bool deadlocked; /* owners wait for each other, and one of them waits here */
    bool outside;    /* two may hold it (clave__lock_has_outside) */
    /* The first holder; if nobody holds the lock, the first node that is left over. `since` is -1
     * if there is neither. */
    struct top_place holder;
    size_t nholders, nwaiters, nleft_over;
    /* Nodes of others among those of the lock: how many, the path of the first (NULL: there is
     * none), and what it is (clave__lock_stranger_what). bad_limit: the limit of slots is not a
     * number. */
    size_t nstrangers;
    char *stranger;
    const char *stranger_what;
    bool bad_limit;
    /* since when the longest wait lasts; -1: nobody waits. Candidates do not count. */
    int64_t waiting_since;
};

/* What is known at one moment. */
struct top_view {
    bool loaded;      /* everything that existed at the beginning has been read */
    bool partial;     /* there is more than fits in memory */
    bool hidden;      /* there may be more below nodes that may not be read */
    bool read_only;   /* the server is read-only */
    int64_t stale_at; /* wall clock: since when the data is out of date; 0: it is up to date */
    clave_err err;    /* why there will be no more changes */
    char *server;     /* the server that we are connected to */
    struct top_lock *locks;
    size_t nlocks;
    /* Places of the lock that was asked for: holders first, then nodes that are left over, then
     * waiters. */
    struct top_place *places;
    size_t nplaces;
    char **deadlocks; /* the paths of each deadlock, as text */
    size_t ndeadlocks;
};

/* Begins to follow the locks and elections at `path`, which must outlive the feed, and below it.
 * The eventfd `wakeup` is written when there is something new since the last top_feed_read. ENOMEM,
 * ECLOSED. */
clave_err top_feed_new(struct top_feed **out, clave_client *client, const char *path, int wakeup);
/* To be called before the client is closed. NULL is ignored. */
void top_feed_free(struct top_feed *f);

/* Copies all locks, and the places of the lock at `path` (NULL: of none). On ENOMEM or ECLOSED *out
 * is empty. */
clave_err top_feed_read(struct top_feed *f, const char *path, bool leases, struct top_view *out);
void top_view_fini(struct top_view *v);

/* Prints one line of JSON for each lock and election, with the members that GET /v1/locks has. */
clave_err top_feed_json(struct top_feed *f);

#endif
