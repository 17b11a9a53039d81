/* run_fence.c - see run_fence.h. once_and_min_hold.c, child.c and runner.c call it.
 *
 * What must stay true: clave__delay_fenced is called only on the policy's FENCE_GO_ON, so that our
 * mark, and with it the start of the command, always comes after the fence. */
#include "cmd/run/stages/run_fence.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/diag.h"
#include "cmd/run/lock_messages.h"
#include "cmd/run/runner.h"
#include "recipe/queue/identity.h"

/* Passed from this program to itself when it executes again: the id of the mark that it has left.
 */
static const char passed_on[] = "CLAVE_HARMLESS_MARK";

/* ---- flags ----------------------------------------------------------------------------------- */

int run_fence_take_flag(struct run_plan *p, int id)
{
    static const char *const fails[] = {[FENCE_FAILS_WAIT] = "wait",
                                        [FENCE_FAILS_PASS] = "pass",
                                        [FENCE_FAILS_EXIT] = "exit",
                                        NULL};
    static const char *const foreign[] = {"never", "always", NULL};
    struct run_fence_plan *f = &p->stages.fence;
    int n;
    switch (id) {
    case RUN_FLAG_FENCE:
        f->command = p->o->value;
        p->stages.marks = true;
        return 1;
    case RUN_FLAG_FENCE_TIMEOUT:
        f->options = "fence-timeout";
        return options_duration(p->o, f->options, 1, RUN_FLAG_YEAR_MS, &f->timeout_ms);
    case RUN_FLAG_FENCE_FAILS:
        f->options = "fence-fails";
        if (!options_word(p->o, f->options, fails, &n))
            return 0;
        f->fails = (enum fence_fails)n;
        return 1;
    case RUN_FLAG_FENCE_FOREIGN:
        f->options = "fence-foreign";
        if (!options_word(p->o, f->options, foreign, &n))
            return 0;
        f->foreign = n == 1;
        return 1;
    default:
        return -1;
    }
}

int run_fence_check(struct run_plan *p)
{
    static char shell[] = "sh", flag[] = "-c";
    struct run_fence_plan *f = &p->stages.fence;
    const char *mark = getenv(passed_on);
    snprintf(f->harmless, sizeof f->harmless, "%s", mark ? mark : "");
    unsetenv(passed_on);
    if (!f->command && f->options)
        return diag_usage(p->o, "--%s needs --fence SHELL-COMMAND", f->options);
    if (!f->command)
        return EXIT_OK;
    if (f->timeout_ms == 0)
        f->timeout_ms = RUN_FENCE_TIMEOUT_MS;
    f->argv[0] = shell;
    f->argv[1] = flag;
    f->argv[2] =
        (char *)(uintptr_t)f->command; /* exec wants it without const, and changes nothing */
    f->runs = (struct command){.argv = f->argv, .same_user = p->command.same_user, .aside = true};
    return EXIT_OK;
}

/* ---- the participant before us --------------------------------------------------------------- */

static void run_fence_forget(struct run_fence *f)
{
    free(f->before.data);
    f->before.data = NULL;
    f->before.known = false;
}

static void run_fence_on_before(clave_async_client *c, const clave_result *res, void *arg)
{
    struct runner *r = arg;
    struct run_fence *f = &r->stages.fence;
    (void)c;
    if (!f->asked || strcmp(res->path, f->asked) != 0)
        return; /* that participant is no longer the one before us */
    free(f->asked);
    f->asked = NULL;
    if (res->err != CLAVE_OK || clave__lock_delay_field_is_set(res->data, res->len))
        return;
    f->before.data = calloc(1, res->len + 1);
    if (!f->before.data)
        return;
    if (res->len > 0)
        memcpy(f->before.data, res->data, res->len);
    f->before.known = true;
    f->before.n = res->len;
    f->before.token = res->stat->czxid;
    clave__identity_parse(f->before.data, res->len, &f->before.identity);
}

/* A candidate's node has no room to say whether the candidate leaves a mark, so candidates are not
 * looked at. */
void run_fence_moved(struct runner *r, const char *predecessor)
{
    struct run_fence *f = &r->stages.fence;
    if (!r->plan->stages.fence.command || r->plan->elects || !*predecessor)
        return;
    run_fence_forget(f);
    free(f->asked);
    f->asked = strdup(predecessor);
    if (f->asked)
        (void)clave_async_get(r->client, predecessor, NULL, run_fence_on_before, r);
}

/* ---- fencing --------------------------------------------------------------------------------- */

static void run_fence_on_pause_over(uv_timer_t *timer);

static void run_fence_act(struct runner *r, enum fence_act act)
{
    struct run_fence *f = &r->stages.fence;
    switch (act) {
    case FENCE_RUN:
        f->began = clave_now();
        lock_message_fencing(r->plan, &f->target);
        child_fence(r, &f->target);
        break;
    case FENCE_PAUSE:
        uv_update_time(&r->loop);
        uv_timer_start(&f->pause, run_fence_on_pause_over, (uint64_t)f->policy.pause_ms, 0);
        break;
    case FENCE_GO_ON:
        clave__delay_fenced(r->stages.delay);
        clave_uv_flush(r->uv);
        break;
    case FENCE_LEAVE:
        r->events->leave(r, EXIT_FENCE);
        break;
    }
}

static void run_fence_on_pause_over(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    run_fence_act(r, clave__fence_policy_step(&r->stages.fence.policy, FENCE_DUE));
}

/* Names are cut to what fits. */
static void run_fence_on_owed(clave_async_delay *d, const struct held_mark *left, void *arg)
{
    struct runner *r = arg;
    struct run_fence *f = &r->stages.fence;
    struct fence_target *t = &f->target;
    const clave_identity *who = left->identity;
    (void)d;
    if (r->phase != WAITING)
        return;
    *t = (struct fence_target){.token = left->token, .pid = who->pid, .foreign = left->foreign};
    snprintf(t->host, sizeof t->host, "%s", who->host ? who->host : "");
    snprintf(t->name, sizeof t->name, "%s", who->name ? who->name : "");
    snprintf(t->command, sizeof t->command, "%s", who->command ? who->command : "");
    snprintf(t->text, sizeof t->text, "%s", who->text ? who->text : "");
    run_fence_act(r, clave__fence_policy_step(&f->policy, FENCE_OWED));
}

const struct held_mark_fence *run_fence_begin(struct runner *r, struct held_mark_fence *out,
                                              struct held_mark *unmarked)
{
    const struct run_fence_plan *plan = &r->plan->stages.fence;
    struct run_fence *f = &r->stages.fence;
    if (!plan->command)
        return NULL;
    clave__fence_policy_init(&f->policy, plan->fails);
    *out = (struct held_mark_fence){.owed = run_fence_on_owed,
                                    .harmless = *plan->harmless ? plan->harmless : NULL};
    if (f->before.known && plan->foreign) {
        *unmarked = (struct held_mark){
            .token = f->before.token, .foreign = true, .identity = &f->before.identity};
        out->unmarked = unmarked;
    } else if (f->before.known) {
        lock_message_unfenced(r->plan, &f->before.identity);
    }
    return out;
}

void run_fence_ended(struct runner *r, const struct run_fence_end *end)
{
    struct run_fence *f = &r->stages.fence;
    bool fine = !end->refused && !end->timed_out && end->code == EXIT_OK;
    int64_t took_ms = clave_now() - f->began;
    enum fence_act act =
        clave__fence_policy_step(&f->policy, fine ? FENCE_SUCCEEDED : FENCE_FAILED);
    if (fine)
        lock_message_fenced(r->plan, took_ms);
    else
        lock_message_fence_failed(r->plan, end, took_ms,
                                  act == FENCE_PAUSE ? f->policy.pause_ms : 0);
    run_fence_act(r, act);
}

/* ---- life ------------------------------------------------------------------------------------ */

void run_fence_open(struct runner *r)
{
    uv_timer_init(&r->loop, &r->stages.fence.pause);
    r->stages.fence.pause.data = r;
}

void run_fence_release(struct runner *r)
{
    uv_timer_stop(&r->stages.fence.pause);
    if (r->plan->again && r->plan->stages.fence.command && r->stages.delay)
        (void)setenv(passed_on, clave__delay_mark_id(r->stages.delay), 1);
}

void run_fence_close(struct runner *r)
{
    uv_close((uv_handle_t *)&r->stages.fence.pause, NULL);
}

void run_fence_free(struct runner *r)
{
    run_fence_forget(&r->stages.fence);
    free(r->stages.fence.asked);
    r->stages.fence.asked = NULL;
}
