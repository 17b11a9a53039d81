/* queries.c - participants and deadlocks for threads: the answer of the asynchronous call is copied
 * into one block, which the caller frees. */
#include <assert.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "clave/deadlock.h"
#include "clave/participants.h"
#include "runtime/blocking/arena.h"
#include "runtime/blocking/call.h"

/* ---- participants --------------------------------------------------------------------------- */

static void put_participant(struct arena *p, const clave_participant *from, clave_participant *to)
{
    *to = *from;
    to->node = arena_text(p, from->node);
    arena_identity(p, &to->identity);
}

static clave_participant_list *copy_participants(const clave_participant *list, size_t n)
{
    struct arena p = {0};
    clave_participant scratch;
    for (size_t i = 0; i < n; i++)
        put_participant(&p, &list[i], &scratch);
    clave_participant_list *r = malloc(sizeof *r + n * sizeof *list + p.n);
    if (!r)
        return NULL;
    clave_participant *at = (clave_participant *)(r + 1);
    r->list = at;
    r->n = n;
    p = (struct arena){.at = (char *)(at + n)};
    for (size_t i = 0; i < n; i++)
        put_participant(&p, &list[i], &at[i]);
    return r;
}

void clave_participant_list_free(clave_participant_list *r)
{
    free(r);
}

static void on_participants(clave_async_client *client, clave_err err,
                            const clave_participant *list, size_t n, void *arg)
{
    (void)client;
    clave__call_answer_block(arg, err, err == CLAVE_OK ? copy_participants(list, n) : NULL);
}

struct query {
    clave_participants_fn *call;
};

static clave_err begin_participants(struct call *c, const struct args *a)
{
    const struct query *q = a->data;
    return q->call(c->client->async, a->path, on_participants, c);
}

clave_err clave_participants(clave_client *c, clave_participants_fn *call, const char *path,
                             int64_t timeout_ms, clave_participant_list **out)
{
    const struct query q = {call};
    struct args a = {.path = path, .data = &q};
    int64_t deadline = clave__deadline_after(timeout_ms);
    void *list = NULL;
    clave_err err = clave_sync(c, path, timeout_ms);
    if (timeout_ms >= 0)
        timeout_ms = deadline_left(deadline, clave_now());
    if (err == CLAVE_OK)
        err = clave__call_block(c, begin_participants, &a, timeout_ms, &list);
    *out = list;
    return err;
}

/* ---- deadlocks ------------------------------------------------------------------------------ */

static void put_member(struct arena *p, const clave_deadlock_member *m, clave_deadlock_member *out)
{
    *out = *m;
    out->path = arena_text(p, m->path);
    out->node = arena_text(p, m->node);
    out->blocker = arena_text(p, m->blocker);
    arena_identity(p, &out->identity);
}

static size_t count_members(const clave_deadlock *list, size_t n)
{
    size_t members = 0;
    for (size_t i = 0; i < n; i++)
        members += list[i].n;
    return members;
}

static size_t measure_deadlocks(const clave_deadlock *list, size_t n)
{
    struct arena p = {0};
    clave_deadlock_member scratch;
    for (size_t i = 0; i < n; i++) {
        arena_text(&p, list[i].text);
        for (size_t k = 0; k < list[i].n; k++)
            put_member(&p, &list[i].members[k], &scratch);
    }
    return p.n;
}

static clave_deadlocks *copy_deadlocks(const clave_deadlock *list, size_t n)
{
    size_t nmembers = count_members(list, n);
    size_t size = sizeof(clave_deadlocks) + n * sizeof *list +
                  nmembers * sizeof(clave_deadlock_member) + measure_deadlocks(list, n);
    clave_deadlocks *d = malloc(size);
    if (!d)
        return NULL;
    d->list = (clave_deadlock *)(d + 1);
    d->n = n;
    clave_deadlock_member *at = (clave_deadlock_member *)(d->list + n);
    struct arena p = {.at = (char *)(at + nmembers)};
    for (size_t i = 0; i < n; i++) {
        d->list[i] = list[i];
        d->list[i].members = at;
        d->list[i].text = arena_text(&p, list[i].text);
        for (size_t k = 0; k < list[i].n; k++)
            put_member(&p, &list[i].members[k], at++);
    }
    assert(p.n == measure_deadlocks(list, n)); /* arena.h */
    return d;
}

void clave_deadlocks_free(clave_deadlocks *d)
{
    free(d);
}

static void on_deadlocks(clave_async_client *client, clave_err err, const clave_deadlock *list,
                         size_t n, void *arg)
{
    (void)client;
    clave__call_answer_block(arg, err, err == CLAVE_OK ? copy_deadlocks(list, n) : NULL);
}

struct roots {
    const char *const *list;
    size_t n;
};

static clave_err begin_deadlocks(struct call *c, const struct args *a)
{
    const struct roots *r = a->data;
    return clave_async_deadlocks_find(c->client->async, r->list, r->n, on_deadlocks, c);
}

clave_err clave_deadlocks_find(clave_client *c, const char *const *roots, size_t nroots,
                               int64_t timeout_ms, clave_deadlocks **out)
{
    const struct roots r = {roots, nroots};
    void *found;
    clave_err err =
        clave__call_block(c, begin_deadlocks, &(struct args){.data = &r}, timeout_ms, &found);
    *out = found;
    return err;
}
