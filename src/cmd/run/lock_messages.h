/* lock_messages.h - what `clave lock` and its like report on standard error: a line for each event,
 * or with --json an object. Standard output belongs to the command.
 *
 * A struct lock_wait tells the user what a wait is waiting for: on a terminal by a line that is
 * redrawn, elsewhere by a message whenever that has changed. The runner tells it of each move in
 * the queue; it asks the server for the holder itself, at long intervals. The other messages are
 * printed as the runner asks for them. */
#ifndef CLAVE_CMD_RUN_LOCK_MESSAGES_H
#define CLAVE_CMD_RUN_LOCK_MESSAGES_H

#include <uv.h>

#include "clave/uv.h"
#include "cmd/cli/unreachable.h"
#include "cmd/run/run_flags.h"
#include "cmd/run/run_recipe.h"
#include "recipe/grant_held.h"

/* What kept the lock from being acquired. */
struct lock_obstacle {
    const char *away;                /* why no server answers; NULL: one does */
    bool put_off;                    /* the server gives nobody a place */
    bool limit_missing;              /* the node at `limit_path` holds no number of leases */
    const clave_participant *holder; /* the first that holds it; NULL: not known */
    const char *left_over; /* the name of a node before it that no session owns; NULL: none */
};
void lock_message_not_acquired(const struct run_plan *p, int64_t waited_ms,
                               const struct lock_obstacle *why);
/* --with-parent: the parent has ended before the command was started. */
void lock_message_parent_ended(const struct run_plan *p, int64_t waited_ms);
/* A warning of the library, which names the path itself. */
void lock_message_warning(const struct run_plan *p, const char *msg);
void lock_message_deadlock(const struct run_plan *p, const char *text);
/* Lists the permissions that queueing needs; returns the exit code. */
int lock_message_unauthorised(const struct run_plan *p);
/* The lock is held by the `clave lock` that this one runs under. */
void lock_message_nested(const struct run_plan *p, const clave_participant *outer);
void lock_message_acquired(const struct run_plan *p, const struct grant_facts *g,
                           int64_t waited_ms);
/* The connection is back (`up`), or lost with `left_ms` until the hold deadline. */
void lock_message_connection(const struct run_plan *p, bool up, int64_t left_ms);
void lock_message_lost(const struct run_plan *p, clave_err why);
/* Another participant asked us to release the lock, or the leader to resign. */
void lock_message_asked(const struct run_plan *p);
/* A process of the command could not be ended if that became necessary. */
void lock_message_holdout(const struct run_plan *p, const struct holdout *h);
/* The command is being killed, and this process of it cannot be. `lost`: others may hold the lock
 * before it has ended. */
void lock_message_stuck(const struct run_plan *p, const struct holdout *h, bool lost);
/* A signal that was to be passed on to the command was refused. */
void lock_message_denied(const struct run_plan *p, const struct holdout *h, int sig);
void lock_message_ending(const struct run_plan *p, enum kill_policy_cause cause);
/* The previous holder lost the lock: the command starts `delay_ms` later. */
void lock_message_delay(const struct run_plan *p, const clave_identity *who, int64_t delay_ms);
/* --once: the command has run already. */
void lock_message_done(const struct run_plan *p, const clave_once_record *former);
/* The command has ended; the minimum hold lasts `left_ms` more. */
void lock_message_resting(const struct run_plan *p, int64_t left_ms);
void lock_message_ended(const struct run_plan *p, int code, int64_t held_ms);

/* ---- a wait ---------------------------------------------------------------------------------- */

/* `holder`: the first that holds it; NULL: not known. Valid during the call. */
typedef void lock_wait_holder(void *arg, const clave_participant *holder);

struct lock_wait {
    const struct run_plan *plan;
    const struct acquisition *acquisition;
    clave_async_client *client;
    clave_uv *uv;
    uv_timer_t timer;
    bool live;    /* a terminal: the line is redrawn */
    bool drawn;   /* the line is on the screen */
    bool waiting; /* between _begin and _end */
    bool queued;  /* it has had a place */
    bool asking;
    lock_wait_holder *found; /* of _find_holder, until it is called */
    void *found_arg;
    bool reported_disconnected;  /* that no server is answering */
    bool reported_limit_missing; /* that the number of leases is missing */
    bool reported_put_off;       /* that the server gives nobody a place */
    struct unreachable reach;    /* until there is a session */
    int64_t began;
    size_t ahead;
    char predecessor[256]; /* name of the node right before ours */
    char left_over[256];   /* the same, if no session owns it; "": it is not so */
    /* While the holder is asked for: the requests under way, and what was answered. */
    size_t pending;
    clave_participant holder;
    char *holder_data; /* what `holder` points into; NULL: no answer yet */
    /* What was reported last, so that only changes are. */
    size_t reported_ahead;
    int64_t reported_holder; /* its token; 0: none */
};

void lock_wait_init(struct lock_wait *p, const struct run_plan *plan, uv_loop_t *loop);
/* No server is connected yet; the client tries until `until`. */
void lock_wait_connect(struct lock_wait *p, clave_async_client *c, int64_t until);
void lock_wait_begin(struct lock_wait *p, const struct acquisition *acquisition,
                     clave_async_client *c, clave_uv *uv);
/* `ahead` participants are before us; `predecessor` is the path of the node right before ours, and
 * so is `left_over` if no session owns it (NULL: not so). */
void lock_wait_moved(struct lock_wait *p, size_t ahead, const char *predecessor,
                     const char *left_over);
/* The name of a node before ours that no session owns: the first of the queue, or the one right
 * before ours. NULL: none is known. */
const char *lock_wait_left_over(const struct lock_wait *p, const clave_participant *holder);
/* The server gives nobody a place: it was restored from a backup, and waits for the sessions of
 * before to expire. */
bool lock_wait_is_put_off(const struct lock_wait *p);
/* Clears the line until it is drawn again, because a message is about to be printed. */
void lock_wait_clear(struct lock_wait *p);
/* Asks for the present holder, also after _end, and calls `found`. false: it cannot be asked. */
bool lock_wait_find_holder(struct lock_wait *p, lock_wait_holder *found, void *arg);
/* Clears the line for good. Harmless at any time. */
void lock_wait_end(struct lock_wait *p);
void lock_wait_close(struct lock_wait *p); /* its handle */

#endif
