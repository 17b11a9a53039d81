/* holdout.h - descendants that clave cannot end: another user's, to whom this process may send no
 * signal (sudo, and whatever else is set-user-ID), and those that sleep in the kernel where SIGKILL
 * does not reach them (state D). Those in the command's control group are none: the kernel ends
 * them. Nothing is inferred from user ids: signal 0 is sent, and it is refused or not. */
#ifndef CLAVE_CMD_RUN_GUARDIAN_HOLDOUT_H
#define CLAVE_CMD_RUN_GUARDIAN_HOLDOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/run/guardian/cgroup.h"
#include "supervise/kill_policy.h"

enum { HOLDOUT_NAME_CAP = 64, HOLDOUT_TEXT_CAP = 160, HOLDOUT_UNKNOWN = -1 };

struct holdout {
    pid_t pid;   /* 0: none */
    int64_t uid; /* the user that it runs as; HOLDOUT_UNKNOWN: /proc does not tell */
    char name[HOLDOUT_NAME_CAP]; /* of its program, as /proc has it; may be "" */
    bool asleep;                 /* SIGKILL waits until it wakes; else signals are refused */
};

struct holdouts {
    struct holdout first; /* one whose ancestors are none */
    int n;
};

/* Looks at every descendant of this process. `c`: the command's group, if any. */
void holdout_look(struct holdouts *out, const struct cgroup *c);
/* Nothing but these is left of the `alive` that proctree_kill has counted. */
static inline bool holdout_is_all(const struct holdouts *h, int alive)
{
    return h->n > 0 && alive <= h->n;
}
/* There are some; what sleeps is one when SIGKILL has been tried for so long that the attempts have
 * become rare, not for a moment's wait for a disk. */
static inline bool holdout_is_certain(const struct holdouts *h, int64_t pace_ms)
{
    return h->n > 0 && (!h->first.asleep || pace_ms >= KILL_POLICY_SLOWEST_MS);
}
/* Is this a process that refuses our signals? Then fills in *out. */
bool holdout_refuses(struct holdout *out, pid_t pid);
/* "process 1234 (sudo) of user root"; the name is printable. */
const char *holdout_text(const struct holdout *h, char out[HOLDOUT_TEXT_CAP]);
/* "root", or its number: a user database may be on another machine, and is not asked. */
const char *holdout_user(const struct holdout *h, char out[HOLDOUT_NAME_CAP]);

#endif
