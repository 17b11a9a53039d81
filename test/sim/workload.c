#include "workload.h"

#include <string.h>

#include "checker.h"

const char *workload_lock_path(unsigned lock)
{
    static const char *const paths[LOCKS] = {"/locks/a", "/b"};
    return paths[lock];
}

const char *workload_counter_path(unsigned lock)
{
    static const char *const paths[LOCKS] = {"/counter-a", "/counters/b"};
    return paths[lock];
}

/* ---- mutexes ------------------------------------------------------------------------- */

static void on_event(clave_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct workload *l = arg;
    (void)m;
    actor_on_event(&l->actors[ev->owner], ev);
}

clave_mutex *workload_mutex(struct workload *l, unsigned lock)
{
    clave_mutex_options o = {
        .size = sizeof o,
        .data = l->host->name,
        .len = strlen(l->host->name),
        .max_hold_ms = l->o->max_hold_ms,
        .strict = l->o->strict,
        .event_cb = on_event,
        .event_arg = l,
    };
    if (!l->mutexes[lock])
        (void)clave_mutex_new(&l->mutexes[lock], l->host->client, workload_lock_path(lock), &o);
    return l->mutexes[lock];
}

void workload_free_mutex(struct workload *l, unsigned lock)
{
    clave_mutex *m = l->mutexes[lock];
    for (unsigned i = 0; i < l->o->actors; i++)
        if (l->actors[i].mutex == m)
            actor_abandon(&l->actors[i]);
    l->mutexes[lock] = NULL;
    clave_mutex_free(m);
}

/* ---- others look on ------------------------------------------------------------------ */

static void on_participants(clave_client *c, clave_err err, const clave_participant *list, size_t n,
                            void *arg)
{
    struct workload *l = arg;
    (void)c;
    l->listings_out--;
    for (size_t i = 1; err == CLAVE_OK && i < n; i++)
        if (list[i - 1].stat.czxid >= list[i].stat.czxid)
            world_break(l->host->w, "the queue is in order", "%s stands before %s",
                        list[i - 1].node, list[i].node);
}

void workload_list(struct workload *l, unsigned lock)
{
    if (clave_participants(l->host->client, workload_lock_path(lock), on_participants, l) ==
        CLAVE_OK)
        l->listings_out++;
}

/* ---- the process --------------------------------------------------------------------- */

static void on_act(struct host *h)
{
    struct workload *l = h->user;
    for (unsigned i = 0; i < l->o->actors; i++)
        if (l->actors[i].due && !h->closing)
            actor_decide(&l->actors[i]);
}

static void on_start(struct host *h)
{
    struct workload *l = h->user;
    l->ending = false;
    for (unsigned i = 0; i < l->o->actors; i++)
        actor_rest(&l->actors[i]);
}

/* The states follow one another as Curator's do. */
static void on_state(struct host *h, clave_state state, clave_err why)
{
    clave_state before = h->state;
    bool fine = true;
    (void)why;
    switch (state) {
    case CLAVE_STATE_CONNECTED:
        fine = before == CLAVE_STATE_LATENT;
        break;
    case CLAVE_STATE_SUSPENDED:
        fine = before == CLAVE_STATE_CONNECTED || before == CLAVE_STATE_RECONNECTED;
        break;
    case CLAVE_STATE_RECONNECTED:
        fine = before == CLAVE_STATE_SUSPENDED || before == CLAVE_STATE_LOST;
        break;
    case CLAVE_STATE_LOST:
        fine = before == CLAVE_STATE_CONNECTED || before == CLAVE_STATE_RECONNECTED ||
               before == CLAVE_STATE_SUSPENDED;
        break;
    case CLAVE_STATE_CLOSED:
        fine = before != CLAVE_STATE_CLOSED;
        break;
    case CLAVE_STATE_LATENT:
    case CLAVE_STATE_READ_ONLY:
        fine = false;
        break;
    }
    if (!fine)
        world_break(h->w, "states follow one another", "%s: %s behind %s", h->name,
                    clave_state_name(state), clave_state_name(before));
}

static void on_end(struct host *h)
{
    struct workload *l = h->user;
    l->ending = true;
    for (unsigned i = 0; i < l->o->actors; i++)
        world_clear(h->w, &l->actors[i].alarm);
    for (unsigned i = 0; i < LOCKS; i++)
        if (l->mutexes[i])
            workload_free_mutex(l, i);
}

static void on_ended(struct host *h)
{
    struct workload *l = h->user;
    for (unsigned i = 0; i < l->o->actors; i++) {
        struct actor *a = &l->actors[i];
        if (a->calls_out > 0)
            world_break(h->w, "each request completes exactly once",
                        "%s is freed, and %u of its callbacks have not run", a->name, a->calls_out);
        a->state = ACTOR_DONE;
        a->believes = false;
        a->mutex = NULL;
    }
    if (l->listings_out > 0)
        world_break(h->w, "each request completes exactly once", "%s: a listing has no end",
                    h->name);
}

/* ---- life ---------------------------------------------------------------------------- */

void workload_init(struct workload *l, struct host *h, struct checker *c,
                   const struct workload_options *o)
{
    memset(l, 0, sizeof *l);
    l->host = h;
    l->checker = c;
    l->o = o;
    h->user = l;
    h->on_start = on_start;
    h->on_act = on_act;
    h->on_state = on_state;
    h->on_end = on_end;
    h->on_ended = on_ended;
    for (unsigned i = 0; i < o->actors; i++)
        actor_init(&l->actors[i], l, i);
}

void workload_finish(struct workload *l)
{
    l->day_is_over = true;
}

bool workload_is_done(const struct workload *l)
{
    for (unsigned i = 0; i < l->o->actors; i++)
        if (l->actors[i].state != ACTOR_DONE || l->actors[i].calls_out > 0)
            return false;
    return l->listings_out == 0;
}

void workload_put_away(struct workload *l)
{
    for (unsigned i = 0; i < LOCKS; i++)
        if (l->mutexes[i])
            workload_free_mutex(l, i);
}
