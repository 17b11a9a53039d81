/* watchdog_device.c - see watchdog_device.h; the interface is that of the kernel's
 * Documentation/watchdog/watchdog-api. The guardian owns the device; the runner calls this only
 * before there is a command, and once both the guardian and the command are dead.
 *
 * Invariant: only watchdog_device_disarm and watchdog_device_stop_abandoned stop a device, by
 * writing the magic character 'V' before they close it. If the process that has it open ends in any
 * other way, the device keeps counting. */
#include "cmd/run/guardian/watchdog_device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/watchdog.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/time_format.h"
#include "supervise/watchdog_policy.h"

enum { MISC_MAJOR = 10, WATCHDOG_MINOR = 130 };

bool watchdog_device_fits(int64_t session_ms)
{
    return clave__watchdog_policy_longest(session_ms) >= 1000;
}

/* True if the driver was loaded with `nowayout`. /dev/watchdog is an alias of watchdog0. */
static bool watchdog_device_never_stops(const char *path)
{
    struct stat st;
    char name[96], value = '0';
    if (stat(path, &st) != 0 || !S_ISCHR(st.st_mode))
        return false;
    if (major(st.st_rdev) == MISC_MAJOR && minor(st.st_rdev) == WATCHDOG_MINOR)
        snprintf(name, sizeof name, "/sys/class/watchdog/watchdog0/nowayout");
    else
        snprintf(name, sizeof name, "/sys/dev/char/%u:%u/nowayout", major(st.st_rdev),
                 minor(st.st_rdev));
    int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    bool known = read(file, &value, 1) == 1;
    close(file);
    return known && value == '1';
}

/* Sets the timeout, unless the device does not support that. Returns the timeout that the device
 * now has, since it may round. */
static int64_t watchdog_device_set(int fd, int64_t wish_s)
{
    int seconds = (int)wish_s;
    (void)ioctl(fd, WDIOC_SETTIMEOUT, &seconds);
    return ioctl(fd, WDIOC_GETTIMEOUT, &seconds) == 0 && seconds > 0 ? (int64_t)seconds * 1000 : 0;
}

static enum watchdog_fault watchdog_device_prepare(struct watchdog_device *d, int64_t session_ms)
{
    struct watchdog_info info = {0};
    int64_t longest = clave__watchdog_policy_longest(session_ms);
    if (ioctl(d->fd, WDIOC_GETSUPPORT, &info) != 0)
        return WATCHDOG_FAULT_FOREIGN;
    if (!(info.options & WDIOF_MAGICCLOSE))
        return WATCHDOG_FAULT_NO_MAGIC;
    d->timeout_ms = watchdog_device_set(d->fd, longest / 1000);
    if (d->timeout_ms == 0 || d->timeout_ms > longest)
        return WATCHDOG_FAULT_TIMEOUT;
    return WATCHDOG_FAULT_NONE;
}

static void watchdog_device_close(struct watchdog_device *d)
{
    close(d->fd);
    d->fd = -1;
}

struct watchdog_trouble watchdog_device_look(const char *path)
{
    if (access(path, W_OK) != 0)
        return (struct watchdog_trouble){.fault = WATCHDOG_FAULT_OPEN, .error = errno};
    if (watchdog_device_never_stops(path))
        return (struct watchdog_trouble){.fault = WATCHDOG_FAULT_NOWAYOUT};
    return (struct watchdog_trouble){.fault = WATCHDOG_FAULT_NONE};
}

struct watchdog_trouble watchdog_device_open(struct watchdog_device *d, const char *path,
                                             int64_t session_ms)
{
    *d = (struct watchdog_device){.fd = open(path, O_WRONLY | O_CLOEXEC)};
    if (d->fd < 0)
        return (struct watchdog_trouble){.fault = WATCHDOG_FAULT_OPEN, .error = errno};
    struct watchdog_trouble t = {.fault = watchdog_device_prepare(d, session_ms)};
    t.timeout_ms = d->timeout_ms;
    if (t.fault == WATCHDOG_FAULT_FOREIGN)
        watchdog_device_close(d);
    else if (t.fault != WATCHDOG_FAULT_NONE)
        watchdog_device_disarm(d);
    return t;
}

void watchdog_device_feed(struct watchdog_device *d)
{
    (void)ioctl(d->fd, WDIOC_KEEPALIVE, 0);
}

void watchdog_device_disarm(struct watchdog_device *d)
{
    ssize_t ignored = write(d->fd, "V", 1);
    (void)ignored;
    watchdog_device_close(d);
}

int watchdog_device_stop_abandoned(const char *path)
{
    struct watchdog_device d = {.fd = open(path, O_WRONLY | O_CLOEXEC)};
    struct watchdog_info info;
    if (d.fd < 0)
        return errno;
    if (ioctl(d.fd, WDIOC_GETSUPPORT, &info) != 0)
        watchdog_device_close(&d); /* nobody could have started it */
    else
        watchdog_device_disarm(&d);
    return 0;
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* The longest timeout that fits is an eighth of the session's, rounded down to whole seconds. */
#define WHAT_FITS "(session 8s: device 1s; 16s: 2s; 24s: 3s; 40s: 5s; 60s: 7s)"

static void watchdog_trouble_of_open(int error, char out[WATCHDOG_TEXT_CAP])
{
    const char *advice = "";
    if (error == EBUSY)
        advice =
            ": another program feeds it: systemd (RuntimeWatchdogSec=off in system.conf leaves "
            "it), the watchdog daemon, or another clave; or name another device, such as "
            "/dev/watchdog1 (modprobe softdog)";
    else if (error == ENOENT || error == ENODEV || error == ENXIO)
        advice = ": load the driver of this machine's watchdog, or modprobe softdog (for "
                 "WATCHDOG=1 from the command: --watchdog-sec)";
    else if (error == EACCES || error == EPERM)
        advice = ": run clave as root, or let its user write to the device (a udev rule)";
    snprintf(out, WATCHDOG_TEXT_CAP, "%s%s", strerror(error), advice);
}

const char *watchdog_trouble_text(const struct watchdog_trouble *t, int64_t session_ms,
                                  char out[WATCHDOG_TEXT_CAP])
{
    char session[DURATION_CAP], device[DURATION_CAP];
    const char *text = "";
    clave__duration_format(session_ms, session);
    clave__duration_format(t->timeout_ms, device);
    switch (t->fault) {
    case WATCHDOG_FAULT_OPEN:
        watchdog_trouble_of_open(t->error, out);
        return out;
    case WATCHDOG_FAULT_SESSION:
        snprintf(
            out, WATCHDOG_TEXT_CAP,
            "a session timeout of %s is too short for a watchdog, whose timeout is at least 1s "
            "and at most an eighth of it " WHAT_FITS ": give a longer --session-timeout, which "
            "the server must allow",
            session);
        return out;
    case WATCHDOG_FAULT_TIMEOUT:
        snprintf(
            out, WATCHDOG_TEXT_CAP,
            "its timeout is %s and cannot be set to less, which does not fit a session timeout "
            "of %s: at most an eighth of it does " WHAT_FITS ": give a longer "
            "--session-timeout, or name another device (modprobe softdog)",
            t->timeout_ms > 0 ? device : "unknown", session);
        return out;
    case WATCHDOG_FAULT_FOREIGN:
        text = "it is not a watchdog: name its device, such as /dev/watchdog";
        break;
    case WATCHDOG_FAULT_NO_MAGIC:
        text = "its driver stops it at every close, also when the process that has it open is "
               "killed, so it would not protect anything: name another device (modprobe softdog)";
        break;
    case WATCHDOG_FAULT_NOWAYOUT:
        text = "its driver was loaded with nowayout and never stops it, so it would reset this "
               "machine after the command has ended: load the driver with nowayout=0";
        break;
    case WATCHDOG_FAULT_LATE:
        text = "too little time is left to start it before the command would have to end";
        break;
    case WATCHDOG_FAULT_NONE:
        break;
    }
    snprintf(out, WATCHDOG_TEXT_CAP, "%s", text);
    return out;
}
