#include "work.h"

#include "base/list.h"

enum { MARGIN = 20, REACTION_US = 15000 };

static void on_turn(struct alarm *a)
{
    struct work *k = LIST_ENTRY(a, struct work, turn);
    struct rand_state *before = world_use_rng(k->w, k->rng);
    k->ill = !k->ill;
    k->was_ill |= k->ill;
    k->hangs = world_chance(k->w, 400);
    k->ill_from = k->w->now;
    int64_t period = k->policy.terms.every_ms * MS;
    world_set(k->w, a, k->w->now + world_wait(k->w, (k->ill ? 4 : 8) * period));
    world_use_rng(k->w, before);
}

static void on_check(struct alarm *a)
{
    struct work *k = LIST_ENTRY(a, struct work, check);
    k->runs = false;
    k->ended = true;
    k->passed &= !k->ill;
    k->changed(k->owner);
}

static void start_check(struct work *k)
{
    int64_t limit = k->policy.terms.timeout_ms * MS;
    bool slow = world_chance(k->w, 30);
    k->was_late |= slow;
    k->passed = !k->ill;
    k->runs = true;
    if (!k->ill || !k->hangs)
        world_set(k->w, &k->check,
                  k->w->now + (slow ? 2 * limit : world_between(k->w, 0, limit / 2)));
}

/* Now and then it waits in the kernel, where SIGKILL does not reach it. */
static void kill_check(struct work *k)
{
    int64_t period = k->policy.terms.every_ms * MS;
    bool stuck = world_chance(k->w, 200);
    k->was_late |= stuck; /* also one of before the command: there is no other while it lives */
    k->passed = false;
    world_set(k->w, &k->check, k->w->now + (stuck ? world_wait(k->w, 20 * period) : MS / 10));
}

void work_look(struct work *k, int64_t now)
{
    unsigned todo;
    if (!k->w)
        return;
    struct rand_state *before = world_use_rng(k->w, k->rng);
    if (k->ended)
        clave__health_policy_ended(&k->policy, k->passed);
    k->ended = false;
    while ((todo = clave__health_policy_step(&k->policy, now)) != 0) {
        if (todo & HEALTH_KILL_CHECK)
            kill_check(k);
        if (todo & HEALTH_START_CHECK)
            start_check(k);
    }
    world_use_rng(k->w, before);
    if (k->policy.phase == HEALTH_OVER && !k->was_ill && !k->was_late)
        world_break(k->w, "healthy work is not ended", "it was never ill, nor a check late");
}

/* The check that let the candidate stand may still run; what it says is not about the command. */
void work_begin(struct work *k, struct world *w, struct rand_state *rng, int64_t session_ms,
                int64_t now)
{
    struct rand_state *before = world_use_rng(w, rng);
    struct health_terms terms = {.every_ms = world_between(w, session_ms / 20 + 1, session_ms / 2)};
    k->w = w;
    k->rng = rng;
    k->turn.fire = on_turn;
    k->check.fire = on_check;
    terms.timeout_ms = world_between(w, terms.every_ms / 2 + 1, terms.every_ms);
    terms.grace_ms = world_chance(w, 500) ? 0 : world_between(w, 0, 3 * terms.every_ms);
    terms.fails = (int)world_between(w, 1, 3);
    clave__health_policy_begin(&k->policy, &terms, now);
    (void)clave__health_policy_step(&k->policy, now);
    if (world_chance(w, 500))
        clave__health_policy_ended(&k->policy, true);
    else
        world_set(w, &k->check, w->now + world_wait(w, terms.every_ms * MS / 4));
    k->runs = k->passed = k->policy.check == HEALTH_CHECK_RUNS;
    clave__health_policy_run(&k->policy, now);
    world_set(w, &k->turn, w->now + world_wait(w, 4 * terms.every_ms * MS));
    world_use_rng(w, before);
}

void work_fini(struct work *k)
{
    if (!k->w)
        return;
    world_clear(k->w, &k->turn);
    world_clear(k->w, &k->check);
}

bool work_is_neglected(const struct work *k, int64_t from, int64_t kill_ms)
{
    if (!k->w || !k->ill)
        return false;
    const struct health_terms *t = &k->policy.terms;
    int64_t promised = (t->fails * t->every_ms + t->timeout_ms + kill_ms) * MS;
    int64_t since = k->ill_from > from ? k->ill_from : from;
    return k->w->now > since + promised + promised / MARGIN + REACTION_US;
}
