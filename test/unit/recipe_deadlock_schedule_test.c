/* Acquires that look for the deadlock they are in: who gives up, and that all others go on. */
#include "clave/async/multilock.h"
#include "lib/deadlock_cycle.h"
#include "lib/each_fault.h"
#include "lib/semaphore_user.h"
#include "lib/unit.h"

/* ---- acquires that look ------------------------------------------------------------------ */

enum { DELAY = 500 };

static unsigned count_of(const struct deadlock_cycle *r, clave_err err)
{
    unsigned n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += r->wants[i].answers > 0 && r->wants[i].err == err;
    return n;
}

TEST(exactly_one_gives_up)
{
    for (size_t n = 2; n <= 3; n++)
        for (size_t last = 0; last < n; last++) {
            struct memnet *p = cycle_world(n);
            CLOSED_BY(cycle_close) struct deadlock_cycle r;
            clave_mutex_options o = {.size = sizeof o, .detect_deadlocks_ms = DELAY};
            cycle_open(&r, p, n, &o);
            for (size_t i = 1; i <= n; i++)
                cycle_wait(&r, (last + i) % n);
            memnet_advance(p, DELAY - 100);
            assert_int_equal(count_of(&r, CLAVE_EDEADLOCK), 0);
            memnet_advance(p, 10 * DELAY);
            struct mutex_owner *victim = &r.wants[last];
            assert_int_equal(count_of(&r, CLAVE_EDEADLOCK), 1);
            assert_int_equal(victim->err, CLAVE_EDEADLOCK);
            assert_int_equal(victim->answers, 1);
            assert_non_null(strstr(clave_async_mutex_deadlock(victim->m), " waits for /locks/"));
            assert_int_equal(memnet_stats(p).ephemerals, 2 * n - 1);
            /* It lets go of what it holds, and comes again. */
            for (size_t k = 1; k <= n; k++) {
                size_t at = (last + n - k + 1) % n;
                assert_int_equal(owner_release(&r.has[at]), CLAVE_OK);
                size_t next = (at + n - 1) % n;
                if (next != last)
                    assert_true(owner_holds(&r.wants[next]));
            }
            cycle_wait(&r, last);
            assert_true(owner_holds(&r.wants[last]));
        }
}

/* The youngest does not look, so the rule passes over it. */
TEST(who_does_not_look_does_not_give_up)
{
    struct memnet *p = cycle_world(3);
    CLOSED_BY(cycle_close) struct deadlock_cycle r;
    CLOSED_BY(owner_close) struct mutex_owner quiet;
    clave_mutex_options o = {.size = sizeof o, .detect_deadlocks_ms = DELAY};
    cycle_open(&r, p, 3, &o);
    assert_int_equal(owner_open(&quiet, p, 2, "/locks/a", NULL), CLAVE_OK);
    cycle_wait(&r, 1);
    cycle_wait(&r, 0);
    assert_int_equal(owner_acquire(&quiet, OWNER_FOREVER), CLAVE_OK);
    memnet_advance(p, 3 * DELAY);
    assert_int_equal(r.wants[0].err, CLAVE_EDEADLOCK);
    assert_int_equal(r.wants[0].answers, 1);
    assert_int_equal(r.wants[1].answers, 0);
    assert_int_equal(quiet.answers, 0);
}

TEST(nobody_gives_up_without_need)
{
    struct memnet *p = cycle_world(3);
    CLOSED_BY(cycle_close) struct deadlock_cycle r;
    clave_mutex_options o = {.size = sizeof o, .detect_deadlocks_ms = DELAY};
    cycle_open(&r, p, 3, &o);
    cycle_wait(&r, 0);
    cycle_wait(&r, 1);
    memnet_advance(p, 20 * DELAY);
    assert_int_equal(r.wants[0].answers + r.wants[1].answers, 0);
    assert_int_equal(owner_release(&r.has[2]), CLAVE_OK);
    assert_true(owner_holds(&r.wants[1]));
}

TEST(a_cycle_over_several_trees)
{
    static const char *const roots[] = {"/one", "/two"};
    CLOSED_BY(memnet_freed) struct memnet *p = cycle_world(2);
    struct mutex_owner s[4];
    clave_mutex_options o = cycle_options();
    o.detect_deadlocks_ms = DELAY;
    for (size_t pass = 0; pass < 2; pass++) {
        /* At first each looks at its own tree only. */
        o.lock_roots = pass ? roots : NULL;
        o.nlock_roots = pass ? 2 : 0;
        for (size_t i = 0; i < 4; i++) {
            const char *path = (i == 0 || i == 3) ? "/one/deep/a" : "/two/b";
            assert_int_equal(owner_open(&s[i], p, i % 2, path, &o), CLAVE_OK);
            assert_int_equal(owner_acquire(&s[i], OWNER_FOREVER), CLAVE_OK);
        }
        memnet_advance(p, 4 * DELAY);
        assert_int_equal(s[2].answers, 0);
        assert_int_equal(s[3].answers, pass);
        for (size_t i = 0; i < 4; i++)
            owner_close(&s[i]);
    }
}

TEST(readers_and_writers_give_up)
{
    CLOSED_BY(memnet_freed) struct memnet *p = cycle_world(2);
    struct rwlock_owner a[2], b[2];
    clave_mutex_options o = cycle_options();
    o.detect_deadlocks_ms = DELAY;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(rwlock_owner_open(&a[i], p, i, "/locks/a", &o), CLAVE_OK);
        assert_int_equal(rwlock_owner_open(&b[i], p, i, "/locks/b", &o), CLAVE_OK);
        assert_int_equal(owner_acquire(&a[i].read, OWNER_FOREVER), CLAVE_OK);
    }
    assert_int_equal(owner_acquire(&b[0].write, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(owner_acquire(&b[1].read, OWNER_FOREVER), CLAVE_OK);
    memnet_advance(p, 4 * DELAY);
    assert_int_equal(b[1].read.answers, 0);
    /* The one who waits for the other's write holds a read: the other's upgrade is refused, but
     * through another lock object it waits for ever. */
    struct rwlock_owner again;
    assert_int_equal(rwlock_owner_open(&again, p, 0, "/locks/a", &o), CLAVE_OK);
    assert_int_equal(owner_acquire(&again.write, OWNER_FOREVER), CLAVE_OK);
    memnet_advance(p, 4 * DELAY);
    assert_int_equal(again.write.err, CLAVE_EDEADLOCK);
    assert_int_equal(b[1].read.answers, 0);
    rwlock_owner_close(&again);
    for (size_t i = 0; i < 2; i++) {
        rwlock_owner_close(&a[i]);
        rwlock_owner_close(&b[i]);
    }
}

TEST(leases_are_given_up)
{
    static const char *const root = "/";
    CLOSED_BY(memnet_left_clean) struct memnet *p = cycle_world(3);
    struct semaphore_user s[3];
    struct mutex_owner has, wants;
    clave_mutex_options o = cycle_options();
    clave_semaphore_options so = {.limit = 2};
    so.data = o.data;
    so.len = o.len;
    o.detect_deadlocks_ms = so.detect_deadlocks_ms = DELAY;
    o.lock_roots = &root;
    o.nlock_roots = 1;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(semaphore_user_open_with(&s[i], p, i, so), CLAVE_OK);
    assert_int_equal(owner_open(&has, p, 2, "/locks/a", &o), CLAVE_OK);
    assert_int_equal(owner_open(&wants, p, 0, "/locks/a", &o), CLAVE_OK);
    assert_int_equal(semaphore_user_acquire(&s[0], 1, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(semaphore_user_acquire(&s[1], 1, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(owner_acquire(&has, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(owner_acquire(&wants, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(semaphore_user_acquire(&s[2], 1, OWNER_FOREVER), CLAVE_OK);
    /* 2 waits for a lease, 0 has one and waits for 2; but 1 will give its own back. */
    memnet_advance(p, 4 * DELAY);
    assert_int_equal(s[2].answers + wants.answers, 0);
    /* Not if it waits, too. */
    struct mutex_owner also;
    assert_int_equal(owner_open(&also, p, 1, "/locks/a", &o), CLAVE_OK);
    assert_int_equal(owner_acquire(&also, OWNER_FOREVER), CLAVE_OK);
    memnet_advance(p, 4 * DELAY);
    assert_int_equal(s[2].answers, 1);
    assert_int_equal(s[2].err, CLAVE_EDEADLOCK);
    assert_non_null(strstr(clave_async_semaphore_deadlock(s[2].s), " waits for /s/leases behind "));
    assert_int_equal(wants.answers + also.answers, 0);
    owner_close(&also);
    owner_close(&has);
    assert_true(owner_holds(&wants));
    owner_close(&wants);
    for (size_t i = 0; i < 3; i++)
        semaphore_user_close(&s[i]);
}

static void on_all(clave_async_multilock *ml, uint64_t owner, clave_err err, const char *failed,
                   void *arg)
{
    (void)ml;
    (void)owner;
    snprintf(arg, 64, "%s %s", clave_err_name(err), failed ? failed : "");
}

/* It gives up all it has, so that ends the deadlock at once. */
TEST(a_multilock_gives_up_all)
{
    static const clave_multilock_part parts[] = {{.path = "/locks/a"}, {.path = "/locks/b"}};
    CLOSED_BY(memnet_freed) struct memnet *p = cycle_world(2);
    struct mutex_owner has, wants;
    clave_async_multilock *all;
    clave_mutex_options each = {.size = sizeof each, .detect_deadlocks_ms = DELAY};
    clave_multilock_options o = {.size = sizeof o, .each = &each};
    char answer[64] = "";
    assert_int_equal(owner_open(&has, p, 1, "/locks/b", NULL), CLAVE_OK);
    assert_int_equal(owner_open(&wants, p, 1, "/locks/a", NULL), CLAVE_OK);
    assert_int_equal(owner_acquire(&has, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(clave_async_multilock_new(&all, p->clients[0].c, parts, 2, &o), CLAVE_OK);
    assert_int_equal(clave_async_multilock_acquire(all, 3, CLAVE_NEVER, on_all, answer), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(owner_acquire(&wants, OWNER_FOREVER), CLAVE_OK);
    memnet_advance(p, 2 * DELAY);
    assert_string_equal(answer, "EDEADLOCK /locks/b");
    assert_non_null(clave_async_mutex_deadlock(clave_async_multilock_at(all, "/locks/b")));
    assert_true(owner_holds(&wants));
    owner_close(&wants);
    owner_close(&has);
    clave_async_multilock_free(all);
    memnet_settle(p);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
}

/* ---- when things go wrong ---------------------------------------------------------------- */

TEST(any_message_of_a_look_may_be_lost)
{
    static const int ops[] = {OP_SYNC, OP_GET_CHILDREN2, OP_GET_DATA, OP_DELETE};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++)
            for (unsigned skip = 0; skip < 4; skip++) {
                struct memnet *p = cycle_world(2);
                CLOSED_BY(cycle_close) struct deadlock_cycle r;
                clave_mutex_options o = {.size = sizeof o, .detect_deadlocks_ms = DELAY};
                cycle_open(&r, p, 2, &o);
                cycle_wait(&r, 0);
                cycle_wait(&r, 1);
                memnet_rule(p, (struct memnet_rule){1, (enum memnet_direction)way, ops[i],
                                                    MEMNET_LOSE, skip});
                memnet_advance(p, 10 * DELAY);
                assert_int_equal(count_of(&r, CLAVE_EDEADLOCK), 1);
                assert_int_equal(r.wants[1].err, CLAVE_EDEADLOCK);
                assert_int_equal(r.wants[0].answers, 0);
            }
}

/* The session ends while it looks: it stands at the end again, holds nothing, and there is no
 * cycle. */
TEST(a_session_that_ends_ends_its_deadlock)
{
    struct memnet *p = cycle_world(2);
    CLOSED_BY(cycle_close) struct deadlock_cycle r;
    clave_mutex_options o = {.size = sizeof o, .detect_deadlocks_ms = DELAY};
    cycle_open(&r, p, 2, &o);
    cycle_wait(&r, 0);
    cycle_wait(&r, 1);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REPLY, OP_SYNC, MEMNET_HOLD, 0});
    memnet_advance(p, DELAY + 100);
    memnet_clear(p);
    memnet_kill_session(p, 1);
    memnet_advance(p, 10 * DELAY);
    assert_int_equal(r.has[1].lost, 1);
    assert_true(owner_holds(&r.wants[0]));
    assert_int_equal(r.wants[1].answers, 0);
}

TEST(who_leaves_while_it_looks_hears_no_more)
{
    for (unsigned skip = 0; skip < 2; skip++) {
        struct memnet *p = cycle_world(2);
        CLOSED_BY(cycle_close) struct deadlock_cycle r;
        clave_mutex_options o = {.size = sizeof o, .detect_deadlocks_ms = DELAY};
        cycle_open(&r, p, 2, &o);
        cycle_wait(&r, 0);
        cycle_wait(&r, 1);
        memnet_rule(p, (struct memnet_rule){1, MEMNET_REPLY, OP_SYNC, MEMNET_HOLD, skip});
        memnet_advance(p, DELAY + 100);
        assert_int_equal(clave_async_mutex_cancel(r.wants[1].m, 0), CLAVE_OK);
        memnet_clear(p);
        memnet_advance(p, DELAY);
        assert_int_equal(r.wants[1].err, CLAVE_ECANCELED);
        assert_int_equal(r.wants[1].answers, 1);
        assert_int_equal(r.wants[0].answers, 0);
    }
}

/* Whatever has failed, in the end it is looked at again. */
TEST_EACH_ALLOCATION(every_allocation_may_fail_once, 40)
{
    struct deadlock_cycle r;
    struct memnet *p = memnet_on(mem, 2, CYCLE_TIMEOUT);
    clave_mutex_options o = {.size = sizeof o, .detect_deadlocks_ms = DELAY};
    cycle_open(&r, p, 2, &o);
    cycle_wait(&r, 0);
    cycle_wait(&r, 1);
    failmem_arm(mem, which, 1);
    memnet_advance(p, 10 * DELAY);
    failmem_disarm(mem);
    assert_int_equal(count_of(&r, CLAVE_EDEADLOCK), 1);
    assert_int_equal(r.wants[1].err, CLAVE_EDEADLOCK);
    cycle_close(&r);
}

/* ---- many ---------------------------------------------------------------------------------- */

enum { CROWD = 6, CROWD_LOCKS = 4, ROUNDS = 40 };

/* Takes three of the locks, one after the other in an order that it draws, and gives them back; at
 * a deadlock it gives back what it has and draws again. */
struct walker {
    struct memnet *p;
    struct walker *crowd;
    struct mutex_owner owners[CROWD_LOCKS];
    size_t order[CROWD_LOCKS];
    size_t got;
    bool answered;
    clave_err err;
    unsigned rounds, deadlocks, needless;
    uint64_t rng;
};

static size_t draw(struct walker *w, size_t n)
{
    w->rng = w->rng * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(w->rng >> 33) % n;
}

static void give_back(struct walker *w)
{
    while (w->got > 0) {
        struct mutex_owner *s = &w->owners[w->order[--w->got]];
        clave_err err = clave_async_mutex_release(s->m, 0, NULL, NULL);
        assert_true(err == CLAVE_OK || err == CLAVE_ELOST);
    }
    for (size_t i = CROWD_LOCKS - 1; i > 0; i--) {
        size_t k = draw(w, i + 1), swap = w->order[i];
        w->order[i] = w->order[k];
        w->order[k] = swap;
    }
}

/* By the locks' own account: from whom this one waits for on, who has what the one before waits
 * for. NULL: nobody has it, or it goes on. */
static const struct walker *next_in_way(const struct walker *w)
{
    size_t lock = w->order[w->got];
    for (size_t i = 0; i < CROWD; i++)
        if (owner_holds(&w->crowd[i].owners[lock]))
            return w->crowd[i].answered ? NULL : &w->crowd[i];
    return NULL;
}

static bool is_in_cycle(const struct walker *w)
{
    const struct walker *at = next_in_way(w);
    for (size_t i = 0; at && at != w && i < CROWD; i++)
        at = next_in_way(at);
    return at == w;
}

static void on_walked(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct walker *w = arg;
    (void)m;
    (void)owner;
    w->needless += err == CLAVE_EDEADLOCK && !is_in_cycle(w);
    w->answered = true;
    w->err = err;
}

static void walk(struct walker *w)
{
    w->answered = false;
    clave_async_mutex *m = w->owners[w->order[w->got]].m;
    assert_int_equal(clave_async_mutex_acquire(m, 0, CLAVE_NEVER, on_walked, w), CLAVE_OK);
}

/* One step, outside of callbacks. */
static void step(struct walker *w)
{
    if (!w->answered)
        return;
    if (w->err == CLAVE_OK) {
        w->got++;
        w->rounds += w->got == 3;
    } else {
        assert_int_equal(w->err, CLAVE_EDEADLOCK);
        w->deadlocks++;
    }
    if (w->err != CLAVE_OK || w->got == 3)
        give_back(w);
    walk(w);
}

static void walker_open(struct walker *crowd, size_t i, struct memnet *p)
{
    clave_mutex_options o = cycle_options();
    struct walker *w = &crowd[i];
    char path[32];
    *w = (struct walker){.p = p, .crowd = crowd, .rng = i + 1};
    o.detect_deadlocks_ms = DELAY;
    for (size_t k = 0; k < CROWD_LOCKS; k++) {
        cycle_path(path, k);
        assert_int_equal(owner_open(&w->owners[k], p, i, path, &o), CLAVE_OK);
        w->order[k] = k;
    }
    give_back(w);
}

static void let_walk(struct walker *crowd, bool disturbed)
{
    struct memnet *p = crowd->p;
    bool done = false;
    for (unsigned t = 1; !done; t++) {
        assert_true(t < 60 * 60 * 20 * 3); /* three hours */
        memnet_advance(p, 50);
        if (disturbed && t % 97 == 0)
            memnet_cut(p, draw(crowd, CROWD));
        if (disturbed && t % 997 == 0)
            memnet_kill_session(p, draw(crowd, CROWD));
        done = true;
        for (size_t i = 0; i < CROWD; i++) {
            step(&crowd[i]);
            done = done && crowd[i].rounds >= ROUNDS;
        }
    }
}

/* Whatever they hold and wait for, everybody goes on, and nobody is sent back but out of a cycle,
 * or one that another has just left. */
TEST(a_crowd_goes_on)
{
    for (int disturbed = 0; disturbed < 2; disturbed++) {
        CLOSED_BY(memnet_freed) struct memnet *p = cycle_world(CROWD);
        struct walker w[CROWD];
        unsigned deadlocks = 0, needless = 0;
        for (size_t i = 0; i < CROWD; i++)
            walker_open(w, i, p);
        for (size_t i = 0; i < CROWD; i++)
            walk(&w[i]);
        let_walk(w, disturbed);
        for (size_t i = 0; i < CROWD; i++) {
            deadlocks += w[i].deadlocks;
            needless += w[i].needless;
            for (size_t k = 0; k < CROWD_LOCKS; k++)
                clave_async_mutex_free(w[i].owners[k].m);
        }
        if (!disturbed)
            assert_int_equal(needless, 0);
        assert_true(deadlocks > CROWD);
        memnet_advance(p, 5000);
        assert_int_equal(memnet_stats(p).ephemerals, 0);
        assert_int_equal(memnet_stats(p).watches, 0);
    }
}

TEST(options_are_checked)
{
    static const char *const roots[] = {"/locks", "locks"};
    CLOSED_BY(memnet_freed) struct memnet *p = cycle_world(1);
    struct mutex_owner s;
    clave_mutex_options o = {.size = sizeof o, .detect_deadlocks_ms = -1};
    assert_int_equal(owner_open(&s, p, 0, "/locks/a", &o), CLAVE_EINVAL);
    o.detect_deadlocks_ms = DELAY;
    o.data = "mine";
    o.len = 4;
    assert_int_equal(owner_open(&s, p, 0, "/locks/a", &o), CLAVE_EINVAL);
    o.len = 0;
    o.lock_roots = roots;
    o.nlock_roots = 2;
    assert_int_equal(owner_open(&s, p, 0, "/locks/a", &o), CLAVE_EPATH);
    o.nlock_roots = 1;
    assert_int_equal(owner_open_simple(&s, p, 0, "/locks/a", "n-", &o), CLAVE_EINVAL);
    assert_int_equal(owner_open(&s, p, 0, "/locks/a", &o), CLAVE_OK);
    assert_null(clave_async_mutex_deadlock(s.m));
    owner_close(&s);
    o.detect_deadlocks_ms = 0;
    assert_int_equal(owner_open(&s, p, 0, "/locks/a", &o), CLAVE_EINVAL);
}
