/* wait_cycle.c - the cycles among owners that cannot proceed, and the victim of each: the member
 * that gives up. Called by waitgraph.c. Invariant: no owner is in two of the cycles found. */
#include <string.h>

#include "recipe/deadlock/waitgraph_internal.h"

static const struct wait_claim *wait_claim_of(const struct solver *s, const struct wait_step *step)
{
    return &s->queues[step->queue].claims[step->claim];
}

/* The oldest wait, so that the choice does not depend on the order of the queues. */
static void wait_choose_wait(struct solver *s, struct owner *o)
{
    for (size_t at = o->claims; at != WAIT_NONE; at = s->links[at].next) {
        const struct link *l = &s->links[at];
        struct wait_step step = {l->queue, l->claim, WAIT_NONE};
        if (l->waits)
            step.blocker = clave__wait_blocker(s, l);
        if (step.blocker == WAIT_NONE)
            continue;
        if (o->next != WAIT_NONE &&
            wait_claim_of(s, &o->step)->token < wait_claim_of(s, &step)->token)
            continue;
        o->step = step;
        o->next = clave__wait_owner_at(s, step.queue, step.blocker);
    }
}

/* A whole waits for the end of its parts, the least of them first. */
static void wait_choose_part(struct solver *s, size_t i)
{
    const struct owner *o = &s->owners[i];
    struct owner *whole = o->parent == WAIT_NONE ? NULL : &s->owners[o->parent];
    if (whole && o->stuck &&
        (whole->part == WAIT_NONE || strcmp(o->text, s->owners[whole->part].text) < 0))
        whole->part = i;
}

static void wait_choose_child(const struct solver *s, struct owner *o)
{
    const struct link *has = &s->links[o->claims];
    o->step = (struct wait_step){has->queue, has->claim, WAIT_NONE};
    o->next = o->part;
}

static size_t wait_cycle_victim(const struct solver *s, const struct wait_cycle *c)
{
    size_t victim = WAIT_NONE;
    for (size_t i = 0; i < c->n; i++) {
        const struct wait_claim *claim = wait_claim_of(s, &c->steps[i]);
        bool may = c->steps[i].blocker != WAIT_NONE && claim->yields;
        if (may &&
            (victim == WAIT_NONE || claim->token > wait_claim_of(s, &c->steps[victim])->token))
            victim = i;
    }
    return victim;
}

/* The next owner of each that is stuck, which is stuck too. */
static void wait_choose_next(struct solver *s)
{
    for (size_t i = 0; i < s->nowners; i++)
        if (s->owners[i].stuck)
            s->owners[i].next = s->owners[i].part = WAIT_NONE;
    for (size_t i = 0; i < s->nowners; i++)
        wait_choose_part(s, i);
    for (size_t i = 0; i < s->nowners; i++) {
        struct owner *o = &s->owners[i];
        if (o->stuck)
            wait_choose_wait(s, o);
        if (o->stuck && o->next == WAIT_NONE)
            wait_choose_child(s, o);
    }
}

/* Every owner that has a next one waits for another that has: following the waits leads to a cycle.
 * Whoever is certainly stuck waits for one that certainly is, so a cycle is all of these or none.
 */
static void wait_collect(struct solver *s, struct wait_verdict *v)
{
    size_t nsteps = 0;
    for (size_t i = 0; i < s->nowners; i++) {
        size_t at = i;
        while (s->owners[at].next != WAIT_NONE && s->owners[at].walk == 0) {
            s->owners[at].walk = i + 1;
            at = s->owners[at].next;
        }
        if (s->owners[at].next == WAIT_NONE || s->owners[at].walk != i + 1)
            continue; /* nobody is stuck here, or the cycle is known */
        struct wait_cycle *c = &v->cycles[v->n++];
        *c = (struct wait_cycle){.steps = &v->steps[nsteps], .certain = s->owners[at].stuck};
        while (s->owners[at].walk == i + 1) {
            s->owners[at].walk = SIZE_MAX;
            v->steps[nsteps++] = s->owners[at].step;
            at = s->owners[at].next;
            c->n++;
        }
        c->victim = wait_cycle_victim(s, c);
    }
}

clave_err clave__wait_cycles_find(struct solver *s, struct wait_verdict *v)
{
    for (size_t i = 0; i < s->nowners; i++)
        v->stuck += s->owners[i].stuck;
    if (v->stuck == 0)
        return CLAVE_OK;
    v->cycles = clave__mem_zalloc(s->mem, v->stuck * sizeof *v->cycles);
    v->steps = clave__mem_zalloc(s->mem, v->stuck * sizeof *v->steps);
    if (!v->cycles || !v->steps)
        return CLAVE_ENOMEM;
    wait_choose_next(s);
    clave__wait_reduce_to_certain(s);
    wait_choose_next(s);
    wait_collect(s, v);
    return CLAVE_OK;
}
