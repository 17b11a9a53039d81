/* A job that several start and one runs: what counts, by whose clock, and what is left when an
 * answer, a runner or its memory fails. */
#include "clave/async/once.h"
#include "lib/async_grants.h"
#include "lib/each_fault.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

static const int64_t HOUR = 3600 * 1000, MINUTE = 60 * 1000;

/* One process: an owner of the lock, and its attempts at the job. */
struct runner {
    struct mutex_owner owner;
    clave_async_once *once;
    clave_once_options o;
    unsigned answers, ends;
    clave_err err, ended;
    clave_once_record former;
    char host[32];
};

static void on_begun(clave_async_once *o, clave_err err, const clave_once_record *former, void *arg)
{
    (void)o;
    struct runner *r = arg;
    r->answers++;
    r->err = err;
    r->former = *former;
    snprintf(r->host, sizeof r->host, "%s", former->identity.host ? former->identity.host : "");
}

static void on_ended(clave_async_once *o, clave_err err, const clave_once_record *former, void *arg)
{
    (void)o;
    (void)former;
    struct runner *r = arg;
    r->ends++;
    r->ended = err;
}

static void enter(struct runner *r, struct memnet *p, size_t client, int64_t period_ms)
{
    *r = (struct runner){
        .o = {.size = sizeof r->o, .path = "/job-once/hourly", .period_ms = period_ms}};
    assert_int_equal(owner_open(&r->owner, p, client, "/job", NULL), CLAVE_OK);
}

/* Holding the lock. Does not settle. */
static clave_err ask(struct runner *r)
{
    static const clave_identity ids[] = {{.host = "a", .pid = 1}, {.host = "b", .pid = 2}};
    clave_async_once_free(r->once);
    r->o.identity = &ids[r->owner.client % 2];
    r->answers = r->ends = 0;
    return once_begin_held(&r->once, of_mutex(r->owner.m, r->owner.owner), &r->o, on_begun, r);
}

static clave_err begin(struct runner *r)
{
    assert_int_equal(owner_acquire(&r->owner, OWNER_FOREVER), CLAVE_OK);
    assert_true(owner_holds(&r->owner));
    assert_int_equal(ask(r), CLAVE_OK);
    memnet_settle(r->owner.p);
    assert_int_equal(r->answers, 1);
    return r->err;
}

static clave_err end(struct runner *r, bool succeeded)
{
    assert_int_equal(clave_async_once_end(r->once, succeeded, on_ended, r), CLAVE_OK);
    memnet_settle(r->owner.p);
    assert_int_equal(r->ends, 1);
    return r->ended;
}

static void release(struct runner *r)
{
    assert_int_equal(owner_release(&r->owner), CLAVE_OK);
}

static void leave(struct runner *r)
{
    clave_async_once_free(r->once);
    owner_close(&r->owner);
}

/* All of it: the lock, the job unless it is done, the lock back. */
static clave_err run(struct runner *r, bool succeeded)
{
    clave_err err = begin(r);
    if (err == CLAVE_OK)
        assert_int_equal(end(r, succeeded), CLAVE_OK);
    release(r);
    return err;
}

/* ---- what counts ----------------------------------------------------------------------------- */

TEST(of_two_starters_one_runs)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct runner a, b;
    enter(&a, p, 0, HOUR);
    enter(&b, p, 1, HOUR);
    assert_int_equal(begin(&a), CLAVE_OK);
    assert_int_equal(a.former.state, CLAVE_ONCE_NONE);
    assert_int_equal(owner_begin_acquire(&b.owner, OWNER_FOREVER), CLAVE_OK);
    memnet_advance(p, 20 * MINUTE); /* it takes its time, and the other waits */
    assert_false(owner_holds(&b.owner));
    assert_int_equal(end(&a, true), CLAVE_OK);
    release(&a);
    assert_true(owner_holds(&b.owner));
    assert_int_equal(ask(&b), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(b.err, CLAVE_EDONE);
    assert_int_equal(b.former.state, CLAVE_ONCE_DONE);
    assert_int_equal(b.former.took_ms, 20 * MINUTE);
    assert_int_equal(b.former.age_ms, 20 * MINUTE);
    assert_string_equal(b.host, "a");
    assert_int_equal(b.former.token > 0, 1);
}

/* From the begin of the run before, whenever it ended and whenever others asked. */
TEST(the_period_is_from_begin_to_begin)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct runner a, b;
    enter(&a, p, 0, HOUR);
    enter(&b, p, 1, HOUR);
    assert_int_equal(begin(&a), CLAVE_OK);
    memnet_advance(p, 30 * MINUTE);
    assert_int_equal(end(&a, true), CLAVE_OK);
    release(&a);
    memnet_advance(p, 29 * MINUTE);
    assert_int_equal(run(&b, true), CLAVE_EDONE);
    memnet_advance(p, MINUTE - 1);
    assert_int_equal(run(&b, true), CLAVE_EDONE);
    assert_int_equal(b.former.age_ms, HOUR - 1);
    memnet_advance(p, 1);
    assert_int_equal(run(&b, true), CLAVE_OK);
    assert_int_equal(b.former.age_ms, HOUR);
    assert_int_equal(run(&a, true), CLAVE_EDONE);
    assert_string_equal(a.host, "b");
}

TEST(without_a_period_it_is_once_for_all)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct runner a, b;
    enter(&a, p, 0, 0);
    enter(&b, p, 1, 0);
    assert_int_equal(run(&a, true), CLAVE_OK);
    memnet_advance(p, 30 * HOUR);
    assert_int_equal(run(&b, true), CLAVE_EDONE);
    assert_int_equal(b.former.age_ms, -1);
    /* What an operator removes is forgotten, and what one makes counts. */
    assert_int_equal(memnet_delete(p, 0, "/job-once/hourly"), CLAVE_OK);
    assert_int_equal(run(&b, false), CLAVE_OK);
    assert_int_equal(memnet_delete(p, 0, "/job-once/hourly"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 0, "/job-once/hourly"), CLAVE_OK);
    assert_int_equal(run(&b, true), CLAVE_EDONE);
}

TEST(a_run_that_failed_is_repeated)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct runner a, b;
    enter(&a, p, 0, HOUR);
    enter(&b, p, 1, HOUR);
    assert_int_equal(run(&a, false), CLAVE_OK);
    assert_int_equal(run(&b, true), CLAVE_OK);
    assert_int_equal(b.former.state, CLAVE_ONCE_FAILED);
    assert_int_equal(run(&a, true), CLAVE_EDONE);
}

TEST(at_most_once_every_beginning_counts)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct runner a, b;
    enter(&a, p, 0, HOUR);
    enter(&b, p, 1, HOUR);
    a.o.at_most_once = b.o.at_most_once = true;
    assert_int_equal(run(&a, false), CLAVE_OK);
    assert_int_equal(run(&b, true), CLAVE_EDONE);
    memnet_advance(p, HOUR);
    assert_int_equal(begin(&b), CLAVE_OK);
    memnet_kill_session(p, 1);
    memnet_settle(p);
    assert_int_equal(run(&a, true), CLAVE_EDONE);
    assert_int_equal(a.former.state, CLAVE_ONCE_STARTED);
    memnet_advance(p, HOUR);
    assert_int_equal(run(&a, true), CLAVE_OK);
}

/* ---- runners that die, or are late ----------------------------------------------------------- */

TEST(a_start_whose_runner_died_is_repeated)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct runner a, b;
    enter(&a, p, 0, HOUR);
    enter(&b, p, 1, HOUR);
    assert_int_equal(begin(&a), CLAVE_OK);
    memnet_freeze(p, 0, true);
    memnet_advance(p, MINUTE); /* its session expires */
    assert_int_equal(begin(&b), CLAVE_OK);
    assert_int_equal(b.former.state, CLAVE_ONCE_STARTED);
    assert_string_equal(b.host, "a");
    /* The sleeper wakes up and thinks that it has done it: it is not believed. */
    memnet_freeze(p, 0, false);
    assert_int_equal(clave_async_once_end(a.once, true, on_ended, &a), CLAVE_OK);
    memnet_advance(p, 1000);
    assert_int_equal(a.ends, 1);
    assert_int_equal(a.ended, CLAVE_ELOST);
    assert_int_equal(end(&b, false), CLAVE_OK);
    release(&b);
    assert_int_equal(run(&b, true), CLAVE_OK);
}

TEST(a_lock_lost_before_the_start_starts_nothing)
{
    static const int before[] = {OP_GET_DATA, OP_MULTI};
    for (size_t i = 0; i < 2; i++) {
        CLOSED_BY(memnet_freed)
        struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
        CLOSED_BY(leave) struct runner a, b;
        enter(&a, p, 0, HOUR);
        enter(&b, p, 1, HOUR);
        assert_int_equal(memnet_create(p, 1, "/job-once"), CLAVE_OK);
        assert_int_equal(owner_acquire(&a.owner, OWNER_FOREVER), CLAVE_OK);
        memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, before[i], MEMNET_HOLD, 0});
        assert_int_equal(ask(&a), CLAVE_OK);
        memnet_settle(p);
        memnet_kill_session(p, 0);
        memnet_clear(p);
        memnet_advance(p, 1000);
        assert_int_equal(a.answers, 1);
        assert_int_equal(a.err, CLAVE_ELOST);
        assert_int_equal(run(&b, true), CLAVE_OK);
        assert_int_equal(b.former.state, CLAVE_ONCE_NONE);
    }
}

/* ---- answers that are lost ------------------------------------------------------------------- */

/* The multi in question, counted from the runner's first, is done and its answer lost, or it is
 * lost itself: the job runs once and is on record either way. */
static void lose(struct memnet *p, enum memnet_direction way, int op, unsigned skip)
{
    memnet_rule(p, (struct memnet_rule){0, way, op, MEMNET_LOSE, skip});
}

TEST(no_lost_answer_makes_it_twice_or_never)
{
    static const enum memnet_direction ways[] = {MEMNET_REQUEST, MEMNET_REPLY};
    static const int ops[] = {OP_GET_DATA, OP_MULTI, OP_CREATE2};
    for (unsigned i = 0; i < 3 * 2 * 4; i++) {
        CLOSED_BY(memnet_freed)
        struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
        CLOSED_BY(leave) struct runner a, b;
        enter(&a, p, 0, HOUR);
        enter(&b, p, 1, HOUR);
        /* Every other time there is a record to be replaced, out of date. */
        if (i % 4 >= 2) {
            assert_int_equal(run(&b, true), CLAVE_OK);
            memnet_advance(p, HOUR);
        }
        assert_int_equal(owner_acquire(&a.owner, OWNER_FOREVER), CLAVE_OK);
        lose(p, ways[i / 4 % 2], ops[i / 8], i % 2);
        assert_int_equal(ask(&a), CLAVE_OK);
        memnet_advance(p, 3000);
        assert_int_equal(a.answers, 1);
        assert_int_equal(a.err, CLAVE_OK);
        if (i % 4 >= 2)
            assert_string_equal(a.host, "b");
        assert_int_equal(clave_async_once_end(a.once, true, on_ended, &a), CLAVE_OK);
        memnet_advance(p, 3000);
        assert_int_equal(a.ends, 1);
        assert_int_equal(a.ended, CLAVE_OK);
        release(&a);
        assert_int_equal(run(&b, true), CLAVE_EDONE);
        assert_string_equal(b.host, "a");
    }
}

TEST(a_lost_answer_to_the_end_is_made_up_for)
{
    for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++) {
        CLOSED_BY(memnet_freed)
        struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
        CLOSED_BY(leave) struct runner a, b;
        enter(&a, p, 0, HOUR);
        enter(&b, p, 1, HOUR);
        assert_int_equal(begin(&a), CLAVE_OK);
        lose(p, (enum memnet_direction)way, OP_MULTI, 0);
        assert_int_equal(clave_async_once_end(a.once, true, on_ended, &a), CLAVE_OK);
        memnet_advance(p, 3000);
        assert_int_equal(a.ends, 1);
        assert_int_equal(a.ended, CLAVE_OK);
        release(&a);
        assert_int_equal(run(&b, true), CLAVE_EDONE);
    }
}

/* The answer is lost, then the session: nobody may say that it is not on record. */
TEST(a_lock_lost_behind_a_lost_answer_leaves_it_open)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct runner a, b;
    enter(&a, p, 0, HOUR);
    enter(&b, p, 1, HOUR);
    assert_int_equal(begin(&a), CLAVE_OK);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_MULTI, MEMNET_HOLD, 0});
    assert_int_equal(clave_async_once_end(a.once, true, on_ended, &a), CLAVE_OK);
    memnet_settle(p);
    memnet_refuse(p, 0, true);
    memnet_clear(p);
    memnet_advance(p, MINUTE);
    memnet_refuse(p, 0, false);
    memnet_advance(p, MINUTE);
    assert_int_equal(a.ends, 1);
    assert_int_equal(clave_err_classify(a.ended), CLAVE_CLASS_UNKNOWN);
    assert_int_equal(run(&b, true), CLAVE_EDONE);
}

TEST(a_lost_answer_to_the_touch_is_made_up_for)
{
    for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++) {
        CLOSED_BY(memnet_freed)
        struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
        CLOSED_BY(leave) struct runner a;
        enter(&a, p, 0, HOUR);
        assert_int_equal(run(&a, true), CLAVE_OK);
        memnet_advance(p, 10 * MINUTE);
        assert_int_equal(owner_acquire(&a.owner, OWNER_FOREVER), CLAVE_OK);
        lose(p, (enum memnet_direction)way, OP_MULTI, 0);
        assert_int_equal(ask(&a), CLAVE_OK);
        memnet_advance(p, 3000);
        assert_int_equal(a.answers, 1);
        assert_int_equal(a.err, CLAVE_EDONE);
        assert_true(a.former.age_ms >= 10 * MINUTE && a.former.age_ms < 11 * MINUTE);
    }
}

/* ---- clocks ---------------------------------------------------------------------------------- */

/* The servers' clock went wrong for a while: a record from the far future does not keep the job
 * from being done for years. */
TEST(a_record_from_the_future_is_out_of_date)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 1});
    CLOSED_BY(leave) struct runner a;
    enter(&a, p, 0, HOUR);
    p->wall_shift = 48 * HOUR;
    memnet_advance(p, 1);
    assert_int_equal(run(&a, true), CLAVE_OK);
    p->wall_shift = 0;
    memnet_advance(p, 1);
    assert_int_equal(run(&a, true), CLAVE_OK);
    p->wall_shift = -MINUTE;
    memnet_advance(p, 1);
    assert_int_equal(run(&a, true), CLAVE_EDONE);
    assert_int_equal(a.former.age_ms, 1 - MINUTE);
}

/* ---- what it costs, and misuse --------------------------------------------------------------- */

TEST(a_run_costs_four_requests)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 1});
    CLOSED_BY(leave) struct runner a;
    enter(&a, p, 0, HOUR);
    assert_int_equal(run(&a, true), CLAVE_OK);
    memnet_advance(p, HOUR);
    assert_int_equal(owner_acquire(&a.owner, OWNER_FOREVER), CLAVE_OK);
    memnet_reset_counts(p);
    assert_int_equal(ask(&a), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(end(&a, true), CLAVE_OK);
    /* To look, to ask the time, to begin; to end. A first run needs not ask the time. */
    assert_int_equal(p->clients[0].requests[OP_GET_DATA], 1);
    assert_int_equal(p->clients[0].requests[OP_MULTI], 3);
    memnet_reset_counts(p);
    assert_int_equal(ask(&a), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(a.err, CLAVE_EDONE);
    assert_int_equal(memnet_requests(p, 0), 2);
}

TEST(misuse)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 1});
    struct runner a;
    clave_async_once *o;
    enter(&a, p, 0, HOUR);
    assert_int_equal(owner_acquire(&a.owner, OWNER_FOREVER), CLAVE_OK);
    clave_async_client *c = p->clients[0].c;
    clave_once_options bad = {.size = 1};
    assert_int_equal(once_begin_held(&o, of_mutex(a.owner.m, a.owner.owner), &bad, on_begun, &a),
                     CLAVE_EINVAL);
    bad = (clave_once_options){.size = sizeof bad, .path = "/x", .period_ms = -1};
    assert_int_equal(once_begin_held(&o, of_mutex(a.owner.m, a.owner.owner), &bad, on_begun, &a),
                     CLAVE_EINVAL);
    bad = (clave_once_options){.size = sizeof bad};
    assert_int_equal(once_begin_held(&o, of_mutex(a.owner.m, a.owner.owner), &bad, on_begun, &a),
                     CLAVE_EINVAL);
    assert_int_equal(once_begin_held(&o, of_mutex(a.owner.m, a.owner.owner), NULL, on_begun, &a),
                     CLAVE_EINVAL);
    assert_int_equal(once_begin_held(&o, of_mutex(a.owner.m, a.owner.owner), &a.o, NULL, NULL),
                     CLAVE_EINVAL);
    bad.path = "x";
    assert_int_equal(once_begin_held(&o, of_mutex(a.owner.m, a.owner.owner), &bad, on_begun, &a),
                     CLAVE_EPATH);
    assert_null(o);
    assert_non_null(strstr(clave_async_client_errmsg(c), "the record's path"));
    assert_int_equal(ask(&a), CLAVE_OK);
    assert_int_equal(clave_async_once_end(a.once, true, NULL, NULL), CLAVE_EINVAL);
    memnet_settle(p);
    assert_int_equal(clave_async_once_end(a.once, true, NULL, NULL), CLAVE_OK);
    assert_int_equal(clave_async_once_end(a.once, true, NULL, NULL), CLAVE_EINVAL);
    memnet_settle(p);
    assert_int_equal(ask(&a), CLAVE_OK); /* the one before is freed in it */
    memnet_settle(p);
    assert_int_equal(a.err, CLAVE_EDONE);
    assert_int_equal(ask(&a), CLAVE_OK);
    clave_async_once_free(a.once); /* no answer comes */
    a.once = NULL;
    memnet_settle(p);
    assert_int_equal(a.answers, 0);
    /* A record removed under the runner's hands stays removed. */
    assert_int_equal(memnet_delete(p, 0, "/job-once/hourly"), CLAVE_OK);
    assert_int_equal(ask(&a), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(a.err, CLAVE_OK);
    assert_int_equal(memnet_delete(p, 0, "/job-once/hourly"), CLAVE_OK);
    assert_int_equal(end(&a, true), CLAVE_ENONODE);
    /* The client goes first in the middle of it. */
    assert_int_equal(ask(&a), CLAVE_OK);
    clave_async_mutex_free(a.owner.m);
    clave_async_once_free(a.once);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TEST_EACH_ALLOCATION(every_allocation_may_fail_once, 15)
{
    static const clave_acl open[] = {{CLAVE_PERM_ALL, "world", "anyone"}};
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 1, 6000);
    struct runner a;
    enter(&a, p, 0, HOUR);
    a.o.acls = open;
    a.o.nacls = 1;
    assert_int_equal(run(&a, true), CLAVE_OK);
    memnet_advance(p, HOUR);
    assert_int_equal(owner_acquire(&a.owner, OWNER_FOREVER), CLAVE_OK);
    failmem_arm(mem, which, 1);
    clave_err err = ask(&a);
    memnet_settle(p);
    assert_true(err == CLAVE_ENOMEM || a.answers == 1 ||
                !clave_async_client_is_connected(p->clients[0].c));
    bool runs = err == CLAVE_OK && a.answers == 1 && a.err == CLAVE_OK;
    if (runs && clave_async_once_end(a.once, true, on_ended, &a) == CLAVE_OK)
        memnet_advance(p, 1000);
    failmem_disarm(mem);
    memnet_advance(p, 3000);
    assert_true(err == CLAVE_ENOMEM || a.answers == 1);
    leave(&a);
}
