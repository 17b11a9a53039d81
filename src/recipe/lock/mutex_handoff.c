/* mutex_handoff.c - owners of one mutex that share a place in the queue: a release hands it to the
 * next owner that waits here, without a request to the server. The first is the host, and has the
 * place; the others wait in line. After share_turns turns the node is deleted, and the next owner
 * queues at the end: so other processes are not kept out. Called by mutex.c. Invariant: one owner
 * at most has the place. */
#include "recipe/lock/mutex_internal.h"

static void mutex_handoff_on_limit(struct timer *timer, int64_t now)
{
    (void)now;
    struct owner_entry *t = LIST_ENTRY(timer, struct owner_entry, limit);
    clave__handoff_step_down(t);
    struct contender *place = t->place;
    t->place = NULL;
    clave__owner_entry_dismiss(t, CLAVE_EBUSY);
    if (place)
        clave__contender_leave(place, NULL, NULL);
}

void clave__handoff_init(struct owner_entry *t)
{
    list_init(&t->link);
    clave__timer_init(&t->limit, mutex_handoff_on_limit);
}

void clave__handoff_settle(struct owner_entry *t)
{
    list_remove(&t->link);
    clave__client_timer_clear(t->answer.m->client, &t->limit);
}

static void set_limit(struct owner_entry *t)
{
    if (t->deadline != CLAVE_NEVER)
        clave__client_timer_set(t->answer.m->client, &t->limit, t->deadline);
}

clave_err clave__handoff_acquire(struct owner_entry *t, int64_t deadline)
{
    clave_async_mutex *m = t->answer.m;
    bool trying = deadline <= clave__client_now(m->client);
    t->deadline = deadline;
    if (m->host) {
        list_push_back(&m->line, &t->link);
    } else {
        /* Its own deadline is not that of the place, which others may wait for. */
        clave_err err = clave__owner_entry_take_place(t, trying ? deadline : CLAVE_NEVER, NULL);
        if (err != CLAVE_OK)
            return err;
        m->host = t;
    }
    if (!trying)
        set_limit(t);
    return CLAVE_OK;
}

static struct owner_entry *next_in_line(clave_async_mutex *m)
{
    struct list *e = list_pop_front(&m->line);
    return e ? LIST_ENTRY(e, struct owner_entry, link) : NULL;
}

static void move_place(struct owner_entry *from, struct owner_entry *to)
{
    to->place = from->place;
    from->place = NULL;
    from->answer.m->host = to;
    clave__contender_hand_over(to->place, to);
}

void clave__handoff_promote(clave_async_mutex *m)
{
    struct owner_entry *next;
    m->host = NULL;
    while (!m->freed && !m->host && (next = next_in_line(m))) {
        clave_err err = clave__owner_entry_take_place(next, CLAVE_NEVER, NULL);
        if (err == CLAVE_OK)
            m->host = next;
        else
            clave__owner_entry_dismiss(next, err);
    }
}

void clave__handoff_step_down(struct owner_entry *t)
{
    clave_async_mutex *m = t->answer.m;
    struct owner_entry *next = m->host == t && t->count == 0 ? next_in_line(m) : NULL;
    if (next)
        move_place(t, next);
    else if (m->host == t)
        m->host = NULL;
}

/* ---- handing over -------------------------------------------------------------------------- */

/* The release that brought it has returned. */
static void on_told(struct client_task *task)
{
    struct owner_entry *t = LIST_ENTRY(task, struct owner_entry, answer.due);
    t->untold = false;
    clave__owner_entry_tell_held(t);
}

bool clave__handoff_hand_over(struct owner_entry *t)
{
    clave_async_mutex *m = t->answer.m;
    bool good = clave__contender_deadline(t->place) > clave__client_now(m->client);
    struct owner_entry *next = good && m->turns < m->share_turns ? next_in_line(m) : NULL;
    if (!next)
        return false;
    m->turns++;
    move_place(t, next);
    next->count = 1;
    next->untold = true;
    clave__handoff_settle(next);
    next->answer.due.run = on_told;
    clave__client_later(m->client, &next->answer.due);
    return true;
}

bool clave__handoff_lose(struct owner_entry *t)
{
    clave_async_mutex *m = t->answer.m;
    bool told = !t->untold;
    if (!told) {
        t->untold = t->asked = false;
        t->count = 0;
        list_remove(&t->answer.due.link);
        list_push_front(&m->line, &t->link);
        set_limit(t);
    }
    if (m->host == t)
        clave__handoff_promote(m);
    return told;
}
