/* server_fair_schedule_test.c - how much of its clients' input a server takes in one turn of the
 * loop, and in which order: no client waits long because others ask for much. */
#include "lib/memserver.h"
#include "lib/unit.h"

/* A write is reckoned as 13, a read as 3. A client that asks for much has three quarters of a turn:
 * TEN of its writes. */
enum { TURN = 172, TEN = 10, QUARTER = 43 };

static void add(struct memserver_conn *c, int n)
{
    for (int i = 0; i < n; i++) {
        union wire_body body = memserver_create_body("/n-", "", 2);
        memserver_request(c, OP_CREATE, &body);
    }
}

static void ask(struct memserver_conn *c, int n)
{
    for (int i = 0; i < n; i++) {
        union wire_body body = {.read.path = clave__jbytes("/")};
        memserver_request(c, OP_GET_DATA, &body);
    }
}

static uint64_t added(const struct memserver *d)
{
    return memserver_stats(d).requests[OP_CREATE];
}

static uint64_t asked(const struct memserver *d)
{
    return memserver_stats(d).requests[OP_GET_DATA];
}

static void next_turn(struct memserver *d, int64_t ms)
{
    d->now += ms;
    clave__server_tick(d->s, d->now, memserver_wall(d));
    memserver_settle(d);
}

static void open_in_turns(struct memserver *d)
{
    struct server_options o = {.work_a_turn = TURN};
    memserver_open(d, &o);
}

/* What a turn leaves comes in the next ones, in order. */
TEST(a_turn_takes_so_much)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn a;
    open_in_turns(&d);
    memserver_connect(&a, &d, 30000);
    next_turn(&d, 1);
    add(&a, 25);
    assert_int_equal(added(&d), TEN);
    assert_true(clave__server_deadline(d.s) <= d.now);
    assert_false(clave__server_conn_wants_read(a.c));
    next_turn(&d, 0);
    assert_int_equal(added(&d), 2 * TEN);
    next_turn(&d, 0);
    assert_int_equal(added(&d), 25);
    assert_true(clave__server_conn_wants_read(a.c));
    assert_true(clave__server_deadline(d.s) > d.now);
    struct wire_reply_header h;
    struct jreader rest;
    for (int32_t i = 0; i < 25; i++) {
        assert_true(memserver_next(&a, &h, &rest));
        assert_int_equal(h.xid, a.xid - 24 + i);
    }
}

static int take_answers(struct memserver_conn *c)
{
    struct wire_reply_header h;
    struct jreader rest;
    int n = 0;
    while (memserver_next(c, &h, &rest))
        n++;
    return n;
}

/* Those that ask for much have it in turn. */
TEST(heavy_clients_take_turns)
{
    enum { HEAVY = 3 };
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn heavy[HEAVY];
    open_in_turns(&d);
    for (int i = 0; i < HEAVY; i++)
        memserver_connect(&heavy[i], &d, 30000);
    next_turn(&d, 1);
    for (int i = 0; i < HEAVY; i++)
        add(&heavy[i], 2 * TEN + TEN / 2);
    for (int i = 0; i < HEAVY; i++)
        take_answers(&heavy[i]);
    for (int turn = 0; turn < HEAVY; turn++) {
        next_turn(&d, 0);
        for (int i = 0; i < HEAVY; i++)
            assert_int_equal(take_answers(&heavy[i]), i == turn ? TEN : 0);
    }
    while (clave__server_deadline(d.s) <= d.now)
        next_turn(&d, 0);
    assert_int_equal(added(&d), HEAVY * 25);
    for (int i = 0; i < HEAVY; i++)
        memserver_hang_up(&heavy[i]);
}

/* A client that asks for little is answered in the turn in which it asks, whatever others do; when
 * many do, in the next one. */
TEST(a_light_client_does_not_wait_for_heavy_ones)
{
    enum { HEAVY = 4, LIGHT = QUARTER / 3 + 2 };
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn heavy[HEAVY], light[LIGHT];
    open_in_turns(&d);
    for (int i = 0; i < HEAVY; i++)
        memserver_connect(&heavy[i], &d, 30000);
    for (int i = 0; i < LIGHT; i++)
        memserver_connect(&light[i], &d, 30000);
    next_turn(&d, 1);
    for (int i = 0; i < HEAVY; i++)
        add(&heavy[i], 3 * TEN);
    for (int turn = 0; turn < 6; turn++) {
        next_turn(&d, 1);
        assert_int_equal(asked(&d), turn);
        ask(&light[turn], 1);
        assert_int_equal(asked(&d), turn + 1);
    }
    const uint64_t before = asked(&d);
    next_turn(&d, 1);
    for (int i = 0; i < LIGHT; i++)
        ask(&light[i], 1);
    assert_true(asked(&d) - before < LIGHT);
    next_turn(&d, 1);
    assert_int_equal(asked(&d) - before, LIGHT);
    for (int i = 0; i < HEAVY; i++)
        memserver_hang_up(&heavy[i]);
    for (int i = 0; i < LIGHT; i++)
        memserver_hang_up(&light[i]);
}

/* However many ask for little, and however little a turn takes, those that ask for much go on. */
TEST(heavy_clients_do_not_starve)
{
    enum { A_ROUND = 4, ROUNDS = 30, LIGHT = ROUNDS * A_ROUND, ONE_READ = 4 };
    struct server_options o = {.work_a_turn = ONE_READ};
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn heavy, light[LIGHT];
    char data[10 * 1024 + 1];
    memset(data, 'x', sizeof data - 1);
    data[sizeof data - 1] = '\0';
    memserver_open(&d, &o);
    memserver_connect(&heavy, &d, 30000);
    for (int i = 0; i < LIGHT; i++) {
        next_turn(&d, 1);
        memserver_connect(&light[i], &d, 30000);
    }
    next_turn(&d, 1000);
    for (int i = 0; i < ROUNDS; i++) {
        union wire_body body = memserver_create_body("/n-", data, 2);
        memserver_request(&heavy, OP_CREATE, &body);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < A_ROUND; i++)
            ask(&light[round * A_ROUND + i], 1);
        next_turn(&d, 3);
        next_turn(&d, 3);
        assert_true(added(&d) >= (uint64_t)(1 + round / 2));
    }
    assert_true(asked(&d) >= ROUNDS);
    memserver_hang_up(&heavy);
    for (int i = 0; i < LIGHT; i++)
        memserver_hang_up(&light[i]);
}

/* What a client has cost is forgotten in time. */
TEST(a_heavy_client_becomes_light_again)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    open_in_turns(&d);
    memserver_connect(&a, &d, 30000);
    memserver_connect(&b, &d, 30000);
    next_turn(&d, 1);
    add(&b, TEN);
    next_turn(&d, 0);
    add(&a, TEN);
    ask(&b, 1);
    assert_int_equal(asked(&d), 0);
    next_turn(&d, 100);
    assert_int_equal(asked(&d), 1);
    add(&a, TEN);
    ask(&b, 1);
    assert_int_equal(asked(&d), 2);
}

/* A read of the root, as it comes from the network: nothing is carried to the client. */
static void begin_asking(struct memserver_conn *c)
{
    static const uint8_t read[] = {0, 0, 0, 14, 0, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0, 1, '/', 0};
    clave__server_conn_input(c->c, read, sizeof read);
}

/* What is to be sent to those that ask for little does not wait for what others get, nor these for
 * ever. */
TEST(light_answers_are_sent_first)
{
    enum { HEAVY = 2, LIGHT = 40, IN_A_ROW = 16 };
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn heavy[HEAVY], light[LIGHT];
    memserver_open(&d, &(struct server_options){.work_a_turn = 100 * TURN});
    for (int i = 0; i < HEAVY; i++)
        memserver_connect(&heavy[i], &d, 30000);
    for (int i = 0; i < LIGHT; i++)
        memserver_connect(&light[i], &d, 30000);
    next_turn(&d, 1000);
    for (int i = 0; i < HEAVY; i++)
        add(&heavy[i], 15 * TEN);
    next_turn(&d, 0);
    for (int i = 0; i < HEAVY; i++)
        begin_asking(&heavy[i]);
    for (int i = 0; i < LIGHT; i++)
        begin_asking(&light[i]);
    int got = 0;
    for (struct server_conn *c; (c = clave__server_next_ready(d.s)); got++) {
        bool is_heavy = c == heavy[0].c || c == heavy[1].c;
        assert_int_equal(is_heavy, got == IN_A_ROW || got == 2 * IN_A_ROW + 1);
    }
    assert_int_equal(got, HEAVY + LIGHT);
    for (int i = 0; i < HEAVY; i++)
        memserver_hang_up(&heavy[i]);
    for (int i = 0; i < LIGHT; i++)
        memserver_hang_up(&light[i]);
}

/* A multi counts as its operations. */
TEST(a_turn_counts_what_a_multi_does)
{
    enum { OPS = 20 };
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_in_turns(&d);
    memserver_connect(&c, &d, 30000);
    CLOSED_BY(clave__buf_fini) struct buf ops;
    clave__buf_init(&ops, &d.mem, SIZE_MAX / 2);
    struct jwriter w = clave__jwriter(&ops);
    for (int i = 0; i < OPS; i++) {
        struct wire_op op = {.op = OP_CREATE, .body = memserver_create_body("/m-", "", 2)};
        clave__wire_put_op(&w, &op);
    }
    union wire_body multi = {.multi = {OPS, ops.data, ops.tail}};
    next_turn(&d, 1);
    memserver_request(&c, OP_MULTI, &multi);
    memserver_request(&c, OP_MULTI, &multi);
    assert_int_equal(memserver_stats(&d).requests[OP_MULTI], 1);
    next_turn(&d, 0);
    assert_int_equal(memserver_stats(&d).requests[OP_MULTI], 2);
}

/* A client whose requests wait for their turn is not silent, however long that takes. */
TEST(a_client_that_waits_for_its_turn_lives)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn heavy, silent;
    open_in_turns(&d);
    memserver_connect(&heavy, &d, 4000);
    memserver_connect(&silent, &d, 4000);
    next_turn(&d, 1);
    add(&heavy, 25);
    next_turn(&d, 60000);
    assert_int_equal(memserver_stats(&d).sessions, 1);
    next_turn(&d, 1000);
    assert_int_equal(added(&d), 25);
    assert_true(clave__server_conn_has_session(heavy.c));
}

/* Nor does a client wait because the turn has ended a session with many nodes. */
TEST(an_expiry_takes_no_request_s_turn)
{
    enum { NODES = 50 };
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn heavy, owner;
    open_in_turns(&d);
    memserver_connect(&owner, &d, 4000);
    memserver_connect(&heavy, &d, 30000);
    for (int i = 0; i < NODES; i++) {
        union wire_body body = memserver_create_body("/e-", "", 3);
        next_turn(&d, 0);
        memserver_request(&owner, OP_CREATE, &body);
    }
    next_turn(&d, 1);
    add(&heavy, 25);
    assert_int_equal(memserver_stats(&d).ephemerals, NODES);
    const uint64_t before = added(&d);
    next_turn(&d, 8000);
    assert_int_equal(memserver_stats(&d).ephemerals, 0);
    assert_int_equal(added(&d), before + TEN);
}
