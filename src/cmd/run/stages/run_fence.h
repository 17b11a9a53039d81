/* run_fence.h - --fence: makes sure that nothing of the last holder can act any more before the
 * command starts; a stage of once_and_min_hold.h. The rules are in supervise/fence_policy.h. The
 * fence is a shell command, which the guardian supervises like the command itself, so it ends
 * before another participant can hold the lock. The mark that shows whether a fence is due is that
 * of the lock delay. */
#ifndef CLAVE_CMD_RUN_RUN_FENCE_H
#define CLAVE_CMD_RUN_RUN_FENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "clave/async/client.h"
#include "cmd/run/guardian/guardian.h"
#include "recipe/lock/held_mark.h"
#include "supervise/fence_policy.h"

struct run_plan;
struct runner;

enum { RUN_FENCE_TIMEOUT_MS = 60000, RUN_FENCE_MARK_CAP = 64 };

struct run_fence_plan {
    const char *command; /* of a shell; NULL: nothing is fenced */
    int64_t timeout_ms;  /* 0: RUN_FENCE_TIMEOUT_MS */
    enum fence_fails fails;
    bool foreign;                      /* also fences a holder that leaves no marks */
    const char *options;               /* a flag that needs `command`; NULL: none was given */
    char *argv[4];                     /* of `runs` */
    struct command runs;               /* what the guardian runs */
    char harmless[RUN_FENCE_MARK_CAP]; /* the mark of an earlier term of this process; "": none */
};

struct run_fence {
    struct fence_policy policy;
    struct fence_target target;
    int64_t began;
    uv_timer_t pause;
    /* The participant right before us in the queue, if it leaves no mark: its node's data. */
    struct {
        bool known;
        int64_t token;
        char *data;
        size_t n;
        clave_identity identity; /* points into `data` */
    } before;
    char *asked; /* path of the node that is being read; NULL: none */
};

/* How an attempt has ended. */
struct run_fence_end {
    bool refused;   /* the fence could not be started */
    bool timed_out; /* the fence was ended after --fence-timeout */
    int code;       /* its exit code, as a shell counts */
};

/* Parses a flag (ids in run_flags.h); -1: the flag is none of these; 0: its value is invalid, and a
 * message has been printed. */
int run_fence_take_flag(struct run_plan *p, int id);
/* Checks that the flags go together, and prepares the command. Returns EXIT_OK, or an exit code
 * after a message. */
int run_fence_check(struct run_plan *p);
void run_fence_open(struct runner *r); /* opens its libuv handle */
/* The participant before us is now this one. */
void run_fence_moved(struct runner *r, const char *predecessor);
/* The lock is granted: what the recipe of the mark is told. Returns `out`, which points to
 * `unmarked`, or NULL without --fence. */
const struct held_mark_fence *run_fence_begin(struct runner *r, struct held_mark_fence *out,
                                              struct held_mark *unmarked);
/* From child.c: the fence has ended, and the hold is still ours. */
void run_fence_ended(struct runner *r, const struct run_fence_end *end);
/* The lock is about to be released. What clave has run is certainly gone, so if the lock was lost
 * and `elect --forever` executes this program again, its next term need not fence itself. */
void run_fence_release(struct runner *r);
void run_fence_close(struct runner *r); /* closes its libuv handle */
void run_fence_free(struct runner *r);

#endif
