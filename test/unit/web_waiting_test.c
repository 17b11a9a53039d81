/* web_waiting_test.c - long polls and streams have a limit, in all and of one sender; who renews,
 * releases or asks without waiting is never refused by it; the place of whoever ends is free. */
#include "lib/unit.h"
#include "lib/webrig.h"

static const struct web_grant all[] = {{WEB_LOCK, "/"}};
static const struct web_user users[] = {
    {.name = "ann", .token = "ann", .uid = -1, .grants = all, .ngrants = 1},
    {.name = "bob", .token = "bob", .uid = -1, .grants = all, .ngrants = 1},
    {.token = "eve", .uid = -1, .grants = all, .ngrants = 1}};
static const struct web_access access_of_test = {.users = users, .nusers = 3, .owner_uid = -1};

enum { MOST = 5, MOST_OF_ONE = 4 };

struct scene {
    struct webrig *r;
    char ann[400], bob[400], id[32]; /* their headers; ann's session */
};

static void scene_session(struct scene *s, const char *who, char out[400])
{
    char token[64];
    snprintf(token, sizeof token, "Authorization: Bearer %s", who);
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(s->r, "POST", "/v1/sessions", token, "{}");
    assert_int_equal(c->status, 201);
    snprintf(s->id, sizeof s->id, "%s", webrig_member(c, "id"));
    snprintf(out, 400, "%s\nPrefer: wait=30\nClave-Session: %s", token, webrig_member(c, "secret"));
}

static void scene_open(struct scene *s)
{
    struct webrig_options o = {.access = &access_of_test, .max_waiting = MOST};
    s->r = webrig_new(&o);
    scene_session(s, "bob", s->bob);
    scene_session(s, "ann", s->ann);
}

/* Bob holds /l, and ann /m. */
static void hold(struct scene *s, const char *headers, const char *body)
{
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(s->r, "POST", "/v1/claims", headers, body);
    assert_int_equal(c->status, 201);
}

static struct webrig_call *claim(struct scene *s, const char *headers)
{
    return webrig_request(s->r, "POST", "/v1/claims", headers,
                          headers == s->bob ? "{\"path\": \"/m\"}" : "{\"path\": \"/l\"}");
}

static void check_refused(struct webrig_call *c, unsigned status, const char *text)
{
    assert_int_equal(c->status, status);
    assert_string_equal(webrig_header(c, "Retry-After"), "1");
    assert_string_equal(webrig_member(c, "class"), "retry");
    assert_non_null(strstr(webrig_body(c), text));
    webrig_end(c);
}

static void check_refusals(struct scene *s, const char *line)
{
    struct webrig_call *c =
        webrig_request(s->r, "GET", "/metrics", "Authorization: Bearer bob", NULL);
    assert_non_null(strstr(webrig_body(c), line));
    webrig_end(c);
}

TEST(long_polls_and_streams_have_a_limit)
{
    struct scene s;
    struct webrig_call *waits[MOST];
    char target[80];
    scene_open(&s);
    hold(&s, s.bob, "{\"path\": \"/l\"}");
    hold(&s, s.ann, "{\"path\": \"/m\"}");
    waits[0] = webrig_request(s.r, "GET", "/v1/events", "Authorization: Bearer ann", NULL);
    assert_int_equal(waits[0]->status, 200);
    waits[1] =
        webrig_request(s.r, "POST", "/v1/hold", "Authorization: Bearer ann", "{\"path\": \"/l\"}");
    assert_int_equal(waits[1]->status, 200);
    for (size_t i = 2; i < MOST_OF_ONE; i++) {
        waits[i] = claim(&s, s.ann);
        assert_false(waits[i]->answered);
    }
    check_refused(claim(&s, s.ann), 429, "4 requests of ann wait already");
    check_refused(webrig_request(s.r, "GET", "/v1/events", "Authorization: Bearer ann", NULL), 429,
                  "--http-max-waiting");
    waits[MOST_OF_ONE] = claim(&s, s.bob);
    assert_false(waits[MOST_OF_ONE]->answered);
    check_refused(claim(&s, s.bob), 503, "5 requests wait already");
    check_refused(
        webrig_request(s.r, "POST", "/v1/hold", "Authorization: Bearer eve", "{\"path\": \"/l\"}"),
        503, "5 requests wait already");
    check_refusals(&s, "clave_http_refused_total{reason=\"waiting\"} 4");
    check_refusals(&s, "clave_http_refused_total{reason=\"limit\"} 0");
    /* Ann's session lives on. */
    snprintf(target, sizeof target, "/v1/sessions/%s/renew", s.id);
    struct webrig_call *c = webrig_request(s.r, "POST", target, s.ann, NULL);
    assert_int_equal(c->status, 200);
    webrig_end(c);
    for (size_t i = 0; i < MOST_OF_ONE; i++) {
        webrig_end(waits[i]);
        waits[i] = claim(&s, s.ann);
        assert_false(waits[i]->answered);
    }
    check_refused(claim(&s, s.ann), 503, "5 requests wait already");
    webrig_free(s.r);
}

/* Without a name an address is a sender, whatever its port. */
TEST(a_sender_without_a_name_is_an_address)
{
    static const char eve[] = "Authorization: Bearer eve";
    static const char *const addresses[] = {"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3", "10.0.0.1:4"};
    struct scene s;
    scene_open(&s);
    for (size_t i = 0; i < MOST_OF_ONE; i++) {
        s.r->peer.address = addresses[i];
        assert_int_equal(webrig_request(s.r, "GET", "/v1/events", eve, NULL)->status, 200);
    }
    check_refused(webrig_request(s.r, "GET", "/v1/events", eve, NULL), 429, "of this address wait");
    s.r->peer.address = "[::1]:5";
    assert_int_equal(webrig_request(s.r, "GET", "/v1/events", eve, NULL)->status, 200);
    webrig_free(s.r);
}

/* Whoever is refused asks again, and has not lost its session meanwhile. */
TEST(a_refused_poll_is_a_sign_of_life)
{
    struct scene s;
    char target[80];
    scene_open(&s);
    for (size_t i = 0; i < MOST_OF_ONE; i++)
        webrig_request(s.r, "GET", "/v1/events", "Authorization: Bearer ann", NULL);
    for (int i = 0; i < 20; i++) {
        check_refused(claim(&s, s.ann), 429, "4 requests of ann wait already");
        webrig_advance(s.r, 3000);
    }
    snprintf(target, sizeof target, "/v1/sessions/%s/renew", s.id);
    struct webrig_call *c = webrig_request(s.r, "POST", target, s.ann, NULL);
    assert_int_equal(c->status, 200);
    assert_non_null(strstr(webrig_body(c), "\"claims\": []"));
    webrig_free(s.r);
}

/* A place is free when the answer is there, not when the connection is. */
TEST(an_answer_waits_no_more)
{
    struct scene s;
    scene_open(&s);
    for (size_t i = 0; i < 2 * MOST; i++) {
        struct webrig_call *c = claim(&s, s.ann);
        if (i == 0)
            assert_int_equal(c->status, 201);
        else
            webrig_advance(s.r, 30000);
        assert_true(c->answered);
        assert_int_not_equal(c->status, 429);
    }
    webrig_free(s.r);
}
