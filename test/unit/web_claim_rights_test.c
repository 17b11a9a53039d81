/* web_claim_rights_test.c - claims over HTTP of somebody whose rights change while they wait, and
 * the bounds of what a claim may ask for. */
#include "lib/mutex_owner.h"
#include "lib/unit.h"
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
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(r, "POST", "/v1/sessions", "Authorization: Bearer ann",
                                           "{\"ttl_ms\": 8000}");
    expect(c, 201);
    snprintf(headers, 200, ANN "%s", webrig_member(c, "secret"));
}

static struct webrig_call *claim(struct webrig *r, const char *session, const char *path, int wait)
{
    char headers[240], body[80];
    snprintf(headers, sizeof headers, "%s\nPrefer: wait=%d", session, wait);
    snprintf(body, sizeof body, "{\"path\": \"%s\"}", path);
    return webrig_request(r, "POST", "/v1/claims", headers, body);
}

TEST(what_waits_is_refused_where_it_may_not_lock_any_more)
{
    const struct webrig_options o = {.access = &at_first};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    char first[200], second[200], poll[240], target[80];
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
}

TEST(a_stream_of_a_hold_ends_likewise)
{
    const struct webrig_options o = {.access = &at_first};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
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
}

/* ---- whatever was admitted once is judged again -----------------------------------------------
 */

/* What ann has at /a and at /b, when from then on she may lock at /b alone. */
struct admitted {
    struct webrig *r;
    char id[32], session[200], other[200]; /* two sessions: public id of the first, headers */
    char waits[80];                        /* the claim that waits at /a: its target */
    int64_t told;                          /* until when the hold at /a is valid */
};

static struct webrig_call *renew(const struct admitted *a)
{
    char target[80];
    snprintf(target, sizeof target, "/v1/sessions/%s/renew", a->id);
    struct webrig_call *c = webrig_request(a->r, "POST", target, a->session, NULL);
    webrig_settle(a->r);
    expect(c, 200);
    return c;
}

/* A member of the claim at this path in an answer that lists claims; NULL: it has none. */
static const char *of_claim(const struct webrig_call *c, const char *path, const char *key)
{
    static char out[64];
    char wanted[80];
    snprintf(wanted, sizeof wanted, "\"path\": \"%s\"", path);
    const char *at = strstr(webrig_body(c), wanted), *end = at ? strchr(at, '}') : NULL;
    snprintf(wanted, sizeof wanted, "\"%s\": ", key);
    at = at ? strstr(at, wanted) : NULL;
    if (!at || at > end)
        return NULL;
    at += strlen(wanted);
    at += *at == '"';
    snprintf(out, sizeof out, "%.*s", (int)strcspn(at, "\",}"), at);
    return out;
}

static void admitted_begin(struct admitted *a, const uint8_t *key)
{
    const struct webrig_options o = {.access = &at_first, .session_key = key};
    a->r = webrig_new(&o);
    struct webrig_call *c = webrig_request(a->r, "POST", "/v1/sessions",
                                           "Authorization: Bearer ann", "{\"ttl_ms\": 8000}");
    expect(c, 201);
    snprintf(a->id, sizeof a->id, "%s", webrig_member(c, "id"));
    snprintf(a->session, sizeof a->session, ANN "%s", webrig_member(c, "secret"));
    webrig_end(c);
    enter(a->r, a->other);
    webrig_end(claim(a->r, a->session, "/a", 0));
    webrig_end(claim(a->r, a->session, "/b", 0));
    c = webrig_request(a->r, "POST", "/v1/claims", a->other, "{\"path\": \"/a\"}");
    expect(c, 202);
    snprintf(a->waits, sizeof a->waits, "/v1/claims/%s", webrig_member(c, "id"));
    webrig_end(c);
    webrig_advance(a->r, 2000);
    int64_t asked = a->r->net->now;
    c = renew(a);
    a->told = asked + atoi(of_claim(c, "/a", "valid_ms"));
    webrig_end(c);
    webrig_advance(a->r, 500);
}

static size_t places(const struct admitted *a, const char *path)
{
    return (size_t)memnet_list(a->r->net, 0, path, NULL, 0);
}

static void a_hold_is_extended_no_more(struct admitted *a)
{
    while (a->r->net->now < a->told) {
        int64_t asked = a->r->net->now;
        struct webrig_call *c = renew(a);
        assert_true(asked + atoi(of_claim(c, "/a", "valid_ms")) <= a->told);
        assert_string_equal(of_claim(c, "/a", "state"), "held");
        assert_string_equal(of_claim(c, "/a", "cause"), "forbidden");
        assert_true(asked + atoi(of_claim(c, "/b", "valid_ms")) > a->told);
        assert_null(of_claim(c, "/b", "cause"));
        webrig_end(c);
        assert_int_equal(places(a, "/a"), 1); /* nobody else has it before */
        webrig_advance(a->r, a->told - a->r->net->now < 500 ? a->told - a->r->net->now : 500);
    }
    webrig_advance(a->r, 1500);
    assert_int_equal(places(a, "/a"), 0);
    struct webrig_call *c = renew(a);
    assert_string_equal(of_claim(c, "/a", "state"), "lost");
    assert_string_equal(of_claim(c, "/a", "cause"), "forbidden");
    assert_string_equal(of_claim(c, "/b", "state"), "held");
    webrig_end(c);
}

/* A later request is answered before an earlier one, and says that the hold is over. */
static void an_answer_in_between_extends_nothing(struct admitted *a)
{
    char renewal[80], look[80];
    snprintf(renewal, sizeof renewal, "/v1/sessions/%s/renew", a->id);
    snprintf(look, sizeof look, "/v1/sessions/%s", a->id);
    webrig_advance(a->r, a->told - a->r->net->now);
    memnet_rule(a->r->net, (struct memnet_rule){1, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    CLOSED_BY(webrig_ended)
    struct webrig_call *first = webrig_request(a->r, "POST", renewal, a->session, NULL);
    webrig_advance(a->r, 200);
    assert_false(first->answered);
    struct webrig_call *c = webrig_request(a->r, "GET", look, a->session, NULL);
    expect(c, 200);
    assert_string_equal(of_claim(c, "/a", "valid_ms"), "0");
    webrig_end(c);
    memnet_clear(a->r->net);
    webrig_settle(a->r);
    expect(first, 200);
    assert_string_equal(of_claim(first, "/a", "valid_ms"), "0");
}

static void a_hold_is_extended_again_when_the_role_is_back(struct admitted *a)
{
    clave__web_set_access(a->r->web, &at_first);
    for (int i = 0; i < 10; i++) {
        struct webrig_call *c = renew(a);
        assert_null(of_claim(c, "/a", "cause"));
        assert_true(atoi(of_claim(c, "/a", "valid_ms")) > 5000);
        webrig_end(c);
        webrig_advance(a->r, 2000);
    }
}

/* Somebody else who may lock there, and has the secret, vouches for it. */
static void a_hold_goes_on_for_another_who_may(struct admitted *a)
{
    static const struct web_user both[] = {
        {.name = "ann", .token = "ann", .uid = -1, .grants = elsewhere, .ngrants = 1},
        {.name = "bob", .token = "bob", .uid = -1, .grants = everywhere, .ngrants = 1}};
    static const struct web_access access = {.users = both, .nusers = 2, .owner_uid = -1};
    clave__web_set_access(a->r->web, &access);
    memcpy(strstr(a->session, "ann"), "bob", 3);
    for (int i = 0; i < 10; i++) {
        struct webrig_call *c = renew(a);
        assert_null(of_claim(c, "/a", "cause"));
        webrig_end(c);
        webrig_advance(a->r, 2000);
    }
}

static void a_claim_that_waits_ends(struct admitted *a)
{
    assert_int_equal(places(a, "/a"), 1); /* the holder's */
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(a->r, "GET", a->waits, a->other, NULL);
    expect(c, 403);
}

/* Its claim was refused, which is no reason to refuse it for ever. */
static void a_claim_that_waited_is_asked_for_again_when_the_role_is_back(struct admitted *a)
{
    char headers[260];
    clave__web_set_access(a->r->web, &at_first);
    snprintf(headers, sizeof headers, "%s\nIdempotency-Key: %s", a->other,
             strrchr(a->waits, '/') + 1);
    struct webrig_call *c =
        webrig_request(a->r, "POST", "/v1/claims", headers, "{\"path\": \"/a\"}");
    expect(c, 202);
    webrig_end(c);
    c = webrig_request(a->r, "GET", a->waits, a->other, NULL);
    expect(c, 202);
    webrig_end(c);
    assert_int_equal(places(a, "/a"), 2);
}

static void the_session_of_somebody_unknown_ends_by_its_time(struct admitted *a)
{
    static const struct web_user nobody[] = {{.name = "eve", .token = "eve", .uid = -1}};
    static const struct web_access none = {.users = nobody, .nusers = 1, .owner_uid = -1};
    clave__web_set_access(a->r->web, &none);
    webrig_advance(a->r, 5000); /* the session is silent, and stands for its time */
    assert_int_equal(places(a, "/a"), 1);
    webrig_advance(a->r, 10000);
    assert_int_equal(places(a, "/a"), 0);
    assert_int_equal(places(a, "/b"), 0);
}

TEST(what_was_admitted_is_judged_again)
{
    static void (*const rows[])(struct admitted *) = {
        a_hold_is_extended_no_more,
        an_answer_in_between_extends_nothing,
        a_hold_is_extended_again_when_the_role_is_back,
        a_hold_goes_on_for_another_who_may,
        a_claim_that_waits_ends,
        a_claim_that_waited_is_asked_for_again_when_the_role_is_back,
        the_session_of_somebody_unknown_ends_by_its_time,
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct admitted a;
        admitted_begin(&a, NULL);
        clave__web_set_access(a.r->web, &then);
        webrig_settle(a.r);
        rows[i](&a);
        webrig_free(a.r);
    }
}

/* Another gate may have told it more. */
TEST(a_hold_of_two_gates_stays_for_its_ttl)
{
    static const uint8_t key[32] = {42};
    struct admitted a;
    admitted_begin(&a, key);
    clave__web_set_access(a.r->web, &then);
    int64_t since = a.r->net->now;
    while (a.r->net->now < since + 8000) {
        struct webrig_call *c = renew(&a);
        webrig_end(c);
        assert_int_equal(places(&a, "/a"), 1);
        webrig_advance(a.r, 1000);
    }
    webrig_advance(a.r, 1100);
    assert_int_equal(places(&a, "/a"), 0);
    webrig_free(a.r);
}

/* Two gates with one session: the claim waits at both, and the second only found its place. When
 * the role is gone at the second alone, the place stays: the first one made it, and judges it. */
TEST(a_gate_that_only_found_a_place_leaves_it)
{
    static const uint8_t key[32] = {42};
    struct admitted a;
    char again[240], target[80];
    admitted_begin(&a, key);
    snprintf(again, sizeof again, "%s\nIdempotency-Key: %s", a.other,
             a.waits + strlen("/v1/claims/"));
    webrig_second(a.r);
    struct webrig_call *c = webrig_request(a.r, "POST", "/v1/claims", again, "{\"path\": \"/a\"}");
    webrig_settle(a.r);
    expect(c, 202);
    webrig_end(c);
    c = webrig_request(a.r, "POST", "/v1/sessions/1/renew", a.other, NULL); /* it names the other */
    expect(c, 403);
    snprintf(target, sizeof target, "/v1/sessions/%s/renew",
             strstr(webrig_member(c, "detail"), "of session ") + strlen("of session "));
    webrig_end(c);
    clave__web_set_access(a.r->web, &then);
    bool has_gone = false;
    for (int i = 0; i < 12; i++) { /* for longer than a hold at the first could last */
        webrig_advance(a.r, 1000);
        webrig_end(renew(&a));
        c = webrig_request(a.r, "POST", target, a.other, NULL);
        webrig_settle(a.r);
        expect(c, 200);
        has_gone = !strstr(webrig_body(c), "waiting");
        webrig_end(c);
    }
    assert_true(has_gone);
    assert_int_equal(places(&a, "/a"), 2);
    clave__web_set_access(a.r->web, &at_first); /* the second knows it again, on one connection */
    c = webrig_request(a.r, "GET", a.waits, a.other, NULL);
    webrig_settle(a.r);
    expect(c, 202);
    webrig_end(c);
    webrig_free(a.r);
}

/* What was told is over, and two requests are here: the later one's arrival gives the other
 * nothing.
 */
TEST(nothing_more_is_told_to_two_at_once)
{
    static const uint8_t key[32] = {42};
    const size_t client = 1; /* of the first session */
    struct admitted a;
    admitted_begin(&a, key);
    clave__web_set_access(a.r->web, &then);
    while (a.r->net->now < a.told) {
        webrig_end(renew(&a));
        webrig_advance(a.r, 500);
    }
    memnet_rule(a.r->net, (struct memnet_rule){client, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *c[2];
    char target[80];
    snprintf(target, sizeof target, "/v1/sessions/%s/renew", a.id);
    for (int i = 0; i < 2; i++) {
        c[i] = webrig_request(a.r, "POST", target, a.session, NULL);
        assert_false(c[i]->answered);
        webrig_advance(a.r, 100);
    }
    memnet_cut(a.r->net, client); /* the first is proved again, after the second */
    memnet_clear(a.r->net);
    webrig_advance(a.r, 500);
    for (int i = 0; i < 2; i++) {
        expect(c[i], 200);
        assert_string_equal(of_claim(c[i], "/a", "valid_ms"), "0");
        webrig_end(c[i]);
    }
    webrig_free(a.r);
}

/* A session of a millisecond would have it write a thousand lines a second; with a long one a proxy
 * would close a stream that is silent for as long as its timeout. */
TEST(heartbeats_come_every_second_to_every_15_s)
{
    static const struct {
        const char *body;
        int64_t for_ms;
        size_t least, most;
    } rows[] = {
        {"{\"path\": \"/a\", \"ttl_ms\": 3}", 10000, 8, 11},
        {"{\"path\": \"/a\", \"ttl_ms\": 9000}", 30000, 9, 10},
        {"{\"path\": \"/a\", \"ttl_ms\": 300000}", 60000, 3, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct webrig_options o = {.net = {.max_session_ms = 400000}};
        CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
        size_t beats = 0;
        struct webrig_call *c = webrig_request(r, "POST", "/v1/hold", NULL, rows[i].body);
        for (int64_t t = 0; t < rows[i].for_ms; t += 100)
            webrig_advance(r, 100);
        expect(c, 200);
        for (const char *at = webrig_body(c); (at = strstr(at, "heartbeat")); at++)
            beats++;
        assert_in_range(beats, rows[i].least, rows[i].most);
    }
}

/* What could not be asked for by GET either. */
TEST(a_path_has_a_longest)
{
    enum { MOST = 8192 };
    static char body[MOST + 40];
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    for (size_t n = MOST; n <= MOST + 1; n++) {
        memset(body, 'a', sizeof body);
        memcpy(body, "{\"path\": \"/", 11);
        strcpy(body + 10 + n, "\"}");
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "POST", "/v1/hold", NULL, body);
        expect(c, n == MOST ? 200 : 400);
        if (n > MOST)
            assert_non_null(strstr(webrig_body(c), "longer than 8192 bytes"));
    }
}
