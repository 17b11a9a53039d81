#include "checker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector.h"
#include "leader_watcher.h"
#include "runner.h"
#include "slot_user.h"

enum { LATE_MS = 5 };

typedef void each_fn(struct checker *c, struct actor *a, void *arg);

static void each_actor(struct checker *c, each_fn *fn, void *arg)
{
    for (size_t i = 0; i < c->nloads; i++)
        for (unsigned k = 0; k < c->loads[i]->o->actors; k++)
            fn(c, &c->loads[i]->actors[k], arg);
}

static const struct lock_layout *layout_of(const struct checker *c, unsigned lock)
{
    return workload_layout(c->loads[0], lock);
}

/* An eighth of the session timeout: a client's clock may go by that much slower than the server's,
 * (1 - d) / (1 + d) = 7/8. */
enum { COVERED_PPM = 66666 };

bool checker_is_beyond(struct checker *c)
{
    bool beyond = c->w->drift_ppm > COVERED_PPM;
    c->overlaps += beyond;
    return beyond;
}

/* ---- exclusion ----------------------------------------------------------------------- */

void checker_taken(struct checker *c, const char *node)
{
    struct taken_node *t = &c->taken[c->ntaken++ % TAKEN_NODES];
    snprintf(t->path, sizeof t->path, "%s", node);
    t->at = c->w->now;
    for (unsigned i = 0; i < LOCKS; i++)
        unguarded_taken(&c->locks[i].unguarded, node);
}

bool checker_was_taken(const struct checker *c, const char *node)
{
    for (size_t i = 0; i < TAKEN_NODES && i < c->ntaken; i++)
        if (c->w->now < c->taken[i].at + c->grace_us && strcmp(c->taken[i].path, node) == 0)
            return true;
    return false;
}

/* Stronger than what two holders could show. */
static void compare_with_queue(struct checker *c, const struct actor *a, struct hold *h)
{
    const struct lock_layout *s = layout_of(c, h->lock);
    int64_t zxid = inspector_zxid(c->server);
    if (h->seen_zxid == zxid && h->seen_start == c->server->stats.starts)
        return;
    if (h->session < c->server->oldest_session)
        return; /* it may believe on: nobody else is granted anything meanwhile */
    h->seen_zxid = zxid;
    h->seen_start = c->server->stats.starts;
    bool stands = inspector_has_node(c->server, h->node, h->session);
    bool rightly = stands && layout_has_turn(c->server, s, h->node);
    if (!rightly && !checker_is_beyond(c))
        world_break(c->w, "a valid hold is the first of its queue", "%s holds %s by %s, %s",
                    a->name, s->path, strrchr(h->node, '/') + 1,
                    stands ? "whose turn it is not" : "which is not there");
}

/* Who holds how much of each lock, as far as was looked. */
struct sums {
    unsigned held[LOCKS];
    const struct actor *one[LOCKS];
};

static void add_up(struct checker *c, const struct actor *a, const struct hold *h, struct sums *s)
{
    const struct lock_layout *at = layout_of(c, h->lock);
    s->held[h->lock] += hold_weight(h, at);
    if (s->held[h->lock] > layout_capacity(at) && !checker_is_beyond(c))
        world_break(c->w, "no two valid holds at once", "%s (token %lld) and %s both hold %s",
                    a->name, (long long)h->token, s->one[h->lock]->name, at->path);
    s->one[h->lock] = a;
}

static void look_at_hold(struct checker *c, struct actor *a, unsigned nth, struct sums *s)
{
    struct hold *h = &a->holds[nth];
    const char *path = layout_of(c, h->lock)->path;
    int64_t now = host_clock(a->host);
    struct grant_facts g;
    bool known = a->recipe->held(a, nth, &g);
    if (host_is_awake(a->host) && known && g.deadline + LATE_MS < now)
        world_break(c->w, "LOST is reported by the deadline",
                    "%s still believes that it holds %s %lld ms after its deadline", a->name, path,
                    (long long)(now - g.deadline));
    if (!known || !actor_is_valid(a, nth) || checker_was_taken(c, h->node))
        return;
    int64_t longest = a->load->o->max_hold_ms;
    if (longest > 0 && now > h->granted_ms + longest + LATE_MS)
        world_break(c->w, "the longest hold ends", "%s holds for %lld ms, not %lld", a->name,
                    (long long)(now - h->granted_ms), (long long)longest);
    promise_look(c, a, h);
    h->valid_at = c->w->now;
    /* The read behind a write that is about to be given up adds nothing to the write. */
    bool beside = nth > 0 && h->lock == a->holds[0].lock && h->shared && !a->holds[0].shared &&
                  a->holds[0].believed;
    if (!beside)
        add_up(c, a, h, s);
    if (c->server->server)
        compare_with_queue(c, a, h);
}

static void look_at(struct checker *c, struct actor *a, void *arg)
{
    if (a->state == ACTOR_WAITING && a->deadline != CLAVE_TRY && host_is_awake(a->host) &&
        host_clock(a->host) - LATE_MS > a->deadline)
        world_break(c->w, "one deadline bounds the acquire", "%s still waits after its deadline",
                    a->name);
    for (unsigned i = 0; i < a->nholds; i++)
        if (a->holds[i].believed)
            look_at_hold(c, a, i, arg);
}

/* Dead or stopped, its guardian and its supervisor need not have kept it from that. */
static void look_at_watched(struct checker *c, const struct runner *w)
{
    if (!w->fed_late && host_clock(w->load->host) > w->hold_policy.deadline)
        world_break(c->w, "a watchdog fires before the deadline of a command that outlives its end",
                    "%s lets one of token %lld run on", w->name, (long long)w->hold.token);
}

/* A command takes of the lock what its hold did, until nothing of it is alive. */
static void look_at_command(struct checker *c, struct runner *w, const struct sums *s)
{
    const struct hold *h = &w->hold;
    const struct lock_layout *at = layout_of(c, h->lock);
    const struct actor *other = s->one[h->lock];
    bool neglectful = runner_is_neglectful(w), watched = runner_is_watched(w);
    bool accountable = runner_is_accountable(w);
    if (watched)
        look_at_watched(c, w);
    if (!accountable && !watched)
        return;
    if (accountable && neglectful)
        world_break(c->w,
                    "a command whose work is ill or silent ends in the time that was promised",
                    "%s lets one of token %lld run on", w->name, (long long)h->token);
    if (accountable && runner_is_overdue(w))
        world_break(c->w, "a command ends before its deadline", "%s lets one of token %lld run on",
                    w->name, (long long)h->token);
    bool counted = w->actor && w->actor->holds[0].token == h->token && actor_is_valid(w->actor, 0);
    bool taken_away = w->page == KILL_POLICY_NO_DEADLINE && !accountable;
    if (counted || !other || other == w->actor || taken_away)
        return;
    if (s->held[h->lock] + hold_weight(h, at) > layout_capacity(at) &&
        !checker_was_taken(c, h->node) && !checker_is_beyond(c))
        world_break(c->w,
                    accountable ? "a command has ended before the next holds"
                                : "the watchdog fires before the next owner whenever the command "
                                  "outlives its end",
                    "%s lets one of token %lld run on, and %s holds %s", w->name,
                    (long long)h->token, other->name, at->path);
}

void checker_look(struct checker *c)
{
    struct sums s = {{0}, {NULL}};
    c->looks++;
    each_actor(c, look_at, &s);
    const struct workload_options *o = c->loads[0]->o;
    for (unsigned i = 0; i < o->locks && o->unguarded > 0 && c->server->server; i++)
        unguarded_look(&c->locks[i].unguarded, c->server, o->layouts[i].unguarded);
    for (size_t i = 0; i < c->nloads; i++)
        for (struct runner *w = c->loads[i]->runners; w; w = w->next)
            look_at_command(c, w, &s);
    for (size_t i = 0; i < c->nloads; i++)
        promise_look_at_silences(c, c->loads[i]);
    if (o->tally_rest_us > 0)
        tally_world_look(c);
    if (o->register_rest_us > 0)
        registration_world_look(c);
    if (o->keeper_rest_us > 0) {
        keeper_world_look(c);
        for (size_t i = 0; i < c->nloads && c->calm_from > 0 && c->w->now > c->calm_from; i++)
            keeper_look(c->loads[i]);
    }
    if (o->slot_limit == 0)
        return;
    slot_world_look(&c->slots);
    for (size_t i = 0; i < c->nloads && c->calm_from > 0 && c->w->now > c->calm_from; i++)
        slot_user_look(c->loads[i]);
}

/* Its password follows from its id: a client that comes back with an ended session would get that
 * of another. */
void checker_session(struct checker *c, const char *name, int64_t id)
{
    for (size_t i = 0; i < c->nsessions; i++)
        if (c->sessions[i] == id)
            world_break(c->w, "a session id is given out once",
                        "%s has session 0x%llx, which ended before", name, (unsigned long long)id);
    c->sessions = world_grow(c->sessions, (c->nsessions + 1) * sizeof *c->sessions);
    c->sessions[c->nsessions++] = id;
}

/* ---- fences -------------------------------------------------------------------------- */

void checker_fenced(struct checker *c, unsigned lock, int64_t token)
{
    if (c->locks[lock].unfenced == token)
        c->locks[lock].unfenced = 0;
}

void checker_ended_in_order(struct checker *c, unsigned lock, int64_t token)
{
    checker_fenced(c, lock, token);
}

/* Where a backup is restored, marks are lost with everything else. */
void checker_command_starts(struct checker *c, const struct hold *h)
{
    struct checked_lock *l = &c->locks[h->lock];
    char mark[PATH_SIZE + 8];
    if (c->restored || checker_is_beyond(c) || checker_was_taken(c, h->node))
        return;
    if (l->unfenced != 0 && l->unfenced != h->token)
        world_break(c->w, "no command starts before its fence has succeeded",
                    "one of token %lld starts on %s, and that of %lld has neither ended in order "
                    "nor been fenced",
                    (long long)h->token, layout_of(c, h->lock)->path, (long long)l->unfenced);
    l->unfenced = h->token;
    snprintf(mark, sizeof mark, "%s-held", layout_of(c, h->lock)->path);
    if (c->server->server && inspector_mark_token(c->server, mark) != h->token)
        world_break(c->w, "a command starts under its own mark",
                    "one of token %lld starts, and %s says %lld", (long long)h->token, mark,
                    (long long)inspector_mark_token(c->server, mark));
}

/* ---- the order of the queue ---------------------------------------------------------- */

void checker_asked(struct checker *c, struct actor *a)
{
    if (!a->latch) /* else it stands since then */
        a->started = c->w->now;
    a->queued_at = -1;
    a->overtaken = a->disturbed = false;
}

/* It stands in the queue from now on at the latest. */
void checker_queued(struct checker *c, struct actor *a)
{
    int64_t session = clave_async_client_session_id(a->host->client);
    if (a->queued_at >= 0 && a->queued_session == session)
        return;
    a->queued_at = c->w->now;
    a->queued_session = session;
    a->overtaken = false;
}

bool checker_is_wanted(const struct checker *c, unsigned lock)
{
    for (size_t i = 0; i < c->nloads; i++)
        for (unsigned k = 0; k < c->loads[i]->o->actors; k++) {
            const struct actor *a = &c->loads[i]->actors[k];
            if (a->state == ACTOR_WAITING && a->lock == lock)
                return true;
        }
    return false;
}

bool checker_is_seen(const struct checker *c, unsigned lock, int64_t term)
{
    for (size_t i = 0; i < c->nloads; i++)
        if (!leader_watcher_sees(c->loads[i], lock, term))
            return false;
    return true;
}

/* Did it wait before `winner` was even asked for? Readers do not wait for readers. */
static bool was_before(const struct actor *a, const struct actor *winner)
{
    return a != winner && a->state == ACTOR_WAITING && a->queued_at >= 0 &&
           a->lock == winner->lock && a->recipe->in_order && !(a->shared && winner->shared) &&
           a->queued_at < winner->started;
}

/* What those who hold a semaphore have of it, and those who waited before the winner need. The
 * server's nodes count: one whose session has ended may not have heard of it yet, and one that
 * releases believes that it holds until the answer. One that was a place before the winner when
 * that asked counts once, however many leases it has got since: a place does not say how many it
 * wants. */
struct room {
    const struct actor *winner;
    unsigned taken;
};

static void add_to_room(struct checker *c, struct actor *a, void *arg)
{
    struct room *r = arg;
    bool placed = a->host->client && inspector_has_session(c->server, a->queued_session);
    bool was_place = was_before(a, r->winner) && placed && !a->disturbed;
    for (unsigned i = 0; i < a->nholds; i++) {
        const struct hold *h = &a->holds[i];
        if (!h->believed || h->lock != r->winner->lock ||
            !inspector_has_node(c->server, h->node, h->session))
            continue;
        if (h->called_at < r->winner->started && h->granted_at >= r->winner->started)
            was_place = true;
        else
            r->taken += hold_weight(h, layout_of(c, h->lock));
    }
    r->taken += was_place;
}

static bool is_larger_semaphore(const struct lock_layout *at)
{
    return at->kind == LOCK_SEMAPHORE && at->limit > 1;
}

/* A try does not queue, and takes what those before it leave. */
static bool took_what_was_left(struct checker *c, const struct actor *winner)
{
    const struct lock_layout *at = layout_of(c, winner->lock);
    struct room r = {.winner = winner};
    if (winner->deadline != CLAVE_TRY || !is_larger_semaphore(at))
        return false;
    if (!c->server->server)
        return true; /* nobody can tell now */
    each_actor(c, add_to_room, &r);
    return r.taken <= at->limit;
}

/* `arg` was granted: who was before it? */
static void note_overtaking(struct checker *c, struct actor *a, void *arg)
{
    (void)c;
    const struct actor *winner = arg;
    if (was_before(a, winner) && !a->overtaken) {
        a->overtaken = true;
        a->overtaker = winner->holds[0].token;
    }
}

static void check_order(struct checker *c, struct actor *a, const struct hold *h)
{
    if (a->overtaken && !a->disturbed && a->queued_session == h->session)
        world_break(c->w, "first come, first served",
                    "%s kept its session and its place, but token %lld, asked for later, was "
                    "granted before its %lld",
                    a->name, (long long)a->overtaker, (long long)h->token);
    if (a->recipe->in_order && !took_what_was_left(c, a))
        each_actor(c, note_overtaking, a);
}

/* Tokens of one path grow from grant to grant. Reads and the leases of a larger semaphore hear of
 * their grants in any order (history.h has the order of their effects): then each is still the
 * first to have its token. Only a read that takes its write's place has the token it had. */
static void check_token(struct checker *c, const struct actor *a, const struct hold *h)
{
    struct checked_lock *r = &c->locks[h->lock];
    const struct lock_layout *at = layout_of(c, h->lock);
    bool downgraded = h != &a->holds[0] && h->lock == a->holds[0].lock;
    int64_t before = h->shared ? r->last_write : r->last_token;
    bool fine = h->token > before || (downgraded && h->token == before) || is_larger_semaphore(at);
    if (!fine && c->w->now >= r->disturbed_until && !checker_is_beyond(c))
        world_break(c->w, "tokens grow", "%s is granted %s with token %lld, after %lld", a->name,
                    at->path, (long long)h->token, (long long)before);
    bool is_new = token_set_add(&r->tokens, h->token);
    if (!is_new && !downgraded && !checker_is_beyond(c))
        world_break(c->w, "no two grants have one token", "%s is granted %s with token %lld again",
                    a->name, at->path, (long long)h->token);
    r->last_token = h->token > r->last_token ? h->token : r->last_token;
    if (!h->shared)
        r->last_write = h->token;
}

static void check_limit(struct checker *c, const struct actor *a, const struct hold *h)
{
    const struct lock_layout *s = layout_of(c, h->lock);
    bool follows = s->limit_path && c->calm_from > 0 && c->w->now > c->calm_from &&
                   a->host->allocator.refused == 0 && c->server->server;
    if (follows && !layout_fits_limit(c->server, s, h->node))
        world_break(c->w, "a shared limit is followed", "%s is granted %s, which is too many",
                    a->name, strrchr(h->node, '/') + 1);
}

/* A process that was stopped between reading its clock and acting on it hears of a grant that is
 * over: valid_for says so, and the guard refuses its writes. */
void checker_granted(struct checker *c, struct actor *a, unsigned nth)
{
    struct hold *h = &a->holds[nth];
    if (checker_was_taken(c, h->node) || !actor_is_valid(a, nth))
        return;
    h->valid_at = c->w->now;
    if (h->again)
        return;
    check_token(c, a, h);
    check_limit(c, a, h);
    if (nth == 0)
        check_order(c, a, h);
}

/* A write is over for others when a read of its owner has its place. */
static int64_t certain_until(const struct actor *a, const struct hold *h)
{
    const struct hold *beside = &a->holds[1];
    bool downgraded = h == &a->holds[0] && a->nholds > 1 && beside->lock == h->lock &&
                      beside->shared && !h->shared;
    return downgraded && beside->granted_at < h->valid_at ? beside->granted_at : h->valid_at;
}

void checker_ended(struct checker *c, const struct actor *a, unsigned nth)
{
    const struct hold *h = &a->holds[nth];
    struct history_hold k = {
        .called = h->called_at,
        .answered = h->granted_at,
        .ended = certain_until(a, h),
        .token = h->token,
        .holder = a->host->index,
        .weight = hold_weight(h, layout_of(c, h->lock)),
    };
    if (h->valid_at > 0)
        history_add(&c->locks[h->lock].history, &k);
}

static void forget_place(struct checker *c, struct actor *a, void *arg)
{
    (void)c;
    if (a->lock == *(unsigned *)arg)
        a->disturbed = true;
}

/* Of a semaphore two may be let in now, whose leases are then made in any order. */
void checker_disturbed(struct checker *c, unsigned lock)
{
    each_actor(c, forget_place, &lock);
    if (layout_of(c, lock)->gate) {
        c->locks[lock].disturbed_until = c->w->now + c->grace_us;
        c->locks[lock].disturbed = true;
    }
}

void checker_restored(struct checker *c)
{
    c->restored = true;
}

/* ---- life ---------------------------------------------------------------------------- */

void checker_init(struct checker *c, struct world *w, struct server_host *server)
{
    memset(c, 0, sizeof *c);
    c->w = w;
    c->server = server;
    slot_world_init(&c->slots, w, server);
}

void checker_fini(struct checker *c)
{
    free(c->sessions);
    slot_world_fini(&c->slots);
    znode_history_fini(&c->znodes.history);
    for (size_t i = 0; i < LOCKS; i++) {
        free(c->locks[i].writers);
        unguarded_fini(&c->locks[i].unguarded);
        token_set_fini(&c->locks[i].tokens);
        history_fini(&c->locks[i].history);
    }
}
