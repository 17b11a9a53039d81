/* actor_hold.c - from the grant to the release or the loss. */
#include <stdio.h>
#include <string.h>

#include "actor.h"
#include "checker.h"
#include "runner.h"

static struct world *world_of(const struct actor *a)
{
    return a->host->w;
}

static struct checker *checker_of(const struct actor *a)
{
    return a->load->checker;
}

/* ---- believing ----------------------------------------------------------------------- */

bool actor_hold_believe(struct actor *a, unsigned nth)
{
    struct hold *h = &a->holds[nth];
    struct grant_facts g;
    if (!a->recipe->held(a, nth, &g))
        return false;
    *h = (struct hold){
        .believed = true,
        .lock = h->lock,
        .shared = h->shared,
        .again = a->latch && a->term == g.token,
        .token = g.token,
        .session = g.session_id,
        .granted_ms = host_clock(a->host),
        .called_at = a->started,
        .granted_at = world_of(a)->now,
    };
    snprintf(h->node, sizeof h->node, "%s", g.node);
    world_log(world_of(a), a->name, "holds %s, token %lld, for %lld ms",
              workload_layout(a->load, h->lock)->path, (long long)g.token,
              (long long)(g.deadline - host_clock(a->host)));
    checker_granted(checker_of(a), a, nth);
    return true;
}

static void end_belief(struct actor *a, unsigned nth)
{
    if (a->holds[nth].believed)
        checker_ended(checker_of(a), a, nth);
    a->holds[nth].believed = false;
}

void actor_hold_keep(struct actor *a, clave_async_grant *g)
{
    clave_async_grant_free(a->kept);
    a->kept = clave_async_grant_ref(g);
}

static void drop_grant(struct actor *a)
{
    clave_async_grant_free(a->kept);
    a->kept = NULL;
}

/* The hold is over: no copy of its grant is valid, or writes. */
static void try_old_grant(struct actor *a)
{
    if (!a->kept)
        return;
    const char *path = workload_layout(a->load, a->lock)->counter;
    clave_err err = clave_async_grant_set(a->kept, path, "old", 3, -1, NULL, NULL);
    if (err != CLAVE_ELOST || clave_async_grant_deadline(a->kept) != INT64_MIN)
        world_break(world_of(a), "no copy of a grant outlives its hold", "%s: a write gives %s",
                    a->name, clave_err_name(err));
    drop_grant(a);
}

void actor_hold_forget(struct actor *a)
{
    drop_grant(a);
    for (unsigned i = 0; i < a->nholds; i++)
        end_belief(a, i);
    a->nholds = 0;
    a->lost = a->lost && a->state == ACTOR_LEAVING; /* its answer may say so still */
    a->asked = a->stubborn = a->has_value = a->seen = false;
}

void actor_lost(struct actor *a, unsigned nth, clave_err why)
{
    struct workload *l = a->load;
    world_log(world_of(a), a->name, "LOST %s by %s", workload_layout(l, a->holds[nth].lock)->path,
              clave_err_name(why));
    if (nth >= a->nholds || !a->holds[nth].believed)
        world_break(world_of(a), "LOST comes once for a hold", "%s holds nothing", a->name);
    l->stats.losses++;
    if (why == CLAVE_ESILENT)
        promise_broken(a, nth);
    end_belief(a, nth);
    if (nth == 0)
        try_old_grant(a);
    a->lost = true;
    if (a->runner)
        runner_lose(a);
    if (a->state == ACTOR_HOLDING)
        actor_go_on(a, l->o->rest_us / 4);
}

void actor_heard_asked(struct actor *a)
{
    world_log(world_of(a), a->name, "is asked to release it");
    if (!actor_believes(a) && !a->leads)
        world_break(world_of(a), "only holders are asked", "%s holds nothing", a->name);
    a->load->stats.asked++;
    a->asked = true;
    a->asked_token = a->holds[0].token;
    if (a->runner)
        runner_stop(a);
    if (a->state == ACTOR_HOLDING)
        actor_go_on(a, a->load->o->rest_us / 4);
}

/* As `clave lock` and `clave elect` do. */
static bool runs_command(struct actor *a)
{
    unsigned with_command = a->load->o->with_command;
    return with_command > 0 && a->nholds == 1 && a->holds[0].believed && !a->selector &&
           world_chance(world_of(a), with_command);
}

void actor_hold_begin(struct actor *a)
{
    struct workload *l = a->load;
    a->state = ACTOR_HOLDING;
    a->has_value = a->seen = false;
    for (unsigned i = 0; i < a->nholds && !a->lost; i++)
        if (!a->holds[i].believed && !actor_hold_believe(a, i)) {
            actor_unexpected(a, "grant after acquire", CLAVE_ENOTHELD);
            return;
        }
    l->stats.grants++;
    a->writes_left = (unsigned)world_between(world_of(a), 0, l->o->writes);
    /* A release that failed for want of memory has left it what it had. */
    a->stubborn = world_chance(world_of(a), l->o->stubborn) && a->holds[0].token != a->asked_token;
    if (runs_command(a)) {
        runner_begin(a);
        return;
    }
    promise_begin(a);
    if (world_chance(world_of(a), l->o->sleepy))
        actor_later(a, l->o->sleep_us);
    else
        actor_go_on(a, l->o->hold_us);
}

void actor_hold_go_on(struct actor *a)
{
    bool given_up = a->state == ACTOR_LEAVING; /* what it asked was freed meanwhile */
    if (given_up && a->calls_out > 0)
        return;
    a->state = ACTOR_HOLDING;
    if (given_up || a->load->ending)
        actor_rest(a);
    else
        actor_go_on(a, a->load->o->hold_us / 4);
}

/* ---- giving back --------------------------------------------------------------------- */

static void check_absence(struct actor *a)
{
    const struct server_host *server = checker_of(a)->server;
    bool sure = server->server && clave_async_client_is_connected(a->host->client);
    for (unsigned i = 0; sure && i < a->nholds; i++)
        if (a->holds[i].session == clave_async_client_session_id(a->host->client) &&
            inspector_has_node(server, a->holds[i].node, a->holds[i].session))
            world_break(world_of(a), "a confirmed release has removed the node",
                        "%s: %s still exists", a->name, a->holds[i].node);
}

void actor_left(struct actor *a, clave_err err)
{
    bool had_lost = actor_had_lost(a, err);
    actor_answered(a, "release");
    if (err != CLAVE_OK && err != CLAVE_ECLOSED && !had_lost)
        actor_unexpected(a, "release", err);
    if (a->calls_out > 0)
        return;
    if (err == CLAVE_OK && !a->lost)
        check_absence(a);
    a->lost = false;
    a->nholds = 0;
    actor_rest(a);
}

void actor_hold_release(struct actor *a)
{
    bool sure = world_chance(world_of(a), 400);
    bool had_lost = a->lost;
    world_log(world_of(a), a->name, "releases%s%s", had_lost ? " what it lost" : "",
              sure ? " and waits for it" : "");
    for (unsigned i = 0; i < a->nholds; i++)
        end_belief(a, i);
    actor_call(a);
    clave_err err = a->recipe->release(a, sure);
    if (err == CLAVE_ENOMEM && sure) /* not given back */
        err = a->recipe->release(a, false);
    a->calling = false;
    if (err != CLAVE_OK && !actor_had_lost(a, err))
        actor_unexpected(a, "release", err);
    else if (!a->load->ending)
        try_old_grant(a);
    drop_grant(a);
    a->stubborn = a->asked = a->has_value = false;
    if (a->calls_out > 0) {
        a->state = ACTOR_LEAVING;
        return;
    }
    a->lost = false;
    a->nholds = 0;
    actor_rest(a);
}

/* ---- what next ----------------------------------------------------------------------- */

/* One that holds until somebody asks: nobody is left who would. */
static bool stays(struct actor *a)
{
    return a->stubborn && !a->asked &&
           !(a->load->day_is_over && !checker_is_wanted(checker_of(a), a->lock));
}

/* In the evening a leader leads until all who look on have seen it. */
static bool waits_to_be_seen(const struct actor *a)
{
    return a->load->day_is_over && a->leads && actor_believes(a) &&
           !checker_is_seen(checker_of(a), a->lock, a->holds[0].token);
}

void actor_hold_decide(struct actor *a)
{
    if (a->lost || selector_is_interrupted(a))
        actor_hold_release(a);
    else if (promise_keep(a))
        return;
    else if (a->has_value && !a->shared)
        increment_write(a);
    else if (a->writes_left > 0)
        increment_read(a);
    else if (a->recipe->dally && world_chance(world_of(a), 80) && a->recipe->dally(a))
        return;
    else if (waits_to_be_seen(a))
        actor_later(a, a->load->o->rest_us);
    else if (stays(a))
        actor_later(a, a->load->o->patience_ms * MS);
    else
        actor_hold_release(a);
}
