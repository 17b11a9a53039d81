/* DELETE /v1/znodes/PATH?recursive. */
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "lib/webrig.h"
#include "wire/proto.h"

static const struct web_access owner_only = {.owner_uid = 7};

/* The own client is 0, another one 1. */
static struct webrig *rig(void)
{
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &owner_only});
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    r->peer = (struct web_peer){.is_unix = true, .uid = 7, .address = "unix"};
    o.hosts = "pair:1";
    o.seed = 7;
    assert_int_equal(memnet_open(r->net, &o), 1);
    webrig_settle(r);
    return r;
}

static void create(struct webrig *r, const char *path)
{
    const clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PARENTS};
    assert_int_equal(clave_async_create(r->net->clients[1].c, path, "x", 1, &o, NULL, NULL),
                     CLAVE_OK);
}

/* So many children, each with one of its own. */
static void plant(struct webrig *r, const char *path, int n)
{
    char child[128];
    for (int i = 0; i < n; i++) {
        snprintf(child, sizeof child, "%s/%d/leaf", path, i);
        create(r, child);
    }
    webrig_settle(r);
}

static size_t left(struct webrig *r, const char *path)
{
    char names[8][96];
    return memnet_list(r->net, 1, path, names, 8);
}

static struct webrig_call *delete_all(struct webrig *r, const char *target, const char *headers)
{
    return webrig_request(r, "DELETE", target, headers, NULL);
}

static void expect(struct webrig_call *c, unsigned status, const char *deleted)
{
    const char *n = webrig_member(c, "deleted");
    if (!c->done || c->status != status || (deleted && (!n || strcmp(n, deleted) != 0)))
        fail_msg("%u %s", c->status, webrig_body(c));
    webrig_end(c);
}

TEST(a_tree_goes_with_all_that_is_below_it)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig();
    plant(r, "/a", 1500);
    plant(r, "/b", 2);
    expect(delete_all(r, "/v1/znodes/a?recursive", NULL), 200, "3001");
    expect(webrig_request(r, "GET", "/v1/znodes/a", NULL, NULL), 404, NULL);
    assert_int_equal(left(r, "/b"), 2);
    expect(delete_all(r, "/v1/znodes/b/0/leaf?recursive", NULL), 200, "1");
}

TEST(what_is_refused_is_not_begun)
{
    static const struct {
        const char *target, *headers;
        unsigned status;
    } cases[] = {
        {"/v1/znodes/a?recursive&max=4", NULL, 413},
        {"/v1/znodes/a?recursive&max=0", NULL, 400},
        {"/v1/znodes/a?recursive&max=100001", NULL, 400},
        {"/v1/znodes/a?max=3", NULL, 400},
        {"/v1/znodes/?recursive", NULL, 400},
        {"/v1/znodes/zookeeper?recursive", NULL, 400},
        {"/v1/znodes/zookeeper/quota?recursive", NULL, 400},
        {"/v1/znodes/none?recursive", NULL, 404},
        {"/v1/znodes/a?recursive", "If-Match: \"0\"", 400},
        {"/v1/znodes/a?recursive", "Clave-Guard: /a;token=1", 400},
    };
    CLOSED_BY(webrig_freed) struct webrig *r = rig();
    plant(r, "/a", 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = delete_all(r, cases[i].target, cases[i].headers);
        if (c->status != cases[i].status)
            fail_msg("%s: %u %s", cases[i].target, c->status, webrig_body(c));
        assert_null(webrig_member(c, "left")); /* it has not counted them */
    }
    assert_int_equal(left(r, "/a"), 2);
    assert_int_equal(left(r, "/a/0"), 1);
    expect(delete_all(r, "/v1/znodes/a?recursive&max=5", NULL), 200, "5");
}

/* The role must cover all of it, which one of the path does. */
TEST(the_role_is_needed_on_the_path)
{
    static const struct web_grant grants[] = {{WEB_WRITE, "/a/0"}};
    static const struct web_user users[] = {
        {.name = "w", .token = "secret", .uid = -1, .grants = grants, .ngrants = 1}};
    static const struct web_access access = {.users = users, .nusers = 1};
    static const char token[] = "Authorization: Bearer secret";
    CLOSED_BY(webrig_freed) struct webrig *r = rig();
    clave__web_set_access(r->web, &access);
    r->peer = (struct web_peer){.uid = -1, .address = "10.0.0.1:1"};
    plant(r, "/a", 2);
    expect(delete_all(r, "/v1/znodes/a?recursive", token), 403, NULL);
    expect(delete_all(r, "/v1/znodes/a/0?recursive", NULL), 401, NULL);
    expect(delete_all(r, "/v1/znodes/a/0?recursive", token), 200, "2");
    assert_int_equal(left(r, "/a"), 1);
}

/* Between the list and the deletion. */
static struct webrig_call *delete_slowly(struct webrig *r, const char *target)
{
    memnet_rule(r->net, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    struct webrig_call *c = delete_all(r, target, NULL);
    assert_false(c->answered);
    return c;
}

TEST(nodes_that_go_meanwhile_are_gone)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig();
    plant(r, "/a", 1000);
    struct webrig_call *c = delete_slowly(r, "/v1/znodes/a?recursive");
    for (int i = 0; i < 1000; i += 7) {
        char path[64];
        snprintf(path, sizeof path, "/a/%d/leaf", i);
        assert_int_equal(memnet_delete(r->net, 1, path), CLAVE_OK);
    }
    memnet_clear(r->net);
    webrig_settle(r);
    expect(c, 200, NULL);
    expect(webrig_request(r, "GET", "/v1/znodes/a", NULL, NULL), 404, NULL);
}

TEST(a_node_that_comes_meanwhile_is_not_deleted)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig();
    plant(r, "/a", 3);
    struct webrig_call *c = delete_slowly(r, "/v1/znodes/a?recursive");
    create(r, "/a/1/new");
    webrig_settle(r);
    memnet_clear(r->net);
    webrig_settle(r);
    assert_int_equal(c->status, 409);
    assert_string_equal(webrig_member(c, "code"), "ENOTEMPTY");
    assert_string_equal(webrig_member(c, "left"), "7");
    expect(c, 409, "0"); /* one transaction */
    expect(delete_all(r, "/v1/znodes/a?recursive", NULL), 200, "8");
}

TEST(a_lost_answer_is_an_unknown_outcome)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig();
    plant(r, "/a", 1000);
    memnet_rule(r->net, (struct memnet_rule){0, MEMNET_REPLY, OP_MULTI, MEMNET_LOSE, 2});
    struct webrig_call *c = delete_all(r, "/v1/znodes/a?recursive", NULL);
    webrig_advance(r, 20000);
    assert_string_equal(webrig_member(c, "class"), "unknown");
    expect(c, 504, "400");
    webrig_advance(r, 5000);
    memnet_rule(r->net, (struct memnet_rule){0, MEMNET_REPLY, OP_MULTI, MEMNET_HOLD, 0});
    c = delete_all(r, "/v1/znodes/a?recursive", NULL);
    webrig_end(c); /* hangs up */
    memnet_clear(r->net);
}

/* Servers that answer no more, or a gate that stops, in the midst of it: what is known is told. */
TEST(what_was_deleted_so_far_is_told)
{
    for (int stops = 0; stops < 2; stops++) {
        CLOSED_BY(webrig_freed) struct webrig *r = rig();
        plant(r, "/a", 1000);
        memnet_rule(r->net, (struct memnet_rule){0, MEMNET_REPLY, OP_MULTI, MEMNET_HOLD, 2});
        struct webrig_call *c = delete_all(r, "/v1/znodes/a?recursive", NULL);
        assert_false(c->answered);
        if (stops)
            clave__web_close(r->web, r->net->now);
        webrig_settle(r);
        for (int ms = 0; ms < 16000 && !c->answered; ms += 500)
            webrig_advance(r, 500);
        assert_string_equal(webrig_member(c, "class"), "unknown");
        assert_non_null(webrig_member(c, "left"));
        expect(c, 504, "400");
        memnet_clear(r->net);
    }
}

/* It has only been listed. */
TEST(a_list_that_does_not_come_is_no_beginning)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig();
    plant(r, "/a", 3);
    memnet_rule(r->net, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *c = delete_all(r, "/v1/znodes/a?recursive", NULL);
    webrig_advance(r, 20000);
    assert_int_equal(c->status, 503);
    assert_string_equal(webrig_member(c, "class"), "retry");
    webrig_end(c);
    memnet_clear(r->net);
}
