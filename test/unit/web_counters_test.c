/* /v1/counters: each change once, and nothing after the answer. */
#include "lib/claim_scene.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { OWN = 0 }; /* the engine's own client */

/* Requests have all roles. */
static struct webrig *rig(const struct webrig_options *o)
{
    struct webrig *r = webrig_new(o);
    r->peer = (struct web_peer){.is_unix = true, .uid = 0, .address = "unix"};
    return r;
}

static struct webrig_call *asks(struct webrig *r, const char *body)
{
    return webrig_request(r, body ? "POST" : "GET", "/v1/counters/c/n", NULL, body);
}

static void must(struct webrig *r, const char *body, unsigned status, const char *part)
{
    struct webrig_call *c = asks(r, body);
    webrig_advance(r, 100);
    assert_true(c->answered);
    if (c->status != status || !strstr(webrig_body(c), part))
        fail_msg("%s: %u, not %u with %s: %s", body, c->status, status, part, webrig_body(c));
    webrig_end(c);
}

TEST(a_counter_is_read_and_changed)
{
    struct webrig *r = rig(NULL);
    must(r, NULL, 200, "{\"path\": \"/c/n\", \"value\": \"0\"}");
    must(r, "{\"set\": 5, \"expected\": 0}", 404, "no such node");
    must(r, "{\"add\": 5}", 200, "\"before\": \"0\", \"value\": \"5\"");
    must(r, "{\"add\": \"-7\", \"set\": null}", 200, "\"before\": \"5\", \"value\": \"-2\"");
    must(r, "{\"set\": \"9223372036854775807\", \"expected\": -2}", 200,
         "\"value\": \"9223372036854775807\"");
    must(r, "{\"set\": 5, \"expected\": 0}", 409, "\"value\": \"9223372036854775807\"");
    must(r, "{\"add\": 1}", 400, "more than 64 bits");
    must(r, NULL, 200, "\"value\": \"9223372036854775807\"");
    assert_int_equal(memnet_stats(r->net).ephemerals, 0); /* no marker is left */
    webrig_free(r);
}

TEST(what_is_asked_wrongly_is_told)
{
    static const char *const bodies[] = {"{}",
                                         "{\"add\": 1, \"set\": 1}",
                                         "{\"expected\": 1}",
                                         "{\"add\": 1.5}",
                                         "{\"add\": \"1x\"}",
                                         "{\"sub\": 1}"};
    struct webrig *r = rig(NULL);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        must(r, bodies[i], 400, "\"code\": \"EINVAL\"");
    struct webrig_call *c = webrig_request(r, "GET", "/v1/counters/", NULL, NULL);
    user_expects(c, 400);
    webrig_end(c);
    webrig_free(r);
}

TEST(a_lost_answer_counts_once)
{
    for (int reply = 0; reply < 2; reply++) {
        struct webrig *r = rig(NULL);
        must(r, "{\"add\": 1}", 200, "");
        memnet_rule(r->net, (struct memnet_rule){.client = OWN,
                                                 .way = reply ? MEMNET_REPLY : MEMNET_REQUEST,
                                                 .op = OP_MULTI,
                                                 .fate = MEMNET_LOSE});
        struct webrig_call *c = asks(r, "{\"add\": 10}");
        webrig_advance(r, 3000);
        user_expects(c, 200);
        assert_string_equal(webrig_member(c, "value"), "11");
        webrig_end(c);
        must(r, NULL, 200, "\"value\": \"11\"");
        webrig_free(r);
    }
}

/* The client comes back with its session after the request was answered, or had hung up: what was
 * not on its way to the servers before is not done. */
TEST(nothing_counts_after_the_answer)
{
    for (int hangs_up = 0; hangs_up < 2; hangs_up++) {
        struct webrig *r = rig(&(struct webrig_options){.net = {.timeout_ms = 20000}});
        must(r, "{\"add\": 1}", 200, "");
        memnet_rule(r->net,
                    (struct memnet_rule){
                        .client = OWN, .way = MEMNET_REQUEST, .op = OP_MULTI, .fate = MEMNET_LOSE});
        memnet_rule(r->net, (struct memnet_rule){
                                .client = OWN, .way = MEMNET_REQUEST, .op = MEMNET_HANDSHAKE});
        struct webrig_call *c = asks(r, "{\"add\": 10}");
        webrig_advance(r, 1000);
        assert_false(c->answered);
        if (hangs_up) {
            webrig_end(c);
        } else {
            webrig_advance(r, 14100);
            user_expects(c, 504);
            webrig_end(c);
        }
        memnet_clear(r->net);
        webrig_advance(r, 1000);
        must(r, NULL, 200, "\"value\": \"1\"");
        webrig_free(r);
    }
}

TEST(a_change_of_a_session_is_made_by_its_client)
{
    struct webrig *r = rig(NULL);
    struct user u;
    char headers[160];
    user_enter(r, &u);
    snprintf(headers, sizeof headers, "Clave-Session: %s", u.secret);
    struct webrig_call *c =
        webrig_request(r, "POST", "/v1/counters/c/n", headers, "{\"add\": \"3\"}");
    webrig_advance(r, 100);
    user_expects(c, 200);
    assert_string_equal(webrig_member(c, "value"), "3");
    webrig_end(c);
    webrig_free(r);
}
