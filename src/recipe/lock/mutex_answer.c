/* mutex_answer.c - the answers of acquires and releases, which keep their mutex until they are
 * given. Invariant: each answer is given once, and never inside the call that it answers. */
#include <assert.h>

#include "recipe/lock/mutex_internal.h"

void clave__mutex_ref(clave_async_mutex *m)
{
    m->refs++;
}

void clave__mutex_unref(clave_async_mutex *m)
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

void clave__mutex_answer_deliver(struct answer *a, clave_err verdict)
{
    clave_async_mutex *m = a->m;
    uint64_t owner = a->owner;
    clave_async_mutex_cb *cb = a->cb;
    void *arg = a->arg;
    list_remove(&a->due.link);
    clave__mem_free(m->mem, a);
    if (cb)
        cb(m, owner, verdict, arg);
    clave__mutex_unref(m);
}

static void mutex_answer_on_due(struct client_task *t)
{
    struct answer *a = LIST_ENTRY(t, struct answer, due);
    clave__mutex_answer_deliver(a, a->verdict);
}

void clave__mutex_answer_init(struct answer *a, clave_async_mutex *m, uint64_t owner,
                              clave_async_mutex_cb *cb, void *arg)
{
    list_init(&a->due.link);
    a->due.run = mutex_answer_on_due;
    a->m = m;
    a->owner = owner;
    a->cb = cb;
    a->arg = arg;
    clave__mutex_ref(m);
}

void clave__mutex_answer_post(struct answer *a, clave_err verdict)
{
    a->verdict = verdict;
    clave__client_later(a->m->client, &a->due);
}

/* Held again, unless it was freed meanwhile. */
static void mutex_answer_on_again(struct client_task *t)
{
    struct answer *a = LIST_ENTRY(t, struct answer, due);
    clave__mutex_answer_deliver(a, a->m->freed ? CLAVE_ECANCELED : CLAVE_OK);
}

clave_err clave__mutex_answer_post_new(clave_async_mutex *m, uint64_t owner, bool again,
                                       clave_async_mutex_cb *cb, void *arg)
{
    struct answer *a = clave__mem_zalloc(m->mem, sizeof *a);
    if (!a)
        return CLAVE_ENOMEM;
    clave__mutex_answer_init(a, m, owner, cb, arg);
    if (again)
        a->due.run = mutex_answer_on_again;
    clave__client_later(m->client, &a->due);
    return CLAVE_OK;
}
