/* server_loop.c - a turn of a server's loop: its time, what is read and written in it, and when the
 * next one is due. */
#include <assert.h>

#include "clave/uv.h"
#include "runtime/clock.h"
#include "runtime/server/uv_server_internal.h"

/* What one turn writes: a millisecond's work. */
enum { SERVED_A_TURN = 128, SENT_A_TURN = 1024 * 1024 };

bool clave__run_is_current(const struct server_run *r)
{
    return clave__txn_log_thread_is_current(&r->log_thread);
}

int64_t clave__run_now(const struct server_run *r)
{
    return clave_now() + r->ahead_ms;
}

int64_t clave__run_wall(const struct server_run *r)
{
    return clave__clock_wall() + r->ahead_ms;
}

void clave__run_tick(struct server_run *r)
{
    if (r->ticked)
        return;
    r->ticked = true;
    int64_t now = clave__run_now(r);
    if (r->armed_at < now) {
        clave__server_woke_late(r->server, r->armed_at, now);
        r->armed_at = INT64_MAX; /* notified once; the timer is set anew */
    }
    clave__server_tick(r->server, now, clave__run_wall(r));
}

static void loop_on_timer(uv_timer_t *t)
{
    struct server_run *r = t->data;
    clave__run_tick(r);
    r->armed_at = INT64_MAX;
    clave__run_pump(r); /* timers come before the loop waits, loop_on_check after */
}

/* A deadline that moves back leaves the timer as it is: it fires early, and is set anew. */
static void loop_arm(struct server_run *r, int64_t at, int64_t now)
{
    if (at >= r->armed_at)
        return;
    r->armed_at = at > now ? at : now;
    if (at <= now) /* due at once: nothing is late, and loop_on_busy comes next */
        return;
    uv_timer_start(&r->timer, loop_on_timer, (uint64_t)(at - now), 0);
}

static void loop_pump_audit(struct server_run *r)
{
    if (!r->audit)
        return;
    if (clave__run_is_durable(r)) { /* lines of the server itself, too */
        clave__audit_log_posted(r->audit);
        clave__audit_log_durable(r->audit);
    }
    clave__audit_log_pump(r->audit);
}

/* That it is active keeps the loop from waiting. A turn begins, with what the last one has left. */
static void loop_on_busy(uv_idle_t *h)
{
    struct server_run *r = h->data;
    clave__run_tick(r);
    r->armed_at = INT64_MAX; /* the timer is set anew */
}

/* Writes to so many connections, and so many bytes, at most: a millisecond's work; true: there may
 * be more. */
static bool loop_serve_some(struct server_run *r)
{
    struct server_conn *c;
    const uint64_t most = r->sent + SENT_A_TURN;
    for (int left = SERVED_A_TURN; left > 0 && r->sent < most; left--) {
        if (!(c = clave__server_next_ready(r->server)))
            return false;
        clave__conn_serve(c);
    }
    return true;
}

void clave__run_pump(struct server_run *r)
{
    if (r->phase == RUN_STOPPED)
        return;
    bool more = clave__conns_go_on(r);
    more = loop_serve_some(r) || more;
    clave__run_post(r);
    loop_pump_audit(r);
    const int64_t at = clave__server_deadline(r->server), now = clave__run_now(r);
    more = more || at <= now;
    if (more)
        uv_idle_start(&r->busy, loop_on_busy);
    else
        uv_idle_stop(&r->busy);
    if (r->phase == RUN_STOPPING && clave__run_is_durable(r) && !more) {
        clave__conn_close_quiet(r, false);
        clave__run_count(r);
    }
    if (r->ticked)
        clave__server_end_turn(r->server, now);
    loop_arm(r, at, now);
    r->ticked = false;
}

/* After the reads, completions and wake-ups of one pass of the loop: one batch, one write per
 * connection. */
static void loop_on_check(uv_check_t *check)
{
    clave__run_pump(check->data);
}

void clave__run_init_turns(struct server_run *r)
{
    r->armed_at = INT64_MAX;
    uv_timer_init(&r->loop, &r->timer);
    uv_idle_init(&r->loop, &r->busy);
    uv_check_init(&r->loop, &r->check);
    r->timer.data = r->busy.data = r->check.data = r;
    uv_check_start(&r->check, loop_on_check);
}
