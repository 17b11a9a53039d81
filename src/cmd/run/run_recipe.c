/* run_recipe.c - starts what the plan asks for, a mutex, one side of a read-write lock, a lease or
 * a latch, and translates its events into those of struct acquisition_events. The runner owns the
 * struct acquisition.
 *
 * What must stay true: exactly one verdict is reported, and a loss only after a verdict of OK. */
#include "cmd/run/run_recipe.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/path.h"
#include "clave/uv.h"
#include "cmd/run/granted_field.h"
#include "recipe/queue/identity.h"

enum { OWNER = 0, IDENTITY_CAP = 4096, DETECT_MS = 1000 };

/* ---- how other participants see this one ----------------------------------------------------- */

static void participant_identity_join(char *const *argv, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; argv[i] && n < cap; i++) {
        int added = snprintf(out + n, cap - n, "%s%s", i > 0 ? " " : "", argv[i]);
        n += added > 0 ? (size_t)added : 0;
    }
}

void participant_identity_describe(struct participant_identity *s, const struct run_plan *plan)
{
    s->host[0] = s->host[sizeof s->host - 1] = '\0';
    gethostname(s->host, sizeof s->host - 1);
    participant_identity_join(plan->command.argv, s->command, sizeof s->command);
    s->identity = (clave_identity){.host = *s->host ? s->host : NULL,
                                   .pid = getpid(),
                                   .name = plan->name,
                                   .command = s->command,
                                   .traceparent = getenv("TRACEPARENT")};
}

/* ---- a lock ---------------------------------------------------------------------------------- */

static void run_recipe_on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct acquisition *a = arg;
    (void)m;
    (void)owner;
    a->events->verdict(a->arg, err);
}

static void run_recipe_on_mutex_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct acquisition *a = arg;
    (void)m;
    if (ev->kind == CLAVE_MUTEX_QUEUED)
        a->events->moved(a->arg, ev->ahead, ev->predecessor, ev->left_over);
    else if (ev->kind == CLAVE_MUTEX_NEXT)
        a->events->next(a->arg);
    else if (ev->kind == CLAVE_MUTEX_LOST)
        a->events->lost(a->arg, ev->why);
    else if (ev->kind == CLAVE_MUTEX_ASKED)
        a->events->asked(a->arg);
}

static size_t run_recipe_format_identity(const struct run_plan *plan, char *out, size_t cap)
{
    struct participant_identity self;
    participant_identity_describe(&self, plan);
    self.identity.owner = *plan->owner ? plan->owner : NULL;
    self.identity.revocable = plan->revocable ? 1 : -1;
    size_t n = clave_identity_format(&self.identity, out, cap);
    if (n >= cap)
        return cap - 1;
    if (plan->stages.marks)
        n = clave__lock_delay_field_put(out, n, cap);
    return held_since_promise(plan, out, n, cap);
}

static clave_err run_recipe_begin_lock(struct acquisition *a, clave_async_client *client,
                                       const struct run_plan *plan,
                                       const struct acquisition_terms *terms)
{
    char identity[IDENTITY_CAP];
    clave_mutex_options o = {
        .size = sizeof o, .event_cb = run_recipe_on_mutex_event, .event_arg = a};
    o.data = identity;
    o.len = run_recipe_format_identity(plan, identity, sizeof identity);
    o.acls = plan->acl.n > 0 ? plan->acl.list : NULL;
    o.nacls = plan->acl.n;
    o.min_valid_ms = terms->min_valid_ms;
    o.revocable = plan->revocable;
    o.detect_deadlocks_ms = plan->detects ? DETECT_MS : 0;
    o.lock_roots = &plan->root;
    o.nlock_roots = plan->root ? 1 : 0;
    clave_err err = plan->kind == KIND_MUTEX
                        ? clave_async_mutex_new(&a->mutex, client, plan->path, &o)
                        : clave_async_rwlock_new(&a->rw, client, plan->path, &o);
    if (err != CLAVE_OK)
        return err;
    if (a->rw)
        a->mutex = plan->kind == KIND_READ ? clave_async_rwlock_read(a->rw)
                                           : clave_async_rwlock_write(a->rw);
    return clave_async_mutex_acquire(a->mutex, OWNER, terms->deadline, run_recipe_on_acquired, a);
}

/* ---- a lease --------------------------------------------------------------------------------- */

static void run_recipe_on_lease(clave_async_semaphore *s, clave_err err,
                                clave_async_lease *const *leases, size_t n, void *arg)
{
    struct acquisition *a = arg;
    assert(!a->lease && n <= 1);
    (void)s;
    a->lease = n > 0 ? leases[0] : NULL;
    a->events->verdict(a->arg, err);
}

static void run_recipe_on_lease_event(clave_async_semaphore *s, const clave_lease_event *ev,
                                      void *arg)
{
    struct acquisition *a = arg;
    (void)s;
    switch (ev->kind) {
    case CLAVE_LEASE_QUEUED:
        a->events->moved(a->arg, ev->ahead, "", ev->left_over);
        break;
    case CLAVE_LEASE_LOST:
        a->events->lost(a->arg, ev->why);
        break;
    case CLAVE_LEASE_ASKED:
        a->events->asked(a->arg);
        break;
    }
}

static clave_err run_recipe_begin_lease(struct acquisition *a, clave_async_client *client,
                                        const struct run_plan *plan,
                                        const struct acquisition_terms *terms)
{
    char identity[IDENTITY_CAP];
    clave_semaphore_options o = {
        .size = sizeof o, .event_cb = run_recipe_on_lease_event, .event_arg = a};
    o.limit = plan->limit;
    o.limit_path = plan->limit_path;
    o.data = identity;
    o.len = run_recipe_format_identity(plan, identity, sizeof identity);
    o.acls = plan->acl.n > 0 ? plan->acl.list : NULL;
    o.nacls = plan->acl.n;
    o.min_valid_ms = terms->min_valid_ms;
    o.revocable = plan->revocable;
    o.detect_deadlocks_ms = plan->detects ? DETECT_MS : 0;
    o.lock_roots = &plan->root;
    o.nlock_roots = plan->root ? 1 : 0;
    clave_err err = clave_async_semaphore_new(&a->semaphore, client, plan->path, &o);
    if (err == CLAVE_OK)
        err = clave_async_semaphore_acquire(a->semaphore, 0, 1, terms->deadline,
                                            run_recipe_on_lease, a);
    return err;
}

/* ---- the parents of leases ------------------------------------------------------------------- */

static void run_recipe_dirs_answered(struct acquisition_dirs *d, clave_err err)
{
    assert(d->left > 0);
    d->left--;
    if (d->err == CLAVE_OK && err != CLAVE_ENODEEXISTS)
        d->err = err;
}

static void run_recipe_on_dir(clave_async_client *c, const clave_result *res, void *arg)
{
    struct acquisition_dirs *d = arg;
    (void)c;
    run_recipe_dirs_answered(d, res->err);
    if (d->left == 0)
        d->made(d->arg, d->err);
}

/* The nodes are made persistent. A container node may be removed by the server while somebody
 * waits, and the recipe would create it again, open to all. */
clave_err acquisition_dirs_make(struct acquisition_dirs *d, clave_async_client *client,
                                const struct run_plan *plan)
{
    assert(d->made && plan->kind == KIND_LEASE);
    static const char *const names[] = {"leases", "locks"};
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    o.mode = CLAVE_PERSISTENT;
    o.acls = plan->acl.list;
    o.nacls = plan->acl.n;
    d->left = sizeof names / sizeof *names;
    d->err = CLAVE_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = clave__path_child(NULL, plan->path, names[i]);
        clave_err err = path ? clave_async_create(client, path, NULL, 0, &o, run_recipe_on_dir, d)
                             : CLAVE_ENOMEM;
        free(path);
        if (err != CLAVE_OK)
            run_recipe_dirs_answered(d, err);
    }
    return d->left > 0 ? CLAVE_OK : d->err;
}

/* ---- a leadership ---------------------------------------------------------------------------- */

static void run_recipe_on_verdict(clave_async_latch *l, clave_err err, void *arg)
{
    struct acquisition *a = arg;
    if (err != CLAVE_OK)
        (void)clave_async_latch_close(l, CLAVE_CLOSE_SILENT, NULL, NULL);
    /* ECANCELED: a try that ended without leadership. */
    a->events->verdict(a->arg, err == CLAVE_ECANCELED ? CLAVE_EBUSY : err);
}

static void run_recipe_on_latch_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct acquisition *a = arg;
    switch (ev->kind) {
    case CLAVE_LATCH_QUEUED:
        a->events->moved(a->arg, ev->ahead, ev->predecessor, ev->left_over);
        if (a->tries)
            (void)clave_async_latch_cancel(l, run_recipe_on_verdict, a);
        break;
    case CLAVE_LATCH_NEXT:
        a->events->next(a->arg);
        break;
    case CLAVE_LATCH_NOT_LEADER:
        /* One command, one leadership: the latch must not queue again. */
        (void)clave_async_latch_close(l, CLAVE_CLOSE_SILENT, NULL, NULL);
        a->events->lost(a->arg, ev->why);
        break;
    case CLAVE_LATCH_ASKED:
        a->events->asked(a->arg);
        break;
    case CLAVE_LATCH_LEADER: /* run_recipe_on_verdict reports these two */
    case CLAVE_LATCH_FAILED:
        break;
    }
}

/* Uses CLAVE_POLICY_SESSION: the guardian ends the command by the hold deadline, so there is no
 * need to give up leadership when the connection is lost for a moment. */
static clave_err run_recipe_begin_election(struct acquisition *a, clave_async_client *client,
                                           const struct run_plan *plan,
                                           const struct acquisition_terms *terms)
{
    clave_latch_options o = {
        .size = sizeof o, .event_cb = run_recipe_on_latch_event, .event_arg = a};
    o.id = plan->name;
    o.policy = CLAVE_POLICY_SESSION;
    o.acls = plan->acl.n > 0 ? plan->acl.list : NULL;
    o.nacls = plan->acl.n;
    o.min_valid_ms = terms->min_valid_ms;
    o.revocable = true;
    o.priority = plan->priority;
    o.spread = plan->spread;
    o.preempt = plan->preempt;
    int64_t deadline = terms->deadline;
    a->tries = deadline == CLAVE_TRY;
    if (a->tries) /* enough time to learn our place, or that no server answers */
        deadline = deadline_after(clave_now(), clave_async_client_session_timeout(client));
    clave_err err = clave_async_latch_new(&a->latch, client, plan->path, &o);
    if (err == CLAVE_OK)
        err = clave_async_latch_await(a->latch, deadline, run_recipe_on_verdict, a);
    return err == CLAVE_OK ? clave_async_latch_start(a->latch) : err;
}

/* ---- any of these ---------------------------------------------------------------------------- */

clave_err acquisition_begin(struct acquisition *a, clave_async_client *client,
                            const struct run_plan *plan, const struct acquisition_terms *terms)
{
    assert(a->events && !a->mutex && !a->semaphore && !a->latch);
    if (plan->elects)
        return run_recipe_begin_election(a, client, plan, terms);
    if (plan->kind == KIND_LEASE)
        return run_recipe_begin_lease(a, client, plan, terms);
    return run_recipe_begin_lock(a, client, plan, terms);
}

bool acquisition_held(const struct acquisition *a, struct grant_facts *out)
{
    if (a->latch)
        return clave__latch_held(a->latch, out);
    if (a->semaphore)
        return a->lease && clave__lease_held(a->lease, out);
    return a->mutex && clave__mutex_held(a->mutex, OWNER, out);
}

clave_err acquisition_grant(const struct acquisition *a, clave_async_grant **out)
{
    *out = NULL;
    if (a->latch)
        return clave_async_latch_grant(a->latch, out);
    if (a->semaphore)
        return a->lease ? clave_async_lease_grant(a->lease, out) : CLAVE_ENOTHELD;
    return a->mutex ? clave_async_mutex_grant(a->mutex, OWNER, out) : CLAVE_ENOTHELD;
}

bool acquisition_limit_missing(const struct acquisition *a)
{
    return a->semaphore && clave_async_semaphore_limit(a->semaphore) == 0;
}

const char *acquisition_deadlock(const struct acquisition *a)
{
    if (a->semaphore)
        return clave_async_semaphore_deadlock(a->semaphore);
    return a->mutex ? clave_async_mutex_deadlock(a->mutex) : NULL;
}

clave_err acquisition_publish(struct acquisition *a, const char *value)
{
    assert(a->latch);
    return clave_async_latch_publish(a->latch, value, strlen(value), NULL, NULL);
}

/* The errors mean that the verdict is on its way already. */
void acquisition_cancel(struct acquisition *a)
{
    if (a->latch)
        (void)clave_async_latch_cancel(a->latch, run_recipe_on_verdict, a);
    else if (a->semaphore)
        (void)clave_async_semaphore_cancel(a->semaphore, 0);
    else
        (void)clave_async_mutex_cancel(a->mutex, OWNER);
}

void acquisition_free(struct acquisition *a)
{
    if (a->rw)
        clave_async_rwlock_free(a->rw);
    else
        clave_async_mutex_free(a->mutex);
    clave_async_semaphore_free(a->semaphore);
    clave_async_latch_free(a->latch);
    *a = (struct acquisition){.events = a->events, .arg = a->arg};
}
