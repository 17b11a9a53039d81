#include "workload.h"

#include <stdio.h>
#include <string.h>

#include "cache_user.h"
#include "checker.h"
#include "keeper.h"
#include "leader_watcher.h"
#include "registrant.h"
#include "runner.h"
#include "slot_user.h"
#include "tally.h"

const struct lock_layout *workload_layout(const struct workload *l, unsigned lock)
{
    return &l->o->layouts[lock];
}

void workload_discard(struct workload *l, struct actor *a)
{
    const void *object = a->object;
    for (unsigned i = 0; i < l->o->actors; i++)
        if (l->actors[i].object == object && &l->actors[i] != a)
            actor_abandon(&l->actors[i]);
    a->recipe->discard(a);
    actor_abandon(a);
}

/* ---- others look on ------------------------------------------------------------------ */

static void on_participants(clave_async_client *c, clave_err err, const clave_participant *list,
                            size_t n, void *arg)
{
    struct workload *l = arg;
    (void)c;
    l->listings_out--;
    /* A read that took its write's place is younger than whoever came between; and a counter at its
     * end gives its last number to everybody, until they have heard that it is one. */
    bool in_order = err == CLAVE_OK && !l->checker->used_up;
    for (size_t i = 1; in_order && i < n && !strstr(list[i - 1].node, "__READ__"); i++)
        if (list[i - 1].stat.czxid >= list[i].stat.czxid && strncmp(list[i].node, "_c_", 3) == 0)
            world_break(l->host->w, "the queue is in order", "%s is listed before %s",
                        list[i - 1].node, list[i].node);
}

void workload_list(struct workload *l, struct actor *a)
{
    if (a->recipe->list(a, on_participants, l) == CLAVE_OK)
        l->listings_out++;
}

/* ---- asking holders to let go -------------------------------------------------------- */

static void revoke_answered(struct actor *a)
{
    a->load->listings_out--;
    a->revokes_out--;
}

static void on_asked(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c, (void)res;
    revoke_answered(arg);
}

static void on_asked_leader(clave_async_client *c, clave_err err, void *arg)
{
    (void)c, (void)err;
    revoke_answered(arg);
}

static void revoke_sent(struct actor *a)
{
    a->load->listings_out++;
    a->revokes_out++;
}

/* All of them: a waiter is notified when it holds. */
static void revoke_all(struct actor *a, const clave_participant *list, size_t n)
{
    const char *queue = workload_layout(a->load, a->lock)->queue;
    for (size_t i = 0; i < n; i++) {
        char node[PATH_SIZE + 64];
        snprintf(node, sizeof node, "%s/%s", queue, list[i].node);
        if (clave_async_revoke(a->host->client, node, on_asked, a) == CLAVE_OK)
            revoke_sent(a);
    }
}

static void on_holders(clave_async_client *c, clave_err err, const clave_participant *list,
                       size_t n, void *arg)
{
    struct actor *a = arg;
    (void)c;
    revoke_answered(a);
    if (err == CLAVE_OK && a->state == ACTOR_WAITING && !a->load->ending)
        revoke_all(a, list, n);
}

void workload_revoke(struct workload *l, struct actor *a)
{
    const struct lock_layout *s = workload_layout(l, a->lock);
    if (a->revokes_out > 0)
        return;
    clave_err err = s->kind == LOCK_LATCH ? clave_async_leader_transfer(l->host->client, s->path,
                                                                        NULL, on_asked_leader, a)
                                          : a->recipe->list(a, on_holders, a);
    if (err == CLAVE_OK) {
        revoke_sent(a);
        world_log(l->host->w, a->name, "asks the holder to release it");
    }
}

/* ---- the process --------------------------------------------------------------------- */

static void on_act(struct host *h)
{
    struct workload *l = h->user;
    for (unsigned i = 0; i < l->o->actors; i++)
        if (l->actors[i].runner)
            runner_look(&l->actors[i]);
        else if (l->actors[i].due && !h->closing)
            actor_decide(&l->actors[i]);
    znode_client_act(&l->znodes);
    slot_user_act(l);
    keeper_act(l);
    cache_user_act(l);
    tally_act(l);
    registrant_act(l);
}

static void on_start(struct host *h)
{
    struct workload *l = h->user;
    l->ending = false;
    for (unsigned i = 0; i < l->o->actors; i++)
        actor_rest(&l->actors[i]);
    znode_client_start(&l->znodes);
    if (l->o->caching)
        cache_user_begin(l);
    slot_user_begin(l);
    keeper_begin(l);
    tally_begin(l);
    registrant_begin(l);
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
    struct workload *l = h->user;
    if (state == CLAVE_STATE_CONNECTED ||
        (state == CLAVE_STATE_RECONNECTED && before == CLAVE_STATE_LOST))
        checker_session(l->checker, h->name, clave_async_client_session_id(h->client));
    for (unsigned i = 0; i < l->o->actors; i++)
        selector_hears(&l->actors[i], state);
    if (!fine)
        world_break(h->w, "states follow one another", "%s: %s after %s", h->name,
                    clave_state_name(state), clave_state_name(before));
}

void workload_put_away(struct workload *l)
{
    cache_user_end(l);
    slot_user_put_away(l);
    keeper_put_away(l);
    tally_put_away(l);
    registrant_put_away(l);
    for (unsigned i = 0; i < l->o->actors; i++)
        if (l->actors[i].object)
            workload_discard(l, &l->actors[i]);
    for (unsigned i = 0; i < LOCKS; i++) {
        leader_watcher_end(l, i);
        clave_async_mutex_free(l->objects[i].mutex);
        clave_async_rwlock_free(l->objects[i].rwlock);
        clave_async_semaphore_free(l->objects[i].semaphore);
        l->objects[i] = (struct recipe_objects){NULL, NULL, NULL};
    }
    for (unsigned i = 0; i < 2; i++) {
        clave_async_multilock_free(l->bundles[i]);
        l->bundles[i] = NULL;
    }
}

static void on_end(struct host *h)
{
    struct workload *l = h->user;
    l->ending = true;
    for (unsigned i = 0; i < l->o->actors; i++) {
        world_clear(h->w, &l->actors[i].alarm);
        if (l->actors[i].runner)
            runner_orphan(&l->actors[i]);
    }
    znode_client_end(&l->znodes);
    workload_put_away(l);
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
        actor_hold_forget(a);
    }
    if (l->listings_out > 0)
        world_break(h->w, "each request completes exactly once", "%s: a listing has no end",
                    h->name);
    if (!znode_client_is_idle(&l->znodes))
        world_break(h->w, "each request completes exactly once", "%s: a call of a znode has no end",
                    h->name);
    slot_user_ended(l);
    keeper_ended(l);
    tally_ended(l);
    registrant_ended(l);
}

/* ---- life ---------------------------------------------------------------------------- */

static void on_boot(struct alarm *a)
{
    struct workload *l = LIST_ENTRY(a, struct workload, boot);
    if (!l->host->client)
        host_start(l->host);
}

void workload_init(struct workload *l, struct host *h, struct checker *c,
                   const struct workload_options *o)
{
    memset(l, 0, sizeof *l);
    l->host = h;
    l->checker = c;
    l->o = o;
    l->boot.fire = on_boot;
    h->user = l;
    h->on_start = on_start;
    h->on_act = on_act;
    h->on_state = on_state;
    h->on_end = on_end;
    h->on_ended = on_ended;
    for (unsigned i = 0; i < o->actors; i++)
        actor_init(&l->actors[i], l, i);
    znode_client_init(&l->znodes, h, &c->znodes, o->znode_calls, o->znode_rest_us);
}

void workload_reset(struct workload *l)
{
    struct world *w = l->host->w;
    if (l->host->client)
        host_kill(l->host, true);
    world_set(w, &l->boot, w->now + world_wait(w, l->o->rest_us + SECOND));
}

void workload_finish(struct workload *l)
{
    l->day_is_over = true;
    znode_client_finish(&l->znodes);
}

bool workload_is_done(const struct workload *l)
{
    for (unsigned i = 0; i < l->o->actors; i++)
        if (l->actors[i].state != ACTOR_DONE || l->actors[i].calls_out > 0)
            return false;
    for (unsigned i = 0; i < LOCKS; i++)
        if (!leader_watcher_sees_nobody(l, i))
            return false;
    return l->listings_out == 0 && !l->runners && znode_client_is_idle(&l->znodes) &&
           slot_user_is_done(l) && tally_is_done(l);
}
