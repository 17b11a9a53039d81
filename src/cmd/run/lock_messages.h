/* lock_messages.h - what `clave lock` and its like report on standard error: one line an event, or
 * a JSON object with --json. Standard output belongs to the command. */
#ifndef CLAVE_CMD_RUN_LOCK_MESSAGES_H
#define CLAVE_CMD_RUN_LOCK_MESSAGES_H

#include "cmd/run/run_flags.h"
#include "recipe/grant_held.h"

/* `holder`: NULL when it is not known. */
void lock_message_waiting(const struct run_plan *p, size_t ahead, const clave_participant *holder);
/* No server has answered yet: `fault` says why. Only with --json: see unreachable.h. */
void lock_message_connecting(const struct run_plan *p, const char *fault);
/* Waiting, and no server answers: `fault` says why. */
void lock_message_away(const struct run_plan *p, const char *fault);
/* Waiting, and nobody gets a lease: the node at `limit_path` holds no number of leases. */
void lock_message_no_limit(const struct run_plan *p, size_t ahead);
/* Waiting, and the server answers requests for a place in the queue with an operation timeout. */
#define LOCK_MESSAGE_PUT_OFF                                                                       \
    "the server gives nobody a place yet: it was restored from a backup, and grants nothing "      \
    "until "                                                                                       \
    "the sessions of before have expired"
void lock_message_put_off(const struct run_plan *p);
/* What was in the way, besides who was ahead. */
struct lock_obstacle {
    const char *away;                /* why no server answers; NULL when one does */
    bool put_off;                    /* the server gives nobody a place */
    bool limit_missing;              /* the node at `limit_path` holds no number of leases */
    const clave_participant *holder; /* the first that holds it; NULL: not known */
};
void lock_message_not_acquired(const struct run_plan *p, int64_t waited_ms,
                               const struct lock_obstacle *why);
/* The process that it is to end with has ended before the command was started. */
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
/* A process of the command cannot be ended, should that become necessary. */
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

#endif
