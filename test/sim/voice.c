#include "voice.h"

#include "base/list.h"
#include "clave/async/client.h"

enum { REACTION_MS = 15 };

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void say(struct voice *v, const struct notify_said *said)
{
    if (v->nunheard == VOICE_UNHEARD_CAP) {
        v->was_late = true; /* nobody has listened for long */
        return;
    }
    v->unheard[v->nunheard++] = *said;
    v->changed(v->owner);
}

static void promise(struct voice *v, bool anew)
{
    int64_t watchdog = v->policy.terms.watchdog_ms;
    int64_t until = watchdog > 0 ? host_clock(v->host) + watchdog : CLAVE_NEVER;
    v->promised_until = anew ? until : later(v->promised_until, until);
}

/* Everything at once that does not count as things are. */
static struct notify_said chatter(const struct voice *v)
{
    const struct notify_terms *t = &v->policy.terms;
    bool starts = !v->running && !v->stopping;
    return (struct notify_said){.ready = !starts && t->ready,
                                .alive = starts && t->ready,
                                .stopping = v->stopping,
                                .extend_ms = v->running && !v->stopping ? 10 * t->ready_ms : 0};
}

static struct notify_said break_word(struct voice *v)
{
    v->broken = v->was_broken = true;
    v->chatty = world_chance(v->host->w, 600);
    bool failed = world_chance(v->host->w, 150);
    if (failed)
        v->promised_until = host_clock(v->host);
    return (struct notify_said){.failed = failed};
}

static struct notify_said keep_word(struct voice *v)
{
    const struct notify_terms *t = &v->policy.terms;
    if (!v->running && !v->stopping && world_chance(v->host->w, 200)) {
        v->promised_until = later(v->promised_until, host_clock(v->host) + t->ready_ms);
        return (struct notify_said){.extend_ms = t->ready_ms};
    }
    if (!v->running && !v->stopping) {
        bool ready = t->ready || world_chance(v->host->w, 500);
        v->running = true;
        promise(v, true);
        return (struct notify_said){.ready = ready, .alive = !ready};
    }
    if (!v->stopping && world_chance(v->host->w, 80)) {
        v->stopping = true;
        promise(v, true);
        return (struct notify_said){.stopping = true};
    }
    promise(v, false);
    return (struct notify_said){.alive = true};
}

static void on_next(struct alarm *a)
{
    struct voice *v = LIST_ENTRY(a, struct voice, next);
    struct rand_state *before = world_use_rng(v->host->w, v->rng);
    const struct notify_terms *t = &v->policy.terms;
    struct notify_said said;
    if (v->broken)
        said = chatter(v);
    else
        said = world_chance(v->host->w, 60) ? break_word(v) : keep_word(v);
    say(v, &said);
    bool starts = !v->running && !v->stopping;
    int64_t longest = (starts ? t->ready_ms : t->watchdog_ms) * MS * 2 / 3;
    if (longest > 0 && (!v->broken || v->chatty))
        world_set(v->host->w, a, v->host->w->now + world_between(v->host->w, longest / 3, longest));
    world_use_rng(v->host->w, before);
}

void voice_look(struct voice *v)
{
    if (!v->host)
        return;
    int64_t now = host_clock(v->host);
    for (unsigned i = 0; i < v->nunheard; i++)
        clave__notify_policy_hear(&v->policy, &v->unheard[i], now);
    v->nunheard = 0;
    clave__notify_policy_step(&v->policy, now);
    if (v->policy.phase == NOTIFY_OVER && !v->was_broken && !v->was_late)
        world_break(v->host->w, "a command that keeps its word is not ended",
                    "it was never silent");
}

void voice_begin(struct voice *v, const struct host *host, struct rand_state *rng,
                 int64_t session_ms)
{
    struct world *w = host->w;
    struct rand_state *before = world_use_rng(w, rng);
    struct notify_terms terms = {.ready = world_chance(w, 500),
                                 .ready_ms = world_between(w, session_ms / 20 + 1, session_ms)};
    if (!terms.ready || world_chance(w, 700))
        terms.watchdog_ms = world_between(w, session_ms / 20 + 1, session_ms / 2);
    v->host = host;
    v->rng = rng;
    v->next.fire = on_next;
    clave__notify_policy_begin(&v->policy, &terms, host_clock(host));
    v->promised_until = host_clock(host) + terms.ready_ms;
    world_set(w, &v->next, w->now + world_between(w, 0, terms.ready_ms * MS * 2 / 3));
    world_use_rng(w, before);
}

void voice_fini(struct voice *v)
{
    if (v->host)
        world_clear(v->host->w, &v->next);
}

bool voice_is_neglected(const struct voice *v, int64_t from, int64_t kill_ms)
{
    if (!v->host || v->promised_until == CLAVE_NEVER)
        return false;
    const struct notify_terms *t = &v->policy.terms;
    int64_t until = later(v->promised_until, from + later(t->ready_ms, t->watchdog_ms));
    return host_clock(v->host) > until + kill_ms + REACTION_MS;
}
