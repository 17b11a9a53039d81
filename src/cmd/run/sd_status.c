/* sd_status.c - the STATUS lines, READY, STOPPING and the watchdog of a runner. runner.c, child.c
 * and once_and_min_hold.c call it. READY and STOPPING are each sent at most once. */
#include "cmd/run/sd_status.h"

#include <stdio.h>

#include "cmd/run/runner.h"

/* How many times per watchdog interval the watchdog is fed at most, so that a confirmation that
 * comes a moment too late for one feed is in time for the next. */
enum { FEEDS = 4 };

static bool sd_status_is_confirmed(const struct runner *r)
{
    bool holds = r->phase == HOLDING || r->phase == KEEPING;
    return holds ? clave_async_client_hold_deadline(r->client) > clave_now()
                 : r->phase == LEAVING || clave_async_client_is_connected(r->client);
}

static void sd_status_on_watchdog(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    if (sd_status_is_confirmed(r))
        sd_notify_watchdog(&r->service.notify);
}

void sd_status_open(struct runner *r)
{
    struct sd_status *s = &r->service;
    uv_timer_init(&r->loop, &s->watchdog);
    s->watchdog.data = r;
    s->notify.fd = -1;
    if (r->plan->notify == SD_NOTIFY_OFF)
        return;
    sd_notify_open(&s->notify);
    if (s->notify.watchdog_ms > 0) {
        uint64_t ms = (uint64_t)(s->notify.watchdog_ms / FEEDS);
        uv_timer_start(&s->watchdog, sd_status_on_watchdog, ms, ms > 0 ? ms : 1);
    }
}

void sd_status_waiting(struct runner *r, size_t ahead, bool known)
{
    struct sd_notify *n = &r->service.notify;
    if (!known) { /* then it is also unknown whether we have a place in the queue */
        sd_notify_send(n, "STATUS=%s: waiting", r->plan->path);
        return;
    }
    sd_notify_send(n, "STATUS=%s: waiting, %zu ahead", r->plan->path, ahead);
    if (r->plan->notify == SD_NOTIFY_WAITING)
        sd_notify_ready(n);
}

/* This is as ready as the unit can be while nothing is held: a unit that is to be active while it
 * waits must not fail to start because its machine is unhealthy. */
void sd_status_unhealthy(struct runner *r)
{
    sd_notify_send(&r->service.notify, "STATUS=%s: unhealthy, not waiting: %s", r->plan->path,
                   r->health.why);
    if (r->plan->notify == SD_NOTIFY_WAITING)
        sd_notify_ready(&r->service.notify);
}

/* The command's own status, if there is one, comes last. */
static void sd_status_send_held(const struct runner *r, const char *detail)
{
    struct grant_facts g;
    const char *said = r->command_notify.status;
    if (acquisition_held(&r->acquisition, &g))
        sd_notify_send(&r->service.notify, "STATUS=%s: %s, token %lld%s%s%s", r->plan->path,
                       r->plan->elects ? "leading" : "held", (long long)g.token, detail,
                       *said ? "; " : "", said);
}

void sd_status_delayed(struct runner *r)
{
    sd_status_send_held(r, "; the previous holder lost it: waiting for the lock delay");
    if (r->plan->notify == SD_NOTIFY_WAITING)
        sd_notify_ready(&r->service.notify);
}

void sd_status_started(struct runner *r)
{
    enum sd_notify_when when = r->plan->notify;
    bool ready = when == SD_NOTIFY_WAITING ||
                 (when == SD_NOTIFY_HELD && !r->plan->command_notify.terms.ready);
    sd_status_send_held(r, "");
    if (ready)
        sd_notify_ready(&r->service.notify);
}

void sd_status_said_ready(struct runner *r)
{
    sd_notify_ready(&r->service.notify);
}

void sd_status_said(struct runner *r)
{
    sd_status_send_held(r, "");
}

void sd_status_pass_on(struct runner *r, const char *lines, bool reloading)
{
    sd_notify_send(&r->service.notify, "%s", lines);
    if (reloading) /* a reload ends with another READY=1 */
        r->service.notify.ready = false;
}

void sd_status_connection(struct runner *r, bool up)
{
    sd_status_send_held(r, up ? "" : "; connection lost");
}

/* A candidate that becomes a candidate again is not stopping. */
void sd_status_stopping(struct runner *r)
{
    if (r->told_to_end || !r->plan->again)
        sd_notify_stopping(&r->service.notify);
}

static void sd_status_send_lost(const struct runner *r, const char *detail)
{
    sd_notify_send(&r->service.notify, "STATUS=%s: lost%s", r->plan->path, detail);
}

void sd_status_ending(struct runner *r)
{
    static const char detail[] = "; the command is being ended";
    if (r->hold_policy.lost)
        sd_status_send_lost(r, detail);
    else
        sd_status_send_held(r, detail);
    sd_status_stopping(r);
}

void sd_status_holdout(struct runner *r)
{
    char text[HOLDOUT_TEXT_CAP], detail[HOLDOUT_TEXT_CAP + 32];
    snprintf(detail, sizeof detail, "; %s cannot be ended", holdout_text(&r->holdout, text));
    if (r->hold_policy.lost)
        sd_status_send_lost(r, detail);
    else
        sd_status_send_held(r, detail);
}

void sd_status_resting(struct runner *r)
{
    sd_status_send_held(r, "; the command has ended, the minimum hold has not");
}

void sd_status_leaving(struct runner *r)
{
    if (r->hold_policy.lost)
        sd_status_send_lost(r, "");
    sd_status_stopping(r);
}

void sd_status_close(struct runner *r)
{
    uv_close((uv_handle_t *)&r->service.watchdog, NULL);
    sd_notify_close(&r->service.notify);
}
