/* /v1/services: the instances of services, from the gate's copy of a server's tree. */
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "lib/webrig_answer.h"

#define WEB1                                                                                       \
    "{\"name\":\"web\",\"id\":\"i1\",\"address\":\"10.0.0.1\",\"port\":80,\"sslPort\":null,"       \
    "\"payload\":{\"zone\":3},\"registrationTimeUTC\":5,\"serviceType\":\"DYNAMIC\",\"uriSpec\":"  \
    "null}"
#define WEB2                                                                                       \
    "{\"name\":\"web\",\"id\":\"i2\",\"address\":\"::1\",\"port\":null,\"sslPort\":443,"           \
    "\"enabled\":false}"

enum { ACTOR = 0, CLIENTS = 1 };

static struct webrig *open_rig(void)
{
    struct webrig *r =
        webrig_new(&(struct webrig_options){.net = {.clients = CLIENTS, .timeout_ms = 6000}});
    assert_int_equal(memnet_create(r->net, ACTOR, "/services"), CLAVE_OK);
    assert_int_equal(memnet_create(r->net, ACTOR, "/services/web"), CLAVE_OK);
    webrig_settle(r);
    return r;
}

static void put(struct webrig *r, const char *path, const char *data)
{
    (void)memnet_create(r->net, ACTOR, path);
    assert_int_equal(memnet_set(r->net, ACTOR, path, data), CLAVE_OK);
    webrig_settle(r);
}

static struct webrig_call *get(struct webrig *r, const char *target, unsigned status)
{
    struct webrig_call *c = webrig_request(r, "GET", target, NULL, NULL);
    webrig_advance(r, 100); /* the first one waits for the copy */
    assert_true(c->done);
    if (c->status != status)
        fail_msg("%s: %u, not %u: %s", target, c->status, status, webrig_body(c));
    return c;
}

static void answers(struct webrig *r, const char *target, const char *body)
{
    CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, target, 200);
    assert_string_equal(webrig_body(c), body);
}

static void has(struct webrig *r, const char *target, unsigned status, const char *part)
{
    CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, target, status);
    if (!strstr(webrig_body(c), part))
        fail_msg("%s: there is no %s in %s", target, part, webrig_body(c));
}

TEST(instances_are_listed)
{
    CLOSED_BY(webrig_freed) struct webrig *r = open_rig();
    put(r, "/services/web/i1", WEB1);
    put(r, "/services/web/i2", WEB2);
    put(r, "/services/web/odd", "127.0.0.1");
    has(r, "/v1/services", 200,
        "{\"path\": \"/services\", \"instances\": [{\"service\": \"web\", \"path\": "
        "\"/services/web/i1\", \"state\": \"up\", \"fault\": null, \"id\": \"i1\", \"address\": "
        "\"10.0.0.1\", \"port\": 80, \"ssl_port\": null, \"payload\": {\"zone\":3}, "
        "\"registered\": 5, \"type\": \"DYNAMIC\", \"uri_spec\": null, \"uri\": null}, "
        "{\"service\": \"web\", "
        "\"path\": \"/services/web/i2\", \"state\": \"disabled\", ");
    has(r, "/v1/services/web", 200,
        "\"path\": \"/services/web/odd\", \"state\": \"unreadable\", \"fault\": \"is not a JSON "
        "object\", \"id\": null, ");
    CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, "/v1/services/web?fresh", 200);
    assert_string_equal(webrig_member(c, "unreadable"), "1");
    assert_string_equal(webrig_member(c, "source"), "servers");
    assert_string_equal(webrig_header(c, "Clave-Source"), "servers");
}

TEST(prometheus_gets_targets_that_are_up)
{
    CLOSED_BY(webrig_freed) struct webrig *r = open_rig();
    answers(r, "/v1/services?format=http_sd", "[]");
    put(r, "/services/web/i1", WEB1);
    put(r, "/services/web/i2", WEB2);
    put(r, "/services/web/odd", "127.0.0.1");
    put(r, "/services/web/member_0000000001",
        "{\"serviceEndpoint\":{\"host\":\"h\",\"port\":9},\"status\":\"ALIVE\"}");
    answers(r, "/v1/services?format=http_sd",
            "[{\"targets\": [\"10.0.0.1:80\"], \"labels\": {\"__meta_clave_service\": \"web\", "
            "\"__meta_clave_path\": \"/services/web/i1\", \"__meta_clave_id\": \"i1\", "
            "\"__meta_clave_type\": \"DYNAMIC\", \"__meta_clave_payload\": \"{\\\"zone\\\":3}\"}}, "
            "{\"targets\": [\"h:9\"], \"labels\": {\"__meta_clave_service\": \"web\", "
            "\"__meta_clave_path\": \"/services/web/member_0000000001\", \"__meta_clave_id\": "
            "\"\", \"__meta_clave_type\": \"SERVERSET\"}}]");
    put(r, "/services/web/i2",
        "{\"name\":\"web\",\"id\":\"i2\",\"address\":\"::1\",\"sslPort\":443}");
    has(r, "/v1/services/web?format=http_sd", 200, "{\"targets\": [\"[::1]:443\"], ");
    has(r, "/v1/services/web?format=http_sd", 200, "\"__scheme__\": \"https\"");
}

/* It goes with its last instance, and Prometheus would keep that after a 404. */
TEST(a_service_without_a_node_has_no_instances)
{
    CLOSED_BY(webrig_freed) struct webrig *r = open_rig();
    put(r, "/services/web/i1", WEB1);
    has(r, "/v1/services/web?format=http_sd", 200, "10.0.0.1:80");
    assert_int_equal(memnet_delete(r->net, ACTOR, "/services/web/i1"), CLAVE_OK);
    assert_int_equal(memnet_delete(r->net, ACTOR, "/services/web"), CLAVE_OK);
    webrig_settle(r);
    answers(r, "/v1/services/web?format=http_sd", "[]");
    answers(r, "/v1/services?format=http_sd", "[]");
    has(r, "/v1/services?base=/none", 200, "\"instances\": []");
}

TEST(a_balancer_asks_whether_one_is_ready)
{
    CLOSED_BY(webrig_freed) struct webrig *r = open_rig();
    put(r, "/services/web/i2", WEB2);
    has(r, "/v1/services/web?ready", 503, "\"code\": \"ENONODE\"");
    has(r, "/v1/services/web?ready", 503, "\"class\": \"retry\"");
    has(r, "/v1/services/none?ready", 503, "no instance at /services/none is up");
    put(r, "/services/web/i1", WEB1);
    CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, "/v1/services/web?ready", 200);
    assert_non_null(strstr(webrig_body(c), "\"id\": \"i1\""));
    assert_null(strstr(webrig_body(c), "\"id\": \"i2\""));
}

/* Its instances would be missing in a list that says it is all. */
TEST(a_service_that_the_gate_may_not_read_is_told)
{
    CLOSED_BY(webrig_freed) struct webrig *r = open_rig();
    r->peer = (struct web_peer){.is_unix = true, .uid = 0, .address = "unix"}; /* all roles */
    put(r, "/services/web/i1", WEB1);
    put(r, "/services/secret", "");
    webrig_end(webrig_answer(r, "PUT", "/v1/znodes/services/secret?acl", NULL,
                             "{\"acl\": [{\"perms\": \"ca\", \"scheme\": \"world\", \"id\": "
                             "\"anyone\"}]}",
                             200));
    has(r, "/v1/services", 403, "may not read /services/secret, so what is at /services is not");
    has(r, "/v1/services?format=http_sd", 403, "\"code\": \"ENOAUTH\"");
    has(r, "/v1/services/secret", 403, "may not read /services/secret, so");
    has(r, "/v1/services/web", 200, "\"id\": \"i1\"");
}

/* While the gate has no server: whoever reads a list keeps the last one that was right. */
TEST(an_old_list_is_not_answered)
{
    CLOSED_BY(webrig_freed) struct webrig *r = open_rig();
    put(r, "/services/web/i1", WEB1);
    has(r, "/v1/services?format=http_sd", 200, "10.0.0.1:80");
    memnet_stop_server(r->net);
    webrig_advance(r, 5000);
    has(r, "/v1/services?format=http_sd", 503,
        "which instances there are at /services is not known");
    memnet_start_server(r->net);
    webrig_advance(r, 5000);
    has(r, "/v1/services?format=http_sd", 200, "10.0.0.1:80");
}

/* A request for a list that its sender knows. */
static struct webrig_call *wait_for_change(struct webrig *r, const char *target)
{
    char headers[100];
    CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, target, 200);
    snprintf(headers, sizeof headers, "If-None-Match: %s\nPrefer: wait=30",
             webrig_header(c, "ETag"));
    struct webrig_call *waits = webrig_request(r, "GET", target, headers, NULL);
    webrig_advance(r, 100);
    assert_false(waits->answered);
    return waits;
}

TEST(a_list_that_is_known_is_answered_when_it_has_changed)
{
    static const char *const lists[] = {"/v1/services/web", "/v1/services",
                                        "/v1/members/services/web"};
    CLOSED_BY(webrig_freed) struct webrig *r = open_rig();
    put(r, "/services/web/i1", WEB1);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct webrig_call *c = wait_for_change(r, lists[i]);
        put(r, "/services/other", "no instance, nor of this service");
        assert_false(c->answered);
        put(r, "/services/web/i1", i % 2 ? WEB1 : WEB2);
        webrig_advance(r, 100);
        assert_true(c->answered);
        assert_int_equal(c->status, 200);
        webrig_end(c);
        c = wait_for_change(r, lists[i]);
        webrig_advance(r, 30000);
        assert_int_equal(c->status, 304);
        webrig_end(c);
    }
}

TEST(many_changes_are_one_answer)
{
    CLOSED_BY(webrig_freed) struct webrig *r = open_rig();
    struct webrig_call *c = wait_for_change(r, "/v1/services/web");
    assert_int_equal(memnet_create(r->net, ACTOR, "/services/web/i1"), CLAVE_OK);
    assert_int_equal(memnet_create(r->net, ACTOR, "/services/web/i2"), CLAVE_OK);
    webrig_advance(r, 100);
    assert_true(c->answered);
    assert_non_null(strstr(webrig_body(c), "\"unreadable\": 2"));
    webrig_end(c);
}

TEST(an_old_copy_does_not_say_that_nothing_has_changed)
{
    CLOSED_BY(webrig_freed) struct webrig *r = open_rig();
    struct webrig_call *c = wait_for_change(r, "/v1/services/web");
    memnet_stop_server(r->net);
    webrig_advance(r, 31000);
    assert_true(c->answered);
    assert_int_equal(c->status, 503);
    webrig_end(c);
}

TEST(a_long_list_is_whole)
{
    enum { MANY = 1203 };
    CLOSED_BY(webrig_freed) struct webrig *r = open_rig();
    char path[64], word[64];
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/services/web/n%04d", i);
        put(r, path, WEB1);
    }
    CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, "/v1/services/web?format=http_sd", 200);
    for (int i = 0; i < MANY; i++) {
        snprintf(word, sizeof word, "\"/services/web/n%04d\"", i);
        assert_non_null(strstr(webrig_body(c), word));
    }
    assert_string_equal(webrig_body(c) + strlen(webrig_body(c)) - 4, "\"}}]");
}

TEST(what_is_asked_wrongly_is_told)
{
    CLOSED_BY(webrig_freed) struct webrig *r = open_rig();
    has(r, "/v1/services?format=consul", 400, "the only format is http_sd");
    has(r, "/v1/services?format=http_sd&ready", 400, "leave out ready");
    has(r, "/v1/services?base=services", 400, "base");
    has(r, "/v1/services/a%2fb", 400, "without /");
    has(r, "/v1/services/..", 400, "part of a path");
}
