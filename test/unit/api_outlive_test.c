/* What is made on a client may be freed after it: the client keeps its memory until then, every
 * call says ECLOSED, and _free frees. For ASan, which sees what is used or leaked. */
#include "clave/async/client.h"
#include "clave/async/latch.h"
#include "clave/async/leader.h"
#include "clave/async/lock_delay.h"
#include "clave/async/multilock.h"
#include "clave/async/mutex.h"
#include "clave/async/once.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "lib/async_grants.h"
#include "lib/failmem.h"
#include "lib/memnet.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

/* ---- what is told -------------------------------------------------------------------------- */

static unsigned answers, events;
static clave_err verdict; /* of the newest answer */
static bool client_is_gone;

static void note(clave_err err)
{
    assert_false(client_is_gone); /* its own end was the last that it told */
    answers++;
    verdict = err;
}

static void on_result(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c, (void)arg;
    note(res->err);
}

static void on_watch(clave_async_client *c, clave_async_watch *w, const clave_event *ev, void *arg)
{
    (void)c, (void)w, (void)ev, (void)arg;
    assert_false(client_is_gone);
    events++;
}

static void on_mutex(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m, (void)owner, (void)arg;
    note(err);
}

static void on_mutex_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    (void)m, (void)ev, (void)arg;
    assert_false(client_is_gone);
    events++;
}

static void on_multilock(clave_async_multilock *ml, uint64_t owner, clave_err err,
                         const char *failed, void *arg)
{
    (void)ml, (void)owner, (void)failed, (void)arg;
    note(err);
}

static clave_async_lease *lease;

static void on_leases(clave_async_semaphore *s, clave_err err, clave_async_lease *const *leases,
                      size_t n, void *arg)
{
    (void)s, (void)arg;
    note(err);
    if (n > 0)
        lease = leases[0];
}

static void on_latch(clave_async_latch *l, clave_err err, void *arg)
{
    (void)l, (void)arg;
    note(err);
}

static void on_latch_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    (void)l, (void)ev, (void)arg;
    assert_false(client_is_gone);
    events++;
}

static void on_leader(clave_async_leader_watch *w, const clave_leader_news *news, void *arg)
{
    (void)w, (void)news, (void)arg;
    assert_false(client_is_gone);
    events++;
}

static void on_once(clave_async_once *o, clave_err err, const clave_once_record *former, void *arg)
{
    (void)o, (void)former, (void)arg;
    note(err);
}

static void on_delay(clave_async_delay *d, clave_err err, void *arg)
{
    (void)d, (void)arg;
    note(err);
}

/* ---- the end of a client --------------------------------------------------------------------- */

static void on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    (void)c, (void)state, (void)why;
    ++*(unsigned *)arg;
}

static void on_log(void *arg, int level, const char *msg)
{
    (void)arg, (void)level, (void)msg;
    assert_false(client_is_gone);
}

static struct memnet *open_world(void)
{
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    memnet_settle(p);
    answers = events = 0;
    client_is_gone = false;
    lease = NULL;
    return p;
}

/* Client 0 goes, in one of the ways; what was made on it is left. */
enum way { FREED, CLOSED_FIRST, CUT_FIRST, WAYS };

static void end_client(struct memnet *p, enum way way)
{
    clave_async_client *c = p->clients[0].c;
    if (way == CLOSED_FIRST) {
        clave_async_client_close(c, p->now);
        memnet_settle(p);
    }
    if (way == CUT_FIRST)
        memnet_cut(p, 0);
    clave_async_client_free(c);
    p->clients[0].c = NULL;
    client_is_gone = true;
}

/* ---- each kind --------------------------------------------------------------------------------
 */

TEST(a_watch_may_be_freed_behind_its_client)
{
    for (enum way way = FREED; way < WAYS; way++) {
        CLOSED_BY(memnet_freed) struct memnet *p = open_world();
        clave_async_client *c = p->clients[0].c;
        clave_async_watch *armed, *idle;
        assert_int_equal(clave_async_watch_new(&armed, c, on_watch, NULL), CLAVE_OK);
        assert_int_equal(clave_async_watch_new(&idle, c, on_watch, NULL), CLAVE_OK);
        assert_int_equal(clave_async_exists(c, "/a", armed, on_result, NULL), CLAVE_OK);
        memnet_settle(p);
        end_client(p, way);
        assert_false(clave_async_watch_is_armed(armed));
        clave_async_watch_disarm(armed);
        clave_async_watch_free(armed);
        clave_async_watch_free(idle);
    }
}

static void expect_no_hold(clave_async_mutex *m)
{
    const clave_op op = {.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
    struct grant_facts g;
    assert_int_equal(clave_async_mutex_acquire(m, 5, CLAVE_NEVER, on_mutex, NULL), CLAVE_ECLOSED);
    assert_int_equal(clave_async_mutex_acquire(m, 5, CLAVE_TRY, on_mutex, NULL), CLAVE_ECLOSED);
    assert_int_equal(clave_async_mutex_cancel(m, 2), CLAVE_ENOTHELD);
    assert_false(clave__mutex_held(m, 1, &g));
    assert_false(mutex_valid_for(m, 1, 0, 0));
    assert_null(clave_async_mutex_deadlock(m));
    assert_int_equal(guarded_multi(of_mutex(m, 1), &op, 1, on_result, NULL), CLAVE_ELOST);
    assert_int_equal(clave_async_mutex_release(m, 1, on_mutex, NULL),
                     CLAVE_ELOST); /* with the client */
    assert_int_equal(clave_async_mutex_release(m, 1, on_mutex, NULL), CLAVE_ENOTHELD);
}

TEST(a_mutex_may_be_freed_behind_its_client)
{
    for (unsigned i = 0; i < WAYS; i++) {
        CLOSED_BY(memnet_freed) struct memnet *p = open_world();
        const clave_mutex_options o = {
            .size = sizeof o, .event_cb = on_mutex_event, .revocable = true};
        clave_async_mutex *m, *other;
        assert_int_equal(clave_async_mutex_new(&m, p->clients[0].c, "/m", &o), CLAVE_OK);
        assert_int_equal(clave_async_mutex_new(&other, p->clients[0].c, "/m", NULL), CLAVE_OK);
        assert_int_equal(clave_async_mutex_acquire(m, 1, CLAVE_NEVER, on_mutex, NULL), CLAVE_OK);
        memnet_settle(p);
        assert_int_equal(clave_async_mutex_acquire(m, 2, CLAVE_NEVER, on_mutex, NULL), CLAVE_OK);
        assert_int_equal(clave_async_mutex_acquire(other, 3, CLAVE_NEVER, on_mutex, NULL),
                         CLAVE_OK);
        memnet_settle(p);
        assert_int_equal(answers, 1);
        end_client(p, (enum way)i);
        assert_int_equal(answers, 3);
        assert_int_equal(verdict, CLAVE_ECLOSED);
        expect_no_hold(m);
        clave_async_mutex_free(m);
        clave_async_mutex_free(other);
    }
}

/* In the middle of a join, and of a departure. */
TEST(a_mutex_on_its_way_may_be_freed_behind_its_client)
{
    for (unsigned step = 0; step < 3; step++) {
        CLOSED_BY(memnet_freed) struct memnet *p = open_world();
        clave_async_mutex *m;
        assert_int_equal(clave_async_mutex_new(&m, p->clients[0].c, "/m", NULL), CLAVE_OK);
        if (step > 0) {
            assert_int_equal(clave_async_mutex_acquire(m, 1, CLAVE_NEVER, on_mutex, NULL),
                             CLAVE_OK);
            memnet_settle(p);
            assert_int_equal(clave_async_mutex_release(m, 1, step > 1 ? on_mutex : NULL, NULL),
                             CLAVE_OK);
        }
        assert_int_equal(clave_async_mutex_acquire(m, 2, CLAVE_NEVER, on_mutex, NULL), CLAVE_OK);
        end_client(p, FREED);
        clave_async_mutex_free(m);
    }
}

TEST(a_rwlock_may_be_freed_behind_its_client)
{
    for (enum way way = FREED; way < WAYS; way++) {
        CLOSED_BY(memnet_freed) struct memnet *p = open_world();
        clave_async_rwlock *rw;
        assert_int_equal(clave_async_rwlock_new(&rw, p->clients[0].c, "/rw", NULL), CLAVE_OK);
        clave_async_mutex *w = clave_async_rwlock_write(rw), *r = clave_async_rwlock_read(rw);
        assert_int_equal(clave_async_mutex_acquire(w, 1, CLAVE_NEVER, on_mutex, NULL), CLAVE_OK);
        memnet_settle(p);
        assert_int_equal(clave_async_mutex_acquire(r, 1, CLAVE_NEVER, on_mutex, NULL), CLAVE_OK);
        assert_int_equal(clave_async_mutex_acquire(r, 2, CLAVE_NEVER, on_mutex, NULL), CLAVE_OK);
        end_client(p, way);
        expect_no_hold(w);
        clave_async_rwlock_free(rw);
    }
}

TEST(a_multilock_may_be_freed_behind_its_client)
{
    static const clave_multilock_part parts[] = {{"/a", CLAVE_MULTILOCK_MUTEX},
                                                 {"/b", CLAVE_MULTILOCK_WRITE}};
    for (enum way way = FREED; way < WAYS; way++) {
        CLOSED_BY(memnet_freed) struct memnet *p = open_world();
        clave_async_multilock *ml;
        assert_int_equal(clave_async_multilock_new(&ml, p->clients[0].c, parts, 2, NULL), CLAVE_OK);
        assert_int_equal(clave_async_multilock_acquire(ml, 1, CLAVE_NEVER, on_multilock, NULL),
                         CLAVE_OK);
        memnet_settle(p);
        assert_int_equal(clave_async_multilock_acquire(ml, 2, CLAVE_NEVER, on_multilock, NULL),
                         CLAVE_OK);
        memnet_settle(p);
        end_client(p, way);
        assert_int_equal(verdict, CLAVE_ECLOSED);
        assert_int_equal(
            guarded_multi(of_mutex(clave_async_multilock_at(ml, "/a"), 1), NULL, 0, NULL, NULL),
            CLAVE_ELOST);
        assert_int_equal(clave_async_multilock_acquire(ml, 3, CLAVE_NEVER, on_multilock, NULL),
                         CLAVE_ECLOSED);
        assert_int_equal(clave_async_multilock_release(ml, 1, NULL, NULL), CLAVE_ELOST);
        clave_async_multilock_free(ml);
    }
}

TEST(a_semaphore_may_be_freed_behind_its_client)
{
    for (unsigned i = 0; i < 2 * WAYS; i++) {
        CLOSED_BY(memnet_freed) struct memnet *p = open_world();
        const clave_semaphore_options o = {
            .size = sizeof o, .limit = 1, .limit_path = i < WAYS ? NULL : "/limit"};
        clave_async_semaphore *s;
        struct grant_facts g;
        assert_int_equal(clave_async_semaphore_new(&s, p->clients[0].c, "/s", &o), CLAVE_OK);
        assert_int_equal(clave_async_semaphore_acquire(s, 1, 1, CLAVE_NEVER, on_leases, NULL),
                         CLAVE_OK);
        memnet_settle(p);
        assert_non_null(lease);
        assert_int_equal(clave_async_semaphore_acquire(s, 2, 1, CLAVE_NEVER, on_leases, NULL),
                         CLAVE_OK);
        assert_int_equal(clave_async_semaphore_acquire(s, 3, 1, CLAVE_NEVER, on_leases, NULL),
                         CLAVE_OK);
        memnet_settle(p);
        end_client(p, (enum way)(i % WAYS));
        assert_int_equal(answers, 3);
        assert_int_equal(verdict, CLAVE_ECLOSED);
        assert_false(clave__lease_held(lease, &g));
        assert_int_equal(clave_async_semaphore_acquire(s, 4, 1, CLAVE_NEVER, on_leases, NULL),
                         CLAVE_ECLOSED);
        if (i % 2)
            assert_int_equal(clave_async_lease_release(lease, NULL, NULL), CLAVE_ELOST);
        clave_async_semaphore_free(s);
    }
}

TEST(a_latch_may_be_freed_behind_its_client)
{
    for (unsigned i = 0; i < 3 * WAYS; i++) {
        CLOSED_BY(memnet_freed) struct memnet *p = open_world();
        clave_async_client *c = p->clients[0].c;
        clave_latch_options o = {.size = sizeof o, .event_cb = on_latch_event};
        o.layout = (clave_latch_layout)(i / WAYS);
        o.prefix = o.layout == CLAVE_LATCH_FAIR ? "n_" : NULL;
        clave_async_latch *l[3];
        clave_async_leader_watch *w;
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal(clave_async_latch_new(&l[k], c, "/e", &o), CLAVE_OK);
            if (k < 2) { /* one leads, one waits, one never started */
                assert_int_equal(clave_async_latch_start(l[k]), CLAVE_OK);
                assert_int_equal(clave_async_latch_await(l[k], CLAVE_NEVER, on_latch, NULL),
                                 CLAVE_OK);
            }
            memnet_settle(p);
        }
        assert_int_equal(clave_async_leader_watch_new(&w, c, "/e", on_leader, NULL), CLAVE_OK);
        memnet_settle(p);
        end_client(p, (enum way)(i % WAYS));
        assert_int_equal(answers, 2);
        assert_int_equal(verdict, CLAVE_ECLOSED);
        for (size_t k = 0; k < 3; k++) {
            assert_false(clave_async_latch_has_leadership(l[k], 0));
            assert_int_equal(clave_async_latch_await(l[k], CLAVE_NEVER, on_latch, NULL),
                             CLAVE_ECLOSED);
            assert_int_equal(clave_async_latch_resign(l[k]), CLAVE_EINVAL);
            assert_int_equal(
                clave_async_latch_close(l[k], CLAVE_CLOSE_NOTIFY_LEADER, on_latch, NULL),
                CLAVE_EINVAL);
            clave_async_latch_free(l[k]);
        }
        clave_async_leader_watch_free(w);
    }
}

TEST(a_job_may_be_freed_behind_its_client)
{
    for (unsigned i = 0; i < 2 * WAYS; i++) {
        CLOSED_BY(memnet_freed) struct memnet *p = open_world();
        clave_async_client *c = p->clients[0].c;
        const clave_once_options oo = {.size = sizeof oo, .path = "/o"};
        const clave_delay_options od = {.size = sizeof od, .path = "/d"};
        clave_async_mutex *m;
        clave_async_once *once;
        clave_async_delay *delay;
        assert_int_equal(clave_async_mutex_new(&m, c, "/m", NULL), CLAVE_OK);
        assert_int_equal(clave_async_mutex_acquire(m, 1, CLAVE_NEVER, on_mutex, NULL), CLAVE_OK);
        memnet_settle(p);
        assert_int_equal(once_begin_held(&once, of_mutex(m, 1), &oo, on_once, NULL), CLAVE_OK);
        assert_int_equal(delay_begin_held(&delay, of_mutex(m, 1), &od, on_delay, NULL), CLAVE_OK);
        bool begun = i < WAYS;
        if (begun)
            memnet_settle(p);
        end_client(p, (enum way)(i % WAYS));
        assert_int_equal(answers, 3);
        clave_err late = begun ? CLAVE_ECLOSED : CLAVE_EINVAL;
        if (i != CLOSED_FIRST + WAYS) { /* it has begun before the client was closed */
            assert_int_equal(clave_async_once_end(once, true, on_once, NULL), late);
            assert_int_equal(clave_async_delay_end(delay, on_delay, NULL), late);
        }
        clave_async_mutex_free(m);
        clave_async_once_free(once);
        clave_async_delay_free(delay);
    }
}

/* The user's callbacks may be gone with the handle; the memory hooks are needed till the end. */
TEST(a_client_that_is_gone_calls_nobody)
{
    struct failmem mem;
    unsigned states = 0;
    clave_async_client *c;
    clave_async_mutex *m;
    failmem_init(&mem);
    const clave_client_options o = {.size = sizeof o,
                                    .hosts = "h",
                                    .seed = 1,
                                    .mem = &mem.mem,
                                    .state_cb = on_state,
                                    .state_arg = &states,
                                    .log = on_log};
    client_is_gone = false;
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_OK);
    clave_async_client_start(c, 1);
    assert_int_equal(clave_async_mutex_new(&m, c, "/m", NULL), CLAVE_OK);
    assert_int_equal(clave_async_mutex_acquire(m, 1, CLAVE_NEVER, on_mutex, NULL), CLAVE_OK);
    clave_async_client_free(c);
    client_is_gone = true;
    unsigned told = states;
    assert_true(told > 0);
    assert_true(mem.live > 0);
    clave_async_mutex_free(m);
    assert_int_equal(states, told);
    assert_int_equal(mem.live, 0);
}

/* A client whose acquire waits for one reply, and both are freed. */
static void free_while_listing_is_out(bool path_exists)
{
    struct failmem mem;
    failmem_init(&mem);
    struct memnet *p =
        memnet_new(&(struct memnet_options){.clients = 1, .timeout_ms = 6000, .mem = &mem.mem});
    struct mutex_owner a;
    memnet_settle(p);
    owner_open(&a, p, 0, "/l", NULL);
    if (path_exists) {
        owner_acquire(&a, OWNER_FOREVER);
        owner_release(&a);
    }
    unsigned before = a.answers;
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_GET_CHILDREN2, MEMNET_HOLD, 0});
    owner_acquire(&a, OWNER_FOREVER);
    clave_async_mutex_free(a.m);
    clave_async_client_free(p->clients[0].c);
    p->o.clients = 0;
    assert_int_equal(a.answers, before + 1);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    assert_int_equal(mem.live, 0);
    memnet_free(p);
}

/* The create had been answered and its listing had not: the node's delete was refused by the
 * closed client, and the contender waited for it for ever. (Seed 176, docs/evidence/simulation.md.)
 */
TEST(a_client_freed_between_create_and_listing_leaves_nothing)
{
    free_while_listing_is_out(true);
}

/* The create had been answered with ENONODE: the ancestors were asked for after the end, and
 * nobody answered. (Seed 10713, docs/evidence/simulation.md.) */
TEST(a_client_freed_before_the_ancestors_leaves_nothing)
{
    free_while_listing_is_out(false);
}
