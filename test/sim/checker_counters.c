/* checker_counters.c - what was done under the locks, counted: the counters, whose versions say how
 * often they were written; and the grants, as a history. And the calls of plain znodes, as another.
 */
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "inspector.h"

void checker_written(struct checker *c, const struct actor *a, int32_t version)
{
    struct checked_lock *r = &c->locks[a->lock];
    r->acknowledged++;
    size_t at = (size_t)version;
    if (at >= r->nwriters) {
        r->writers = world_grow(r->writers, (at + 64) * sizeof *r->writers);
        memset(r->writers + r->nwriters, 0, (at + 64 - r->nwriters) * sizeof *r->writers);
        r->nwriters = at + 64;
    }
    if (r->writers[at] != 0 && !c->restored)
        world_break(c->w, "each write is done once", "version %d of %s was written twice",
                    (int)version, workload_layout(a->load, a->lock)->counter);
    r->writers[at] = a->write_token;
}

void checker_unknown(struct checker *c, const struct actor *a)
{
    c->locks[a->lock].unknown++;
}

static void check_writers(struct checker *c, const struct checked_lock *r, const char *path)
{
    int64_t newest = 0;
    for (size_t i = 0; i < r->nwriters; i++) {
        if (r->writers[i] != 0 && r->writers[i] < newest)
            world_break(c->w, "stale holders are refused",
                        "version %zu of %s was written with token %lld, after %lld", i, path,
                        (long long)r->writers[i], (long long)newest);
        newest = r->writers[i] > newest ? r->writers[i] : newest;
    }
}

static void count_one(struct checker *c, unsigned lock)
{
    const struct checked_lock *r = &c->locks[lock];
    const struct lock_layout *s = workload_layout(c->loads[0], lock);
    int64_t value = 0;
    int32_t version = 0;
    bool found = inspector_read(c->server, s->counter, &value, &version);
    uint64_t applied = (uint64_t)version;
    if (c->restored)
        return;
    if (!found && r->acknowledged > 0)
        world_break(c->w, "what was acknowledged stays", "%s is gone", s->counter);
    if (applied < r->acknowledged || applied > r->acknowledged + r->unknown)
        world_break(c->w, "what was acknowledged stays",
                    "%s was written %llu times, but %llu were acknowledged and %llu unknown",
                    s->counter, (unsigned long long)applied, (unsigned long long)r->acknowledged,
                    (unsigned long long)r->unknown);
    if (!layout_is_exclusive(s))
        return;
    if (value != version)
        world_break(c->w, "no update is lost", "%s counts %lld after %d increments", s->counter,
                    (long long)value, (int)version);
    check_writers(c, r, s->counter);
}

static void check_history(struct checker *c, unsigned lock)
{
    static const char *const what[] = {
        [HISTORY_TOKENS] = "no order of the grants has their tokens grow",
        [HISTORY_ROOM] = "more was held at a time than there is",
    };
    struct checked_lock *r = &c->locks[lock];
    const struct lock_layout *s = workload_layout(c->loads[0], lock);
    size_t at = 0;
    enum history_fault fault = history_check(&r->history, layout_capacity(s), &at);
    bool excused = fault == HISTORY_TOKENS && r->disturbed;
    if (fault == HISTORY_FINE || excused || checker_is_beyond(c))
        return;
    const struct history_hold *h = &r->history.holds[at];
    world_break(c->w, "the history is linearizable",
                "%s: %s: token %lld, called %lld ms, answered %lld, certain until %lld", s->path,
                what[fault], (long long)h->token, (long long)(h->called / MS),
                (long long)(h->answered / MS), (long long)(h->ended / MS));
}

static void break_znode(struct checker *c, const char *invariant, const char *why, size_t at)
{
    const struct znode_call *k = &c->znodes.history.calls[at];
    world_break(c->w, invariant,
                "%s: %s: call %zu, called %lld ms, answered %lld, version %d, zxid %lld",
                znode_paths[k->znode], why, at, (long long)(k->called / MS),
                (long long)(k->answered / MS), (int)k->version, (long long)k->zxid);
}

/* What stands there in the end is what somebody would read now. */
static void read_znode(struct checker *c, unsigned znode)
{
    struct znode_call k = {.znode = znode, .op = ZNODE_GET, .called = c->w->now};
    k.answered = k.called;
    if (!inspector_read(c->server, znode_paths[znode], &k.value, &k.version))
        k.answer = ZNODE_NO_NODE;
    (void)znode_history_add(&c->znodes.history, &k);
}

/* After a restore they are not as they were left. */
static void check_znodes(struct checker *c)
{
    enum { MAX_STEPS = 10000000 };
    struct znode_history *h = &c->znodes.history;
    struct workload_stats *st = &c->loads[0]->stats;
    size_t at, at_zxid;
    const char *why = znode_order_check(h, &at_zxid);
    st->znode_calls += h->n;
    for (unsigned i = 0; i < ZNODES && h->n > 0; i++) {
        read_znode(c, i);
        enum znode_verdict verdict = znode_history_check(h, i, MAX_STEPS, &at);
        st->undecided += verdict == ZNODE_UNDECIDED;
        if (verdict == ZNODE_BROKEN)
            break_znode(c, "a znode is linearizable", "nothing explains this answer", at);
    }
    if (why)
        break_znode(c, "zxids are in order", why, at_zxid);
}

void checker_count(struct checker *c)
{
    if (!c->restored)
        check_znodes(c);
    for (unsigned i = 0; i < c->loads[0]->o->locks; i++) {
        count_one(c, i);
        c->loads[0]->stats.updates_lost += unguarded_count(
            &c->locks[i].unguarded, c->w, workload_layout(c->loads[0], i)->unguarded);
        check_history(c, i);
    }
}
