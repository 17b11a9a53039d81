#include "checker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector.h"

enum { LATE_MS = 5 };

typedef void each_fn(struct checker *c, struct actor *a, void *arg);

static void each_actor(struct checker *c, each_fn *fn, void *arg)
{
    for (size_t i = 0; i < c->nloads; i++)
        for (unsigned k = 0; k < c->loads[i]->o->actors; k++)
            fn(c, &c->loads[i]->actors[k], arg);
}

/* ---- exclusion ----------------------------------------------------------------------- */

void checker_taken(struct checker *c, const char *node)
{
    struct taken_node *t = &c->taken[c->ntaken++ % TAKEN_NODES];
    snprintf(t->path, sizeof t->path, "%s", node);
    t->at = c->w->now;
}

static bool was_taken(const struct checker *c, const char *node)
{
    for (size_t i = 0; i < TAKEN_NODES && i < c->ntaken; i++)
        if (c->w->now < c->taken[i].at + c->grace_us && strcmp(c->taken[i].path, node) == 0)
            return true;
    return false;
}

/* Whose node is the first of the queue: stronger than what two holders could show. */
static void compare_with_queue(struct checker *c, const struct actor *a, int64_t ms)
{
    char first[PATH_SIZE];
    const char *path = workload_lock_path(a->lock);
    int64_t session = inspector_first_child(c->server, path, first, sizeof first);
    if (session != a->session || strcmp(first, a->node) != 0)
        world_break(c->w, "a valid hold is the first of its queue",
                    "%s holds %s for %lld ms more by %s, but the first is %s", a->name, path,
                    (long long)ms, strrchr(a->node, '/') + 1,
                    first[0] ? strrchr(first, '/') + 1 : "nobody");
}

static void look_at(struct checker *c, struct actor *a, void *arg)
{
    struct actor **valid = arg;
    if (a->state == ACTOR_WAITING && a->deadline != CLAVE_TRY && host_is_awake(a->host) &&
        host_clock(a->host) - LATE_MS > a->deadline)
        world_break(c->w, "one deadline bounds the acquire", "%s waits on behind its deadline",
                    a->name);
    if (!a->believes)
        return;
    clave_grant g;
    bool known = clave_mutex_grant(a->mutex, a->owner, &g);
    int64_t now = host_clock(a->host);
    if (host_is_awake(a->host) && known && g.deadline + LATE_MS < now)
        world_break(c->w, "LOST is heard by the deadline",
                    "%s believes to hold %s %lld ms after its deadline", a->name,
                    workload_lock_path(a->lock), (long long)(now - g.deadline));
    if (!known || !actor_is_valid(a) || was_taken(c, a->node))
        return;
    int64_t longest = a->load->o->max_hold_ms;
    if (longest > 0 && now > a->granted_ms + longest + LATE_MS)
        world_break(c->w, "the longest hold ends", "%s holds for %lld ms, not %lld", a->name,
                    (long long)(now - a->granted_ms), (long long)longest);
    if (valid[a->lock])
        world_break(c->w, "no two valid holds at once",
                    "%s (token %lld, until %lld) and %s (token %lld) both hold %s", a->name,
                    (long long)a->token, (long long)(g.deadline - now), valid[a->lock]->name,
                    (long long)valid[a->lock]->token, workload_lock_path(a->lock));
    valid[a->lock] = a;
    if (c->server->server)
        compare_with_queue(c, a, g.deadline - now);
}

void checker_look(struct checker *c)
{
    struct actor *valid[LOCKS] = {NULL};
    c->looks++;
    each_actor(c, look_at, valid);
}

/* ---- the order of the queue ---------------------------------------------------------- */

void checker_asked(struct checker *c, struct actor *a)
{
    a->started = c->w->now;
    a->queued_at = -1;
    a->overtaken = a->disturbed = false;
}

/* It stands in the queue from now on at the latest. */
void checker_queued(struct checker *c, struct actor *a)
{
    int64_t session = clave_client_session_id(a->host->client);
    if (a->queued_at >= 0 && a->queued_session == session)
        return;
    a->queued_at = c->w->now;
    a->queued_session = session;
    a->overtaken = false;
}

/* `arg` was granted: who waited before it was even asked for? */
static void note_overtaking(struct checker *c, struct actor *a, void *arg)
{
    (void)c;
    const struct actor *winner = arg;
    if (a == winner || a->lock != winner->lock || a->state != ACTOR_WAITING || a->queued_at < 0)
        return;
    if (a->queued_at < winner->started && !a->overtaken) {
        a->overtaken = true;
        a->overtaker = winner->token;
    }
}

void checker_granted(struct checker *c, struct actor *a, const clave_grant *g)
{
    struct lock_record *r = &c->locks[a->lock];
    /* A process that was stopped between reading its clock and acting on it hears of a grant
     * that is over: valid_for says so, and the guard refuses its writes. */
    if (was_taken(c, a->node) || !actor_is_valid(a))
        return;
    if (g->token <= r->last_token)
        world_break(c->w, "tokens grow", "%s is granted %s with token %lld, behind %lld", a->name,
                    workload_lock_path(a->lock), (long long)g->token, (long long)r->last_token);
    r->last_token = g->token;
    if (a->overtaken && !a->disturbed && a->queued_session == g->session_id)
        world_break(c->w, "first come, first served",
                    "%s kept its session and its place, but token %lld, asked for later, was "
                    "granted before its %lld",
                    a->name, (long long)a->overtaker, (long long)g->token);
    each_actor(c, note_overtaking, a);
}

static void forget_place(struct checker *c, struct actor *a, void *arg)
{
    (void)c;
    if (a->lock == *(unsigned *)arg)
        a->disturbed = true;
}

void checker_disturbed(struct checker *c, unsigned lock)
{
    each_actor(c, forget_place, &lock);
}

/* ---- the counters -------------------------------------------------------------------- */

void checker_written(struct checker *c, const struct actor *a, int32_t version)
{
    struct lock_record *r = &c->locks[a->lock];
    r->acknowledged++;
    size_t at = (size_t)version;
    if (at >= r->nwriters) {
        r->writers = world_grow(r->writers, (at + 64) * sizeof *r->writers);
        memset(r->writers + r->nwriters, 0, (at + 64 - r->nwriters) * sizeof *r->writers);
        r->nwriters = at + 64;
    }
    if (r->writers[at] != 0)
        world_break(c->w, "each write is done once", "version %d of %s was written twice",
                    (int)version, workload_counter_path(a->lock));
    r->writers[at] = a->token;
}

void checker_unknown(struct checker *c, const struct actor *a)
{
    c->locks[a->lock].unknown++;
}

static void count_one(struct checker *c, unsigned lock)
{
    const struct lock_record *r = &c->locks[lock];
    const char *path = workload_counter_path(lock);
    int64_t value = 0;
    int32_t version = 0;
    bool found = inspector_read(c->server, path, &value, &version);
    uint64_t applied = (uint64_t)version;
    if (!found && r->acknowledged > 0)
        world_break(c->w, "what was acknowledged stays", "%s is gone", path);
    if (applied < r->acknowledged || applied > r->acknowledged + r->unknown)
        world_break(c->w, "what was acknowledged stays",
                    "%s was written %llu times, but %llu were acknowledged and %llu unknown", path,
                    (unsigned long long)applied, (unsigned long long)r->acknowledged,
                    (unsigned long long)r->unknown);
    if (value != version)
        world_break(c->w, "no update is lost", "%s counts %lld after %d increments", path,
                    (long long)value, (int)version);
    int64_t newest = 0;
    for (size_t i = 0; i < r->nwriters; i++) {
        if (r->writers[i] != 0 && r->writers[i] < newest)
            world_break(c->w, "stale holders are refused",
                        "version %zu of %s was written with token %lld, behind %lld", i, path,
                        (long long)r->writers[i], (long long)newest);
        newest = r->writers[i] > newest ? r->writers[i] : newest;
    }
}

void checker_count(struct checker *c)
{
    for (unsigned i = 0; i < c->loads[0]->o->locks; i++)
        count_one(c, i);
}

/* ---- life ---------------------------------------------------------------------------- */

void checker_init(struct checker *c, struct world *w, struct server_host *server)
{
    memset(c, 0, sizeof *c);
    c->w = w;
    c->server = server;
}

void checker_fini(struct checker *c)
{
    for (size_t i = 0; i < LOCKS; i++)
        free(c->locks[i].writers);
}
