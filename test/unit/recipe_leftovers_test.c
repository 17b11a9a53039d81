/* 10 000 acquires of every recipe that time out, are cancelled or fail, over connections that go at
 * the worst of moments: each is answered once, and neither a node nor a watch is left. */
#include "clave/async/latch.h"
#include "clave/async/multilock.h"
#include "clave/async/semaphore.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000, ACQUIRES = 10000, HOLDER = 0, LOSER = 1 };

/* One who wants it, at `path` of the recipe. */
struct want {
    clave_async_client *c;
    const char *path;
    bool holds;   /* is to have it, not to wait */
    void *recipe; /* of the kind */
    unsigned answers;
    clave_err err;
};

struct kind {
    const char *name;
    clave_err (*open)(struct want *w);
    clave_err (*ask)(struct want *w, int64_t deadline);
    void (*cancel)(struct want *w);
    void (*close)(struct want *w);
    bool once; /* opened anew for each acquire */
};

static void answered(struct want *w, clave_err err)
{
    w->answers++;
    w->err = err;
}

/* ---- the mutex, and what is one ---------------------------------------------------------- */

static void on_mutex(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    answered(arg, err);
}

static clave_err open_mutex(struct want *w)
{
    clave_async_mutex *made;
    clave_err err = clave_async_mutex_new(&made, w->c, w->path, NULL);
    w->recipe = made;
    return err;
}

static clave_err open_simple(struct want *w)
{
    const clave_mutex_options o = {.size = sizeof o, .simple_prefix = "lock_"};
    clave_async_mutex *made;
    clave_err err = clave_async_mutex_new(&made, w->c, w->path, &o);
    w->recipe = made;
    return err;
}

static clave_err ask_mutex(struct want *w, int64_t deadline)
{
    return clave_async_mutex_acquire(w->recipe, 0, deadline, on_mutex, w);
}

static void cancel_mutex(struct want *w)
{
    (void)clave_async_mutex_cancel(w->recipe, 0);
}

static void close_mutex(struct want *w)
{
    clave_async_mutex_free(w->recipe);
}

/* ---- the sides of a read-write lock ------------------------------------------------------- */

static clave_err open_rwlock(struct want *w)
{
    clave_async_rwlock *made;
    clave_err err = clave_async_rwlock_new(&made, w->c, w->path, NULL);
    w->recipe = made;
    return err;
}

static clave_err ask_read(struct want *w, int64_t deadline)
{
    return clave_async_mutex_acquire(clave_async_rwlock_read(w->recipe), 0, deadline, on_mutex, w);
}

static clave_err ask_write(struct want *w, int64_t deadline)
{
    return clave_async_mutex_acquire(clave_async_rwlock_write(w->recipe), 0, deadline, on_mutex, w);
}

static void cancel_sides(struct want *w)
{
    (void)clave_async_mutex_cancel(clave_async_rwlock_read(w->recipe), 0);
    (void)clave_async_mutex_cancel(clave_async_rwlock_write(w->recipe), 0);
}

static void close_rwlock(struct want *w)
{
    clave_async_rwlock_free(w->recipe);
}

/* ---- the semaphore: two of three leases are out of reach, so one is had and given back ------ */

static void on_leases(clave_async_semaphore *s, clave_err err, clave_async_lease *const *leases,
                      size_t n, void *arg)
{
    (void)s;
    (void)leases;
    (void)n;
    answered(arg, err);
}

static clave_err open_semaphore(struct want *w)
{
    clave_semaphore_options o = {.size = sizeof o, .limit = 3};
    clave_async_semaphore *made;
    clave_err err = clave_async_semaphore_new(&made, w->c, w->path, &o);
    w->recipe = made;
    return err;
}

static clave_err ask_leases(struct want *w, int64_t deadline)
{
    return clave_async_semaphore_acquire(w->recipe, 0, 2, deadline, on_leases, w);
}

static void cancel_leases(struct want *w)
{
    (void)clave_async_semaphore_cancel(w->recipe, 0);
}

static void close_semaphore(struct want *w)
{
    clave_async_semaphore_free(w->recipe);
}

/* ---- several locks: the first is free ------------------------------------------------------ */

static void on_multilock(clave_async_multilock *ml, uint64_t owner, clave_err err,
                         const char *failed, void *arg)
{
    (void)ml;
    (void)owner;
    (void)failed;
    answered(arg, err);
}

static clave_err open_multilock(struct want *w)
{
    const clave_multilock_part parts[] = {{"/before", CLAVE_MULTILOCK_MUTEX},
                                          {w->path, CLAVE_MULTILOCK_MUTEX}};
    size_t first = w->holds; /* the holder has but the second */
    clave_async_multilock *made;
    clave_err err = clave_async_multilock_new(&made, w->c, parts + first, 2 - first, NULL);
    w->recipe = made;
    return err;
}

static clave_err ask_multilock(struct want *w, int64_t deadline)
{
    return clave_async_multilock_acquire(w->recipe, 0, deadline, on_multilock, w);
}

static void cancel_multilock(struct want *w)
{
    (void)clave_async_multilock_cancel(w->recipe, 0);
}

static void close_multilock(struct want *w)
{
    clave_async_multilock_free(w->recipe);
}

/* ---- candidates, who stand for one acquire -------------------------------------------------- */

static void on_latch(clave_async_latch *l, clave_err err, void *arg)
{
    (void)l;
    answered(arg, err);
}

static clave_err open_latch(struct want *w)
{
    clave_async_latch *made;
    clave_err err = clave_async_latch_new(&made, w->c, w->path, NULL);
    w->recipe = made;
    return err;
}

static clave_err open_unfair(struct want *w)
{
    const clave_latch_options o = {.size = sizeof o, .layout = CLAVE_LATCH_UNFAIR};
    clave_async_latch *made;
    clave_err err = clave_async_latch_new(&made, w->c, w->path, &o);
    w->recipe = made;
    return err;
}

static clave_err ask_latch(struct want *w, int64_t deadline)
{
    clave_err err = clave_async_latch_await(w->recipe, deadline, on_latch, w);
    return err == CLAVE_OK ? clave_async_latch_start(w->recipe) : err;
}

static void cancel_latch(struct want *w)
{
    (void)clave_async_latch_cancel(w->recipe, on_latch, w);
}

static void close_latch(struct want *w)
{
    clave_async_latch_free(w->recipe);
}

/* ---- how an acquire ends -------------------------------------------------------------------- */

struct trial {
    struct memnet *p;
    const struct kind *kind;
    struct want loser;   /* waits for what is held */
    struct want refused; /* may create nothing where it wants to */
    unsigned asked;
};

static void open_want(struct want *w, const struct kind *kind)
{
    assert_int_equal(kind->open(w), CLAVE_OK);
}

static void ask(struct trial *t, struct want *w, int64_t within_ms)
{
    int64_t deadline = within_ms < 0 ? CLAVE_NEVER : t->p->now + within_ms;
    if (t->kind->once)
        open_want(w, t->kind);
    assert_int_equal(t->kind->ask(w, deadline), CLAVE_OK);
    t->asked++;
}

static void cancel(struct trial *t)
{
    t->kind->cancel(&t->loser);
}

static void lose(struct trial *t, enum memnet_direction way, int op)
{
    memnet_rule(t->p, (struct memnet_rule){LOSER, way, op, MEMNET_LOSE, 0});
}

static void times_out(struct trial *t)
{
    ask(t, &t->loser, 2);
    memnet_advance(t->p, 2);
}

static void tries(struct trial *t)
{
    ask(t, &t->loser, 0);
    memnet_advance(t->p, 1);
}

static void is_cancelled_at_once(struct trial *t)
{
    ask(t, &t->loser, -1);
    cancel(t);
}

static void is_cancelled_while_it_waits(struct trial *t)
{
    ask(t, &t->loser, -1);
    memnet_settle(t->p);
    cancel(t);
}

static void is_cancelled_in_between(struct trial *t)
{
    memnet_rule(t->p, (struct memnet_rule){LOSER, MEMNET_REPLY, OP_CREATE2, MEMNET_HOLD, 0});
    ask(t, &t->loser, -1);
    memnet_settle(t->p);
    cancel(t);
    memnet_clear(t->p);
}

static void fails(struct trial *t)
{
    ask(t, &t->refused, -1);
    memnet_settle(t->p);
    assert_int_equal(t->refused.err, CLAVE_ENOAUTH);
}

static void times_out_over_a_lost_answer(struct trial *t)
{
    lose(t, MEMNET_REPLY, OP_CREATE2);
    ask(t, &t->loser, 5);
    memnet_advance(t->p, 400);
}

static void is_cancelled_over_a_lost_delete(struct trial *t)
{
    lose(t, MEMNET_REPLY, OP_DELETE);
    ask(t, &t->loser, -1);
    memnet_settle(t->p);
    memnet_cut(t->p, LOSER);
    cancel(t);
    memnet_advance(t->p, 400);
}

static void (*const endings[])(struct trial *t) = {
    times_out,
    tries,
    is_cancelled_at_once,
    is_cancelled_while_it_waits,
    is_cancelled_in_between,
    fails,
    times_out_over_a_lost_answer,
    is_cancelled_over_a_lost_delete,
};

/* ---- all of them ------------------------------------------------------------------------------
 */

static void close_ground(struct memnet *p)
{
    static const clave_acl acl = {CLAVE_PERM_READ, "world", "anyone"};
    clave_create_options o = {.size = sizeof o, .acls = &acl, .nacls = 1};
    assert_int_equal(clave_async_create(p->clients[HOLDER].c, "/closed", NULL, 0, &o, NULL, NULL),
                     CLAVE_OK);
    memnet_settle(p);
}

static void check_left(struct trial *t, const struct server_stats *before)
{
    memnet_clear(t->p);
    memnet_advance(t->p, 400);
    struct server_stats now = memnet_stats(t->p);
    if (t->loser.answers + t->refused.answers != t->asked || now.ephemerals != before->ephemerals ||
        now.watches > before->watches)
        fail_msg("%s: of %u asked %u answered; nodes %zu of %zu, watches %zu of %zu", t->kind->name,
                 t->asked, t->loser.answers + t->refused.answers, (size_t)now.ephemerals,
                 (size_t)before->ephemerals, (size_t)now.watches, (size_t)before->watches);
}

static void nothing_is_left_by(const struct kind *kind)
{
    CLOSED_BY(memnet_freed)
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = TIMEOUT});
    struct trial t = {.p = p, .kind = kind};
    struct want holder = {.c = p->clients[HOLDER].c, .path = "/x/held", .holds = true};
    t.loser = (struct want){.c = p->clients[LOSER].c, .path = "/x/held"};
    t.refused = (struct want){.c = p->clients[LOSER].c, .path = "/closed/x"};
    memnet_settle(p);
    close_ground(p);
    open_want(&holder, kind);
    assert_int_equal(kind->ask(&holder, CLAVE_NEVER), CLAVE_OK);
    if (!kind->once) {
        open_want(&t.loser, kind);
        open_want(&t.refused, kind);
    }
    memnet_advance(p, 2 * TIMEOUT); /* a hold that has settled has its watch */
    assert_int_equal(holder.answers, 1);
    assert_int_equal(holder.err, CLAVE_OK);
    struct server_stats before = memnet_stats(p);
    for (unsigned i = 0; i < ACQUIRES; i++) {
        endings[i % (sizeof endings / sizeof *endings)](&t);
        if (kind->once)
            kind->close(endings[i % 8] == fails ? &t.refused : &t.loser);
        memnet_settle(p);
        if (i % 500 == 0)
            check_left(&t, &before);
    }
    check_left(&t, &before);
    assert_int_equal(t.asked, ACQUIRES);
    if (!kind->once) {
        kind->close(&t.loser);
        kind->close(&t.refused);
    }
    kind->close(&holder);
    memnet_settle(p);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
    assert_int_equal(memnet_stats(p).watches, 0);
}

/* The holder of a read-write lock writes. */
static const struct kind kinds[] = {
    {"mutex", open_mutex, ask_mutex, cancel_mutex, close_mutex, false},
    {"write lock", open_rwlock, ask_write, cancel_sides, close_rwlock, false},
    {"semaphore", open_semaphore, ask_leases, cancel_leases, close_semaphore, false},
    {"multilock", open_multilock, ask_multilock, cancel_multilock, close_multilock, false},
    {"latch", open_latch, ask_latch, cancel_latch, close_latch, true},
    {"simple lock", open_simple, ask_mutex, cancel_mutex, close_mutex, false},
    {"unfair election", open_unfair, ask_latch, cancel_latch, close_latch, true},
};

static clave_err ask_read_behind_a_write(struct want *w, int64_t deadline)
{
    return w->holds ? ask_write(w, deadline) : ask_read(w, deadline);
}

TEST(ten_thousand_acquires_leave_nothing)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        nothing_is_left_by(&kinds[i]);
}

TEST(ten_thousand_reads_behind_a_write_leave_nothing)
{
    static const struct kind read = {"read lock",  open_rwlock,  ask_read_behind_a_write,
                                     cancel_sides, close_rwlock, false};
    nothing_is_left_by(&read);
}
