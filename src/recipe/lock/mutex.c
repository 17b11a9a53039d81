/* mutex.c - the mutex: any number of owners, each of which may wait for the lock or hold it.
 *
 * See clave/async/mutex.h for its purpose. The two sides of a read-write lock (rwlock.c) and the
 * parts of a multi-lock (multilock.c) are mutexes as well, with the node names of another
 * queue_order_rule.
 *
 * How it works. An owner that holds or wants the lock is an entry in a map, keyed by its number:
 *
 *                 acquire                    granted
 *     (no entry) ─────────> waits: a place ──────────> holds: a place, count > 0
 *         ^                      │                        │ lost          ^ │ acquire, release
 *         │ ended, cancelled     │                        v               └─┘ count + 1, - 1
 *         ├──────────────────────┘                    has lost: no place, count > 0
 *         └─────────── released as often as it was acquired ────┘
 *
 * The place in the queue is a contender, which does all the work with the server and whose events
 * move the entry. A pending answer to an acquire or a release keeps the mutex in memory, because
 * the user may free it before the answer is given; whatever is still waiting then ends with
 * ECANCELED.
 *
 * What must stay true. An owner has at most one pending acquire. When its interest ends, it leaves
 * the map at once, before any callback runs, so an acquire made in that callback starts afresh;
 * only the answer lives on. Every answer is given exactly once, and never inside the call that it
 * answers. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "recipe/contender/contender_config.h"
#include "recipe/contender/contender_grant.h"
#include "recipe/lock/mutex_for_recipes.h"

/* The answer that an acquire or a release is going to get. */
struct answer {
    struct client_task due;
    clave_async_mutex *m;
    uint64_t owner;
    clave_async_mutex_cb *cb;
    void *arg;
    clave_err verdict;
};

struct owner {
    struct answer answer; /* must be first: freeing the answer frees the owner */
    struct map_node node;
    struct contender *place;
    unsigned count;
    clave_err lost;          /* why it was lost; CLAVE_OK: it is not */
    int64_t downgrade_token; /* the token of the write whose place a read takes over */
};

struct clave_async_mutex {
    clave_async_client *client;
    const struct clave_mem *mem;
    struct contender_config config;
    struct deadlock_terms deadlock_terms;
    char *deadlock;           /* text of the newest deadlock that ended an acquire; may be NULL */
    clave_async_mutex *other; /* the other side of a read-write lock; may be NULL */
    clave_mutex_event_cb *event_cb;
    void *event_arg;
    struct map owners;
    bool freed;
    unsigned refs; /* the user, and answers still to be given */
};

/* ---- creating and freeing -------------------------------------------------------------------- */

static void mutex_unref(clave_async_mutex *m)
{
    assert(m->refs > 0);
    if (--m->refs > 0)
        return;
    clave__map_fini(&m->owners);
    clave__contender_config_fini(&m->config);
    clave__deadlock_terms_fini(&m->deadlock_terms);
    clave__mem_free(m->mem, m->deadlock);
    clave__mem_free(m->mem, m);
}

static clave_err mutex_copy_options(clave_async_mutex *m, const clave_mutex_options *o)
{
    m->event_cb = o->event_cb;
    m->event_arg = o->event_arg;
    m->config.spec.max_hold_ms = o->max_hold_ms;
    m->config.spec.min_valid_ms = o->min_valid_ms;
    m->config.spec.strict = o->strict;
    m->config.spec.revocable = o->revocable;
    m->config.spec.deadlock_terms = &m->deadlock_terms;
    if (m->config.spec.rule->unprotected && o->detect_deadlocks_ms > 0)
        return CLAVE_EINVAL;
    struct deadlock_terms_options detection = {o->detect_deadlocks_ms, o->lock_roots,
                                               o->nlock_roots, o->data, o->len};
    clave_err err =
        clave__deadlock_terms_init(&m->deadlock_terms, m->client, m->config.path, &detection);
    if (err == CLAVE_OK)
        err = clave__contender_config_set_data(&m->config, o->data, o->len);
    return err == CLAVE_OK ? clave__contender_config_set_acls(&m->config, o->acls, o->nacls) : err;
}

clave_err clave__mutex_new(clave_async_mutex **out, clave_async_client *c, const char *path,
                           const clave_mutex_options *given, const struct queue_order_rule *rule)
{
    clave_mutex_options o;
    *out = NULL;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_mutex_options");
    struct queue_order_rule simple;
    if (err == CLAVE_OK && (o.max_hold_ms < 0 || o.min_valid_ms < 0 || (!o.data && o.len > 0) ||
                            (o.acls && o.nacls == 0)))
        err = CLAVE_EINVAL;
    if (err == CLAVE_OK && o.simple_prefix)
        err = rule ? CLAVE_EINVAL : clave__queue_order_unprotected(&simple, o.simple_prefix);
    if (err != CLAVE_OK)
        return err;
    if (!rule)
        rule = o.simple_prefix ? &simple : &clave__queue_order_mutex;
    const struct clave_mem *mem = clave__client_mem(c);
    clave_async_mutex *m = clave__mem_zalloc(mem, sizeof *m);
    if (!m)
        return CLAVE_ENOMEM;
    m->client = c;
    m->mem = mem;
    m->refs = 1;
    err = clave__map_init(&m->owners, mem, 0);
    if (err == CLAVE_OK)
        err = clave__contender_config_init(&m->config, c, path, rule, "the lock's path");
    if (err == CLAVE_OK)
        err = mutex_copy_options(m, &o);
    if (err != CLAVE_OK) {
        mutex_unref(m);
        return err;
    }
    clave__client_ref(c);
    *out = m;
    return CLAVE_OK;
}

clave_err clave_async_mutex_new(clave_async_mutex **out, clave_async_client *c, const char *path,
                                const clave_mutex_options *o)
{
    return clave__mutex_new(out, c, path, o, NULL);
}

void clave__mutex_listen(clave_async_mutex *m, clave_mutex_event_cb *cb, void *arg)
{
    m->event_cb = cb;
    m->event_arg = arg;
}

void clave__mutex_set_place(clave_async_mutex *m, struct queue_place *place)
{
    m->config.spec.place = place;
}

void clave__mutex_pair(clave_async_mutex *read, clave_async_mutex *write)
{
    read->other = write;
    write->other = read;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Frees the answer, then runs its callback, so that the callback finds everything consistent. */
static void answer_deliver(struct answer *a, clave_err verdict)
{
    clave_async_mutex *m = a->m;
    uint64_t owner = a->owner;
    clave_async_mutex_cb *cb = a->cb;
    void *arg = a->arg;
    list_remove(&a->due.link);
    clave__mem_free(m->mem, a);
    if (cb)
        cb(m, owner, verdict, arg);
    mutex_unref(m);
}

static void answer_on_due(struct client_task *t)
{
    struct answer *a = LIST_ENTRY(t, struct answer, due);
    answer_deliver(a, a->verdict);
}

static void answer_init(struct answer *a, clave_async_mutex *m, uint64_t owner,
                        clave_async_mutex_cb *cb, void *arg)
{
    list_init(&a->due.link);
    a->due.run = answer_on_due;
    a->m = m;
    a->owner = owner;
    a->cb = cb;
    a->arg = arg;
    m->refs++;
}

/* Delivers the answer later. */
static void answer_post(struct answer *a, clave_err verdict)
{
    a->verdict = verdict;
    clave__client_later(a->m->client, &a->due);
}

/* Answers an acquire of an owner that already held: it holds once more, unless it was freed in the
 * meantime. */
static void answer_on_again(struct client_task *t)
{
    struct answer *a = LIST_ENTRY(t, struct answer, due);
    answer_deliver(a, a->m->freed ? CLAVE_ECANCELED : CLAVE_OK);
}

/* Makes the answer to a call that has nothing left to do: a release, or a repeated acquire
 * (`again`). ENOMEM. */
static clave_err answer_post_new(clave_async_mutex *m, uint64_t owner, bool again,
                                 clave_async_mutex_cb *cb, void *arg)
{
    struct answer *a = clave__mem_zalloc(m->mem, sizeof *a);
    if (!a)
        return CLAVE_ENOMEM;
    answer_init(a, m, owner, cb, arg);
    if (again)
        a->due.run = answer_on_again;
    clave__client_later(m->client, &a->due);
    return CLAVE_OK;
}

/* ---- acquire --------------------------------------------------------------------------------- */

static bool owner_eq(const struct map_node *node, const void *key)
{
    const char *owner = (const char *)node - offsetof(struct owner, node);
    return ((const struct owner *)(const void *)owner)->answer.owner == *(const uint64_t *)key;
}

/* NULL: the owner neither holds nor wants anything. */
static struct owner *mutex_find(const clave_async_mutex *m, uint64_t owner)
{
    struct map_node *node =
        clave__map_find(&m->owners, clave__map_hash_u64(owner), owner_eq, &owner);
    return node ? MAP_ENTRY(node, struct owner, node) : NULL;
}

static clave_err acquire_again(struct owner *o, clave_async_mutex_cb *cb, void *arg)
{
    if (o->count == 0)
        return CLAVE_EINVAL; /* one is pending */
    if (o->lost != CLAVE_OK)
        return CLAVE_ELOST;
    clave_err err = answer_post_new(o->answer.m, o->answer.owner, true, cb, arg);
    if (err == CLAVE_OK)
        o->count++;
    return err;
}

/* What an owner of the other side of a read-write lock may do on this side. An upgrade is refused
 * (EUPGRADE), since the write would wait for the owner's own read. A downgrade takes over the place
 * of the write, *downgrade; NULL: there is none. ELOST, EINVAL. */
static clave_err check_other_side(const clave_async_mutex *m, uint64_t owner,
                                  const struct contender **downgrade)
{
    const struct owner *o = m->other ? mutex_find(m->other, owner) : NULL;
    *downgrade = NULL;
    if (!o)
        return CLAVE_OK;
    if (!m->config.spec.rule->shares)
        return CLAVE_EUPGRADE;
    if (o->count == 0)
        return CLAVE_EINVAL; /* one is pending */
    if (o->lost != CLAVE_OK)
        return CLAVE_ELOST;
    *downgrade = o->place;
    return CLAVE_OK;
}

static const struct contender_events events;

/* Joins the queue, with the owner's name in the data of its node. `downgrade` is the node to take
 * over; may be NULL. */
static clave_err owner_take_place(struct owner *o, int64_t deadline, const char *downgrade)
{
    clave_async_mutex *m = o->answer.m;
    char task[24];
    snprintf(task, sizeof task, "%llx", (unsigned long long)o->answer.owner);
    clave_identity more = {.task = o->answer.owner == 0 ? NULL : task,
                           .yields = m->deadlock_terms.delay_ms > 0};
    clave_err err = clave__contender_new(&o->place, m->client, &m->config.spec, &events, o);
    if (err == CLAVE_OK)
        err = clave__contender_add_identity(o->place, &more);
    /* A read that was handed over has a place already. */
    if (err == CLAVE_OK && downgrade && !clave__contender_was_handed(o->place))
        err = clave__contender_downgrade(o->place, downgrade);
    if (err == CLAVE_OK)
        err = clave__contender_join(o->place, deadline);
    if (err != CLAVE_OK)
        o->place = NULL;
    return err;
}

clave_err clave_async_mutex_acquire(clave_async_mutex *m, uint64_t owner, int64_t deadline,
                                    clave_async_mutex_cb *cb, void *arg)
{
    if (!cb)
        return CLAVE_EINVAL;
    struct owner *o = mutex_find(m, owner);
    if (o)
        return acquire_again(o, cb, arg);
    if (clave_async_client_state(m->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    const struct contender *downgrade;
    clave_err err = check_other_side(m, owner, &downgrade);
    if (err != CLAVE_OK)
        return err;
    o = clave__mem_zalloc(m->mem, sizeof *o);
    if (!o)
        return CLAVE_ENOMEM;
    answer_init(&o->answer, m, owner, cb, arg);
    o->downgrade_token = downgrade ? downgrade->node.token : 0;
    bool trying = deadline <= clave__client_now(m->client);
    if (trying &&
        !clave_async_client_is_connected(m->client)) { /* a try does not wait for a connection */
        answer_post(&o->answer, clave__client_not_in_time(m->client, 0));
        return CLAVE_OK;
    }
    err = owner_take_place(o, deadline, downgrade ? downgrade->node.watch.path : NULL);
    if (err != CLAVE_OK) {
        clave__mem_free(m->mem, o);
        mutex_unref(m);
        return err;
    }
    clave__map_insert(&m->owners, &o->node, clave__map_hash_u64(owner));
    return CLAVE_OK;
}

/* ---- events of the place --------------------------------------------------------------------- */

static void owner_tell(struct owner *o, clave_mutex_event_kind kind, clave_err why)
{
    clave_async_mutex *m = o->answer.m;
    if (!m->event_cb)
        return;
    clave_mutex_event ev = {.kind = kind, .owner = o->answer.owner, .why = why};
    if (kind == CLAVE_MUTEX_QUEUED || kind == CLAVE_MUTEX_NEXT) {
        ev.ahead = clave__contender_ahead(o->place);
        ev.predecessor = clave__contender_predecessor(o->place);
        ev.left_over = clave__contender_left_over(o->place);
    }
    m->event_cb(m, &ev, m->event_arg);
}

static void owner_on_moved(void *arg)
{
    struct owner *o = arg;
    const struct contender *place = o->place;
    owner_tell(o, CLAVE_MUTEX_QUEUED, CLAVE_OK);
    /* The callback may have cancelled the acquire; then the place has no owner any more. */
    if (place->owner == o && clave__contender_ahead(place) == 1)
        owner_tell(o, CLAVE_MUTEX_NEXT, CLAVE_OK);
}

static void owner_on_held(void *arg)
{
    struct owner *o = arg;
    assert(o->count == 0);
    o->count = 1;
    const struct contender *place = o->place;
    struct answer a = o->answer;
    a.cb(a.m, a.owner, CLAVE_OK, a.arg);
    /* the callback may have released the lock, or freed m */
    if (place->owner == o)
        owner_tell(o, CLAVE_MUTEX_HELD, CLAVE_OK);
    mutex_unref(a.m);
}

static void owner_on_ended(void *arg, clave_err err)
{
    struct owner *o = arg;
    clave_async_mutex *m = o->answer.m;
    if (err == CLAVE_EDEADLOCK)
        clave__deadlock_keep_text(m->mem, &m->deadlock, o->place->deadlock);
    clave__map_remove(&m->owners, &o->node);
    answer_deliver(&o->answer, err);
}

static void owner_on_lost(void *arg, clave_err why)
{
    struct owner *o = arg;
    o->place = NULL;
    o->lost = why;
    owner_tell(o, CLAVE_MUTEX_LOST, why);
}

static void owner_on_asked(void *arg)
{
    owner_tell(arg, CLAVE_MUTEX_ASKED, CLAVE_OK);
}

static const struct contender_events events = {
    .moved = owner_on_moved,
    .held = owner_on_held,
    .ended = owner_on_ended,
    .lost = owner_on_lost,
    .asked = owner_on_asked,
};

/* ---- release, cancel, free ------------------------------------------------------------------- */

static void owner_on_left(void *arg, clave_err err)
{
    struct owner *o = arg;
    answer_post(&o->answer, err); /* this may run inside the release */
}

/* Gives the last hold back by deleting the node. If there is a callback, the owner lives until the
 * node is certainly gone. */
static void release_place(struct owner *o, clave_async_mutex_cb *cb, void *arg)
{
    clave_async_mutex *m = o->answer.m;
    struct contender *place = o->place;
    clave__map_remove(&m->owners, &o->node);
    if (cb) {
        answer_init(&o->answer, m, o->answer.owner, cb, arg);
        clave__contender_leave(place, owner_on_left, o);
    } else {
        clave__mem_free(m->mem, o);
        clave__contender_leave(place, NULL, NULL);
    }
}

static clave_err release_lost(struct owner *o)
{
    assert(o->count > 0 && o->lost != CLAVE_OK);
    clave_async_mutex *m = o->answer.m;
    clave_err verdict = clave__contender_release_lost(o->lost);
    if (--o->count == 0) {
        clave__map_remove(&m->owners, &o->node);
        clave__mem_free(m->mem, o);
    }
    return verdict;
}

clave_err clave_async_mutex_release(clave_async_mutex *m, uint64_t owner, clave_async_mutex_cb *cb,
                                    void *arg)
{
    struct owner *o = mutex_find(m, owner);
    if (!o || o->count == 0)
        return CLAVE_ENOTHELD;
    if (!o->place)
        return release_lost(o);
    if (o->count == 1) {
        release_place(o, cb, arg);
        return CLAVE_OK;
    }
    clave_err err = cb ? answer_post_new(m, owner, false, cb, arg) : CLAVE_OK;
    if (err == CLAVE_OK)
        o->count--;
    return err;
}

/* Takes an owner out of the map, whatever its state; a pending acquire ends with ECANCELED. */
static void mutex_remove(clave_async_mutex *m, struct owner *o)
{
    struct contender *place = o->place;
    clave__map_remove(&m->owners, &o->node);
    if (o->count == 0)
        answer_post(&o->answer, CLAVE_ECANCELED);
    else
        clave__mem_free(m->mem, o);
    if (place)
        clave__contender_leave(place, NULL, NULL);
}

clave_err clave_async_mutex_cancel(clave_async_mutex *m, uint64_t owner)
{
    struct owner *o = mutex_find(m, owner);
    if (!o || o->count > 0)
        return CLAVE_ENOTHELD;
    mutex_remove(m, o);
    return CLAVE_OK;
}

void clave_async_mutex_free(clave_async_mutex *m)
{
    if (!m)
        return;
    m->event_cb = NULL;
    m->freed = true;
    if (m->other)
        m->other->other = NULL;
    struct map_node *node;
    while ((node = clave__map_next(&m->owners, NULL)))
        mutex_remove(m, MAP_ENTRY(node, struct owner, node));
    clave_async_client *c = m->client;
    mutex_unref(m);
    clave__client_unref(c);
}

/* ---- queries --------------------------------------------------------------------------------- */

bool clave__mutex_held(const clave_async_mutex *m, uint64_t owner, struct grant_facts *out)
{
    const struct owner *o = mutex_find(m, owner);
    if (!o || o->count == 0 || !o->place)
        return false;
    *out = clave__contender_facts(o->place);
    out->count = o->count;
    if (o->place->downgrade.node)
        out->token = o->downgrade_token;
    return true;
}

clave_err clave_async_mutex_grant(const clave_async_mutex *m, uint64_t owner,
                                  clave_async_grant **out)
{
    struct grant_facts f;
    *out = NULL;
    if (clave__mutex_held(m, owner, &f))
        return clave__grant_new(out, &f);
    const struct owner *o = mutex_find(m, owner);
    return o && o->count > 0 ? CLAVE_ELOST : CLAVE_ENOTHELD;
}

const struct contender *clave__mutex_place(const clave_async_mutex *m, uint64_t owner)
{
    const struct owner *o = mutex_find(m, owner);
    return o ? o->place : NULL;
}

clave_err clave__mutex_describe(clave_async_mutex *m, uint64_t owner, const clave_identity *said,
                                queue_described *done, void *arg, size_t *n)
{
    struct owner *o = mutex_find(m, owner);
    *n = 0;
    if (!o || !o->place)
        return CLAVE_OK;
    clave_err err = clave__contender_describe(o->place, said, done, arg);
    *n = err == CLAVE_OK;
    return err == CLAVE_ENOTHELD ? CLAVE_OK : err;
}

const char *clave_async_mutex_deadlock(const clave_async_mutex *m)
{
    return m->deadlock;
}
