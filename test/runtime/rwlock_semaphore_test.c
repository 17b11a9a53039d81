/* rwlock_semaphore_test.c - read-write locks, permits and sets of locks, for threads. */
#include "lib/grants.h"
#include "rig.h"

#include <stdatomic.h>
#include <unistd.h>

static size_t children(clave_client *s, const char *path)
{
    clave_reply *r = NULL;
    clave_err err = clave_children(s, path, 5000, &r);
    size_t n = err == CLAVE_OK ? r->nnames : 0;
    clave_reply_free(r);
    return n;
}

static bool comes_to(clave_client *s, const char *path, size_t n)
{
    for (int i = 0; i < RIG_PATIENCE_MS && children(s, path) != n; i++)
        usleep(1000);
    return children(s, path) == n;
}

/* ---- read and write -------------------------------------------------------------------- */

enum { THREADS = 6, TURNS = 30 };

struct lock_record {
    atomic_int readers, writers, faults;
};

struct worker {
    clave_client *session;
    struct lock_record *lock_record;
    unsigned seed;
};

static void look_around(struct lock_record *g, bool writing)
{
    int readers = atomic_load(&g->readers), writers = atomic_load(&g->writers);
    if (writers > (writing ? 1 : 0) || (writing && readers > 0))
        atomic_fetch_add(&g->faults, rig_unsafe("a writer that is not alone"));
}

static void write_and_downgrade(struct lock_record *g, clave_mutex *read, clave_mutex *write)
{
    bool fine = clave_mutex_acquire(write, 30000) == CLAVE_OK;
    atomic_fetch_add(&g->writers, 1);
    look_around(g, true);
    fine = fine && clave_mutex_acquire(read, 0) == CLAVE_OK;
    atomic_fetch_sub(&g->writers, 1);
    atomic_fetch_add(&g->readers, 1);
    fine = fine && clave_mutex_release(write) == CLAVE_OK;
    look_around(g, false);
    fine = fine && clave_mutex_acquire(write, 0) == CLAVE_EUPGRADE;
    fine = fine && held_for(by_mutex(read), 0);
    atomic_fetch_sub(&g->readers, 1);
    fine = fine && clave_mutex_release(read) == CLAVE_OK;
    if (!fine)
        atomic_fetch_add(&g->faults, 1);
}

static void *read_or_write(void *arg)
{
    struct worker *w = arg;
    struct lock_record *g = w->lock_record;
    clave_mutex *read, *write;
    if (clave_rwlock_new(&read, &write, w->session, "/rw", NULL, NULL) != CLAVE_OK) {
        atomic_fetch_add(&g->faults, 1);
        return NULL;
    }
    for (int i = 0; i < TURNS; i++) {
        if (rand_r(&w->seed) % 3 == 0) {
            write_and_downgrade(g, read, write);
            continue;
        }
        if (clave_mutex_acquire(read, 30000) != CLAVE_OK)
            atomic_fetch_add(&g->faults, 1);
        atomic_fetch_add(&g->readers, 1);
        look_around(g, false);
        atomic_fetch_sub(&g->readers, 1);
        if (clave_mutex_release(read) != CLAVE_OK)
            atomic_fetch_add(&g->faults, 1);
    }
    clave_mutex_free(read);
    clave_mutex_free(write);
    return NULL;
}

TEST(threads_read_together_and_write_alone)
{
    struct lock_record lock_record = {.faults = 0};
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){rig_session(rig->connect), &lock_record, i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, read_or_write, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(lock_record.faults, 0);
    assert_int_equal(children(workers[0].session, "/rw"), 0);
    for (unsigned i = 0; i < THREADS; i++)
        clave_client_close(workers[i].session, 5000);
}

/* Either side may go first. */
TEST(the_sides_are_freed_apart)
{
    clave_client *s = rig_session(rig->connect);
    for (int i = 0; i < 2; i++) {
        clave_mutex *read, *write;
        assert_int_equal(clave_rwlock_new(&read, &write, s, "/apart", NULL, NULL), CLAVE_OK);
        assert_int_equal(clave_mutex_acquire(write, 5000), CLAVE_OK);
        assert_int_equal(clave_mutex_acquire(read, 5000), CLAVE_OK);
        clave_mutex_free(i == 0 ? read : write);
        clave_mutex *rest = i == 0 ? write : read;
        assert_true(held_for(by_mutex(rest), 0));
        assert_int_equal(clave_mutex_acquire(rest, 5000), CLAVE_OK);
        clave_mutex_free(rest);
        assert_int_equal(children(s, "/apart"), 0);
    }
    clave_mutex *read, *write;
    assert_int_equal(clave_rwlock_new(&read, &write, s, "no/path", NULL, NULL), CLAVE_EPATH);
    assert_null(read);
    assert_null(write);
    clave_client_close(s, 5000);
}

/* ---- one place ------------------------------------------------------------------------- */

struct sharer {
    clave_mutex *lock;
    atomic_int *inside;
    atomic_int *faults;
};

static void *enter_and_leave(void *arg)
{
    struct sharer *s = arg;
    for (int i = 0; i < TURNS; i++) {
        if (clave_mutex_acquire(s->lock, 30000) != CLAVE_OK) {
            atomic_fetch_add(s->faults, 1);
            break;
        }
        if (atomic_fetch_add(s->inside, 1) != 0)
            atomic_fetch_add(s->faults, rig_unsafe("two holders"));
        if (!held_for(by_mutex(s->lock), 0))
            atomic_fetch_add(s->faults, 1);
        atomic_fetch_sub(s->inside, 1);
        if (clave_mutex_release(s->lock) != CLAVE_OK)
            atomic_fetch_add(s->faults, 1);
    }
    return NULL;
}

/* Two processes' worth of threads. */
TEST(threads_share_a_mutex)
{
    atomic_int inside = 0, faults = 0;
    clave_client *s[2] = {rig_session(rig->connect), rig_session(rig->connect)};
    struct sharer sharers[2];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < 2; i++) {
        sharers[i] = (struct sharer){.inside = &inside, .faults = &faults};
        assert_int_equal(clave_mutex_new(&sharers[i].lock, s[i], "/shared", NULL), CLAVE_OK);
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enter_and_leave, &sharers[i % 2]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(faults, 0);
    for (unsigned i = 0; i < 2; i++) {
        clave_mutex_free(sharers[i].lock);
        clave_client_close(s[i], 5000);
    }
}

/* ---- permits --------------------------------------------------------------------------- */

enum { LIMIT = 3 };

struct crowd {
    clave_semaphore *permits;
    atomic_int inside, faults;
};

static void *take_permits(void *arg)
{
    struct crowd *c = arg;
    unsigned seed = (unsigned)(uintptr_t)&seed;
    for (int i = 0; i < TURNS; i++) {
        clave_lease *q[LIMIT];
        size_t n = 1 + (size_t)rand_r(&seed) % LIMIT;
        if (clave_semaphore_acquire(c->permits, n, 30000, q) != CLAVE_OK) {
            atomic_fetch_add(&c->faults, 1);
            break;
        }
        int inside = atomic_fetch_add(&c->inside, (int)n) + (int)n;
        if (inside > LIMIT)
            atomic_fetch_add(&c->faults, rig_unsafe("more permits than the limit"));
        if (!held_for(by_lease(q[0]), 0) || token_held(by_lease(q[0])) <= 0)
            atomic_fetch_add(&c->faults, 1);
        atomic_fetch_sub(&c->inside, (int)n);
        for (size_t k = 0; k < n; k++)
            if (clave_lease_release(q[k]) != CLAVE_OK)
                atomic_fetch_add(&c->faults, 1);
    }
    return NULL;
}

static clave_semaphore *new_permits(clave_client *s, const char *path, uint32_t limit)
{
    clave_semaphore_options o = {.size = sizeof o, .limit = limit};
    clave_semaphore *p;
    assert_int_equal(clave_semaphore_new(&p, s, path, &o), CLAVE_OK);
    return p;
}

TEST(threads_never_have_more_than_the_limit)
{
    pthread_t threads[THREADS];
    clave_client *s[2] = {rig_session(rig->connect), rig_session(rig->connect)};
    struct crowd crowd[2] = {{.permits = new_permits(s[0], "/sem", LIMIT)},
                             {.permits = new_permits(s[1], "/sem", LIMIT)}};
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_permits, &crowd[i % 2]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(crowd[i].faults, 0);
        clave_semaphore_free(crowd[i].permits);
    }
    assert_int_equal(children(s[0], "/sem/leases"), 0);
    assert_int_equal(children(s[0], "/sem/locks"), 0);
    for (unsigned i = 0; i < 2; i++)
        clave_client_close(s[i], 5000);
}

struct late {
    clave_semaphore *permits;
    clave_err err;
};

static void *wait_for_a_permit(void *arg)
{
    struct late *l = arg;
    clave_lease *q;
    l->err = clave_semaphore_acquire(l->permits, 1, -1, &q);
    return NULL;
}

static void a_lease_guards_single_writes(clave_client *s, clave_lease *q)
{
    clave_reply *r;
    assert_true(deadline_held(by_lease(q)) > clave_now());
    assert_int_equal(create_held(by_lease(q), "/single", "a", 1, CLAVE_PERSISTENT, 5000, &r),
                     CLAVE_OK);
    assert_string_equal(r->path, "/single");
    clave_reply_free(r);
    assert_int_equal(set_held(by_lease(q), "/single", "b", 1, 7, 5000), CLAVE_EBADVERSION);
    assert_int_equal(set_held(by_lease(q), "/single", "b", 1, 0, 5000), CLAVE_OK);
    assert_int_equal(clave_get(s, "/single", 5000, &r), CLAVE_OK);
    assert_memory_equal(r->data, "b", 1);
    clave_reply_free(r);
    assert_int_equal(delete_held(by_lease(q), "/single", 1, 5000), CLAVE_OK);
    assert_int_equal(clave_exists(s, "/single", 5000, NULL), CLAVE_ENONODE);
}

TEST(permits_time_out_cancel_and_are_confirmed)
{
    clave_client *s = rig_session(rig->connect);
    clave_semaphore *p = new_permits(s, "/one", 1);
    clave_lease *q, *none, *two[2];
    assert_int_equal(clave_semaphore_acquire(p, 2, 0, two), CLAVE_EINVAL);
    assert_int_equal(clave_semaphore_acquire(p, 1, 5000, &q), CLAVE_OK);
    assert_int_equal(clave_semaphore_acquire(p, 1, 0, &none), CLAVE_EBUSY);
    assert_null(none);
    assert_int_equal(clave_semaphore_acquire(p, 1, 50, &none), CLAVE_EBUSY);
    assert_true(comes_to(s, "/one/leases", 1)); /* given up, it is cleared up in its own time */

    struct late late = {.permits = p, .err = CLAVE_OK};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_a_permit, &late), 0);
    while (children(s, "/one/leases") < 2) /* it stands and waits for room */
        continue;
    clave_semaphore_cancel(p);
    pthread_join(thread, NULL);
    assert_int_equal(late.err, CLAVE_ECANCELED);

    clave_op op = {.kind = CLAVE_OP_CREATE, .path = "/guarded"};
    assert_int_equal(multi_held(by_lease(q), &op, 1, 5000, NULL), CLAVE_OK);
    a_lease_guards_single_writes(s, q);
    assert_int_equal(clave_lease_release_confirmed(q, 5000), CLAVE_OK);
    assert_int_equal(children(s, "/one/leases"), 0);
    /* Given back even when there is no time to hear of it. */
    assert_int_equal(clave_semaphore_acquire(p, 1, 5000, &q), CLAVE_OK);
    clave_err err = clave_lease_release_confirmed(q, 0);
    assert_true(err == CLAVE_OK || err == CLAVE_ETIMEDOUT);
    assert_int_equal(clave_semaphore_acquire(p, 1, 5000, &q), CLAVE_OK);
    clave_semaphore_free(p);
    assert_int_equal(children(s, "/one/leases"), 0);
    clave_client_close(s, 5000);
}

/* ---- sets ------------------------------------------------------------------------------ */

struct transfer {
    clave_multilock *set;
    atomic_int *inside;
    atomic_int *faults;
};

static void *transfer(void *arg)
{
    struct transfer *t = arg;
    for (int i = 0; i < TURNS; i++) {
        if (clave_multilock_acquire(t->set, 30000, NULL) != CLAVE_OK) {
            atomic_fetch_add(t->faults, 1);
            break;
        }
        if (atomic_fetch_add(t->inside, 1) != 0 ||
            !held_for(by_mutex(clave_multilock_at(t->set, "/from")), 0))
            atomic_fetch_add(t->faults, 1);
        atomic_fetch_sub(t->inside, 1);
        if (clave_multilock_release(t->set, NULL) != CLAVE_OK)
            atomic_fetch_add(t->faults, 1);
    }
    return NULL;
}

TEST(sets_in_opposite_orders_take_turns)
{
    static const clave_multilock_part orders[2][3] = {
        {{.path = "/from"}, {.path = "/to"}, {.path = "/x"}},
        {{.path = "/to"}, {.path = "/y"}, {.path = "/from"}},
    };
    atomic_int inside = 0, faults = 0;
    struct transfer t[2];
    clave_client *s[2];
    pthread_t threads[2];
    for (unsigned i = 0; i < 2; i++) {
        s[i] = rig_session(rig->connect);
        t[i] = (struct transfer){.inside = &inside, .faults = &faults};
        assert_int_equal(clave_multilock_new(&t[i].set, s[i], orders[i], 3, NULL), CLAVE_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, transfer, &t[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(faults, 0);
    for (unsigned i = 0; i < 2; i++) {
        clave_multilock_free(t[i].set);
        clave_client_close(s[i], 5000);
    }
}

TEST(a_set_is_all_or_nothing)
{
    static const clave_multilock_part parts[] = {
        {.path = "/set/c"}, {"/set/b", CLAVE_MULTILOCK_READ}, {.path = "/set/a"}};
    static const clave_multilock_part twice[] = {{.path = "/set/c"}, {.path = "/set/c"}};
    clave_client *s = rig_session(rig->connect);
    clave_multilock *set;
    clave_mutex *read, *write;
    const char *failed;
    assert_int_equal(clave_multilock_new(&set, s, twice, 2, NULL), CLAVE_EINVAL);
    assert_int_equal(clave_multilock_new(&set, s, parts, 0, NULL), CLAVE_EINVAL);
    assert_int_equal(clave_multilock_new(&set, s, parts, 3, NULL), CLAVE_OK);
    assert_int_equal(clave_rwlock_new(&read, &write, s, "/set/b", NULL, NULL), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(write, 5000), CLAVE_OK);
    assert_int_equal(clave_multilock_acquire(set, 0, &failed), CLAVE_EBUSY);
    assert_string_equal(failed, "/set/b");
    int64_t ms = 25;
    do { /* again when the time was over before it had even the first */
        ms *= 2;
        assert_int_equal(clave_multilock_acquire(set, ms, &failed), CLAVE_EBUSY);
    } while (strcmp(failed, "/set/a") == 0 && ms < RIG_PATIENCE_MS);
    assert_string_equal(failed, "/set/b");
    assert_true(comes_to(s, "/set/a", 0));
    assert_int_equal(clave_mutex_release(write), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(read, 5000), CLAVE_OK); /* readers share */
    assert_int_equal(clave_multilock_acquire(set, 5000, &failed), CLAVE_OK);
    assert_null(failed);
    assert_int_equal(clave_multilock_acquire(set, 0, NULL), CLAVE_OK); /* reentrant */
    assert_true(token_held(by_mutex(clave_multilock_at(set, "/set/a"))) > 0);
    assert_null(clave_multilock_at(set, "/set/x"));
    assert_int_equal(clave_multilock_release(set, NULL), CLAVE_OK);
    assert_true(held_for(by_mutex(clave_multilock_at(set, "/set/a")), 0));
    assert_true(held_for(by_mutex(clave_multilock_at(set, "/set/b")), 0));
    assert_int_equal(clave_multilock_release(set, NULL), CLAVE_OK);
    assert_false(held_for(by_mutex(clave_multilock_at(set, "/set/a")), 0));
    assert_int_equal(clave_multilock_release(set, &failed), CLAVE_ENOTHELD);
    assert_string_equal(failed, "/set/c");
    clave_multilock_free(set);
    clave_mutex_free(read);
    clave_mutex_free(write);
    clave_client_close(s, 5000);
}

TEST_GROUP(rig_start_group, rig_stop_group)
