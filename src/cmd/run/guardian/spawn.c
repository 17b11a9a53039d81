/* spawn.c - forks and executes the command; only the guardian calls it. A failed exec is reported
 * through a pipe that a successful one closes. */
#include "cmd/run/guardian/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cli/diag.h"

static _Noreturn void spawn_become(char *const *argv, const struct inheritance *before,
                                   pid_t parent, bool same_user, int fault)
{
    int error = 0;
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        (same_user && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0))
        error = errno;
    if (getppid() != parent) /* it died before we asked to die with it */
        _exit(EXIT_INTERNAL);
    inheritance_restore(before);
    if (error == 0) {
        execvp(argv[0], argv);
        error = errno;
    }
    ssize_t ignored = write(fault, &error, sizeof error);
    (void)ignored;
    _exit(EXIT_NOTFOUND);
}

pid_t spawn_command(char *const *argv, const struct inheritance *before,
                    const struct cgroup *cgroup, bool same_user)
{
    int ends[2], error = 0;
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return SPAWN_NO_PROCESS;
    pid_t pid = cgroup_fork(cgroup);
    if (pid == 0)
        spawn_become(argv, before, parent, same_user, ends[1]);
    int fork_error = errno;
    close(ends[1]);
    ssize_t n = 0;
    if (pid > 0) {
        setpgid(pid, pid); /* as the child does itself: whichever is first */
        while ((n = read(ends[0], &error, sizeof error)) < 0 && errno == EINTR)
            continue;
    }
    close(ends[0]);
    if (pid < 0) {
        errno = fork_error;
        return SPAWN_NO_PROCESS;
    }
    if (n != (ssize_t)sizeof error)
        return pid; /* the pipe was closed by exec */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    errno = error;
    return -1;
}

int spawn_exit_code(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return EXIT_NOTFOUND;
    case EAGAIN: /* out of processes: nothing is wrong with the command */
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return EXIT_INTERNAL;
    default:
        return EXIT_NOEXEC;
    }
}
