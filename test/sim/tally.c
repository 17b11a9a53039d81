#include "tally.h"

#include <stdio.h>
#include <stdlib.h>

#include "checker.h"
#include "clave/async/counter.h"
#include "inspector.h"
#include "server/server_internal.h"

#define TALLY_PATH "/tally/n"

enum { ADDS_OUT = 4 };

struct tally_user {
    struct workload *load;
    clave_async_counter *counter; /* NULL: not now */
    struct alarm alarm;
    bool due;
    struct tally_add *adds[ADDS_OUT]; /* under way */
};

struct tally_add {
    struct tally_user *user;
    int64_t delta;
    unsigned place;
};

static struct tally_world *tally_world_of(const struct tally_user *u)
{
    return &u->load->checker->tally;
}

static void tally_later(struct tally_user *u)
{
    struct world *w = u->load->host->w;
    u->due = false;
    world_set(w, &u->alarm, w->now + world_wait(w, u->load->o->tally_rest_us));
}

static void tally_on_alarm(struct alarm *a)
{
    struct tally_user *u = LIST_ENTRY(a, struct tally_user, alarm);
    u->due = true;
    host_wake(u->load->host);
}

/* `known`: it was done. */
static void tally_settle(struct tally_add *add, bool known)
{
    struct tally_world *t = tally_world_of(add->user);
    t->pending -= add->delta;
    *(known ? &t->acknowledged : &t->unknown) += add->delta;
    add->user->adds[add->place] = NULL;
    free(add);
}

static void tally_on_added(clave_async_counter *n, clave_err err, int64_t before, int64_t after,
                           void *arg)
{
    struct tally_add *add = arg;
    struct host *h = add->user->load->host;
    (void)n;
    world_log(h->w, h->name, "adds %lld: %s, %lld", (long long)add->delta, clave_err_name(err),
              (long long)after);
    if (err == CLAVE_OK && after - before != add->delta)
        world_break(h->w, "a change says what it has changed", "%s: from %lld to %lld", h->name,
                    (long long)before, (long long)after);
    if (err != CLAVE_OK && err != CLAVE_ECLOSED && clave_err_classify(err) != CLAVE_CLASS_UNKNOWN)
        world_break(h->w, "each call ends as its header says", "%s: an add gives %s", h->name,
                    clave_err_name(err));
    struct checker *c = add->user->load->checker;
    tally_settle(add, err == CLAVE_OK);
    tally_world_look(c);
}

static void tally_add(struct tally_user *u)
{
    struct world *w = u->load->host->w;
    unsigned place = 0;
    while (place < ADDS_OUT && u->adds[place])
        place++;
    if (place == ADDS_OUT)
        return;
    struct tally_add *add = world_alloc(sizeof *add);
    *add = (struct tally_add){u, world_between(w, 1, 3), place};
    if (clave_async_counter_add(u->counter, add->delta, tally_on_added, add) == CLAVE_OK) {
        u->adds[place] = add;
        tally_world_of(u)->pending += add->delta;
    } else {
        free(add);
    }
}

static void tally_free(struct tally_user *u)
{
    clave_async_counter_free(u->counter);
    u->counter = NULL;
    for (unsigned i = 0; i < ADDS_OUT; i++)
        if (u->adds[i])
            tally_settle(u->adds[i], false);
}

void tally_act(struct workload *l)
{
    struct tally_user *u = l->tally;
    if (!u || !u->due || l->host->closing)
        return;
    tally_later(u);
    if (l->day_is_over)
        return;
    if (!u->counter &&
        clave_async_counter_new(&u->counter, l->host->client, TALLY_PATH) != CLAVE_OK)
        return; /* for want of memory */
    /* For want of memory its marker would stay until the session ends. */
    if (world_chance(l->host->w, 50) &&
        l->host->allocator.refused + l->host->allocator.fail_in == 0)
        tally_free(u);
    else
        tally_add(u);
}

void tally_world_look(struct checker *c)
{
    struct tally_world *t = &c->tally;
    if (!c->server->server || c->restored)
        return;
    const struct node *n = clave__tree_find(&c->server->server->tree, clave__jbytes(TALLY_PATH));
    struct jbytes data = n ? clave__node_data(n) : (struct jbytes){NULL, 0};
    uint64_t value = 0;
    for (int i = 0; data.n == 8 && i < 8; i++)
        value = value << 8 | (uint8_t)data.p[i];
    if ((int64_t)value < t->acknowledged ||
        (int64_t)value > t->acknowledged + t->pending + t->unknown)
        world_break(c->w, "the sum is what was acknowledged, and at most what is unknown",
                    "%lld, and %lld was acknowledged, %lld is unknown, %lld pending",
                    (long long)value, (long long)t->acknowledged, (long long)t->unknown,
                    (long long)t->pending);
}

/* ---- life --------------------------------------------------------------------------------------
 */

void tally_begin(struct workload *l)
{
    if (l->o->tally_rest_us == 0)
        return;
    struct tally_user *u = world_alloc(sizeof *u);
    *u = (struct tally_user){.load = l};
    u->alarm.fire = tally_on_alarm;
    l->tally = u;
    tally_later(u);
}

void tally_put_away(struct workload *l)
{
    struct tally_user *u = l->tally;
    if (!u)
        return;
    world_clear(l->host->w, &u->alarm);
    tally_free(u);
}

void tally_ended(struct workload *l)
{
    free(l->tally);
    l->tally = NULL;
}

bool tally_is_done(const struct workload *l)
{
    for (unsigned i = 0; l->tally && i < ADDS_OUT; i++)
        if (l->tally->adds[i])
            return false;
    return true;
}
