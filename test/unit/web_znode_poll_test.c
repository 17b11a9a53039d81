/* Waiting for a change of a znode: GET with If-None-Match and Prefer. */
#include "lib/unit.h"
#include "lib/webrig.h"
#include "wire/proto.h"

static const struct web_access owner_only = {.owner_uid = 7};

static struct webrig *rig_of_owner(size_t max_waiting)
{
    struct webrig *r =
        webrig_new(&(struct webrig_options){.access = &owner_only, .max_waiting = max_waiting});
    r->peer = (struct web_peer){.is_unix = true, .uid = 7, .address = "unix"};
    return r;
}

static struct webrig_call *get(struct webrig *r, const char *target, const char *headers)
{
    return webrig_request(r, "GET", target, headers, NULL);
}

static void done(struct webrig *r, const char *method, const char *target, const char *headers,
                 const char *body)
{
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(r, method, target, headers, body);
    if (c->status / 100 != 2)
        fail_msg("%s %s: %u %s", method, target, c->status, webrig_body(c));
}

static void create(struct webrig *r, const char *path)
{
    done(r, "PUT", path, "If-None-Match: *\nContent-Type: application/octet-stream", "x");
}

static const char *know(const struct webrig_call *c, const char *more)
{
    static char headers[160];
    snprintf(headers, sizeof headers, "If-None-Match: %s%s", webrig_header(c, "ETag"), more);
    return headers;
}

/* What is done, and whether a wait of /v1/znodes/a, with this argument, is over by it. */
TEST(each_change_ends_the_waits_it_is_for)
{
    static const char *const views[] = {"/v1/znodes/a", "/v1/znodes/a?stat",
                                        "/v1/znodes/a?children"};
    static const struct {
        const char *method, *target, *headers, *body;
        unsigned status[3]; /* after it, by view; 0: the wait goes on */
    } steps[] = {
        {"PUT", "/v1/znodes/b", "If-None-Match: *", "x", {0, 0, 0}},
        {"PUT", "/v1/znodes/a", "If-None-Match: *", "x", {200, 200, 200}},
        {"PUT", "/v1/znodes/b", NULL, "y", {0, 0, 0}},
        {"PUT", "/v1/znodes/a", NULL, "y", {200, 200, 0}},
        {"PUT", "/v1/znodes/a/c", "If-None-Match: *", "x", {0, 0, 200}},
        {"PUT", "/v1/znodes/a/c", NULL, "y", {0, 0, 0}},
        {"DELETE", "/v1/znodes/a/c", NULL, NULL, {0, 0, 200}},
        {"DELETE", "/v1/znodes/a", NULL, NULL, {404, 404, 404}},
        {"PUT", "/v1/znodes/a", "If-None-Match: *", "x", {200, 200, 200}},
    };
    CLOSED_BY(webrig_freed) struct webrig *r = rig_of_owner(0);
    for (size_t v = 0; v < 3; v++) {
        struct webrig_call *seen = get(r, views[v], NULL);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            struct webrig_call *c = get(r, views[v], know(seen, "\nPrefer: wait=30"));
            struct webrig_call *other = get(r, views[v], know(seen, "\nPrefer: wait=30"));
            assert_false(c->answered || other->answered);
            done(r, steps[i].method, steps[i].target, steps[i].headers, steps[i].body);
            if (c->answered != (steps[i].status[v] != 0) || c->answered != other->answered ||
                (c->answered && c->status != steps[i].status[v]))
                fail_msg("%s, step %zu: %u %s", views[v], i, c->status, webrig_body(c));
            if (c->answered)
                assert_string_not_equal(webrig_header(c, "ETag"), webrig_header(seen, "ETag"));
            webrig_end(other);
            CLOSED_BY(webrig_ended) struct webrig_call *last = c->answered ? seen : c;
            seen = c->answered ? c : seen;
        }
        webrig_end(seen);
        done(r, "DELETE", "/v1/znodes/a", NULL, NULL);
        done(r, "DELETE", "/v1/znodes/b", NULL, NULL);
    }
}

/* The same version of another node. */
TEST(a_node_made_again_is_another)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_of_owner(0);
    create(r, "/v1/znodes/a");
    CLOSED_BY(webrig_ended) struct webrig_call *seen = get(r, "/v1/znodes/a", NULL);
    char match[80];
    snprintf(match, sizeof match, "If-Match: %s", webrig_header(seen, "ETag"));
    done(r, "PUT", "/v1/znodes/a", match, "y"); /* what GET answers, PUT takes */
    done(r, "DELETE", "/v1/znodes/a", NULL, NULL);
    create(r, "/v1/znodes/a");
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = get(r, "/v1/znodes/a", know(seen, "\nPrefer: wait=30"));
    assert_int_equal(c->status, 200);
}

TEST(a_wait_ends_without_a_change)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_of_owner(0);
    create(r, "/v1/znodes/a");
    CLOSED_BY(webrig_ended) struct webrig_call *seen = get(r, "/v1/znodes/a", NULL);
    struct webrig_call *c = get(r, "/v1/znodes/a", know(seen, ""));
    assert_int_equal(c->status, 304);
    webrig_end(c);
    c = get(r, "/v1/znodes/a", know(seen, "\nPrefer: wait=40"));
    webrig_advance(r, 39000);
    assert_false(c->answered);
    webrig_advance(r, 1000);
    assert_int_equal(c->status, 304);
    webrig_end(c);
    c = webrig_request(r, "HEAD", "/v1/znodes/a", know(seen, "\nPrefer: wait=40"), NULL);
    assert_false(c->answered);
    done(r, "PUT", "/v1/znodes/a", NULL, "y");
    assert_int_equal(c->status, 200);
    webrig_end(c);
}

/* The session's end takes its watches along. */
TEST(a_wait_outlives_the_gates_session)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_of_owner(0);
    create(r, "/v1/znodes/a");
    CLOSED_BY(webrig_ended) struct webrig_call *seen = get(r, "/v1/znodes/a", NULL);
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = get(r, "/v1/znodes/a", know(seen, "\nPrefer: wait=40"));
    memnet_kill_session(r->net, 0);
    webrig_advance(r, 3000);
    assert_false(c->answered);
    done(r, "PUT", "/v1/znodes/a", NULL, "y");
    assert_int_equal(c->status, 200);
}

/* One watch, however many wait; none when the last one has gone. */
TEST(those_who_wait_share_a_watch)
{
    struct webrig_call *calls[8];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_of_owner(5);
    create(r, "/v1/znodes/a");
    CLOSED_BY(webrig_ended) struct webrig_call *seen = get(r, "/v1/znodes/a", NULL);
    size_t before = memnet_stats(r->net).watches;
    for (int i = 0; i < 8; i++) {
        calls[i] = get(r, "/v1/znodes/a", know(seen, "\nPrefer: wait=30"));
        assert_int_equal(calls[i]->answered, i >= 4);
        if (i >= 4)
            assert_int_equal(calls[i]->status, 429);
    }
    assert_int_equal(memnet_stats(r->net).watches, before + 1);
    for (int i = 0; i < 8; i++)
        webrig_end(calls[i]);
    assert_int_equal(memnet_stats(r->net).watches, before);
}

TEST(what_cannot_be_waited_for_is_said)
{
    static const char *const bad[][2] = {
        {"/v1/znodes/a?acl", "If-None-Match: \"x\"\nPrefer: wait=1"},
        {"/v1/znodes/", "If-None-Match: \"x\"\nPrefer: wait=1"},
        {"/v1/znodes/a", "If-None-Match: \"x\"\nPrefer: wait=1\nClave-Session: x"},
        {"/v1/znodes/a?children&after=b/c", NULL},
    };
    CLOSED_BY(webrig_freed) struct webrig *r = rig_of_owner(0);
    create(r, "/v1/znodes/a");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CLOSED_BY(webrig_ended) struct webrig_call *c = get(r, bad[i][0], bad[i][1]);
        if (!c->answered || c->status != 400)
            fail_msg("%s: %u", bad[i][0], c->status);
    }
}
