/* The pause after a holder that was lost: when it is, when it is not, and from when it counts. */
#include "clave/async/lock_delay.h"
#include "lib/async_grants.h"
#include "lib/each_fault.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "recipe/lock/held_mark.h"

enum { DELAY = 15000 };

struct holder {
    struct mutex_owner owner;
    clave_async_delay *delay;
    unsigned answers, pauses, ends;
    clave_err err, ended;
    char lost[32];
    int64_t wish, delay_ms; /* asked for (0: DELAY), told of */
    unsigned fences;        /* that were owed, */
    int64_t fenced_token;   /* and for whom the last one was */
    bool fenced_foreign;
};

static void on_begun(clave_async_delay *d, clave_err err, void *arg)
{
    (void)d;
    struct holder *h = arg;
    h->answers++;
    h->err = err;
}

static void on_pause(clave_async_delay *d, const clave_identity *who, int64_t delay_ms, void *arg)
{
    (void)d;
    struct holder *h = arg;
    h->pauses++;
    h->delay_ms = delay_ms;
    snprintf(h->lost, sizeof h->lost, "%s", who->host ? who->host : "");
}

static void on_ended(clave_async_delay *d, clave_err err, void *arg)
{
    (void)d;
    struct holder *h = arg;
    h->ends++;
    h->ended = err;
}

static void enter(struct holder *h, struct memnet *p, size_t client)
{
    *h = (struct holder){.owner = {0}};
    assert_int_equal(owner_open(&h->owner, p, client, "/l", NULL), CLAVE_OK);
}

/* Holding the lock. Does not settle. */
static clave_err ask_telling(struct holder *h, clave_delay_event_cb *event_cb)
{
    static const clave_identity ids[] = {{.host = "a"}, {.host = "b"}, {.host = "c"}};
    const clave_delay_options o = {.size = sizeof o,
                                   .path = "/l-held",
                                   .delay_ms = h->wish > 0 ? h->wish : DELAY,
                                   .identity = &ids[h->owner.client],
                                   .event_cb = event_cb,
                                   .event_arg = h};
    clave_async_delay_free(h->delay);
    h->answers = h->pauses = h->ends = 0;
    return delay_begin_held(&h->delay, of_mutex(h->owner.m, h->owner.owner), &o, on_begun, h);
}

static clave_err ask(struct holder *h)
{
    return ask_telling(h, on_pause);
}

static void acquire(struct holder *h)
{
    assert_int_equal(owner_acquire(&h->owner, OWNER_FOREVER), CLAVE_OK);
    assert_true(owner_holds(&h->owner));
    assert_int_equal(ask(h), CLAVE_OK);
    memnet_settle(h->owner.p);
}

static bool begins(const struct holder *h)
{
    return h->answers == 1 && h->err == CLAVE_OK;
}

/* As a program does at its end: the mark, then the lock, in one flight. */
static void release(struct holder *h)
{
    assert_int_equal(clave_async_delay_end(h->delay, on_ended, h), CLAVE_OK);
    assert_int_equal(owner_release(&h->owner), CLAVE_OK);
    assert_int_equal(h->ends, 1);
    assert_int_equal(h->ended, CLAVE_OK);
}

static void leave(struct holder *h)
{
    clave_async_delay_free(h->delay);
    owner_close(&h->owner);
}

/* Its session ends without a word of its own. */
static void lose(struct holder *h)
{
    memnet_kill_session(h->owner.p, h->owner.client);
    memnet_advance(h->owner.p, 1000);
    assert_int_equal(owner_release(&h->owner), CLAVE_ELOST);
}

TEST(after_a_release_there_is_none)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct holder a, b;
    enter(&a, p, 0);
    enter(&b, p, 1);
    acquire(&a);
    assert_true(begins(&a));
    memnet_reset_counts(p);
    release(&a);
    assert_int_equal(memnet_requests(p, 0), 2);
    acquire(&b);
    assert_true(begins(&b));
    assert_int_equal(b.pauses, 0);
}

TEST(after_a_loss_the_next_waits)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct holder a, b;
    enter(&a, p, 0);
    enter(&b, p, 1);
    acquire(&a);
    assert_true(begins(&a));
    lose(&a);
    acquire(&b);
    assert_false(begins(&b));
    assert_int_equal(b.pauses, 1);
    assert_int_equal(b.delay_ms, DELAY);
    assert_string_equal(b.lost, "a");
    memnet_advance(p, DELAY - 1);
    assert_int_equal(b.answers, 0);
    memnet_advance(p, 1);
    assert_true(begins(&b));
    release(&b);
    acquire(&a);
    assert_true(begins(&a));
}

TEST(lost_in_the_delay_the_next_begins_anew)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 3});
    CLOSED_BY(leave) struct holder a, b, c;
    enter(&a, p, 0);
    enter(&b, p, 1);
    enter(&c, p, 2);
    acquire(&a);
    lose(&a);
    acquire(&b);
    memnet_advance(p, DELAY - 1000);
    lose(&b);
    memnet_advance(p, 1000);
    assert_int_equal(b.answers, 1); /* its pause is over, and its lock is gone */
    assert_int_equal(b.err, CLAVE_ELOST);
    acquire(&c);
    assert_int_equal(c.pauses, 1);
    assert_string_equal(c.lost, "a");
    memnet_advance(p, DELAY);
    assert_true(begins(&c));
}

/* As long as can be said: it is no time in the past. */
TEST(the_longest_delay_does_not_end)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct holder a, b;
    enter(&a, p, 0);
    enter(&b, p, 1);
    b.wish = INT64_MAX;
    acquire(&a);
    lose(&a);
    acquire(&b);
    assert_int_equal(b.pauses, 1);
    memnet_advance(p, 10 * DELAY);
    assert_int_equal(b.answers, 0);
}

static void free_at_pause(clave_async_delay *d, const clave_identity *who, int64_t delay_ms,
                          void *arg)
{
    struct holder *h = arg;
    on_pause(d, who, delay_ms, arg);
    clave_async_delay_free(d);
    h->delay = NULL;
}

/* An owner that is told of the delay may have no patience for it. */
TEST(freed_when_the_delay_begins_it_says_nothing_more)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct holder a, b;
    enter(&a, p, 0);
    enter(&b, p, 1);
    acquire(&a);
    lose(&a);
    assert_int_equal(owner_acquire(&b.owner, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(ask_telling(&b, free_at_pause), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(b.pauses, 1);
    memnet_advance(p, DELAY);
    assert_int_equal(b.answers, 0);
}

/* Whoever takes the lock without a mark begins at once, and changes nothing. */
TEST(who_does_not_take_part_does_not_wait)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct holder a, b;
    enter(&a, p, 0);
    enter(&b, p, 1);
    acquire(&a);
    lose(&a);
    assert_int_equal(owner_acquire(&b.owner, OWNER_FOREVER), CLAVE_OK);
    assert_true(owner_holds(&b.owner));
    assert_int_equal(owner_release(&b.owner), CLAVE_OK);
    acquire(&b);
    assert_int_equal(b.pauses, 1);
}

TEST(lost_answers_are_made_up_for)
{
    static const int ops[] = {OP_GET_DATA, OP_MULTI};
    for (unsigned i = 0; i < 8; i++) {
        CLOSED_BY(memnet_freed)
        struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
        CLOSED_BY(leave) struct holder a, b;
        enter(&a, p, 0);
        enter(&b, p, 1);
        enum memnet_direction way = i & 1 ? MEMNET_REPLY : MEMNET_REQUEST;
        bool after_loss = i & 2;
        if (after_loss) {
            acquire(&b);
            lose(&b);
        }
        assert_int_equal(owner_acquire(&a.owner, OWNER_FOREVER), CLAVE_OK);
        memnet_rule(p, (struct memnet_rule){0, way, ops[i >> 2], MEMNET_LOSE, 0});
        assert_int_equal(ask(&a), CLAVE_OK);
        memnet_advance(p, after_loss ? DELAY + 3000 : 3000);
        assert_true(begins(&a));
        assert_int_equal(a.pauses, after_loss);
        /* The end: the removal, or the answer to it. */
        memnet_rule(p, (struct memnet_rule){0, way, OP_MULTI, MEMNET_LOSE, 0});
        assert_int_equal(clave_async_delay_end(a.delay, on_ended, &a), CLAVE_OK);
        memnet_advance(p, 3000);
        assert_int_equal(a.ends, 1);
        assert_int_equal(a.ended, CLAVE_OK);
        assert_int_equal(owner_release(&a.owner), CLAVE_OK);
        acquire(&b);
        assert_true(begins(&b));
        assert_int_equal(b.pauses, 0);
    }
}

/* ---- fences ---------------------------------------------------------------------------- */

static void on_owed(clave_async_delay *d, const struct held_mark *left, void *arg)
{
    (void)d;
    struct holder *h = arg;
    h->fences++;
    h->fenced_token = left->token;
    h->fenced_foreign = left->foreign;
    snprintf(h->lost, sizeof h->lost, "%s", left->identity->host ? left->identity->host : "");
}

/* Acquires, and asks with a fence and without a delay. */
static void acquire_fencing(struct holder *h, const char *harmless,
                            const struct held_mark *unmarked)
{
    static const clave_identity ids[] = {{.host = "a"}, {.host = "b"}, {.host = "c"}};
    const clave_delay_options o = {
        .size = sizeof o, .path = "/l-held", .identity = &ids[h->owner.client]};
    const struct held_mark_fence fence = {
        .owed = on_owed, .harmless = harmless, .unmarked = unmarked};
    clave_async_grant *g = NULL;
    assert_int_equal(owner_acquire(&h->owner, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(clave_async_mutex_grant(h->owner.m, h->owner.owner, &g), CLAVE_OK);
    clave_async_delay_free(h->delay);
    h->answers = h->fences = h->ends = 0;
    assert_int_equal(clave__delay_begin(&h->delay, g, &o, &fence, on_begun, h), CLAVE_OK);
    clave_async_grant_free(g);
    memnet_settle(h->owner.p);
}

static int64_t token_of(const struct holder *h)
{
    struct grant_facts f;
    assert_true(clave__mutex_held(h->owner.m, h->owner.owner, &f));
    return f.token;
}

static void fenced(struct holder *h)
{
    clave__delay_fenced(h->delay);
    memnet_settle(h->owner.p);
}

TEST(the_next_begins_after_its_fence)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 3});
    CLOSED_BY(leave) struct holder a, b, c;
    enter(&a, p, 0);
    enter(&b, p, 1);
    enter(&c, p, 2);
    acquire_fencing(&a, NULL, NULL);
    assert_int_equal(a.fences, 0);
    assert_true(begins(&a));
    int64_t token = token_of(&a);
    lose(&a);
    acquire_fencing(&b, NULL, NULL);
    assert_int_equal(b.fences, 1);
    assert_int_equal(b.fenced_token, token);
    assert_false(b.fenced_foreign);
    assert_string_equal(b.lost, "a");
    memnet_advance(p, DELAY);
    assert_int_equal(b.answers, 0);
    /* It gives up, or crashes: the mark stands, and the next one fences the same holder. */
    assert_int_equal(clave_async_delay_end(b.delay, NULL, NULL), CLAVE_EINVAL);
    assert_int_equal(owner_release(&b.owner), CLAVE_OK);
    acquire_fencing(&c, NULL, NULL);
    assert_int_equal(c.fences, 1);
    assert_int_equal(c.fenced_token, token);
    fenced(&c);
    assert_true(begins(&c));
    release(&c);
    acquire_fencing(&b, NULL, NULL);
    assert_int_equal(b.fences, 0);
    assert_true(begins(&b));
}

/* The write of the own mark is lost, or its answer: one fence is enough. */
TEST(a_lost_answer_needs_no_second_fence)
{
    for (unsigned i = 0; i < 2; i++) {
        CLOSED_BY(memnet_freed)
        struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
        CLOSED_BY(leave) struct holder a, b;
        enter(&a, p, 0);
        enter(&b, p, 1);
        acquire_fencing(&a, NULL, NULL);
        lose(&a);
        acquire_fencing(&b, NULL, NULL);
        assert_int_equal(b.fences, 1);
        memnet_rule(p, (struct memnet_rule){1, i == 0 ? MEMNET_REQUEST : MEMNET_REPLY, OP_MULTI,
                                            MEMNET_LOSE, 0});
        clave__delay_fenced(b.delay);
        memnet_advance(p, 3000);
        assert_true(begins(&b));
        assert_int_equal(b.fences, 1);
        release(&b);
    }
}

/* A leader that is elected once more after it has lost a term, with its command gone. */
TEST(an_own_harmless_mark_is_not_fenced)
{
    char mark[64];
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct holder a, b;
    enter(&a, p, 0);
    enter(&b, p, 1);
    acquire_fencing(&a, NULL, NULL);
    snprintf(mark, sizeof mark, "%s", clave__delay_mark_id(a.delay));
    lose(&a);
    acquire_fencing(&b, mark, NULL);
    assert_int_equal(b.fences, 0);
    assert_true(begins(&b));
    lose(&b);
    acquire_fencing(&a, mark, NULL); /* and not that of another */
    assert_int_equal(a.fences, 1);
    assert_string_equal(a.lost, "b");
}

/* A mark is written for a holder that leaves none, before it is fenced: a crash leaves that one. */
TEST(a_foreign_holder_gets_a_mark)
{
    const clave_identity who = {.text = "10.0.0.7"};
    const struct held_mark before = {.token = 77, .foreign = true, .identity = &who};
    for (unsigned i = 0; i < 3; i++) {
        CLOSED_BY(memnet_freed)
        struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
        CLOSED_BY(leave) struct holder a, b;
        enter(&a, p, 0);
        enter(&b, p, 1);
        if (i > 0)
            memnet_rule(p, (struct memnet_rule){0, i == 1 ? MEMNET_REQUEST : MEMNET_REPLY, OP_MULTI,
                                                MEMNET_LOSE, 0});
        acquire_fencing(&a, NULL, &before);
        memnet_advance(p, 3000);
        assert_int_equal(a.fences, 1);
        assert_int_equal(a.fenced_token, 77);
        assert_true(a.fenced_foreign);
        assert_int_equal(a.answers, 0);
        lose(&a);
        acquire_fencing(&b, NULL, NULL);
        assert_int_equal(b.fences, 1);
        assert_int_equal(b.fenced_token, 77);
        assert_true(b.fenced_foreign);
        fenced(&b);
        assert_true(begins(&b));
        release(&b);
    }
}

/* Of two that are owed, the older mark comes first. */
TEST(a_mark_and_a_foreign_holder_are_both_fenced)
{
    const clave_identity who = {.text = "10.0.0.7"};
    const struct held_mark before = {.token = 77, .foreign = true, .identity = &who};
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(leave) struct holder a, b;
    enter(&a, p, 0);
    enter(&b, p, 1);
    acquire_fencing(&a, NULL, NULL);
    lose(&a);
    acquire_fencing(&b, NULL, &before);
    assert_int_equal(b.fences, 1);
    assert_string_equal(b.lost, "a");
    fenced(&b);
    assert_int_equal(b.fences, 2);
    assert_int_equal(b.fenced_token, 77);
    fenced(&b);
    assert_int_equal(b.fences, 2);
    assert_true(begins(&b));
    release(&b);
}

TEST(misuse)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 1});
    CLOSED_BY(leave) struct holder a;
    clave_async_delay *d;
    clave_delay_options o = {.size = sizeof o, .path = "/x", .delay_ms = -1};
    enter(&a, p, 0);
    assert_int_equal(owner_acquire(&a.owner, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(delay_begin_held(&d, of_mutex(a.owner.m, a.owner.owner), &o, on_begun, &a),
                     CLAVE_EINVAL);
    o.delay_ms = 0;
    assert_int_equal(delay_begin_held(&d, of_mutex(a.owner.m, a.owner.owner), &o, NULL, &a),
                     CLAVE_EINVAL);
    assert_int_equal(delay_begin_held(&d, of_mutex(a.owner.m, a.owner.owner), NULL, on_begun, &a),
                     CLAVE_EINVAL);
    o.path = "/x/";
    assert_int_equal(delay_begin_held(&d, of_mutex(a.owner.m, a.owner.owner), &o, on_begun, &a),
                     CLAVE_EPATH);
    o.path = NULL;
    assert_int_equal(delay_begin_held(&d, of_mutex(a.owner.m, a.owner.owner), &o, on_begun, &a),
                     CLAVE_EINVAL);
    assert_null(d);
    assert_int_equal(ask(&a), CLAVE_OK);
    assert_int_equal(clave_async_delay_end(a.delay, NULL, NULL), CLAVE_EINVAL);
    memnet_settle(p);
    release(&a);
    assert_int_equal(clave_async_delay_end(a.delay, NULL, NULL), CLAVE_EINVAL);
}

TEST_EACH_ALLOCATION(every_allocation_may_fail_once, 10)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 1, 6000);
    struct holder a;
    enter(&a, p, 0);
    assert_int_equal(owner_acquire(&a.owner, OWNER_FOREVER), CLAVE_OK);
    failmem_arm(mem, which, 1);
    clave_err err = ask(&a);
    memnet_settle(p);
    if (err == CLAVE_OK && begins(&a))
        (void)clave_async_delay_end(a.delay, on_ended, &a);
    memnet_settle(p);
    failmem_disarm(mem);
    memnet_advance(p, 3000);
    assert_true(err == CLAVE_ENOMEM || a.answers == 1);
    leave(&a);
}
