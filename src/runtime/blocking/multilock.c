/* multilock.c - clave_multilock: several mutexes of one thread, taken in the order of their paths
 * and released in reverse. It holds all of them or none. */
#include "clave/multilock.h"

#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "runtime/blocking/thread_mutex.h"

struct member {
    char *path;
    clave_mutex *lock;
};

struct clave_multilock {
    size_t n;
    struct member members[]; /* ordered by path */
};

static int multilock_by_path(const void *a, const void *b)
{
    return strcmp(((const struct member *)a)->path, ((const struct member *)b)->path);
}

static clave_err multilock_copy_paths(clave_multilock *m, const clave_multilock_part *parts,
                                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned)parts[i].kind > CLAVE_MULTILOCK_WRITE)
            return CLAVE_EINVAL;
        m->members[i].path = strdup(parts[i].path);
        if (!m->members[i].path)
            return CLAVE_ENOMEM;
    }
    qsort(m->members, n, sizeof *m->members, multilock_by_path);
    for (size_t i = 1; i < n; i++)
        if (multilock_by_path(&m->members[i - 1], &m->members[i]) == 0)
            return CLAVE_EINVAL;
    return CLAVE_OK;
}

/* The index of the path; n: it is not there. */
static size_t multilock_find(const clave_multilock *m, const char *path)
{
    size_t i = 0;
    while (i < m->n && strcmp(m->members[i].path, path) != 0)
        i++;
    return i;
}

static clave_err multilock_open_locks(clave_multilock *l, clave_client *c,
                                      const clave_multilock_part *parts,
                                      const clave_mutex_options *each)
{
    static const struct queue_order_rule *const rules[] = {
        [CLAVE_MULTILOCK_MUTEX] = &clave__queue_order_mutex,
        [CLAVE_MULTILOCK_READ] = &clave__queue_order_read,
        [CLAVE_MULTILOCK_WRITE] = &clave__queue_order_write,
    };
    clave_err err = CLAVE_OK;
    for (size_t i = 0; err == CLAVE_OK && i < l->n; i++) {
        struct member *m = &l->members[multilock_find(l, parts[i].path)];
        err = clave__mutex_new_for_threads(&m->lock, c, m->path, each, rules[parts[i].kind]);
    }
    return err;
}

clave_err clave_multilock_new(clave_multilock **out, clave_client *c,
                              const clave_multilock_part *parts, size_t n,
                              const clave_mutex_options *each)
{
    *out = NULL;
    if (n == 0 || n > (SIZE_MAX - sizeof **out) / sizeof(struct member))
        return CLAVE_EINVAL;
    clave_multilock *m = calloc(1, sizeof *m + n * sizeof *m->members);
    if (!m)
        return CLAVE_ENOMEM;
    m->n = n;
    clave_err err = multilock_copy_paths(m, parts, n);
    if (err == CLAVE_OK)
        err = multilock_open_locks(m, c, parts, each);
    if (err != CLAVE_OK) {
        clave_multilock_free(m);
        return err;
    }
    *out = m;
    return CLAVE_OK;
}

void clave_multilock_free(clave_multilock *m)
{
    if (!m)
        return;
    for (size_t i = m->n; i-- > 0;) {
        clave_mutex_free(m->members[i].lock);
        free(m->members[i].path);
    }
    free(m);
}

/* ---- acquire, release ----------------------------------------------------------------------- */

static void multilock_report(const char **failed, const char *path)
{
    if (failed)
        *failed = path;
}

/* Releases the last n of those that were acquired, in reverse order. */
static clave_err multilock_release_first(clave_multilock *m, size_t n, const char **failed)
{
    clave_err first = CLAVE_OK;
    for (size_t i = n; i-- > 0;) {
        clave_err err = clave_mutex_release(m->members[i].lock);
        if (err != CLAVE_OK && first == CLAVE_OK) {
            first = err;
            multilock_report(failed, m->members[i].path);
        }
    }
    return first;
}

/* The time left; if there is none, a wait becomes a try. */
static int64_t multilock_time_left(int64_t timeout_ms, int64_t deadline)
{
    return timeout_ms > 0 ? deadline_left(deadline, clave_now()) : timeout_ms;
}

/* One round over all locks. Sets *again if a lock that this call acquired was lost while others
 * were being acquired. */
static clave_err multilock_acquire_all(clave_multilock *m, int64_t timeout_ms, int64_t deadline,
                                       bool *again, const char **failed)
{
    uint64_t self = clave_mutex_owner_self();
    bool fresh = !clave__mutex_is_good_for_thread(m->members[0].lock, self);
    clave_err err = CLAVE_OK;
    size_t n = 0;
    while (err == CLAVE_OK && n < m->n) {
        err = clave_mutex_acquire(m->members[n].lock, multilock_time_left(timeout_ms, deadline));
        n += err == CLAVE_OK;
    }
    size_t lost = 0;
    while (err == CLAVE_OK && lost < n &&
           clave__mutex_is_good_for_thread(m->members[lost].lock, self))
        lost++;
    if (err == CLAVE_OK && lost == n)
        return CLAVE_OK;
    *again = err == CLAVE_OK && fresh;
    multilock_report(failed, m->members[err == CLAVE_OK ? lost : n].path);
    (void)multilock_release_first(m, n, NULL);
    return err == CLAVE_OK ? CLAVE_ELOST : err;
}

clave_err clave_multilock_acquire(clave_multilock *m, int64_t timeout_ms, const char **failed)
{
    int64_t deadline = clave__deadline_after(timeout_ms);
    bool again = true;
    clave_err err = CLAVE_OK;
    multilock_report(failed, NULL);
    while (again) {
        again = false;
        err = multilock_acquire_all(m, timeout_ms, deadline, &again, failed);
        again = again && timeout_ms != 0;
    }
    if (err == CLAVE_OK)
        multilock_report(failed, NULL);
    return err;
}

clave_err clave_multilock_release(clave_multilock *m, const char **failed)
{
    multilock_report(failed, NULL);
    return multilock_release_first(m, m->n, failed);
}

clave_mutex *clave_multilock_at(const clave_multilock *m, const char *path)
{
    size_t i = multilock_find(m, path);
    return i < m->n ? m->members[i].lock : NULL;
}
