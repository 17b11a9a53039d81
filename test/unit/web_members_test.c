/* /v1/members and registering at /v1/services: ephemeral nodes of a session. */
#include "lib/claim_scene.h"
#include "lib/failmem.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "server/server_internal.h"

static const uint8_t key[32] = {7};

/* Requests have all roles. */
static struct webrig *rig(const struct webrig_options *o)
{
    struct webrig *r = webrig_new(o);
    r->peer = (struct web_peer){.is_unix = true, .uid = 0, .address = "unix"};
    return r;
}

static struct webrig_call *asks(struct webrig *r, const struct user *u, const char *method,
                                const char *target, const char *body)
{
    char headers[200];
    snprintf(headers, sizeof headers, "Clave-Session: %s\nContent-Type: application/octet-stream",
             u->secret);
    struct webrig_call *c = webrig_request(r, method, target, headers, body);
    webrig_advance(r, 100);
    return c;
}

/* `request`: "METHOD TARGET". */
static void must(struct webrig *r, const struct user *u, const char *request, const char *body,
                 unsigned status, const char *part)
{
    const char *target = strchr(request, ' ') + 1;
    char method[8] = "";
    memcpy(method, request, (size_t)(target - 1 - request));
    struct webrig_call *c = asks(r, u, method, target, body);
    assert_true(c->answered);
    if (c->status != status || !strstr(webrig_body(c), part))
        fail_msg("%s: %u, not %u with %s: %s", request, c->status, status, part, webrig_body(c));
    webrig_end(c);
}

static void lists(struct webrig *r, const char *target, const char *part)
{
    struct webrig_call *c = webrig_request(r, "GET", target, NULL, NULL);
    webrig_advance(r, 100); /* the first one waits for the copy */
    user_expects(c, 200);
    if (!strstr(webrig_body(c), part))
        fail_msg("%s: there is no %s in %s", target, part, webrig_body(c));
    webrig_end(c);
}

TEST(a_session_is_a_member_until_it_leaves)
{
    struct webrig *r = rig(NULL);
    struct user u;
    user_enter(r, &u);
    lists(r, "/v1/members/g", "\"members\": [], \"as_of_ms\": ");
    must(r, &u, "PUT /v1/members/g/a", "10.0.0.7", 201, "\"path\": \"/g/a\", \"session\": \"");
    lists(r, "/v1/members/g", "{\"id\": \"a\", \"session\": \"");
    lists(r, "/v1/members/g", "\"data\": \"10.0.0.7\"}], ");
    must(r, &u, "PUT /v1/members/g/a", "10.0.0.7", 200, "\"version\": 0");
    must(r, &u, "PUT /v1/members/g/a", "10.0.0.8", 200, "\"version\": 1");
    must(r, &u, "PUT /v1/members/g/b", "\xff", 201, "\"path\": \"/g/b\"");
    lists(r, "/v1/members/g", "\"data\": null, \"data_base64\": \"/w==\"}], ");
    must(r, &u, "DELETE /v1/members/g/a", NULL, 204, "");
    must(r, &u, "DELETE /v1/members/g/a", NULL, 404, "no such node");
    char target[64];
    snprintf(target, sizeof target, "DELETE /v1/sessions/%s", u.id);
    must(r, &u, target, NULL, 204, "");
    lists(r, "/v1/members/g?fresh", "\"members\": []");
    webrig_free(r);
}

TEST(a_node_that_was_deleted_is_made_anew_by_the_next_put)
{
    struct webrig *r = rig(&(struct webrig_options){.net = {.clients = 1}});
    struct user u;
    webrig_settle(r);
    user_enter(r, &u);
    must(r, &u, "PUT /v1/members/g/a", "x", 201, "");
    assert_int_equal(memnet_delete(r->net, 0, "/g/a"), CLAVE_OK);
    must(r, &u, "PUT /v1/members/g/a", "x", 201, "");
    webrig_free(r);
}

TEST(an_id_has_one_session)
{
    struct webrig *r = rig(&(struct webrig_options){.net = {.clients = 1}});
    struct user u, v;
    char owner[64], target[64];
    webrig_settle(r);
    user_enter(r, &u);
    user_enter(r, &v);
    must(r, &u, "PUT /v1/members/g/a", "u", 201, "");
    snprintf(owner, sizeof owner, "\"session\": \"%s\"", u.id);
    must(r, &v, "PUT /v1/members/g/a", "v", 409, owner);
    must(r, &v, "DELETE /v1/members/g/a", NULL, 409, owner);
    snprintf(target, sizeof target, "PUT /v1/members/g/a?replace=%s", v.id);
    must(r, &v, target, "v", 409, owner);
    must(r, &v, "PUT /v1/members/g/a?replace", "v", 201, v.id);
    must(r, &u, target, "u", 201, u.id);
    must(r, &v, "PUT /v1/members/g/a?replace=x", "v", 400, "replace is the id of a session");
    must(r, &v, "PUT /v1/members/g/a?replace=1", "v", 201, v.id);
    lists(r, "/v1/members/g?fresh", "\"data\": \"v\"");
    must(r, &u, "DELETE /v1/members/g/a", NULL, 409, "");
    must(r, &u, "PUT /v1/members/g/a", "u", 409, "?replace takes its place");
    assert_int_equal(memnet_create(r->net, 0, "/g/kept"), CLAVE_OK);
    must(r, &u, "PUT /v1/members/g/kept?replace", "u", 409, "belongs to no session");
    must(r, &u, "DELETE /v1/members/g/kept", NULL, 409, "belongs to no session");
    webrig_free(r);
}

TEST(a_node_that_became_anothers_is_not_taken_for_its_own)
{
    struct webrig *r = rig(&(struct webrig_options){.net = {.clients = 1}});
    struct user u, v;
    webrig_settle(r);
    user_enter(r, &u);
    user_enter(r, &v);
    must(r, &u, "PUT /v1/members/g/a", "u", 201, "");
    memnet_rule(r->net,
                (struct memnet_rule){
                    .client = 2, .way = MEMNET_REQUEST, .op = OP_SET_DATA, .fate = MEMNET_HOLD});
    struct webrig_call *c = asks(r, &u, "PUT", "/v1/members/g/a", "u2");
    assert_false(c->answered);
    assert_int_equal(memnet_delete(r->net, 0, "/g/a"), CLAVE_OK);
    must(r, &v, "PUT /v1/members/g/a", "v", 201, ""); /* of the version that u has seen */
    memnet_clear(r->net);
    webrig_advance(r, 100);
    user_expects(c, 409);
    webrig_end(c);
    webrig_free(r);
}

TEST(a_delete_that_is_late_does_not_meet_the_node_that_has_replaced_its_own)
{
    struct webrig *r = rig(&(struct webrig_options){.net = {.clients = 1}});
    struct user u, v;
    webrig_settle(r);
    user_enter(r, &u);
    user_enter(r, &v);
    for (int version = 0; version < 2; version++) {
        must(r, &u, "PUT /v1/members/g/a", "u", 201, "");
        if (version == 1)
            must(r, &u, "PUT /v1/members/g/a", "u2", 200, "\"version\": 1");
        memnet_rule(r->net,
                    (struct memnet_rule){
                        .client = 2, .way = MEMNET_REQUEST, .op = OP_DELETE, .fate = MEMNET_HOLD});
        struct webrig_call *c = asks(r, &u, "DELETE", "/v1/members/g/a", NULL);
        assert_false(c->answered);
        must(r, &v, "PUT /v1/members/g/a?replace", "v", 201, v.id);
        memnet_clear(r->net);
        webrig_advance(r, 100);
        user_expects(c, 409);
        webrig_end(c);
        must(r, &v, "DELETE /v1/members/g/a", NULL, 204, "");
    }
    webrig_free(r);
}

/* The gate hears that the old node is gone before it has read the new one. */
TEST(a_list_is_never_without_a_node_that_is_replaced)
{
    struct webrig *r = rig(&(struct webrig_options){.net = {.clients = 1}});
    struct user u, v;
    webrig_settle(r);
    user_enter(r, &u);
    user_enter(r, &v);
    must(r, &u, "PUT /v1/members/g/a", "u", 201, "");
    lists(r, "/v1/members/g", "\"data\": \"u\"");
    memnet_rule(r->net,
                (struct memnet_rule){
                    .client = 1, .way = MEMNET_REPLY, .op = OP_GET_DATA, .fate = MEMNET_HOLD});
    must(r, &v, "PUT /v1/members/g/a?replace", "v", 201, "");
    struct webrig_call *c = asks(r, &v, "GET", "/v1/members/g", NULL);
    assert_false(c->answered);
    memnet_clear(r->net);
    webrig_advance(r, 100);
    user_expects(c, 200);
    assert_non_null(strstr(webrig_body(c), "\"data\": \"v\""));
    webrig_end(c);
    webrig_free(r);
}

/* A request that waits until the list is another one than now. */
static struct webrig_call *waits_for(struct webrig *r, const char *target)
{
    char headers[128];
    struct webrig_call *c = webrig_request(r, "GET", target, NULL, NULL);
    snprintf(headers, sizeof headers, "If-None-Match: %s\nPrefer: wait=60",
             webrig_header(c, "ETag"));
    webrig_end(c);
    c = webrig_request(r, "GET", target, headers, NULL);
    assert_false(c->answered);
    return c;
}

TEST(those_who_wait_for_a_list_share_what_the_gate_asks)
{
    struct webrig *r = rig(&(struct webrig_options){.net = {.clients = 1}});
    struct webrig_call *calls[40];
    struct user u, v;
    webrig_settle(r);
    user_enter(r, &u);
    user_enter(r, &v);
    must(r, &u, "PUT /v1/members/g/a", "u", 201, "");
    lists(r, "/v1/members/g", "\"data\": \"u\"");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        calls[i] = waits_for(r, "/v1/members/g");
    memnet_reset_counts(r->net);
    must(r, &v, "PUT /v1/members/g/a?replace", "v", 201, "");
    webrig_advance(r, 200);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        user_expects(calls[i], 200);
        assert_non_null(strstr(webrig_body(calls[i]), "\"data\": \"v\""));
        webrig_end(calls[i]);
    }
    assert_int_equal(r->net->clients[1].requests[OP_SYNC], 1);
    webrig_free(r);
}

TEST(one_who_waits_for_a_list_keeps_none_of_it)
{
    struct failmem m;
    failmem_init(&m);
    struct webrig *r = rig(&(struct webrig_options){.net = {.clients = 1}, .mem = &m.mem});
    static const char *const groups[] = {"/v1/members/one", "/v1/members/g"};
    size_t kept[2];
    struct user u;
    char request[64];
    webrig_settle(r);
    user_enter(r, &u);
    must(r, &u, "PUT /v1/members/one/a", "", 201, "");
    for (int i = 0; i < 200; i++) {
        snprintf(request, sizeof request, "PUT /v1/members/g/%d", i);
        must(r, &u, request, "", 201, "");
    }
    lists(r, "/v1/members/g", "\"199\"");
    for (int i = 0; i < 2; i++) {
        size_t before = m.live;
        struct webrig_call *c = waits_for(r, groups[i]);
        kept[i] = m.live - before;
        webrig_end(c);
    }
    assert_int_equal(kept[1], kept[0]);
    webrig_free(r);
}

TEST(any_gate_of_a_key_knows_its_members)
{
    struct webrig *r = rig(&(struct webrig_options){.session_key = key});
    struct user u;
    user_enter(r, &u);
    webrig_second(r);
    must(r, &u, "PUT /v1/members/g/a", "x", 201, "");
    webrig_other(r);
    must(r, &u, "PUT /v1/members/g/a", "x", 200, "\"version\": 0");
    must(r, &u, "PUT /v1/members/g/b", "x", 201, "");
    webrig_other(r);
    must(r, &u, "DELETE /v1/members/g/b", NULL, 204, "");
    must(r, &u, "DELETE /v1/members/g/a", NULL, 204, "");
    webrig_other(r);
    must(r, &u, "DELETE /v1/members/g/a", NULL, 404, "");
    webrig_free(r);
}

/* While nothing changes, nothing is written: but for one commit at each gate that takes the session
 * over, behind which no server hides what the other gate has done. */
TEST(a_put_that_changes_nothing_writes_nothing)
{
    enum { RENEWALS = 100 };
    static const char *const requests[][2] = {
        {"PUT /v1/members/g/a", "x"},
        {"PUT /v1/services/web/a", "{\"address\": \"h\", \"port\": 80}"},
        {"PUT /v1/services/web/b", "{\"address\": \"h\", \"registrationTimeUTC\": 17}"},
    };
    for (size_t i = 0; i < 2 * (sizeof requests / sizeof *requests); i++) {
        const char *const *request = requests[i / 2];
        struct webrig *r = rig(&(struct webrig_options){.session_key = i % 2 ? key : NULL});
        struct user u;
        user_enter(r, &u);
        must(r, &u, request[0], request[1], 201, "");
        int64_t zxid = r->net->server->last_zxid;
        for (int n = 0; n < RENEWALS; n++)
            must(r, &u, request[0], request[1], 200, "\"version\": 0");
        assert_int_equal(r->net->server->last_zxid, zxid);
        if (i % 2) {
            webrig_second(r);
            must(r, &u, request[0], request[1], 200, "\"version\": 0");
            zxid = r->net->server->last_zxid;
            for (int n = 0; n < RENEWALS; n++)
                must(r, &u, request[0], request[1], 200, "\"version\": 0");
            assert_int_equal(r->net->server->last_zxid, zxid);
        }
        webrig_free(r);
    }
}

TEST(a_lost_answer_is_unknown_and_asked_again)
{
    for (int reply = 0; reply < 2; reply++) {
        struct webrig *r = rig(NULL);
        struct user u;
        user_enter(r, &u);
        must(r, &u, "PUT /v1/members/g/other", "x", 201, "");
        memnet_rule(r->net, (struct memnet_rule){.client = 1,
                                                 .way = reply ? MEMNET_REPLY : MEMNET_REQUEST,
                                                 .op = OP_CREATE2,
                                                 .fate = MEMNET_LOSE});
        must(r, &u, "PUT /v1/members/g/a", "x", 504, "\"class\": \"unknown\"");
        webrig_advance(r, 1000);
        must(r, &u, "PUT /v1/members/g/a", "x", reply ? 200 : 201, "");
        webrig_free(r);
    }
}

TEST(an_instance_is_registered)
{
    struct webrig *r = rig(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    must(r, &u, "PUT /v1/services/web/a", " {\"address\": \"10.0.0.7\", \"port\": 80}", 201,
         "\"path\": \"/services/web/a\"");
    lists(r, "/v1/services/web",
          "\"state\": \"up\", \"fault\": null, \"id\": \"a\", \"address\": \"10.0.0.7\", "
          "\"port\": 80, ");
    lists(r, "/v1/services/web", "\"type\": \"DYNAMIC\"");
    must(r, &v, "PUT /v1/services/web/a",
         "{\"address\": \"h\", \"payload\": {\"zone\": 3}, \"enabled\": false}", 201,
         v.id); /* a program that was started again */
    lists(r, "/v1/services/web?fresh", "\"state\": \"disabled\"");
    must(r, &u, "DELETE /v1/services/web/a", NULL, 409, "");
    char target[80];
    snprintf(target, sizeof target, "PUT /v1/services/web/a?replace=%s", u.id);
    must(r, &u, target, "{\"address\": \"h\"}", 409, "is at /services/web/a\"");
    must(r, &v, target, "{\"address\": \"h\"}", 200, v.id);
    must(r, &v, "PUT /v1/services/web/a?replace=u", "{\"address\": \"h\"}", 400, "replace is");
    must(r, &v, "DELETE /v1/services/web/a", NULL, 204, "");
    must(r, &v, "PUT /v1/services/web/b?base=/s", "{\"address\": \"h\"}", 201,
         "\"path\": \"/s/web/b\"");
    lists(r, "/v1/services?base=/s", "\"id\": \"b\"");
    webrig_free(r);
}

#define ENDPOINT "{\"serviceEndpoint\": {\"host\": \"a\", \"port\": 1}, "

TEST(what_is_asked_wrongly_is_told)
{
    static const struct {
        const char *request, *body, *part;
    } cases[] = {
        {"PUT /v1/members/g/_c_01234567-89ab-4def-8123-456789abcdef-lock-0000000001", "x",
         "the name of a place in a queue"},
        {"PUT /v1/members/g//a", "x", "path"},
        {"PUT /v1/services/web/a", "", "the body is the JSON of an instance"},
        {"PUT /v1/services/web/a", "[]", "the body is the JSON of an instance"},
        {"PUT /v1/services/web/a", "{\"port\": 1", "the instance is not JSON"},
        {"PUT /v1/services/web/a", "{\"port\": 70000}", "the instance has a port"},
        {"PUT /v1/services/web/a", "{\"id\": \"b\"}", "another name or id"},
        {"PUT /v1/services/web/a", "{\"serviceType\": \"STATIC\"}", "not DYNAMIC"},
        {"PUT /v1/services/web/a", ENDPOINT "\"name\": null}", "not DYNAMIC"},
        {"PUT /v1/services/web/a", ENDPOINT "\"id\": null}", "not DYNAMIC"},
        {"PUT /v1/services/web/a", "{\"addres\": \"h\", \"prt\": 1}",
         "unknown member \\\"addres\\\""},
        {"PUT /v1/services/web/a", "{\"address\": \"h\", \"prt\": 1}",
         "unknown member \\\"prt\\\""},
        {"PUT /v1/services/web/a", "{\"status\": \"ALIVE\"}", "unknown member \\\"status\\\""},
        {"PUT /v1/services/web/a", "{\"address\": \"h\", \"status\": \"ALIVE\"}",
         "unknown member \\\"status\\\""},
        {"PUT /v1/services/web/a", "{\"port\": 1}", "has no \\\"address\\\""},
        {"PUT /v1/services/web/a", "{\"address\": null}", "has no \\\"address\\\""},
        {"PUT /v1/services/web/a", "{\"address\": \"\"}", "has no \\\"address\\\""},
        {"PUT /v1/services/web/a%2Fb", "{}", "without /"},
        {"DELETE /v1/services/web/..", NULL, "part of a path"},
    };
    struct webrig *r = rig(NULL);
    struct user u;
    user_enter(r, &u);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        must(r, &u, cases[i].request, cases[i].body, 400, cases[i].part);
    struct webrig_call *c = webrig_request(r, "PUT", "/v1/members/g/a", NULL, "{}");
    user_expects(c, 401);
    webrig_end(c);
    webrig_free(r);
}

TEST(an_id_that_is_too_long_for_an_instance_is_told)
{
    struct webrig *r = rig(NULL);
    struct user u;
    char request[1200];
    int n = snprintf(request, sizeof request, "PUT /v1/services/web/");
    user_enter(r, &u);
    memset(request + n, 'a', sizeof request - (size_t)n - 1);
    request[sizeof request - 1] = '\0';
    must(r, &u, request, "{\"address\": \"h\"}", 400, "has no id that can be part of a path");
    webrig_free(r);
}
