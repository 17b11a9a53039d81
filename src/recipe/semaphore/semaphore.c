/* semaphore.c - the semaphore and its acquires. Implements the public API. What must stay true: a
 * lease is either in the list of leases, or in an acquire that may still fail. */
#include "recipe/semaphore/semaphore_internal.h"

#include <string.h>

#include "base/path.h"
#include "recipe/queue/participant_list.h"

/* ---- creating and freeing -------------------------------------------------------------------- */

static clave_err semaphore_config_below(struct contender_config *config, clave_async_client *c,
                                        const char *path, const char *name,
                                        const struct queue_order_rule *rule)
{
    const struct clave_mem *mem = clave__client_mem(c);
    char *below = clave__path_child(mem, path, name);
    if (!below)
        return CLAVE_ENOMEM;
    clave_err err = clave__contender_config_init(config, c, below, rule, "the semaphore's path");
    clave__mem_free(mem, below);
    return err;
}

static clave_err semaphore_copy_options(clave_async_semaphore *s, const char *path,
                                        const clave_semaphore_options *o)
{
    clave_async_client *c = s->client;
    clave_err err =
        semaphore_config_below(&s->mutex_config, c, path, "locks", &clave__queue_order_mutex);
    if (err == CLAVE_OK)
        err =
            semaphore_config_below(&s->lease_config, c, path, "leases", &clave__queue_order_lease);
    if (err == CLAVE_OK)
        err = clave__contender_config_set_acls(&s->mutex_config, o->acls, o->nacls);
    if (err == CLAVE_OK)
        err = clave__contender_config_set_acls(&s->lease_config, o->acls, o->nacls);
    if (err == CLAVE_OK)
        err = clave__contender_config_set_data(&s->mutex_config, o->data, o->len);
    if (err == CLAVE_OK)
        err = clave__contender_config_set_data(&s->lease_config, o->data, o->len);
    struct deadlock_terms_options detection = {o->detect_deadlocks_ms, o->lock_roots,
                                               o->nlock_roots, o->data, o->len};
    if (err == CLAVE_OK)
        err = clave__deadlock_terms_init(&s->deadlock_terms, c, path, &detection);
    s->mutex_config.spec.deadlock_terms = s->lease_config.spec.deadlock_terms = &s->deadlock_terms;
    s->event_cb = o->event_cb;
    s->event_arg = o->event_arg;
    s->max_hold_ms = o->max_hold_ms;
    s->lease_config.spec.min_valid_ms = o->min_valid_ms;
    s->lease_config.spec.revocable = o->revocable;
    s->lease_config.spec.counted = true;
    s->lease_config.spec.limit = o->limit_path ? 0 : o->limit;
    if (err == CLAVE_OK && o->limit_path)
        err = clave__semaphore_limit_share(s, o->limit_path, o->limit);
    return err;
}

static bool semaphore_options_are_fine(const clave_semaphore_options *o)
{
    return o->limit <= SEMAPHORE_LIMIT_MAX && (o->limit > 0 || o->limit_path) &&
           o->max_hold_ms >= 0 && o->min_valid_ms >= 0 && (o->data || o->len == 0) &&
           (!o->acls || o->nacls > 0);
}

clave_err clave_async_semaphore_new(clave_async_semaphore **out, clave_async_client *c,
                                    const char *path, const clave_semaphore_options *given)
{
    clave_semaphore_options o;
    *out = NULL;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_semaphore_options");
    if (err == CLAVE_OK && !semaphore_options_are_fine(&o))
        err = CLAVE_EINVAL;
    if (err != CLAVE_OK)
        return err;
    const struct clave_mem *mem = clave__client_mem(c);
    clave_async_semaphore *s = clave__mem_zalloc(mem, sizeof *s);
    if (!s)
        return CLAVE_ENOMEM;
    s->client = c;
    s->mem = mem;
    s->refs = 1;
    s->mutex_config.mem = s->lease_config.mem = mem;
    list_init(&s->acquires);
    list_init(&s->leases);
    err = semaphore_copy_options(s, path, &o);
    if (err != CLAVE_OK) {
        clave__semaphore_drop(s);
        return err;
    }
    clave__client_ref(c);
    *out = s;
    return CLAVE_OK;
}

void clave_async_semaphore_free(clave_async_semaphore *s)
{
    if (!s)
        return;
    s->event_cb = NULL;
    struct list *e;
    while (!list_empty(&s->acquires))
        clave__semaphore_acquire_cancel(
            LIST_ENTRY(s->acquires.next, struct semaphore_acquire, link), CLAVE_ECANCELED);
    while ((e = list_pop_front(&s->leases)))
        (void)clave_async_lease_release(LIST_ENTRY(e, clave_async_lease, link), NULL, NULL);
    clave__shared_count_free(s->shared_count);
    s->shared_count = NULL;
    clave_async_client *c = s->client;
    clave__semaphore_drop(s);
    clave__client_unref(c);
}

void clave__semaphore_set_place(clave_async_semaphore *s, struct queue_place *place)
{
    s->mutex_config.spec.place = s->lease_config.spec.place = place;
}

static clave_err semaphore_describe_one(struct contender *place, const clave_identity *said,
                                        queue_described *done, void *arg, size_t *n)
{
    clave_err err = place ? clave__contender_describe(place, said, done, arg) : CLAVE_ENOTHELD;
    *n += err == CLAVE_OK;
    return err == CLAVE_ENOTHELD ? CLAVE_OK : err;
}

/* Changes the nodes of the leases that are held. An acquire that waits will have more nodes; these
 * get the new data when they are created. */
clave_err clave__semaphore_describe(clave_async_semaphore *s, const clave_identity *said,
                                    queue_described *done, void *arg, size_t *n)
{
    clave_err err = CLAVE_OK;
    *n = 0;
    for (struct list *e = s->leases.next; err == CLAVE_OK && e != &s->leases; e = e->next)
        err = semaphore_describe_one(LIST_ENTRY(e, clave_async_lease, link)->place, said, done, arg,
                                     n);
    return err;
}

void clave__semaphore_set_task(clave_async_semaphore *s, uint64_t task)
{
    s->task = task;
}

const char *clave_async_semaphore_deadlock(const clave_async_semaphore *s)
{
    return s->deadlock;
}

/* ---- acquire --------------------------------------------------------------------------------- */

static struct semaphore_acquire *recipe_semaphore_find(const clave_async_semaphore *s,
                                                       uint64_t request)
{
    for (struct list *e = s->acquires.next; e != &s->acquires; e = e->next) {
        struct semaphore_acquire *a = LIST_ENTRY(e, struct semaphore_acquire, link);
        if (a->request == request)
            return a;
    }
    return NULL;
}

clave_err clave_async_semaphore_acquire(clave_async_semaphore *s, uint64_t request, size_t n,
                                        int64_t deadline, clave_async_lease_cb *cb, void *arg)
{
    bool too_many = !s->shared_count && n > s->lease_config.spec.limit;
    if (!cb || n == 0 || too_many || recipe_semaphore_find(s, request))
        return CLAVE_EINVAL;
    if (clave_async_client_state(s->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    clave_err err = clave__semaphore_limit_check(s);
    struct semaphore_acquire *a;
    if (err == CLAVE_OK)
        err = clave__semaphore_acquire_new(&a, s, n);
    if (err != CLAVE_OK)
        return err;
    a->request = request;
    a->deadline = deadline;
    a->cb = cb;
    a->arg = arg;
    return clave__semaphore_acquire_start(a);
}

clave_err clave_async_semaphore_cancel(clave_async_semaphore *s, uint64_t request)
{
    struct semaphore_acquire *a = recipe_semaphore_find(s, request);
    if (!a)
        return CLAVE_ENOTHELD;
    clave__semaphore_acquire_cancel(a, CLAVE_ECANCELED);
    return CLAVE_OK;
}

clave_err clave_async_semaphore_participants(clave_async_client *c, const char *path,
                                             clave_async_participants_cb *cb, void *arg)
{
    struct contender_config leases;
    clave_err err = semaphore_config_below(&leases, c, path, "leases", &clave__queue_order_lease);
    if (err != CLAVE_OK)
        return err;
    err = clave__participant_list(c, leases.path, &clave__queue_order_lease, false, cb, arg);
    clave__contender_config_fini(&leases);
    return err;
}
