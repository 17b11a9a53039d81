#include "actor.h"

#include <stdio.h>
#include <string.h>

#include "base/deadline.h"
#include "checker.h"

static struct world *world_of(const struct actor *a)
{
    return a->host->w;
}

static const struct lock_layout *layout_of(const struct actor *a)
{
    return workload_layout(a->load, a->lock);
}

/* ---- what an actor does next, and when ----------------------------------------------- */

void actor_later(struct actor *a, int64_t mean)
{
    a->due = false;
    world_set(world_of(a), &a->alarm, world_of(a)->now + world_wait(world_of(a), mean));
}

static void on_alarm(struct alarm *alarm)
{
    struct actor *a = LIST_ENTRY(alarm, struct actor, alarm);
    a->due = true;
    host_wake(a->host);
}

void actor_rest(struct actor *a)
{
    a->state = a->load->ending ? ACTOR_DONE : ACTOR_RESTING;
    if (!a->load->ending)
        actor_later(a, a->load->o->rest_us);
}

void actor_go_on(struct actor *a, int64_t mean)
{
    if (a->load->ending)
        actor_rest(a);
    else if (world_chance(world_of(a), 250))
        actor_decide(a);
    else
        actor_later(a, mean);
}

void actor_call(struct actor *a)
{
    a->calling = true;
}

void actor_owe(struct actor *a)
{
    a->calls_out++;
}

void actor_answered(struct actor *a, const char *what)
{
    if (a->calling)
        world_break(world_of(a), "no callback inside the call that started it", "%s: %s", a->name,
                    what);
    if (a->calls_out == 0)
        world_break(world_of(a), "each request completes exactly once", "%s: %s again", a->name,
                    what);
    else
        a->calls_out--;
}

bool actor_started(struct actor *a, clave_err err, const char *what)
{
    a->calling = false;
    if (err == CLAVE_OK) {
        actor_owe(a);
        return true;
    }
    world_log(world_of(a), a->name, "%s: %s", what, clave_err_name(err));
    return false;
}

void actor_unexpected(struct actor *a, const char *what, clave_err err)
{
    if (err == CLAVE_ENOMEM && a->host->allocator.refused > 0)
        return;
    world_break(world_of(a), "each call ends as its header says", "%s: %s gives %s", a->name, what,
                clave_err_name(err));
}

bool actor_believes(const struct actor *a)
{
    for (unsigned i = 0; i < a->nholds; i++)
        if (a->holds[i].believed)
            return true;
    return false;
}

bool actor_is_valid(const struct actor *a, unsigned nth)
{
    struct grant_facts f;
    if (nth >= a->nholds || !a->holds[nth].believed)
        return false;
    bool lasts = a->recipe->held(a, nth, &f) && deadline_lasts(f.deadline, host_clock(a->host), 1);
    return a->recipe->is_valid ? a->recipe->is_valid(a, lasts) : lasts;
}

/* ---- waiting ------------------------------------------------------------------------- */

static void refused(struct actor *a, clave_err err)
{
    struct workload_stats *st = &a->load->stats;
    bool early = a->deadline != CLAVE_TRY && host_clock(a->host) < a->deadline;
    world_log(world_of(a), a->name, "acquire: %s", clave_err_name(err));
    if (actor_is_late(err) && early)
        actor_unexpected(a, "acquire before its deadline", err);
    else if (err == CLAVE_ECANCELED && !a->canceled)
        actor_unexpected(a, "acquire that was not cancelled", err);
    else if (checker_counter_ended(err) && !a->load->checker->used_up)
        actor_unexpected(a, "acquire with numbers left", err);
    else if (!actor_is_late(err) && err != CLAVE_ECANCELED && err != CLAVE_ECLOSED &&
             !checker_counter_ended(err))
        actor_unexpected(a, "acquire", err);
    st->busy += actor_is_late(err);
    st->canceled += err == CLAVE_ECANCELED;
    st->exhausted += checker_counter_ended(err);
    actor_rest(a);
}

void actor_acquired(struct actor *a, clave_err err)
{
    actor_answered(a, "acquire");
    if (err == CLAVE_OK)
        actor_hold_begin(a);
    else
        refused(a, err);
}

void actor_queued(struct actor *a, size_t ahead)
{
    world_log(world_of(a), a->name, "%zu before it", ahead);
    checker_queued(a->load->checker, a);
}

static void cancel(struct actor *a)
{
    a->canceled = true;
    actor_call(a);
    world_log(world_of(a), a->name, "cancels");
    clave_err err = a->recipe->cancel(a);
    a->calling = false;
    if (err != CLAVE_OK)
        actor_unexpected(a, "cancel", err);
}

/* An actor that would wait forever for a holder that must be asked asks it. */
static void grow_impatient(struct actor *a)
{
    const struct workload_options *o = a->load->o;
    if (a->canceled)
        return;
    if (o->stubborn == 0 || world_chance(world_of(a), o->impatient)) {
        cancel(a);
    } else {
        workload_revoke(a->load, a);
        actor_later(a, o->patience_ms * MS);
    }
}

/* ---- asking -------------------------------------------------------------------------- */

static int64_t draw_deadline(struct actor *a)
{
    const struct workload_options *o = a->load->o;
    struct world *w = world_of(a);
    int64_t rng = world_between(w, 0, 999);
    if (rng < o->forever)
        return CLAVE_NEVER;
    if (rng < o->forever + o->timed)
        return host_clock(a->host) + 1 + world_wait(w, o->patience_ms);
    return CLAVE_TRY;
}

static const struct recipe *draw_recipe(struct actor *a)
{
    static const struct recipe *const plain[LOCK_KINDS] = {
        [LOCK_MUTEX] = &recipe_mutex,
        [LOCK_RWLOCK] = &recipe_rwlock,
        [LOCK_SEMAPHORE] = &recipe_semaphore,
        [LOCK_LATCH] = &recipe_latch,
    };
    const struct workload_options *o = a->load->o;
    if (world_chance(world_of(a), o->bundled))
        return &recipe_multilock;
    bool selects = o->selecting > 0 && layout_of(a)->kind == LOCK_MUTEX;
    return selects && world_chance(world_of(a), o->selecting) ? &recipe_selector
                                                              : plain[layout_of(a)->kind];
}

static void draw_wish(struct actor *a)
{
    const struct workload_options *o = a->load->o;
    struct world *w = world_of(a);
    if (!a->latch && !a->selector) { /* else it stands there already */
        a->object = NULL;
        a->lock = (unsigned)world_between(w, 0, (int64_t)o->locks - 1);
        a->recipe = draw_recipe(a);
    }
    a->shared = layout_of(a)->kind == LOCK_RWLOCK && world_chance(w, o->readers);
    a->wants = layout_of(a)->kind == LOCK_SEMAPHORE
                   ? (unsigned)world_between(w, 1, (int64_t)o->most_leases)
                   : 1;
    a->deadline = draw_deadline(a);
    a->canceled = a->lost = false;
}

static void ask(struct actor *a)
{
    struct workload *l = a->load;
    draw_wish(a);
    l->stats.acquires++;
    checker_asked(l->checker, a);
    world_log(world_of(a), a->name, "asks for the %s %s%s%s", a->recipe->name, layout_of(a)->path,
              a->shared ? " to read" : "",
              a->deadline == CLAVE_NEVER ? ""
              : a->deadline == CLAVE_TRY ? ", if free"
                                         : ", in time");
    actor_call(a);
    clave_err err = a->recipe->acquire(a);
    if (!actor_started(a, err, "acquire")) {
        if (err != CLAVE_ECLOSED)
            actor_unexpected(a, "acquire", err);
        actor_rest(a);
        return;
    }
    a->state = ACTOR_WAITING;
    if (l->o->stubborn > 0 || world_chance(world_of(a), l->o->impatient))
        actor_later(a, l->o->patience_ms * MS);
}

/* ---- what next ----------------------------------------------------------------------- */

static void act_when_rested(struct actor *a)
{
    struct workload *l = a->load;
    bool has_enough = l->day_is_over && a->recipe && a->recipe->is_personal;
    if (a->object && (has_enough || world_chance(world_of(a), l->o->restless))) {
        world_log(world_of(a), a->name, "frees the %s %s", a->recipe->name, layout_of(a)->path);
        workload_discard(l, a);
    }
    if (l->day_is_over) {
        a->state = ACTOR_DONE;
        return;
    }
    if (a->recipe && world_chance(world_of(a), 20))
        workload_list(l, a);
    ask(a);
}

void actor_decide(struct actor *a)
{
    world_clear(world_of(a), &a->alarm);
    a->due = false;
    switch (a->state) {
    case ACTOR_RESTING:
        act_when_rested(a);
        break;
    case ACTOR_WAITING:
        if (!a->recipe->awaken || !a->recipe->awaken(a))
            grow_impatient(a);
        break;
    case ACTOR_HOLDING:
        actor_hold_decide(a);
        break;
    case ACTOR_DOZING:
        increment_write(a);
        break;
    case ACTOR_DONE:
    case ACTOR_READING:
    case ACTOR_WRITING:
    case ACTOR_LEAVING:
    case ACTOR_SUPERVISING:
        break;
    }
}

/* ---- life ---------------------------------------------------------------------------- */

void actor_abandon(struct actor *a)
{
    a->object = NULL;
    actor_hold_forget(a);
    if (a->state == ACTOR_RESTING || a->state == ACTOR_DONE)
        return;
    a->canceled = true;
    if (a->state == ACTOR_WAITING || a->state == ACTOR_LEAVING)
        return;
    if (a->calls_out > 0)
        a->state = ACTOR_LEAVING;
    else
        actor_rest(a);
}

void actor_init(struct actor *a, struct workload *l, unsigned index)
{
    a->host = l->host;
    a->load = l;
    a->owner = index;
    a->alarm.fire = on_alarm;
    snprintf(a->name, sizeof a->name, "client%u.%u", l->host->index % 100, index % 100);
}
