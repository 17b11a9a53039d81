/* lock_counters.c - see lock_counters.h. Called by observe.c. Invariant: a hold that began before
 * the gate looked is counted when it ends, but not measured: its beginning is not known. */
#include "observe/lock_counters.h"

/* Milliseconds. */
static const struct histogram_bounds durations = {
    12, {1, 5, 10, 50, 100, 500, 1000, 5000, 10000, 60000, 300000, 3600000}};

void clave__lock_counters_init(struct lock_counters *m)
{
    *m = (struct lock_counters){0};
    for (int kind = 0; kind < LOCK_KINDS; kind++) {
        clave__histogram_init(&m->waited[kind], &durations);
        clave__histogram_init(&m->left[kind], &durations);
        clave__histogram_init(&m->held[kind], &durations);
    }
}

/* The clocks of servers and gate may differ. */
static int64_t counters_since(int64_t at, int64_t then)
{
    return at > then ? at - then : 0;
}

/* The owner of a lease or slot has waited since it queued for it. */
static int64_t counters_queued(const struct lock_node *p)
{
    const struct lock_node *turn = clave__lock_turn_of(p);
    return turn && turn->queued < p->queued ? turn->queued : p->queued;
}

void clave__lock_counters_note(struct lock_counters *m, enum lock_change what,
                               const struct lock_node *p, int64_t at)
{
    enum lock_queue_kind kind = clave__lock_kind(p->queue);
    if (p->left_over)
        return;                                               /* nobody has waited */
    bool holds = p->holds && !clave__lock_acquired(p->queue); /* the first to wait has the turn */
    if (what == LOCK_GRANTED)
        clave__histogram_note(&m->waited[kind], counters_since(at, counters_queued(p)));
    if (what == LOCK_ENDED && !holds && kind != LOCK_KIND_SLOT)
        clave__histogram_note(&m->left[kind], counters_since(at, p->queued));
    if (what == LOCK_ENDED && holds && !p->held_before)
        clave__histogram_note(&m->held[kind], counters_since(at, p->held));
}

void clave__lock_counters_note_taken(struct lock_counters *m, const struct lock_end *waited)
{
    clave__histogram_note(&m->waited[LOCK_KIND_SLOT], waited->waited);
}

void clave__lock_counters_note_cause(struct lock_counters *m, const struct lock_end *end)
{
    if (end->held)
        m->ends[end->kind][end->cause]++;
    else if (end->kind == LOCK_KIND_SLOT &&
             !end->left_over) /* only now is it certain that it did not get one */
        clave__histogram_note(&m->left[end->kind], end->waited);
}
