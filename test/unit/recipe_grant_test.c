/* What a grant names, when it is over, what it may outlive, and writes that several guard. */
#include "lib/candidate.h"
#include "lib/failmem.h"
#include "lib/mutex_owner.h"
#include "lib/semaphore_user.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000 };

struct outcome {
    unsigned calls;
    clave_err err;
    size_t nops;
};

static void on_result(clave_async_client *c, const clave_result *res, void *arg)
{
    struct outcome *o = arg;
    (void)c;
    o->calls++;
    o->err = res->err;
    o->nops = res->nops;
}

static struct memnet *world(size_t clients)
{
    struct memnet *p =
        memnet_new(&(struct memnet_options){.clients = clients, .timeout_ms = TIMEOUT});
    assert_int_equal(memnet_create(p, 0, "/x"), CLAVE_OK);
    return p;
}

static clave_async_grant *grant_of(const struct mutex_owner *s)
{
    clave_async_grant *g;
    assert_int_equal(clave_async_mutex_grant(s->m, s->owner, &g), CLAVE_OK);
    return g;
}

static clave_err write_x(struct memnet *p, clave_async_grant *g)
{
    struct outcome o = {.err = CLAVE_EPROTO};
    clave_err err = clave_async_grant_set(g, "/x", "1", 1, -1, on_result, &o);
    if (err != CLAVE_OK)
        return err;
    memnet_settle(p);
    assert_int_equal(o.calls, 1);
    return o.err;
}

/* None of its calls does anything any more. */
static void assert_over(clave_async_grant *g)
{
    clave_op op = {.kind = CLAVE_OP_SET, .path = "/x", .version = -1};
    assert_true(clave_async_grant_deadline(g) == INT64_MIN);
    assert_false(clave_async_grant_valid_for(g, INT64_MIN, 0));
    assert_int_equal(clave_async_grant_create(g, "/y", "", 0, CLAVE_PERSISTENT, NULL, NULL),
                     CLAVE_ELOST);
    assert_int_equal(clave_async_grant_set(g, "/x", "", 0, -1, NULL, NULL), CLAVE_ELOST);
    assert_int_equal(clave_async_grant_delete(g, "/x", -1, NULL, NULL), CLAVE_ELOST);
    assert_int_equal(clave_async_grant_multi(&g, 1, &op, 1, NULL, NULL), CLAVE_ELOST);
}

TEST(it_names_what_is_held)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    CLOSED_BY(owner_close) struct mutex_owner a;
    clave_async_grant *none;
    owner_open(&a, p, 0, "/l", NULL);
    assert_int_equal(clave_async_mutex_grant(a.m, 0, &none), CLAVE_ENOTHELD);
    assert_null(none);
    owner_acquire(&a, OWNER_FOREVER);
    struct grant_facts f = owner_grant(&a);
    clave_async_grant *g = grant_of(&a);
    assert_string_equal(clave_async_grant_node(g), f.node);
    assert_int_equal(clave_async_grant_token(g), f.token);
    assert_int_equal(clave_async_grant_session_id(g), f.session_id);
    /* How long it is valid is asked of the holder, and moves on. */
    int64_t deadline = clave_async_grant_deadline(g);
    assert_int_equal(deadline, f.deadline);
    memnet_advance(p, TIMEOUT);
    assert_true(clave_async_grant_deadline(g) > deadline);
    assert_true(clave_async_grant_valid_for(g, p->now, 1));
    assert_false(clave_async_grant_valid_for(g, clave_async_grant_deadline(g), 1));
    assert_int_equal(write_x(p, g), CLAVE_OK);
    clave_async_grant_free(g);
    clave_async_grant_free(NULL);
    assert_true(owner_holds(&a));
}

TEST(no_copy_writes_after_a_release)
{
    for (int confirmed = 0; confirmed < 2; confirmed++) {
        CLOSED_BY(memnet_freed) struct memnet *p = world(1);
        CLOSED_BY(owner_close) struct mutex_owner a;
        struct outcome before = {0};
        owner_open(&a, p, 0, "/l", NULL);
        owner_acquire(&a, OWNER_FOREVER);
        owner_acquire(&a, OWNER_FOREVER); /* twice */
        clave_async_grant *g = grant_of(&a), *copy = clave_async_grant_ref(grant_of(&a));
        clave_async_grant_free(copy); /* one of its two references */
        owner_release(&a);
        assert_int_equal(write_x(p, copy), CLAVE_OK);
        assert_int_equal(clave_async_grant_set(g, "/x", "2", 1, -1, on_result, &before), CLAVE_OK);
        if (confirmed)
            owner_release_confirmed(&a);
        else
            assert_int_equal(clave_async_mutex_release(a.m, 0, NULL, NULL), CLAVE_OK);
        assert_over(g); /* at once, wherever the delete of the node is */
        assert_over(copy);
        memnet_settle(p);
        assert_int_equal(before.calls, 1);
        assert_int_equal(before.err, CLAVE_OK);
        owner_acquire(&a, OWNER_FOREVER);
        assert_over(g); /* that is another hold */
        clave_async_grant_free(g);
        clave_async_grant_free(copy);
    }
}

TEST(a_lost_grant_writes_nothing)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a;
    clave_async_grant *none;
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    clave_async_grant *g = grant_of(&a);
    memnet_refuse(p, 0, true);
    memnet_advance(p, 2 * TIMEOUT);
    assert_int_equal(a.lost, 1);
    assert_over(g);
    assert_int_equal(clave_async_mutex_grant(a.m, 0, &none), CLAVE_ELOST);
    memnet_refuse(p, 0, false);
    memnet_advance(p, TIMEOUT); /* in the next session neither */
    assert_over(g);
    clave_async_grant_free(g);
}

/* The holder does not know yet that its node is gone; the server does. */
TEST(the_server_decides_what_is_not_known_here)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    clave_async_grant *g = grant_of(&a);
    assert_int_equal(memnet_delete(p, 1, clave_async_grant_node(g)), CLAVE_OK);
    assert_true(owner_holds(&a));
    assert_int_equal(write_x(p, g), CLAVE_ELOST);
    clave_async_grant_free(g);
}

TEST(it_may_outlive_holder_and_client)
{
    struct memnet *p = world(1);
    struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 0, "/m", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    clave_async_grant *g = grant_of(&a), *h = grant_of(&b);
    owner_close(&a);
    assert_over(g);
    assert_true(clave_async_grant_valid_for(h, p->now, 1));
    memnet_close(p, 0);
    assert_over(h);
    clave_async_mutex_free(b.m);
    memnet_free(p);
    assert_over(h);
    assert_true(clave_async_grant_token(g) > 0);
    assert_non_null(strstr(clave_async_grant_node(h), "/m/"));
    clave_async_grant_free(g);
    clave_async_grant_free(h);
}

TEST(a_leases_grant_ends_with_the_lease)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    struct semaphore_user a;
    clave_async_grant *g[2];
    semaphore_user_open(&a, p, 0, 2);
    semaphore_user_acquire(&a, 2, OWNER_FOREVER);
    for (int i = 0; i < 2; i++)
        assert_int_equal(clave_async_lease_grant(a.held[i], &g[i]), CLAVE_OK);
    assert_int_equal(semaphore_user_release(&a), CLAVE_OK);
    assert_over(g[0]);
    assert_int_equal(write_x(p, g[1]), CLAVE_OK);
    semaphore_user_close(&a);
    assert_over(g[1]);
    clave_async_grant_free(g[0]);
    clave_async_grant_free(g[1]);
}

/* A connection that is lost ends the leadership, and the grant is over; the next one, of the same
 * candidate, has a larger token. */
TEST(each_leadership_has_a_grant_of_its_own)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(1);
    clave_latch_options o = {.size = sizeof o, .policy = CLAVE_POLICY_STANDARD};
    CLOSED_BY(candidate_close) struct candidate a;
    clave_async_grant *first, *second, *none;
    candidate_enter(&a, p, 0, "/e", &o);
    assert_int_equal(clave_async_latch_grant(a.l, &first), CLAVE_OK);
    memnet_cut(p, 0);
    assert_int_equal(clave_async_latch_grant(a.l, &none), CLAVE_ENOTHELD);
    assert_null(none);
    assert_over(first);
    memnet_advance(p, TIMEOUT);
    assert_int_equal(clave_async_latch_grant(a.l, &second), CLAVE_OK);
    assert_true(clave_async_grant_token(second) > clave_async_grant_token(first));
    assert_over(first);
    assert_int_equal(write_x(p, second), CLAVE_OK);
    assert_int_equal(clave_async_latch_resign(a.l), CLAVE_OK);
    assert_over(second);
    clave_async_grant_free(first);
    clave_async_grant_free(second);
}

TEST(several_grants_guard_one_write)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a, b, other;
    struct outcome o = {0};
    clave_op ops[] = {{.kind = CLAVE_OP_SET, .path = "/x", .data = "1", .len = 1, .version = -1},
                      {.kind = CLAVE_OP_CHECK, .path = "/x", .version = -1}};
    owner_open(&a, p, 0, "/a", NULL);
    owner_open(&b, p, 0, "/b", NULL);
    owner_open(&other, p, 1, "/c", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    owner_acquire(&other, OWNER_FOREVER);
    clave_async_grant *both[] = {grant_of(&a), grant_of(&b)};
    clave_async_grant *mixed[] = {both[0], grant_of(&other)};
    assert_int_equal(clave_async_grant_multi(both, 2, ops, 2, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_OK);
    assert_int_equal(o.nops, 2); /* the caller's */
    assert_int_equal(clave_async_grant_multi(both, 0, ops, 2, on_result, &o), CLAVE_EINVAL);
    assert_int_equal(clave_async_grant_multi(mixed, 2, ops, 2, on_result, &o), CLAVE_EINVAL);

    /* One is gone at the server only: nothing was done. */
    assert_int_equal(memnet_delete(p, 1, clave_async_grant_node(both[1])), CLAVE_OK);
    assert_int_equal(clave_async_grant_multi(both, 2, ops, 2, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_ELOST);
    assert_int_equal(o.nops, 2);
    memnet_advance(p, TIMEOUT); /* its heartbeat finds out */
    assert_int_equal(b.lost, 1);
    assert_int_equal(clave_async_grant_multi(both, 2, ops, 2, on_result, &o), CLAVE_ELOST);
    assert_int_equal(clave_async_grant_multi(both, 1, ops, 2, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_OK);
    assert_int_equal(o.calls, 3);
    clave_async_grant_free(both[0]);
    clave_async_grant_free(both[1]);
    clave_async_grant_free(mixed[1]);
}
