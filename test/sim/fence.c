#include "fence.h"

#include <stdio.h>

#include "checker.h"
#include "runner.h"

static struct world *world_of(const struct runner *w)
{
    return w->load->host->w;
}

static void run_fence(struct runner *w)
{
    world_log(world_of(w), w->actor->name, "fences the holder of token %lld",
              (long long)w->fence.target);
    w->load->stats.fences++;
    world_set(world_of(w), &w->fence.alarm,
              world_of(w)->now + world_between(world_of(w), MS, 4 * w->load->o->rest_us));
}

/* Everything on that machine that could still start something, or runs, is gone. */
static void switch_off(struct runner *w)
{
    struct checker *c = w->load->checker;
    for (size_t i = 0; i < c->nloads; i++)
        for (struct runner *o = c->loads[i]->runners; o; o = o->next)
            if (o != w && o->hold.lock == w->hold.lock && o->hold.token == w->fence.target)
                runner_switch_off(o);
    checker_fenced(c, w->hold.lock, w->fence.target);
}

static void on_alarm(struct alarm *a)
{
    struct runner *w = LIST_ENTRY(a, struct runner, fence.alarm);
    struct rand_state *before = world_use_rng(world_of(w), &w->rng);
    struct fence *f = &w->fence;
    f->has_event = true;
    f->event = FENCE_DUE;
    if (f->policy.phase == FENCE_RUNNING) {
        /* The guardian ends a fence that is not done by the deadline of its hold. */
        bool done = world_chance(world_of(w), 700) && host_clock(w->load->host) < w->page;
        if (done)
            switch_off(w);
        f->event = done ? FENCE_SUCCEEDED : FENCE_FAILED;
    }
    world_use_rng(world_of(w), before);
    host_wake(w->load->host);
}

static void on_owed(clave_async_delay *d, const struct held_mark *left, void *arg)
{
    struct runner *w = arg;
    (void)d;
    w->fence.target = left->token;
    if (clave__fence_policy_step(&w->fence.policy, FENCE_OWED) == FENCE_RUN)
        run_fence(w);
}

static void on_marked(clave_async_delay *d, clave_err err, void *arg)
{
    struct runner *w = arg;
    (void)d;
    w->fence.failed = err != CLAVE_OK;
    w->fence.preparing = w->fence.failed;
    host_wake(w->load->host);
}

bool fence_begin(struct runner *w)
{
    struct actor *a = w->actor;
    struct fence *f = &w->fence;
    char path[PATH_SIZE + 8];
    const clave_identity self = {.host = w->load->host->name};
    const clave_delay_options o = {.size = sizeof o, .path = path, .identity = &self};
    const struct held_mark_fence fence = {.owed = on_owed};
    clave_async_grant *g = NULL;
    snprintf(path, sizeof path, "%s-held", workload_layout(w->load, w->hold.lock)->path);
    f->alarm.fire = on_alarm;
    f->preparing = true;
    clave__fence_policy_init(&f->policy,
                             world_chance(world_of(w), 700) ? FENCE_FAILS_WAIT : FENCE_FAILS_EXIT);
    clave_err err = a->recipe->grant(a, 0, &g);
    if (err == CLAVE_OK)
        err = clave__delay_begin(&f->delay, g, &o, &fence, on_marked, w);
    clave_async_grant_free(g);
    return err == CLAVE_OK;
}

bool fence_look(struct runner *w)
{
    struct fence *f = &w->fence;
    if (f->failed || w->told_to_stop)
        return false;
    if (!f->has_event)
        return true;
    f->has_event = false;
    switch (clave__fence_policy_step(&f->policy, f->event)) {
    case FENCE_RUN:
        run_fence(w);
        return true;
    case FENCE_PAUSE:
        world_set(world_of(w), &f->alarm, world_of(w)->now + f->policy.pause_ms * MS / 10);
        return true;
    case FENCE_GO_ON:
        clave__delay_fenced(f->delay);
        return true;
    case FENCE_LEAVE:
        break;
    }
    return false;
}

void fence_sleep(struct runner *w)
{
    world_clear(world_of(w), &w->fence.alarm);
}

void fence_wake(struct runner *w)
{
    bool runs = w->fence.policy.phase == FENCE_RUNNING || w->fence.policy.phase == FENCE_PAUSING;
    if (w->fence.preparing && runs && !w->fence.has_event)
        world_set(world_of(w), &w->fence.alarm,
                  world_of(w)->now + world_wait(world_of(w), 20 * MS));
}

void fence_end(struct runner *w)
{
    checker_ended_in_order(w->load->checker, w->hold.lock, w->hold.token);
    if (w->fence.delay)
        (void)clave_async_delay_end(w->fence.delay, NULL, NULL);
}

void fence_fini(struct runner *w)
{
    world_clear(world_of(w), &w->fence.alarm);
    clave_async_delay_free(w->fence.delay);
    w->fence.delay = NULL;
}
