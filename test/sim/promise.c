#include "promise.h"

#include <stdio.h>
#include <string.h>

#include "checker.h"
#include "inspector.h"

enum { LATE_MS = 5, MARGIN = 8 }; /* the margin is that part of the session timeout */

static struct world *world_of(const struct actor *a)
{
    return a->host->w;
}

static int64_t promise_until(const struct hold *h)
{
    return h->alive_ms + h->promised_ms;
}

/* ---- what an actor does -------------------------------------------------------------- */

typedef clave_err promise_call(clave_async_grant *g, int64_t now, int64_t ms);

static clave_err give_sign(clave_async_grant *g, int64_t now, int64_t ms)
{
    (void)ms;
    return clave_async_grant_alive(g, now);
}

/* True if it was done. */
static bool call(struct actor *a, unsigned nth, promise_call *fn, int64_t ms)
{
    struct hold *h = &a->holds[nth];
    int64_t now = host_clock(a->host);
    clave_async_grant *g;
    bool late = h->promised_ms > 0 && now > promise_until(h);
    bool held = h->believed && a->recipe->grant(a, nth, &g) == CLAVE_OK;
    clave_err err = held ? fn(g, now, ms) : CLAVE_ELOST;
    if (held)
        clave_async_grant_free(g);
    if (held && err != (late ? CLAVE_ELOST : CLAVE_OK))
        world_break(world_of(a), "a sign of life counts if it is in time", "%s: %s %lld ms late",
                    a->name, clave_err_name(err), (long long)(now - promise_until(h)));
    if (err == CLAVE_OK)
        h->alive_ms = now;
    return err == CLAVE_OK;
}

static void promise_all(struct actor *a)
{
    const struct workload_options *o = a->load->o;
    int64_t ms = world_between(world_of(a), 1, 2 * o->promise_ms);
    if (world_chance(world_of(a), 100))
        ms = 0;
    for (unsigned i = 0; i < a->nholds; i++)
        if (call(a, i, clave_async_grant_depend, ms))
            a->holds[i].promised_ms = ms;
    world_log(world_of(a), a->name, "promises signs of life every %lld ms", (long long)ms);
}

void promise_begin(struct actor *a)
{
    if (world_chance(world_of(a), a->load->o->depending))
        promise_all(a);
}

bool promise_keep(struct actor *a)
{
    struct workload *l = a->load;
    if (a->holds[0].promised_ms == 0 || a->lost)
        return false;
    if (!l->day_is_over && world_chance(world_of(a), 100)) {
        world_log(world_of(a), a->name, "hangs");
        actor_later(a, 2 * l->o->promise_ms * MS);
        return true;
    }
    if (world_chance(world_of(a), 50))
        promise_all(a);
    for (unsigned i = 0; i < a->nholds; i++)
        if (a->holds[i].promised_ms > 0)
            (void)call(a, i, give_sign, 0);
    return false;
}

void promise_broken(struct actor *a, unsigned nth)
{
    struct workload *l = a->load;
    const struct hold *h = &a->holds[nth];
    struct silence *s = &l->silences.of[l->silences.n++ % SILENCES];
    int64_t margin = clave_async_client_session_timeout(a->host->client) / MARGIN;
    l->stats.silent++;
    if (h->promised_ms == 0 || host_clock(a->host) < promise_until(h))
        world_break(world_of(a), "only silence ends a hold as silent", "%s loses token %lld",
                    a->name, (long long)h->token);
    *s = (struct silence){
        .session = h->session, .life = a->host->life, .due_ms = promise_until(h) + margin};
    snprintf(s->node, sizeof s->node, "%s", h->node);
}

/* ---- what must hold ------------------------------------------------------------------ */

void promise_look(struct checker *c, const struct actor *a, const struct hold *h)
{
    int64_t now = host_clock(a->host);
    if (h->promised_ms > 0 && now >= promise_until(h))
        world_break(c->w, "a hold whose work is silent is over",
                    "%s holds token %lld %lld ms after its promise", a->name, (long long)h->token,
                    (long long)(now - promise_until(h)));
}

/* Its process runs on, and the server has its session: nobody but that process takes the node. */
static bool silence_counts(const struct checker *c, const struct silence *s, const struct host *h)
{
    return s->node[0] && h->client && h->life == s->life && !h->closing && !c->restored &&
           !checker_was_taken(c, s->node) && inspector_has_session(c->server, s->session) &&
           clave_async_client_session_id(h->client) == s->session;
}

static void look_at_silence(struct checker *c, struct silence *s, const struct host *h)
{
    bool stands = inspector_has_node(c->server, s->node, s->session);
    int64_t now = host_clock(h);
    if (!silence_counts(c, s, h)) {
        s->node[0] = '\0';
        return;
    }
    if (now < s->due_ms && !stands)
        world_break(c->w, "the node of silent work stays for the reserve",
                    "%s is gone %lld ms too early", s->node, (long long)(s->due_ms - now));
    uint64_t connection = clave_async_client_connection(h->client);
    bool hindered = now <= s->due_ms + LATE_MS || connection != s->connection ||
                    !host_is_awake(h) || !clave_async_client_is_connected(h->client);
    s->connection = connection;
    if (hindered)
        s->free_since = 0;
    else if (s->free_since == 0)
        s->free_since = c->w->now;
    if (!stands && now >= s->due_ms)
        s->node[0] = '\0';
    else if (s->free_since > 0 && c->w->now > s->free_since + 2 * c->grace_us + SECOND)
        world_break(c->w, "the node of silent work goes after the reserve",
                    "%s still stands %lld ms after it", s->node, (long long)(now - s->due_ms));
}

void promise_look_at_silences(struct checker *c, struct workload *l)
{
    for (size_t i = 0; i < SILENCES && i < l->silences.n; i++)
        if (l->silences.of[i].node[0] && c->server->server)
            look_at_silence(c, &l->silences.of[i], l->host);
}
