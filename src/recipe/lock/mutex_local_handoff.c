/* mutex_local_handoff.c - owners of one mutex that share a place in the queue: a release hands it
 * to the next owner that waits here, without a request to the server. One owner has the place; the
 * others wait. After share_turns hand-offs the node is deleted, and the next owner queues at the
 * end, so that other processes are not kept out. Called by mutex.c and mutex_acquire.c. Invariant:
 * at most one owner has the place. */
#include <assert.h>

#include "recipe/lock/mutex_internal.h"

/* That another owner in this process holds it needs no answer of a server while the grant is good.
 */
clave_err clave__handoff_not_in_time(const clave_async_mutex *m)
{
    const struct contender *place = m->place_owner->place;
    if (place->state != CONTENDER_HELD)
        return clave__contender_not_in_time(place);
    bool good = clave__contender_deadline(place) > clave__client_now(m->client);
    return good ? CLAVE_EBUSY : CLAVE_EUNREACHABLE;
}

static void mutex_local_handoff_on_limit(struct timer *timer, int64_t now)
{
    (void)now;
    struct owner_entry *e = LIST_ENTRY(timer, struct owner_entry, limit);
    clave_err err = clave__handoff_not_in_time(e->answer.m);
    clave__handoff_step_down(e);
    struct contender *place = e->place;
    e->place = NULL;
    clave__owner_entry_dismiss(e, err);
    if (place)
        clave__contender_leave(place, NULL, NULL);
}

void clave__handoff_init(struct owner_entry *e)
{
    list_init(&e->link);
    clave__timer_init(&e->limit, mutex_local_handoff_on_limit);
}

void clave__handoff_end_wait(struct owner_entry *e)
{
    list_remove(&e->link);
    clave__client_timer_clear(e->answer.m->client, &e->limit);
}

static void handoff_set_limit(struct owner_entry *e)
{
    if (e->deadline != CLAVE_NEVER)
        clave__client_timer_set(e->answer.m->client, &e->limit, e->deadline);
}

clave_err clave__handoff_acquire(struct owner_entry *e, int64_t deadline)
{
    assert(!e->place);
    clave_async_mutex *m = e->answer.m;
    bool trying = deadline <= clave__client_now(m->client);
    e->deadline = deadline;
    if (m->place_owner) {
        list_push_back(&m->waiters, &e->link);
    } else {
        /* The place does not get its deadline, since others may wait for the place. */
        clave_err err = clave__owner_entry_take_place(e, trying ? deadline : CLAVE_NEVER, NULL);
        if (err != CLAVE_OK)
            return err;
        m->place_owner = e;
    }
    if (!trying)
        handoff_set_limit(e);
    return CLAVE_OK;
}

static struct owner_entry *handoff_next_waiter(clave_async_mutex *m)
{
    struct list *e = list_pop_front(&m->waiters);
    return e ? LIST_ENTRY(e, struct owner_entry, link) : NULL;
}

static void handoff_move_place(struct owner_entry *from, struct owner_entry *to)
{
    assert(from->place && !to->place);
    to->place = from->place;
    from->place = NULL;
    from->answer.m->place_owner = to;
    clave__contender_hand_over(to->place, to);
}

void clave__handoff_promote(clave_async_mutex *m)
{
    struct owner_entry *next;
    m->place_owner = NULL;
    while (!m->freed && !m->place_owner && (next = handoff_next_waiter(m))) {
        clave_err err = clave__owner_entry_take_place(next, CLAVE_NEVER, NULL);
        if (err == CLAVE_OK)
            m->place_owner = next;
        else
            clave__owner_entry_dismiss(next, err);
    }
}

void clave__handoff_step_down(struct owner_entry *e)
{
    clave_async_mutex *m = e->answer.m;
    struct owner_entry *next = m->place_owner == e && e->count == 0 ? handoff_next_waiter(m) : NULL;
    if (next)
        handoff_move_place(e, next);
    else if (m->place_owner == e)
        m->place_owner = NULL;
}

/* ---- handing over -------------------------------------------------------------------------- */

/* The release that handed it over has returned. */
static void handoff_on_deferred(struct client_task *task)
{
    struct owner_entry *e = LIST_ENTRY(task, struct owner_entry, answer.due);
    e->callback_due = false;
    clave__owner_entry_tell_held(e);
}

bool clave__handoff_hand_over(struct owner_entry *e)
{
    clave_async_mutex *m = e->answer.m;
    bool good = clave__contender_deadline(e->place) > clave__client_now(m->client);
    struct owner_entry *next = good && m->turns < m->share_turns ? handoff_next_waiter(m) : NULL;
    if (!next)
        return false;
    m->turns++;
    handoff_move_place(e, next);
    next->count = 1;
    next->callback_due = true;
    clave__handoff_end_wait(next);
    next->answer.due.run = handoff_on_deferred;
    clave__client_later(m->client, &next->answer.due);
    return true;
}

bool clave__handoff_lose(struct owner_entry *e)
{
    clave_async_mutex *m = e->answer.m;
    bool told = !e->callback_due;
    if (!told) {
        e->callback_due = e->asked = false;
        e->count = 0;
        list_remove(&e->answer.due.link);
        list_push_front(&m->waiters, &e->link);
        handoff_set_limit(e);
    }
    if (m->place_owner == e)
        clave__handoff_promote(m);
    return told;
}
