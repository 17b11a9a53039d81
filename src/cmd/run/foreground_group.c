/* foreground_group.c - tcsetpgrp for foreground_group.h; child.c calls it. The foreground is only
 * ever given or taken while this process or the command has it. */
#include "cmd/run/foreground_group.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

void foreground_group_open(struct foreground_group *t)
{
    *t = (struct foreground_group){.fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};
}

/* A background process would be stopped by this. */
static bool foreground_group_set_foreground(const struct foreground_group *t, pid_t group)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTTOU);
    sigprocmask(SIG_BLOCK, &set, &before);
    bool done = tcsetpgrp(t->fd, group) == 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return done;
}

bool foreground_group_lend(struct foreground_group *t, pid_t group)
{
    if (t->fd < 0 || group <= 0 || tcgetpgrp(t->fd) != getpgrp() ||
        !foreground_group_set_foreground(t, group))
        return false;
    t->lent = group;
    return true;
}

bool foreground_group_take(struct foreground_group *t)
{
    pid_t group = t->lent;
    t->lent = 0;
    return group != 0 && tcgetpgrp(t->fd) == group && foreground_group_set_foreground(t, getpgrp());
}
