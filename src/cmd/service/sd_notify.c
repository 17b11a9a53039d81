/* sd_notify.c - sends the datagrams and reads the variables of sd_notify.h. sd_status.c and `clave
 * serve` send; the guardian sets the variables of the command. Nothing here waits or reports a
 * failure. */
#include "cmd/service/sd_notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *const variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};
enum { VARIABLES = sizeof variables / sizeof *variables, LINES_CAP = SD_NOTIFY_CAP + 64 };

/* Connects to a path, or to a name in the abstract namespace if it begins with '@'. -1: there is no
 * such socket. */
static int sd_notify_dial(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || n >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, name, n);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, len) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int64_t sd_notify_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (!usec || (pid && strtoll(pid, NULL, 10) != getpid()))
        return 0;
    int64_t ms = strtoll(usec, NULL, 10) / 1000;
    return ms > 0 ? ms : 0;
}

void sd_notify_open(struct sd_notify *n)
{
    const char *name = getenv("NOTIFY_SOCKET");
    *n = (struct sd_notify){.fd = name ? sd_notify_dial(name) : -1};
    if (n->fd >= 0)
        n->watchdog_ms = sd_notify_watchdog_ms();
}

void sd_notify_close(struct sd_notify *n)
{
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}

void sd_notify_send(const struct sd_notify *n, const char *fmt, ...)
{
    char lines[LINES_CAP];
    va_list args;
    if (n->fd < 0)
        return;
    va_start(args, fmt);
    int len = vsnprintf(lines, sizeof lines, fmt, args);
    va_end(args);
    size_t size = len < LINES_CAP ? (size_t)len : LINES_CAP - 1;
    if (len < 0)
        size = 0;
    ssize_t ignored = send(n->fd, lines, size, MSG_NOSIGNAL);
    (void)ignored;
}

void sd_notify_ready(struct sd_notify *n)
{
    if (!n->ready)
        sd_notify_send(n, "READY=1");
    n->ready = true;
}

void sd_notify_stopping(struct sd_notify *n)
{
    if (!n->stopping)
        sd_notify_send(n, "STOPPING=1");
    n->stopping = true;
}

void sd_notify_watchdog(const struct sd_notify *n)
{
    sd_notify_send(n, "WATCHDOG=1");
}

void sd_notify_offer(const char *socket, int64_t watchdog_ms)
{
    char usec[24], pid[24];
    for (size_t i = 0; i < VARIABLES; i++)
        unsetenv(variables[i]);
    if (!socket)
        return;
    setenv("NOTIFY_SOCKET", socket, 1);
    if (watchdog_ms == 0)
        return;
    snprintf(usec, sizeof usec, "%lld", 1000 * (long long)watchdog_ms);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("WATCHDOG_USEC", usec, 1);
    setenv("WATCHDOG_PID", pid, 1);
}

bool sd_notify_is_variable(const char *text)
{
    size_t n = strcspn(text, "=");
    for (size_t i = 0; i < VARIABLES; i++)
        if (strlen(variables[i]) == n && memcmp(variables[i], text, n) == 0)
            return true;
    return false;
}
