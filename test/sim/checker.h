/* checker.h - the invariants, on true time. */
#ifndef CLAVE_SIM_CHECKER_H
#define CLAVE_SIM_CHECKER_H

#include "history.h"
#include "keeper.h"
#include "registrant.h"
#include "server_host.h"
#include "slot_world.h"
#include "tally.h"
#include "token_set.h"
#include "unguarded.h"
#include "workload.h"

enum { CHECKED_HOSTS = 8, TAKEN_NODES = 64 };

struct checked_lock {
    int64_t last_token;      /* of the newest grant */
    int64_t last_write;      /* of a read-write lock: the newest write's */
    struct token_set tokens; /* of all grants */
    int64_t disturbed_until; /* an operator has deleted nodes: the order is not as it should */
    bool disturbed;          /* ever */
    struct history history;
    uint64_t acknowledged; /* guarded writes */
    uint64_t unknown;
    /* The token that wrote version i + 1 of the counter, as far as somebody was told. */
    int64_t *writers;
    size_t nwriters;
    struct unguarded unguarded;
    /* Token of the last command that was started after a mark, until its end was in order or it was
     * fenced; 0: none. */
    int64_t unfenced;
};

struct taken_node {
    char path[PATH_SIZE];
    int64_t at;
};

struct checker {
    struct world *w;
    struct server_host *server;
    struct workload *loads[CHECKED_HOSTS];
    size_t nloads;
    struct checked_lock locks[LOCKS];
    int64_t *sessions; /* of all clients, the ended ones too */
    size_t nsessions;
    struct taken_node taken[TAKEN_NODES]; /* the newest, in a ring buffer */
    size_t ntaken;
    struct znode_world znodes;
    struct slot_world slots;
    struct keeper_world kept;
    struct tally_world tally;
    struct registration_world registrations;
    int64_t grace_us;  /* after so long its holder must have heard of it */
    int64_t calm_from; /* faults have ended, and everybody has heard of all; 0: not yet */
    bool restores;     /* a backup may be restored: */
    bool restored;     /* what was written may be gone */
    bool used_up;      /* a counter is near its end: acquires may be refused */
    uint64_t looks;
    uint64_t overlaps; /* of them, of holds valid by their clocks only */
};

/* A sequence counter has ended: the client sees it in its own number, the server gives no more. */
static inline bool checker_counter_ended(clave_err err)
{
    return err == CLAVE_ESEQUENCE || err == CLAVE_EBADARGS;
}

void checker_init(struct checker *c, struct world *w, struct server_host *server);
void checker_fini(struct checker *c);

/* Clocks are off by more than the margin covers: a hold may be valid by its clock and over in
 * truth. Then that is counted, once for each call, and nothing is broken. */
bool checker_is_beyond(struct checker *c);
/* After every step: nobody holds too much, each has its node and its turn, LOST is heard. */
void checker_look(struct checker *c);

/* A client has a new session. */
void checker_session(struct checker *c, const char *name, int64_t id);
void checker_asked(struct checker *c, struct actor *a);
void checker_queued(struct checker *c, struct actor *a);
void checker_granted(struct checker *c, struct actor *a, unsigned nth);
/* A command is started under this hold, by a runner that leaves marks. */
void checker_command_starts(struct checker *c, const struct hold *h);
/* Nothing is left of it, as its supervisor knows; somebody has fenced it. */
void checker_ended_in_order(struct checker *c, unsigned lock, int64_t token);
void checker_fenced(struct checker *c, unsigned lock, int64_t token);
/* It is given back, or lost. */
void checker_ended(struct checker *c, const struct actor *a, unsigned nth);
/* All leader watchers were told of this term. */
bool checker_is_seen(const struct checker *c, unsigned lock, int64_t term);
/* Somebody waits for this lock. */
bool checker_is_wanted(const struct checker *c, unsigned lock);

/* Somebody deletes this node while it has its turn: a holder of it, or one that is about to learn
 * that it holds, is told a while later, and no client can help that. */
void checker_taken(struct checker *c, const char *node);
/* A while ago at most: its holder need not have heard of it. */
bool checker_was_taken(const struct checker *c, const char *node);
/* The server goes on from a backup. */
void checker_restored(struct checker *c);
/* Somebody has deleted nodes of this lock. */
void checker_disturbed(struct checker *c, unsigned lock);

/* checker_counters.c: what was written under the locks, and the end of the day. */
void checker_written(struct checker *c, const struct actor *a, int32_t version);
void checker_unknown(struct checker *c, const struct actor *a);
void checker_count(struct checker *c);

#endif
