/* watchdog_device.h - the watchdog of the machine (/dev/watchdog, or one of several): opened, set,
 * fed, and closed so that it stops. When it is fed is up to supervise/watchdog_policy.h. This has
 * nothing to do with WatchdogSec= of systemd, nor with --watchdog-sec, which watch processes. */
#ifndef CLAVE_CMD_RUN_GUARDIAN_WATCHDOG_DEVICE_H
#define CLAVE_CMD_RUN_GUARDIAN_WATCHDOG_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* Why the device cannot be used. */
enum watchdog_fault {
    WATCHDOG_FAULT_NONE,
    WATCHDOG_FAULT_SESSION,  /* the session is too short for any device */
    WATCHDOG_FAULT_OPEN,     /* `error` says why */
    WATCHDOG_FAULT_FOREIGN,  /* the device is not a watchdog */
    WATCHDOG_FAULT_NO_MAGIC, /* it stops at every close, also when its owner is killed */
    WATCHDOG_FAULT_NOWAYOUT, /* it never stops */
    WATCHDOG_FAULT_TIMEOUT,  /* its timeout, timeout_ms, is too long and cannot be set */
    WATCHDOG_FAULT_LATE,     /* too little time is left before the hold deadline */
};

struct watchdog_trouble {
    enum watchdog_fault fault;
    int error;
    int64_t timeout_ms; /* of the device; 0: not known */
};

struct watchdog_device {
    int fd; /* -1: not open */
    int64_t timeout_ms;
};

/* True if the session is long enough for some device; their timeouts are whole seconds. */
bool watchdog_device_fits(int64_t session_ms);
/* Checks that the device exists, may be opened and can be stopped, without opening it, because that
 * would start it. An early refusal saves the user a wait in the queue. */
struct watchdog_trouble watchdog_device_look(const char *path);
/* Opens the device, which _look has found usable, and sets its timeout to the longest that fits the
 * session, which _fits. If it cannot be used, it is stopped, d->fd is -1, and the answer says why.
 * Otherwise the device resets the machine d->timeout_ms from now unless it is fed. */
struct watchdog_trouble watchdog_device_open(struct watchdog_device *d, const char *path,
                                             int64_t session_ms);
void watchdog_device_feed(struct watchdog_device *d);
/* Stops the device and closes it. */
void watchdog_device_disarm(struct watchdog_device *d);
/* Stops a device that was left running by a process that has died, or one that this process had
 * yet to open. Returns 0, or an errno if the device cannot be opened. */
int watchdog_device_stop_abandoned(const char *path);

enum { WATCHDOG_TEXT_CAP = 512 };
/* Why the device cannot be used, and what to do about it. */
const char *watchdog_trouble_text(const struct watchdog_trouble *t, int64_t session_ms,
                                  char out[WATCHDOG_TEXT_CAP]);

#endif
