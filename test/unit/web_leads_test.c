/* Whether a candidate leads: /v1/elections/PATH?leads=ID, /v1/leader and /v1/replica. */
#include "lib/claim_scene.h"
#include "lib/observe_scene.h"
#include "lib/unit.h"

#define OTHER "fedcba98-7654-4321-8fed-cba987654321"

#define ELECTION "{\"path\": \"/e\", \"kind\": \"election\"}"

/* The answer has this status, and this in its body. */
static void says(struct scene *s, const char *target, unsigned status, const char *part)
{
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_get(s, target, status);
    if (!strstr(webrig_body(c), part))
        fail_msg("%s: there is no %s in %s", target, part, webrig_body(c));
}

TEST(a_leader_has_many_names)
{
    static const struct {
        const char *data, *id;
        bool named;
    } cases[] = {
        {"web1", "web1", true},
        {"web1", "web", false},
        {"web1", "web1:", false},
        {"web1:4711", "web1:4711", true},
        {"web1:4711", "web1", true}, /* as clave elect without --id */
        {"web1:4711", "web", false},
        {"web1:http", "web1", false},
        {"web1:", "web1", false},
        {"clave/1\nhost=web1\npid=5\nname=nightly\n", "web1", true},
        {"clave/1\nhost=web1\npid=5\nname=nightly\n", "nightly", true},
        {"clave/1\nhost=web1\npid=5\nname=nightly\n", "5", false},
        {"", UUID, true}, /* the id of a claim */
        {"", OTHER, false},
        {"", LATCH1, true},
        {"", LATCH2, false},
        {"", "01234567", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(scene_close) struct scene s;
        char target[160];
        scene_open(&s);
        scene_add(&s, "/e/" LATCH1, cases[i].data);
        scene_loaded(&s);
        snprintf(target, sizeof target, "/v1/elections/e?leads=%s", cases[i].id);
        webrig_end(scene_get(&s, target, cases[i].named ? 200 : 503));
        snprintf(target, sizeof target, "/v1/leader/e?id=%s", cases[i].id);
        webrig_end(scene_get(&s, target, cases[i].named ? 200 : 503));
    }
}

TEST(the_answer_says_of_when_it_is)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/e/" LATCH1, "a");
    scene_add(&s, "/e/" LATCH2, "b");
    scene_loaded(&s);
    webrig_advance(s.rig, 30);
    struct webrig_call *c = scene_get(&s, "/v1/elections/e?leads=a", 200);
    char as_of[32];
    snprintf(as_of, sizeof as_of, "%lld", (long long)clave__observe_now(s.o));
    assert_string_equal(webrig_member(c, "as_of_ms"), as_of);
    assert_string_equal(webrig_member(c, "term"), "1");
    assert_string_equal(webrig_member(c, "led_ms"), "30");
    assert_string_equal(webrig_member(c, "role"), "leader");
    assert_null(webrig_member(c, "valid_ms"));
    assert_string_equal(webrig_header(c, "Clave-Source"), "copy");
    webrig_end(c);
    says(&s, "/v1/elections/e?leads=b", 503, "b does not lead at /e: a does");
    says(&s, "/v1/elections/e?leads=b", 503, "\"code\": \"EBUSY\"");
    says(&s, "/v1/elections/none?leads=b", 503, "nobody leads at /none");
    c = webrig_request(s.rig, "HEAD", "/v1/elections/e?leads=a", NULL, NULL);
    assert_int_equal(c->status, 200);
    webrig_end(c);
    c = webrig_request(s.rig, "HEAD", "/v1/elections/e?leads=b", NULL, NULL);
    assert_int_equal(c->status, 503);
    webrig_end(c);
    webrig_end(scene_get(&s, "/v1/elections/e", 200)); /* without the question, as before */
}

TEST(a_replica_stands_and_does_not_lead)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/e/" LATCH1, "a");
    scene_add(&s, "/e/" LATCH2, "b");
    scene_loaded(&s);
    says(&s, "/v1/replica/e?id=b", 200, "\"role\": \"replica\"");
    says(&s, "/v1/replica/e?id=a", 503, "a leads at /e");
    says(&s, "/v1/replica/e?id=c", 503, "c is no candidate at /e");
    says(&s, "/v1/replica/none?id=a", 503, "a is no candidate at /none");
    /* One that waits for its min_term is neither. */
    clave__observe_gone(s.o, "/e/" LATCH1);
    says(&s, "/v1/leader/e?id=b&min_term=1s", 503, "min_term is 1000 ms");
    says(&s, "/v1/replica/e?id=b", 503, "b leads at /e");
}

TEST(a_new_leader_waits_for_its_min_term)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/e/" LATCH1, "a");
    scene_add(&s, "/e/" LATCH2, "b"); /* a candidate for long */
    scene_loaded(&s);
    says(&s, "/v1/elections/e?leads=a&min_term=2s", 503, "a leads at /e");
    webrig_advance(s.rig, 5000);
    says(&s, "/v1/elections/e?leads=a&min_term=2s", 200, "\"role\": \"leader\"");
    clave__observe_gone(s.o, "/e/" LATCH1);
    struct webrig_call *c = scene_get(&s, "/v1/elections/e?leads=b&min_term=2s", 503);
    assert_string_equal(webrig_header(c, "Retry-After"), "2");
    webrig_end(c);
    says(&s, "/v1/elections/e?leads=b", 200, "\"role\": \"leader\"");
    clave__observe_set_wall(s.o, WALL + 3600000); /* somebody sets the clock */
    webrig_advance(s.rig, 1999);
    says(&s, "/v1/elections/e?leads=b&min_term=2s", 503, "as this gate has seen for 1999 ms");
    webrig_advance(s.rig, 1);
    says(&s, "/v1/elections/e?leads=b&min_term=2s", 200, "\"led_ms\": 2000");
}

/* A server whose clock is behind says that the node was made long ago. */
TEST(the_age_of_the_node_does_not_count)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    clave__observe_set_wall(s.o, WALL - 3600000);
    scene_add(&s, "/e/" LATCH1, "a");
    clave__observe_set_wall(s.o, WALL);
    says(&s, "/v1/elections/e?leads=a&min_term=2s", 503, "as this gate has seen for 0 ms");
}

static void reload(struct scene *s, const char *only, const char *data)
{
    int64_t zxid = s->zxid;
    clave__observe_clear(s->o);
    s->zxid = only[strlen(only) - 1] - '1'; /* its czxid is as before */
    scene_add(s, only, data);
    s->zxid = zxid;
    scene_loaded(s);
}

TEST(a_copy_made_anew_knows_a_leader_again)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/e/" LATCH1, "a");
    scene_add(&s, "/e/" LATCH2, "b");
    scene_loaded(&s);
    webrig_advance(s.rig, 3000);
    reload(&s, "/e/" LATCH1, "a");
    says(&s, "/v1/elections/e?leads=a&min_term=2s", 200, "\"led_ms\": 3000");
    reload(&s, "/e/" LATCH2, "b");
    says(&s, "/v1/elections/e?leads=b&min_term=2s", 503, "as this gate has seen for 0 ms");
    webrig_advance(s.rig, 2000);
    says(&s, "/v1/elections/e?leads=b&min_term=2s", 200, "\"led_ms\": 2000");
}

/* A candidate was read before one that stood before it, and seemed to lead. */
TEST(a_leader_for_a_moment_begins_once_more)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    scene_add(&s, "/e/" LATCH2, "b");
    scene_add(&s, "/e/" LATCH1, "a");
    webrig_advance(s.rig, 3000);
    says(&s, "/v1/elections/e?leads=a&min_term=2s", 200, "\"led_ms\": 3000");
    clave__observe_gone(s.o, "/e/" LATCH1);
    says(&s, "/v1/elections/e?leads=b&min_term=2s", 503, "as this gate has seen for 0 ms");
}

TEST(what_is_not_known_is_503)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    says(&s, "/v1/elections/e?leads=a", 503, "who leads at /e is not known"); /* at once */
    scene_add(&s, "/e/" LATCH1, "a");
    scene_loaded(&s);
    clave__observe_stale(s.o);
    says(&s, "/v1/elections/e?leads=a", 503, "\"code\": \"EUNREACHABLE\"");
    says(&s, "/v1/replica/e?id=a", 503, "who leads at /e is not known");
    scene_loaded(&s);
    webrig_end(scene_get(&s, "/v1/elections/e?leads=a", 200));
    s.o->partial = true; /* an earlier candidate may have been left out */
    says(&s, "/v1/elections/e?leads=a", 503, "\"code\": \"EUNREACHABLE\"");
    s.o->partial = false;
    webrig_advance(s.rig, OBSERVE_CURRENT_MS + 1); /* nothing was heard of the server */
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(s.rig, "GET", "/v1/elections/e?leads=a", NULL, NULL);
    assert_int_equal(c->status, 503);
}

TEST(questions_are_checked)
{
    static const struct {
        const char *target, *part;
    } cases[] = {
        {"/v1/elections/e?leads", "leads is empty"},
        {"/v1/leader/e", "id is missing"},
        {"/v1/replica/e?id=", "id is empty"},
        {"/v1/elections/e?leads=a&min_term=soon", "min_term: "},
        {"/v1/elections/e?leads=a&min_term=2h", "min_term: "},
        {"/v1/elections/e?min_term=2s", "min_term belongs to leads=ID"},
        {"/v1/elections/e?leads=a&fresh", "leave out fresh"},
        {"/v1/leader/e//f?id=a", "path"},
    };
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        says(&s, cases[i].target, 400, cases[i].part);
}

/* Another gate of the key may have given the claim back: what is remembered is no proof then. */
TEST(only_a_session_of_this_gate_alone_has_valid_ms)
{
    static const uint8_t key[32] = {1};
    for (int shared = 0; shared < 2; shared++) {
        CLOSED_BY(webrig_freed)
        struct webrig *r = webrig_new(&(struct webrig_options){
            .net = {.clients = 0, .timeout_ms = 6000}, .session_key = shared ? key : NULL});
        struct user u;
        char target[128];
        user_enter(r, &u);
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = user_sends(r, &u, "POST", 1, NULL, ELECTION);
        user_expects(c, 201);
        user_takes_claim(&u, c);
        webrig_end(webrig_request(r, "GET", "/v1/elections", NULL, NULL));
        webrig_advance(r, 100);
        snprintf(target, sizeof target, "/v1/elections/e?leads=%s", u.claim);
        c = webrig_request(r, "GET", target, NULL, NULL);
        user_expects(c, 200);
        const char *valid = webrig_member(c, "valid_ms");
        if (shared)
            assert_null(valid);
        else
            assert_in_range(atoi(valid), 6000, 7900); /* told 100 ms ago that it had 8 s at most */
    }
}
