#include "cmd/run/sd_status.h"

#include "cmd/run/runner.h"

/* In how many parts of the watchdog's time it is fed: what is confirmed a moment too late for one
 * is in time for the next. */
enum { FEEDS = 4 };

/* true: these are ours to tell. */
static bool sd_status_is_own(const struct wrapper *w)
{
    return w->plan->notify == NOTIFY_HELD || w->plan->notify == NOTIFY_WAITING;
}

static bool is_confirmed(const struct wrapper *w)
{
    bool holds = w->phase == HOLDING || w->phase == KEEPING;
    return holds ? clave_async_client_hold_deadline(w->client) > clave_now()
                 : w->phase == LEAVING || clave_async_client_is_connected(w->client);
}

static void on_watchdog(uv_timer_t *timer)
{
    struct wrapper *w = timer->data;
    if (is_confirmed(w))
        notify_watchdog(&w->service.notify);
}

void sd_status_open(struct wrapper *w)
{
    struct status *s = &w->service;
    uv_timer_init(&w->loop, &s->watchdog);
    s->watchdog.data = w;
    s->notify.fd = -1;
    if (w->plan->notify == NOTIFY_OFF)
        return;
    notify_open(&s->notify);
    if (s->notify.watchdog_ms > 0 && sd_status_is_own(w)) {
        uint64_t ms = (uint64_t)(s->notify.watchdog_ms / FEEDS);
        uv_timer_start(&s->watchdog, on_watchdog, ms, ms > 0 ? ms : 1);
    }
}

void sd_status_waiting(struct wrapper *w, size_t ahead, bool known)
{
    struct notify *n = &w->service.notify;
    if (!known) { /* nor is it, by now, whether it has a place */
        notify_tell(n, "STATUS=%s: waiting", w->plan->path);
        return;
    }
    notify_tell(n, "STATUS=%s: waiting, %zu ahead", w->plan->path, ahead);
    if (w->plan->notify == NOTIFY_WAITING)
        notify_ready(n);
}

static void sd_status_tell_held(const struct wrapper *w, const char *detail)
{
    clave_grant g;
    if (sd_status_is_own(w) && acquisition_grant(&w->acquisition, &g))
        notify_tell(&w->service.notify, "STATUS=%s: %s, token %lld%s", w->plan->path,
                    w->plan->elects ? "leading" : "held", (long long)g.token, detail);
}

void sd_status_delayed(struct wrapper *w)
{
    sd_status_tell_held(w, "; the holder before was lost: waiting for the lock delay");
    if (w->plan->notify == NOTIFY_WAITING)
        notify_ready(&w->service.notify);
}

void sd_status_started(struct wrapper *w)
{
    sd_status_tell_held(w, "");
    if (sd_status_is_own(w))
        notify_ready(&w->service.notify);
}

void sd_status_connection(struct wrapper *w, bool up)
{
    sd_status_tell_held(w, up ? "" : "; the connection is lost");
}

/* A candidate that stands again goes on. */
static void tell_stopping(struct wrapper *w)
{
    if (sd_status_is_own(w) && (w->told_to_end || !w->plan->again))
        notify_stopping(&w->service.notify);
}

static void tell_lost(const struct wrapper *w, const char *detail)
{
    if (sd_status_is_own(w))
        notify_tell(&w->service.notify, "STATUS=%s: lost%s", w->plan->path, detail);
}

void sd_status_ending(struct wrapper *w)
{
    static const char detail[] = "; the command is being ended";
    if (w->hold_policy.lost)
        tell_lost(w, detail);
    else
        sd_status_tell_held(w, detail);
    tell_stopping(w);
}

void sd_status_resting(struct wrapper *w)
{
    sd_status_tell_held(w, "; the command has ended, the minimum hold has not");
}

void sd_status_leaving(struct wrapper *w)
{
    if (w->hold_policy.lost)
        tell_lost(w, "");
    tell_stopping(w);
}

void sd_status_close(struct wrapper *w)
{
    uv_close((uv_handle_t *)&w->service.watchdog, NULL);
    notify_close(&w->service.notify);
}
