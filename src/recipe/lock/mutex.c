/* mutex.c - a mutex and its owners, what their contenders tell them, and what is known of their
 * holds. Called by the public API and by the recipes that are made of mutexes. */
#include <assert.h>
#include <string.h>

#include "recipe/contender/contender_grant.h"
#include "recipe/lock/mutex_for_recipes.h"
#include "recipe/lock/mutex_internal.h"

/* ---- owners ---------------------------------------------------------------------------------- */

static bool mutex_owner_eq(const struct map_node *node, const void *key)
{
    const char *owner_entry = (const char *)node - offsetof(struct owner_entry, node);
    return ((const struct owner_entry *)(const void *)owner_entry)->answer.owner ==
           *(const uint64_t *)key;
}

struct owner_entry *clave__mutex_find(const clave_async_mutex *m, uint64_t owner)
{
    struct map_node *node =
        clave__map_find(&m->owner_entries, clave__map_hash_u64(owner), mutex_owner_eq, &owner);
    return node ? MAP_ENTRY(node, struct owner_entry, node) : NULL;
}

static struct owner_entry *mutex_find_holder(const clave_async_mutex *m, uint64_t owner)
{
    struct owner_entry *e = clave__mutex_find(m, owner);
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
        ev.left_over = clave__contender_left_over(e->place);
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

static void recipe_mutex_on_held(void *owner)
{
    struct owner_entry *e = owner;
    assert(e->place && e->count == 0);
    e->count = 1;
    const struct contender *place = e->place;
    struct answer a = e->answer;
    a.cb(a.m, a.owner, CLAVE_OK, a.arg);
    /* The callback may have released, or freed m. */
    if (place->owner == e)
        recipe_mutex_tell(e, CLAVE_MUTEX_HELD, CLAVE_OK);
    clave__mutex_unref(a.m);
}

static void recipe_mutex_on_ended(void *owner, clave_err err)
{
    struct owner_entry *e = owner;
    clave_async_mutex *m = e->answer.m;
    if (err == CLAVE_EDEADLOCK)
        clave__deadlock_keep_text(m->mem, &m->deadlock, e->place->deadlock);
    e->place = NULL;
    clave__map_remove(&m->owner_entries, &e->node);
    clave__mutex_answer_deliver(&e->answer, err);
}

static void recipe_mutex_on_lost(void *owner, clave_err why)
{
    struct owner_entry *e = owner;
    e->place = NULL;
    e->lost = why;
    recipe_mutex_tell(e, CLAVE_MUTEX_LOST, why);
}

static void recipe_mutex_on_asked(void *owner)
{
    recipe_mutex_tell(owner, CLAVE_MUTEX_ASKED, CLAVE_OK);
}

void clave__owner_entry_left(void *arg, clave_err err)
{
    struct owner_entry *e = arg;
    clave__mutex_answer_post(&e->answer, err); /* this may run inside the release */
}

const struct contender_events clave__owner_entry_events = {
    .moved = recipe_mutex_on_moved,
    .held = recipe_mutex_on_held,
    .ended = recipe_mutex_on_ended,
    .lost = recipe_mutex_on_lost,
    .asked = recipe_mutex_on_asked,
};

/* ---- life ------------------------------------------------------------------------------------ */

static clave_err recipe_mutex_copy_options(clave_async_mutex *m, const clave_mutex_options *o)
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

static clave_err recipe_mutex_check_options(const clave_mutex_options *o)
{
    bool fine = o->max_hold_ms >= 0 && o->min_valid_ms >= 0 && (o->data || o->len == 0) &&
                (!o->acls || o->nacls > 0);
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
    err = clave__map_init(&m->owner_entries, mem, 0);
    if (err == CLAVE_OK)
        err = clave__contender_config_init(&m->config, c, path, rule, "the lock's path");
    if (err == CLAVE_OK)
        err = recipe_mutex_copy_options(m, &o);
    if (err != CLAVE_OK) {
        clave__mutex_unref(m);
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
    struct owner_entry *e = clave__mutex_find(m, owner);
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
void clave__owner_entry_remove(clave_async_mutex *m, struct owner_entry *e)
{
    struct contender *place = e->place;
    clave__map_remove(&m->owner_entries, &e->node);
    if (e->count == 0)
        clave__mutex_answer_post(&e->answer, CLAVE_ECANCELED);
    else
        clave__mem_free(m->mem, e);
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
        clave__owner_entry_remove(m, MAP_ENTRY(node, struct owner_entry, node));
    clave_async_client *c = m->client;
    clave__mutex_unref(m);
    clave__client_unref(c);
}

/* ---- what is known --------------------------------------------------------------------------- */

const char *clave_async_mutex_deadlock(const clave_async_mutex *m)
{
    return m->deadlock;
}

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
    const struct owner_entry *e = clave__mutex_find(m, owner);
    return e && e->count > 0 ? CLAVE_ELOST : CLAVE_ENOTHELD;
}
