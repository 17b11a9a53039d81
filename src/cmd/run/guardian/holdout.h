/* holdout.h - holdouts: descendants that clave cannot end. There are two kinds: processes of
 * another user, which we may not signal (sudo and any other set-user-ID program), and processes
 * that SIGKILL has reached, but that wait in the kernel: it is pending while they sleep in state D,
 * or they are exiting and wait for a disk that closes their files. A process in the command's
 * control group is never a holdout, since the kernel ends it. User ids are not used to decide:
 * signal 0 is sent, and either it is refused or it is not. */
#ifndef CLAVE_CMD_RUN_GUARDIAN_HOLDOUT_H
#define CLAVE_CMD_RUN_GUARDIAN_HOLDOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/run/guardian/cgroup.h"
#include "supervise/kill_policy.h"

enum { HOLDOUT_NAME_CAP = 64, HOLDOUT_TEXT_CAP = 160, HOLDOUT_UNKNOWN = -1 };

struct holdout {
    pid_t pid;                   /* 0: no process */
    int64_t uid;                 /* user that it runs as; HOLDOUT_UNKNOWN: /proc does not tell */
    char name[HOLDOUT_NAME_CAP]; /* name of its program, as in /proc; may be "" */
    /* true: it sleeps, and SIGKILL takes effect when it wakes; false: it refuses signals */
    bool asleep;
};

struct holdouts {
    struct holdout first; /* one that has no holdout among its ancestors */
    int n;
};

/* Looks at every descendant of this process. `c` is the command's control group, if it has one. */
void holdout_look(struct holdouts *out, const struct cgroup *c);
/* True if nothing but these holdouts is left of the `alive` processes that proctree_kill
 * counted. */
static inline bool holdout_is_all(const struct holdouts *h, int alive)
{
    return h->n > 0 && alive <= h->n;
}
/* True if the holdouts are worth reporting. A sleeping process counts as a holdout only after
 * SIGKILL has been tried for so long that the attempts have become rare; most just wait for a disk
 * for a moment. */
static inline bool holdout_is_certain(const struct holdouts *h, int64_t pace_ms)
{
    return h->n > 0 && (!h->first.asleep || pace_ms >= KILL_POLICY_SLOWEST_MS);
}
/* True if the process `pid` refuses our signals; then fills in *out. */
bool holdout_refuses(struct holdout *out, pid_t pid);
/* For example "process 1234 (sudo) of user root"; the name is made printable. */
const char *holdout_text(const struct holdout *h, char out[HOLDOUT_TEXT_CAP]);
/* "root", or the number of any other user: the user database may be on another machine, so it is
 * not asked. */
const char *holdout_user(const struct holdout *h, char out[HOLDOUT_NAME_CAP]);

#endif
