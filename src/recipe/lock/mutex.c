/* mutex.c - owners, holds and answers of a mutex over its contenders. The public API's file.
 * Invariant: an owner has at most one pending acquire, and each answer is given once. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "recipe/contender/place_grant.h"
#include "recipe/lock/mutex_internal.h"
#include "recipe/lock/mutex_parts.h"

/* ---- answers --------------------------------------------------------------------------- */

static void mutex_ref(clave_async_mutex *m)
{
    m->refs++;
}

static void mutex_unref(clave_async_mutex *m)
{
    assert(m->refs > 0);
    if (--m->refs > 0)
        return;
    clave__map_fini(&m->owner_entries);
    clave__contender_config_fini(&m->config);
    clave__deadlock_terms_fini(&m->deadlock_terms);
    clave__mem_free(m->mem, m->deadlock);
    clave__mem_free(m->mem, m);
}

/* Frees the answer, then runs its callback: whatever that does finds us consistent. */
static void mutex_answer_deliver(struct answer *a, clave_err verdict)
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

static void recipe_mutex_on_due(struct client_task *t)
{
    struct answer *a = LIST_ENTRY(t, struct answer, due);
    mutex_answer_deliver(a, a->verdict);
}

static void mutex_answer_init(struct answer *a, clave_async_mutex *m, uint64_t owner,
                              clave_async_mutex_cb *cb, void *arg)
{
    list_init(&a->due.link);
    a->due.run = recipe_mutex_on_due;
    a->m = m;
    a->owner = owner;
    a->cb = cb;
    a->arg = arg;
    mutex_ref(m);
}

static void mutex_answer_post(struct answer *a, clave_err verdict)
{
    a->verdict = verdict;
    list_remove(&a->due.link); /* a grant may have been due instead (mutex_handoff.c) */
    a->due.run = recipe_mutex_on_due;
    clave__client_later(a->m->client, &a->due);
}

/* Held again, unless it was freed meanwhile. */
static void mutex_on_again(struct client_task *t)
{
    struct answer *a = LIST_ENTRY(t, struct answer, due);
    mutex_answer_deliver(a, a->m->freed ? CLAVE_ECANCELED : CLAVE_OK);
}

/* The answer of a call that has nothing left to do. */
static clave_err mutex_answer_post_new(clave_async_mutex *m, uint64_t owner,
                                       void (*run)(struct client_task *t), clave_async_mutex_cb *cb,
                                       void *arg)
{
    struct answer *a = clave__mem_zalloc(m->mem, sizeof *a);
    if (!a)
        return CLAVE_ENOMEM;
    mutex_answer_init(a, m, owner, cb, arg);
    a->due.run = run;
    clave__client_later(m->client, &a->due);
    return CLAVE_OK;
}

/* ---- owners ---------------------------------------------------------------------------- */

static bool mutex_owner_eq(const struct map_node *node, const void *key)
{
    const char *owner_entry = (const char *)node - offsetof(struct owner_entry, node);
    return ((const struct owner_entry *)(const void *)owner_entry)->answer.owner ==
           *(const uint64_t *)key;
}

static struct owner_entry *recipe_mutex_find(const clave_async_mutex *m, uint64_t owner)
{
    struct map_node *node =
        clave__map_find(&m->owner_entries, clave__map_hash_u64(owner), mutex_owner_eq, &owner);
    return node ? MAP_ENTRY(node, struct owner_entry, node) : NULL;
}

static struct owner_entry *mutex_find_holder(const clave_async_mutex *m, uint64_t owner)
{
    struct owner_entry *e = recipe_mutex_find(m, owner);
    return e && e->count > 0 && e->place ? e : NULL;
}

static void recipe_mutex_tell(struct owner_entry *e, clave_mutex_event_kind kind, clave_err why)
{
    clave_async_mutex *m = e->answer.m;
    if (!m->event_cb)
        return;
    clave_mutex_event ev = {.kind = kind, .owner = e->answer.owner, .why = why};
    if (kind == CLAVE_MUTEX_QUEUED || kind == CLAVE_MUTEX_NEXT) {
        ev.ahead = e->place->queue.ahead;
        ev.predecessor = e->place->queue.predecessor.path;
    }
    m->event_cb(m, &ev, m->event_arg);
}

static void recipe_mutex_on_moved(void *owner)
{
    struct owner_entry *e = owner;
    const struct contender *place = e->place;
    recipe_mutex_tell(e, CLAVE_MUTEX_QUEUED, CLAVE_OK);
    /* The callback may have cancelled; then the place no longer has an owner. */
    if (place->owner == e && place->queue.ahead == 1)
        recipe_mutex_tell(e, CLAVE_MUTEX_NEXT, CLAVE_OK);
}

void clave__owner_entry_tell_held(struct owner_entry *e)
{
    assert(e->place && e->count > 0);
    const struct contender *place = e->place;
    struct answer a = e->answer;
    a.cb(a.m, a.owner, CLAVE_OK, a.arg);
    /* The callback may have released, or freed m. */
    if (place->owner == e)
        recipe_mutex_tell(e, CLAVE_MUTEX_HELD, CLAVE_OK);
    if (place->owner == e && e->asked)
        recipe_mutex_tell(e, CLAVE_MUTEX_ASKED, CLAVE_OK);
    mutex_unref(a.m);
}

static void recipe_mutex_on_held(void *owner)
{
    struct owner_entry *e = owner;
    assert(e->place && e->count == 0);
    e->count = 1;
    e->answer.m->turns = 0;
    clave__handoff_end_wait(e);
    clave__owner_entry_tell_held(e);
}

const char *clave_async_mutex_deadlock(const clave_async_mutex *m)
{
    return m->deadlock;
}

static void recipe_mutex_on_ended(void *owner, clave_err err)
{
    struct owner_entry *e = owner;
    clave_async_mutex *m = e->answer.m;
    if (err == CLAVE_EDEADLOCK)
        clave__deadlock_keep_text(m->mem, &m->deadlock, e->place->deadlock);
    e->place = NULL;
    clave__map_remove(&m->owner_entries, &e->node);
    clave__handoff_end_wait(e);
    if (m->place_owner == e)
        clave__handoff_promote(m); /* before anything that the callback may start */
    mutex_answer_deliver(&e->answer, err);
}

void clave__owner_entry_dismiss(struct owner_entry *e, clave_err verdict)
{
    assert(!e->place);
    clave__map_remove(&e->answer.m->owner_entries, &e->node);
    clave__handoff_end_wait(e);
    mutex_answer_post(&e->answer, verdict);
}

static void recipe_mutex_on_lost(void *owner, clave_err why)
{
    struct owner_entry *e = owner;
    clave_async_mutex *m = e->answer.m;
    e->place = NULL;
    mutex_ref(m);
    bool told = clave__handoff_lose(e);
    if (told) {
        e->lost = why;
        recipe_mutex_tell(e, CLAVE_MUTEX_LOST, why);
    }
    mutex_unref(m);
}

static void recipe_mutex_on_asked(void *owner)
{
    struct owner_entry *e = owner;
    if (e->callback_due)
        e->asked = true;
    else
        recipe_mutex_tell(e, CLAVE_MUTEX_ASKED, CLAVE_OK);
}

static void recipe_mutex_on_left(void *arg, clave_err err)
{
    struct owner_entry *e = arg;
    mutex_answer_post(&e->answer, err); /* this may run inside the release */
}

static const struct contender_events events = {
    .moved = recipe_mutex_on_moved,
    .held = recipe_mutex_on_held,
    .ended = recipe_mutex_on_ended,
    .lost = recipe_mutex_on_lost,
    .asked = recipe_mutex_on_asked,
};

/* ---- life ------------------------------------------------------------------------------ */

static clave_err recipe_mutex_copy_options(clave_async_mutex *m, const clave_mutex_options *o)
{
    m->event_cb = o->event_cb;
    m->event_arg = o->event_arg;
    m->config.spec.max_hold_ms = o->max_hold_ms;
    m->config.spec.min_valid_ms = o->min_valid_ms;
    m->config.spec.strict = o->strict;
    m->config.spec.revocable = o->revocable;
    /* Readers share the lock itself. */
    m->share_turns = m->config.spec.rule->shares ? 0 : o->share_turns;
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

static clave_err recipe_mutex_check_options(const clave_mutex_options *o)
{
    bool fine = o->max_hold_ms >= 0 && o->min_valid_ms >= 0 && (o->data || o->len == 0) &&
                (!o->acls || o->nacls > 0) && (o->share_turns == 0 || o->detect_deadlocks_ms == 0);
    return fine ? CLAVE_OK : CLAVE_EINVAL;
}

clave_err clave__mutex_new(clave_async_mutex **out, clave_async_client *c, const char *path,
                           const clave_mutex_options *given, const struct queue_order_rule *rule)
{
    clave_mutex_options o;
    *out = NULL;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_mutex_options");
    struct queue_order_rule simple;
    if (err == CLAVE_OK)
        err = recipe_mutex_check_options(&o);
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
    list_init(&m->waiters);
    err = clave__map_init(&m->owner_entries, mem, 0);
    if (err == CLAVE_OK)
        err = clave__contender_config_init(&m->config, c, path, rule, "the lock's path");
    if (err == CLAVE_OK)
        err = recipe_mutex_copy_options(m, &o);
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

clave_err clave__mutex_describe(clave_async_mutex *m, uint64_t owner, const clave_identity *said,
                                queue_described *done, void *arg, size_t *n)
{
    struct owner_entry *e = recipe_mutex_find(m, owner);
    *n = 0;
    if (!e || !e->place)
        return CLAVE_OK;
    clave_err err = clave__contender_describe(e->place, said, done, arg);
    *n = err == CLAVE_OK;
    return err == CLAVE_ENOTHELD ? CLAVE_OK : err;
}

void clave__mutex_pair(clave_async_mutex *read, clave_async_mutex *write)
{
    read->other = write;
    write->other = read;
}

/* Takes an owner out of the map; its pending acquire ends with ECANCELED. */
static void mutex_remove_owner(clave_async_mutex *m, struct owner_entry *e)
{
    if (!m->freed)
        clave__handoff_step_down(e);
    struct contender *place = e->place;
    e->place = NULL;
    if (e->count == 0 || e->callback_due) {
        clave__owner_entry_dismiss(e, CLAVE_ECANCELED);
    } else {
        clave__map_remove(&m->owner_entries, &e->node);
        clave__mem_free(m->mem, e);
    }
    if (place)
        clave__contender_leave(place, NULL, NULL);
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
    while ((node = clave__map_next(&m->owner_entries, NULL)))
        mutex_remove_owner(m, MAP_ENTRY(node, struct owner_entry, node));
    clave_async_client *c = m->client;
    mutex_unref(m);
    clave__client_unref(c);
}

/* ---- acquire, release ------------------------------------------------------------------ */

static clave_err mutex_acquire_again(struct owner_entry *e, clave_async_mutex_cb *cb, void *arg)
{
    if (e->count == 0 || e->callback_due)
        return CLAVE_EINVAL; /* one is pending */
    if (e->lost != CLAVE_OK)
        return CLAVE_ELOST;
    clave_err err = mutex_answer_post_new(e->answer.m, e->answer.owner, mutex_on_again, cb, arg);
    if (err == CLAVE_OK)
        e->count++;
    return err;
}

/* What the owner has on the other side: the place that a read takes over, or an error if it must
 * not acquire. */
static clave_err mutex_check_other_side(const clave_async_mutex *m, uint64_t owner,
                                        const struct contender **downgrade)
{
    const struct owner_entry *e = m->other ? recipe_mutex_find(m->other, owner) : NULL;
    *downgrade = NULL;
    if (!e)
        return CLAVE_OK;
    if (!m->config.spec.rule->shares)
        return CLAVE_EUPGRADE;
    if (e->count == 0)
        return CLAVE_EINVAL; /* one is pending */
    if (e->lost != CLAVE_OK)
        return CLAVE_ELOST;
    *downgrade = e->place;
    return CLAVE_OK;
}

/* Writes whose place it is. A shared place belongs to several owners in turn: "*". */
static clave_err recipe_mutex_add_identity(const struct owner_entry *e)
{
    const clave_async_mutex *m = e->answer.m;
    char task[24] = "*";
    if (m->share_turns == 0)
        snprintf(task, sizeof task, "%llx", (unsigned long long)e->answer.owner);
    bool any = m->share_turns == 0 && e->answer.owner == 0;
    clave_identity more = {.task = any ? NULL : task, .yields = m->deadlock_terms.delay_ms > 0};
    return clave__contender_add_identity(e->place, &more);
}

clave_err clave__owner_entry_take_place(struct owner_entry *e, int64_t deadline,
                                        const char *downgrade)
{
    assert(!e->place);
    clave_async_mutex *m = e->answer.m;
    clave_err err = clave__contender_new(&e->place, m->client, &m->config.spec, &events, e);
    if (err == CLAVE_OK)
        err = recipe_mutex_add_identity(e);
    if (err == CLAVE_OK && downgrade)
        err = clave__contender_downgrade(e->place, downgrade);
    if (err == CLAVE_OK)
        err = clave__contender_join(e->place, deadline);
    if (err != CLAVE_OK)
        e->place = NULL;
    return err;
}

clave_err clave_async_mutex_acquire(clave_async_mutex *m, uint64_t owner, int64_t deadline,
                                    clave_async_mutex_cb *cb, void *arg)
{
    if (!cb)
        return CLAVE_EINVAL;
    struct owner_entry *e = recipe_mutex_find(m, owner);
    if (e)
        return mutex_acquire_again(e, cb, arg);
    if (clave_async_client_state(m->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    const struct contender *downgrade;
    clave_err err = mutex_check_other_side(m, owner, &downgrade);
    if (err != CLAVE_OK)
        return err;
    e = clave__mem_zalloc(m->mem, sizeof *e);
    if (!e)
        return CLAVE_ENOMEM;
    mutex_answer_init(&e->answer, m, owner, cb, arg);
    clave__handoff_init(e);
    e->downgrade_token = downgrade ? downgrade->node.token : 0;
    bool trying = deadline <= clave__client_now(m->client);
    if (trying && (m->place_owner || !clave_async_client_is_connected(m->client))) {
        /* A try never waits: not for a connection, nor for another owner in this process. */
        mutex_answer_post(&e->answer, m->place_owner
                                          ? CLAVE_EBUSY
                                          : clave__client_not_in_time(m->client, trying));
        return CLAVE_OK;
    }
    err = m->share_turns > 0 ? clave__handoff_acquire(e, deadline)
                             : clave__owner_entry_take_place(
                                   e, deadline, downgrade ? downgrade->node.watch.path : NULL);
    if (err != CLAVE_OK) {
        clave__mem_free(m->mem, e);
        mutex_unref(m);
        return err;
    }
    clave__map_insert(&m->owner_entries, &e->node, clave__map_hash_u64(owner));
    return CLAVE_OK;
}

clave_err clave_async_mutex_cancel(clave_async_mutex *m, uint64_t owner)
{
    struct owner_entry *e = recipe_mutex_find(m, owner);
    if (e && e->callback_due)
        return CLAVE_OK; /* it is granted: its callback is about to run */
    if (!e || e->count > 0)
        return CLAVE_ENOTHELD;
    mutex_remove_owner(m, e);
    return CLAVE_OK;
}

/* Gives the last hold back: deletes the node. With a callback the entry lives until the node is
 * certainly gone. */
static void mutex_release_place(struct owner_entry *e, clave_async_mutex_cb *cb, void *arg)
{
    clave_async_mutex *m = e->answer.m;
    struct contender *place = e->place;
    bool shared = m->place_owner == e;
    /* A read that took over the write's place has the same number, not a later one: the next writer
     * must queue after that read. */
    bool downgraded = m->other && recipe_mutex_find(m->other, e->answer.owner);
    clave__map_remove(&m->owner_entries, &e->node);
    if (shared && !downgraded && clave__handoff_hand_over(e)) {
        /* The node stays: another owner has it now. */
        if (cb) {
            mutex_answer_init(&e->answer, m, e->answer.owner, cb, arg);
            mutex_answer_post(&e->answer, CLAVE_OK);
        } else {
            clave__mem_free(m->mem, e);
        }
        return;
    }
    if (cb) {
        mutex_answer_init(&e->answer, m, e->answer.owner, cb, arg);
        clave__contender_leave(place, recipe_mutex_on_left, e);
    } else {
        clave__mem_free(m->mem, e);
        clave__contender_leave(place, NULL, NULL);
    }
    /* After the delete: at the end of the queue. */
    if (shared)
        clave__handoff_promote(m);
}

static clave_err mutex_release_lost(struct owner_entry *e)
{
    assert(!e->place && e->count > 0 && e->lost != CLAVE_OK);
    clave_err verdict = e->lost == CLAVE_EMAXHOLD ? CLAVE_EMAXHOLD : CLAVE_ELOST;
    if (--e->count == 0) {
        clave__map_remove(&e->answer.m->owner_entries, &e->node);
        clave__mem_free(e->answer.m->mem, e);
    }
    return verdict;
}

clave_err clave_async_mutex_release(clave_async_mutex *m, uint64_t owner, clave_async_mutex_cb *cb,
                                    void *arg)
{
    struct owner_entry *e = recipe_mutex_find(m, owner);
    if (!e || e->count == 0 || e->callback_due)
        return CLAVE_ENOTHELD;
    if (!e->place)
        return mutex_release_lost(e);
    if (e->count == 1) {
        mutex_release_place(e, cb, arg);
        return CLAVE_OK;
    }
    clave_err err = cb ? mutex_answer_post_new(m, owner, recipe_mutex_on_due, cb, arg) : CLAVE_OK;
    if (err == CLAVE_OK)
        e->count--;
    return err;
}

/* ---- what is known --------------------------------------------------------------------- */

bool clave__mutex_held(const clave_async_mutex *m, uint64_t owner, struct grant_facts *out)
{
    const struct owner_entry *e = mutex_find_holder(m, owner);
    if (!e)
        return false;
    *out = clave__contender_facts(e->place);
    out->count = e->count;
    if (e->place->downgrade.node)
        out->token = e->downgrade_token;
    return true;
}

clave_err clave_async_mutex_grant(const clave_async_mutex *m, uint64_t owner,
                                  clave_async_grant **out)
{
    struct grant_facts f;
    *out = NULL;
    if (clave__mutex_held(m, owner, &f))
        return clave__grant_new(out, &f);
    const struct owner_entry *e = recipe_mutex_find(m, owner);
    return e && e->count > 0 ? CLAVE_ELOST : CLAVE_ENOTHELD;
}
