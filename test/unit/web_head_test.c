/* web_head_test.c - what is decided on the head of a request, over every route: before any of its
 * body is read it is known whether it is admitted, and nothing is done before the body is complete.
 */
#include "lib/unit.h"
#include "lib/webrig.h"
#include "web/http/exchange.h"

static const struct web_grant all[] = {{WEB_ADMIN, "/"}};
static const struct web_user users[] = {
    {.name = "ann", .token = "ann", .uid = -1, .grants = all, .ngrants = 1}};
static const struct web_access access_of_test = {
    .users = users, .nusers = 1, .owner_uid = -1, .fleetlock = "/reboots"};

enum { MAX_BODY = 1024 };

static struct webrig *rig(void)
{
    struct webrig_options o = {.access = &access_of_test, .max_body = MAX_BODY};
    return webrig_new(&o);
}

/* The target of a route, with 1 in place of its parameter. */
static const char *target_of(const struct route *r)
{
    static char out[200];
    const char *open = strchr(r->pattern, '{'), *close = open ? strchr(open, '}') + 1 : NULL;
    if (!open)
        return r->pattern;
    snprintf(out, sizeof out, "%.*s%s1%s", (int)(open - r->pattern), r->pattern,
             open[-1] == '/' ? "" : "/", close);
    return out;
}

static void refused(struct webrig_call *c, unsigned status)
{
    if (!c->answered || c->status != status)
        print_error("%s %s: %u instead of %u\n", c->q.method, c->q.target, c->status, status);
    assert_true(c->answered);
    assert_int_equal(c->status, status);
    assert_false(webrig_piece(c, "x", 1)); /* nothing more is wanted, and nothing happens by it */
    webrig_last_piece(c);
    assert_int_equal(c->status, status);
    webrig_end(c);
}

TEST(a_stranger_is_refused_before_the_body)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig();
    for (size_t i = 0; i < clave__routes.n; i++) {
        const struct route *route = &clave__routes.at[i];
        if (route->role == WEB_NONE)
            continue;
        refused(webrig_head(r, route->method, target_of(route), NULL, 100), 401);
        refused(webrig_head(r, route->method, target_of(route), NULL, -1), 401);
    }
}

TEST(a_body_that_is_too_long_is_refused_before_it_comes)
{
    static const char ann[] = "Authorization: Bearer ann";
    char piece[MAX_BODY] = "";
    CLOSED_BY(webrig_freed) struct webrig *r = rig();
    for (size_t i = 0; i < clave__routes.n; i++) {
        const struct route *route = &clave__routes.at[i];
        refused(webrig_head(r, route->method, target_of(route), ann, MAX_BODY + 1), 413);
        struct webrig_call *c = webrig_head(r, route->method, target_of(route), ann, -1);
        assert_false(c->answered);
        bool more = webrig_piece(c, piece, sizeof piece) && webrig_piece(c, piece, 1);
        assert_false(more);
        refused(c, 413);
    }
}

TEST(nothing_is_done_before_the_body_is_complete)
{
    static const char ann[] = "Authorization: Bearer ann";
    CLOSED_BY(webrig_freed) struct webrig *r = rig();
    struct webrig_call *c = webrig_head(r, "POST", "/v1/znodes/a?parents", ann, 4);
    for (int i = 0; i < 4; i++) {
        assert_true(webrig_piece(c, "body" + i, 1));
        CLOSED_BY(webrig_ended)
        struct webrig_call *look = webrig_request(r, "GET", "/v1/znodes/a", ann, NULL);
        assert_int_equal(look->status, 404);
    }
    webrig_end(c); /* it never came to its end */
    CLOSED_BY(webrig_ended)
    struct webrig_call *look = webrig_request(r, "GET", "/v1/znodes/a", ann, NULL);
    assert_int_equal(look->status, 404);
}

/* Its body was on its way when the token was taken away, or the gate was closed. */
TEST(a_head_that_was_admitted_is_judged_again)
{
    static const char ann[] = "Authorization: Bearer ann";
    CLOSED_BY(webrig_freed) struct webrig *r = rig();
    struct webrig_call *c = webrig_head(r, "POST", "/v1/sessions", ann, 2);
    static const struct web_access nobody = {.owner_uid = -1};
    clave__web_set_access(r->web, &nobody);
    refused(c, 401);
    clave__web_set_access(r->web, &access_of_test);
    c = webrig_head(r, "POST", "/v1/sessions", ann, 2);
    clave__web_close(r->web, r->net->now);
    refused(c, 503);
}

/* RFC 7240: names in any case, a value as a token or in quotes, the first of one name. */
TEST(a_wait_is_read_as_the_standard_has_it)
{
    static const struct {
        const char *prefer;
        int64_t ms; /* -1: none */
    } cases[] = {
        {"wait=0", 0},
        {"wait=30", 30000},
        {"Wait=0", 0},
        {"WAIT = 7", 7000},
        {"wait=\"0\"", 0},
        {"wait=\"12\"; more=\"a, wait=3\"", 12000},
        {"respond-async, wait=5", 5000},
        {"return=representation;x=\"wait=1\",wait=5;y", 5000},
        {"wait=1, wait=2", 1000},
        {"wait=99999999999999999999", 1000000000},
        {"nowait=3", -1},
        {"wait-more=3", -1},
        {"x=wait=3", -1},
        {"x=\"wait=3\"", -1},
        {"x=\"\\\", wait=3\"", -1},
        {"x=\"wait=3", -1},
        {"wait=0x10", -1},
        {"wait=1s", -1},
        {"wait=-1", -1},
        {"wait=1.5", -1},
        {"wait=\"1\\0\"", 10000},
        {"wait=1\\0", -1},
        {"wait=3 4", -1},
        {"wait=\"3\"4", -1},
        {"\"wait\"=3", -1},
        {"wait=\"3", -1},
        {"wait=\"\"", -1},
        {"wait", -1},
        {"wait=", -1},
        {"wait=x, wait=2", -1},
        {"", -1},
        {", ,;=", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ms = -1;
        clave__prefer_find_wait(cases[i].prefer, &ms);
        if (ms != cases[i].ms)
            fail_msg("%s: %lld", cases[i].prefer, (long long)ms);
    }
}
