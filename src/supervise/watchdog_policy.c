/* watchdog_policy.c - the arithmetic of watchdog_policy.h. Called by src/cmd/run and the simulated
 * world. The phase changes in clave__watchdog_policy_begin and _step only. */
#include "supervise/watchdog_policy.h"

#include <assert.h>

#include "clave/async/client.h"
#include "supervise/kill_policy.h"

int64_t clave__watchdog_policy_longest(int64_t session_ms)
{
    return session_ms / 8;
}

int64_t clave__watchdog_policy_lead(int64_t session_ms)
{
    return session_ms / 8;
}

int64_t clave__watchdog_policy_grace(int64_t session_ms)
{
    return session_ms / 8;
}

/* The device was fed at most W/4 before the loss, so it fires 3/4 W after it at the earliest. */
int64_t clave__watchdog_policy_grace_lost(int64_t device_ms)
{
    return device_ms / 2;
}

static bool watchdog_policy_may_feed(const struct watchdog_policy *p, int64_t deadline, int64_t now)
{
    return deadline != KILL_POLICY_NO_DEADLINE && now + p->timeout_ms + p->reserve_ms <= deadline;
}

bool clave__watchdog_policy_begin(struct watchdog_policy *p, int64_t session_ms, int64_t device_ms,
                                  int64_t deadline, int64_t now)
{
    assert(device_ms > 0 && device_ms <= clave__watchdog_policy_longest(session_ms));
    *p = (struct watchdog_policy){
        .timeout_ms = device_ms, .reserve_ms = session_ms / 16, .look_at = now + device_ms / 4};
    bool fits = watchdog_policy_may_feed(p, deadline, now);
    p->phase = fits ? WATCHDOG_FED : WATCHDOG_OFF;
    return fits;
}

/* While the device is not fed, the deadline is looked at more often: it may move at any time. */
unsigned clave__watchdog_policy_step(struct watchdog_policy *p, const struct watchdog_sight *s,
                                     int64_t now)
{
    bool was_fed = p->phase == WATCHDOG_FED;
    if (p->phase == WATCHDOG_OFF)
        return 0;
    if (s->nothing_left) {
        p->phase = WATCHDOG_OFF;
        return WATCHDOG_DISARM;
    }
    if (now < p->look_at)
        return 0;
    if (!s->worthless && watchdog_policy_may_feed(p, s->deadline, now)) {
        p->phase = WATCHDOG_FED;
        p->look_at = now + p->timeout_ms / 4;
        return WATCHDOG_FEED;
    }
    p->phase = WATCHDOG_STARVED;
    p->look_at = now + p->timeout_ms / 16;
    return was_fed ? WATCHDOG_TELL : 0;
}

int64_t clave__watchdog_policy_wake_at(const struct watchdog_policy *p)
{
    return p->phase == WATCHDOG_OFF ? CLAVE_NEVER : p->look_at;
}
