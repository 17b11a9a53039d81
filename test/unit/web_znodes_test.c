/* web_znodes_test.c - /v1/znodes and /v1/multi: reads, conditional writes, and what is said when an
 * answer is lost. */
#include <inttypes.h>

#include "lib/unit.h"
#include "lib/webrig_answer.h"

#define OCTETS "Content-Type: application/octet-stream"

static const struct web_grant all[] = {{WEB_ADMIN, "/"}};
static const struct web_grant some[] = {{WEB_READ, "/"}, {WEB_WRITE, "/a"}};
static const struct web_user users[] = {
    {.name = "ann", .token = "ann", .uid = 7, .grants = all, .ngrants = 1},
    {.name = "bob", .token = "bob", .uid = 8, .grants = some, .ngrants = 2},
};
static const struct web_access access_of_test = {.users = users, .nusers = 2, .owner_uid = -1};

/* One client beside the engine's: number 0. The peer is ann. */
static struct webrig *rig_new(void)
{
    struct webrig_options o = {.access = &access_of_test, .net = {.clients = 1}};
    struct webrig *r = webrig_new(&o);
    r->peer.is_unix = true;
    r->peer.uid = 7;
    return r;
}

static void create(struct webrig *r, const char *target, const char *data)
{
    webrig_done(r, "POST", target, OCTETS, data, 201);
}

/* ---- reading -------------------------------------------------------------------------------- */

TEST(data_are_the_body_as_they_are)
{
    static const char bytes[] = {'a', 0, '\n', (char)0xff};
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    struct webrig_call *c = webrig_request_bytes(r, "POST", "/v1/znodes/a", OCTETS, bytes, 4);
    assert_int_equal(c->status, 201);
    assert_string_equal(webrig_member(c, "path"), "/a");
    assert_string_equal(webrig_header(c, "Location"), "/v1/znodes/a");
    assert_memory_equal(webrig_header(c, "ETag"), "\"0-", 3);
    webrig_end(c);
    c = webrig_answer(r, "GET", "/v1/znodes/a", NULL, NULL, 200);
    assert_string_equal(webrig_header(c, "Content-Type"), "application/octet-stream");
    assert_memory_equal(webrig_header(c, "ETag"), "\"0-", 3);
    assert_int_equal(clave__buf_len(&c->body), 4);
    assert_memory_equal(clave__buf_bytes(&c->body), bytes, 4);
    webrig_end(c);
    c = webrig_answer(r, "HEAD", "/v1/znodes/a", NULL, NULL, 200);
    assert_memory_equal(webrig_header(c, "ETag"), "\"0-", 3);
    webrig_end(c);
    c = webrig_answer(r, "GET", "/v1/znodes/b", NULL, NULL, 404);
    assert_string_equal(webrig_member(c, "code"), "ENONODE");
    assert_string_equal(webrig_member(c, "path"), "/b");
}

TEST(stat_children_and_acl_are_json)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    create(r, "/v1/znodes/a", "hello");
    create(r, "/v1/znodes/a/z", NULL);
    create(r, "/v1/znodes/a/b%20c", NULL);
    create(r, "/v1/znodes/a/m", NULL);
    struct webrig_call *c = webrig_answer(r, "GET", "/v1/znodes/a?stat", NULL, NULL, 200);
    assert_string_equal(webrig_member(c, "data_length"), "5");
    assert_string_equal(webrig_member(c, "num_children"), "3");
    assert_non_null(strstr(webrig_body(c), "\"czxid\": \""));
    webrig_end(c);
    c = webrig_answer(r, "GET", "/v1/znodes/a?children&sync", NULL, NULL, 200);
    assert_non_null(
        strstr(webrig_body(c), "\"children\": [\"b c\", \"m\", \"z\"], \"next\": null"));
    webrig_end(c);
    c = webrig_answer(r, "GET", "/v1/znodes/a?children&limit=1&after=b%20c", NULL, NULL, 200);
    assert_non_null(strstr(webrig_body(c), "\"children\": [\"m\"], \"next\": \"m\""));
    webrig_end(c);
    c = webrig_answer(r, "GET", "/v1/znodes/a?acl", NULL, NULL, 200);
    assert_non_null(strstr(webrig_body(c), "[{\"perms\": \"rwcda\", \"scheme\": \"world\", "
                                           "\"id\": \"anyone\"}]"));
    webrig_end(c);
    c = webrig_answer(r, "GET", "/v1/znodes/?children", NULL, NULL, 200);
    assert_non_null(strstr(webrig_body(c), "[\"a\", \"zookeeper\"]"));
}

/* ---- writing -------------------------------------------------------------------------------- */

TEST(conditions_are_checked)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    webrig_done(r, "PUT", "/v1/znodes/a", NULL, "x", 404);
    webrig_done(r, "PUT", "/v1/znodes/a", "If-Match: *", "x", 412);
    webrig_done(r, "PUT", "/v1/znodes/a", "If-None-Match: *", "x", 201);
    struct webrig_call *c = webrig_answer(r, "PUT", "/v1/znodes/a", "If-None-Match: *", "y", 412);
    assert_string_equal(webrig_member(c, "code"), "ENODEEXISTS");
    webrig_end(c);
    c = webrig_answer(r, "PUT", "/v1/znodes/a", "If-Match: \"0\"", "y", 200);
    assert_memory_equal(webrig_header(c, "ETag"), "\"1-", 3);
    webrig_end(c);
    webrig_done(r, "PUT", "/v1/znodes/a", "If-Match: \"0\"", "z", 412);
    webrig_done(r, "PUT", "/v1/znodes/a", "If-Match: 1", "z", 200);
    webrig_done(r, "PUT", "/v1/znodes/a", "If-Match: *", "z", 200);
    webrig_done(r, "PUT", "/v1/znodes/a", NULL, "z", 200);
    webrig_done(r, "GET", "/v1/znodes/a?children&stat", NULL, NULL, 400);
    webrig_done(r, "GET", "/v1/znodes/a?acl&fresh&children", NULL, NULL, 400);
    webrig_done(r, "PUT", "/v1/znodes/a", "If-Match: \"x\"", "z", 400);
    webrig_done(r, "PUT", "/v1/znodes/a", "If-Match: W/\"4\"", "z", 400);
    webrig_done(r, "PUT", "/v1/znodes/a", "If-Match: \"-1\"", "z", 400);
    webrig_done(r, "PUT", "/v1/znodes/a", "If-Match: *\nIf-None-Match: *", "z", 400);
    webrig_done(r, "DELETE", "/v1/znodes/a", "If-Match: \"1\"", NULL, 412);
    webrig_done(r, "DELETE", "/v1/znodes/a", "If-Match: \"4\"", NULL, 204);
    webrig_done(r, "DELETE", "/v1/znodes/a", NULL, NULL, 404);
}

TEST(nodes_are_created_in_every_mode)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    webrig_done(r, "POST", "/v1/znodes/a/b/c", OCTETS, "x", 404);
    create(r, "/v1/znodes/a/b/c?parents", "x");
    webrig_done(r, "POST", "/v1/znodes/a/b/c", OCTETS, "x", 409);
    webrig_done(r, "DELETE", "/v1/znodes/a", NULL, NULL, 409);
    struct webrig_call *c =
        webrig_answer(r, "POST", "/v1/znodes/a/n-?mode=persistent_sequential", OCTETS, "x", 201);
    assert_string_equal(webrig_header(c, "Location"), "/v1/znodes/a/n-0000000001");
    webrig_end(c);
    create(r, "/v1/znodes/q?mode=container", NULL);
    /* As Apache's without its setting for extended types. */
    webrig_done(r, "POST", "/v1/znodes/t?mode=persistent_ttl&ttl=5000", OCTETS, NULL, 501);
    webrig_done(r, "POST", "/v1/znodes/t2?mode=persistent_ttl", OCTETS, "x", 400);
    webrig_done(r, "POST", "/v1/znodes/t2?ttl=5", OCTETS, "x", 400);
    webrig_done(r, "POST", "/v1/znodes/t2?mode=eternal", OCTETS, "x", 400);
    webrig_done(r, "POST", "/v1/znodes/e?mode=ephemeral", OCTETS, "x", 400);
    webrig_done(r, "POST", "/v1/znodes/e", "Content-Type: text/plain", "x", 415);
    webrig_done(r, "POST", "/v1/znodes/e", "Content-Type: Multipart/Form-Data", "x", 415);
    webrig_done(r, "POST", "/v1/znodes/a//b", OCTETS, "x", 400);
    webrig_done(r, "POST", "/v1/znodes/a/../b", OCTETS, "x", 400);
    webrig_done(r, "POST", "/v1/znodes/%00", OCTETS, "x", 400);
    webrig_done(r, "POST", "/v1/znodes/%ff", OCTETS, "x", 400);
}

TEST(an_access_list_is_set_and_counts)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    create(r, "/v1/znodes/a", "x");
    struct webrig_call *c = webrig_answer(
        r, "PUT", "/v1/znodes/a?acl", NULL,
        "{\"acl\": [{\"perms\": \"ra\", \"scheme\": \"world\", \"id\": \"anyone\"}]}", 200);
    assert_string_equal(webrig_member(c, "aversion"), "1");
    webrig_end(c);
    c = webrig_answer(r, "PUT", "/v1/znodes/a", NULL, "y", 403);
    assert_string_equal(webrig_member(c, "code"), "ENOAUTH");
    webrig_end(c);
    webrig_done(r, "PUT", "/v1/znodes/a?acl", NULL, "{\"acl\": [{\"perms\": \"q\"}]}", 400);
    webrig_done(r, "PUT", "/v1/znodes/a?acl", NULL, "{\"acl\": [3]}", 400);
    webrig_done(r, "PUT", "/v1/znodes/a?acl", NULL, "{\"acl\": []}", 400);
    webrig_done(r, "PUT", "/v1/znodes/a?acl", NULL, "[]", 400);
    webrig_done(r, "PUT", "/v1/znodes/a?acl", NULL, "{\"acl\": [}", 400);
    webrig_done(r, "PUT", "/v1/znodes/a?acl", OCTETS, "{}", 415);
}

TEST(a_role_is_needed_on_the_path)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    create(r, "/v1/znodes/a", "x");
    create(r, "/v1/znodes/b", "x");
    r->naudits = 0;
    r->peer.uid = 8;
    webrig_done(r, "PUT", "/v1/znodes/a", NULL, "y", 200);
    webrig_done(r, "PUT", "/v1/znodes/b", NULL, "y", 403);
    webrig_done(r, "PUT", "/v1/znodes/ab", NULL, "y", 403);
    webrig_done(r, "PUT", "/v1/znodes/%2Fb", NULL, "y", 403);
    webrig_done(r, "GET", "/v1/znodes/b", NULL, NULL, 200);
    webrig_done(r, "POST", "/v1/multi", NULL, "{\"ops\":[{\"op\":\"set\",\"path\":\"/b\"}]}", 403);
    webrig_done(r, "POST", "/v1/multi", NULL, "{\"ops\":[{\"op\":\"check\",\"path\":\"/b\"}]}",
                200);
    assert_int_equal(r->naudits, 6);
    assert_string_equal(r->audits[0], "bob PUT /v1/znodes/a 200 /a");
    assert_string_equal(r->audits[1], "bob PUT /v1/znodes/b 403 /b");
}

/* "/a" as a sequential node is "/a0000000001", beside what the role is for. */
TEST(a_sequential_node_is_beside_its_path)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    create(r, "/v1/znodes/a", "x");
    r->peer.uid = 8;
    webrig_done(r, "POST", "/v1/znodes/a?mode=persistent_sequential", OCTETS, "x", 403);
    webrig_done(r, "POST", "/v1/znodes/a/?mode=persistent_sequential", OCTETS, "x", 201);
    webrig_done(r, "POST", "/v1/znodes/a/n-?mode=persistent_sequential", OCTETS, "x", 201);
    webrig_done(
        r, "POST", "/v1/multi", NULL,
        "{\"ops\":[{\"op\":\"create\",\"path\":\"/a\",\"mode\":\"persistent_sequential\"}]}", 403);
    webrig_done(
        r, "POST", "/v1/multi", NULL,
        "{\"ops\":[{\"op\":\"create\",\"path\":\"/a/n\",\"mode\":\"persistent_sequential\"}]}",
        200);
}

/* "/shard" as a sequential node is "/shard0000000000", which the prefix "/shard0" does not cover.
 */
TEST(a_prefix_covers_the_number_of_a_sequential_node)
{
    static const struct web_grant shard0[] = {{WEB_WRITE, "/shard0"}};
    static const struct web_user writer[] = {
        {.name = "w", .uid = 8, .grants = shard0, .ngrants = 1}};
    static const struct web_access access = {.users = writer, .nusers = 1, .owner_uid = 7};
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &access});
    r->peer = (struct web_peer){.is_unix = true, .uid = 8};
    webrig_done(
        r, "POST", "/v1/multi", NULL,
        "{\"ops\":[{\"op\":\"create\",\"path\":\"/shard\",\"mode\":\"persistent_sequential\"}]}",
        403);
    webrig_done(r, "POST", "/v1/znodes/shard?mode=persistent_sequential", OCTETS, "x", 403);
}

/* ---- transactions --------------------------------------------------------------------------- */

TEST(a_transaction_is_done_or_not)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    struct webrig_call *c =
        webrig_answer(r, "POST", "/v1/multi", NULL,
                      "{\"ops\": [{\"op\": \"create\", \"path\": \"/a\", \"data\": \"x\"},"
                      "{\"op\": \"create\", \"path\": \"/a/n\", \"data_base64\": \"AP8=\","
                      " \"mode\": \"persistent_sequential\"},"
                      "{\"op\": \"set\", \"path\": \"/a\", \"data\": \"y\", \"version\": 0},"
                      "{\"op\": \"check\", \"path\": \"/a\", \"version\": 1}]}",
                      200);
    assert_non_null(strstr(webrig_body(c), "\"path\": \"/a/n0000000000\""));
    webrig_end(c);
    c = webrig_answer(r, "GET", "/v1/znodes/a/n0000000000", NULL, NULL, 200);
    assert_int_equal(clave__buf_len(&c->body), 2);
    assert_memory_equal(clave__buf_bytes(&c->body), "\0\xff", 2);
    webrig_end(c);
    c = webrig_answer(r, "POST", "/v1/multi", NULL,
                      "{\"ops\": [{\"op\": \"set\", \"path\": \"/a\", \"data\": \"z\"},"
                      "{\"op\": \"delete\", \"path\": \"/a\", \"version\": 7}]}",
                      412);
    assert_string_equal(webrig_member(c, "failed"), "1");
    assert_string_equal(webrig_member(c, "path"), "/a");
    webrig_end(c);
    c = webrig_answer(r, "GET", "/v1/znodes/a", NULL, NULL, 200);
    assert_string_equal(webrig_body(c), "y");
    webrig_end(c);
    webrig_done(r, "POST", "/v1/multi", NULL, "{\"ops\":[{\"op\":\"delete\",\"path\":\"/a\"}]}",
                409);
    webrig_done(r, "POST", "/v1/multi", NULL, "{\"ops\":[{\"op\":\"set\",\"path\":\"/no\"}]}", 404);
}

TEST(a_malformed_transaction_is_told)
{
    static const char *const bad[] = {
        "",
        "{}",
        "{\"ops\": []}",
        "{\"ops\": {}}",
        "{\"ops\": [1]}",
        "{\"ops\": [{}]}",
        "{\"ops\": [{\"op\": \"set\"}]}",
        "{\"ops\": [{\"op\": \"get\", \"path\": \"/a\"}]}",
        "{\"ops\": [{\"op\": 1, \"path\": \"/a\"}]}",
        "{\"ops\": [{\"op\": \"set\", \"path\": \"a\"}]}",
        "{\"ops\": [{\"op\": \"set\", \"path\": \"/a\", \"version\": -2}]}",
        "{\"ops\": [{\"op\": \"set\", \"path\": \"/a\", \"version\": 1.5}]}",
        "{\"ops\": [{\"op\": \"set\", \"path\": \"/a\", \"mode\": \"persistent\"}]}",
        "{\"ops\": [{\"op\": \"set\", \"path\": \"/a\", \"data_base64\": \"A\"}]}",
        "{\"ops\": [{\"op\": \"set\", \"path\": \"/a\", \"data_base64\": \"\", \"data\": \"\"}]}",
        "{\"ops\": [{\"op\": \"create\", \"path\": \"/a\", \"mode\": \"persistent_ttl\"}]}",
        "{\"ops\": [{\"op\": \"create\", \"path\": \"/a\", \"ttl_ms\": 1000}]}",
        "{\"ops\": [{\"op\": \"create\", \"path\": \"/a\", \"mode\": \"none\"}]}",
        "{\"ops\": [{\"op\": \"create\", \"path\": \"/a\", \"mode\": \"ephemeral\"}]}",
        "{\"ops\": [], \"ops\": []}",
        "{\"ops\": [{\"op\": \"set\", \"path\": \"/a\\u0000b\"}]}",
        "[[[[[[[[[[[[[[[[",
        "\xff",
        "{} {}",
    };
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        webrig_done(r, "POST", "/v1/multi", NULL, bad[i], 400);
    webrig_done(r, "POST", "/v1/multi", "Content-Type: text/plain", "{}", 415);
    webrig_done(r, "POST", "/v1/multi", "Content-Type: application/json-seq", "{}", 415);
    webrig_done(r, "POST", "/v1/multi", "Content-Type: Application/JSON; charset=utf-8",
                "{\"ops\":[{\"op\":\"check\",\"path\":\"/\"}]}", 200);
}

/* ---- places --------------------------------------------------------------------------------- */

static int64_t last_czxid;

static void on_created(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    (void)arg;
    assert_int_equal(res->err, CLAVE_OK);
    last_czxid = res->stat->czxid;
}

/* Queues as Curator's mutex does; returns the token. */
static int64_t queue(struct webrig *r, const char *path)
{
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    o.mode = CLAVE_EPHEMERAL_SEQUENTIAL;
    o.flags = CLAVE_CREATE_PARENTS;
    assert_int_equal(clave_async_create(r->net->clients[0].c, path, NULL, 0, &o, on_created, NULL),
                     CLAVE_OK);
    webrig_settle(r);
    return last_czxid;
}

/* ---- lost connections ----------------------------------------------------------------------- */

TEST(a_lost_answer_is_an_unknown_outcome_of_writes_only)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    create(r, "/v1/znodes/a", "x");
    memnet_rule(r->net,
                (struct memnet_rule){
                    .client = 1, .way = MEMNET_REPLY, .op = OP_SET_DATA, .fate = MEMNET_LOSE});
    struct webrig_call *c = webrig_answer(r, "PUT", "/v1/znodes/a", NULL, "y", 504);
    assert_string_equal(webrig_member(c, "class"), "unknown");
    assert_string_equal(webrig_member(c, "code"), "ECONNLOSS");
    webrig_end(c);
    memnet_rule(r->net,
                (struct memnet_rule){
                    .client = 1, .way = MEMNET_REPLY, .op = OP_GET_DATA, .fate = MEMNET_LOSE});
    c = webrig_request(r, "GET", "/v1/znodes/a", NULL, NULL);
    webrig_advance(r, 3000);
    assert_int_equal(c->status, 200); /* sent again */
    assert_string_equal(webrig_body(c), "y");
}

/* It is in the buffer of a connection that takes nothing and is lost after its sender has left. */
TEST(a_write_that_nobody_waits_for_is_not_sent_on_the_next_connection)
{
    static const struct {
        const char *method, *target, *headers;
    } requests[] = {
        {"PUT", "/v1/znodes/a", NULL},
        {"PUT", "/v1/znodes/b", "If-None-Match: *"},
        {"DELETE", "/v1/znodes/a", NULL},
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
        create(r, "/v1/znodes/a", "x");
        memnet_freeze(r->net, 1, true);
        struct webrig_call *c = webrig_request(r, requests[i].method, requests[i].target,
                                               requests[i].headers, i < 2 ? "late" : NULL);
        assert_false(c->answered);
        webrig_end(c);
        memnet_cut(r->net, 1);
        memnet_freeze(r->net, 1, false);
        webrig_advance(r, 3000);
        webrig_done(r, "GET", "/v1/znodes/b", NULL, NULL, 404);
        c = webrig_answer(r, "GET", "/v1/znodes/a", NULL, NULL, 200);
        assert_string_equal(webrig_body(c), "x");
        webrig_end(c);
    }
}

TEST(a_write_does_not_wait_for_a_connection)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    memnet_refuse(r->net, 1, true);
    struct webrig_call *c = webrig_answer(r, "PUT", "/v1/znodes/a", "If-None-Match: *", "y", 503);
    assert_string_equal(webrig_header(c, "Retry-After"), "1");
    assert_string_equal(webrig_member(c, "class"), "retry");
    webrig_end(c);
    c = webrig_request(r, "GET", "/v1/znodes/", NULL, NULL);
    assert_false(c->answered);
    webrig_advance(r, 20000);
    assert_int_equal(c->status, 503);
    webrig_end(c);
    memnet_refuse(r->net, 1, false);
    webrig_advance(r, 20000);
    webrig_done(r, "GET", "/v1/znodes/a", NULL, NULL, 404);
}

/* What was asked for stays in the client until a server answers: it must not be without end. */
TEST(reads_that_are_given_up_have_a_bound)
{
    enum { ENOUGH = 3000 };
    size_t refused = 0;
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    memnet_refuse(r->net, 1, true);
    for (int i = 0; i < ENOUGH; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", "/v1/znodes/", NULL, NULL);
        refused += c->answered && c->status == 503;
    }
    assert_true(refused > 0 && refused < ENOUGH);
    memnet_refuse(r->net, 1, false);
    webrig_advance(r, 20000);
    webrig_done(r, "GET", "/v1/znodes/", NULL, NULL, 200);
}

TEST(a_client_that_hangs_up_leaves_nothing)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    memnet_rule(r->net,
                (struct memnet_rule){
                    .client = 1, .way = MEMNET_REPLY, .op = MEMNET_ANY, .fate = MEMNET_HOLD});
    struct webrig_call *c = webrig_request(r, "GET", "/v1/znodes/?sync", NULL, NULL);
    struct webrig_call *late = webrig_request(r, "GET", "/v1/znodes/?children", NULL, NULL);
    assert_false(c->answered);
    webrig_end(c);
    clave__web_close(r->web, r->net->now);
    assert_int_equal(late->status, 503);
    webrig_end(late);
    memnet_clear(r->net);
}

/* ---- places in queues ----------------------------------------------------------------------- */

TEST(a_place_is_asked_for_or_taken_away)
{
    char body[100];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    int64_t token = queue(r, "/l/_c_1-lock-");
    queue(r, "/s/leases/_c_1-lease-");
    create(r, "/v1/znodes/l/config", "keep");
    webrig_done(r, "POST", "/v1/locks/l/revoke", NULL, "{\"node\": \"_c_1-lock-0000000000\"}", 200);
    struct webrig_call *c =
        webrig_answer(r, "GET", "/v1/znodes/l/_c_1-lock-0000000000", NULL, NULL, 200);
    assert_string_equal(webrig_body(c), "__REVOKE__");
    webrig_end(c);
    static const char *const said[][2] = {{"1", "\"revocable\": true"}, {"0", "takes no requests"}};
    for (int i = 0; i < 2; i++) {
        snprintf(body, sizeof body, "clave/1\nhost=web1\nrevocable=%s\n", said[i][0]);
        webrig_done(r, "PUT", "/v1/znodes/l/_c_1-lock-0000000000", NULL, body, 200);
        c = webrig_answer(r, "POST", "/v1/locks/l/revoke", NULL,
                          "{\"node\": \"_c_1-lock-0000000000\"}", i == 0 ? 200 : 409);
        assert_non_null(strstr(webrig_body(c), said[i][1]));
        webrig_end(c);
    }
    webrig_done(r, "POST", "/v1/locks/l/revoke", NULL, "{\"node\": \"config\"}", 409);
    webrig_done(r, "POST", "/v1/locks/l/break", NULL, "{\"node\": \"config\", \"force\": true}",
                409);
    webrig_done(r, "POST", "/v1/locks/l/revoke", NULL, "{}", 400);
    webrig_done(r, "POST", "/v1/locks/l/revoke", NULL, "{\"node\": \"../a\"}", 400);
    webrig_done(r, "POST", "/v1/locks/l/revoke", NULL, "{\"node\": \"x-lock-0000000009\"}", 404);
    webrig_done(r, "POST", "/v1/locks/s/revoke", NULL, "{\"node\": \"_c_1-lease-0000000000\"}",
                200);
    snprintf(body, sizeof body, "{\"token\": \"%" PRId64 "\"}", token);
    c = webrig_answer(r, "POST", "/v1/locks/l/break", NULL, body, 409);
    assert_non_null(strstr(webrig_body(c), "force"));
    webrig_end(c);
    snprintf(body, sizeof body, "{\"token\": \"%" PRId64 "\", \"force\": true}", token);
    webrig_done(r, "POST", "/v1/locks/l/break", NULL, body, 200);
    webrig_done(r, "GET", "/v1/znodes/l/_c_1-lock-0000000000", NULL, NULL, 404);
    webrig_done(r, "POST", "/v1/locks/l/break", NULL, body, 410);
    r->peer.uid = 8;
    webrig_done(r, "POST", "/v1/locks/l/break", NULL, body, 403);
}

TEST(a_leader_is_asked_to_hand_over)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    queue(r, "/e/_c_1-latch-");
    queue(r, "/e/_c_2-latch-");
    queue(r, "/e/_c_3-latch-");
    webrig_done(r, "POST", "/v1/elections/e/transfer", NULL, "{}", 400);
    webrig_done(r, "POST", "/v1/elections/e/transfer", NULL, "{\"to\": \"a/b\"}", 400);
    webrig_done(r, "POST", "/v1/elections/e/transfer", NULL, "{\"to\": \"_c_9-latch-0000000009\"}",
                404);
    r->naudits = 0;
    webrig_done(r, "POST", "/v1/elections/e/transfer", NULL,
                "{\"to\": \"_c_2-latch-0000000001\", \"reason\": \"drain\"}", 200);
    struct webrig_call *c =
        webrig_answer(r, "GET", "/v1/znodes/e/_c_1-latch-0000000000", NULL, NULL, 200);
    assert_memory_equal(webrig_header(c, "ETag"), "\"1-", 3); /* that is how it is asked */
    assert_int_equal(r->naudits, 1);
}

/* ---- sessions ------------------------------------------------------------------------------- */

static struct webrig_call *session_new(struct webrig *r, char secret[128])
{
    struct webrig_call *c =
        webrig_answer(r, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 10000}", 201);
    snprintf(secret, 128, "Clave-Session: %s", webrig_member(c, "secret"));
    return c;
}

TEST(ephemeral_nodes_live_as_long_as_their_session)
{
    char secret[128], headers[256];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    struct webrig_call *session = session_new(r, secret);
    snprintf(headers, sizeof headers, "%s\n" OCTETS, secret);
    webrig_done(r, "POST", "/v1/znodes/e?mode=ephemeral", headers, "x", 201);
    webrig_done(r, "POST", "/v1/multi", secret,
                "{\"ops\":[{\"op\":\"create\",\"path\":\"/f\",\"mode\":\"ephemeral\"}]}", 200);
    struct webrig_call *c = webrig_answer(r, "GET", "/v1/znodes/e?stat", NULL, NULL, 200);
    assert_string_not_equal(webrig_member(c, "ephemeral_owner"), "0");
    webrig_end(c);
    webrig_done(r, "GET", "/v1/znodes/e", "Clave-Session: nonsense", NULL, 403);
    char target[100];
    snprintf(target, sizeof target, "/v1/sessions/%s", webrig_member(session, "id"));
    webrig_done(r, "DELETE", target, secret, NULL, 204);
    webrig_done(r, "GET", "/v1/znodes/e", NULL, NULL, 404);
    webrig_done(r, "GET", "/v1/znodes/e", secret, NULL, 410);
    webrig_done(r, "PUT", "/v1/znodes/a", secret, "x", 410);
}

/* Requests of a session count as its client's presence, and their answers as its leaving. */
TEST(a_session_that_writes_is_alive_and_ends_when_it_is_silent)
{
    char secret[128];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    webrig_end(session_new(r, secret));
    webrig_done(r, "PUT", "/v1/znodes/a", "If-None-Match: *", "x", 201);
    for (int i = 0; i < 5; i++) {
        webrig_advance(r, 7000);
        webrig_done(r, "PUT", "/v1/znodes/a", secret, "x", 200);
        webrig_done(r, "PUT", "/v1/znodes/a/", secret, "x", 400);
    }
    webrig_advance(r, 20000);
    webrig_done(r, "PUT", "/v1/znodes/a", secret, "x", 410);
}

TEST(a_session_without_a_connection_is_waited_for)
{
    char secret[128];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    webrig_end(session_new(r, secret));
    webrig_done(r, "PUT", "/v1/znodes/a", "If-None-Match: *", "x", 201);
    memnet_refuse(r->net, 2, true);
    struct webrig_call *c = webrig_request(r, "PUT", "/v1/znodes/a", secret, "y");
    assert_false(c->answered);
    memnet_refuse(r->net, 2, false);
    webrig_advance(r, 3000);
    assert_int_equal(c->status, 200);
}

/* Nothing was sent: it may be repeated. */
TEST(a_write_that_found_no_connection_was_not_done)
{
    char secret[128];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    struct webrig_call *c =
        webrig_answer(r, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 40000}", 201);
    snprintf(secret, sizeof secret, "Clave-Session: %s", webrig_member(c, "secret"));
    webrig_end(c);
    memnet_refuse(r->net, 2, true);
    memnet_cut(r->net, 2);
    c = webrig_request(r, "PUT", "/v1/znodes/a", secret, "y");
    assert_false(c->answered);
    webrig_advance(r, 16000);
    assert_true(c->answered);
    assert_int_equal(c->status, 503);
    assert_string_equal(webrig_member(c, "class"), "retry");
    webrig_end(c);
}
