/* deadlock_test.c - threads whose locks wait for each other, on one session and on several. */
#include "rig.h"

#include <unistd.h>

enum { DELAY = 200 };

static clave_mutex_options options(void)
{
    return (clave_mutex_options){.size = sizeof(clave_mutex_options), .detect_deadlocks_ms = DELAY};
}

/* Takes two locks, in its own order; both have the first before either asks for the second. */
struct worker {
    clave_mutex *first, *second;
    pthread_barrier_t *both;
    clave_err err;
    char text[512];
};

static void *take_both(void *arg)
{
    struct worker *w = arg;
    w->err = clave_mutex_acquire(w->first, -1);
    pthread_barrier_wait(w->both);
    if (w->err != CLAVE_OK)
        return NULL;
    w->err = clave_mutex_acquire(w->second, RIG_PATIENCE_MS);
    if (w->err == CLAVE_EDEADLOCK)
        clave_mutex_deadlock(w->second, w->text, sizeof w->text);
    if (w->err == CLAVE_OK)
        clave_mutex_release(w->second);
    clave_mutex_release(w->first);
    return NULL;
}

static void run_both(struct worker *w)
{
    pthread_t threads[2];
    pthread_barrier_t both;
    pthread_barrier_init(&both, NULL, 2);
    for (size_t i = 0; i < 2; i++) {
        w[i].both = &both;
        assert_int_equal(pthread_create(&threads[i], NULL, take_both, &w[i]), 0);
    }
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&both);
    size_t victim = w[0].err == CLAVE_EDEADLOCK ? 0 : 1;
    assert_int_equal(w[victim].err, CLAVE_EDEADLOCK);
    assert_int_equal(w[1 - victim].err, CLAVE_OK);
    assert_non_null(strstr(w[victim].text, " waits for /deadlock/"));
    assert_non_null(strstr(w[victim].text, " #")); /* which thread */
    assert_string_equal(w[1 - victim].text, "");
}

TEST(threads_of_one_session_deadlock)
{
    clave_client *s = rig_session(rig->connect);
    clave_mutex *a, *b;
    clave_mutex_options o = options();
    char text[8];
    assert_int_equal(clave_mutex_new(&a, s, "/deadlock/a", &o), CLAVE_OK);
    assert_int_equal(clave_mutex_new(&b, s, "/deadlock/b", &o), CLAVE_OK);
    assert_string_equal(clave_mutex_deadlock(a, text, sizeof text), "");
    struct worker w[2] = {{.first = a, .second = b}, {.first = b, .second = a}};
    run_both(w);
    clave_mutex_free(a);
    clave_mutex_free(b);
    clave_client_close(s, 1000);
}

TEST(sessions_deadlock)
{
    clave_client *s[2];
    clave_mutex *locks[2][2];
    clave_mutex_options o = options();
    for (size_t i = 0; i < 2; i++) {
        s[i] = rig_session(rig->connect);
        assert_int_equal(clave_mutex_new(&locks[i][0], s[i], "/deadlock/a", &o), CLAVE_OK);
        assert_int_equal(clave_mutex_new(&locks[i][1], s[i], "/deadlock/b", &o), CLAVE_OK);
    }
    struct worker w[2] = {{.first = locks[0][0], .second = locks[0][1]},
                          {.first = locks[1][1], .second = locks[1][0]}};
    run_both(w);
    for (size_t i = 0; i < 2; i++) {
        clave_mutex_free(locks[i][0]);
        clave_mutex_free(locks[i][1]);
        clave_client_close(s[i], 1000);
    }
}

/* One of a mutex and a permit. */
struct taker {
    clave_client *session;
    clave_mutex *lock;
    clave_semaphore *permits;
    clave_err err;
};

static void *take_permit(void *arg)
{
    struct taker *t = arg;
    clave_lease *p;
    t->err = clave_semaphore_acquire(t->permits, 1, RIG_PATIENCE_MS, &p);
    if (t->err == CLAVE_OK)
        clave_lease_release(p);
    return NULL;
}

static void *take_lock_and_permit(void *arg)
{
    struct taker *t = arg;
    if (clave_mutex_acquire(t->lock, -1) == CLAVE_OK) {
        take_permit(t);
        clave_mutex_release(t->lock);
    }
    return NULL;
}

static size_t count_cycles(clave_client *s, clave_deadlocks **out)
{
    static const char *const roots[] = {"/permits"};
    clave_err err = clave_deadlocks_find(s, roots, 1, 5000, out);
    assert_int_equal(err, CLAVE_OK);
    return (*out)->n;
}

/* The permit is this thread's, which waits for the lock of the other, who waits for the permit. */
TEST(a_permit_and_a_lock)
{
    static const char *const root = "/permits";
    static const char form[] = "clave/1\nhost=h\n";
    struct taker t = {.session = rig_session(rig->connect)};
    clave_client *other = rig_session(rig->connect);
    clave_mutex_options o = {.size = sizeof o};
    clave_semaphore_options so = {.size = sizeof so, .limit = 1, .data = form, .lock_roots = &root};
    so.len = sizeof form - 1;
    so.nlock_roots = 1;
    so.detect_deadlocks_ms = DELAY;
    clave_deadlocks *found;
    clave_lease *p;
    pthread_t thread;
    char text[512];
    assert_int_equal(clave_semaphore_new(&t.permits, t.session, "/permits/s", &so), CLAVE_OK);
    assert_int_equal(clave_mutex_new(&t.lock, t.session, "/permits/m", &o), CLAVE_OK);
    assert_int_equal(clave_semaphore_acquire(t.permits, 1, -1, &p), CLAVE_OK);
    assert_int_equal(count_cycles(other, &found), 0);
    clave_deadlocks_free(found);
    assert_int_equal(pthread_create(&thread, NULL, take_lock_and_permit, &t), 0);
    /* It has the lock, or is about to; whoever comes last, this thread does not look. */
    while (clave_mutex_acquire(t.lock, 0) == CLAVE_OK)
        clave_mutex_release(t.lock);
    assert_int_equal(clave_mutex_acquire(t.lock, RIG_PATIENCE_MS), CLAVE_OK);
    pthread_join(thread, NULL);
    assert_int_equal(t.err, CLAVE_EDEADLOCK);
    clave_semaphore_deadlock(t.permits, text, sizeof text);
    assert_non_null(strstr(text, " waits for /permits/s/leases behind "));
    clave_mutex_release(t.lock);
    assert_int_equal(clave_lease_release(p), CLAVE_OK);
    clave_mutex_free(t.lock);
    clave_semaphore_free(t.permits);
    clave_client_close(t.session, 1000);
    clave_client_close(other, 1000);
}

static void *take_two_permits(void *arg)
{
    struct taker *t = arg;
    clave_lease *p;
    t->err = clave_semaphore_acquire(t->permits, 1, -1, &p);
    if (t->err == CLAVE_OK) {
        take_permit(t);
        clave_lease_release(p);
    }
    return NULL;
}

/* A thread has the only permit, and wants another; it does not look. */
TEST(a_deadlock_is_seen_from_outside)
{
    static const char *const nowhere[] = {"nowhere"};
    struct taker t = {.session = rig_session(rig->connect)};
    clave_client *other = rig_session(rig->connect);
    clave_semaphore_options so = {.size = sizeof so, .limit = 1, .data = "clave/1\n", .len = 8};
    clave_deadlocks *found;
    pthread_t thread;
    assert_int_equal(clave_semaphore_new(&t.permits, t.session, "/permits/s", &so), CLAVE_OK);
    assert_int_equal(pthread_create(&thread, NULL, take_two_permits, &t), 0);
    while (count_cycles(other, &found) == 0)
        clave_deadlocks_free(found);
    const clave_deadlock_member *m = found->list[0].members;
    assert_int_equal(found->n, 1);
    assert_int_equal(found->list[0].n, 1);
    assert_int_equal(found->list[0].victim, 1);
    assert_true(found->list[0].certain);
    assert_string_equal(m->path, "/permits/s/leases");
    assert_non_null(strstr(m->node, "-lease-"));
    assert_non_null(strstr(m->blocker, "-lease-"));
    assert_non_null(m->identity.task);
    assert_int_equal(m->identity.limit, 1);
    assert_int_equal(m->stat.ephemeral_owner, clave_client_id(t.session));
    assert_non_null(strstr(found->list[0].text, "waits for /permits/s/leases behind session 0x"));
    clave_deadlocks_free(found);
    clave_semaphore_cancel(t.permits);
    pthread_join(thread, NULL);
    assert_int_equal(t.err, CLAVE_ECANCELED);
    assert_int_equal(clave_deadlocks_find(other, nowhere, 1, 5000, &found), CLAVE_EPATH);
    assert_null(found);
    assert_int_equal(clave_deadlocks_find(other, nowhere, 0, 5000, &found), CLAVE_EINVAL);
    clave_semaphore_free(t.permits);
    clave_client_close(t.session, 1000);
    clave_client_close(other, 1000);
}

/* A program under a `clave lock` is a part of that one's owner. */
TEST(locks_say_what_they_are_a_part_of)
{
    clave_client *s = rig_session(rig->connect);
    clave_reply *names, *node;
    clave_mutex *l;
    char path[256], data[4096], owner[64];
    assert_int_equal(setenv("CLAVE_OWNER", "outer", 1), 0);
    assert_int_equal(clave_mutex_new(&l, s, "/parts", NULL), CLAVE_OK);
    assert_int_equal(unsetenv("CLAVE_OWNER"), 0);
    assert_int_equal(clave_mutex_acquire(l, -1), CLAVE_OK);
    assert_int_equal(clave_children(s, "/parts", 5000, &names), CLAVE_OK);
    snprintf(path, sizeof path, "/parts/%s", names->names[0]);
    assert_int_equal(clave_get(s, path, 5000, &node), CLAVE_OK);
    snprintf(data, sizeof data, "%.*s", (int)node->len, (const char *)node->data);
    snprintf(owner, sizeof owner, "\nowner=outer/%lld\n", (long long)getpid());
    assert_non_null(strstr(data, owner));
    assert_non_null(strstr(data, "\ntask="));
    clave_reply_free(names);
    clave_reply_free(node);
    clave_mutex_free(l);
    clave_client_close(s, 1000);
}

TEST_GROUP(rig_start_group, rig_stop_group)
