/* inherited_fds.c - see inherited_fds.h. main.c notes the state, and everything that executes a
 * program restores it. */
#include "cmd/cli/inherited_fds.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    int number;
    void (*handler)(int number);
} changed[INHERITANCE_SIGNALS] = {
    {SIGTERM, SIG_DFL}, {SIGCHLD, SIG_DFL}, {SIGPIPE, SIG_IGN}, {SIGXFSZ, SIG_IGN}};

/* If one of these were left closed, the next socket would get its number, and output would be
 * written to the socket. Writing to a missing stdout has to fail, so /dev/null is opened for
 * reading; reading from a missing stdin has to fail too (otherwise `clave set PATH -` would write
 * an empty value), so it is opened for writing. O_CLOEXEC lets a child find the descriptor closed,
 * as we did. */
bool inheritance_hold_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        if (open("/dev/null", (fd == 1 ? O_RDONLY : O_WRONLY) | O_CLOEXEC) != fd)
            return false;
    }
    return true;
}

void inheritance_take(struct inheritance *out)
{
    sigset_t none;
    out->parent = getppid();
    out->umask = umask(S_IRWXG | S_IRWXO);
    umask(out->umask & (S_IRWXG | S_IRWXO));
    for (size_t i = 0; i < INHERITANCE_SIGNALS; i++) {
        const struct sigaction wanted = {.sa_handler = changed[i].handler};
        sigaction(changed[i].number, &wanted, &out->actions[i]);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, &out->mask);
}

void inheritance_restore(const struct inheritance *in)
{
    umask(in->umask);
    for (size_t i = 0; i < INHERITANCE_SIGNALS; i++)
        sigaction(changed[i].number, &in->actions[i], NULL);
    sigprocmask(SIG_SETMASK, &in->mask, NULL);
}

/* A blocked signal is delivered to a signalfd even if it is ignored, hence the check. */
int inheritance_open_signals(int also)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    if (also != 0)
        sigaddset(&set, also);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        struct sigaction now;
        sigaction(ending[i], NULL, &now);
        if (now.sa_handler != SIG_IGN)
            sigaddset(&set, ending[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}
