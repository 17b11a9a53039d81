/* cgroup.h - a control group (version 2) for the command, so that the kernel itself can kill every
 * process in it at once, however fast they fork (cgroup.kill, Linux 5.14). It helps but proves
 * nothing: a process may leave the group, as a login does, and often no group can be created.
 * proctree.h finds what is left.
 *
 * The group is created below the one this process is in, if that one is delegated to us: its
 * directory is writable and, where systemd runs, the unit has Delegate=. */
#ifndef CLAVE_CMD_RUN_GUARDIAN_CGROUP_H
#define CLAVE_CMD_RUN_GUARDIAN_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

enum { CGROUP_CAP = 1024 };

struct cgroup {
    char own[CGROUP_CAP];       /* the group that this process is in, as a directory */
    char path[CGROUP_CAP + 64]; /* the command's group; "": none */
};

/* Chooses the path, without creating the group. Copy the struct to every process that needs it
 * before the group is created. */
void cgroup_plan(struct cgroup *c);
/* Creates the group. If that fails, `path` becomes "". */
void cgroup_make(struct cgroup *c);
/* As fork, for a process with a single thread and a child that does nothing but exec. The child is
 * born into the group: moving it there later would cost milliseconds in the kernel. */
pid_t cgroup_fork(const struct cgroup *c);
/* Kills everything in the group except a local server (proctree.h), which is moved to our own
 * group. Harmless if the group was never created. */
void cgroup_kill(const struct cgroup *c);
/* The process is in the group or in one below it, so that cgroup_kill ends it, whoever's it is. */
bool cgroup_has(const struct cgroup *c, pid_t pid);
/* Removes the group and any that a nested `clave lock` left below it. A group that still has
 * processes stays. Harmless likewise. */
void cgroup_remove(const struct cgroup *c);

#endif
