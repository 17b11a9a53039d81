/* contender.h - one place in a queue, from the creation of its node to the end of that node.
 * Mutexes are built on it, and so is every other recipe that queues with sequential nodes. The
 * folder:
 *
 *   contender.c           its states: how it gets its node, whether it is its turn, how it ends
 *   contender_set_data.c  says something else in the node
 *   contender_config.c    copies of options
 *   hand_over.c           a session and its holds pass to another process
 *   contender_grant.c     copies of what is held, and writes under them
 *   guarded_write.c       guarded writes
 *   node_watch.c          one watched node
 *
 * What the nodes of a queue say, and who is before whom, is in src/recipe/queue.
 *
 *   LOOKING ─────┐
 *      ^          v
 *     IDLE ──> JOINING ──> WAITING ──> CONFIRMING ──> HELD
 *      ^        ^ │           │ ^───────── │            │
 *      │        │ v           │            │            │
 *      │     STANDING_BY      │            │            │
 *      │          v           v            v            v
 *      └───────────────── LEAVING <─────────────────────┘
 *                             └──> ENDED
 *
 * There are three ways to get a node.
 *
 * In a queue: a create with a sequence number, protected by a name of its own, followed at once by
 * a listing. A try to write first looks (LOOKING) whether anybody is before it: even if it were
 * refused, its node would make every reader that comes meanwhile wait, and refuse every try to
 * read. Once it has seen nobody it creates its node, and the node decides.
 *
 * As a single node, without a queue (the election in the ZooKeeper book): the node has a fixed name
 * and belongs to the contender that creates it first. All others watch it (STANDING_BY), and all of
 * them try when it is deleted, which is the herd effect that queues exist to avoid. The czxid tells
 * whose node it is, never the name or the session alone.
 *
 * As a downgrade: it takes the place of a node of our own owner, as Curator has done since 5.5
 * (CURATOR-621). The read node carries the number of the write node, so no waiting writer can get
 * in between the two. The server creates it only while the write node exists; otherwise it would be
 * before a writer that was granted in the meantime. Once created it is granted, because whatever
 * sorts after the write node sorts after it as well. Its name is chosen once and known, so it needs
 * no search as protection: if the answer is lost, our own node is read, and if it did not exist
 * yet, the next create will run into it.
 *
 * Every attempt is bound to one session. A contender that loses its node while it waits starts over
 * automatically, by way of LEAVING, which lasts until no request of the old attempt is pending. So
 * a reply never reaches an attempt that did not send the request.
 *
 * The owner is notified through contender_events, never inside a call of its own. The contender
 * forgets its owner with the event that ends the owner's interest (ended, lost) or with _leave.
 * Whatever is then left to do at the server continues in the background, after which the contender
 * frees itself. */
#ifndef CLAVE_RECIPE_CONTENDER_CONTENDER_H
#define CLAVE_RECIPE_CONTENDER_CONTENDER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clave/async/mutex.h"
#include "client/client_for_recipes.h"
#include "recipe/contender/node_watch.h"
#include "recipe/deadlock/deadlock_schedule.h"
#include "recipe/grant_held.h"
#include "recipe/queue/queue_order.h"
#include "recipe/reattach.h"

/* What all attempts of a recipe have in common; borrowed while there is an owner. */
struct contender_spec {
    const struct queue_order_rule *rule;
    const char *path; /* the parent of the nodes, "/locks/a" */
    const char *stem; /* how the node's path begins, "/locks/a/lock-" */
    const void *data;
    size_t len;
    const clave_acl *acls;
    size_t nacls;
    int64_t max_hold_ms;  /* 0: no limit */
    int64_t min_valid_ms; /* 0: an eighth of the session timeout */
    bool strict;
    bool elects;    /* what is held is leadership */
    bool revocable; /* a holder watches its node from the start, and gets `asked` */
    /* Not a queue: this many nodes may exist at once (Curator's semaphore). */
    bool counted;
    size_t limit;
    struct queue_place *place; /* see reattach.h; NULL: each contender has a place of its own */
    bool only_found; /* for a place that is searched for: `ended` with ENONODE if it is not found */
    /* The owner decides whether its turn has come: a try that is not first gets `moved` and stays,
     * and a place that somebody has deleted is not created anew but gets `ended` with ENONODE. */
    bool owner_decides;
    bool *warned_of_kazoo;                       /* see queue_kind.h; NULL: no warning */
    const struct deadlock_terms *deadlock_terms; /* NULL: no deadlock detection */
};

struct contender_events {
    void (*moved)(void *owner); /* while waiting; see `ahead` and `left_over` in contender_queue */
    void (*held)(void *owner);
    void (*ended)(void *owner, clave_err err); /* not granted: EBUSY, ESEQUENCE, ... */
    void (*lost)(void *owner, clave_err why);  /* after held */
    void (*asked)(void *owner); /* after held, if revocable: somebody asks for it back */
};

typedef void contender_left(void *arg, clave_err err);

enum contender_state {
    CONTENDER_IDLE,        /* nothing of it is at the server */
    CONTENDER_LOOKING,     /* a try to write: is anybody before it? */
    CONTENDER_JOINING,     /* the create is under way */
    CONTENDER_STANDING_BY, /* in a race: another contender's node exists */
    CONTENDER_WAITING,     /* our node exists; a listing tells its position */
    CONTENDER_CONFIRMING,  /* first in the queue, but the hold deadline is too close */
    CONTENDER_HELD,
    CONTENDER_LEAVING, /* the node is being deleted, or requests are still under way */
    CONTENDER_ENDED,
};

/* Called once when the hold of a contender is over, before its owner is told of a loss. */
struct hold_watcher {
    struct list link;
    void (*over)(struct hold_watcher *w);
};

/* What its owner has requested. */
struct contender_acquire {
    bool race;          /* as in the rule, which may be gone by now */
    bool elects;        /* as in the spec, which may be gone by now */
    int64_t joined;     /* when it was requested */
    bool trying;        /* leave if not first */
    clave_err unlisted; /* LOOKING: why the listing could not be sent; CLAVE_OK: it was sent */
    struct timer limit; /* the deadline or, when HELD, the end of max_hold or of a silence */
    struct timer pause; /* the wait before trying again what failed, or before a delete */
    unsigned failures;  /* failures in a row */
};

/* A node that our owner already has, whose number and place in the queue this contender takes over;
 * see "As a downgrade" above. */
struct contender_downgrade {
    char *node;      /* NULL: this contender gets a number of its own */
    const char *own; /* our own path in that case, in the same block */
};

/* Our node, valid from WAITING to LEAVING. */
struct contender_node {
    struct node_watch watch;
    int64_t session_id;
    int64_t token; /* its czxid; 0: not known yet */
    bool seen;     /* read in this session, on this connection */
    char *data;    /* the spec's data and more; NULL: just the spec's */
    size_t ndata;
};

/* Who is before us according to the newest listing. */
struct contender_queue {
    struct node_watch predecessor; /* the nearest one before us */
    /* The one before that. When it goes, `predecessor` is the holder. */
    struct node_watch before_predecessor;
    clave_async_watch *children; /* if counted: on the children of the path; otherwise NULL */
    bool listing;                /* a listing is under way */
    uint64_t listed_on;          /* the connection of the newest listing */
    bool plain;                  /* all names of contenders in it were plain */
    size_t ahead;                /* how many are before us, as far as is known */
    bool left_over;              /* no session owns the predecessor's node */
    /* The connection of the newest answer that showed others before us. Kept when the place is
     * created anew; a listing that shows nobody resets it to 0. */
    uint64_t others_seen_on;
};

struct contender_grant {
    struct hold hold;
    bool holding; /* the client has `hold`: from when we are next in line until the end */
    struct confirm_waiter confirm;
    struct list watchers; /* of the present hold; empty in every state but HELD */
    /* Somebody had asked when our data was rewritten; to be reported when HELD. */
    bool asked_before;
    int32_t restored; /* the version of our node after its data was rewritten; 0: it was not */
    int64_t end;      /* when granted + max_hold; CLAVE_NEVER: no limit */
    int64_t ends_by;  /* when the hold that it takes up ends at the latest; CLAVE_NEVER: no limit */
    int64_t depend_ms; /* the longest silence of the work; 0: the hold does not depend on it */
    int64_t silent_at; /* if it does: the newest sign of life + depend_ms */
};

struct contender_leaving {
    struct create_stake stake; /* of the create of its node */
    bool failed;               /* it failed, as opposed to being given up by its owner */
    bool again;                /* it will join again afterwards */
    bool must_delete;          /* the delete is still to be submitted, when `pause` is over */
    contender_left *done;
    void *arg;
    clave_err err;
};

struct contender {
    const struct contender_spec *spec; /* NULL when `owner` is */
    struct list in_client;             /* in the client's list of contenders */
    struct queue_place *place;         /* the spec's, or that of `handed`; NULL: it has its own */
    struct contender_handed *handed;   /* the hold of another process that it takes up, or NULL */
    struct hand_over *handing; /* the hand-over that is reading the version of its node's data */
    int32_t handed_version;    /* the version that `handing` has read */
    uint64_t handed_mark;      /* clave__handed_mark_of those data */
    const char *uuid;          /* the UUID in its name, if it has no place; NULL: random */
    size_t nth; /* its number, from 0, among those that the place or the UUID has in one queue */
    const struct contender_events *events;
    void *owner; /* NULL: given up */
    clave_async_client *client;
    const struct clave_mem *mem;
    enum contender_state state;
    unsigned busy; /* pending requests, other than those of node watches, and running calls */
    struct listener listener; /* for the state of the session */
    struct deadlock_schedule deadlock_schedule;
    const char *deadlock; /* text for `ended` with EDEADLOCK; may be NULL */

    struct contender_acquire acquire;
    struct contender_downgrade downgrade;
    struct contender_node node;
    struct contender_queue queue;
    struct contender_grant grant;
    struct contender_leaving leaving;
};

/* Makes a contender, with all the memory that waiting and holding will need. ENOMEM. */
clave_err clave__contender_new(struct contender **out, clave_async_client *c,
                               const struct contender_spec *spec,
                               const struct contender_events *events, void *owner);

/* Begins to queue. `deadline` is by the client's clock; if it has already passed, the lock is taken
 * only if it is free now. Fails like clave_async_create, and then frees the contender. */
clave_err clave__contender_join(struct contender *c, int64_t deadline);

/* To be called before _join: takes over the place of `node`, which our owner already holds
 * (Curator's downgrade), if that node still exists. ENOMEM: the contender is freed. */
clave_err clave__contender_downgrade(struct contender *c, const char *node);

/* To be called before _join: adds these fields to the data of its nodes, provided that the spec's
 * data is in clave's form, or is empty and `more` says more than who the owner is. ENOMEM: the
 * contender is freed. */
clave_err clave__contender_add_identity(struct contender *c, const clave_identity *more);

/* Gives up the place or the grant; no event follows. `left` (may be NULL) is called when the node
 * is certainly gone: inside this call if there is nothing to delete, or no server to ask. */
void clave__contender_leave(struct contender *c, contender_left *left, void *arg);

/* The same when the owner has deleted the node itself, in a transaction; from WAITING on. */
void clave__contender_spend(struct contender *c);

/* Changes what our node says: host, name and command in clave's form, or else `text`; NULL fields
 * stay as they are. `done` is called once, later: CLAVE_OK; ELOST, ENONODE: the place was lost;
 * other errors as clave_async_get and _set. Errors at once: ENOTHELD: there is no node. ENOMEM.
 * ECLOSED. */
clave_err clave__contender_describe(struct contender *c, const clave_identity *said,
                                    contender_left *done, void *arg);

/* Calls the watchers: what the owner had is over, though the place may stay. */
void clave__contender_end_hold(struct contender *c);

/* When HELD: ends the hold `max` ms from now; 0: no limit. */
void clave__contender_limit(struct contender *c, int64_t max);

/* When HELD: what has ended the hold when its `limit` is over, EMAXHOLD or ESILENT. */
clave_err clave__contender_limit_cause(const struct contender *c);

/* When to delete the node of a hold that ended by silence. The work gets the hold deadline's margin
 * in which to stop, as it would after losing the session. One clock measures both moments, so no
 * part of the margin is spent on drift. */
int64_t clave__contender_silence_over(const struct contender *c);

/* The result of releasing a lost hold: the cause if that was a limit of its own, else ELOST. */
static inline clave_err clave__contender_release_lost(clave_err why)
{
    return why == CLAVE_EMAXHOLD || why == CLAVE_ESILENT ? why : CLAVE_ELOST;
}

/* For a counted one: the limit has changed. */
void clave__contender_recount(struct contender *c);

/* The error with which an acquire that waits for this place ends at its deadline: EBUSY or
 * EUNREACHABLE. Every recipe uses this, or clave__client_not_in_time while it has no place. */
clave_err clave__contender_not_in_time(const struct contender *c);

/* Sets the text of a try's EBUSY for clave_async_client_errmsg: how many own what is at the path
 * (of `len` characters), and how many more are before the try. */
void clave__contender_explain_busy(clave_async_client *c, const char *path, size_t len,
                                   size_t owners, size_t before);

/* The time until which nobody else can hold it; only when HELD. */
int64_t clave__contender_deadline(const struct contender *c);
/* The same if its work goes on giving signs of life. */
int64_t clave__contender_deadline_if_alive(const struct contender *c);
/* What its holder has; only when HELD. */
struct grant_facts clave__contender_facts(struct contender *c);

/* ---- between the files of the contender ------------------------------------------------------ */

/* Gives up: the owner gets `err`, the node is deleted. */
void clave__contender_fail(struct contender *c, clave_err err);
/* Looks again after a pause, and keeps what it has. */
void clave__contender_check_later(struct contender *c);

/* Takes up a hold on its path that another process has handed over, if there is one. ENOMEM. */
clave_err clave__contender_take_handed(struct contender *c);
/* Drops the handed-over hold, because the contender ends or its node is gone. If the hold was not
 * claimed, another contender may take it up. */
void clave__contender_drop_handed(struct contender *c);
/* True if it takes up a hold that another process has handed over. */
static inline bool clave__contender_was_handed(const struct contender *c)
{
    return c->handed != NULL;
}
/* The node of the handed-over hold is gone: drops that hold, so that the contender queues anew, and
 * returns true. Returns false if the contender takes up none. */
bool clave__contender_handed_is_over(struct contender *c);
/* If the node of a handed-over hold is still to say what this process says, starts writing that and
 * returns true. The turn is checked again once that is written. */
bool clave__contender_must_write_handed(struct contender *c);

/* The data of its node. */
static inline const void *clave__contender_data(const struct contender *c, size_t *len)
{
    assert(c->node.data || c->spec);
    *len = c->node.data ? c->node.ndata : c->spec->len;
    return c->node.data ? c->node.data : c->spec->data;
}
/* These enclose every call from the engine; the contender may free itself in _end. */
void clave__contender_begin(struct contender *c);
void clave__contender_end(struct contender *c);

/* To be called before _join: a contender that has just had the node starts a moment later, so that
 * the others learn of its end first. Does nothing to one that queues. */
void clave__contender_race_delay(struct contender *c);

/* How many are before it according to the newest listing; SIZE_MAX: there was none yet. */
static inline size_t clave__contender_ahead(const struct contender *c)
{
    return c->queue.ahead;
}
/* The full path of the nearest one of these; NULL: none is known. */
static inline const char *clave__contender_predecessor(const struct contender *c)
{
    return c->queue.predecessor.path;
}
/* The full path of the predecessor if it is left over; otherwise NULL. */
const char *clave__contender_left_over(const struct contender *c);

#endif
