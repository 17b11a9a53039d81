/* server_ttl_test.c - nodes with a time to live: how they are made, when they go, and that the
 * disk knows them. */
#include "lib/memserver.h"
#include "lib/unit.h"

enum { SWEEP_MS = 1000 };

static void open_place(struct memserver *d, struct memserver_conn *c)
{
    struct server_options o = {.extended_types = true, .container_check_ms = SWEEP_MS};
    memserver_open(d, &o);
    memserver_connect(c, d, 40000);
}

static clave_err create(struct memserver_conn *c, const char *path, int32_t mode, int64_t ttl_ms)
{
    union wire_body b = memserver_create_body(path, "", mode);
    b.create.ttl_ms = ttl_ms;
    return memserver_call(c, OP_CREATE_TTL, &b, NULL);
}

static bool is_there(struct memserver_conn *c, const char *path)
{
    struct wire_stat st;
    return memserver_stat(c, path, &st) == CLAVE_OK;
}

TEST(what_is_asked_for_has_to_fit)
{
    static const struct {
        int32_t op;
        int32_t mode;
        int64_t ttl_ms;
        clave_err err;
    } cases[] = {
        {OP_CREATE_TTL, MODE_PERSISTENT_TTL, 1, CLAVE_OK},
        {OP_CREATE_TTL, MODE_PERSISTENT_TTL, 0xffffffffff, CLAVE_OK},
        {OP_CREATE_TTL, MODE_PERSISTENT_TTL, 0x10000000000, CLAVE_EBADARGS},
        {OP_CREATE_TTL, MODE_PERSISTENT_TTL, 0, CLAVE_EBADARGS},
        {OP_CREATE_TTL, MODE_PERSISTENT_TTL, -1, CLAVE_EBADARGS},
        {OP_CREATE_TTL, MODE_PERSISTENT, 1, CLAVE_EBADARGS},
        {OP_CREATE_TTL, MODE_PERSISTENT, -1, CLAVE_EBADARGS}, /* stops Apache for good */
        {OP_CREATE_TTL, MODE_EPHEMERAL, 1, CLAVE_EBADARGS},
        {OP_CREATE_TTL, MODE_CONTAINER, 1, CLAVE_EBADARGS},
        {OP_CREATE, MODE_PERSISTENT_TTL, 0, CLAVE_EBADARGS},
        {OP_CREATE2, MODE_PERSISTENT_SEQUENTIAL_TTL, 0, CLAVE_EBADARGS},
        {OP_CREATE_CONTAINER, MODE_PERSISTENT_TTL, 0, CLAVE_EBADARGS},
    };
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_place(&d, &c);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[16];
        snprintf(path, sizeof path, "/n%zu", i);
        union wire_body b = memserver_create_body(path, "", cases[i].mode);
        b.create.ttl_ms = cases[i].ttl_ms;
        clave_err err = memserver_call(&c, cases[i].op, &b, NULL);
        if (err != cases[i].err)
            fail_msg("case %zu: %s", i, clave_err_name(err));
    }
}

TEST(the_answer_hides_the_owner)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    struct wire_reply r;
    open_place(&d, &c);
    union wire_body b = memserver_create_body("/s-", "12", MODE_PERSISTENT_SEQUENTIAL_TTL);
    b.create.ttl_ms = 5000;
    assert_int_equal(memserver_call(&c, OP_CREATE_TTL, &b, &r), CLAVE_OK);
    assert_true(clave__jbytes_eq(r.path, clave__jbytes("/s-0000000000")));
    assert_int_equal(r.stat.ephemeral_owner, 0);
    assert_int_equal(r.stat.data_length, 2);
}

TEST(it_goes_when_its_time_is_over)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_place(&d, &c);
    assert_int_equal(create(&c, "/idle", MODE_PERSISTENT_TTL, 2500), CLAVE_OK);
    assert_int_equal(create(&c, "/written", MODE_PERSISTENT_TTL, 2500), CLAVE_OK);
    assert_int_equal(create(&c, "/parent", MODE_PERSISTENT_TTL, 2500), CLAVE_OK);
    assert_int_equal(memserver_create(&c, "/parent/child", "", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_watch(&c, OP_EXISTS, "/idle"), CLAVE_OK);
    memserver_advance(&d, 2000);
    assert_int_equal(memserver_set(&c, "/written", "x", -1), CLAVE_OK);
    assert_true(is_there(&c, "/idle"));
    memserver_advance(&d, 1000);
    assert_string_equal(memserver_events(&c), "DELETED /idle");
    assert_false(is_there(&c, "/idle"));
    assert_true(is_there(&c, "/written"));
    memserver_advance(&d, 2000);
    assert_false(is_there(&c, "/written"));
    assert_true(is_there(&c, "/parent")); /* it is used */
    assert_int_equal(memserver_delete(&c, "/parent/child", -1), CLAVE_OK);
    memserver_advance(&d, SWEEP_MS);
    assert_false(is_there(&c, "/parent"));
}

/* Also when the server that goes on makes no new ones. */
TEST(it_outlives_the_server)
{
    CLOSED_BY(memserver_close) struct memserver d, e;
    struct memserver_conn c;
    struct log_replay out;
    struct server_options o = {.container_check_ms = SWEEP_MS};
    open_place(&d, &c);
    assert_int_equal(create(&c, "/t", MODE_PERSISTENT_TTL, 5000), CLAVE_OK);
    memserver_hang_up(&c);
    assert_int_equal(memserver_open_bare(&e, &o), CLAVE_OK);
    assert_int_equal(
        clave__server_replay_log(e.s, clave__buf_bytes(&d.log), clave__buf_len(&d.log), &out),
        CLAVE_OK);
    e.now = d.now;
    memserver_start(&e);
    memserver_connect(&c, &e, 40000);
    assert_true(is_there(&c, "/t"));
    assert_int_equal(create(&c, "/more", MODE_PERSISTENT_TTL, 5000), CLAVE_EUNIMPLEMENTED);
    memserver_advance(&e, 7000);
    assert_false(is_there(&c, "/t"));
    memserver_hang_up(&c);
}

static void open_sweeper(struct memserver *d, struct memserver_conn *c, int32_t a_minute,
                         int64_t unused_ms)
{
    struct server_options o = {.extended_types = true,
                               .container_check_ms = SWEEP_MS,
                               .container_rate = a_minute,
                               .never_used_ms = unused_ms};
    memserver_open(d, &o);
    memserver_connect(c, d, 40000);
}

/* As many a minute as allowed, evenly, and the rest in the next turns, not in the next sweep. */
TEST(no_more_than_the_rate)
{
    enum { BOXES = 20, A_MINUTE = 600 };
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_sweeper(&d, &c, A_MINUTE, 0);
    size_t before = memserver_stats(&d).nodes;
    for (int i = 0; i < BOXES; i++) {
        char path[16];
        snprintf(path, sizeof path, "/n%d", i);
        assert_int_equal(create(&c, path, MODE_PERSISTENT_TTL, 1), CLAVE_OK);
    }
    memserver_advance(&d, clave__server_deadline(d.s) - d.now);
    for (size_t gone = 1; gone <= BOXES; gone++) {
        assert_int_equal(memserver_stats(&d).nodes, before + BOXES - gone);
        memserver_advance(&d, 60000 / A_MINUTE);
    }
}

/* A sweep takes many turns for many nodes, and misses none, whatever comes and goes meanwhile. */
TEST(a_long_sweep_yields)
{
    enum { BOXES = 10500, LOOKS = 3000 };
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    char path[16];
    open_sweeper(&d, &c, 0, 0);
    for (int i = 0; i < BOXES; i++) {
        snprintf(path, sizeof path, "/n%d", i);
        assert_int_equal(create(&c, path, MODE_PERSISTENT_TTL, 3600000), CLAVE_OK);
    }
    assert_int_equal(create(&c, "/last", MODE_PERSISTENT_TTL, 1), CLAVE_OK);
    memserver_advance(&d, clave__server_deadline(d.s) - d.now);
    assert_int_equal(clave__server_deadline(d.s), d.now + 1);
    for (int i = 0; i < LOOKS + LOOKS / 2; i++) { /* those looked at, and some that are not */
        snprintf(path, sizeof path, "/n%d", i);
        assert_int_equal(memserver_delete(&c, path, -1), CLAVE_OK);
    }
    assert_int_equal(create(&c, "/more", MODE_PERSISTENT_TTL, 3600000), CLAVE_OK);
    memserver_advance(&d, 1);
    assert_true(is_there(&c, "/last"));
    memserver_advance(&d, 1);
    assert_true(is_there(&c, "/last"));
    memserver_advance(&d, 1);
    assert_false(is_there(&c, "/last"));
    assert_int_equal(clave__server_deadline(d.s), d.now + SWEEP_MS);
}

TEST(containers_that_were_never_used)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_sweeper(&d, &c, 0, 5000);
    assert_int_equal(memserver_create(&c, "/empty", "", MODE_CONTAINER), CLAVE_OK);
    assert_int_equal(memserver_create(&c, "/full", "", MODE_CONTAINER), CLAVE_OK);
    assert_int_equal(memserver_create(&c, "/full/x", "", MODE_PERSISTENT), CLAVE_OK);
    memserver_advance(&d, 4500);
    assert_true(is_there(&c, "/empty"));
    memserver_advance(&d, 500 + SWEEP_MS);
    assert_false(is_there(&c, "/empty"));
    assert_true(is_there(&c, "/full"));
}
