/* terminal.c - tcsetpgrp for terminal.h; child.c calls it. The foreground is only ever given or
 * taken while this process or the command has it. */
#include "cmd/cli/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

void terminal_open(struct terminal *t)
{
    *t = (struct terminal){.fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};
}

/* A background process would be stopped by this. */
static bool terminal_set_foreground(const struct terminal *t, pid_t group)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTTOU);
    sigprocmask(SIG_BLOCK, &set, &before);
    bool done = tcsetpgrp(t->fd, group) == 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return done;
}

bool terminal_lend(struct terminal *t, pid_t group)
{
    if (t->fd < 0 || group <= 0 || tcgetpgrp(t->fd) != getpgrp() ||
        !terminal_set_foreground(t, group))
        return false;
    t->lent = group;
    return true;
}

bool terminal_take(struct terminal *t)
{
    pid_t group = t->lent;
    t->lent = 0;
    return group != 0 && tcgetpgrp(t->fd) == group && terminal_set_foreground(t, getpgrp());
}
