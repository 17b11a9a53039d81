/* top_feed.h - what `clave top` knows: the locks and elections of a tree, followed by a cache on
 * the loop's thread, and what one screen shows of them, read from there.
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

/* A place in a queue. Its texts are as their writers wrote them. */
struct top_place {
    const char *role, *client;
    char *node;  /* its name */
    char *whose; /* as of struct lock_label, the next too */
    char *task;
    char *host;  /* NULL: not known */
    int64_t pid; /* 0: not known */
    int64_t token;
    int64_t since;  /* wall clock: granted, of one that holds; else queued; -1: not known */
    bool at_most;   /* since then at the earliest */
    bool waits;     /* for a lock or lease */
    bool outside;   /* it may hold beside the holder (clave__lock_is_outside) */
    bool left_over; /* no session owns its node */
    bool unreadable;
    bool asked; /* to release it, or to resign */
};

struct top_lock {
    char *path;
    bool leases;
    enum lock_queue_kind kind;
    bool deadlocked; /* owners wait for each other, and one of them waits here */
    bool outside;    /* two may hold it (clave__lock_has_outside) */
    /* The first; if nobody holds it, the first node that is left over; since -1: neither. */
    struct top_place holder;
    size_t nholders, nwaiters, nleft_over;
    /* What others have put among its nodes: how many, the path of the first (NULL: none), and what
     * that is (clave__lock_stranger_what); and whether the limit of slots is no number. */
    size_t nstrangers;
    char *stranger;
    const char *stranger_what;
    bool bad_limit;
    int64_t waiting_since; /* the oldest wait; -1: nobody waits. A candidate does not */
};

/* What is known at one moment. */
struct top_view {
    bool loaded;      /* all there was when it began */
    bool partial;     /* there is more than there is room for */
    bool hidden;      /* there may be more below nodes that may not be read */
    bool read_only;   /* the server */
    int64_t stale_at; /* wall clock: not up to date since then; 0: it is */
    clave_err err;    /* why nothing more will come */
    char *server;     /* the connected one */
    struct top_lock *locks;
    size_t nlocks;
    struct top_place *places; /* of the lock that was asked for; holders first, then
                                 what is left over */
    size_t nplaces;
    char **deadlocks; /* the paths of each */
    size_t ndeadlocks;
};

/* Begins to follow the locks and elections at and below `path`, which is borrowed; `wakeup`, an
 * eventfd, is written when there is something new since the last top_feed_read. ENOMEM, ECLOSED. */
clave_err top_feed_new(struct top_feed **out, clave_client *client, const char *path, int wakeup);
/* Before the client is closed. NULL is ignored. */
void top_feed_free(struct top_feed *f);

/* All locks, and the places of one (`path` NULL: of none). ENOMEM, ECLOSED; then *out is empty. */
clave_err top_feed_read(struct top_feed *f, const char *path, bool leases, struct top_view *out);
void top_view_fini(struct top_view *v);

/* Prints a line of JSON for each lock and election, as GET /v1/locks has them. */
clave_err top_feed_json(struct top_feed *f);

#endif
