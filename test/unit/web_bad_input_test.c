/* web_bad_input_test.c - every route with everything that can be wrong of a request: method, head,
 * proof, path, query, body. Each is refused by the right status and a problem that says what is
 * wrong, no node is made, and no memory is kept. tools/check-openapi holds each answer against the
 * document. */
#include "lib/unit.h"
#include "lib/webrig.h"
#include "web/http/exchange.h"

static const struct web_grant all[] = {{WEB_ADMIN, "/"}}, elsewhere[] = {{WEB_READ, "/other"}};
static const struct web_user users[] = {
    {.name = "ann", .token = "ann", .uid = -1, .grants = all, .ngrants = 1},
    {.name = "bob", .token = "bob", .uid = -1, .grants = elsewhere, .ngrants = 1}};
static const struct web_access access_of_test = {
    .users = users, .nusers = 2, .owner_uid = -1, .fleetlock = "/reboots"};

enum { MAX_BODY = 4096 };

/* ---- what is sent --------------------------------------------------------------------------- */

struct scene {
    struct webrig *r;
    char id[32], proof[300]; /* of a session that is alive */
    const struct route *route;
    const char *method; /* NULL: the route's */
};

static void scene_enter(struct scene *s, const clave_mem *mem)
{
    struct webrig_options o = {.access = &access_of_test, .mem = mem, .max_body = MAX_BODY};
    s->r = webrig_new(&o);
    struct webrig_call *c =
        webrig_request(s->r, "POST", "/v1/sessions", "Authorization: Bearer ann", "{}");
    assert_int_equal(c->status, 201);
    snprintf(s->id, sizeof s->id, "%s", webrig_member(c, "id"));
    snprintf(s->proof, sizeof s->proof, "Clave-Session: %s", webrig_member(c, "secret"));
    webrig_end(c);
}

/* The route's target, with `what` in place of its parameter; NULL: one that is there. */
static const char *target_of(const struct scene *s, const char *what)
{
    static char out[600];
    const char *pattern = s->route->pattern, *open = strchr(pattern, '{');
    if (!open)
        return pattern;
    const char *close = strchr(open, '}') + 1, *there = open[1] == 'i' ? s->id : "l";
    const char *slash = open[-1] != '/' ? "/" : "";
    snprintf(out, sizeof out, "%.*s%s%s%s", (int)(open - pattern), pattern, slash,
             what ? what : there, close);
    return out;
}

/* Of Apache's own: its errors have another form. */
static bool is_contrib(const struct route *route)
{
    return strncmp(route->pattern, "/znodes/", 8) == 0 ||
           strncmp(route->pattern, "/sessions/", 10) == 0;
}

static bool has(const struct scene *s, const char *text)
{
    return strstr(s->route->pattern, text) != NULL;
}

/* ---- what is expected ----------------------------------------------------------------------- */

static unsigned complaints; /* all of them are told before the test fails */

static void complain(const struct webrig_call *c, const char *what)
{
    print_error("%s: %s %.100s %.200s -> %u %.300s\n", what, c->q.method, c->q.target, c->sent,
                c->status, webrig_body(c));
    complaints++;
}

/* A problem says so, has its status, and a text. */
static void check_problem(const struct webrig_call *c, const char *text)
{
    const char *type = webrig_header(c, "Content-Type");
    const char *status = webrig_member(c, "status");
    if (!type || strcmp(type, "application/problem+json") != 0 || !status ||
        (unsigned)atoi(status) != c->status)
        complain(c, "no problem");
    const char *detail = strstr(webrig_body(c), "\"detail\": \"");
    if (!detail || strstr(detail, "\", \"code\"") < detail + 20)
        complain(c, "no detail");
    else if (text && !strstr(webrig_body(c), text))
        complain(c, text);
}

/* `status` 0: any from 400 to 499. */
struct refusal {
    unsigned status;
    const char *text; /* that it has; NULL: whatever */
};

static void expect_of(struct scene *s, const char *target, const char *headers, const char *body,
                      const struct refusal *r)
{
    const char *method = s->method ? s->method : s->route->method, *text = r->text;
    unsigned status = r->status;
    char with[20000];
    snprintf(with, sizeof with, "%s%s%s\n%s",
             headers && strstr(headers, "Authorization") ? "" : "Authorization: Bearer ann\n",
             headers ? headers : "", headers ? "" : "X: y", s->proof);
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(s->r, method, target, with, body);
    if (!c->answered || (status ? c->status != status : c->status < 400 || c->status >= 500))
        complain(c, text ? text : "status");
    else if (strcmp(method, "HEAD") != 0)
        check_problem(c, text);
}

static void expect(struct scene *s, const char *headers, const char *body, const struct refusal *r)
{
    expect_of(s, target_of(s, NULL), headers, body, r);
}

/* ---- method, head, proof -------------------------------------------------------------------- */

static void bad_method(struct scene *s)
{
    static const char *const methods[] = {"GET",   "HEAD",    "POST",  "PUT",  "DELETE",
                                          "PATCH", "OPTIONS", "TRACE", "BREW", "get"};
    char target[600], allow[80] = "";
    snprintf(target, sizeof target, "%s", target_of(s, NULL));
    struct webrig_call *c = webrig_request(s->r, "BREW", target, NULL, NULL);
    snprintf(allow, sizeof allow, ", %s,", webrig_header(c, "Allow"));
    webrig_end(c);
    assert_non_null(strstr(allow, s->route->method));
    assert_int_equal(strstr(allow, "GET") != NULL, strstr(allow, "HEAD") != NULL);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        char word[16];
        snprintf(word, sizeof word, " %s,", methods[i]);
        s->method = methods[i];
        if (!strstr(allow, word))
            expect_of(s, target, NULL, NULL, &(struct refusal){405, "only"});
    }
    s->method = NULL;
}

/* A header that narrows a request, or lets it be repeated, is honoured or refused. */
static void bad_narrowing_headers(struct scene *s)
{
    bool writes = strcmp(s->route->method, "GET") != 0;
    bool posts = strcmp(s->route->method, "POST") == 0 || strcmp(s->route->method, "PATCH") == 0;
    if (!(s->route->flags & ROUTE_GUARDED))
        expect(s, "Clave-Guard: /l;token=1", NULL, &(struct refusal){400, "Clave-Guard"});
    if (!(s->route->flags & ROUTE_CONDITIONAL))
        expect(s, "If-Match: \"1\"", NULL, &(struct refusal){400, "If-Match"});
    if (!(s->route->flags & ROUTE_CONDITIONAL) && writes)
        expect(s, "If-None-Match: *", NULL, &(struct refusal){400, "If-None-Match"});
    if (!(s->route->flags & ROUTE_KEYED) && posts)
        expect(s, "Idempotency-Key: k", NULL, &(struct refusal){400, "Idempotency-Key"});
}

static void bad_head(struct scene *s)
{
    static const struct {
        const char *headers;
        unsigned status;
        const char *text;
        bool role; /* not for those that need none */
    } cases[] = {
        {"Host: evil.example", 421, "Host", false},
        {"Host: ", 421, "Host", false},
        {"Host: localhost:80@evil", 421, "Host", false},
        {"Host: localhost:80/evil", 421, "Host", false},
        {"Host: localhost:80:80", 421, "Host", false},
        {"Host: localhost:-1", 421, "Host", false},
        {"Host: localhost:123456", 421, "Host", false},
        {"Host: evil@localhost", 421, "Host", false},
        {"Host: localhost.evil", 421, "Host", false},
        {"Host: 127.0.0.1:x", 421, "Host", false},
        {"Host: [::1]:80@evil", 421, "Host", false},
        {"Host: [::1]x", 421, "Host", false},
        {"Host: localhost\nHost: localhost", 400, "Host", false},
        {"Host: localhost\nhost: evil.example", 400, "ost", false},
        {"Content-Length: 2\nContent-Length: 3", 400, "Content-Length", false},
        {"Transfer-Encoding: chunked\nContent-Length: 3", 400, "Content-Length", false},
        {"Transfer-Encoding: gzip", 501, "chunked", false},
        {"Transfer-Encoding: gzip, chunked", 501, "chunked", false},
        {"Content-Type: application/json\nContent-Type: text/plain", 400, "Content-Type", false},
        {"Clave-Session: x", 400, "Clave-Session", false}, /* beside that of the scene */
        {"Idempotency-Key: a\nIdempotency-Key: b", 400, "Idempotency-Key", false},
        {"If-Match: \"1\"\nIf-Match: \"2\"", 400, "If-Match", false},
        {"Origin: http://localhost:8080\nOrigin: http://evil.example", 400, "Origin", false},
        {"Authorization: Bearer ann\nAuthorization: Bearer bob", 400, "Authorization", false},
        {"Host : evil.example", 400, "header", false},
        {"X Y: z", 400, "header", false},
        {"X\x01: z", 400, "header", false},
        {"Origin: http://evil.example", 403, "another site", true},
        {"Origin: null", 403, "another site", true},
        {"Sec-Fetch-Site: cross-site", 403, "another site", true},
        {"Authorization: Bearer eve", 401, "token", true},
        {"Authorization: Bearer ", 401, "token", true},
        {"Authorization: Basic YTpi", 401, "token", true},
        {"Authorization: Bearer bob", 403, "role", true},
    };
    char big[17000] = "X: ", word[16];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!cases[i].role || (s->route->role > WEB_NONE && !is_contrib(s->route)) ||
            (is_contrib(s->route) && cases[i].status != 403))
            if (cases[i].status != 403 || !strstr(cases[i].headers, "bob") ||
                s->route->role > WEB_READ || has(s, "{path}"))
                expect(s, cases[i].headers, NULL,
                       &(struct refusal){cases[i].status, cases[i].text});
    bad_narrowing_headers(s);
    memset(big + 3, 'y', sizeof big - 4);
    expect(s, big, NULL, &(struct refusal){431, "16384"});
    snprintf(word, sizeof word, "%d", MAX_BODY);
    big[MAX_BODY + 4] = '\0';
    expect(s, NULL, big, &(struct refusal){413, word});
    memset(big, 'z', 9000);
    big[0] = '/';
    big[9000] = '\0';
    expect_of(s, big, NULL, NULL, &(struct refusal){414, "8192"});
}

/* A path that only begins as the route's is another's, or nobody's. */
static void bad_target(struct scene *s)
{
    static const char *const tails[] = {"el", "%2Fx", ".", ";x", "@evil", ":80"};
    char target[200];
    const char *pattern = s->route->pattern, *open = strchr(pattern, '{');
    size_t n = open ? (size_t)(open - pattern) : strlen(pattern);
    bool literal = n > 1 && pattern[n - 1] != '/';
    for (size_t i = 0; literal && i < sizeof tails / sizeof *tails; i++) {
        snprintf(target, sizeof target, "%.*s%s", (int)n, pattern, tails[i]);
        expect_of(s, target, NULL, NULL, &(struct refusal){404, "openapi.json"});
    }
}

/* ---- path and query ------------------------------------------------------------------------- */

static void bad_path(struct scene *s)
{
    static const char *const escapes[] = {"%", "%4", "a%zz", "%00", "a%2", "%2500%00"};
    static const char *const paths[] = {"%ff", "%c0%af", "%ed%a0%80", "..",   "a/../b",      "a//b",
                                        "./a", "a/%2e",  "%01",       "a%7f", "%f4%90%80%80"};
    static const char *const ids[] = {"%ff", "-1", "0x1", "99999999999999999999", "%20", "1%2f2"};
    bool is_number = has(s, "{id}") && !has(s, "/services/"); /* a service has any name */
    if (has(s, "{"))
        for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
            expect_of(s, target_of(s, escapes[i]), NULL, NULL, &(struct refusal){400, "escape"});
    for (size_t i = 0; i < sizeof ids / sizeof *ids && is_number && !is_contrib(s->route); i++)
        expect_of(s, target_of(s, ids[i]), NULL, NULL, &(struct refusal){0, NULL});
    if (!has(s, "{path}") || is_contrib(s->route) || has(s, "/ui/"))
        return;
    const char *body = has(s, "/znodes/")           ? NULL
                       : has(s, "/transfer")        ? "{\"to\": \"x\"}"
                       : has(s, "/value")           ? NULL
                       : s->route->method[0] == 'P' ? "{\"node\": \"x\"}"
                                                    : NULL;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        expect_of(s, target_of(s, paths[i]), NULL, body, &(struct refusal){400, "EPATH"});
}

/* Each argument that the route knows, with what it is not. */
static void bad_query(struct scene *s)
{
    char target[700], n[16];
    if (s->route->query && strcmp(s->route->query, "*") == 0)
        return;
    snprintf(target, sizeof target, "%s?surprise=1", target_of(s, NULL));
    expect_of(s, target, NULL, NULL, &(struct refusal){400, "surprise"});
    const char *names = s->route->query ? s->route->query : "";
    for (size_t len; (len = strcspn(names, " ")) > 0; names += len + (names[len] == ' ')) {
        snprintf(n, sizeof n, "%.*s", (int)len, names);
        snprintf(target, sizeof target, "%s?%s=1&%s=2", target_of(s, NULL), n, n);
        expect_of(s, target, NULL, NULL, &(struct refusal){400, "twice"});
        bool is_number = strstr("limit ttl token max", n) != NULL;
        bool is_flag = strstr("acl children claims fresh parents recursive samples stat sync", n);
        bool is_path = strstr("prefix path", n) != NULL;
        static const char *const numbers[] = {"-1", "x", "99999999999999999999", "1e3", "%ff", ""};
        static const char *const paths[] = {"x", "%ff", "/a/../b", "//", "/a%01", "/%c0%af"};
        static const char *const flags[] = {"0", "false", "no", "yes", "%ff", "11"};
        const char *const *wrong = is_number ? numbers : is_flag ? flags : paths;
        for (size_t i = 0; i < 6 && (is_number || is_flag || is_path); i++) {
            const char *also = strcmp(n, "ttl") == 0 ? "&mode=persistent_ttl" : "";
            also = strcmp(n, "max") == 0 ? "&recursive" : also;
            also = has(s, "/znodes/") && strcmp(n, "limit") == 0 ? "&children" : also;
            snprintf(target, sizeof target, "%s?%s=%s%s", target_of(s, NULL), n, wrong[i], also);
            expect_of(s, target, NULL, NULL, &(struct refusal){400, n});
        }
    }
}

/* ---- bodies --------------------------------------------------------------------------------- */

/* What each route with a JSON body takes. */
static const struct {
    const char *method, *pattern, *query, *body;
} bodies[] = {
    {"POST", "/v1/sessions", "", "{\"ttl_ms\": 5000, \"name\": \"n\", \"auth\": [\"digest:a:b\"]}"},
    {"POST", "/v1/claims", "",
     "{\"path\": \"/c\", \"kind\": \"lock\", \"limit\": 1, \"lock_delay_ms\": 1, \"name\": \"n\", "
     "\"command\": \"c\", \"host\": \"h\", \"revocable\": true, \"session\": \"1\"}"},
    {"POST", "/v1/hold", "",
     "{\"path\": \"/c\", \"kind\": \"semaphore\", \"limit\": 1, \"lock_delay_ms\": 1, \"ttl_ms\": "
     "5000, \"name\": \"n\", \"command\": \"c\", \"host\": \"h\", \"revocable\": true}"},
    {"POST", "/v1/locks/{path}/revoke", "",
     "{\"node\": \"x\", \"token\": \"1\", \"reason\": \"r\", \"force\": true}"},
    {"POST", "/v1/locks/{path}/break", "",
     "{\"node\": \"x\", \"token\": \"1\", \"reason\": \"r\", \"force\": true}"},
    {"POST", "/v1/elections/{path}/transfer", "", "{\"to\": \"x\", \"reason\": \"r\"}"},
    {"PUT", "/v1/znodes/{path}", "?acl",
     "{\"acl\": [{\"perms\": \"ra\", \"scheme\": \"world\", \"id\": \"anyone\"}]}"},
    {"POST", "/v1/multi", "", "{\"ops\": [{\"op\": \"check\", \"path\": \"/c\", \"version\": 1}]}"},
};

/* What none of their members may be; a number in quotes is a number, though. */
static void bad_members(struct scene *s, const char *target, const char *good)
{
    static const char *const wrong[] = {"{\"x\": 1}",  "-7",   "1.5", "1e30",
                                        "\"\\u0000\"", "[[]]", "[7]", "[{}]"};
    json_t *whole = json_loads(good, 0, NULL), *value;
    const char *key;
    json_object_foreach(whole, key, value)
    {
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            if (i == 4 && !json_is_string(value))
                continue;
            json_t *changed = json_copy(whole);
            json_object_set_new(changed, key,
                                json_loads(wrong[i], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
            char *body = json_dumps(changed, 0);
            expect_of(s, target, NULL, body, &(struct refusal){400, i < 4 ? key : NULL});
            free(body);
            json_decref(changed);
        }
    }
    json_decref(whole);
}

static void bad_body(struct scene *s)
{
    static const char *const no_json[] = {"{",
                                          "[]",
                                          "7",
                                          "\"x\"",
                                          "null",
                                          "{} {}",
                                          "{\"a\": 1,}",
                                          "{'a': 1}",
                                          "{\"a\": NaN}",
                                          "{\"a\": Infinity}",
                                          "{\"a\": 1, \"a\": 2}",
                                          "\xff\xfe",
                                          "{\"a\": \"\xff\"}",
                                          "{\"a\": \"\xc0\xaf\"}",
                                          "{\"a\": 1e400}",
                                          "{\"a\": 01}",
                                          "{\"a\": \"\\ud800\"}",
                                          "{\"a\": \"\\u0000\"}",
                                          "{\"a\": 99999999999999999999}",
                                          "\xef\xbb\xbf{}",
                                          "<a/>",
                                          "{\"a\": \"\n\"}"};
    char target[600], deep[MAX_BODY];
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        if (strcmp(bodies[i].pattern, s->route->pattern) != 0 ||
            strcmp(bodies[i].method, s->route->method) != 0)
            continue;
        snprintf(target, sizeof target, "%s%s", target_of(s, NULL), bodies[i].query);
        for (size_t k = 0; k < sizeof no_json / sizeof *no_json; k++)
            expect_of(s, target, NULL, no_json[k], &(struct refusal){400, "body"});
        memset(deep, '[', sizeof deep - 1);
        deep[sizeof deep - 1] = '\0';
        expect_of(s, target, NULL, deep, &(struct refusal){400, "body"});
        expect_of(s, target, NULL, "{\"surprise\": 1}", &(struct refusal){400, "surprise"});
        expect_of(s, target, "Content-Type: text/plain", "{}",
                  &(struct refusal){415, "application/json"});
        expect_of(s, target, "Content-Type: application/jsonp", "{}",
                  &(struct refusal){415, "application/json"});
        bad_members(s, target, bodies[i].body);
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static size_t live; /* bytes of the engine and its clients */

static void *count_alloc(void *arg, size_t n)
{
    size_t *p = malloc(sizeof(max_align_t) + n);
    (void)arg;
    *p = n;
    live += n;
    return (char *)p + sizeof(max_align_t);
}

static void count_free(void *arg, void *p)
{
    (void)arg;
    size_t *head = p ? (size_t *)(void *)((char *)p - sizeof(max_align_t)) : NULL;
    live -= head ? *head : 0;
    free(head);
}

static void *count_realloc(void *arg, void *p, size_t n)
{
    void *next = count_alloc(arg, n);
    size_t had = p ? *(size_t *)(void *)((char *)p - sizeof(max_align_t)) : 0;
    if (had)
        memcpy(next, p, had < n ? had : n);
    count_free(arg, p);
    return next;
}

static const clave_mem counted = {count_alloc, count_realloc, count_free, NULL};

static void over_all_routes(struct scene *s, void (*with)(struct scene *s))
{
    const struct route *routes = clave__routes.at;
    size_t n = clave__routes.n;
    for (size_t i = 0; i < n; i++) {
        s->route = &routes[i];
        with(s);
    }
}

static void no_route_takes(void (*bad)(struct scene *s))
{
    struct scene s = {NULL};
    complaints = 0;
    scene_enter(&s, NULL);
    over_all_routes(&s, bad);
    webrig_free(s.r);
    assert_int_equal(complaints, 0);
}

TEST(no_route_takes_another_method)
{
    no_route_takes(bad_method);
}

TEST(no_route_takes_a_bad_head)
{
    no_route_takes(bad_head);
}

TEST(no_route_takes_a_path_that_only_begins_as_its_own)
{
    no_route_takes(bad_target);
}

TEST(no_route_takes_a_bad_path)
{
    no_route_takes(bad_path);
}

TEST(no_route_takes_a_bad_query)
{
    no_route_takes(bad_query);
}

TEST(no_route_takes_a_bad_body)
{
    no_route_takes(bad_body);
}

/* What there is at the servers and at the gate: nodes, sessions. */
static void check_nothing_is_there(struct scene *s)
{
    static const char *const lists[][2] = {{"/v1/znodes/?children", "[\"zookeeper\"]"},
                                           {"/v1/locks", "\"locks\": []"}};
    for (size_t i = 0; i < 2; i++) {
        struct webrig_call *c =
            webrig_request(s->r, "GET", lists[i][0], "Authorization: Bearer ann", NULL);
        assert_non_null(strstr(webrig_body(c), lists[i][1]));
        webrig_end(c);
    }
    size_t clients = 0;
    for (size_t i = 0; i < MEMNET_CLIENTS; i++)
        clients += s->r->net->clients[i].c != NULL;
    assert_int_equal(clients, 2); /* the gate's own, and the session's */
}

TEST(nothing_is_kept_of_all_that)
{
    static void (*const bad[])(struct scene *) = {bad_method, bad_head, bad_path, bad_query,
                                                  bad_body};
    size_t before = 0;
    struct scene s = {NULL};
    scene_enter(&s, &counted);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            over_all_routes(&s, bad[i]);
        check_nothing_is_there(&s);
        if (round > 0)
            assert_int_equal(live, before);
        before = live;
    }
    webrig_free(s.r);
    assert_int_equal(live, 0);
}

/* The body that its route takes; NULL: none. */
static const char *good_body(const struct route *route)
{
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (strcmp(bodies[i].pattern, route->pattern) == 0 &&
            strcmp(bodies[i].method, route->method) == 0)
            return bodies[i].body;
    return NULL;
}

/* The servers do not answer; the client hangs up; then they answer. */
static void vanish(struct scene *s)
{
    char headers[400];
    struct scene own = {.route = s->route};
    scene_enter(&own, &counted);
    snprintf(headers, sizeof headers, "Authorization: Bearer ann\n%s", own.proof);
    for (size_t i = 0; i < 2; i++)
        memnet_rule(own.r->net, (struct memnet_rule){i, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *c = webrig_request(own.r, s->route->method, target_of(&own, NULL), headers,
                                           good_body(s->route));
    webrig_end(c);
    memnet_clear(own.r->net);
    webrig_advance(own.r, 1000);
    webrig_free(own.r);
    assert_int_equal(live, 0);
}

TEST(a_client_may_vanish_from_every_route)
{
    struct scene s = {NULL};
    over_all_routes(&s, vanish);
}

/* ---- a gate that ends, a sender who may not any more, in the middle of a change -------------- */

static struct webrig_call *under_way(struct webrig *r, const char *method)
{
    memnet_rule(r->net, (struct memnet_rule){0, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    const char *body = strcmp(method, "PUT") == 0 ? "x" : NULL;
    struct webrig_call *c =
        webrig_request(r, method, "/v1/znodes/zookeeper", "Authorization: Bearer ann", body);
    assert_false(c->answered);
    return c;
}

static void check_class(struct webrig_call *c, unsigned status, const char *class_)
{
    assert_int_equal(c->status, status);
    assert_string_equal(webrig_member(c, "class"), class_);
}

TEST(a_gate_that_ends_does_not_say_what_it_does_not_know)
{
    struct webrig_options o = {.access = &access_of_test};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    struct webrig_call *put = under_way(r, "PUT"), *get = under_way(r, "GET");
    clave__web_close(r->web, r->net->now);
    webrig_settle(r);
    check_class(put, 504, "unknown");
    check_class(get, 503, "retry");
    struct webrig_call *late = webrig_request(r, "PUT", "/v1/znodes/zookeeper", NULL, "x");
    check_class(late, 503, "retry");
    assert_non_null(webrig_header(late, "Retry-After"));
    memnet_clear(r->net);
}

TEST(a_change_under_way_is_answered_whoever_asked_for_it)
{
    static const struct web_access nobody = {.users = users + 1, .nusers = 1, .owner_uid = -1};
    struct webrig_options o = {.access = &access_of_test};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    struct webrig_call *put = under_way(r, "PUT"), *get = under_way(r, "GET");
    clave__web_set_access(r->web, &nobody);
    assert_int_equal(get->status, 401);
    assert_false(put->answered);
    memnet_clear(r->net);
    webrig_settle(r);
    assert_int_equal(put->status, 200);
}
