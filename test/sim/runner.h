/* runner.h - `clave lock` as an actor: while it holds, its process supervises a command that a
 * second process, the guardian, has started and ends in time. The decisions are the shipped ones
 * (supervise/kill_policy, holder_policy, health_policy, notify_policy); the two processes, their
 * messages to each other, and the command are modelled here. Each may be stopped and killed by
 * itself, the machine may sleep. */
#ifndef CLAVE_SIM_RUNNER_H
#define CLAVE_SIM_RUNNER_H

#include "actor.h"
#include "command.h"
#include "fence.h"
#include "supervise/holder_policy.h"
#include "supervise/watchdog_policy.h"
#include "voice.h"
#include "work.h"

struct runner {
    struct runner *next; /* of the same machine */
    struct workload *load;
    struct actor *actor; /* the supervisor; NULL: its process is dead */
    struct hold hold;    /* that the command runs under */
    struct rand_state rng;
    char name[LOG_WHO]; /* of the guardian */

    int64_t page; /* the deadline that both look at */
    struct kill_policy_terms terms;
    struct holder_policy hold_policy;

    struct kill_policy kill_policy;
    struct alarm guardian; /* it looks */
    bool guardian_dead;
    int64_t guardian_stopped_to;
    bool guardian_was_stopped;
    bool told_to_stop, unhealthy;
    bool reported; /* that it has ended */
    bool swept;    /* by the supervisor */
    bool over;     /* nothing is left to look at */

    /* The watchdog of its machine, if this runner has it. */
    bool has_device;
    struct watchdog_policy watchdog;
    struct alarm device; /* it resets the machine; set: it counts down */
    bool feeds_late;     /* the guardian was stopped right before it feeds it, */
    bool fed_late;       /* some time */
    bool device_slept;   /* with the machine, some time: it counted on afterwards */
    int64_t device_left; /* asleep: so long before it fires; 0: it does not */

    struct fence fence;
    bool switched_off; /* by a fence: nothing of it starts any more */

    struct command command;
    struct work work;
    struct voice voice;
    bool work_begun;
    int64_t work_from;  /* true time from when its supervisor could look after it */
    int64_t voice_from; /* the same by its clock */
    bool was_away;
    bool in_hands; /* one of the two can end it, as far as was looked */
    int64_t in_hands_at;
    bool out_of_hands; /* neither could, some time */
};

/* The actor was granted its lock: runs a command under it. */
void runner_begin(struct actor *a);
/* At the end of each pass of its process. */
void runner_look(struct actor *a);
void runner_lose(struct actor *a);
/* Somebody wants the lock. */
void runner_stop(struct actor *a);
/* The supervisor's process dies. */
void runner_orphan(struct actor *a);

/* ---- what happens to it --------------------------------------------------------------- */

/* One whose guardian runs; NULL: there is none. */
struct runner *runner_any(struct workload *l);
void runner_stop_guardian(struct runner *w, int64_t us);
void runner_kill_guardian(struct runner *w);
/* All of a machine: asleep until they are woken; gone, without a trace. */
void runners_sleep(struct workload *l);
void runners_wake(struct workload *l);
void runners_lose_power(struct workload *l);
/* By another holder's fence. */
void runner_switch_off(struct runner *w);
/* SIGCONT to all guardians, and nothing sleeps in the kernel any more. */
void runners_recover(struct workload *l);
void runners_fini(struct workload *l);

/* For the checker: could the command do harm now, that the supervisor or the guardian could have
 * kept it from? */
bool runner_is_accountable(struct runner *w);
/* Its work was ill for longer than it may be. Call it at each look. */
bool runner_is_neglectful(struct runner *w);
/* Something of the command is awake, and the watchdog of its machine answers for it. */
bool runner_is_watched(const struct runner *w);
/* By its machine's clock the hold is over. */
bool runner_is_overdue(const struct runner *w);

#endif
