/* once_and_min_hold.c - --once, --fence, --lock-delay and --min-hold as a state machine (see
 * once_and_min_hold.h). runner.c and child.c call it. Whatever happens, it ends in child_begin or
 * in one runner_leave. */
#include "cmd/run/stages/once_and_min_hold.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/participant.h"
#include "cmd/run/lock_messages.h"
#include "cmd/run/runner.h"
#include "cmd/run/stages/run_slot.h"

/* ---- flags ----------------------------------------------------------------------------------- */

static bool once_and_min_hold_take_key(struct run_plan *p)
{
    const char *key = p->o->value;
    char path[1024], shown[PARTICIPANT_TEXT_CAP];
    p->stages.once = key;
    int n = snprintf(path, sizeof path, "/%s", key);
    const char *fault = NULL;
    if (strchr(key, '/') || !*key)
        fault = "a key is one word, without a '/'";
    else if (n >= (int)sizeof path)
        fault = "too long for the name of a node";
    else
        fault = clave__path_fault(path, (size_t)n, false);
    if (fault)
        diag_usage(p->o, "--once '%s': %s", participant_text_printable(key, shown, sizeof shown),
                   fault);
    return !fault;
}

bool run_stages_take_flag(struct run_plan *p, int id)
{
    struct run_stages_plan *c = &p->stages;
    struct options *o = p->o;
    int64_t n;
    int of_fence = run_fence_take_flag(p, id);
    if (of_fence >= 0)
        return of_fence > 0;
    switch (id) {
    case RUN_FLAG_ONCE:
        return once_and_min_hold_take_key(p);
    case RUN_FLAG_FOR:
        return options_duration(o, "for", 1, RUN_FLAG_YEAR_MS, &c->period_ms);
    case RUN_FLAG_AT_MOST_ONCE:
        c->at_most_once = true;
        return true;
    case RUN_FLAG_DONE_CODE:
        if (!options_number(o, "done-code", 0, 255, &n))
            return false;
        c->done_code = (int)n;
        return true;
    case RUN_FLAG_MIN_HOLD:
        return options_duration(o, "min-hold", 1, RUN_FLAG_YEAR_MS, &c->min_hold_ms);
    case RUN_FLAG_LOCK_DELAY:
        c->marks = true;
        return options_duration(o, "lock-delay", 0, RUN_FLAG_YEAR_MS, &c->lock_delay_ms);
    default:
        return false;
    }
}

int run_stages_check(struct run_plan *p)
{
    const struct run_stages_plan *c = &p->stages;
    bool beside = c->once || c->marks;
    if (!c->once && (c->period_ms > 0 || c->at_most_once || c->done_code != 0))
        return diag_usage(p->o, "--for, --at-most-once and --done-code need --once KEY");
    if (beside && p->kind == KIND_READ)
        return diag_usage(p->o, "--once, --lock-delay and --fence need an exclusive lock");
    if (beside && strcmp(p->path, "/") == 0)
        return diag_usage(p->o,
                          "--once, --lock-delay and --fence need a node next to the lock: PATH "
                          "cannot be /");
    if (p->max_hold_ms > 0 && c->min_hold_ms > p->max_hold_ms)
        return diag_usage(p->o, "--min-hold is longer than --max-hold");
    return run_fence_check(p);
}

/* ---- after the command ----------------------------------------------------------------------- */

/* Clears the mark, unless it is still the mark of a holder that was not fenced. The session is
 * closed right after this. */
void run_stages_release(struct runner *r)
{
    run_fence_release(r);
    if (r->stages.delay)
        (void)clave_async_delay_end(r->stages.delay, NULL, NULL);
    if (r->plan->stages.slot)
        run_slot_release(r);
}

static void once_and_min_hold_on_rested(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    assert(r->stages.phase == RESTING);
    r->events->leave(r, r->stages.code);
}

static void once_and_min_hold_rest(struct runner *r)
{
    struct run_stages *c = &r->stages;
    int64_t left = r->acquired_at + r->plan->stages.min_hold_ms - clave_now();
    bool rests = r->plan->stages.min_hold_ms > 0 && left > 0 && r->command != 0 &&
                 !r->told_to_end && !r->asked && !r->unhealthy;
    if (!rests) {
        r->events->leave(r, c->code);
        return;
    }
    c->phase = RESTING;
    lock_message_resting(r->plan, left);
    sd_status_resting(r);
    uv_update_time(&r->loop);
    uv_timer_start(&c->rest, once_and_min_hold_on_rested, (uint64_t)left, 0);
}

static void once_and_min_hold_report_not_recorded(struct runner *r, bool certain, clave_err err)
{
    diag(r->o, "%s: the result of '%s' %s recorded, so it may be run again: %s", r->plan->path,
         r->plan->stages.once, certain ? "was not" : "may not have been", clave_strerror(err));
}

static void once_and_min_hold_on_recorded(clave_async_once *once, clave_err err,
                                          const clave_once_record *former, void *arg)
{
    struct runner *r = arg;
    struct run_stages *c = &r->stages;
    (void)once;
    (void)former;
    if (r->phase != KEEPING)
        return;
    assert(c->phase == RECORDING);
    if (err != CLAVE_OK) {
        once_and_min_hold_report_not_recorded(r, clave_err_classify(err) != CLAVE_CLASS_UNKNOWN,
                                              err);
        /* An operator has deleted the record to have the command run again. */
        bool removed = err == CLAVE_ENONODE;
        c->code = c->code == 0 && !removed ? exit_code_of(err) : c->code;
    }
    once_and_min_hold_rest(r);
}

static void once_and_min_hold_given(struct runner *r, int code)
{
    r->stages.code = code;
    once_and_min_hold_rest(r);
}

void run_stages_end(struct runner *r, int code)
{
    assert(r->phase == HOLDING || r->phase == SWEEPING);
    struct run_stages *c = &r->stages;
    r->phase = KEEPING;
    c->code = code;
    uv_poll_stop(&r->reports);
    uv_timer_stop(&r->watchdog);
    health_stop(&r->health);
    clave_err err = CLAVE_ELOST;
    if (r->hold_policy.lost) {
        if (c->once)
            once_and_min_hold_report_not_recorded(r, true, err);
        if (r->plan->stages.slot)
            run_slot_lost(r);
        r->events->leave(r, code);
        return;
    }
    if (r->plan->stages.slot && run_slot_end(r, code, once_and_min_hold_given))
        return;
    if (!c->once) {
        once_and_min_hold_rest(r);
        return;
    }
    c->phase = RECORDING;
    err = clave_async_once_end(c->once, code == 0, once_and_min_hold_on_recorded, r);
    if (err != CLAVE_OK)
        once_and_min_hold_on_recorded(c->once, err, NULL, r);
    clave_uv_flush(r->uv);
}

void run_stages_lost(struct runner *r, clave_err why)
{
    struct run_stages *c = &r->stages;
    if (c->phase == NOT_GRANTED || (r->phase != WAITING && r->phase != KEEPING))
        return;
    lock_message_lost(r->plan, why);
    if (c->phase == RECORDING) /* the answer will never come */
        once_and_min_hold_report_not_recorded(r, false, CLAVE_ELOST);
    if (c->phase == GIVING)
        (void)run_slot_not_given(r->o, r->plan->stages.slot->path, CLAVE_ECONNLOSS,
                                 clave__client_latest_fault(r->client));
    bool ends = c->phase == RECORDING || c->phase == GIVING;
    bool ran = c->phase == RESTING || (ends && c->code != 0);
    r->events->leave(r, ran ? c->code : EXIT_LOST);
}

void run_stages_cut_short(struct runner *r)
{
    if (r->stages.phase == RESTING)
        r->events->leave(r, r->stages.code);
    else if (r->stages.phase == DELAYING || r->stages.phase == ASKING || r->stages.phase == TAKING)
        r->events->leave(r, EXIT_LOST);
}

/* ---- before the command ---------------------------------------------------------------------- */

/* The path of the lock, followed by a suffix and a key. NULL: no memory. */
static char *once_and_min_hold_beside(const struct run_plan *p, const char *added, const char *key)
{
    char *out = NULL;
    return asprintf(&out, "%s%s%s", p->path, added, key) < 0 ? NULL : out;
}

char *run_stages_mark(const struct run_plan *p)
{
    return once_and_min_hold_beside(p, "-held", "");
}

static void once_and_min_hold_give_up(struct runner *r, clave_err err)
{
    if (err == CLAVE_ELOST) {
        run_stages_lost(r, err);
        return;
    }
    r->events->leave(r, diag_err(r->o, r->plan->path, err, NULL));
}

static void once_and_min_hold_on_asked(clave_async_once *once, clave_err err,
                                       const clave_once_record *former, void *arg)
{
    struct runner *r = arg;
    (void)once;
    if (r->phase != WAITING)
        return;
    assert(r->stages.phase == ASKING);
    if (err == CLAVE_EDONE) {
        lock_message_done(r->plan, former);
        r->events->leave(r, r->plan->stages.done_code);
    } else if (err != CLAVE_OK) {
        once_and_min_hold_give_up(r, err);
    } else {
        r->stages.phase = BEGUN;
        r->events->cleared(r);
    }
}

static void once_and_min_hold_ask(struct runner *r)
{
    assert(!r->stages.once);
    clave_async_grant *g = NULL;
    const struct run_plan *plan = r->plan;
    struct participant_identity self;
    clave_err err = CLAVE_ENOMEM;
    char *path = once_and_min_hold_beside(plan, "-once/", plan->stages.once);
    participant_identity_describe(&self, plan);
    const clave_once_options o = {.size = sizeof o,
                                  .path = path,
                                  .period_ms = plan->stages.period_ms,
                                  .at_most_once = plan->stages.at_most_once,
                                  .acls = plan->acl.n > 0 ? plan->acl.list : NULL,
                                  .nacls = plan->acl.n,
                                  .identity = &self.identity};
    r->stages.phase = ASKING;
    if (path)
        err = acquisition_grant(&r->acquisition, &g);
    if (err == CLAVE_OK)
        err = clave_async_once_begin(&r->stages.once, g, &o, once_and_min_hold_on_asked, r);
    clave_async_grant_free(g);
    free(path);
    if (err != CLAVE_OK)
        once_and_min_hold_give_up(r, err);
}

/* The lock delay is over, or there is none: goes on to --once, or to the slot, or to the
 * command. */
static void once_and_min_hold_proceed(struct runner *r)
{
    struct grant_facts g;
    if (!acquisition_held(&r->acquisition, &g)) {
        run_stages_lost(r, CLAVE_ELOST);
    } else if (r->plan->stages.once) {
        once_and_min_hold_ask(r);
    } else if (r->plan->stages.slot) {
        run_slot_begin(r);
    } else {
        r->stages.phase = BEGUN;
        r->events->cleared(r);
    }
}

static void once_and_min_hold_on_delayed(clave_async_delay *d, clave_err err, void *arg)
{
    struct runner *r = arg;
    (void)d;
    if (r->phase != WAITING)
        return;
    assert(r->stages.phase == DELAYING);
    if (err == CLAVE_OK)
        once_and_min_hold_proceed(r);
    else
        once_and_min_hold_give_up(r, err);
}

static void once_and_min_hold_on_delay(clave_async_delay *d, const clave_identity *who,
                                       int64_t delay_ms, void *arg)
{
    struct runner *r = arg;
    (void)d;
    if (r->phase != WAITING)
        return;
    lock_message_delay(r->plan, who, delay_ms);
    sd_status_delayed(r);
}

static void once_and_min_hold_delay(struct runner *r)
{
    assert(!r->stages.delay);
    clave_async_grant *g = NULL;
    const struct run_plan *plan = r->plan;
    struct participant_identity self;
    struct held_mark_fence fence;
    struct held_mark unmarked;
    clave_err err = CLAVE_ENOMEM;
    char *path = run_stages_mark(plan);
    participant_identity_describe(&self, plan);
    const clave_delay_options o = {.size = sizeof o,
                                   .path = path,
                                   .delay_ms = plan->stages.lock_delay_ms,
                                   .acls = plan->acl.n > 0 ? plan->acl.list : NULL,
                                   .nacls = plan->acl.n,
                                   .identity = &self.identity,
                                   .event_cb = once_and_min_hold_on_delay,
                                   .event_arg = r};
    if (path)
        err = acquisition_grant(&r->acquisition, &g);
    if (err == CLAVE_OK)
        err = clave__delay_begin(&r->stages.delay, g, &o, run_fence_begin(r, &fence, &unmarked),
                                 once_and_min_hold_on_delayed, r);
    clave_async_grant_free(g);
    free(path);
    if (err != CLAVE_OK)
        once_and_min_hold_give_up(r, err);
}

void run_stages_begin(struct runner *r)
{
    assert(r->phase == WAITING && r->stages.phase == NOT_GRANTED);
    struct grant_facts g;
    r->stages.phase = DELAYING;
    if (!r->plan->stages.marks)
        once_and_min_hold_proceed(r);
    else if (acquisition_held(&r->acquisition, &g))
        once_and_min_hold_delay(r);
    else
        run_stages_lost(r, CLAVE_ELOST);
}

/* ---- life ------------------------------------------------------------------------------------ */

void run_stages_open(struct runner *r)
{
    uv_timer_init(&r->loop, &r->stages.rest);
    r->stages.rest.data = r;
    run_fence_open(r);
}

void run_stages_close(struct runner *r)
{
    uv_close((uv_handle_t *)&r->stages.rest, NULL);
    run_fence_close(r);
}

void run_stages_free(struct runner *r)
{
    clave_async_once_free(r->stages.once);
    clave_async_delay_free(r->stages.delay);
    run_fence_free(r);
    run_slot_free(r);
    r->stages.once = NULL;
    r->stages.delay = NULL;
}
