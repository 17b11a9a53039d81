/* lock_messages.h - what `clave lock` and the verbs like it report on standard error: one line per
 * event, or with --json one object. Standard output belongs to the command.
 *
 * A struct lock_wait tells the user what a wait is waiting for: on a terminal in a line that is
 * redrawn, elsewhere in a message whenever that changes. The runner tells it about every move in
 * the queue; it asks the server for the holder on its own, at long intervals. All other messages
 * are printed when the runner asks for them. */
#ifndef CLAVE_CMD_RUN_LOCK_MESSAGES_H
#define CLAVE_CMD_RUN_LOCK_MESSAGES_H

#include <uv.h>

#include "clave/uv.h"
#include "cmd/cli/unreachable.h"
#include "cmd/run/run_flags.h"
#include "cmd/run/run_recipe.h"
#include "recipe/grant_held.h"

/* Why the lock was not acquired. The first member that is set counts. */
struct lock_obstacle {
    const char *away;      /* why no server answers; NULL: one does */
    bool put_off;          /* the server gives nobody a place in the queue */
    const char *unhealthy; /* why this candidate does not stand; NULL: it does */
    bool limit_missing;    /* the node at `limit_path` does not contain a number of leases */
    const clave_participant *holder; /* the first holder; NULL: not known */
    const char *left_over; /* name of a node before ours that no session owns; NULL: none */
};
void lock_message_not_acquired(const struct run_plan *p, int64_t waited_ms,
                               const struct lock_obstacle *why);
/* `holds`: the work of the holder is unhealthy, and is being ended. Otherwise this candidate is
 * unhealthy, and does not queue. `why` is what the check said. */
void lock_message_unhealthy(const struct run_plan *p, bool holds, const char *why);
/* The candidate queues again. */
void lock_message_healthy(const struct run_plan *p);
/* The holder's check failed `n` times in a row, which is not too often yet. */
void lock_message_ailing(const struct run_plan *p, int n, const char *why);
/* The command has reported with sd_notify(3) that it is ready, `after_ms` after the lock was
 * granted; that it is stopping; and what its status is. */
void lock_message_ready(const struct run_plan *p, int64_t after_ms);
void lock_message_stopping(const struct run_plan *p);
void lock_message_status(const struct run_plan *p, const char *status);
/* --with-parent: the parent has ended before the command was started. */
void lock_message_parent_ended(const struct run_plan *p, int64_t waited_ms);
/* A warning from the library. Its text names the path. */
void lock_message_warning(const struct run_plan *p, const char *msg);
void lock_message_deadlock(const struct run_plan *p, const char *text);
/* Lists the permissions that queueing needs. Returns the exit code. */
int lock_message_unauthorised(const struct run_plan *p);
/* The lock is held by the `clave lock` that this one runs under, so waiting would never end. */
void lock_message_nested(const struct run_plan *p, const clave_participant *outer);
void lock_message_acquired(const struct run_plan *p, const struct grant_facts *g,
                           int64_t waited_ms);
/* The connection is back (`up`), or it is lost and `left_ms` remain until the hold deadline. */
void lock_message_connection(const struct run_plan *p, bool up, int64_t left_ms);
void lock_message_lost(const struct run_plan *p, clave_err why);
/* --in-place: this program goes on in place of another, with the lock; or it is not replaced
 * itself. */
void lock_message_replaced(const struct run_plan *p, int64_t token);
void lock_message_not_replaced(const struct run_plan *p, const char *why);
/* Another participant asked us to release the lock, or asked the leader to resign. */
void lock_message_asked(const struct run_plan *p);
/* The command has a process that could not be ended if that became necessary. */
void lock_message_holdout(const struct run_plan *p, const struct holdout *h);
/* The command is being killed, but this process of it cannot be. `lost`: others may hold the lock
 * before it has ended. */
void lock_message_stuck(const struct run_plan *p, const struct holdout *h, bool lost);
/* A signal that should have been passed on to the command was refused. */
void lock_message_denied(const struct run_plan *p, const struct holdout *h, int sig);
void lock_message_ending(const struct run_plan *p, enum kill_policy_cause cause);
/* --watchdog: the device was started; it cannot be used (returns the exit code for the case that it
 * is required); it is not fed any more. */
void lock_message_armed(const struct run_plan *p, int64_t timeout_ms);
int lock_message_unarmed(const struct run_plan *p, const struct watchdog_trouble *t,
                         int64_t session_ms);
void lock_message_starved(const struct run_plan *p);
/* The previous holder lost the lock: the command starts in `delay_ms`. */
void lock_message_delay(const struct run_plan *p, const clave_identity *who, int64_t delay_ms);
/* --fence: the last holder is being fenced; it was fenced; the attempt has failed, and another one
 * follows after pause_ms (0: none follows); it is not fenced, because it leaves no mark
 * (--fence-foreign). */
void lock_message_fencing(const struct run_plan *p, const struct fence_target *t);
void lock_message_fenced(const struct run_plan *p, int64_t took_ms);
void lock_message_fence_failed(const struct run_plan *p, const struct run_fence_end *end,
                               int64_t took_ms, int64_t pause_ms);
void lock_message_unfenced(const struct run_plan *p, const clave_identity *who);
/* --once: the command has been run already. */
void lock_message_done(const struct run_plan *p, const clave_once_record *former);
/* --resume: the lock that the previous process left goes on, with its token. */
void lock_message_resumed(const struct run_plan *p, int64_t token);
/* --resume: the lock was left to the next process, which has `timeout_ms` to resume it. */
void lock_message_handed_over(const struct run_plan *p, int64_t timeout_ms);
/* The command has ended; the minimum hold lasts for another `left_ms`. */
void lock_message_resting(const struct run_plan *p, int64_t left_ms);
void lock_message_ended(const struct run_plan *p, int code, int64_t held_ms);

/* ---- a wait ---------------------------------------------------------------------------------- */

/* `holder` is the first holder, valid only during the call; NULL: not known. */
typedef void lock_wait_holder(void *arg, const clave_participant *holder);

struct lock_wait {
    const struct run_plan *plan;
    const struct acquisition *acquisition;
    clave_async_client *client;
    clave_uv *uv;
    uv_timer_t timer;
    bool live;    /* standard error is a terminal: the line is redrawn */
    bool drawn;   /* the line is on the screen */
    bool waiting; /* between lock_wait_begin and lock_wait_end */
    bool queued;  /* we have had a place in the queue */
    bool asking;
    lock_wait_holder *found; /* callback of lock_wait_find_holder, until it has been called */
    void *found_arg;
    bool reported_disconnected;  /* no server is answering */
    bool reported_limit_missing; /* the number of leases is missing */
    bool reported_put_off;       /* the server gives nobody a place */
    struct unreachable reach;    /* used until there is a session */
    int64_t began;
    size_t ahead;
    char predecessor[256]; /* name of the node right before ours */
    char left_over[256];   /* the same name if no session owns that node, else "" */
    /* Used while the holder is asked for: how many requests are under way, and what has been
     * answered. */
    size_t pending;
    clave_participant holder;
    char *holder_data; /* memory that `holder` points into; NULL: no answer yet */
    /* The state that was reported last, so that only changes are reported. */
    size_t reported_ahead;
    int64_t reported_holder; /* token of the holder; 0: none; -1: to be reported again */
};

void lock_wait_init(struct lock_wait *p, const struct run_plan *plan, uv_loop_t *loop);
/* No server is connected yet; the client keeps trying until `until`. */
void lock_wait_connect(struct lock_wait *p, clave_async_client *c, int64_t until);
void lock_wait_begin(struct lock_wait *p, const struct acquisition *acquisition,
                     clave_async_client *c, clave_uv *uv);
/* `ahead` participants are before us. `predecessor` is the path of the node right before ours;
 * `left_over` is the same path if no session owns that node, else NULL. */
void lock_wait_moved(struct lock_wait *p, size_t ahead, const char *predecessor,
                     const char *left_over);
/* The name of a node before ours that no session owns: the first of the queue (`holder`), or the
 * one right before ours. NULL: none is known. */
const char *lock_wait_left_over(const struct lock_wait *p, const clave_participant *holder);
/* True if the server gives nobody a place: it was restored from a backup, and waits until the
 * sessions in that backup have expired. */
bool lock_wait_is_put_off(const struct lock_wait *p);
/* Clears the line because a message is about to be printed; it is drawn again later. */
void lock_wait_clear(struct lock_wait *p);
/* Asks the server for the present holder and calls `found` once. May be called after lock_wait_end.
 * false: the server cannot be asked, and `found` is not called. */
bool lock_wait_find_holder(struct lock_wait *p, lock_wait_holder *found, void *arg);
/* Clears the line for good. Harmless at any time. */
void lock_wait_end(struct lock_wait *p);
void lock_wait_close(struct lock_wait *p); /* closes its libuv handles */

#endif
