/* web_hold_test.c - a lock over HTTP that is held by a stream: as long as its connection. */
#include "lib/claim_scene.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

TEST(a_hold_lives_as_long_as_its_connection)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    struct webrig_call *c = webrig_request(r, "POST", "/v1/hold", NULL, LOCK);
    user_expects(c, 200);
    assert_non_null(strstr(webrig_body(c), "{\"event\": \"held\", \"token\": "));
    webrig_advance(r, 60000);
    assert_non_null(strstr(webrig_body(c), "{\"event\": \"heartbeat\"}\n"));
    user_enter(r, &u);
    struct webrig_call *d = webrig_request(r, "POST", "/v1/hold", NULL, LOCK);
    user_expects(d, 200);
    assert_string_equal(webrig_body(d), "{\"event\": \"queued\", \"position\": 2}\n");
    struct webrig_call *e = webrig_request(r, "POST", "/v1/hold", "Prefer: wait=0", LOCK);
    user_expects(e, 409);
    webrig_end(e);
    e = webrig_request(r, "POST", "/v1/hold", "Prefer: wait=2", LOCK);
    assert_false(e->answered);
    webrig_advance(r, 2000);
    user_expects(e, 409);
    webrig_end(e);
    webrig_end(c); /* hangs up */
    webrig_settle(r);
    assert_non_null(strstr(webrig_body(d), "\"held\""));
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
    char node[1][96], path[128];
    memnet_list(r->net, 0, "/l", node, 1);
    snprintf(path, sizeof path, "/l/%s", node[0]);
    webrig_advance(r, 5000); /* its node is watched by now */
    assert_int_equal(memnet_delete(r->net, 0, path), CLAVE_OK);
    webrig_advance(r, 5000);
    assert_non_null(strstr(webrig_body(d), "{\"event\": \"lost\", \"cause\": \"deleted\"}"));
    assert_true(d->done);
    webrig_end(d);
    webrig_settle(r);
    assert_int_equal(memnet_stats(r->net).sessions, 2);
}
