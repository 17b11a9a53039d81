/* semaphore.c - a semaphore, its acquires and its leases. Implements the public API.
 *
 * An acquire first queues for a mutex among all acquires, then makes one lease after another,
 * waiting for room each time.
 *
 * A try does not queue. It counts the leases, and the places in the queue, which are before it. If
 * these and the leases it wants are within the limit, it makes its leases at once; a lease is
 * granted if fewer than the limit are before it (contender.c). If there were places, the try then
 * counts the places, and the leases before its own, once more, because other tries may have counted
 * at the same time. So a try takes nothing from those that wait, and neither a dead waiter nor
 * another try keeps it from a lease that is free. If it was overtaken it begins anew, and it
 * reports what the newest count found in its way.
 *
 * The limit is a fixed number, or one that processes share in a node (shared_count.c). Lowering it
 * takes back no lease, but nobody gets a new one until enough leases are released.
 *
 * What must stay true: a lease is either in the list of leases, or in an acquire that may still
 * fail. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/err_class.h"
#include "base/list.h"
#include "base/path.h"
#include "recipe/contender/contender_config.h"
#include "recipe/contender/contender_grant.h"
#include "recipe/queue/participant_list.h"
#include "recipe/semaphore/semaphore_for_threads.h"
#include "recipe/semaphore/shared_count.h"

enum { SEMAPHORE_LIMIT_MAX = INT32_MAX };

struct clave_async_semaphore {
    clave_async_client *client;
    const struct clave_mem *mem;
    struct contender_config mutex_config; /* for places in <path>/locks */
    struct contender_config lease_config; /* for leases in <path>/leases; its spec has the limit */
    struct deadlock_terms deadlock_terms;
    char *deadlock;      /* text of the deadlock that ended the latest request; may be NULL */
    uint64_t task;       /* the owner of coming requests; 0: unspecified */
    int64_t max_hold_ms; /* how long a lease may be held once it is given out */
    struct shared_count *shared_count;
    clave_err limit_err; /* the latest error; CLAVE_OK once a value was read */
    clave_lease_event_cb *event_cb;
    void *event_arg;
    struct list acquires; /* acquires that are waiting */
    struct list leases;   /* leases given out, including lost ones */
    unsigned refs;        /* the user, answers still to come, and running calls */
};

/* A lease. It is being taken (it has an acquire, and a place once its turn has come), given out (it
 * has a place), lost (it has neither), or being released (it has at most a callback). */
struct semaphore_acquire;
struct clave_async_lease {
    struct list link; /* in the semaphore's list, once given out */
    clave_async_semaphore *s;
    struct semaphore_acquire *semaphore_acquire;
    struct contender *place;
    clave_err lost; /* why it was lost; CLAVE_OK: it is not */
    struct client_task left;
    clave_err left_err;
    clave_async_lease_left_cb *cb;
    void *arg;
};

/* An acquire. It starts over if its mutex is lost, or a lease before it has all of them: either the
 * session ended, or somebody deleted the node. */
struct semaphore_acquire {
    struct client_task due;
    struct list link;
    clave_async_semaphore *s;
    uint64_t request;
    size_t n, got; /* leases[got] is being taken */
    int64_t deadline;
    bool trying;
    uint64_t task;
    char uuid[CLAVE_UUID_TEXT + 1]; /* in the names of its place and its first lease */
    struct contender *mutex;
    struct semaphore_count *count; /* for a try: the count under way; NULL: none */
    bool count_again;              /* the last count was made before its leases */
    unsigned counts;               /* how often it has begun with a count */
    char last_place[16];           /* the number of the last place that the count found */
    clave_err verdict;
    clave_async_lease_cb *cb;
    void *arg;
    clave_async_lease *leases[];
};

static void semaphore_hold(clave_async_semaphore *s)
{
    s->refs++;
}

static void semaphore_drop(clave_async_semaphore *s)
{
    assert(s->refs > 0);
    if (--s->refs > 0)
        return;
    clave__shared_count_free(s->shared_count);
    clave__contender_config_fini(&s->mutex_config);
    clave__contender_config_fini(&s->lease_config);
    clave__deadlock_terms_fini(&s->deadlock_terms);
    clave__mem_free(s->mem, s->deadlock);
    clave__mem_free(s->mem, s);
}

/* Keeps the text of a deadlock that ended a request with this place. */
static void semaphore_keep_text(clave_async_semaphore *s, clave_err err,
                                const struct contender *place)
{
    if (err == CLAVE_EDEADLOCK)
        clave__deadlock_keep_text(s->mem, &s->deadlock, place->deadlock);
}

static void semaphore_tell(clave_async_semaphore *s, const clave_lease_event *ev)
{
    semaphore_hold(s);
    if (s->event_cb)
        s->event_cb(s, ev, s->event_arg);
    semaphore_drop(s);
}

static void semaphore_lease_tell(clave_async_lease *l, clave_lease_event_kind kind, clave_err why)
{
    clave_lease_event ev = {.kind = kind, .lease = l, .why = why};
    semaphore_tell(l->s, &ev);
}

/* ---- a lease that was given out: its release ------------------------------------------------- */

static void free_lease(clave_async_lease *l)
{
    clave__mem_free(l->s->mem, l);
}

static void semaphore_lease_on_due(struct client_task *t)
{
    clave_async_lease *l = LIST_ENTRY(t, clave_async_lease, left);
    clave_async_semaphore *s = l->s;
    clave_async_lease_left_cb *cb = l->cb;
    void *arg = l->arg;
    clave_err err = l->left_err;
    free_lease(l);
    cb(s, err, arg);
    semaphore_drop(s);
}

static void semaphore_lease_on_left(void *arg, clave_err err)
{
    clave_async_lease *l = arg;
    l->left_err = err;
    clave__client_later(l->s->client, &l->left);
}

clave_err clave_async_lease_release(clave_async_lease *l, clave_async_lease_left_cb *cb, void *arg)
{
    struct contender *place = l->place;
    list_remove(&l->link);
    if (!place) {
        clave_err verdict = clave__contender_release_lost(l->lost);
        free_lease(l);
        return verdict;
    }
    l->cb = cb;
    l->arg = arg;
    if (cb) {
        semaphore_hold(l->s);
        clave__contender_leave(place, semaphore_lease_on_left, l);
    } else {
        free_lease(l);
        clave__contender_leave(place, NULL, NULL);
    }
    return CLAVE_OK;
}

/* ---- a lease that was given out: queries ----------------------------------------------------- */

bool clave__lease_held(const clave_async_lease *l, struct grant_facts *out)
{
    if (!l->place)
        return false;
    *out = clave__contender_facts(l->place);
    return true;
}

clave_err clave_async_lease_grant(const clave_async_lease *l, clave_async_grant **out)
{
    struct grant_facts f;
    *out = NULL;
    return clave__lease_held(l, &f) ? clave__grant_new(out, &f) : CLAVE_ELOST;
}

/* ---- an acquire: giving up and answering ----------------------------------------------------- */

static const struct contender_events semaphore_lease_events;
static void semaphore_acquire_end_count(struct semaphore_acquire *a);

/* Gives up the leases before the mutex, so that the next holder of the mutex finds room. */
static void semaphore_acquire_leave_all(struct semaphore_acquire *a)
{
    semaphore_acquire_end_count(a);
    for (size_t i = 0; i < a->n; i++) {
        struct contender *place = a->leases[i]->place;
        a->leases[i]->place = NULL;
        if (place)
            clave__contender_leave(place, NULL, NULL);
    }
    struct contender *mutex = a->mutex;
    a->mutex = NULL;
    if (mutex)
        clave__contender_leave(mutex, NULL, NULL);
    a->got = 0;
    a->count_again = false;
}

static void free_acquire(struct semaphore_acquire *a)
{
    clave_async_semaphore *s = a->s;
    for (size_t i = 0; i < a->n && a->leases[i]; i++)
        clave__mem_free(s->mem, a->leases[i]);
    clave__mem_free(s->mem, a);
}

/* Answers; nothing refers to the acquire any more when its callback runs. */
static void semaphore_acquire_answer(struct semaphore_acquire *a, clave_err err)
{
    clave_async_semaphore *s = a->s;
    list_remove(&a->link);
    list_remove(&a->due.link);
    if (err == CLAVE_OK) {
        a->cb(s, CLAVE_OK, a->leases, a->n, a->arg);
        a->n = 0; /* they belong to the caller now */
    } else {
        a->cb(s, err, NULL, 0, a->arg);
    }
    free_acquire(a);
    semaphore_drop(s);
}

static void semaphore_acquire_on_due(struct client_task *t)
{
    struct semaphore_acquire *a = LIST_ENTRY(t, struct semaphore_acquire, due);
    semaphore_acquire_answer(a, a->verdict);
}

/* Ends the acquire: the callback is called with `err`. */
static void semaphore_acquire_fail(struct semaphore_acquire *a, clave_err err)
{
    semaphore_acquire_leave_all(a);
    semaphore_acquire_answer(a, err);
}

/* ---- an acquire: taking ---------------------------------------------------------------------- */

/* Adds the owner to the data of a place, and what a search for deadlocks needs to know about the
 * semaphore. */
static clave_err semaphore_acquire_add_identity(struct contender *place,
                                                const struct semaphore_acquire *a)
{
    const clave_async_semaphore *s = a->s;
    char task[24];
    snprintf(task, sizeof task, "%llx", (unsigned long long)a->task);
    clave_identity more = {.task = a->task ? task : NULL,
                           .limit = s->shared_count ? 0 : (uint32_t)s->lease_config.spec.limit,
                           .yields = s->deadlock_terms.delay_ms > 0};
    return clave__contender_add_identity(place, &more);
}

static clave_err semaphore_acquire_take(struct contender **place, struct semaphore_acquire *a,
                                        int64_t deadline, const struct contender_config *config,
                                        const struct contender_events *events, void *owner)
{
    clave_err err = clave__contender_new(place, a->s->client, &config->spec, events, owner);
    if (err == CLAVE_OK) {
        (*place)->uuid = a->uuid;
        (*place)->nth = a->got;
        err = semaphore_acquire_add_identity(*place, a);
    }
    if (err == CLAVE_OK)
        err = clave__contender_join(*place, deadline);
    if (err != CLAVE_OK)
        *place = NULL;
    return err;
}

/* If the user chose the UUID, another process with this session may already have made leases. They
 * are searched for, and deleted. */
static void semaphore_acquire_find_leases(struct semaphore_acquire *a)
{
    struct contender_config *config = &a->s->lease_config;
    if (!config->spec.place || !config->spec.place->search)
        return;
    config->spec.only_found = true;
    for (a->got = 0; a->got < a->n; a->got++) {
        clave_async_lease *l = a->leases[a->got];
        if (!l->place) /* after an error, the lease goes with the session */
            (void)semaphore_acquire_take(&l->place, a, CLAVE_NEVER, config, &semaphore_lease_events,
                                         l);
    }
}

/* The same, but later. */
static void semaphore_acquire_cancel(struct semaphore_acquire *a, clave_err err)
{
    semaphore_acquire_find_leases(a);
    semaphore_acquire_leave_all(a);
    list_remove(&a->link);
    a->verdict = err;
    clave__client_later(a->s->client, &a->due);
}

/* If this process was stopped, the deadline may have passed unnoticed, and acquiring a lease now
 * would be a try. */
static void semaphore_acquire_take_next_lease(struct semaphore_acquire *a)
{
    assert(a->got < a->n && !a->leases[a->got]->place);
    clave_async_lease *l = a->leases[a->got];
    bool late = !a->trying && a->deadline <= clave__client_now(a->s->client);
    uint64_t others = a->mutex ? a->mutex->queue.others_seen_on : 0;
    clave_err err = late ? clave__client_not_in_time(a->s->client, others)
                         : semaphore_acquire_take(&l->place, a, a->deadline, &a->s->lease_config,
                                                  &semaphore_lease_events, l);
    if (err != CLAVE_OK)
        semaphore_acquire_fail(a, err);
}

static void semaphore_acquire_grant(struct semaphore_acquire *a)
{
    assert(a->got == a->n);
    struct contender *mutex = a->mutex;
    a->mutex = NULL;
    /* The mutex is released after the creates were sent, without awaiting them, so that the next
     * acquire gets it as soon as possible. */
    if (mutex) /* there is none if the lease was found */
        clave__contender_leave(mutex, NULL, NULL);
    for (size_t i = 0; i < a->n; i++) {
        a->leases[i]->semaphore_acquire = NULL;
        a->leases[i]->place->uuid = NULL; /* it belonged to the acquire */
        clave__contender_limit(a->leases[i]->place, a->s->max_hold_ms);
        list_push_back(&a->s->leases, &a->leases[i]->link);
    }
    semaphore_acquire_answer(a, CLAVE_OK);
}

static clave_err semaphore_acquire_count(struct semaphore_acquire *a, bool again);

/* Grants a try, once it has all its leases and no count is under way. */
static void semaphore_acquire_grant_try(struct semaphore_acquire *a)
{
    clave_err err = CLAVE_OK;
    if (!a->count_again) {
        semaphore_acquire_grant(a);
        return;
    }
    a->count_again = false;
    err = semaphore_acquire_count(a, true);
    if (err != CLAVE_OK)
        semaphore_acquire_fail(a, err);
}

static void semaphore_acquire_lease_held(struct semaphore_acquire *a)
{
    /* A try makes all leases at once, and may be counting once more. */
    if (++a->got == a->n && !a->count)
        semaphore_acquire_grant_try(a);
    else if (a->got < a->n && !a->leases[a->got]->place)
        semaphore_acquire_take_next_lease(a);
}

static clave_err semaphore_acquire_look(struct semaphore_acquire *a);

static void semaphore_acquire_start_over(struct semaphore_acquire *a, clave_err why)
{
    semaphore_acquire_leave_all(a);
    bool late = a->trying || a->deadline <= clave__client_now(a->s->client);
    clave_err err = CLAVE_ECLOSED;
    if (why != CLAVE_ECLOSED)
        err = late ? clave__client_not_in_time(a->s->client, 0) : semaphore_acquire_look(a);
    if (err != CLAVE_OK)
        semaphore_acquire_answer(a, err);
}

/* ---- the mutex ------------------------------------------------------------------------------- */

static void semaphore_acquire_tell_queued(struct semaphore_acquire *a, size_t ahead,
                                          const char *left_over)
{
    clave_lease_event ev = {
        .kind = CLAVE_LEASE_QUEUED, .request = a->request, .ahead = ahead, .left_over = left_over};
    semaphore_tell(a->s, &ev);
}

static void semaphore_acquire_on_mutex_moved(void *owner)
{
    struct semaphore_acquire *a = owner;
    semaphore_acquire_tell_queued(a, clave__contender_ahead(a->mutex),
                                  clave__contender_left_over(a->mutex));
}

static void semaphore_acquire_on_mutex_held(void *owner)
{
    semaphore_acquire_take_next_lease(owner);
}

/* True if a place was searched for and does not exist. */
static bool semaphore_acquire_found_none(const struct contender_config *config, clave_err err)
{
    return config->spec.only_found && err == CLAVE_ENONODE;
}

/* True if the place has moved on to its lease in another process, or was given up there. */
static bool semaphore_acquire_is_final(const struct semaphore_acquire *a, clave_err err)
{
    const struct queue_place *place = a->s->mutex_config.spec.place;
    return place && place->final && err == CLAVE_ENONODE;
}

static void semaphore_acquire_on_mutex_ended(void *owner, clave_err err)
{
    struct semaphore_acquire *a = owner;
    semaphore_keep_text(a->s, err, a->mutex);
    a->mutex = NULL;
    if (!semaphore_acquire_found_none(&a->s->mutex_config, err) &&
        !semaphore_acquire_is_final(a, err)) {
        semaphore_acquire_fail(a, err);
        return;
    }
    a->s->lease_config.spec.only_found = true;
    semaphore_acquire_take_next_lease(a);
}

/* If the user chose the UUID, another process with this session may have moved on, and the lease
 * under way may be held there. So it is not given up, but waits like one that was found. */
static void semaphore_acquire_on_mutex_lost(void *owner, clave_err why)
{
    struct semaphore_acquire *a = owner;
    a->mutex = NULL;
    if (a->s->lease_config.spec.place && why == CLAVE_ENONODE)
        a->s->lease_config.spec.only_found = true;
    else
        semaphore_acquire_start_over(a, why);
}

static const struct contender_events mutex_events = {
    .moved = semaphore_acquire_on_mutex_moved,
    .held = semaphore_acquire_on_mutex_held,
    .ended = semaphore_acquire_on_mutex_ended,
    .lost = semaphore_acquire_on_mutex_lost,
};

static clave_err semaphore_acquire_take_mutex(struct semaphore_acquire *a)
{
    assert(!a->mutex);
    return semaphore_acquire_take(&a->mutex, a, a->deadline, &a->s->mutex_config, &mutex_events, a);
}

/* ---- a try ----------------------------------------------------------------------------------- */

/* The only reason for another count is a lease made between a count and the try's own leases. */
enum { COUNTS_MAX = 5 };

/* A count of what is before a try. It outlives an acquire that is given up in the meantime. */
struct semaphore_count {
    struct semaphore_acquire *a; /* NULL: given up */
    const struct clave_mem *mem;
    unsigned pending;
    clave_err err; /* the first error; a missing node is not one */
    bool again;    /* made after its leases: only what was there before them counts */
    char first[CLAVE_PROTECTED_PREFIX + 1]; /* "_c_<uuid>-" of the first place; "": it has none */
    size_t places, leases;
    size_t own; /* if `again`: how many of its own leases were there */
};

static void semaphore_acquire_end_count(struct semaphore_acquire *a)
{
    if (a->count)
        a->count->a = NULL;
    a->count = NULL;
}

static void semaphore_acquire_take_free_leases(struct semaphore_acquire *a, bool places)
{
    clave_err err = CLAVE_OK;
    for (a->got = 0; err == CLAVE_OK && a->got < a->n; a->got++) {
        clave_async_lease *l = a->leases[a->got];
        err = semaphore_acquire_take(&l->place, a, CLAVE_TRY, &a->s->lease_config,
                                     &semaphore_lease_events, l);
    }
    a->got = 0;
    if (err == CLAVE_OK && places)
        err = semaphore_acquire_count(a, true);
    if (err != CLAVE_OK)
        semaphore_acquire_fail(a, err);
}

static void semaphore_acquire_begin_anew(struct semaphore_acquire *a)
{
    semaphore_acquire_leave_all(a);
    clave_err err = semaphore_acquire_count(a, false);
    if (err != CLAVE_OK)
        semaphore_acquire_fail(a, err);
}

/* Refuses the try. Leases beyond the limit belong to waiters, which also have a place. */
static void semaphore_acquire_refuse(struct semaphore_acquire *a, size_t places, size_t leases)
{
    const clave_async_semaphore *s = a->s;
    size_t limit = s->lease_config.spec.limit;
    size_t owners = leases < limit ? leases : limit;
    size_t len = strlen(s->mutex_config.path) - (sizeof "/locks" - 1);
    clave__contender_explain_busy(s->client, s->mutex_config.path, len, owners,
                                  places + leases - owners);
    semaphore_acquire_fail(a, CLAVE_EBUSY);
}

/* The second count was sent behind the creates. But a create that was repeated, because its parent
 * was missing or its answer was lost, may have been done after the count; then the count lacks
 * other leases as well. */
static void semaphore_acquire_counted_again(struct semaphore_acquire *a,
                                            const struct semaphore_count *c)
{
    a->count_again = c->own < a->n;
    if (a->got == a->n)
        semaphore_acquire_grant_try(a);
}

static void semaphore_acquire_counted(struct semaphore_acquire *a, const struct semaphore_count *c)
{
    const clave_async_semaphore *s = a->s;
    size_t limit = s->lease_config.spec.limit;
    bool has_room = a->n <= limit && c->leases + c->places <= limit - a->n &&
                    (c->again || a->counts <= COUNTS_MAX);
    a->count = NULL;
    if (c->err != CLAVE_OK && clave__err_passes(c->err))
        semaphore_acquire_fail(a, clave_async_client_state(s->client) == CLAVE_STATE_CLOSED
                                      ? CLAVE_ECLOSED
                                      : clave__client_not_in_time(s->client, 0));
    else if (c->err != CLAVE_OK)
        semaphore_acquire_fail(a, c->err);
    else if (!c->again && has_room)
        semaphore_acquire_take_free_leases(a, c->places > 0);
    else if (!c->again)
        semaphore_acquire_refuse(a, c->places, c->leases);
    else if (!has_room)
        semaphore_acquire_begin_anew(a);
    else
        semaphore_acquire_counted_again(a, c);
}

static void semaphore_count_answered(struct semaphore_count *c, clave_err err)
{
    if (c->err == CLAVE_OK && err != CLAVE_ENONODE)
        c->err = err;
    if (--c->pending > 0)
        return;
    if (c->a)
        semaphore_acquire_counted(c->a, c);
    clave__mem_free(c->mem, c);
}

static void semaphore_count_on_sync(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    semaphore_count_answered(arg, res->err);
}

static bool semaphore_count_is_of(const char *name, const char *prefix)
{
    return *prefix && strncmp(name, prefix, strlen(prefix)) == 0;
}

static void semaphore_count_on_places(clave_async_client *client, const clave_result *res,
                                      void *arg)
{
    (void)client;
    struct semaphore_count *c = arg;
    const struct queue_order_rule *rule = &clave__queue_order_mutex;
    const char *first = NULL;
    for (size_t i = 0; c->a && i < res->nnames; i++) {
        const char *name = res->names[i];
        struct queue_order_key key = clave__queue_order_key(rule, name);
        if (!key.contender || (c->again && strcmp(key.text, c->a->last_place) > 0))
            continue;
        c->places++;
        if (!first || strcmp(key.text, clave__queue_order_key(rule, first).text) < 0)
            first = name;
        if (!c->again && strcmp(key.text, c->a->last_place) > 0)
            snprintf(c->a->last_place, sizeof c->a->last_place, "%s", key.text);
    }
    if (first && strncmp(first, "_c_", 3) == 0)
        snprintf(c->first, sizeof c->first, "%s", first);
    semaphore_count_answered(c, res->err);
}

static bool semaphore_acquire_has_lease(const struct semaphore_acquire *a, const char *name)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct contender *place = a->leases[i]->place;
        if (place && strcmp(name, clave__path_name(place->node.watch.path)) == 0)
            return true;
    }
    return false;
}

/* True if a lease that is not ours was made before one of ours. */
static bool semaphore_acquire_comes_after(const struct semaphore_acquire *a, const char *name)
{
    const struct queue_order_rule *rule = a->s->lease_config.spec.rule;
    struct queue_order_key key = clave__queue_order_key(rule, name);
    bool before = !key.numbered;
    for (size_t i = 0; i < a->n; i++) {
        const struct contender *place = a->leases[i]->place;
        const char *own = place ? clave__path_name(place->node.watch.path) : "";
        before = before || strcmp(key.text, clave__queue_order_key(rule, own).text) < 0;
    }
    return before;
}

/* The first in the queue may already have its leases, the first of which has the same name as its
 * place; then the place does not count a second time. */
static void semaphore_count_on_leases(clave_async_client *client, const clave_result *res,
                                      void *arg)
{
    (void)client;
    struct semaphore_count *c = arg;
    bool has_lease = false;
    for (size_t i = 0; c->a && i < res->nnames; i++) {
        bool own = c->again && semaphore_acquire_has_lease(c->a, res->names[i]);
        c->own += own;
        if (own || (c->again && !semaphore_acquire_comes_after(c->a, res->names[i])))
            continue;
        c->leases++;
        has_lease = has_lease || semaphore_count_is_of(res->names[i], c->first);
    }
    c->places -= has_lease;
    semaphore_count_answered(c, res->err);
}

static void semaphore_count_sent(struct semaphore_count *c, clave_err err)
{
    c->pending += err == CLAVE_OK;
    if (c->err == CLAVE_OK)
        c->err = err;
}

static clave_err semaphore_acquire_count(struct semaphore_acquire *a, bool again)
{
    assert(a->trying && !a->count);
    const clave_async_semaphore *s = a->s;
    const char *places = s->mutex_config.path;
    struct semaphore_count *c = clave__mem_zalloc(s->mem, sizeof *c);
    if (!c)
        return CLAVE_ENOMEM;
    c->a = a;
    c->mem = s->mem;
    c->again = again;
    /* The server answers in this order, so whoever moves on from place to lease in between is
     * counted twice rather than not at all. */
    if (!again) /* otherwise the leases that were made prove that we see what the leader has */
        semaphore_count_sent(c, clave_async_sync(s->client, places, semaphore_count_on_sync, c));
    semaphore_count_sent(
        c, clave_async_children(s->client, places, NULL, semaphore_count_on_places, c));
    semaphore_count_sent(c, clave_async_children(s->client, s->lease_config.path, NULL,
                                                 semaphore_count_on_leases, c));
    if (c->pending == 0) {
        clave_err err = c->err;
        clave__mem_free(s->mem, c);
        return err;
    }
    a->count = c;
    if (!again) {
        a->last_place[0] = '\0';
        a->counts++;
    }
    return CLAVE_OK;
}

/* A try begins with a count, unless the limit still has to be read. */
static clave_err semaphore_acquire_begin(struct semaphore_acquire *a)
{
    bool counts = a->trying && a->s->lease_config.spec.limit > 0;
    return counts ? semaphore_acquire_count(a, false) : semaphore_acquire_take_mutex(a);
}

/* Another process with this session may have begun this acquire: its place in the queue of acquires
 * is searched for first, then its leases. An acquire that already has a lease must not queue,
 * because those before it wait for that lease. */
static clave_err semaphore_acquire_look(struct semaphore_acquire *a)
{
    const struct queue_place *place = a->s->mutex_config.spec.place;
    char prefix[CLAVE_PROTECTED_PREFIX + 1]; /* "_c_<uuid>-" */
    a->s->mutex_config.spec.only_found = place && place->search;
    a->s->lease_config.spec.only_found = false;
    clave__client_protect(a->s->client, prefix);
    memcpy(a->uuid, prefix + 3, CLAVE_UUID_TEXT);
    return a->s->mutex_config.spec.only_found ? semaphore_acquire_take_mutex(a)
                                              : semaphore_acquire_begin(a);
}

static void semaphore_acquire_lease_ended(struct semaphore_acquire *a, clave_err err)
{
    if (err == CLAVE_EBUSY && a->counts > 0) {
        semaphore_acquire_begin_anew(a);
        return;
    }
    if (semaphore_acquire_found_none(&a->s->lease_config, err) &&
        !semaphore_acquire_is_final(a, err)) {
        semaphore_acquire_leave_all(
            a); /* a part of them is of no use, and others may wait for it */
        a->s->mutex_config.spec.only_found = a->s->lease_config.spec.only_found = false;
        err = semaphore_acquire_begin(a);
    }
    if (err != CLAVE_OK)
        semaphore_acquire_fail(a, err);
}

/* The limit has changed. Returns false if the acquire does not wait for room. */
static bool semaphore_acquire_recount(struct semaphore_acquire *a)
{
    /* A try that has all its leases waits only for a count. */
    struct contender *waits = a->got < a->n ? a->leases[a->got]->place : NULL;
    if (waits)
        clave__contender_recount(waits);
    return waits != NULL;
}

/* ---- an acquire: creating and starting ------------------------------------------------------- */

static clave_err semaphore_acquire_new(struct semaphore_acquire **out, clave_async_semaphore *s,
                                       size_t n)
{
    *out = NULL;
    if (n > (SIZE_MAX - sizeof **out) / sizeof(clave_async_lease *))
        return CLAVE_ENOMEM;
    struct semaphore_acquire *a = clave__mem_zalloc(s->mem, sizeof *a + n * sizeof *a->leases);
    if (!a)
        return CLAVE_ENOMEM;
    a->s = s;
    a->n = n;
    a->task = s->task;
    list_init(&a->link);
    list_init(&a->due.link);
    a->due.run = semaphore_acquire_on_due;
    for (size_t i = 0; i < n; i++) {
        clave_async_lease *l = clave__mem_zalloc(s->mem, sizeof *l);
        if (!l) {
            free_acquire(a);
            return CLAVE_ENOMEM;
        }
        l->s = s;
        l->semaphore_acquire = a;
        list_init(&l->link);
        list_init(&l->left.link);
        l->left.run = semaphore_lease_on_due;
        a->leases[i] = l;
    }
    *out = a;
    return CLAVE_OK;
}

/* Queues. If this fails, the acquire is freed. */
static clave_err semaphore_acquire_start(struct semaphore_acquire *a)
{
    clave_async_semaphore *s = a->s;
    a->trying = a->deadline <= clave__client_now(s->client);
    /* A try never waits, not even for a connection. */
    bool in_vain = a->trying && !clave_async_client_is_connected(s->client);
    clave_err err = in_vain ? CLAVE_OK : semaphore_acquire_look(a);
    if (err != CLAVE_OK) {
        free_acquire(a);
        return err;
    }
    semaphore_hold(s);
    list_push_back(&s->acquires, &a->link);
    if (in_vain)
        semaphore_acquire_cancel(a, clave__client_not_in_time(s->client, 0));
    return CLAVE_OK;
}

/* ---- events of a lease ----------------------------------------------------------------------- */

static void semaphore_acquire_on_lease_moved(void *owner)
{
    clave_async_lease *l = owner;
    assert(l->semaphore_acquire);
    semaphore_acquire_tell_queued(l->semaphore_acquire, 0, NULL);
}

static void semaphore_acquire_on_lease_held(void *owner)
{
    clave_async_lease *l = owner;
    assert(l->semaphore_acquire);
    semaphore_acquire_lease_held(l->semaphore_acquire);
}

static void semaphore_acquire_on_lease_ended(void *owner, clave_err err)
{
    clave_async_lease *l = owner;
    assert(l->semaphore_acquire);
    semaphore_keep_text(l->s, err, l->place);
    l->place = NULL;
    semaphore_acquire_lease_ended(l->semaphore_acquire, err);
}

static void semaphore_acquire_on_lease_lost(void *owner, clave_err why)
{
    clave_async_lease *l = owner;
    l->place = NULL;
    if (l->semaphore_acquire) {
        semaphore_acquire_start_over(l->semaphore_acquire, why);
        return;
    }
    l->lost = why;
    semaphore_lease_tell(l, CLAVE_LEASE_LOST, why);
}

/* A lease that is held while its acquire waits for more has no user yet who could release it. */
static void semaphore_acquire_on_lease_asked(void *owner)
{
    clave_async_lease *l = owner;
    if (!l->semaphore_acquire)
        semaphore_lease_tell(l, CLAVE_LEASE_ASKED, CLAVE_OK);
}

static const struct contender_events semaphore_lease_events = {
    .moved = semaphore_acquire_on_lease_moved,
    .held = semaphore_acquire_on_lease_held,
    .ended = semaphore_acquire_on_lease_ended,
    .lost = semaphore_acquire_on_lease_lost,
    .asked = semaphore_acquire_on_lease_asked,
};

/* ---- the limit ------------------------------------------------------------------------------- */

static void semaphore_change_limit(clave_async_semaphore *s, uint32_t limit)
{
    s->lease_config.spec.limit = limit;
    /* Of all acquires, only the one that holds the mutex is waiting for room. */
    for (struct list *e = s->acquires.next; e != &s->acquires; e = e->next)
        if (semaphore_acquire_recount(LIST_ENTRY(e, struct semaphore_acquire, link)))
            return;
}

static void semaphore_on_limit_changed(void *owner, uint32_t value)
{
    clave_async_semaphore *s = owner;
    s->limit_err = CLAVE_OK;
    semaphore_change_limit(s, value);
}

static void semaphore_on_limit_failed(void *owner, clave_err err)
{
    clave_async_semaphore *s = owner;
    s->limit_err = err;
    semaphore_hold(s);
    while (!list_empty(&s->acquires) && s->lease_config.spec.limit == 0)
        semaphore_acquire_fail(LIST_ENTRY(s->acquires.next, struct semaphore_acquire, link), err);
    semaphore_drop(s);
}

static const struct shared_count_events shared_count_events = {
    .changed = semaphore_on_limit_changed,
    .failed = semaphore_on_limit_failed,
};

/* Checks that the limit is known or will be. After a failure, it is read once more. */
static clave_err semaphore_limit_check(clave_async_semaphore *s)
{
    if (!s->shared_count)
        return CLAVE_OK;
    clave_err err = s->limit_err;
    clave_err asked = clave__shared_count_refresh(s->shared_count);
    return err != CLAVE_OK ? err : asked;
}

uint32_t clave_async_semaphore_limit(const clave_async_semaphore *s)
{
    return (uint32_t)s->lease_config.spec.limit;
}

clave_err clave_async_semaphore_set_limit(clave_async_semaphore *s, uint32_t limit,
                                          clave_result_cb *cb, void *arg)
{
    if (limit == 0 || limit > SEMAPHORE_LIMIT_MAX || (!s->shared_count && cb))
        return CLAVE_EINVAL;
    if (s->shared_count)
        return clave__shared_count_set(s->shared_count, limit, cb, arg);
    semaphore_change_limit(s, limit);
    return CLAVE_OK;
}

/* ---- the semaphore: creating and freeing ----------------------------------------------------- */

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
        err = clave__shared_count_new(&s->shared_count, s->client, o->limit_path, o->limit,
                                      &shared_count_events, s);
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
        semaphore_drop(s);
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
        semaphore_acquire_cancel(LIST_ENTRY(s->acquires.next, struct semaphore_acquire, link),
                                 CLAVE_ECANCELED);
    while ((e = list_pop_front(&s->leases)))
        (void)clave_async_lease_release(LIST_ENTRY(e, clave_async_lease, link), NULL, NULL);
    clave__shared_count_free(s->shared_count);
    s->shared_count = NULL;
    clave_async_client *c = s->client;
    semaphore_drop(s);
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

/* ---- the semaphore: acquires ----------------------------------------------------------------- */

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
    clave_err err = semaphore_limit_check(s);
    struct semaphore_acquire *a;
    if (err == CLAVE_OK)
        err = semaphore_acquire_new(&a, s, n);
    if (err != CLAVE_OK)
        return err;
    a->request = request;
    a->deadline = deadline;
    a->cb = cb;
    a->arg = arg;
    return semaphore_acquire_start(a);
}

clave_err clave_async_semaphore_cancel(clave_async_semaphore *s, uint64_t request)
{
    struct semaphore_acquire *a = recipe_semaphore_find(s, request);
    if (!a)
        return CLAVE_ENOTHELD;
    semaphore_acquire_cancel(a, CLAVE_ECANCELED);
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
