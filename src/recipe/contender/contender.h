/* contender.h - one place in a queue, from the create of its node to the node's end. Mutexes are
 * built on it, and so is every other recipe that queues with sequential nodes. The folder:
 *
 *   contender.c           its states, how it ends, what happens to it
 *   contender_join.c      how it gets its node
 *   contender_turn.c      is it our turn?
 *   contender_set_data.c  says something else in the node
 *   contender_config.c    copies of options
 *   contender_grant.c     copies of what is held, and writes under them
 *   guarded_write.c       guarded writes
 *   node_watch.c          one watched node
 *
 * What the nodes of a queue say, and who is before whom, is in src/recipe/queue.
 *
 *     IDLE ──> JOINING ──> WAITING ──> CONFIRMING ──> HELD
 *      ^        ^ │           │ ^───────── │            │
 *      │        │ v           │            │            │
 *      │     STANDING_BY      │            │            │
 *      │          v           v            v            v
 *      └───────────────── LEAVING <─────────────────────┘
 *                             └──> ENDED
 *
 * STANDING_BY is for contenders that do not queue: see contender_join.c.
 *
 * Every attempt is bound to one session. A contender that loses its node while it waits
 * starts over by itself, through LEAVING, which waits until no request of the old attempt is
 * pending: so a reply never meets an attempt that did not ask for it.
 *
 * The owner is notified through contender_events, never inside its own call. It is forgotten
 * with the event that ends its interest (ended, lost) or with _leave; what is then left to do
 * at the server continues in the background, and the contender frees itself. */
#ifndef CLAVE_RECIPE_CONTENDER_CONTENDER_H
#define CLAVE_RECIPE_CONTENDER_CONTENDER_H

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

/* What all attempts of one recipe have in common; borrowed while there is an owner. */
struct contender_spec {
    const struct queue_order_rule *rule;
    const char *path; /* the parent, "/locks/a" */
    const char *stem; /* what the node's name begins with, "/locks/a/lock-" */
    const void *data;
    size_t len;
    const clave_acl *acls;
    size_t nacls;
    int64_t max_hold_ms;  /* 0: no limit */
    int64_t min_valid_ms; /* 0: an eighth of the session timeout */
    bool strict;
    bool elects;    /* what is held is a leadership */
    bool revocable; /* a holder watches its node at once, and gets `asked` */
    /* Not a queue: this many nodes may exist at once (Curator's semaphore). */
    bool counted;
    size_t limit;
    struct queue_place *place; /* see reattach.h; NULL: each contender has its own */
    bool only_found; /* of a place that is searched: `ended` with ENONODE when there is none */
    /* Its owner decides whether its turn has come: a try that is not first is `moved`, and stays;
     * and a place that somebody has deleted is not taken anew, but `ended` with ENONODE. */
    bool owner_decides;
    bool *warned_of_kazoo;                       /* see kazoo.h; NULL: nobody is */
    const struct deadlock_terms *deadlock_terms; /* looks for deadlocks; NULL: nothing does */
};

struct contender_events {
    void (*moved)(void *owner); /* waiting; see `ahead` and `left_over` of contender_queue */
    void (*held)(void *owner);
    void (*ended)(void *owner, clave_err err); /* not granted: EBUSY, ESEQUENCE, ... */
    void (*lost)(void *owner, clave_err why);  /* after held */
    void (*asked)(void *owner); /* after held, when revocable: somebody wants it back */
};

typedef void contender_left(void *arg, clave_err err);

enum contender_state {
    CONTENDER_IDLE,        /* nothing at the server */
    CONTENDER_JOINING,     /* the create is under way */
    CONTENDER_STANDING_BY, /* race: another contender's node exists */
    CONTENDER_WAITING,     /* our node exists; a listing tells its position */
    CONTENDER_CONFIRMING,  /* first in the queue, too little time on the hold deadline */
    CONTENDER_HELD,
    CONTENDER_LEAVING, /* the node is being deleted, or requests are still under way */
    CONTENDER_ENDED,
};

/* Told once, when the hold of a contender is over, before its owner is told of a loss. */
struct hold_watcher {
    struct list link;
    void (*over)(struct hold_watcher *w);
};

/* What its owner asked for. */
struct contender_acquire {
    bool race;          /* as of the rule, which may be gone */
    bool elects;        /* likewise */
    int64_t joined;     /* when it was asked for */
    bool trying;        /* leave when not first */
    struct timer limit; /* the deadline; when HELD, the end of max_hold */
    struct timer pause; /* before what failed is tried again */
    unsigned failures;  /* in a row */
};

/* A node that our owner has already, whose number and place in the queue this contender takes over;
 * see contender_join.c. */
struct contender_downgrade {
    char *node;      /* NULL: it has a number of its own */
    const char *own; /* our own path then, in the same block */
};

/* Our node, valid from WAITING to LEAVING. */
struct contender_node {
    struct node_watch watch;
    int64_t session_id;
    int64_t token; /* its czxid; 0: not known yet */
    bool seen;     /* of this session, on this connection */
    char *data;    /* the spec's data and more; NULL: no more */
    size_t ndata;
};

/* Who is before us, as of the newest listing; see contender_turn.c. */
struct contender_queue {
    struct node_watch predecessor; /* the one just before us */
    /* The one before that: when it goes, `predecessor` is the holder. */
    struct node_watch before_predecessor;
    clave_async_watch *children; /* counted: on the children of the path; else NULL */
    bool listing;                /* a listing is under way */
    uint64_t listed_on;          /* connection of the newest one */
    bool plain;                  /* the names of all contenders in it were plain */
    size_t ahead;                /* how many are before us, as far as we know */
    bool left_over;              /* no session owns the predecessor's node */
    /* Connection of the newest answer that told of others before us. It survives a place that is
     * taken anew; a listing that shows nobody makes it 0. */
    uint64_t others_seen_on;
};

struct contender_grant {
    struct hold hold;
    bool holding; /* the client has `hold`: from when we are next to the end */
    struct confirm_waiter confirm;
    struct list watchers; /* of the present hold; empty in every state but HELD */
    bool asked_before;    /* somebody had asked when it was written again; to be told when HELD */
    int32_t restored; /* the version of our node after its data was written again; 0: it was not */
    int64_t end;      /* granted at + max_hold; CLAVE_NEVER: no limit */
};

struct contender_leaving {
    struct create_stake stake; /* in its node */
    bool failed;               /* it was not given up by its owner */
    bool again;                /* and joins again after that */
    bool must_delete;          /* the delete could not be submitted */
    contender_left *done;
    void *arg;
    clave_err err;
};

struct contender {
    const struct contender_spec *spec; /* NULL when the owner is */
    struct queue_place *place;         /* of the spec; NULL: its own */
    const char *uuid;                  /* of its name, when it has no place; NULL: it is drawn */
    size_t nth; /* of those that the place or the UUID has in one queue, counted from 0 */
    const struct contender_events *events;
    void *owner; /* NULL: given up */
    clave_async_client *client;
    const struct clave_mem *mem;
    enum contender_state state;
    unsigned busy; /* pending requests (but for those of the node watches), and running calls */
    struct listener listener; /* of the session */
    struct deadlock_schedule deadlock_schedule;
    const char *deadlock; /* `ended` with EDEADLOCK: the text; may be NULL */

    struct contender_acquire acquire;
    struct contender_downgrade downgrade;
    struct contender_node node;
    struct contender_queue queue;
    struct contender_grant grant;
    struct contender_leaving leaving;
};

/* ENOMEM. Takes all the memory that waiting and holding need. */
clave_err clave__contender_new(struct contender **out, clave_async_client *c,
                               const struct contender_spec *spec,
                               const struct contender_events *events, void *owner);

/* Begins. `deadline` is by the client's clock; one that has passed means: only if it is free now.
 * Fails as clave_async_create does; then the contender is freed. */
clave_err clave__contender_join(struct contender *c, int64_t deadline);

/* Before _join: takes the place of `node`, which our owner holds already (Curator's downgrade), if
 * that node still exists. ENOMEM: the contender is freed. */
clave_err clave__contender_downgrade(struct contender *c, const char *node);

/* Before _join: adds these fields to the data of its nodes, if the spec's data is in clave's form,
 * or is empty and `more` says more than whose they are. ENOMEM: the contender is freed. */
clave_err clave__contender_add_identity(struct contender *c, const clave_identity *more);

/* Gives up the place or the grant; no event follows. `left` (may be NULL) runs when the node is
 * certainly gone: inside this call when there is nothing to delete, or no server to ask. */
void clave__contender_leave(struct contender *c, contender_left *left, void *arg);

/* The same, when its owner has deleted the node itself, in a transaction; from WAITING on. */
void clave__contender_spend(struct contender *c);

/* Our node says this from now on: host, name and command of clave's form, or `text` of any other;
 * NULL stays as it is. `done` runs once, later: CLAVE_OK; ELOST, ENONODE: the place was lost; else
 * as of clave_async_get and _set. At once: ENOTHELD: there is no node. ENOMEM. ECLOSED. */
clave_err clave__contender_describe(struct contender *c, const clave_identity *said,
                                    contender_left *done, void *arg);

/* What its owner had is over, though the place may stay: tells the watchers. */
void clave__contender_end_hold(struct contender *c);

/* HELD: ends the hold after so many ms from now; 0: no limit. */
void clave__contender_limit(struct contender *c, int64_t max);

/* Counted: the limit has changed. */
void clave__contender_recount(struct contender *c);

/* Why an acquire that waits for this place ends now, at its deadline: EBUSY, EUNREACHABLE. All
 * recipes ask here, or clave__client_not_in_time while they have no place. */
clave_err clave__contender_not_in_time(const struct contender *c);

/* The text of a try's EBUSY, for clave_async_client_errmsg: how many own what is at the path (of
 * `len` characters), and how many more are before the try. */
void clave__contender_explain_busy(clave_async_client *c, const char *path, size_t len,
                                   size_t owners, size_t before);

/* The moment until which nobody else can hold it; HELD only. */
int64_t clave__contender_deadline(const struct contender *c);
/* What its holder has; HELD only. */
struct grant_facts clave__contender_facts(struct contender *c);

/* ---- between the files of the contender ------------------------------------------------------ */

/* The data for its node. */
const void *clave__contender_data(const struct contender *c, size_t *len);
/* The only function that changes the state. */
void clave__contender_enter(struct contender *c, enum contender_state to);
/* Around every call from the engine: the contender may free itself in _end. */
void clave__contender_begin(struct contender *c);
void clave__contender_end(struct contender *c);
/* Nothing of it is at the server, and nothing under way. */
void clave__contender_free(struct contender *c);

/* contender.c. Gives up: the owner gets `err`, the node is deleted. */
void clave__contender_fail(struct contender *c, clave_err err);
/* The same, when the node is gone. */
void clave__contender_fail_gone(struct contender *c, clave_err err);
/* The place is gone, or never was this session's (then `remove` its node): joins again. */
void clave__contender_start_over(struct contender *c, bool remove);
/* The grant is gone. */
void clave__contender_lose(struct contender *c, clave_err why, bool remove);
/* The place was given up: deletes our node, or leaves it to another process that may hold it. */
void clave__contender_give_up_node(struct contender *c);
/* Deletes this node; _own: ours, of an attempt that was given up. */
void clave__contender_remove_node(struct contender *c, const char *path);
void clave__contender_remove_own(struct contender *c);
/* A request failed: arms `pause` if the error may pass, fails otherwise. */
void clave__contender_retry_or_fail(struct contender *c, clave_err err);
/* The same for a request of a holder, which keeps what it holds. */
void clave__contender_check_later(struct contender *c);

/* contender_join.c. To JOINING, from a state without a node of ours; fails when the create cannot
 * be submitted. */
void clave__contender_join_again(struct contender *c);
/* STANDING_BY: reads and watches the other's node; the answers and events of that watch. */
void clave__contender_race_look(struct contender *c);
void clave__contender_race_rival_reply(struct node_watch *w, const clave_result *res);
void clave__contender_race_rival_event(struct node_watch *w, const clave_event *ev);
/* Before _join: a contender that has just had the node starts a moment later, so that the others
 * hear of its end first. Does nothing to one that queues. */
void clave__contender_race_delay(struct contender *c);

/* contender_turn.c. Takes the memory of the watches, and hears of the hold. ENOMEM. */
clave_err clave__contender_turn_init(struct contender *c);
/* The reply to a read of the predecessor: is its node left over? true: that is news. */
bool clave__contender_predecessor_left_over(struct contender *c, const clave_stat *stat);
/* The full path of the predecessor if it is left over; NULL: it is not. */
const char *clave__contender_left_over(const struct contender *c);
/* It is first in the queue, or need not be. */
void clave__contender_turn_has_come(struct contender *c);
/* WAITING: is it our turn? _by_listing uses this listing, _check asks for a new one. */
void clave__contender_turn_by_listing(struct contender *c, const char *const *names, size_t n);
void clave__contender_turn_check(struct contender *c);
/* HELD: looks at our node, and watches it. */
void clave__contender_turn_look(struct contender *c);

#endif
