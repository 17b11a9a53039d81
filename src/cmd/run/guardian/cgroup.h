/* cgroup.h - a control group (version 2) for the command, so that the kernel itself can kill every
 * process in it at once, however fast they fork (cgroup.kill, Linux 5.14). This helps, but it
 * proves nothing: a process may leave the group, as a login does, and on many systems no group can
 * be created. proctree.h finds what is left.
 *
 * The group is created below the one that this process is in, if that one is delegated to us: its
 * directory is writable and, where systemd runs, the unit has Delegate=. */
#ifndef CLAVE_CMD_RUN_GUARDIAN_CGROUP_H
#define CLAVE_CMD_RUN_GUARDIAN_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

enum { CGROUP_CAP = 1024 };

struct cgroup {
    char own[CGROUP_CAP];       /* the directory of the group that this process is in */
    char path[CGROUP_CAP + 64]; /* the directory of the command's group; "": it has none */
};

/* Chooses the path, but does not create the group yet. Call this before forking, so that every
 * process that needs the group has a copy of the struct. */
void cgroup_plan(struct cgroup *c);
/* Creates the group. If that fails, `path` becomes "", and the other functions do nothing. */
void cgroup_make(struct cgroup *c);
/* Like fork, for a process with a single thread whose child does nothing but exec. The child is
 * born in the group, since moving it there later would take the kernel milliseconds. */
pid_t cgroup_fork(const struct cgroup *c);
/* Kills everything in the group, except for a local server (proctree.h), which is moved to our own
 * group. Does nothing if the group was never created. */
void cgroup_kill(const struct cgroup *c);
/* True if the process is in the group or in a group below it. If so, cgroup_kill ends it, no matter
 * which user it runs as. */
bool cgroup_has(const struct cgroup *c, pid_t pid);
/* Removes the group and any group that a nested `clave lock` left below it. A group that still has
 * processes stays. Does nothing if the group was never created. */
void cgroup_remove(const struct cgroup *c);

#endif
