#include "cmd/run/run_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/queue/participant_text.h"
#include "cmd/run/process_identity.h"
#include "cmd/run/runner.h"

/* ---- flags ----------------------------------------------------------------------------------- */

static bool take_key(struct lock_plan *p)
{
    const char *key = p->o->value;
    char path[1024], shown[WHO_CAP];
    p->run_policy.once = key;
    int n = snprintf(path, sizeof path, "/%s", key);
    const char *fault = strchr(key, '/') || !*key ? "it is one word, without a '/'"
                        : n >= (int)sizeof path   ? "no name of a node is that long"
                                                  : clave__path_fault(path, (size_t)n, false);
    if (fault)
        diag_usage(p->o, "--once '%s': %s", who_text(key, shown, sizeof shown), fault);
    return !fault;
}

bool run_policy_take_flag(struct lock_plan *p, int id)
{
    struct run_policy_plan *c = &p->run_policy;
    struct options *o = p->o;
    int64_t n;
    switch (id) {
    case PLAN_ONCE:
        return take_key(p);
    case PLAN_FOR:
        return options_duration(o, "for", 1, PLAN_YEAR_MS, &c->period_ms);
    case PLAN_AT_MOST_ONCE:
        c->at_most_once = true;
        return true;
    case PLAN_DONE_CODE:
        if (!options_number(o, "done-code", 0, 255, &n))
            return false;
        c->done_code = (int)n;
        return true;
    case PLAN_MIN_HOLD:
        return options_duration(o, "min-hold", 1, PLAN_YEAR_MS, &c->min_hold_ms);
    case PLAN_LOCK_DELAY:
        c->marks = true;
        return options_duration(o, "lock-delay", 0, PLAN_YEAR_MS, &c->lock_delay_ms);
    default:
        return false;
    }
}

int run_policy_check(const struct lock_plan *p)
{
    const struct run_policy_plan *c = &p->run_policy;
    bool beside = c->once || c->marks;
    if (!c->once && (c->period_ms > 0 || c->at_most_once || c->done_code != 0))
        return diag_usage(p->o, "--for, --at-most-once and --done-code say more about --once KEY");
    if (beside && p->kind == KIND_READ)
        return diag_usage(p->o, "--once and --lock-delay need a lock that excludes all others");
    if (beside && strcmp(p->path, "/") == 0)
        return diag_usage(p->o, "--once and --lock-delay need a place beside the lock: not /");
    if (p->max_hold_ms > 0 && c->min_hold_ms > p->max_hold_ms)
        return diag_usage(p->o, "--min-hold is longer than --max-hold");
    return EXIT_OK;
}

/* ---- on the way out -------------------------------------------------------------------------- */

/* The mark says no more that the lock is held; the end of the session follows it. */
void run_policy_release(struct wrapper *w)
{
    if (w->run_policy.delay)
        (void)clave_async_delay_end(w->run_policy.delay, NULL, NULL);
}

static void on_rested(uv_timer_t *timer)
{
    struct wrapper *w = timer->data;
    wrapper_leave(w, w->run_policy.code);
}

static void run_policy_rest(struct wrapper *w)
{
    struct run_policy *c = &w->run_policy;
    int64_t left = w->acquired_at + w->plan->run_policy.min_hold_ms - clave_now();
    bool rests = w->plan->run_policy.min_hold_ms > 0 && left > 0 && w->command != 0 &&
                 !w->told_to_end && !w->asked;
    if (!rests) {
        wrapper_leave(w, c->code);
        return;
    }
    c->phase = RESTING;
    lock_report_resting(w->plan, left);
    sd_status_resting(w);
    uv_update_time(&w->loop);
    uv_timer_start(&c->rest, on_rested, (uint64_t)left, 0);
}

static void tell_not_on_record(struct wrapper *w, bool certain, clave_err err)
{
    diag(w->o, "%s: how '%s' went %s on record, so it may be run again: %s", w->plan->path,
         w->plan->run_policy.once, certain ? "is not" : "may not be", clave_strerror(err));
}

static void on_recorded(clave_async_once *once, clave_err err, const clave_once_record *former,
                        void *arg)
{
    struct wrapper *w = arg;
    struct run_policy *c = &w->run_policy;
    (void)once;
    (void)former;
    if (w->phase != KEEPING)
        return;
    if (err != CLAVE_OK) {
        tell_not_on_record(w, clave_err_classify(err) != CLAVE_CLASS_UNKNOWN, err);
        bool removed = err == CLAVE_ENONODE; /* an operator wants it to be run again */
        c->code = c->code == 0 && !removed ? exit_code_of(err) : c->code;
    }
    run_policy_rest(w);
}

void run_policy_end(struct wrapper *w, int code)
{
    struct run_policy *c = &w->run_policy;
    w->phase = KEEPING;
    c->code = code;
    uv_poll_stop(&w->reports);
    uv_timer_stop(&w->watchdog);
    clave_err err = CLAVE_ELOST;
    if (w->hold_policy.lost) {
        if (c->once)
            tell_not_on_record(w, true, err);
        wrapper_leave(w, code);
        return;
    }
    if (!c->once) {
        run_policy_rest(w);
        return;
    }
    c->phase = RECORDING;
    err = clave_async_once_end(c->once, code == 0, on_recorded, w);
    if (err != CLAVE_OK)
        on_recorded(c->once, err, NULL, w);
    clave_uv_flush(w->uv);
}

void run_policy_lost(struct wrapper *w, clave_err why)
{
    struct run_policy *c = &w->run_policy;
    if (c->phase == NOT_GRANTED || (w->phase != WAITING && w->phase != KEEPING))
        return;
    lock_report_lost(w->plan, why);
    if (c->phase == RECORDING) /* the answer will not come any more */
        tell_not_on_record(w, false, CLAVE_ELOST);
    bool ran = c->phase == RESTING || (c->phase == RECORDING && c->code != 0);
    wrapper_leave(w, ran ? c->code : EXIT_LOST);
}

void run_policy_hurry(struct wrapper *w)
{
    if (w->run_policy.phase == RESTING)
        wrapper_leave(w, w->run_policy.code);
    else if (w->run_policy.phase == DELAYING || w->run_policy.phase == ASKING)
        wrapper_leave(w, EXIT_LOST);
}

/* ---- on the way in --------------------------------------------------------------------------- */

/* PATH, what is added to it, and the key behind that. NULL: no memory. */
static char *beside(const struct lock_plan *p, const char *added, const char *key)
{
    char *out = NULL;
    return asprintf(&out, "%s%s%s", p->path, added, key) < 0 ? NULL : out;
}

static void run_policy_give_up(struct wrapper *w, clave_err err)
{
    if (err == CLAVE_ELOST) {
        run_policy_lost(w, err);
        return;
    }
    wrapper_leave(w, diag_err(w->o, w->plan->path, err, NULL));
}

static void run_policy_on_asked(clave_async_once *once, clave_err err,
                                const clave_once_record *former, void *arg)
{
    struct wrapper *w = arg;
    (void)once;
    if (w->phase != WAITING)
        return;
    if (err == CLAVE_EDONE) {
        lock_report_done(w->plan, former);
        wrapper_leave(w, w->plan->run_policy.done_code);
    } else if (err != CLAVE_OK) {
        run_policy_give_up(w, err);
    } else {
        w->run_policy.phase = BEGUN;
        holder_begin(w);
    }
}

static void run_policy_ask(struct wrapper *w, const clave_grant *g)
{
    const struct lock_plan *plan = w->plan;
    struct self self;
    clave_err err = CLAVE_ENOMEM;
    char *path = beside(plan, "-once/", plan->run_policy.once);
    process_identity_describe(&self, plan);
    const clave_once_options o = {.size = sizeof o,
                                  .path = path,
                                  .period_ms = plan->run_policy.period_ms,
                                  .at_most_once = plan->run_policy.at_most_once,
                                  .acls = plan->acl.n > 0 ? plan->acl.list : NULL,
                                  .nacls = plan->acl.n,
                                  .identity = &self.identity};
    w->run_policy.phase = ASKING;
    if (path)
        err = clave_async_once_begin(&w->run_policy.once, w->client, g, &o, run_policy_on_asked, w);
    free(path);
    if (err != CLAVE_OK)
        run_policy_give_up(w, err);
}

/* The lock delay is over, if there was one. */
static void run_policy_proceed(struct wrapper *w)
{
    clave_grant g;
    if (!acquisition_grant(&w->acquisition, &g)) {
        run_policy_lost(w, CLAVE_ELOST);
    } else if (w->plan->run_policy.once) {
        run_policy_ask(w, &g);
    } else {
        w->run_policy.phase = BEGUN;
        holder_begin(w);
    }
}

static void on_delayed(clave_async_delay *d, clave_err err, void *arg)
{
    struct wrapper *w = arg;
    (void)d;
    if (w->phase != WAITING)
        return;
    if (err == CLAVE_OK)
        run_policy_proceed(w);
    else
        run_policy_give_up(w, err);
}

static void on_delay(clave_async_delay *d, const clave_identity *who, int64_t delay_ms, void *arg)
{
    struct wrapper *w = arg;
    (void)d;
    if (w->phase != WAITING)
        return;
    lock_report_delay(w->plan, who, delay_ms);
    sd_status_delayed(w);
}

static void delay(struct wrapper *w, const clave_grant *g)
{
    const struct lock_plan *plan = w->plan;
    struct self self;
    clave_err err = CLAVE_ENOMEM;
    char *path = beside(plan, "-held", "");
    process_identity_describe(&self, plan);
    const clave_delay_options o = {.size = sizeof o,
                                   .path = path,
                                   .delay_ms = plan->run_policy.lock_delay_ms,
                                   .acls = plan->acl.n > 0 ? plan->acl.list : NULL,
                                   .nacls = plan->acl.n,
                                   .identity = &self.identity,
                                   .event_cb = on_delay,
                                   .event_arg = w};
    if (path)
        err = clave_async_delay_begin(&w->run_policy.delay, w->client, g, &o, on_delayed, w);
    free(path);
    if (err != CLAVE_OK)
        run_policy_give_up(w, err);
}

void run_policy_begin(struct wrapper *w)
{
    clave_grant g;
    w->run_policy.phase = DELAYING;
    if (!w->plan->run_policy.marks)
        run_policy_proceed(w);
    else if (acquisition_grant(&w->acquisition, &g))
        delay(w, &g);
    else
        run_policy_lost(w, CLAVE_ELOST);
}

/* ---- life ------------------------------------------------------------------------------------ */

void run_policy_open(struct wrapper *w)
{
    uv_timer_init(&w->loop, &w->run_policy.rest);
    w->run_policy.rest.data = w;
}

void run_policy_close(struct wrapper *w)
{
    uv_close((uv_handle_t *)&w->run_policy.rest, NULL);
}

void run_policy_free(struct wrapper *w)
{
    clave_async_once_free(w->run_policy.once);
    clave_async_delay_free(w->run_policy.delay);
    w->run_policy.once = NULL;
    w->run_policy.delay = NULL;
}
