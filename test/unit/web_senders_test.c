/* web_senders_test.c - what senders share: memory, waits, sessions. Over every route: with a pool
 * empty, a request is refused before anything is done, or done and answered; and a renewal, a
 * release, a look at one's own needs no pool. One sender cannot take all of any. */
#include "lib/unit.h"
#include "lib/webrig.h"
#include "web/http/exchange.h"
#include "web/http/sender.h"
#include "web/web_internal.h"

static const struct web_grant all[] = {{WEB_ADMIN, "/"}};
static const struct web_user users[] = {
    {.name = "ann", .token = "ann", .uid = -1, .grants = all, .ngrants = 1},
    {.name = "bob", .token = "bob", .uid = -1, .grants = all, .ngrants = 1},
    {.token = "eve", .uid = -1, .grants = all, .ngrants = 1}};
static const struct web_access access_of_test = {.users = users, .nusers = 3, .owner_uid = -1};

static const char ann[] = "Authorization: Bearer ann", bob[] = "Authorization: Bearer bob",
                  eve[] = "Authorization: Bearer eve";

enum { LOTS = 1 << 30, BIG = 5000 };

struct scene {
    struct webrig *r;
    char id[32], claim[64], headers[400]; /* of ann's session, and its claim of /mine */
};

static struct webrig_call *post(struct scene *s, const char *target, const char *headers,
                                const char *body)
{
    return webrig_request(s->r, "POST", target, headers, body);
}

static void scene_open(struct scene *s, struct webrig_options *o)
{
    o->access = &access_of_test;
    s->r = webrig_new(o);
}

static void scene_take_lock(struct scene *s)
{
    struct webrig_call *c = post(s, "/v1/sessions", ann, "{}");
    assert_int_equal(c->status, 201);
    snprintf(s->id, sizeof s->id, "%s", webrig_member(c, "id"));
    snprintf(s->headers, sizeof s->headers, "%s\nClave-Session: %s", ann,
             webrig_member(c, "secret"));
    webrig_end(c);
    c = post(s, "/v1/claims", s->headers, "{\"path\": \"/mine\"}");
    assert_int_equal(c->status, 201);
    snprintf(s->claim, sizeof s->claim, "%s", webrig_member(c, "id"));
    webrig_end(c);
}

/* ---- every route, with a pool empty ---------------------------------------------------------- */

static bool is_own(const struct route *r)
{
    return r->flags & ROUTE_OWN;
}

static const char *target_of(const struct scene *s, const struct route *r)
{
    static char out[300];
    const char *open = strchr(r->pattern, '{'), *close = open ? strchr(open, '}') + 1 : NULL;
    if (!open)
        return r->pattern;
    const char *what = strstr(r->pattern, "/v1/claims/")     ? s->claim
                       : strstr(r->pattern, "/v1/sessions/") ? s->id
                       : strcmp(r->method, "POST") == 0      ? "new"
                                                             : "mine";
    snprintf(out, sizeof out, "%.*s%s%s%s", (int)(open - r->pattern), r->pattern,
             open[-1] == '/' ? "" : "/", what, close);
    return out;
}

/* A valid body, made longer by blanks. */
static void body_of(const struct route *r, bool big, char out[BIG + 1])
{
    static const struct {
        const char *pattern, *body;
    } bodies[] = {
        {"/v1/sessions", "{\"ttl_ms\": 5000}"},
        {"/v1/claims", "{\"path\": \"/other\"}"},
        {"/v1/hold", "{\"path\": \"/third\"}"},
        {"/v1/locks/{path}/revoke", "{\"reason\": \"r\"}"},
        {"/v1/locks/{path}/break", "{\"reason\": \"r\"}"},
        {"/v1/elections/{path}/transfer", "{\"to\": \"x\"}"},
        {"/v1/multi", "{\"ops\": [{\"op\": \"create\", \"path\": \"/m\", \"data\": \"\"}]}"},
    };
    const char *body = "";
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (strcmp(bodies[i].pattern, r->pattern) == 0)
            body = bodies[i].body;
    memset(out, ' ', BIG);
    memcpy(out, body, strlen(body));
    out[big ? BIG : strlen(body)] = '\0';
}

static unsigned complaints;

static void complain(const struct webrig_call *c, const char *what)
{
    print_error("%s: %s %s (%zu bytes) -> %u %.200s\n", what, c->q.method, c->q.target,
                strlen(c->sent), c->status, webrig_body(c));
    complaints++;
}

static bool is_refusal(const struct webrig_call *c)
{
    return c->status == 429 || c->status == 503;
}

static void check_route(struct scene *s, const struct route *r, bool big)
{
    char body[BIG + 1];
    size_t before = clave__buf_len(&s->r->net->log);
    body_of(r, big, body);
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(s->r, r->method, target_of(s, r), s->headers, body);
    webrig_settle(s->r);
    bool changed = clave__buf_len(&s->r->net->log) != before;
    if (is_refusal(c) && changed)
        complain(c, "refused, and done");
    if (is_refusal(c) && !webrig_header(c, "Retry-After"))
        complain(c, "no Retry-After");
    if (changed && is_own(r) && c->status >= 500)
        complain(c, "done, and not said");
    if (is_own(r) && (big ? c->status != 413 : is_refusal(c) || !c->answered))
        complain(c, "one's own needs a pool");
    if (!c->answered)
        complain(c, "no answer");
}

/* DELETE of the session comes last: its claim is looked at before. */
static void check_routes(struct scene *s, bool big)
{
    for (int last = 0; last < 2; last++)
        for (size_t i = 0; i < clave__routes.n; i++) {
            const struct route *r = &clave__routes.at[i];
            bool ends = strcmp(r->method, "DELETE") == 0 && is_own(r);
            if (ends == (last > 0) && r->role != WEB_NONE)
                check_route(s, r, big);
        }
}

TEST(with_a_pool_empty_nothing_is_done_and_refused)
{
    static const enum sender_share shares[] = {SENDER_WAITS, SENDER_BYTES, SENDER_SESSIONS};
    complaints = 0;
    for (unsigned empty = 1; empty < 8; empty++)
        for (int big = 0; big < 2; big++) {
            struct webrig_options o = {.max_sessions = 0};
            struct scene s;
            scene_open(&s, &o);
            scene_take_lock(&s);
            struct sender *greedy = clave__sender_get(s.r->web, SENDER_NAMED, "greedy");
            for (unsigned i = 0; i < 3; i++)
                if (empty & 1U << i)
                    clave__sender_add(s.r->web, greedy, shares[i], LOTS);
            check_routes(&s, big);
            for (unsigned i = 0; i < 3; i++)
                if (empty & 1U << i)
                    clave__sender_give(s.r->web, greedy, shares[i], LOTS);
            clave__sender_unref(s.r->web, greedy);
            webrig_free(s.r);
        }
    assert_int_equal(complaints, 0);
}

/* It had begun when the memory went: then it is answered. */
TEST(what_was_done_is_answered_whatever_others_take)
{
    struct webrig_options o = {.max_sessions = 0};
    struct scene s;
    scene_open(&s, &o);
    memnet_rule(s.r->net, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *c = post(&s, "/v1/znodes/a?parents", ann, NULL);
    assert_false(c->answered);
    struct sender *greedy = clave__sender_get(s.r->web, SENDER_NAMED, "greedy");
    clave__sender_add(s.r->web, greedy, SENDER_BYTES, LOTS);
    clave__sender_add(s.r->web, greedy, SENDER_WAITS, LOTS);
    memnet_clear(s.r->net);
    webrig_settle(s.r);
    assert_int_equal(c->status, 201);
    webrig_end(c);
    clave__sender_give(s.r->web, greedy, SENDER_BYTES, LOTS);
    clave__sender_give(s.r->web, greedy, SENDER_WAITS, LOTS);
    clave__sender_unref(s.r->web, greedy);
    webrig_free(s.r);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct webrig_call *head(struct scene *s, const char *who, int64_t n)
{
    return webrig_head(s->r, "PUT", "/v1/znodes/z", who, n);
}

static void refused(struct webrig_call *c, unsigned status, const char *text)
{
    assert_true(c->answered);
    assert_int_equal(c->status, status);
    if (!strstr(webrig_body(c), text))
        print_error("%s: %s\n", text, webrig_body(c));
    assert_non_null(strstr(webrig_body(c), text));
    webrig_end(c);
}

static void check_metrics(struct scene *s, const char *line)
{
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(s->r, "GET", "/metrics", ann, NULL);
    assert_non_null(strstr(webrig_body(c), line));
}

/* Of 800 KB, 100 are for strangers; of the others one sender may have 350. */
TEST(memory_is_shared_by_sender)
{
    struct webrig_options o = {.max_held = 800000};
    struct webrig_call *calls[4];
    struct scene s;
    scene_open(&s, &o);
    calls[0] = head(&s, ann, 200000);
    calls[1] = head(&s, ann, 150000);
    assert_false(calls[0]->answered || calls[1]->answered);
    refused(head(&s, ann, 10000), 429, "350000 bytes of bodies and answers of ann");
    calls[2] = head(&s, bob, 350000);
    assert_false(calls[2]->answered);
    refused(head(&s, eve, 10000), 503, "700000 bytes of bodies and answers");
    calls[3] = head(&s, eve, 4096); /* a small one has room in any case */
    assert_false(calls[3]->answered);
    webrig_end(calls[0]);
    calls[0] = head(&s, ann, 200000);
    assert_false(calls[0]->answered);
    for (size_t i = 0; i < 4; i++)
        webrig_end(calls[i]);
    assert_int_equal(clave__senders_have(s.r->web, SENDER_BYTES), 0);
    check_metrics(&s, "clave_http_refused_total{reason=\"memory\"} 2");
    check_metrics(&s, "clave_http_refused_total{reason=\"unavailable\"} 0");
    webrig_free(s.r);
}

/* A body of nothing but empty objects takes a hundred times its length when it is parsed. */
TEST(a_body_counts_with_its_values)
{
    struct webrig_options o = {.max_held = 800000};
    char body[6000] = "{\"ops\":[{}";
    struct scene s;
    scene_open(&s, &o);
    size_t n = strlen(body);
    for (; n + 3 < sizeof body - 3; n += 3)
        memcpy(body + n, ",{}", 3);
    memcpy(body + n, "]}", 3);
    refused(post(&s, "/v1/multi", ann, body), 413, "more than the 350000 bytes that one sender");
    memset(strchr(body, '[') + 1, ' ', n - 8);
    refused(post(&s, "/v1/multi", ann, body), 400, "ops");
    assert_int_equal(clave__senders_have(s.r->web, SENDER_BYTES), 0);
    webrig_free(s.r);
}

/* It has room in any case, as a small write has; a large one has none. */
TEST(a_small_transaction_needs_no_pool)
{
    static const struct {
        int ops;
        unsigned status;
    } rows[] = {{1, 200}, {8, 200}, {20, 200}, {60, 503}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct webrig_options o = {.max_sessions = 0};
        char body[8000];
        struct scene s;
        scene_open(&s, &o);
        struct sender *greedy = clave__sender_get(s.r->web, SENDER_NAMED, "greedy");
        clave__sender_add(s.r->web, greedy, SENDER_BYTES, LOTS);
        int n = snprintf(body, sizeof body, "{\"ops\": [");
        for (int op = 0; op < rows[i].ops; op++)
            n += snprintf(body + n, sizeof body - (size_t)n,
                          "%s{\"op\": \"create\", \"path\": \"/node-%d\", \"data\": \"some text\"}",
                          op ? ", " : "", op);
        snprintf(body + n, sizeof body - (size_t)n, "]}");
        struct webrig_call *c = post(&s, "/v1/multi", ann, body);
        webrig_settle(s.r);
        assert_int_equal(c->status, rows[i].status);
        webrig_end(c);
        clave__sender_give(s.r->web, greedy, SENDER_BYTES, LOTS);
        clave__sender_unref(s.r->web, greedy);
        webrig_free(s.r);
    }
}

/* In chunks nothing is announced: it counts as it comes. */
TEST(chunks_count_as_they_come)
{
    static char piece[50000];
    struct webrig_options o = {.max_held = 800000};
    struct scene s;
    scene_open(&s, &o);
    struct webrig_call *c = head(&s, ann, -1);
    for (int i = 0; i < 7; i++)
        assert_true(webrig_piece(c, piece, sizeof piece));
    assert_int_equal(clave__senders_have(s.r->web, SENDER_BYTES), 350000);
    assert_false(webrig_piece(c, piece, 1));
    refused(c, 413, "more than the 350000 bytes that one sender");
    assert_int_equal(clave__senders_have(s.r->web, SENDER_BYTES), 0);
    webrig_free(s.r);
}

TEST(a_large_answer_is_of_its_sender_too)
{
    static const char large[] = "Authorization: Bearer ann\nContent-Type: application/octet-stream";
    static char data[150000];
    struct webrig_options o = {.max_held = 800000};
    struct scene s;
    scene_open(&s, &o);
    webrig_end(webrig_request_bytes(s.r, "POST", "/v1/znodes/z", large, data, sizeof data));
    struct webrig_call *c = webrig_request(s.r, "GET", "/v1/znodes/z", ann, NULL);
    assert_int_equal(c->status, 200);
    assert_non_null(webrig_header(c, "ETag"));
    struct webrig_call *second = webrig_request(s.r, "GET", "/v1/znodes/z", ann, NULL);
    assert_null(webrig_header(second, "ETag"));
    refused(second, 429, "memory already");
    webrig_end(webrig_request(s.r, "GET", "/v1/znodes/z", bob, NULL));
    webrig_end(c);
    c = webrig_request(s.r, "GET", "/v1/znodes/z", ann, NULL);
    assert_int_equal(c->status, 200);
    webrig_end(c);
    assert_int_equal(clave__senders_have(s.r->web, SENDER_BYTES), 0);
    webrig_free(s.r);
}

/* 129 bodies of 2 MiB once took all of the memory: none of a sender without a proof is let in. */
TEST(a_stranger_sends_little)
{
    static const struct web_access nobody = {.owner_uid = -1};
    struct webrig_options o = {.access = &nobody};
    struct webrig_call *floods[40], *c;
    char target[80], proof[300];
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    c = webrig_request(r, "POST", "/v1/sessions", NULL, "{}");
    snprintf(target, sizeof target, "/v1/sessions/%s/renew", webrig_member(c, "id"));
    snprintf(proof, sizeof proof, "Clave-Session: %s", webrig_member(c, "secret"));
    assert_false(clave__web_is_known(c->x));
    webrig_end(c);
    c = webrig_request(r, "POST", target, proof, NULL);
    assert_true(clave__web_is_known(c->x));
    webrig_end(c);
    refused(webrig_head(r, "POST", "/v1/claims", NULL, 2 << 20), 413, "65536 bytes");
    for (size_t i = 0; i < 40; i++)
        floods[i] = webrig_head(r, "POST", "/v1/claims", NULL, 65536);
    assert_true(clave__senders_have(r->web, SENDER_BYTES) <= 40 * 65536);
    c = webrig_request(r, "POST", target, proof, NULL);
    assert_int_equal(c->status, 200);
    webrig_end(c);
    for (size_t i = 0; i < 40; i++)
        webrig_end(floods[i]);
}

/* ---- sessions -------------------------------------------------------------------------------- */

TEST(one_sender_does_not_take_all_sessions)
{
    struct webrig_options o = {.max_sessions = 5};
    struct scene s;
    scene_open(&s, &o);
    for (int i = 0; i < 4; i++) {
        CLOSED_BY(webrig_ended) struct webrig_call *c = post(&s, "/v1/sessions", ann, "{}");
        assert_int_equal(c->status, 201);
    }
    refused(post(&s, "/v1/sessions", ann, "{}"), 429, "4 sessions of ann are alive already");
    refused(post(&s, "/v1/hold", ann, "{\"path\": \"/l\"}"), 429, "--http-max-sender-sessions");
    refused(post(&s, "/sessions/v1?op=create", ann, NULL), 429, "of ann");
    clave__web_set_max_sender_sessions(s.r->web, 5);
    struct webrig_call *c = post(&s, "/v1/hold", ann, "{\"path\": \"/l\"}");
    assert_int_equal(c->status, 200);
    refused(post(&s, "/v1/sessions", bob, "{}"), 429, "5 sessions are alive already");
    webrig_end(c);
    c = post(&s, "/v1/sessions", bob, "{}");
    assert_int_equal(c->status, 201);
    webrig_end(c);
    webrig_free(s.r);
}

TEST(only_sessions_that_are_alive_count)
{
    struct webrig_options o = {.max_sessions = 5};
    struct scene s;
    scene_open(&s, &o);
    for (int i = 0; i < 50; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = post(&s, "/v1/hold", ann, "{\"path\": \"/l\"}");
        assert_int_equal(c->status, 200);
    }
    for (int i = 0; i < 50; i++) {
        struct webrig_call *c = post(&s, "/v1/sessions", ann, "{}");
        char target[80], proof[400];
        assert_int_equal(c->status, 201);
        snprintf(target, sizeof target, "/v1/sessions/%s", webrig_member(c, "id"));
        snprintf(proof, sizeof proof, "%s\nClave-Session: %s", ann, webrig_member(c, "secret"));
        webrig_end(c);
        c = webrig_request(s.r, "DELETE", target, proof, NULL);
        assert_int_equal(c->status, 204);
        webrig_end(c);
        webrig_advance(s.r, 1);
        c = webrig_request(s.r, "GET", target, proof, NULL);
        assert_int_equal(c->status, 410); /* and it is told why */
        webrig_end(c);
    }
    assert_int_equal(clave__senders_have(s.r->web, SENDER_SESSIONS), 0);
    webrig_free(s.r);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* A holder's connection stays, by its session's secret where it needs no token; those of one sender
 * are not all. */
TEST(the_connections_of_one_sender_do_not_all_stay)
{
    struct webrig_options o = {.max_sessions = 0};
    struct sender *kept[9];
    size_t n = 0;
    struct scene s;
    scene_open(&s, &o);
    clave__web_set_max_connections(s.r->web, 10);
    struct webrig_call *c = webrig_request(s.r, "GET", "/v1/whoami", ann, NULL);
    while (n < 9 && (kept[n] = clave__web_keep(c->x)))
        n++;
    assert_int_equal(n, 8);
    struct webrig_call *other = webrig_request(s.r, "GET", "/v1/whoami", bob, NULL);
    kept[n] = clave__web_keep(other->x);
    assert_non_null(kept[n]);
    clave__web_keep_no_more(s.r->web, kept[n]);
    clave__web_keep_no_more(s.r->web, kept[--n]);
    kept[n] = clave__web_keep(c->x);
    assert_non_null(kept[n++]);
    webrig_end(c);
    webrig_end(other);
    c = webrig_request(s.r, "GET", "/healthz", NULL, NULL);
    assert_null(clave__web_keep(c->x));
    webrig_end(c);
    while (n > 0)
        clave__web_keep_no_more(s.r->web, kept[--n]);
    webrig_free(s.r);
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* No server answers: whatever was asked for stays, whether it said that it would wait or not. */
TEST(what_stays_unanswered_counts)
{
    static const char *const prefers[] = {"X: y", "Prefer: wait=0", "Prefer: wait=30"};
    for (size_t p = 0; p < 3; p++) {
        struct webrig_options o = {.max_waiting = 6};
        struct webrig_call *waits[32], *c;
        char headers[500], target[80];
        size_t n = 0;
        struct scene s;
        scene_open(&s, &o);
        scene_take_lock(&s);
        memnet_rule(s.r->net, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
        memnet_rule(s.r->net, (struct memnet_rule){1, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
        snprintf(headers, sizeof headers, "%s\n%s", s.headers, prefers[p]);
        for (; n < 32; n++) {
            waits[n] = post(&s, "/v1/claims", headers, "{\"path\": \"/l\"}");
            if (waits[n]->answered)
                break;
        }
        assert_int_equal(n, p < 2 ? 18 : 5); /* of ann; in all 6 may wait, and 16 more call */
        refused(waits[n], 429, "of ann wait already");
        snprintf(target, sizeof target, "/v1/claims/%s", s.claim);
        c = webrig_request(s.r, "GET", target, s.headers, NULL);
        assert_int_equal(c->status, 200);
        webrig_end(c);
        memnet_clear(s.r->net);
        webrig_settle(s.r);
        while (n > 0)
            webrig_end(waits[--n]);
        assert_int_equal(clave__senders_have(s.r->web, SENDER_WAITS), 0);
        webrig_free(s.r);
    }
}

/* ---- who a sender is ------------------------------------------------------------------------- */

TEST(a_network_of_ipv6_is_one_sender)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"10.0.0.1:1", "10.0.0.1:2", true},
        {"10.0.0.1:1", "10.0.0.2:1", false},
        {"10.0.0.1", "10.0.0.1:2", true},
        {"[2001:db8::1]:80", "[2001:db8::2:3]:81", true},
        {"[2001:db8::1]:80", "[2001:db8:0:0:ffff:1:2:3]:80", true},
        {"[2001:db8::1]:80", "2001:DB8::7", true},
        {"[2001:db8:0:1::1]:80", "[2001:db8:0:2::1]:80", false},
        {"[2001:db8:1:2:3:4:5:6]:80", "[2001:db8:1:2::]:80", true},
        {"[fe80::1%eth0]:80", "[fe80::2%eth1]:80", true},
        {"[::1]:80", "[::2]:80", true},
        {"[::1]:80", "[1::]:80", false},
        {"[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.2]:1", false},
        {"[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.1]:2", true},
        {"local", "local", true},
        {"", "local", false},
    };
    struct webrig_options o = {.access = NULL};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sender *a = clave__sender_get(r->web, SENDER_STRANGER, cases[i].a);
        struct sender *b = clave__sender_get(r->web, SENDER_STRANGER, cases[i].b);
        struct sender *named = clave__sender_get(r->web, SENDER_NAMED, cases[i].a);
        if ((a == b) != cases[i].same)
            print_error("%s and %s\n", cases[i].a, cases[i].b);
        assert_int_equal(a == b, cases[i].same);
        assert_ptr_not_equal(a, named);
        clave__sender_unref(r->web, a);
        clave__sender_unref(r->web, b);
        clave__sender_unref(r->web, named);
    }
}
