/* cgroup.h - a control group (version 2) of the command's own, so that the kernel itself kills all
 * that is in it, at once and whoever starts whom (cgroup.kill, Linux 5.14). It is a help, not what
 * counts: a process may leave it, as a login does, and often none can be made. proctree.h finds
 * what is left.
 *
 * It is made below the group that this process is in, where that is ours to divide: the directory
 * can be written to, and where systemd runs, the unit says Delegate=. */
#ifndef CLAVE_CMD_RUN_CGROUP_H
#define CLAVE_CMD_RUN_CGROUP_H

#include <sys/types.h>

enum { CGROUP_CAP = 1024 };

struct cgroup {
    char own[CGROUP_CAP];       /* the directory of the group that this process is in */
    char path[CGROUP_CAP + 64]; /* of the command's; "": there is none */
};

/* Where it would be. To be copied to all who have to do with it, before it is made. */
void cgroup_plan(struct cgroup *c);
/* Makes it. Where that cannot be, there is none. */
void cgroup_make(struct cgroup *c);
/* As fork, by a process with one thread only, for a child that does nothing but exec: it is born
 * into the group. (Moving it there later would take the kernel milliseconds.) */
pid_t cgroup_fork(const struct cgroup *c);
/* Kills all that is in it but a local server (proctree.h), which is put to where we are. Harmless
 * when it was never made. */
void cgroup_kill(const struct cgroup *c);
/* With those that `clave lock` under it has left; likewise. One that has processes stays. */
void cgroup_remove(const struct cgroup *c);

#endif
