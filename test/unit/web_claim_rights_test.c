/* web_claim_rights_test.c - claims over HTTP of somebody whose rights change while they wait, and
 * the bounds of what a claim may ask for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/webrig.h"

#define ANN "Authorization: Bearer ann\nClave-Session: "

static const struct web_grant everywhere[] = {{WEB_LOCK, "/"}};
static const struct web_grant elsewhere[] = {{WEB_LOCK, "/b"}};
static const struct web_user before[] = {
    {.name = "ann", .token = "ann", .uid = -1, .grants = everywhere, .ngrants = 1}};
static const struct web_user after[] = {
    {.name = "ann", .token = "ann", .uid = -1, .grants = elsewhere, .ngrants = 1}};
static const struct web_access at_first = {.users = before, .nusers = 1, .owner_uid = -1};
static const struct web_access then = {.users = after, .nusers = 1, .owner_uid = -1};

static void expect(const struct webrig_call *c, unsigned status)
{
    assert_true(c->answered);
    if (c->status != status)
        print_error("%s\n", webrig_body(c));
    assert_int_equal(c->status, status);
}

/* The headers of requests with a session. */
static void enter(struct webrig *r, char headers[200])
{
    struct webrig_call *c = webrig_request(r, "POST", "/v1/sessions", "Authorization: Bearer ann",
                                           "{\"ttl_ms\": 8000}");
    expect(c, 201);
    snprintf(headers, 200, ANN "%s", webrig_member(c, "secret"));
    webrig_end(c);
}

static struct webrig_call *claim(struct webrig *r, const char *session, const char *path, int wait)
{
    char headers[240], body[80];
    snprintf(headers, sizeof headers, "%s\nPrefer: wait=%d", session, wait);
    snprintf(body, sizeof body, "{\"path\": \"%s\"}", path);
    return webrig_request(r, "POST", "/v1/claims", headers, body);
}

static void what_waits_is_refused_where_it_may_not_lock_any_more(void **state)
{
    const struct webrig_options o = {.access = &at_first};
    struct webrig *r = webrig_new(&o);
    char first[200], second[200], poll[240], target[80];
    (void)state;
    enter(r, first);
    enter(r, second);
    webrig_end(claim(r, first, "/a", 0));
    webrig_end(claim(r, first, "/b", 0));
    struct webrig_call *waits = claim(r, second, "/a", 60), *may = claim(r, second, "/b", 60);
    struct webrig_call *third = claim(r, second, "/a", 0);
    struct webrig_call *hold = webrig_request(
        r, "POST", "/v1/hold", "Authorization: Bearer ann\nPrefer: wait=60", "{\"path\": \"/a\"}");
    webrig_end(third);
    third = webrig_request(r, "POST", "/v1/claims", second, "{\"path\": \"/a\"}");
    expect(third, 202);
    snprintf(target, sizeof target, "/v1/claims/%s", webrig_member(third, "id"));
    webrig_end(third);
    snprintf(poll, sizeof poll, "%s\nPrefer: wait=60", second);
    struct webrig_call *polls = webrig_request(r, "GET", target, poll, NULL);
    assert_false(waits->answered || may->answered || hold->answered || polls->answered);
    clave__web_set_access(r->web, &then);
    webrig_settle(r);
    expect(waits, 403);
    expect(hold, 403);
    expect(polls, 403);
    assert_false(may->answered);
    webrig_free(r);
}

static void a_stream_of_a_hold_ends_likewise(void **state)
{
    const struct webrig_options o = {.access = &at_first};
    struct webrig *r = webrig_new(&o);
    (void)state;
    struct webrig_call *a =
        webrig_request(r, "POST", "/v1/hold", "Authorization: Bearer ann", "{\"path\": \"/a\"}");
    struct webrig_call *b =
        webrig_request(r, "POST", "/v1/hold", "Authorization: Bearer ann", "{\"path\": \"/b\"}");
    expect(a, 200);
    expect(b, 200);
    clave__web_set_access(r->web, &then);
    webrig_advance(r, 20000);
    assert_true(a->done);
    assert_null(strstr(webrig_body(a), "heartbeat"));
    assert_false(b->done);
    assert_non_null(strstr(webrig_body(b), "heartbeat"));
    webrig_free(r);
}

/* A session of a millisecond would have it write a thousand lines a second. */
static void heartbeats_are_a_second_apart(void **state)
{
    struct webrig *r = webrig_new(NULL);
    size_t beats = 0;
    (void)state;
    struct webrig_call *c =
        webrig_request(r, "POST", "/v1/hold", NULL, "{\"path\": \"/a\", \"ttl_ms\": 3}");
    for (int i = 0; i < 100; i++)
        webrig_advance(r, 100);
    expect(c, 200);
    for (const char *at = webrig_body(c); (at = strstr(at, "heartbeat")); at++)
        beats++;
    assert_in_range(beats, 8, 11);
    webrig_free(r);
}

/* What could not be asked for by GET either. */
static void a_path_has_a_longest(void **state)
{
    enum { MOST = 8192 };
    static char body[MOST + 40];
    struct webrig *r = webrig_new(NULL);
    (void)state;
    for (size_t n = MOST; n <= MOST + 1; n++) {
        memset(body, 'a', sizeof body);
        memcpy(body, "{\"path\": \"/", 11);
        strcpy(body + 10 + n, "\"}");
        struct webrig_call *c = webrig_request(r, "POST", "/v1/hold", NULL, body);
        expect(c, n == MOST ? 200 : 400);
        if (n > MOST)
            assert_non_null(strstr(webrig_body(c), "longer than 8192 bytes"));
        webrig_end(c);
    }
    webrig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_is_refused_where_it_may_not_lock_any_more),
        cmocka_unit_test(a_stream_of_a_hold_ends_likewise),
        cmocka_unit_test(heartbeats_are_a_second_apart),
        cmocka_unit_test(a_path_has_a_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
