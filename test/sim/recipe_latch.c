/* recipe_latch.c - a candidate of an election: stands from its first acquire until it closes, is
 * elected whether it waits or rests, publishes, resigns, closes, hands over. */
#include <stdio.h>
#include <string.h>

#include "checker.h"
#include "leader_watcher.h"

static struct world *world_of(const struct actor *a)
{
    return a->host->w;
}

/* ---- what it is told ----------------------------------------------------------------- */

static void on_leader(struct actor *a)
{
    if (a->leads)
        world_break(world_of(a), "LEADER and NOT_LEADER alternate", "%s leads already", a->name);
    if (a->stays_out)
        world_break(world_of(a), "a candidate whose work was silent stays out",
                    "%s leads without having resigned", a->name);
    a->leads = true;
    a->lost = a->has_value = a->seen = false;
    a->nholds = 1;
    a->holds[0] = (struct hold){.lock = a->lock};
    a->term = 0;
    if (!actor_hold_believe(a, 0))
        actor_unexpected(a, "grant of a leader", CLAVE_ENOTHELD);
    a->term = a->holds[0].token;
}

static void on_not_leader(struct actor *a, clave_err why)
{
    if (!a->leads)
        world_break(world_of(a), "LEADER and NOT_LEADER alternate", "%s does not lead", a->name);
    a->leads = false;
    a->stays_out = why == CLAVE_ESILENT;
    if (actor_believes(a))
        actor_lost(a, 0, why);
    else
        world_log(world_of(a), a->name, "no longer leads");
}

static void on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct actor *a = arg;
    (void)l;
    switch (ev->kind) {
    case CLAVE_LATCH_QUEUED:
        world_log(world_of(a), a->name, "%zu before it", ev->ahead);
        break;
    case CLAVE_LATCH_NEXT:
        break;
    case CLAVE_LATCH_LEADER:
        on_leader(a);
        break;
    case CLAVE_LATCH_NOT_LEADER:
        on_not_leader(a, ev->why);
        break;
    case CLAVE_LATCH_ASKED:
        actor_heard_asked(a);
        break;
    case CLAVE_LATCH_FAILED:
        if (ev->why == CLAVE_ESILENT
                ? !a->stays_out
                : !checker_counter_ended(ev->why) || !a->load->checker->used_up)
            actor_unexpected(a, "candidate", ev->why);
        break;
    }
}

/* ---- standing ------------------------------------------------------------------------ */

static clave_err stand(struct actor *a)
{
    const struct workload_options *o = a->load->o;
    clave_latch_options lo = {
        .size = sizeof lo,
        .id = a->name,
        .policy = o->session_policy ? CLAVE_POLICY_SESSION : CLAVE_POLICY_STANDARD,
        .max_term_ms = o->max_hold_ms,
        .strict = o->strict,
        .revocable = o->revocable,
        .event_cb = on_event,
        .event_arg = a,
    };
    a->leads = a->stays_out = false;
    a->holds[0] = (struct hold){.lock = a->lock};
    clave_err err = clave_async_latch_new(&a->latch, a->host->client,
                                          workload_layout(a->load, a->lock)->path, &lo);
    if (err != CLAVE_OK)
        return err;
    err = clave_async_latch_start(a->latch);
    if (err != CLAVE_OK) {
        clave_async_latch_free(a->latch);
        a->latch = NULL;
    }
    a->object = a->latch;
    return err;
}

static clave_err resign(struct actor *a)
{
    clave_err err = clave_async_latch_resign(a->latch);
    a->stays_out = a->stays_out && err != CLAVE_OK;
    return err;
}

static void on_awaited(clave_async_latch *l, clave_err err, void *arg)
{
    struct actor *a = arg;
    (void)l;
    actor_acquired(a, err);
}

static clave_err acquire(struct actor *a)
{
    clave_err err = CLAVE_OK;
    leader_watcher_begin(a->load, a->lock);
    a->nholds = 1;
    if (!a->latch)
        err = stand(a);
    /* One that rests since its counter was used up, or its work silent, stands anew. */
    if (err == CLAVE_OK && (a->load->checker->used_up || a->stays_out) && !a->leads)
        err = resign(a);
    int64_t deadline = a->deadline == CLAVE_TRY ? host_clock(a->host) + 1 : a->deadline;
    return err == CLAVE_OK ? clave_async_latch_await(a->latch, deadline, on_awaited, a) : err;
}

static clave_err cancel(struct actor *a)
{
    return clave_async_latch_cancel(a->latch, on_awaited, a);
}

/* ---- leaving ------------------------------------------------------------------------- */

static void free_latch(struct actor *a)
{
    clave_async_latch *l = a->latch;
    a->latch = NULL;
    a->object = NULL;
    a->leads = false;
    clave_async_latch_free(l);
}

static void on_closed(clave_async_latch *l, clave_err err, void *arg)
{
    struct actor *a = arg;
    (void)l;
    if (a->latch)
        free_latch(a);
    actor_left(a, err);
}

static clave_err close_latch(struct actor *a, bool sure)
{
    clave_latch_close_mode mode =
        world_chance(world_of(a), 500) ? CLAVE_CLOSE_SILENT : CLAVE_CLOSE_NOTIFY_LEADER;
    if (clave_async_latch_state_of(a->latch) != CLAVE_LATCH_STARTED) {
        free_latch(a);
        return CLAVE_OK;
    }
    clave_err err = clave_async_latch_close(a->latch, mode, sure ? on_closed : NULL, a);
    if (sure && err == CLAVE_OK)
        actor_owe(a);
    else if (err != CLAVE_ENOMEM) /* then nothing was done */
        free_latch(a);
    return err;
}

static clave_err release(struct actor *a, bool sure)
{
    /* Elected again meanwhile, or waiting to be. */
    if (a->lost && world_chance(world_of(a), 500))
        return CLAVE_ELOST;
    if (world_chance(world_of(a), 400))
        return close_latch(a, sure);
    world_log(world_of(a), a->name, "resigns");
    clave_err err = resign(a);
    return err == CLAVE_EINVAL ? close_latch(a, sure) : err; /* closed with its client */
}

static void discard(struct actor *a)
{
    if (a->latch)
        free_latch(a);
}

/* ---- leading ------------------------------------------------------------------------- */

static bool held(const struct actor *a, unsigned nth, struct grant_facts *out)
{
    (void)nth;
    return a->latch && clave__latch_held(a->latch, out);
}

/* With the standard policy a candidate that is cut off does not lead. */
static bool is_valid(const struct actor *a, bool valid)
{
    clave_state state = clave_async_client_state(a->host->client);
    bool cut_off = state == CLAVE_STATE_SUSPENDED || state == CLAVE_STATE_LOST;
    if (valid && cut_off && !a->load->o->session_policy)
        world_break(world_of(a), "a candidate that is cut off does not lead", "%s does", a->name);
    return valid;
}

static clave_err grant(const struct actor *a, unsigned nth, clave_async_grant **out)
{
    (void)nth;
    return clave_async_latch_grant(a->latch, out);
}

static void on_published(clave_async_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    clave_err_class class_ = clave_err_classify(res->err);
    (void)c;
    actor_answered(a, "publish");
    if (res->err != CLAVE_OK && res->err != CLAVE_ELOST && res->err != CLAVE_ECLOSED &&
        class_ != CLAVE_CLASS_UNKNOWN)
        actor_unexpected(a, "publish", res->err);
    actor_hold_go_on(a);
}

static bool publish(struct actor *a)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%lld", (long long)a->holds[0].token);
    actor_call(a);
    clave_err err = clave_async_latch_publish(a->latch, text, (size_t)n, on_published, a);
    if (!actor_started(a, err, "publish"))
        return false;
    world_log(world_of(a), a->name, "publishes %s", text);
    a->state = ACTOR_READING;
    return true;
}

/* ---- handing over -------------------------------------------------------------------- */

static void on_transferred(clave_async_client *c, clave_err err, void *arg)
{
    struct actor *a = arg;
    clave_err_class class_ = clave_err_classify(err);
    (void)c;
    actor_answered(a, "transfer");
    world_log(world_of(a), a->name, "transfer: %s", clave_err_name(err));
    if (err != CLAVE_OK && err != CLAVE_ENONODE && err != CLAVE_ELOST && err != CLAVE_ECLOSED &&
        err != CLAVE_EEXPIRED && class_ != CLAVE_CLASS_UNKNOWN && class_ != CLAVE_CLASS_RETRY)
        actor_unexpected(a, "transfer", err);
    a->load->stats.transferred += err == CLAVE_OK;
    if (err == CLAVE_OK && a->state == ACTOR_READING) {
        actor_hold_forget(a);
        actor_rest(a);
        return;
    }
    actor_hold_go_on(a);
}

static void on_candidates(clave_async_client *c, clave_err err, const clave_participant *list,
                          size_t n, void *arg)
{
    struct actor *a = arg;
    (void)c;
    actor_answered(a, "candidates");
    bool may = err == CLAVE_OK && n > 1 && a->state == ACTOR_READING && a->leads;
    size_t next = may ? (size_t)world_between(world_of(a), 1, (int64_t)n - 1) : 0;
    if (may &&
        clave_async_latch_transfer(a->latch, list[next].node, on_transferred, a) == CLAVE_OK) {
        actor_owe(a);
        world_log(world_of(a), a->name, "hands over to %s", list[next].node);
        return;
    }
    actor_hold_go_on(a);
}

static bool hand_over(struct actor *a)
{
    actor_call(a);
    clave_err err = clave_async_latch_participants(
        a->host->client, workload_layout(a->load, a->lock)->path, on_candidates, a);
    if (!actor_started(a, err, "candidates"))
        return false;
    a->state = ACTOR_READING;
    return true;
}

static bool publish_or_hand_over(struct actor *a)
{
    if (!a->leads)
        return false;
    return world_chance(world_of(a), a->load->o->transfers) ? hand_over(a) : publish(a);
}

static clave_err list(struct actor *a, clave_async_participants_cb *cb, void *arg)
{
    const char *path = workload_layout(a->load, a->lock)->path;
    return world_chance(world_of(a), 500)
               ? clave_async_latch_participants(a->host->client, path, cb, arg)
               : clave_async_latch_leader(a->host->client, path, cb, arg);
}

const struct recipe recipe_latch = {
    .name = "leadership of",
    .is_personal = true,
    .acquire = acquire,
    .cancel = cancel,
    .release = release,
    .held = held,
    .is_valid = is_valid,
    .grant = grant,
    .dally = publish_or_hand_over,
    .discard = discard,
    .list = list,
};
