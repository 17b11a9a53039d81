/* multilock.c - several mutexes as one. Implements the public API. What must stay true: the locks
 * are acquired in the order of their paths, and an acquire that fails leaves none of them held. */
#include "clave/async/multilock.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/deadline.h"
#include "client/client_for_recipes.h"
#include "recipe/lock/mutex_for_recipes.h"

struct part {
    clave_async_multilock *ml;
    clave_async_mutex *mutex;
    char *path;
};

/* The state of an owner: it holds all parts, or its acquire has reached part `at`, or both, if it
 * acquires once more. */
struct multilock_owner {
    struct list link;
    clave_async_multilock *ml;
    uint64_t owner;
    unsigned held;
    bool pending;
    bool cancelled;
    bool trying;
    /* A part was lost: start over once the pending acquire of a part has answered. */
    bool part_lost;
    size_t at;
    int64_t deadline;
    clave_async_multilock_cb *cb;
    void *arg;
};

struct clave_async_multilock {
    clave_async_client *client;
    const struct clave_mem *mem;
    clave_multilock_event_cb *event_cb;
    void *event_arg;
    struct list owners;
    bool freed;    /* by the user: the mutexes are gone */
    unsigned refs; /* the user, and callbacks still to come */
    size_t n;
    struct part parts[]; /* ordered by path */
};

/* ---- creating and freeing -------------------------------------------------------------------- */

static void recipe_multilock_drop(clave_async_multilock *ml)
{
    assert(ml->refs > 0);
    if (--ml->refs > 0)
        return;
    for (size_t i = 0; i < ml->n; i++)
        clave__mem_free(ml->mem, ml->parts[i].path);
    clave__mem_free(ml->mem, ml);
}

static struct multilock_owner *recipe_multilock_find(const clave_async_multilock *ml,
                                                     uint64_t owner)
{
    for (struct list *e = ml->owners.next; e != &ml->owners; e = e->next) {
        struct multilock_owner *b = LIST_ENTRY(e, struct multilock_owner, link);
        if (b->owner == owner)
            return b;
    }
    return NULL;
}

static void multilock_free_owner(struct multilock_owner *b)
{
    list_remove(&b->link);
    clave__mem_free(b->ml->mem, b);
}

static void recipe_multilock_on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct part *part = arg;
    clave_async_multilock *ml = part->ml;
    struct multilock_owner *b = recipe_multilock_find(ml, ev->owner);
    (void)m;
    if (ev->kind != CLAVE_MUTEX_LOST || !b)
        return;
    if (b->held > 0) {
        clave_multilock_event out = {.owner = ev->owner, .path = part->path, .why = ev->why};
        if (ml->event_cb)
            ml->event_cb(ml, &out, ml->event_arg);
    } else if (!b->part_lost) {
        b->part_lost = true;
        /* its callback comes in any case, and continues from there */
        (void)clave_async_mutex_cancel(ml->parts[b->at].mutex, b->owner);
    }
}

/* Inserts a part in order. ENOMEM; EINVAL: it is there already. */
static clave_err multilock_add_part(clave_async_multilock *ml, const clave_multilock_part *what,
                                    const clave_mutex_options *each)
{
    static const struct queue_order_rule *const rules[] = {
        [CLAVE_MULTILOCK_MUTEX] = &clave__queue_order_mutex,
        [CLAVE_MULTILOCK_READ] = &clave__queue_order_read,
        [CLAVE_MULTILOCK_WRITE] = &clave__queue_order_write,
    };
    size_t at = ml->n;
    while (at > 0 && strcmp(ml->parts[at - 1].path, what->path) > 0)
        at--;
    if (at > 0 && strcmp(ml->parts[at - 1].path, what->path) == 0)
        return CLAVE_EINVAL;
    struct part part = {.ml = ml, .path = clave__mem_strdup(ml->mem, what->path)};
    if (!part.path)
        return CLAVE_ENOMEM;
    memmove(ml->parts + at + 1, ml->parts + at, (ml->n - at) * sizeof part);
    ml->parts[at] = part;
    ml->n++;
    return clave__mutex_new(&ml->parts[at].mutex, ml->client, what->path, each, rules[what->kind]);
}

static clave_err multilock_add_parts(clave_async_multilock *ml, const clave_multilock_part *parts,
                                     size_t n, const clave_mutex_options *each)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned)parts[i].kind > CLAVE_MULTILOCK_WRITE)
            return CLAVE_EINVAL;
        clave_err err = multilock_add_part(ml, &parts[i], each);
        if (err != CLAVE_OK)
            return err;
    }
    /* The parts do not move in memory from now on, so they can be arguments. */
    for (size_t i = 0; i < n; i++)
        clave__mutex_listen(ml->parts[i].mutex, recipe_multilock_on_event, &ml->parts[i]);
    return CLAVE_OK;
}

clave_err clave_async_multilock_new(clave_async_multilock **out, clave_async_client *c,
                                    const clave_multilock_part *parts, size_t n,
                                    const clave_multilock_options *given)
{
    clave_multilock_options o;
    *out = NULL;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_multilock_options");
    if (err != CLAVE_OK)
        return err;
    if (n == 0)
        return CLAVE_EINVAL;
    const struct clave_mem *mem = clave__client_mem(c);
    if (n > (SIZE_MAX - sizeof **out) / sizeof(struct part))
        return CLAVE_ENOMEM;
    clave_async_multilock *ml = clave__mem_zalloc(mem, sizeof *ml + n * sizeof *ml->parts);
    if (!ml)
        return CLAVE_ENOMEM;
    ml->client = c;
    ml->mem = mem;
    ml->refs = 1;
    clave__client_ref(c);
    ml->event_cb = o.event_cb;
    ml->event_arg = o.event_arg;
    list_init(&ml->owners);
    err = multilock_add_parts(ml, parts, n, o.each);
    if (err != CLAVE_OK) {
        clave_async_multilock_free(ml);
        return err;
    }
    *out = ml;
    return CLAVE_OK;
}

void clave_async_multilock_free(clave_async_multilock *ml)
{
    if (!ml)
        return;
    ml->freed = true;
    ml->event_cb = NULL;
    struct list *e = ml->owners.next;
    while (e != &ml->owners) {
        struct multilock_owner *b = LIST_ENTRY(e, struct multilock_owner, link);
        e = e->next;
        if (b->pending)
            b->cancelled = true;
        else
            multilock_free_owner(b);
    }
    /* In reverse order, as parts are released. Pending acquires are answered later. */
    for (size_t i = ml->n; i-- > 0;)
        clave_async_mutex_free(ml->parts[i].mutex);
    clave_async_client *c = ml->client;
    recipe_multilock_drop(ml);
    clave__client_unref(c);
}

/* ---- acquire --------------------------------------------------------------------------------- */

static void multilock_on_step(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg);

static clave_err recipe_multilock_step(struct multilock_owner *b)
{
    return clave_async_mutex_acquire(b->ml->parts[b->at].mutex, b->owner, b->deadline,
                                     multilock_on_step, b);
}

/* Releases the parts that this acquire already has. */
static void recipe_multilock_release_acquired(struct multilock_owner *b)
{
    while (b->at > 0) {
        b->at--;
        if (!b->ml->freed)
            (void)clave_async_mutex_release(b->ml->parts[b->at].mutex, b->owner, NULL, NULL);
    }
}

static void recipe_multilock_answer(struct multilock_owner *b, clave_err err)
{
    clave_async_multilock *ml = b->ml;
    uint64_t owner = b->owner;
    clave_async_multilock_cb *cb = b->cb;
    void *arg = b->arg;
    bool says_which = err != CLAVE_OK && err != CLAVE_ECANCELED;
    const char *failed = says_which ? ml->parts[b->at].path : NULL;
    if (err == CLAVE_OK)
        b->held++;
    else
        recipe_multilock_release_acquired(b);
    b->pending = false;
    if (b->held == 0 || ml->freed)
        multilock_free_owner(b);
    cb(ml, owner, err, failed, arg);
    recipe_multilock_drop(ml);
}

static void recipe_multilock_start_over(struct multilock_owner *b)
{
    clave_async_multilock *ml = b->ml;
    bool late = b->deadline <= clave__client_now(ml->client);
    bool closed = clave_async_client_state(ml->client) == CLAVE_STATE_CLOSED;
    recipe_multilock_release_acquired(b);
    b->part_lost = false;
    clave_err err = CLAVE_ECLOSED;
    if (!closed)
        err = late ? clave__client_not_in_time(ml->client, 0) : recipe_multilock_step(b);
    if (err != CLAVE_OK)
        recipe_multilock_answer(b, err);
}

static void multilock_on_step(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    struct multilock_owner *b = arg;
    clave_async_multilock *ml = b->ml;
    if (err == CLAVE_OK)
        b->at++;
    if (b->cancelled) {
        recipe_multilock_answer(b, CLAVE_ECANCELED);
    } else if (b->part_lost) {
        recipe_multilock_start_over(b);
    } else if (err == CLAVE_OK && b->at < ml->n) {
        /* If this process was stopped, the deadline may have passed unnoticed, and acquiring the
         * next part would be a try. In that case nobody has been seen before us. */
        bool late = !b->trying && b->deadline <= clave__client_now(ml->client);
        err = late ? clave__client_not_in_time(ml->client, 0) : recipe_multilock_step(b);
        if (err != CLAVE_OK)
            recipe_multilock_answer(b, err);
    } else {
        recipe_multilock_answer(b, err);
    }
}

clave_err clave_async_multilock_acquire(clave_async_multilock *ml, uint64_t owner, int64_t deadline,
                                        clave_async_multilock_cb *cb, void *arg)
{
    struct multilock_owner *b = recipe_multilock_find(ml, owner);
    if (!cb || (b && b->pending))
        return CLAVE_EINVAL;
    bool fresh = !b;
    if (fresh) {
        b = clave__mem_zalloc(ml->mem, sizeof *b);
        if (!b)
            return CLAVE_ENOMEM;
        b->ml = ml;
        b->owner = owner;
        list_push_back(&ml->owners, &b->link);
    }
    b->cancelled = b->part_lost = false;
    b->at = 0;
    b->deadline = deadline;
    b->trying = deadline <= clave__client_now(ml->client);
    b->cb = cb;
    b->arg = arg;
    clave_err err = recipe_multilock_step(b);
    if (err == CLAVE_OK) {
        b->pending = true;
        ml->refs++;
    } else if (fresh) {
        multilock_free_owner(b);
    }
    return err;
}

clave_err clave_async_multilock_cancel(clave_async_multilock *ml, uint64_t owner)
{
    struct multilock_owner *b = recipe_multilock_find(ml, owner);
    if (!b || !b->pending)
        return CLAVE_ENOTHELD;
    b->cancelled = true;
    (void)clave_async_mutex_cancel(ml->parts[b->at].mutex, owner);
    return CLAVE_OK;
}

/* ---- release --------------------------------------------------------------------------------- */

/* A release that is waiting for its end: all parts together have one answer. */
struct multilock_release {
    struct client_task due; /* the call's own share, so that no callback runs inside the call */
    clave_async_multilock *ml;
    uint64_t owner;
    size_t left; /* how many shares have not ended */
    clave_err err;
    const char *failed;
    clave_async_multilock_cb *cb;
    void *arg;
};

static void recipe_multilock_note(struct multilock_release *d, clave_err err, const char *path)
{
    if (d->err == CLAVE_OK && err != CLAVE_OK) {
        d->err = err;
        d->failed = path;
    }
}

static void multilock_release_end_part(struct multilock_release *d)
{
    assert(d->left > 0);
    if (--d->left > 0)
        return;
    struct multilock_release out = *d;
    clave__mem_free(out.ml->mem, d);
    out.cb(out.ml, out.owner, out.err, out.failed, out.arg);
    recipe_multilock_drop(out.ml);
}

static void recipe_multilock_on_due(struct client_task *t)
{
    multilock_release_end_part(LIST_ENTRY(t, struct multilock_release, due));
}

static void recipe_multilock_on_left(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)owner;
    struct multilock_release *d = arg;
    const clave_async_multilock *ml = d->ml;
    size_t i = 0;
    while (ml->parts[i].mutex != m)
        i++;
    recipe_multilock_note(d, err, ml->parts[i].path);
    multilock_release_end_part(d);
}

/* Releases all parts. The callback of a part says when its node is gone; it needs no memory for the
 * last hold. */
static void multilock_release_all(clave_async_multilock *ml, uint64_t owner, bool last,
                                  struct multilock_release *d)
{
    bool awaited = last && d->cb;
    for (size_t i = ml->n; i-- > 0;) {
        clave_err err = clave_async_mutex_release(ml->parts[i].mutex, owner,
                                                  awaited ? recipe_multilock_on_left : NULL, d);
        d->left += awaited && err == CLAVE_OK;
        recipe_multilock_note(d, err, ml->parts[i].path);
    }
}

clave_err clave_async_multilock_release(clave_async_multilock *ml, uint64_t owner,
                                        clave_async_multilock_cb *cb, void *arg)
{
    struct multilock_owner *b = recipe_multilock_find(ml, owner);
    struct multilock_release unawaited = {.ml = ml};
    struct multilock_release *d = &unawaited;
    if (!b || b->held == 0)
        return CLAVE_ENOTHELD;
    if (cb) {
        d = clave__mem_zalloc(ml->mem, sizeof *d);
        if (!d)
            return CLAVE_ENOMEM;
        *d = (struct multilock_release){.ml = ml, .owner = owner, .left = 1, .cb = cb, .arg = arg};
        d->due.run = recipe_multilock_on_due;
        clave__client_later(ml->client, &d->due);
        ml->refs++;
    }
    bool last = --b->held == 0;
    if (last && !b->pending)
        multilock_free_owner(b);
    multilock_release_all(ml, owner, last, d);
    return cb ? CLAVE_OK : d->err;
}

clave_async_mutex *clave_async_multilock_at(const clave_async_multilock *ml, const char *path)
{
    for (size_t i = 0; i < ml->n; i++)
        if (strcmp(ml->parts[i].path, path) == 0)
            return ml->parts[i].mutex;
    return NULL;
}
