#include "command.h"

#include "base/list.h"

static void on_next(struct alarm *a)
{
    struct command *c = LIST_ENTRY(a, struct command, next);
    struct rand_state *before = world_use_rng(c->w, c->rng);
    if (c->stuck) /* all that is pending ends it */
        c->descendants = 0;
    c->stuck = false;
    if (c->runs)
        c->runs = false;
    else
        c->descendants = 0;
    if (c->descendants > 0) /* it leaves others behind, who end later */
        world_set(c->w, a, c->w->now + world_wait(c->w, 20 * MS));
    world_use_rng(c->w, before);
    c->changed(c->owner);
}

void command_init(struct command *c, struct world *w, struct rand_state *rng)
{
    c->w = w;
    c->rng = rng;
    c->next.fire = on_next;
}

void command_start(struct command *c, int64_t lasts_us)
{
    c->runs = true;
    c->ignores_sigterm = world_chance(c->w, 200);
    c->descendants = world_chance(c->w, 300) ? (unsigned)world_between(c->w, 1, 3) : 0;
    world_set(c->w, &c->next, c->w->now + world_wait(c->w, lasts_us));
}

void command_stick(struct command *c, int64_t lasts_us)
{
    c->stuck = true;
    world_set(c->w, &c->next, c->w->now + world_wait(c->w, lasts_us));
}

void command_fini(struct command *c)
{
    world_clear(c->w, &c->next);
}

bool command_is_alive(const struct command *c)
{
    return c->runs || c->descendants > 0;
}

/* A stopped process gets it too: SIGCONT comes with it. */
void command_terminate(struct command *c, int64_t within_us)
{
    if (!c->ignores_sigterm && !c->stuck && command_is_alive(c))
        world_set_earlier(c->w, &c->next, c->w->now + world_between(c->w, 0, within_us));
}

void command_kill(struct command *c)
{
    if (!command_is_alive(c) || c->stuck)
        return;
    bool escapes = c->runs && !c->escaped && world_chance(c->w, 500);
    c->escaped |= escapes;
    c->runs = false;
    c->descendants = escapes;
    if (escapes)
        world_set(c->w, &c->next, c->w->now + world_wait(c->w, SECOND));
    else
        world_clear(c->w, &c->next);
    c->changed(c->owner);
}

void command_switch_off(struct command *c)
{
    bool was_alive = command_is_alive(c);
    c->runs = c->stuck = false;
    c->descendants = 0;
    world_clear(c->w, &c->next);
    if (was_alive)
        c->changed(c->owner);
}

void command_parent_died(struct command *c)
{
    if (!c->runs || c->stuck)
        return;
    c->runs = false;
    if (c->descendants == 0)
        world_clear(c->w, &c->next);
    c->changed(c->owner);
}

void command_sleep(struct command *c)
{
    c->asleep = true;
    world_clear(c->w, &c->next);
}

void command_wake(struct command *c)
{
    if (!c->asleep)
        return;
    c->asleep = false;
    if (command_is_alive(c))
        world_set(c->w, &c->next, c->w->now + world_wait(c->w, 20 * MS));
}
