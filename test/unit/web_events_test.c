/* Server-sent events at /v1/events. */
#include "lib/observe_scene.h"
#include "lib/unit.h"

TEST(a_stream_has_the_state_and_then_every_change)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/a/_c_" UUID "-lock-0000000000", "");
    scene_loaded(&s);
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_follow(&s, "/v1/events", NULL);
    assert_string_equal(scene_events(c), "reset lock:/a/1/0 ");
    scene_add(&s, "/a/_c_" UUID "-lock-0000000001", "");
    scene_add(&s, "/b/_c_" UUID "-lock-0000000000", "");
    webrig_advance(s.rig, 20);
    assert_string_equal(scene_events(c), "reset lock:/a/1/0 lock:/a/1/1 lock:/b/1/0 ");
    clave__observe_gone(s.o, "/b/_c_" UUID "-lock-0000000000");
    webrig_advance(s.rig, 20);
    assert_non_null(strstr(scene_events(c), "lock:/b/1/0 lock:/b/0/0 "));
    assert_false(c->done);
}

TEST(a_reader_that_comes_back_gets_what_it_missed)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    scene_add(&s, "/a/_c_" UUID "-lock-0000000000", "");
    webrig_advance(s.rig, 20);
    struct webrig_call *c = scene_follow(&s, "/v1/events", NULL);
    scene_add(&s, "/b/_c_" UUID "-lock-0000000000", "");
    webrig_advance(s.rig, 20);
    char id[128];
    snprintf(id, sizeof id, "%s", scene_last_id(c));
    webrig_end(c);
    for (int i = 1; i < 4; i++) { /* once, as it is at the end */
        char path[96];
        snprintf(path, sizeof path, "/a/_c_" UUID "-lock-%010d", i);
        scene_add(&s, path, "");
        webrig_advance(s.rig, 20);
    }
    clave__observe_gone(s.o, "/b/_c_" UUID "-lock-0000000000");
    webrig_advance(s.rig, 20);
    c = scene_follow(&s, "/v1/events", id);
    assert_string_equal(scene_events(c), "lock:/a/1/3 lock:/b/0/0 ");
    webrig_end(c);
    c = scene_follow(&s, "/v1/events", "Last-Event-ID: 0123456789abcdef-1");
    assert_string_equal(scene_events(c), "reset lock:/a/1/3 ");
    webrig_end(c);
    c = scene_follow(&s, "/v1/events?prefix=/x", NULL);
    assert_string_equal(scene_events(c), "reset ");
    webrig_end(c);
}

TEST(a_slow_reader_is_cut_off)
{
    CLOSED_BY(scene_close) struct scene s;
    char path[96];
    scene_open(&s);
    scene_loaded(&s);
    CLOSED_BY(webrig_ended) struct webrig_call *slow = scene_follow(&s, "/v1/events", NULL);
    slow->stop_reading = true;
    for (int i = 0; i < 20000; i++) {
        snprintf(path, sizeof path, "/q%d/_c_" UUID "-lock-0000000000", i);
        scene_add(&s, path, "");
    }
    uint64_t before = s.o->ring.last;
    webrig_advance(s.rig, 20);
    assert_true(s.o->ring.last > before);
    assert_true(s.o->ring.last - before < 1000); /* the others in turns to come */
    assert_false(slow->done);
    webrig_advance(s.rig, 100);
    slow->stop_reading = false;
    scene_add(&s, "/z/_c_" UUID "-lock-0000000000", "");
    webrig_advance(s.rig, 20);
    assert_true(slow->done);
    assert_string_equal(scene_events(slow), "reset ");
}

TEST(silence_has_comments)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_follow(&s, "/v1/events", NULL);
    size_t n = c->body.tail - c->body.head;
    webrig_advance(s.rig, 14999);
    assert_int_equal(c->body.tail - c->body.head, n);
    webrig_advance(s.rig, 1);
    assert_string_equal(webrig_body(c) + n, ":\n\n");
    webrig_advance(s.rig, 15000);
    assert_string_equal(webrig_body(c) + n, ":\n\n:\n\n");
}

TEST(events_of_a_session_are_not_for_others)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_follow(&s, "/v1/events", NULL);
    clave__observe_event(
        s.o, &(struct event_text){.name = "held", .session = "17", .data = "{\"claim\": \"1\"}"});
    clave__observe_event(s.o, &(struct event_text){.name = "session", .data = "{}"});
    webrig_advance(s.rig, 20);
    assert_string_equal(scene_events(c), "reset session ");
}

TEST(a_session_gets_its_own_events)
{
    CLOSED_BY(scene_close) struct scene s;
    char secret[512], id[64];
    scene_open(&s);
    scene_loaded(&s);
    struct webrig_call *c =
        webrig_request(s.rig, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 10000}");
    assert_int_equal(c->status, 201);
    snprintf(secret, sizeof secret, "Clave-Session: %s", webrig_member(c, "secret"));
    snprintf(id, sizeof id, "%s", webrig_member(c, "id"));
    webrig_end(c);
    c = scene_follow(&s, "/v1/events?claims=1", secret);
    clave__observe_event(
        s.o, &(struct event_text){.name = "held", .session = id, .data = "{\"claim\": \"1\"}"});
    webrig_advance(s.rig, 20);
    assert_string_equal(scene_events(c), "reset held ");
    webrig_end(c);
    c = webrig_request(s.rig, "GET", "/v1/events?claims=1", NULL, NULL);
    assert_int_equal(c->status, 401);
    webrig_end(c);
}

/* ---- how a session and its connection end -----------------------------------------------------
 */

/* The data of the only event of this name; NULL: there is none. */
static const char *data_of(const struct webrig_call *c, const char *name)
{
    static char out[512];
    char wanted[40];
    snprintf(wanted, sizeof wanted, "event: %s\ndata: ", name);
    const char *at = strstr(webrig_body(c), wanted);
    if (!at)
        return NULL;
    at += strlen(wanted);
    assert_null(strstr(at, wanted));
    snprintf(out, sizeof out, "%.*s", (int)strcspn(at, "\n"), at);
    return out;
}

static void is_closed(struct webrig *r, const char *session, const char *id)
{
    char target[80];
    snprintf(target, sizeof target, "/v1/sessions/%s", id);
    webrig_end(webrig_request(r, "DELETE", target, session, NULL));
}

/* The gate hears of it with the next request. */
static void is_killed(struct webrig *r, const char *session, const char *id)
{
    char target[80];
    snprintf(target, sizeof target, "/v1/sessions/%s/renew", id);
    memnet_kill_session(r->net, 1);
    webrig_end(webrig_request(r, "POST", target, session, NULL));
}

static void is_silent(struct webrig *r, const char *session, const char *id)
{
    (void)session;
    (void)id;
    webrig_advance(r, 9100);
}

/* It may live on elsewhere, or be attached to again. */
static void is_out_of_sight(struct webrig *r, const char *session, const char *id)
{
    (void)session;
    (void)id;
    memnet_refuse(r->net, 1, true);
    webrig_advance(r, 9100);
    memnet_refuse(r->net, 1, false);
}

TEST(the_end_of_a_session_is_told_to_all)
{
    static const struct {
        void (*ends)(struct webrig *r, const char *session, const char *id);
        const char *cause; /* NULL: that is no end */
    } rows[] = {{is_closed, "closed"},
                {is_killed, "expired"},
                {is_silent, "silent"},
                {is_out_of_sight, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
        char session[512], id[64], told[200];
        CLOSED_BY(webrig_ended)
        struct webrig_call *events = webrig_request(r, "GET", "/v1/events", NULL, NULL);
        struct webrig_call *c =
            webrig_request(r, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 8000}");
        snprintf(session, sizeof session, "Clave-Session: %s", webrig_member(c, "secret"));
        snprintf(id, sizeof id, "%s", webrig_member(c, "id"));
        webrig_end(c);
        assert_null(data_of(events, "session"));
        rows[i].ends(r, session, id);
        webrig_advance(r, 50);
        snprintf(told, sizeof told,
                 "{\"session\": \"%s\", \"state\": \"ended\", \"cause\": \"%s\"}", id,
                 rows[i].cause ? rows[i].cause : "");
        if (rows[i].cause)
            assert_string_equal(data_of(events, "session"), told);
        else
            assert_null(data_of(events, "session"));
    }
}

/* Of what holds and of what waits; a claim that is over has no connection to lose. */
TEST(a_lost_connection_is_told_to_the_session)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    char session[2][512], ids[3][64];
    struct webrig_call *c;
    for (size_t i = 0; i < 2; i++) {
        c = webrig_request(r, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 8000}");
        snprintf(session[i], sizeof session[i], "Clave-Session: %s", webrig_member(c, "secret"));
        webrig_end(c);
    }
    const char *const bodies[] = {"{\"path\": \"/held\"}", "{\"path\": \"/waits\"}",
                                  "{\"path\": \"/over\"}"};
    webrig_end(webrig_request(r, "POST", "/v1/claims", session[1], bodies[1]));
    for (size_t i = 0; i < 3; i++) {
        c = webrig_request(r, "POST", "/v1/claims", session[0], bodies[i]);
        snprintf(ids[i], sizeof ids[i], "%s", webrig_member(c, "id"));
        webrig_end(c);
    }
    char target[96];
    snprintf(target, sizeof target, "/v1/claims/%s", ids[2]);
    webrig_end(webrig_request(r, "DELETE", target, session[0], NULL));
    CLOSED_BY(webrig_ended)
    struct webrig_call *own = webrig_request(r, "GET", "/v1/events?claims=1", session[0], NULL);
    CLOSED_BY(webrig_ended)
    struct webrig_call *others = webrig_request(r, "GET", "/v1/events?claims=1", session[1], NULL);
    memnet_cut(r->net, 1);
    webrig_advance(r, 50);
    size_t n = 0;
    for (const char *at = webrig_body(own); (at = strstr(at, "event: suspended")); at++)
        n++;
    assert_int_equal(n, 2);
    assert_null(strstr(webrig_body(others), "suspended"));
    assert_null(strstr(strstr(webrig_body(own), "event: suspended"), ids[2]));
}
