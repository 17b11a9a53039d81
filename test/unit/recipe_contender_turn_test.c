/* P3: when the end of the last predecessor may be taken for our turn without a listing,
 * and each condition that forbids it. Whose turn it is with foreign names about. */
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "server/server_internal.h"

/* A holds, B waits behind it. */
struct queue_of_two {
    struct memnet *p;
    struct mutex_owner a, b;
    char node_a[160], node_b[160];
};

static void name_of_last(struct queue_of_two *q, char *out, size_t cap)
{
    char names[8][96];
    size_t n = memnet_list(q->p, 2, "/l", names, 8);
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i] + strlen(names[i]) - 10, names[best] + strlen(names[best]) - 10) > 0)
            best = i;
    snprintf(out, cap, "/l/%s", names[best]);
}

static void two(struct queue_of_two *q, const clave_mutex_options *o)
{
    q->p = memnet_new(&(struct memnet_options){.clients = 3});
    owner_open(&q->a, q->p, 0, "/l", NULL);
    owner_open(&q->b, q->p, 1, "/l", o);
    owner_acquire(&q->a, OWNER_FOREVER);
    owner_acquire(&q->b, OWNER_FOREVER);
    snprintf(q->node_a, sizeof q->node_a, "%s", owner_grant(&q->a).node);
    name_of_last(q, q->node_b, sizeof q->node_b);
    memnet_reset_counts(q->p);
}

static void end_two(struct queue_of_two *q)
{
    owner_close(&q->a);
    owner_close(&q->b);
    assert_int_equal(memnet_stats(q->p).watches, 0);
    assert_int_equal(memnet_stats(q->p).ephemerals, 0);
    memnet_free(q->p);
}

static uint64_t listings_of_b(const struct queue_of_two *q)
{
    return q->p->clients[1].requests[OP_GET_CHILDREN2];
}

TEST(none_is_needed_when_all_conditions_hold)
{
    CLOSED_BY(end_two) struct queue_of_two q;
    two(&q, NULL);
    owner_release(&q.a);
    assert_true(owner_holds(&q.b));
    assert_int_equal(listings_of_b(&q), 0);
}

TEST(strict_lists_always)
{
    CLOSED_BY(end_two) struct queue_of_two q;
    two(&q, &(clave_mutex_options){.size = sizeof(clave_mutex_options), .strict = true});
    owner_release(&q.a);
    assert_true(owner_holds(&q.b));
    assert_int_equal(listings_of_b(&q), 1);
}

/* The order of two watches is not kept over a reconnect: the event that setWatches brings
 * decides nothing. */
TEST(an_event_over_a_reconnect_needs_a_listing)
{
    CLOSED_BY(end_two) struct queue_of_two q;
    two(&q, NULL);
    memnet_refuse(q.p, 1, true);
    owner_release(&q.a);
    memnet_refuse(q.p, 1, false);
    memnet_advance(q.p, 3000);
    assert_true(owner_holds(&q.b));
    assert_int_equal(listings_of_b(&q), 1);
    assert_true(memnet_saw(q.p, 1, CLAVE_STATE_SUSPENDED));
    assert_false(memnet_saw(q.p, 1, CLAVE_STATE_LOST));
}

/* Once both were seen again on the new connection, it is as good as the first. */
TEST(a_verified_reconnect_needs_none)
{
    CLOSED_BY(end_two) struct queue_of_two q;
    two(&q, NULL);
    memnet_cut(q.p, 1);
    memnet_advance(q.p, 3000);
    assert_int_equal(listings_of_b(&q), 1);
    assert_true(q.p->clients[1].requests[OP_GET_DATA] >= 1);
    memnet_reset_counts(q.p);
    owner_release(&q.a);
    assert_true(owner_holds(&q.b));
    assert_int_equal(listings_of_b(&q), 0);
}

/* Somebody writes to our node: until the new watch is answered for, its end could be
 * missed. */
TEST(an_own_watch_in_the_air_needs_a_listing)
{
    CLOSED_BY(end_two) struct queue_of_two q;
    two(&q, NULL);
    memnet_rule(q.p, (struct memnet_rule){1, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 0});
    assert_int_equal(memnet_set(q.p, 2, q.node_b, "__REVOKE__"), CLAVE_OK);
    owner_release(&q.a);
    assert_false(owner_holds(&q.b));
    memnet_clear(q.p);
    memnet_settle(q.p);
    assert_true(owner_holds(&q.b));
    assert_int_equal(listings_of_b(&q), 1);
}

TEST(a_renewed_own_watch_needs_none)
{
    CLOSED_BY(end_two) struct queue_of_two q;
    two(&q, NULL);
    assert_int_equal(memnet_set(q.p, 2, q.node_b, "__REVOKE__"), CLAVE_OK);
    assert_int_equal(memnet_set(q.p, 2, q.node_a, "__REVOKE__"), CLAVE_OK);
    assert_false(owner_holds(&q.b));
    assert_true(owner_holds(&q.a));
    memnet_reset_counts(q.p);
    owner_release(&q.a);
    assert_true(owner_holds(&q.b));
    assert_int_equal(listings_of_b(&q), 0);
}

/* Our node and then our predecessor's are deleted: our end is told first (F2), and what
 * follows is no grant but a new attempt. */
TEST(an_own_node_that_is_gone_starts_over)
{
    CLOSED_BY(end_two) struct queue_of_two q;
    two(&q, NULL);
    memnet_rule(q.p, (struct memnet_rule){1, MEMNET_REPLY, OP_NOTIFICATION, MEMNET_HOLD, 0});
    assert_int_equal(memnet_delete(q.p, 2, q.node_b), CLAVE_OK);
    owner_release(&q.a);
    /* The place is free, and others may take it before B knows. */
    owner_acquire(&q.a, OWNER_FOREVER);
    assert_true(owner_holds(&q.a));
    memnet_clear(q.p);
    memnet_settle(q.p);
    assert_false(owner_holds(&q.b));
    assert_int_equal(q.b.answers, 0);
    assert_int_equal(q.p->clients[1].requests[OP_CREATE2], 1);
    owner_release(&q.a);
    assert_true(owner_holds(&q.b));
    assert_int_equal(q.b.answers, 1);
}

/* What takes no part in the queue is not waited for, and costs no listing. */
TEST(other_children_cost_nothing)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 3});
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(memnet_create(p, 2, "/l/readme"), CLAVE_OK);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_reset_counts(p);
    owner_release(&a);
    assert_true(owner_holds(&b));
    assert_int_equal(p->clients[1].requests[OP_GET_CHILDREN2], 0);
}

/* CURATOR-43: "0abc" sorts first there, and blocks everybody. Names that begin as a number that
 * ran over does gave everybody ESEQUENCE. */
TEST(children_that_are_no_contenders_stop_nobody)
{
    static const char *const names[] = {"/l/0000000000abc", "/l/_c_0-lock--3", "/l/deadlock--3",
                                        "/l/lock-", "/l/lock--2147483649"};
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 3});
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    assert_int_equal(memnet_create(p, 2, "/l"), CLAVE_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(memnet_create(p, 2, names[i]), CLAVE_OK);
    owner_acquire(&a, OWNER_FOREVER);
    assert_true(owner_holds(&a));
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(b.ahead, 1);
    owner_release(&a);
    assert_true(owner_holds(&b));
}

/* Kazoo's names are sequential, and count by their digits. */
TEST(kazoo_names_stand_in_the_same_queue)
{
    static const char *const names[] = {
        "/l/6f1e__lock__0000000000", /* stock kazoo */
        "/l/6f1e-lock-0000000000",   /* a kazoo lock named as docs/guide/from-kazoo.md advises */
    };
    for (size_t i = 0; i < 2; i++) {
        CLOSED_BY(memnet_freed)
        struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
        CLOSED_BY(owner_close) struct mutex_owner b;
        owner_open(&b, p, 1, "/l", NULL);
        assert_int_equal(memnet_create(p, 0, "/l"), CLAVE_OK);
        assert_int_equal(memnet_create(p, 0, names[i]), CLAVE_OK);
        owner_acquire(&b, OWNER_FOREVER);
        assert_false(owner_holds(&b));
        assert_string_equal(b.predecessor, names[i]);
        memnet_reset_counts(p);
        assert_int_equal(memnet_delete(p, 0, names[i]), CLAVE_OK);
        assert_true(owner_holds(&b));
        assert_int_equal(p->clients[1].requests[OP_GET_CHILDREN2], 0);
    }
}

#define KAZOO "/l/0f3c5d7e9a1b4c2d8e6f0a1b2c3d4e5f__lock__0000000000"

struct warnings {
    size_t n;
    char text[512];
};

static void on_log(void *arg, int level, const char *msg)
{
    struct warnings *w = arg;
    if (level != CLAVE_LOG_WARN)
        return;
    w->n++;
    snprintf(w->text, sizeof w->text, "%s", msg);
}

/* Who holds beside one does not know; who lists the queue is told, once, at no cost. */
TEST(stock_kazoo_in_the_queue_is_warned_of)
{
    struct warnings w = {0};
    CLOSED_BY(memnet_freed)
    struct memnet *p = memnet_new(
        &(struct memnet_options){.clients = 2, .client_log = on_log, .client_log_arg = &w});
    CLOSED_BY(owner_close) struct mutex_owner b;
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&b, OWNER_FOREVER);
    owner_release(&b);
    assert_int_equal(w.n, 0);
    assert_int_equal(memnet_create(p, 0, "/l/6f1e-lock-0000000007"), CLAVE_OK); /* as is advised */
    owner_acquire(&b, OWNER_FOREVER);
    owner_release(&b);
    assert_int_equal(w.n, 0);
    assert_int_equal(memnet_delete(p, 0, "/l/6f1e-lock-0000000007"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 0, KAZOO), CLAVE_OK);
    memnet_reset_counts(p);
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(p->clients[1].requests[OP_GET_CHILDREN2], 1);
    assert_int_equal(w.n, 1);
    assert_non_null(strstr(w.text, KAZOO " has the default name of a kazoo lock, which takes no "
                                         "part in this queue"));
    assert_int_equal(memnet_delete(p, 0, KAZOO), CLAVE_OK);
    assert_true(owner_holds(&b));
    owner_release(&b);
    assert_int_equal(memnet_create(p, 0, KAZOO), CLAVE_OK);
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(w.n, 1);
}

/* Of three, the middle one's node goes while the last waits on it: the last lists. */
TEST(a_set_of_two_needs_a_listing)
{
    CLOSED_BY(end_two) struct queue_of_two q;
    two(&q, NULL);
    CLOSED_BY(owner_close) struct mutex_owner c;
    owner_open(&c, q.p, 2, "/l", NULL);
    owner_acquire(&c, OWNER_FOREVER);
    assert_int_equal(c.ahead, 2);
    memnet_reset_counts(q.p);
    clave_async_mutex_cancel(q.b.m, 0);
    memnet_settle(q.p);
    assert_int_equal(q.p->clients[2].requests[OP_GET_CHILDREN2], 1);
    assert_false(owner_holds(&c));
    assert_int_equal(c.next, 1);
    owner_release(&q.a);
    assert_true(owner_holds(&c));
}

/* Both before us vanish between the listing and our reads of them. */
TEST(predecessors_that_vanish_under_the_reads_are_listed_again)
{
    CLOSED_BY(end_two) struct queue_of_two q;
    two(&q, NULL);
    struct mutex_owner c;
    owner_open(&c, q.p, 2, "/l", NULL);
    memnet_rule(q.p, (struct memnet_rule){2, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 0});
    owner_acquire(&c, OWNER_FOREVER);
    owner_close(&q.b);
    owner_release(&q.a);
    memnet_clear(q.p);
    memnet_settle(q.p);
    assert_true(owner_holds(&c));
    assert_int_equal(c.answers, 1);
    owner_close(&c);
    owner_open(&q.b, q.p, 1, "/l", NULL);
}

/* After -2147483648 every newcomer sorts first (ZOOKEEPER-2944): no lock any more. */
TEST(a_counter_that_is_used_up_refuses)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    assert_int_equal(memnet_create(p, 1, "/l"), CLAVE_OK);
    clave__tree_find(&p->server->tree, clave__jbytes("/l"))->stat.cversion = INT32_MAX - 1000;
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_ESEQUENCE);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
    assert_non_null(strstr(clave_async_client_errmsg(p->clients[0].c), "/l"));
}

/* It stands first, as the node of any other client that got there before: no more than that. */
TEST(a_number_that_ran_over_is_waited_for)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    assert_int_equal(memnet_create(p, 1, "/l"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 1, "/l/6f1e-lock--2147483648"), CLAVE_OK);
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(a.answers, 0);
    assert_int_equal(a.ahead, 1);
    assert_int_equal(memnet_delete(p, 1, "/l/6f1e-lock--2147483648"), CLAVE_OK);
    assert_true(owner_holds(&a));
}
