/* runner_acquire.c - how the runner comes to hold the lock: the access list, the place in the
 * queue, the verdict, and the events of the acquisition until the end. Called by runner.c when
 * there is a session. */
#include "cmd/run/runner_acquire.h"

#include <assert.h>

#include "clave/uv.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/run/child.h"
#include "cmd/run/granted_field.h"
#include "cmd/run/hook.h"
#include "cmd/run/lock_messages.h"

/* For a server to say who holds the lock. */
enum { HOLDER_MS = 3000 };

/* What the client asked for has failed. */
static void runner_leave_with(struct runner *r, clave_err err)
{
    const struct client_fault *fault = clave__client_latest_fault(r->client);
    r->events->leave(r, diag_fault(r->o, r->plan->path, err, fault));
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void runner_record_grant(const struct runner *r)
{
    struct grant_facts g;
    if (r->waited && acquisition_held(&r->acquisition, &g))
        held_since_record(r->client, r->plan, g.node);
}

static void runner_give_up(struct runner *r, const struct lock_obstacle *why)
{
    if (r->phase != WAITING)
        return;
    lock_message_not_acquired(r->plan, r->gave_up - r->began, why);
    r->events->leave(r, r->plan->conflict_code);
}

static void runner_on_holder(void *arg, const clave_participant *holder)
{
    runner_give_up(arg, &(struct lock_obstacle){.holder = holder});
}

static void runner_on_no_holder(uv_timer_t *timer)
{
    runner_give_up(timer->data, &(struct lock_obstacle){.holder = NULL});
}

/* Says what was in the way, which the next request may forget; else who holds it, if the server
 * tells in time. */
static void runner_not_acquired(struct runner *r)
{
    assert(r->phase == WAITING);
    bool away = !clave_async_client_is_connected(r->client);
    const struct lock_obstacle why = {.away = away ? clave_async_client_errmsg(r->client) : NULL,
                                      .put_off = lock_wait_is_put_off(&r->progress),
                                      .limit_missing = acquisition_limit_missing(&r->acquisition)};
    bool known = away || why.put_off || why.limit_missing;
    r->gave_up = clave_now();
    if (!known && !r->plan->quiet && lock_wait_find_holder(&r->progress, runner_on_holder, r))
        uv_timer_start(&r->phase_timer, runner_on_no_holder, HOLDER_MS, 0);
    else
        runner_give_up(r, &why);
}

static void runner_on_verdict(void *arg, clave_err err)
{
    struct runner *r = arg;
    if (r->phase != WAITING)
        return;
    lock_wait_end(&r->progress);
    if (err == CLAVE_OK) {
        runner_record_grant(r);
        run_stages_begin(r);
    } else if (err == CLAVE_EBUSY || err == CLAVE_EUNREACHABLE) {
        runner_not_acquired(r);
    } else if (err == CLAVE_EDEADLOCK) {
        lock_message_deadlock(r->plan, acquisition_deadlock(&r->acquisition));
        r->events->leave(r, EXIT_DEADLOCK);
    } else {
        r->events->leave(
            r, err == CLAVE_ENOAUTH
                   ? lock_message_unauthorised(r->plan)
                   : diag_fault(r->o, r->plan->path, err, clave__client_latest_fault(r->client)));
    }
}

static void runner_on_moved(void *arg, size_t ahead, const char *predecessor)
{
    struct runner *r = arg;
    r->waited = true;
    lock_wait_moved(&r->progress, ahead, predecessor);
    sd_status_waiting(r, ahead, true);
    nested_look(&r->nested, r->client);
}

/* It would wait forever: the holder waits for it. */
static void runner_on_outer(void *arg, const clave_participant *outer)
{
    struct runner *r = arg;
    if (r->phase != WAITING || r->stages.phase != NOT_GRANTED)
        return;
    lock_wait_end(&r->progress);
    lock_message_nested(r->plan, outer);
    r->events->leave(r, EXIT_DEADLOCK);
}

static void runner_on_next(void *arg)
{
    struct runner *r = arg;
    if (r->phase == WAITING)
        hook_run(r->plan, r->plan->standby, "standby", 0);
}

static void runner_on_lost(void *arg, clave_err why)
{
    struct runner *r = arg;
    if (r->phase == HOLDING || r->phase == SWEEPING)
        child_lost(r, why);
    else
        run_stages_lost(r, why);
}

static void runner_on_asked(void *arg)
{
    struct runner *r = arg;
    if (r->phase == HOLDING) {
        child_asked(r);
    } else if (r->phase != LEAVING) {
        r->asked = true;
        lock_message_asked(r->plan);
        run_stages_cut_short(r);
    }
}

static const struct acquisition_events acquisition_events = {
    .moved = runner_on_moved,
    .next = runner_on_next,
    .verdict = runner_on_verdict,
    .lost = runner_on_lost,
    .asked = runner_on_asked,
};

/* ---- the place ------------------------------------------------------------------------------- */

static int64_t runner_wait_until(const struct runner *r)
{
    int64_t wait = r->plan->wait_ms;
    return wait == LOCK_TRY ? CLAVE_TRY : wait == LOCK_FOR_EVER ? CLAVE_NEVER : r->began + wait;
}

static void runner_begin_waiting(struct runner *r)
{
    assert(r->phase == CONNECTING);
    const struct run_plan *plan = r->plan;
    /* The command gets some time before its first warning could be due. */
    const struct acquisition_terms terms = {.deadline = runner_wait_until(r),
                                            .min_valid_ms =
                                                child_grace(r) + child_lead(r) +
                                                clave_async_client_session_timeout(r->client) / 8};
    connect_note_session(r->o, clave_async_client_session_id(r->client),
                         clave_async_client_session_timeout(r->client));
    uv_timer_stop(&r->phase_timer);
    r->phase = WAITING;
    r->acquisition = (struct acquisition){.events = &acquisition_events, .arg = r};
    r->nested = (struct nested){
        .plan = plan, .acquisition = &r->acquisition, .found = runner_on_outer, .arg = r};
    clave_err err = acquisition_begin(&r->acquisition, r->client, plan, &terms);
    if (err == CLAVE_OK) {
        lock_wait_begin(&r->progress, &r->acquisition, r->client, r->uv);
        sd_status_waiting(r, 0, false);
    } else {
        runner_leave_with(r, err);
    }
}

static void runner_on_dirs(void *arg, clave_err err)
{
    struct runner *r = arg;
    assert(r->reads_acl);
    r->reads_acl = false;
    if (r->phase != CONNECTING)
        return;
    if (err == CLAVE_OK)
        runner_begin_waiting(r);
    else if (clave_err_classify(err) == CLAVE_CLASS_FINAL)
        runner_leave_with(r, err);
}

/* What is created in the path's node gets its list. */
static void runner_use_parent_acl(struct runner *r)
{
    assert(r->phase == CONNECTING && !r->reads_acl);
    const struct run_plan *plan = r->plan;
    run_flags_warn_of_acl(plan);
    if (plan->kind != KIND_LEASE) {
        runner_begin_waiting(r);
        return;
    }
    r->dirs = (struct acquisition_dirs){.made = runner_on_dirs, .arg = r};
    clave_err err = acquisition_dirs_make(&r->dirs, r->client, plan);
    r->reads_acl = err == CLAVE_OK;
    if (err != CLAVE_OK)
        runner_leave_with(r, err);
}

/* --acl parent: the list of the lock's node is known only now. A failure of the connection is
 * followed by another one. */
static void runner_on_parent_acl(clave_async_client *c, const clave_result *res, void *arg)
{
    struct runner *r = arg;
    const struct run_plan *plan = r->plan;
    assert(r->reads_acl && plan->parent_acl);
    const char *fault;
    (void)c;
    r->reads_acl = false;
    if (r->phase != CONNECTING)
        return;
    if (res->err == CLAVE_OK && acl_copy(plan->parent_acl, res->acls, res->nacls, &fault)) {
        runner_use_parent_acl(r);
    } else if (res->err == CLAVE_OK) {
        r->events->leave(r,
                         diag_end(r->o, plan->path, EXIT_NOAUTH,
                                  "its access list cannot be that of the node in it: %s", fault));
    } else if (res->err == CLAVE_ENONODE) {
        r->events->leave(
            r, diag_end(r->o, plan->path, EXIT_PATH,
                        "no such node: create it with its access list ('clave create --acl')"));
    } else if (clave_err_classify(res->err) == CLAVE_CLASS_FINAL) {
        runner_leave_with(r, res->err);
    }
}

void runner_acquire(struct runner *r)
{
    const struct run_plan *plan = r->plan;
    lock_wait_clear(&r->progress);
    if (!plan->parent_acl) {
        runner_begin_waiting(r);
        return;
    }
    clave_err err = r->reads_acl
                        ? CLAVE_OK
                        : clave_async_get_acl(r->client, plan->path, runner_on_parent_acl, r);
    r->reads_acl = err == CLAVE_OK;
    if (err != CLAVE_OK)
        runner_leave_with(r, err);
}
