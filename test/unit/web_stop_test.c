/* web_stop_test.c - what waits for an answer when its gate stops, or when its sender's role is
 * taken away, over all routes that wait: it is answered by what was begun, and nothing is begun
 * after that. */
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "lib/webrig.h"
#include "wire/proto.h"

/* Of memnet: the test's own, the engine's, and those of the two sessions. */
enum { TESTS, OWN, MINE, OTHERS };

static const struct web_grant all[] = {{WEB_ADMIN, "/"}};
static const struct web_grant some[] = {{WEB_ADMIN, "/l"}}; /* and neither /l-held nor /z */
static const struct web_grant none[] = {{WEB_ADMIN, "/n"}};
static const struct web_user may_all[] = {
    {.name = "ann", .token = "ann", .uid = -1, .grants = all, .ngrants = 1}};
static const struct web_user may_some[] = {
    {.name = "ann", .token = "ann", .uid = -1, .grants = some, .ngrants = 1}};
static const struct web_user may_none[] = {
    {.name = "ann", .token = "ann", .uid = -1, .grants = none, .ngrants = 1}};
static const struct web_access at_first = {.users = may_all, .nusers = 1, .owner_uid = -1};
static const struct web_access then_some = {.users = may_some, .nusers = 1, .owner_uid = -1};
static const struct web_access then_none = {.users = may_none, .nusers = 1, .owner_uid = -1};

struct scene {
    struct webrig *r;
    char id[32], secret[96], claim[64], other[96]; /* the claim holds /l; the other session /h */
    char token[24], rest[40]; /* of /l; a session of the contrib REST gateway */
};

#define ANN "Authorization: Bearer ann"

static struct webrig_call *ask(struct scene *s, const char *method, const char *target,
                               const char *headers, const char *body)
{
    char text[400];
    snprintf(text, sizeof text, ANN "%s%s", headers ? "\n" : "", headers ? headers : "");
    return webrig_request(s->r, method, target, text, body);
}

static struct webrig_call *asked(struct webrig_call *c, unsigned status)
{
    if (c->status != status)
        print_error("%s %s: %u, not %u: %s\n", c->q.method, c->q.target, c->status, status,
                    webrig_body(c));
    assert_true(c->answered);
    assert_int_equal(c->status, status);
    return c;
}

static void enter(struct scene *s, char secret[96])
{
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = asked(ask(s, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 8000}"), 201);
    snprintf(s->id, sizeof s->id, "%s", webrig_member(c, "id"));
    snprintf(secret, 96, "%s", webrig_member(c, "secret"));
}

static void hold(struct scene *s, const char *secret, const char *body)
{
    char headers[120];
    snprintf(headers, sizeof headers, "Clave-Session: %s", secret);
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = asked(ask(s, "POST", "/v1/claims", headers, body), 201);
    snprintf(s->claim, sizeof s->claim, "%s", webrig_member(c, "id"));
    snprintf(s->token, sizeof s->token, "%s", webrig_member(c, "token"));
}

static void scene_open(struct scene *s, const uint8_t *key)
{
    static const char *const nodes[] = {"z", "z/1", "z/2"};
    const struct webrig_options o = {
        .net = {.clients = OWN}, .access = &at_first, .session_key = key};
    *s = (struct scene){.r = webrig_new(&o)};
    enter(s, s->secret);
    char id[32];
    memcpy(id, s->id, sizeof id);
    enter(s, s->other);
    memcpy(s->id, id, sizeof id);
    hold(s, s->other, "{\"path\": \"/h\"}");
    hold(s, s->secret, "{\"path\": \"/l\"}");
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        char target[32];
        snprintf(target, sizeof target, "/v1/znodes/%s", nodes[i]);
        webrig_end(asked(ask(s, "POST", target, NULL, NULL), 201));
    }
}

/* What waits. The server's answers of this kind to this client are held back; below 0: it waits by
 * itself. In texts $ is the claim, % its session, and # its token. */
struct wait {
    const char *method, *target, *headers, *body;
    bool of_session;
    int client, op;
    unsigned stops, alone; /* its status when the gate stops: with a key, and without */
    unsigned refused;      /* when the role goes; 0: it goes on */
};

#define HELD "{\"path\": \"/h\"}"
#define FREE "{\"path\": \"/f\"}"
#define LEASE "{\"path\": \"/f\", \"kind\": \"semaphore\", \"limit\": 1}"
#define GUARD "Clave-Guard: /l;token=#"
#define CREATES "{\"ops\": [{\"op\": \"create\", \"path\": \"/z/3\"}]}"
#define POLL "Prefer: wait=60"
#define CHANGED POLL "\nIf-None-Match: *"
#define ANY MEMNET_ANY
#define LIST OP_GET_CHILDREN2

static const struct wait waits[] = {
    /* claims: in the queue; with a place that is being made; looking for one */
    {"POST", "/v1/claims", POLL, HELD, true, -1, 0, 202, 504, 403},
    {"POST", "/v1/claims", NULL, FREE, true, MINE, ANY, 504, 504, 403},
    {"POST", "/v1/claims", "Prefer: wait=0", FREE, true, MINE, ANY, 504, 504, 403},
    {"POST", "/v1/claims", NULL, LEASE, true, MINE, LIST, 503, 503, 403},
    {"POST", "/v1/claims", POLL, "{\"path\": \"/l\"}", true, MINE, OP_MULTI, 202, 201, 403},
    {"GET", "/v1/claims/$", POLL, NULL, true, MINE, OP_MULTI, 503, 200, 403},
    {"PATCH", "/v1/claims/$", NULL, "{\"name\": \"n\"}", true, MINE, ANY, 504, 504, 0},
    {"DELETE", "/v1/claims/$", NULL, NULL, true, MINE, ANY, 504, 504, 0},
    {"POST", "/v1/hold", POLL, HELD, false, -1, 0, 504, 504, 403},
    {"POST", "/v1/hold", NULL, FREE, false, OTHERS + 1, MEMNET_HANDSHAKE, 503, 503, 403},
    /* sessions: what was being made has no secret, and nothing */
    {"POST", "/v1/sessions", NULL, "{}", false, OTHERS + 1, MEMNET_HANDSHAKE, 503, 503, 0},
    {"POST", "/v1/sessions/%/renew", NULL, NULL, true, MINE, ANY, 503, 503, 0},
    {"GET", "/v1/sessions/%", NULL, NULL, true, MINE, ANY, 503, 200, 0},
    {"DELETE", "/v1/sessions/%", NULL, NULL, true, MINE, ANY, 504, 504, 0},
    {"DELETE", "/sessions/v1/@", NULL, NULL, false, OTHERS + 1, ANY, 504, 504, 0},
    /* orders */
    {"POST", "/v1/locks/h/revoke", NULL, "{\"token\": 99}", false, OWN, LIST, 503, 503, 403},
    {"POST", "/v1/locks/l/break", NULL, "{\"token\": #, \"force\": true}", false, OWN, OP_EXISTS,
     503, 503, 403},
    {"POST", "/v1/locks/l/break", NULL, "{\"token\": #, \"force\": true}", false, OWN, OP_DELETE,
     504, 504, 0},
    /* nodes: a look, then a change */
    {"PUT", "/v1/znodes/z", NULL, "v", false, OWN, ANY, 504, 504, 0},
    {"PUT", "/v1/znodes/z", GUARD, "v", false, OWN, LIST, 503, 503, 403},
    {"PUT", "/v1/znodes/z", GUARD, "v", false, OWN, OP_MULTI, 504, 504, 0},
    {"DELETE", "/v1/znodes/z/1", GUARD, NULL, false, OWN, LIST, 503, 503, 403},
    {"POST", "/v1/multi", GUARD, CREATES, false, OWN, LIST, 503, 503, 403},
    {"DELETE", "/v1/znodes/z?recursive", NULL, NULL, false, OWN, LIST, 503, 503, 403},
    {"DELETE", "/v1/znodes/z?recursive", NULL, NULL, false, OWN, OP_MULTI, 504, 504, 0},
    {"GET", "/v1/znodes/z?sync", NULL, NULL, false, OWN, ANY, 503, 503, 403},
    {"GET", "/v1/znodes/none?stat", CHANGED, NULL, false, OWN, ANY, 503, 503, 403},
    {"GET", "/v1/locks/l?fresh", NULL, NULL, false, OWN, ANY, 503, 503, 403},
    {"GET", "/v1/locks/l?token=#", NULL, NULL, false, OWN, ANY, 503, 503, 403},
};

static const char *fill(char out[300], const struct scene *s, const char *text)
{
    size_t n = 0;
    for (; *text; text++) {
        const char *put = *text == '$' ? s->claim : *text == '%' ? s->id : NULL;
        put = *text == '#' ? s->token : *text == '@' ? s->rest : put;
        n += put ? (size_t)snprintf(out + n, 300 - n, "%s", put) : 0;
        if (!put)
            out[n++] = *text;
    }
    out[n] = '\0';
    return out;
}

static struct webrig_call *wait_begin(struct scene *s, const struct wait *w)
{
    char target[300], headers[300], body[300], all_headers[500];
    if (strchr(w->target, '@')) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = asked(ask(s, "POST", "/sessions/v1?op=create&expire=8",
                                          "Content-Type: application/octet-stream", NULL),
                                      201);
        snprintf(s->rest, sizeof s->rest, "%s", webrig_member(c, "id"));
    }
    if (w->client >= 0)
        memnet_rule(s->r->net,
                    (struct memnet_rule){(size_t)w->client, MEMNET_REPLY, w->op, MEMNET_HOLD, 0});
    snprintf(all_headers, sizeof all_headers, "%s%s%s%s", w->of_session ? "Clave-Session: " : "",
             w->of_session ? s->secret : "", w->of_session && w->headers ? "\n" : "",
             w->headers ? fill(headers, s, w->headers) : "");
    return ask(s, w->method, fill(target, s, w->target), all_headers[0] ? all_headers : NULL,
               w->body ? fill(body, s, w->body) : NULL);
}

/* Of all that the requests could make or delete. */
static size_t scene_nodes(const struct scene *s)
{
    static const char *const dirs[] = {"/h", "/l", "/z", "/f"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        n += memnet_list(s->r->net, TESTS, dirs[i], NULL, 0);
    return n;
}

static void check(const struct wait *w, const struct webrig_call *c, unsigned status)
{
    if (!c->answered || c->status != status)
        fail_msg("%s %s, %s: %u, not %u: %s", w->method, w->target, w->headers ? w->headers : "-",
                 c->status, status, webrig_body(c));
    const char *word = webrig_member(c, "class");
    if (status == 503 || status == 504)
        assert_string_equal(word, status == 503 ? "retry" : "unknown");
}

static const uint8_t key[32] = {42};

static void stop_one(const struct wait *w, const uint8_t *with)
{
    struct scene s;
    unsigned status = with ? w->stops : w->alone;
    scene_open(&s, with);
    size_t before = scene_nodes(&s);
    struct webrig_call *c = wait_begin(&s, w);
    if (c->answered && status >= 300)
        fail_msg("%s %s does not wait: %u %s", w->method, w->target, c->status, webrig_body(c));
    clave__web_close(s.r->web, s.r->net->now);
    memnet_clear(s.r->net);
    webrig_settle(s.r);
    check(w, c, status);
    if (status == 503)
        assert_int_equal(scene_nodes(&s), before);
    if (status == 202) {
        assert_non_null(webrig_member(c, "id"));
        assert_string_not_equal(webrig_member(c, "state"), "held"); /* which was not proved */
    }
    webrig_end(c);
    webrig_free(s.r);
}

TEST(what_waits_when_a_gate_stops_is_told_what_was_begun)
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        stop_one(&waits[i], key);
        stop_one(&waits[i], NULL);
    }
}

/* What was begun is told as it came out; what was not is refused, and never done. */
TEST(what_waits_is_judged_before_it_acts)
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        const struct wait *w = &waits[i];
        struct scene s;
        scene_open(&s, key);
        size_t before = scene_nodes(&s);
        struct webrig_call *c = wait_begin(&s, w);
        clave__web_set_access(s.r->web, &then_none);
        memnet_clear(s.r->net);
        webrig_advance(s.r, 100);
        if (w->refused)
            check(w, c, w->refused);
        else if (!c->answered || c->status >= 300)
            fail_msg("%s %s: %u %s", w->method, w->target, c->status, webrig_body(c));
        if (w->refused)
            assert_int_equal(scene_nodes(&s), before);
        webrig_end(c);
        webrig_free(s.r);
    }
}

/* Not only that of the route: those of a guard, a transaction, and the mark of a lock delay. */
TEST(every_path_is_judged)
{
    static const struct wait rows[] = {
        {"PUT", "/v1/znodes/l/x", "Clave-Guard: /h;token=99", "v", false, OWN, LIST, 0, 0, 403},
        {"POST", "/v1/multi", GUARD, CREATES, false, OWN, LIST, 0, 0, 403},
        {"POST", "/v1/hold", NULL, "{\"path\": \"/l\", \"lock_delay_ms\": 9}", false, OTHERS + 1,
         MEMNET_HANDSHAKE, 0, 0, 403},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene s;
        scene_open(&s, key);
        size_t before = scene_nodes(&s);
        struct webrig_call *c = wait_begin(&s, &rows[i]);
        if (c->answered)
            fail_msg("%s does not wait: %u %s", rows[i].target, c->status, webrig_body(c));
        clave__web_set_access(s.r->web, &then_some);
        memnet_clear(s.r->net);
        webrig_advance(s.r, 100);
        check(&rows[i], c, 403);
        assert_int_equal(scene_nodes(&s), before);
        webrig_end(c);
        webrig_free(s.r);
    }
}

/* Its batches follow one another: those that were sent are done, no more. */
TEST(a_subtree_is_deleted_no_further)
{
    enum { MANY = 3000, SENT = 8 * 200 }; /* of znodes_write.c */
    struct scene s;
    scene_open(&s, key);
    for (int i = 0; i < MANY; i++) {
        char path[24];
        snprintf(path, sizeof path, "/z/n%d", i);
        assert_int_equal(memnet_create(s.r->net, TESTS, path), CLAVE_OK);
    }
    memnet_rule(s.r->net, (struct memnet_rule){OWN, MEMNET_REPLY, OP_MULTI, MEMNET_HOLD, 0});
    struct webrig_call *c = ask(&s, "DELETE", "/v1/znodes/z?recursive", NULL, NULL);
    assert_false(c->answered);
    clave__web_set_access(s.r->web, &then_some);
    memnet_clear(s.r->net);
    webrig_settle(s.r);
    asked(c, 403);
    assert_int_equal(atoi(webrig_member(c, "deleted")), SENT);
    assert_int_equal(memnet_list(s.r->net, TESTS, "/z", NULL, 0), MANY + 2 - SENT);
    webrig_end(c);
    webrig_free(s.r);
}
