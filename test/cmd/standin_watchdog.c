/* standin_watchdog.c - a library to preload into clave: the file $STANDIN_WATCHDOG is then a
 * watchdog that resets nothing. It answers the calls of the kernel's watchdog-api and writes down
 * what was done to it, in $STANDIN_WATCHDOG.log: the time in milliseconds of CLOCK_BOOTTIME, the
 * process, and "open", "set SECONDS", "feed", "magic" or "close". watchdog_test.py judges from that
 * when a machine would have been reset. These variables change it:
 *   STANDIN_WATCHDOG_LEAST     a shorter timeout is set to this many seconds
 *   STANDIN_WATCHDOG_FIXED     its timeout is this and cannot be set
 *   STANDIN_WATCHDOG_OPTIONS   what it says that it can do (WDIOF_...)
 *   STANDIN_WATCHDOG_KILLS     the guardian is killed "before" it is opened, or "after"
 *   STANDIN_WATCHDOG_NOWAYOUT  its driver was loaded with nowayout
 * As with a device, only one process has it open, and the others get EBUSY. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/watchdog.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

static int device = -1; /* our descriptor of it */
static int seconds = 60;

static void *standin_real(const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);
    if (!f)
        abort();
    return f;
}

static bool standin_is_it(const char *path)
{
    const char *ours = getenv("STANDIN_WATCHDOG");
    return ours && strcmp(path, ours) == 0;
}

static int standin_number(const char *name, int otherwise)
{
    const char *value = getenv(name);
    return value ? (int)strtol(value, NULL, 0) : otherwise;
}

static void standin_note(const char *what)
{
    int (*real)(const char *, int, ...) = standin_real("open");
    char name[4096], line[128];
    struct timespec now;
    snprintf(name, sizeof name, "%s.log", getenv("STANDIN_WATCHDOG"));
    clock_gettime(CLOCK_BOOTTIME, &now);
    int n = snprintf(line, sizeof line, "%lld %d %s\n",
                     (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, (int)getpid(), what);
    int fd = real(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ssize_t (*put)(int, const void *, size_t) = standin_real("write");
    if (fd < 0 || put(fd, line, (size_t)n) != n)
        abort();
    int (*end)(int) = standin_real("close");
    end(fd);
}

static void standin_kill(const char *when)
{
    const char *kills = getenv("STANDIN_WATCHDOG_KILLS");
    char name[16];
    if (kills && strcmp(kills, when) == 0 && prctl(PR_GET_NAME, name) == 0 &&
        strcmp(name, "lock-guardian") == 0)
        raise(SIGKILL);
}

static int standin_open(const char *path, int flags, int mode)
{
    int (*real)(const char *, int, ...) = standin_real("open");
    if (getenv("STANDIN_WATCHDOG") && strcmp(path, "/sys/class/watchdog/watchdog0/nowayout") == 0)
        path = getenv("STANDIN_WATCHDOG_NOWAYOUT");
    if (!path || !standin_is_it(path))
        return real(path ? path : "", flags, mode);
    standin_kill("before");
    int fd = real(path, flags, mode);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int (*end)(int) = standin_real("close");
        end(fd);
        errno = EBUSY;
        return -1;
    }
    if (fd >= 0) {
        device = fd;
        seconds = standin_number("STANDIN_WATCHDOG_FIXED", 60);
        standin_note("open");
        standin_kill("after");
    }
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return standin_open(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return standin_open(path, flags, mode);
}

int stat(const char *restrict path, struct stat *restrict out)
{
    int (*real)(const char *, struct stat *) = standin_real("stat");
    int answer = real(path, out);
    if (answer == 0 && standin_is_it(path)) {
        out->st_mode = S_IFCHR | 0600;
        out->st_rdev = makedev(10, 130);
    }
    return answer;
}

static int standin_set(int wish)
{
    char text[32];
    int least = standin_number("STANDIN_WATCHDOG_LEAST", 1);
    if (getenv("STANDIN_WATCHDOG_FIXED")) {
        errno = EOPNOTSUPP;
        return -1;
    }
    seconds = wish > least ? wish : least;
    snprintf(text, sizeof text, "set %d", seconds);
    standin_note(text);
    return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    int (*real)(int, unsigned long, ...) = standin_real("ioctl");
    bool plain = getenv("STANDIN_WATCHDOG_OPTIONS") && !*getenv("STANDIN_WATCHDOG_OPTIONS");
    if (fd != device || fd < 0 || plain)
        return real(fd, request, arg);
    switch (request) {
    case WDIOC_GETSUPPORT:
        *(struct watchdog_info *)arg =
            (struct watchdog_info){.options = (unsigned)standin_number(
                                       "STANDIN_WATCHDOG_OPTIONS",
                                       WDIOF_SETTIMEOUT | WDIOF_KEEPALIVEPING | WDIOF_MAGICCLOSE),
                                   .identity = "stand-in"};
        return 0;
    case WDIOC_SETTIMEOUT:
        return standin_set(*(int *)arg);
    case WDIOC_GETTIMEOUT:
        *(int *)arg = seconds;
        return 0;
    case WDIOC_KEEPALIVE:
        standin_note("feed");
        return 0;
    default:
        errno = ENOTTY;
        return -1;
    }
}

ssize_t write(int fd, const void *data, size_t n)
{
    ssize_t (*real)(int, const void *, size_t) = standin_real("write");
    if (fd != device || fd < 0)
        return real(fd, data, n);
    standin_note(memchr(data, 'V', n) ? "magic" : "feed");
    return (ssize_t)n;
}

int close(int fd)
{
    int (*real)(int) = standin_real("close");
    if (fd == device && fd >= 0) {
        device = -1;
        standin_note("close");
    }
    return real(fd);
}
