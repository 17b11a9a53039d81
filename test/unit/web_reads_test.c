/* What is answered from the gate's copy of the tree: how old it may be, asking the servers first,
 * and waiting for a change. */
#include "base/rand.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "lib/webrig.h"

static size_t open_client(struct webrig *r)
{
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.hosts = "pair:1";
    o.seed = 7 + r->net->o.clients;
    size_t n = memnet_open(r->net, &o);
    webrig_settle(r);
    return n;
}

static void create_as(struct webrig *r, size_t client, const char *path, clave_create_mode mode,
                      const char *data)
{
    const clave_create_options o = {.size = sizeof o, .mode = mode, .flags = CLAVE_CREATE_PARENTS};
    clave_async_client *c = r->net->clients[client].c;
    assert_int_equal(clave_async_create(c, path, data, strlen(data), &o, NULL, NULL), CLAVE_OK);
    webrig_settle(r);
}

static void create(struct webrig *r, size_t client, const char *path, clave_create_mode mode)
{
    create_as(r, client, path, mode, "x");
}

#define LOCK(path) path "/_c_01234567-89ab-4def-8123-456789abcdef-lock-"
#define LATCH(path) path "/_c_01234567-89ab-4def-8123-456789abcdef-latch-"

static void delete_all_below(struct webrig *r, size_t client, const char *path)
{
    char names[8][96];
    size_t n = memnet_list(r->net, client, path, names, 8);
    for (size_t i = 0; i < n; i++) {
        char node[200];
        snprintf(node, sizeof node, "%s/%s", path, names[i]);
        assert_int_equal(memnet_delete(r->net, client, node), CLAVE_OK);
    }
    webrig_settle(r);
}

static struct webrig_call *get(struct webrig *r, const char *target, const char *headers)
{
    return webrig_request(r, "GET", target, headers, NULL);
}

static void the_servers_fall_silent(struct webrig *r, bool silent)
{
    if (silent)
        memnet_rule(r->net, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    else
        memnet_clear(r->net);
    webrig_settle(r);
}

/* ---- how old it may be ----------------------------------------------------------------------- */

/* All routes that answer from the copy, of what is there and what is not. */
static const struct {
    const char *target;
    unsigned current, silent; /* the status */
} routes[] = {
    {"/v1/locks", 200, 200},          {"/v1/locks?prefix=/none", 200, 200},
    {"/v1/locks/a", 200, 200},        {"/v1/locks/none", 404, 503},
    {"/v1/elections", 200, 200},      {"/v1/elections/e", 200, 200},
    {"/v1/elections/none", 404, 503}, {"/v1/deadlocks", 200, 200},
    {"/v1/history", 200, 200},        {"/v1/history?path=/none", 200, 200},
};

static void check_routes(struct webrig *r, bool current, int64_t least, int64_t most)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, routes[i].target, NULL);
        unsigned status = current ? routes[i].current : routes[i].silent;
        const char *age = webrig_member(c, "age_ms");
        if (!c->done || c->status != status || !age || atoi(age) < least || atoi(age) > most)
            fail_msg("%s: %u %s", routes[i].target, c->status, webrig_body(c));
        assert_string_equal(webrig_member(c, "current"), current ? "true" : "false");
        assert_string_equal(webrig_member(c, "source"), "copy");
        assert_string_equal(webrig_header(c, "Clave-Source"), "copy");
        assert_true(atoi(webrig_header(c, "Age")) * 1000 >= least);
    }
    CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, "/readyz", NULL);
    assert_int_equal(c->status, current ? 200 : 503);
}

/* A server that is stopped, or a connection of which one half is gone: no word, and no end. */
TEST(a_copy_that_hears_nothing_for_a_tick_is_not_current)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    size_t one = open_client(r);
    create(r, one, LOCK("/a"), CLAVE_EPHEMERAL_SEQUENTIAL);
    create(r, one, LATCH("/e"), CLAVE_EPHEMERAL_SEQUENTIAL);
    check_routes(r, true, 0, 0);
    webrig_advance(r, 61234);
    check_routes(r, true, 0, 500);
    the_servers_fall_silent(r, true);
    create(r, one, LOCK("/none"), CLAVE_EPHEMERAL_SEQUENTIAL);
    webrig_advance(r, 1400);
    check_routes(r, true, 1400, 2000);
    webrig_advance(r, 700);
    check_routes(r, false, 2001, 3000);
    webrig_advance(r, 2000); /* before the client gives the connection up */
    check_routes(r, false, 4001, 5000);
    the_servers_fall_silent(r, false);
    struct webrig_call *c = get(r, "/v1/locks/none", NULL);
    assert_int_equal(c->status, 200);
    webrig_end(c);
    delete_all_below(r, one, "/none");
    webrig_advance(r, 500);
    check_routes(r, true, 0, 500);
    memnet_refuse(r->net, 0, true);
    webrig_advance(r, 1000);
    check_routes(r, false, 1000, 1500); /* which is known at once, and the age goes on */
    memnet_refuse(r->net, 0, false);
    webrig_advance(r, 3000);
    check_routes(r, true, 0, 500);
    memnet_close(r->net, one);
}

/* What was done longer ago than the age says is in the answer, whatever the network holds back. */
TEST(nothing_older_than_the_age_is_missing)
{
    enum { STEPS = 400 };
    static int64_t made[STEPS];
    struct rand_state rand;
    bool silent = false;
    clave__rand_seed(&rand, 4711);
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    size_t one = open_client(r);
    webrig_end(get(r, "/v1/locks", NULL));
    for (int i = 0; i < STEPS; i++) {
        char path[96];
        snprintf(path, sizeof path, "/l%d/_c_01234567-89ab-4def-8123-456789abcdef-lock-", i);
        create(r, one, path, CLAVE_EPHEMERAL_SEQUENTIAL);
        made[i] = r->net->now;
        webrig_advance(r, (int64_t)(clave__rand_u64(&rand) % 200));
        if (clave__rand_u64(&rand) % 4 == 0)
            the_servers_fall_silent(r, silent = !silent);
        if (clave__rand_u64(&rand) % 40 == 0)
            memnet_cut(r->net, 0);
        CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, "/v1/locks?limit=1000", NULL);
        int64_t age = atoi(webrig_member(c, "age_ms"));
        for (int j = 0; j <= i; j++) {
            snprintf(path, sizeof path, "\"path\": \"/l%d\"", j);
            if (made[j] < r->net->now - age && !strstr(webrig_body(c), path))
                fail_msg("step %d: /l%d of %lld ms ago is missing, and the age is %lld", i, j,
                         (long long)(r->net->now - made[j]), (long long)age);
        }
    }
    memnet_clear(r->net);
    memnet_close(r->net, one);
}

/* ---- ?fresh ---------------------------------------------------------------------------------- */

TEST(fresh_asks_the_servers)
{
    static const char *const targets[] = {
        "/v1/locks?fresh",     "/v1/locks/a?fresh",        "/v1/locks/none?fresh",
        "/v1/elections?fresh", "/v1/elections/none?fresh", "/v1/deadlocks?fresh",
    };
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    size_t one = open_client(r);
    create(r, one, LOCK("/a"), CLAVE_EPHEMERAL_SEQUENTIAL);
    webrig_end(get(r, "/v1/locks", NULL));
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        webrig_advance(r, 300);
        the_servers_fall_silent(r, true);
        CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, targets[i], NULL);
        assert_false(c->answered);
        webrig_advance(r, 1000);
        assert_false(c->answered);
        create(r, one, LOCK("/a"), CLAVE_EPHEMERAL_SEQUENTIAL);
        the_servers_fall_silent(r, false);
        assert_true(c->done);
        assert_int_equal(c->status, strstr(targets[i], "none") ? 404 : 200);
        assert_string_equal(webrig_member(c, "source"), "servers");
        assert_string_equal(webrig_member(c, "current"), "true");
        assert_true(atoi(webrig_member(c, "age_ms")) <= 1000); /* since it was asked */
    }
    the_servers_fall_silent(r, true);
    struct webrig_call *gone = get(r, "/v1/locks/a?fresh", NULL), *c = get(r, targets[0], NULL);
    webrig_end(gone);
    webrig_advance(r, 15000);
    assert_int_equal(c->status, 503);
    webrig_end(c);
    memnet_close(r->net, one);
}

/* ---- waiting for a change -------------------------------------------------------------------- */

static const char *know(const struct webrig_call *c, const char *more)
{
    static char headers[160];
    snprintf(headers, sizeof headers, "If-None-Match: %s%s", webrig_header(c, "ETag"), more);
    return headers;
}

/* Waits for the next change after what this call showed, which ends. */
static struct webrig_call *await_next(struct webrig *r, struct webrig_call *seen,
                                      const char *target)
{
    struct webrig_call *c = get(r, target, know(seen, "\nPrefer: wait=30"));
    if (c->answered)
        fail_msg("%s, %s: %u %s", target, know(seen, ""), c->status, webrig_body(c));
    webrig_end(seen);
    return c;
}

static void expect_change(struct webrig *r, const struct webrig_call *c, unsigned status)
{
    webrig_advance(r, 100);
    if (!c->done || c->status != status)
        fail_msg("%d: %u %s", c->done, c->status, webrig_body(c));
    assert_non_null(webrig_header(c, "ETag"));
}

TEST(a_lock_is_awaited_until_it_changes)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    size_t one = open_client(r);
    create(r, one, "/a", CLAVE_PERSISTENT);
    create(r, one, "/b", CLAVE_PERSISTENT);
    struct webrig_call *c = await_next(r, get(r, "/v1/locks/a", NULL), "/v1/locks/a");
    create(r, one, LOCK("/b"), CLAVE_EPHEMERAL_SEQUENTIAL); /* another one */
    webrig_advance(r, 29000);
    assert_false(c->answered);
    create(r, one, LOCK("/a"), CLAVE_EPHEMERAL_SEQUENTIAL);
    expect_change(r, c, 200);
    assert_string_equal(webrig_member(c, "nholders"), "1");
    c = await_next(r, c, "/v1/locks/a");
    create(r, one, LOCK("/a"), CLAVE_EPHEMERAL_SEQUENTIAL);
    expect_change(r, c, 200);
    assert_string_equal(webrig_member(c, "nwaiters"), "1");
    c = await_next(r, c, "/v1/locks/a");
    struct webrig_call *hung_up = get(r, "/v1/locks/a", NULL);
    hung_up = await_next(r, hung_up, "/v1/locks/a");
    webrig_end(hung_up);
    delete_all_below(r, one, "/a");
    expect_change(r, c, 404);
    c = await_next(r, c, "/v1/locks/a");
    webrig_advance(r, 30000);
    assert_int_equal(c->status, 304); /* nothing has happened */
    assert_string_equal(webrig_header(c, "ETag"), "\"none\"");
    assert_string_equal(webrig_body(c), "");
    webrig_end(c);
    memnet_close(r->net, one);
}

TEST(an_election_is_awaited_until_it_changes)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    size_t one = open_client(r);
    create(r, one, "/e", CLAVE_PERSISTENT);
    struct webrig_call *c = await_next(r, get(r, "/v1/elections/e", NULL), "/v1/elections/e");
    create(r, one, LATCH("/e"), CLAVE_EPHEMERAL_SEQUENTIAL);
    expect_change(r, c, 200);
    c = await_next(r, c, "/v1/elections/e?fresh");
    create(r, one, LATCH("/e"), CLAVE_EPHEMERAL_SEQUENTIAL); /* a candidate */
    expect_change(r, c, 200);
    c = await_next(r, c, "/v1/elections/e");
    delete_all_below(r, one, "/e");
    expect_change(r, c, 200); /* vacant */
    assert_string_equal(webrig_member(c, "term"), "null");
    webrig_end(c);
    memnet_close(r->net, one);
}

/* 304 says that nothing has changed, which a copy that is not current does not know. */
TEST(without_the_servers_nothing_is_said_to_be_unchanged)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    size_t one = open_client(r);
    create(r, one, LOCK("/a"), CLAVE_EPHEMERAL_SEQUENTIAL);
    struct webrig_call *seen = get(r, "/v1/locks/a", NULL);
    struct webrig_call *c = get(r, "/v1/locks/a", know(seen, ""));
    assert_int_equal(c->status, 304);
    webrig_end(c);
    c = get(r, "/v1/locks/a", know(seen, "\nPrefer: wait=3"));
    assert_false(c->answered);
    the_servers_fall_silent(r, true);
    webrig_advance(r, 3000);
    assert_int_equal(c->status, 503);
    webrig_end(c);
    c = get(r, "/v1/locks/a", know(seen, "\nPrefer: wait=30"));
    assert_false(c->answered);
    create(r, one, LOCK("/a"), CLAVE_EPHEMERAL_SEQUENTIAL);
    the_servers_fall_silent(r, false); /* a wait goes on over it */
    expect_change(r, c, 200);
    webrig_end(c);
    webrig_end(seen);
    memnet_close(r->net, one);
}

TEST(those_who_wait_are_counted)
{
    struct webrig_call *calls[8];
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.max_waiting = 5});
    CLOSED_BY(webrig_ended) struct webrig_call *seen = get(r, "/v1/locks/a", NULL);
    for (int i = 0; i < 8; i++)
        calls[i] = get(r, "/v1/locks/a", know(seen, "\nPrefer: wait=30"));
    for (int i = 0; i < 8; i++) {
        assert_int_equal(calls[i]->answered, i >= 4);
        if (i >= 4)
            assert_int_equal(calls[i]->status, 429);
        webrig_end(calls[i]);
    }
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = get(r, "/v1/locks/a", know(seen, "\nPrefer: wait=30"));
    assert_false(c->answered); /* the others have left */
}

/* A poll goes on at another gate. */
TEST(gates_of_one_tree_have_the_same_tags)
{
    char tags[2][64];
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    size_t one = open_client(r);
    create(r, one, LOCK("/a"), CLAVE_EPHEMERAL_SEQUENTIAL);
    create(r, one, LATCH("/e"), CLAVE_EPHEMERAL_SEQUENTIAL);
    static const char *const targets[2] = {"/v1/locks/a", "/v1/elections/e"};
    for (size_t i = 0; i < 2; i++) {
        CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, targets[i], NULL);
        snprintf(tags[i], sizeof tags[i], "%s", webrig_header(c, "ETag"));
    }
    webrig_second(r);
    for (size_t i = 0; i < 2; i++) {
        CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, targets[i], NULL);
        assert_string_equal(webrig_header(c, "ETag"), tags[i]);
    }
    memnet_close(r->net, one);
}

/* Of a queue that is longer than what a digest looks at: those that come and go are seen. */
TEST(a_long_queue_is_awaited_too)
{
    enum { PLACES = 2500 };
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    size_t one = open_client(r);
    char gone[128];
    for (int i = 0; i < PLACES; i++)
        create(r, one, LOCK("/a"), CLAVE_EPHEMERAL_SEQUENTIAL);
    struct webrig_call *c = await_next(r, get(r, "/v1/locks/a", NULL), "/v1/locks/a");
    snprintf(gone, sizeof gone, "%s%010d", LOCK("/a"), PLACES - 100);
    assert_int_equal(memnet_delete(r->net, one, gone), CLAVE_OK);
    expect_change(r, c, 200);
    c = await_next(r, c, "/v1/locks/a");
    create(r, one, LOCK("/a"), CLAVE_EPHEMERAL_SEQUENTIAL);
    expect_change(r, c, 200);
    webrig_end(c);
    memnet_close(r->net, one);
}

/* ---- long data --------------------------------------------------------------------------------
 */
/* What is long is shown as far as it is kept, and marked: of a place its name and command and the
 * limit, of an election its value. */
TEST(long_data_is_cut_and_said_to_be)
{
    enum { LONG = 9000 };
    static char data[LONG + 200], value[LONG + 200];
    static const struct {
        size_t len;
        bool cut;
    } cases[] = {{3000, false}, {4000, false}, {LONG, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
        size_t one = open_client(r);
        int n = snprintf(data, sizeof data, "clave/1\nlimit=7\nname=nightly\ncommand=");
        for (size_t j = 0; j < cases[i].len / 2; j++)
            memcpy(data + n + 2 * j, "\xc3\xa4", 3);
        n = snprintf(value, sizeof value, "%s0000000000\n", LATCH("/e") + 3);
        memset(value + n, 'v', cases[i].len);
        value[(size_t)n + cases[i].len] = '\0';
        create_as(r, one, "/s/leases/_c_01234567-89ab-4def-8123-456789abcdef-lease-",
                  CLAVE_EPHEMERAL_SEQUENTIAL, data);
        create(r, one, LATCH("/e"), CLAVE_EPHEMERAL_SEQUENTIAL);
        create_as(r, one, "/e-value", CLAVE_PERSISTENT, value);
        struct webrig_call *c = get(r, "/v1/locks/s", NULL);
        assert_string_equal(webrig_member(c, "limit"), "7");
        assert_string_equal(webrig_member(c, "name"), "nightly");
        assert_memory_equal(webrig_member(c, "command"), "\xc3\xa4\xc3\xa4", 4);
        assert_int_equal(webrig_member(c, "truncated") != NULL, cases[i].cut);
        webrig_end(c);
        c = get(r, "/v1/elections/e", NULL);
        assert_memory_equal(webrig_member(c, "value"), "vvvv", 4);
        assert_int_equal(webrig_member(c, "value_truncated") != NULL, cases[i].cut);
        webrig_end(c);
        memnet_close(r->net, one);
    }
}

/* ---- pages ------------------------------------------------------------------------------------
 */

/* A list that began anew at what it does not know would have no end. */
TEST(a_page_goes_on_after_what_there_is)
{
    static const struct {
        const char *target;
        unsigned status;
    } cases[] = {
        {"/v1/locks?after=/zzz", 200},
        {"/v1/locks?prefix=/b&after=/b/c", 200},
        {"/v1/locks?after=x", 400},
        {"/v1/locks?prefix=/b&after=/a", 400},
        {"/v1/elections?after=/zzz", 200},
        {"/v1/elections?after=x", 400},
        {"/v1/elections?prefix=/b&after=/a", 400},
        {"/v1/sessions?after=4711", 410},
        {"/v1/sessions?after=0", 410},
        {"/v1/sessions?after=x", 400},
        {"/v1/znodes/?children&after=zzz", 200},
        {"/v1/znodes/?children&after=/z", 400},
        {"/v1/history?since=x", 400},
    };
    static const struct web_access owner_only = {.owner_uid = 7};
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &owner_only});
    r->peer = (struct web_peer){.is_unix = true, .uid = 7, .address = "unix"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, cases[i].target, NULL);
        if (c->status != cases[i].status)
            fail_msg("%s: %u %s", cases[i].target, c->status, webrig_body(c));
    }
}
