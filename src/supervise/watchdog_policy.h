/* watchdog_policy.h - when the watchdog of the machine, the device that resets it unless it is fed
 * in time, is fed on behalf of a command under a hold. The kill policy ends a command in time if a
 * signal can end it; this is for one that no signal ends, and for the death of everybody who could
 * send one. Like kill_policy.h it does nothing by itself: the device is
 * src/cmd/run/guardian/watchdog_device.c.
 *
 *   OFF ──begin──▶ FED ◀── the deadline moves ──▶ STARVED ──▶ the machine is reset
 *    ▲              │                                │
 *    └──────────────┴───────── nothing is left ──────┘
 *
 * T is the session timeout, D the hold deadline, and W the timeout of the device, at most T/8. The
 * device is fed every W/4, and only while now + W + T/16 <= D:
 *
 *   before D - T/4    the time is never later than this while heartbeats are answered in time (in
 *                     an ensemble within T/16), so the device is fed every time
 *   D - T/4           SIGTERM, with a grace of T/8, which the user may shorten
 *   D - T/8           SIGKILL: the kill policy's lead is T/8
 *   D - T/16 - T/32   the earliest reset: the device was fed less than W/4 before the last moment
 *                     at which it may be
 *   D - T/16          the latest reset
 *   D + T/8           the next owner may own: the margin of hold_deadline.h, which covers clocks
 *                     that differ
 *
 * So a command that can be ended has T/32 to die in before its machine is reset, and the machine of
 * one that cannot is reset T/16 + T/8 before the next owner, whatever has become of the processes
 * that should have ended it.
 *
 * A command that has to end although its hold is kept, and cannot be killed, keeps everybody else
 * waiting. If that is because its work is unhealthy, the device is not fed either: nobody needs the
 * hold any more, and the reset makes room.
 *
 * The process may be stopped between its look at the clock and the feeding. It then feeds at most W
 * late, because otherwise the device has fired before. That is why W is not longer than the margin,
 * though the sums above would allow it. */
#ifndef CLAVE_SUPERVISE_WATCHDOG_POLICY_H
#define CLAVE_SUPERVISE_WATCHDOG_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* The longest timeout of a device that fits a session of `session_ms`. */
int64_t clave__watchdog_policy_longest(int64_t session_ms);
/* For the kill policy's terms: the lead; the longest grace; and that of a hold that is lost before
 * its deadline. Such a hold cannot be waited for, since the device is not fed any more. */
int64_t clave__watchdog_policy_lead(int64_t session_ms);
int64_t clave__watchdog_policy_grace(int64_t session_ms);
int64_t clave__watchdog_policy_grace_lost(int64_t device_ms);

enum watchdog_phase { WATCHDOG_OFF, WATCHDOG_FED, WATCHDOG_STARVED };

struct watchdog_policy {
    enum watchdog_phase phase;
    int64_t timeout_ms, reserve_ms; /* of the device; before the deadline */
    int64_t look_at;
};

struct watchdog_sight {
    int64_t deadline; /* as in kill_policy_sight */
    bool worthless;   /* the command has to end since its work is unhealthy, and cannot be killed */
    bool nothing_left; /* no process of the command is alive */
};

/* The actions that _step asks for. */
enum {
    WATCHDOG_FEED = 1,
    WATCHDOG_DISARM = 2, /* close the device so that it stops */
    WATCHDOG_TELL = 4,   /* it is not fed from now on, unless the deadline moves */
};

/* The device counts down from device_ms, since `now` at the latest. Returns false if it could fire
 * too late: disarm it, and do not start the command. */
bool clave__watchdog_policy_begin(struct watchdog_policy *p, int64_t session_ms, int64_t device_ms,
                                  int64_t deadline, int64_t now);
/* Call it when something has happened or is due. Returns what to do. */
unsigned clave__watchdog_policy_step(struct watchdog_policy *p, const struct watchdog_sight *s,
                                     int64_t now);
/* When to call _step next; CLAVE_NEVER. */
int64_t clave__watchdog_policy_wake_at(const struct watchdog_policy *p);

#endif
