/* What the endpoints and the event stream show of the tree: the engine's model is told the nodes
 * here, as observe_feed.c would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/webrig.h"
#include "web/observe/observe.h"
#include "web/web_internal.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define LATCH1 "_c_" UUID "-latch-0000000001"
#define LATCH2 "_c_" UUID "-latch-0000000002"
#define LATCH3 "_c_" UUID "-latch-0000000003"

enum { WALL = 1000000 }; /* of the model, at the engine's 0 */

struct scene {
    struct webrig *rig;
    struct observe *o;
    int64_t zxid;
};

static void scene_open(struct scene *s)
{
    *s = (struct scene){.rig = webrig_new(NULL)};
    s->o = s->rig->web->observe;
    clave__observe_set_wall(s->o, WALL);
    s->o->feed = (struct observe_feed *)s; /* this test is the feed: no other is started */
}

static void scene_close(struct scene *s)
{
    s->o->feed = NULL;
    webrig_free(s->rig);
}

static void add(struct scene *s, const char *path, const char *data)
{
    clave__web_tick(s->rig->web, s->rig->net->now); /* as a callback of the client would */
    s->zxid++;
    clave_stat stat = {.czxid = s->zxid,
                       .mzxid = s->zxid,
                       .ctime = clave__observe_now(s->o),
                       .ephemeral_owner = s->zxid};
    clave__observe_node(s->o, &(struct observe_node){path, &stat, data, strlen(data)});
}

static void loaded(struct scene *s)
{
    clave__observe_loaded(s->o, s->zxid);
    webrig_settle(s->rig);
}

/* GETs, and compares the status. */
static struct webrig_call *get(struct scene *s, const char *target, unsigned status)
{
    struct webrig_call *c = webrig_request(s->rig, "GET", target, NULL, NULL);
    assert_true(c->answered);
    if (c->status != status)
        fail_msg("%s: %u %s", target, c->status, webrig_body(c));
    return c;
}

static size_t count_of(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

/* The paths of a list, one after another. */
static const char *paths_of(struct webrig_call *c)
{
    static char text[4096];
    text[0] = '\0';
    for (const char *at = webrig_body(c); (at = strstr(at, "{\"path\": \""));) {
        at += strlen("{\"path\": \"");
        size_t n = strlen(text), len = strcspn(at, "\"");
        snprintf(text + n, sizeof text - n, "%.*s ", (int)len, at);
    }
    return text;
}

/* ---- locks ----------------------------------------------------------------------------------- */

static void a_lock_is_shown_with_its_places(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    add(&s, "/jobs/nightly/_c_" UUID "-lock-0000000000",
        "clave/1\nhost=web1\npid=7\nname=nightly\ncommand=./x\n"
        "traceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n");
    webrig_advance(s.rig, 1500);
    add(&s, "/jobs/nightly/_c_" UUID "-lock-0000000001", "10.0.0.7");
    webrig_advance(s.rig, 500);
    loaded(&s);
    struct webrig_call *c = get(&s, "/v1/locks/jobs/nightly", 200);
    assert_string_equal(webrig_member(c, "path"), "/jobs/nightly");
    assert_string_equal(webrig_member(c, "kind"), "lock");
    assert_string_equal(webrig_member(c, "nholders"), "1");
    assert_string_equal(webrig_member(c, "nwaiters"), "1");
    assert_string_equal(webrig_member(c, "oldest_wait_ms"), "500");
    assert_non_null(strstr(
        webrig_body(c), "\"holders\": [{\"node\": \"_c_" UUID
                        "-lock-0000000000\", \"token\": \"1\", \"session\": \"1\", \"role\": "
                        "\"holder\", \"client\": \"clave\", \"host\": \"web1\", \"pid\": 7, "
                        "\"name\": \"nightly\", \"command\": \"./x\", \"text\": null, "
                        "\"traceparent\": "
                        "\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\", \"since\": "
                        "\"1970-01-01T00:"));
    assert_string_equal(webrig_member(c, "traceparent"),
                        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_non_null(strstr(webrig_body(c), "\"client\": \"curator\""));
    assert_non_null(strstr(webrig_body(c), "\"text\": \"10.0.0.7\""));
    webrig_end(c);
    webrig_end(get(&s, "/v1/locks/jobs", 404));
    scene_close(&s);
}

static void a_list_has_pages_and_a_prefix(void **state)
{
    struct scene s;
    char path[96];
    (void)state;
    scene_open(&s);
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "/a/%d/_c_" UUID "-lock-0000000000", i);
        add(&s, path, "");
    }
    add(&s, "/a-b/_c_" UUID "-lock-0000000000", "");
    add(&s, "/a/s/leases/_c_" UUID "-lease-0000000000", "");
    add(&s, "/a/s/locks/_c_" UUID "-lock-0000000000", "");
    loaded(&s);
    struct webrig_call *c = get(&s, "/v1/locks", 200);
    assert_string_equal(paths_of(c), "/a-b /a/0 /a/1 /a/2 /a/3 /a/4 /a/s ");
    assert_string_equal(webrig_member(c, "zxid"), "8");
    assert_non_null(strstr(webrig_body(c), "\"next\": null"));
    webrig_end(c);
    c = get(&s, "/v1/locks?prefix=/a&limit=2", 200);
    assert_string_equal(paths_of(c), "/a/0 /a/1 ");
    assert_string_equal(webrig_member(c, "next"), "/a/1");
    webrig_end(c);
    c = get(&s, "/v1/locks?prefix=/a&limit=4&after=/a/1", 200);
    assert_string_equal(paths_of(c), "/a/2 /a/3 /a/4 /a/s ");
    assert_non_null(strstr(webrig_body(c), "\"kind\": \"semaphore\""));
    webrig_end(c);
    c = get(&s, "/v1/locks?prefix=/a/3", 200);
    assert_string_equal(paths_of(c), "/a/3 ");
    webrig_end(c);
    c = get(&s, "/v1/locks?prefix=/b", 200);
    assert_string_equal(paths_of(c), "");
    webrig_end(c);
    webrig_end(get(&s, "/v1/locks?limit=0", 400));
    webrig_end(get(&s, "/v1/locks?limit=x", 400));
    webrig_end(get(&s, "/v1/locks?prefix=a", 400));
    scene_close(&s);
}

/* In pieces; the list shows twenty of them. */
static void a_long_queue_is_shown_whole(void **state)
{
    enum { PLACES = 2000 };
    struct scene s;
    char path[96];
    (void)state;
    scene_open(&s);
    for (int i = 0; i < PLACES; i++) {
        snprintf(path, sizeof path, "/a/_c_" UUID "-lock-%010d", i);
        add(&s, path, "");
    }
    loaded(&s);
    struct webrig_call *c = get(&s, "/v1/locks/a", 200);
    assert_true(c->done);
    assert_int_equal(count_of(webrig_body(c), "\"node\": "), PLACES);
    assert_int_equal(count_of(webrig_body(c), "\"role\": \"waiting\""), PLACES - 1);
    assert_string_equal(webrig_body(c) + strlen(webrig_body(c)) - 3, "}]}");
    webrig_end(c);
    c = get(&s, "/v1/locks", 200);
    assert_int_equal(count_of(webrig_body(c), "\"node\": "), 21);
    assert_string_equal(webrig_member(c, "nwaiters"), "1999");
    webrig_end(c);
    scene_close(&s);
}

static void requests_wait_for_the_first_load(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    add(&s, "/a/_c_" UUID "-lock-0000000000", "");
    struct webrig_call *c = webrig_request(s.rig, "GET", "/v1/locks/a", NULL, NULL);
    struct webrig_call *gone = webrig_request(s.rig, "GET", "/v1/locks", NULL, NULL);
    assert_false(c->answered);
    webrig_end(gone);
    loaded(&s);
    assert_true(c->answered);
    assert_int_equal(c->status, 200);
    webrig_end(c);
    scene_close(&s);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct webrig_call *follow(struct scene *s, const char *target, const char *headers)
{
    struct webrig_call *c = webrig_request(s->rig, "GET", target, headers, NULL);
    assert_int_equal(c->status, 200);
    assert_string_equal(webrig_header(c, "Content-Type"), "text/event-stream");
    return c;
}

/* The events so far, by name: for a lock "lock:PATH/HOLDERS/WAITERS". */
static const char *events_of(const struct webrig_call *c)
{
    static char text[4096];
    text[0] = '\0';
    for (const char *at = webrig_body(c); (at = strstr(at, "event: ")); at++) {
        char name[32], path[64] = "";
        int holders = -1, waiters = -1;
        sscanf(at, "event: %31s\ndata: {\"path\": \"%63[^\"]", name, path);
        const char *end = strstr(at, "\n\n"), *n = strstr(at, "\"nholders\": ");
        if (n && n < end)
            sscanf(n, "\"nholders\": %d, \"nwaiters\": %d", &holders, &waiters);
        size_t len = strlen(text);
        if (holders >= 0)
            snprintf(text + len, sizeof text - len, "%s:%s/%d/%d ", name, path, holders, waiters);
        else
            snprintf(text + len, sizeof text - len, "%s ", name);
    }
    return text;
}

static const char *last_id(const struct webrig_call *c)
{
    static char header[128];
    const char *last = NULL;
    for (const char *at = webrig_body(c); (at = strstr(at, "id: ")); at++)
        last = at;
    assert_non_null(last);
    snprintf(header, sizeof header, "Last-Event-ID: %.*s", (int)strcspn(last + 4, "\n"), last + 4);
    return header;
}

static void a_stream_has_the_state_and_then_every_change(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    add(&s, "/a/_c_" UUID "-lock-0000000000", "");
    loaded(&s);
    struct webrig_call *c = follow(&s, "/v1/events", NULL);
    assert_string_equal(events_of(c), "reset lock:/a/1/0 ");
    add(&s, "/a/_c_" UUID "-lock-0000000001", "");
    add(&s, "/b/_c_" UUID "-lock-0000000000", "");
    webrig_advance(s.rig, 20);
    assert_string_equal(events_of(c), "reset lock:/a/1/0 lock:/a/1/1 lock:/b/1/0 ");
    clave__observe_gone(s.o, "/b/_c_" UUID "-lock-0000000000");
    webrig_advance(s.rig, 20);
    assert_non_null(strstr(events_of(c), "lock:/b/1/0 lock:/b/0/0 "));
    assert_false(c->done);
    webrig_end(c);
    scene_close(&s);
}

static void a_reader_that_comes_back_gets_what_it_missed(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    loaded(&s);
    add(&s, "/a/_c_" UUID "-lock-0000000000", "");
    webrig_advance(s.rig, 20);
    struct webrig_call *c = follow(&s, "/v1/events", NULL);
    add(&s, "/b/_c_" UUID "-lock-0000000000", "");
    webrig_advance(s.rig, 20);
    char id[128];
    snprintf(id, sizeof id, "%s", last_id(c));
    webrig_end(c);
    for (int i = 1; i < 4; i++) { /* once, as it is at the end */
        char path[96];
        snprintf(path, sizeof path, "/a/_c_" UUID "-lock-%010d", i);
        add(&s, path, "");
        webrig_advance(s.rig, 20);
    }
    clave__observe_gone(s.o, "/b/_c_" UUID "-lock-0000000000");
    webrig_advance(s.rig, 20);
    c = follow(&s, "/v1/events", id);
    assert_string_equal(events_of(c), "lock:/a/1/3 lock:/b/0/0 ");
    webrig_end(c);
    c = follow(&s, "/v1/events", "Last-Event-ID: 0123456789abcdef-1");
    assert_string_equal(events_of(c), "reset lock:/a/1/3 ");
    webrig_end(c);
    c = follow(&s, "/v1/events?prefix=/x", NULL);
    assert_string_equal(events_of(c), "reset ");
    webrig_end(c);
    scene_close(&s);
}

static void a_slow_reader_is_cut_off(void **state)
{
    struct scene s;
    char path[96];
    (void)state;
    scene_open(&s);
    loaded(&s);
    struct webrig_call *slow = follow(&s, "/v1/events", NULL);
    slow->stop_reading = true;
    for (int i = 0; i < 20000; i++) {
        snprintf(path, sizeof path, "/q%d/_c_" UUID "-lock-0000000000", i);
        add(&s, path, "");
    }
    webrig_advance(s.rig, 20);
    assert_false(slow->done);
    slow->stop_reading = false;
    add(&s, "/z/_c_" UUID "-lock-0000000000", "");
    webrig_advance(s.rig, 20);
    assert_true(slow->done);
    assert_string_equal(events_of(slow), "reset ");
    webrig_end(slow);
    scene_close(&s);
}

static void silence_has_comments(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    loaded(&s);
    struct webrig_call *c = follow(&s, "/v1/events", NULL);
    size_t n = c->body.tail - c->body.head;
    webrig_advance(s.rig, 14999);
    assert_int_equal(c->body.tail - c->body.head, n);
    webrig_advance(s.rig, 1);
    assert_string_equal(webrig_body(c) + n, ":\n\n");
    webrig_advance(s.rig, 15000);
    assert_string_equal(webrig_body(c) + n, ":\n\n:\n\n");
    webrig_end(c);
    scene_close(&s);
}

static void events_of_a_session_are_not_for_others(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    loaded(&s);
    struct webrig_call *c = follow(&s, "/v1/events", NULL);
    clave__observe_event(
        s.o, &(struct event_text){.name = "held", .session = "17", .data = "{\"claim\": \"1\"}"});
    clave__observe_event(s.o, &(struct event_text){.name = "session", .data = "{}"});
    webrig_advance(s.rig, 20);
    assert_string_equal(events_of(c), "reset session ");
    webrig_end(c);
    scene_close(&s);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void assert_has_line(struct webrig_call *c, const char *line)
{
    char with_end[256];
    snprintf(with_end, sizeof with_end, "\n%s\n", line);
    if (!strstr(webrig_body(c), with_end))
        fail_msg("no line %s in\n%s", line, webrig_body(c));
}

static void locks_of_all_clients_are_measured(void **state)
{
    struct scene s;
    static const char *const prefixes[] = {"/jobs"};
    (void)state;
    scene_open(&s);
    s.rig->web->o.metric_paths = prefixes;
    s.rig->web->o.nmetric_paths = 1;
    s.rig->web->o.max_metric_paths = 1;
    add(&s, "/jobs/a/_c_" UUID "-lock-0000000000", "");
    add(&s, "/jobs/b/_c_" UUID "-lock-0000000000", "");
    add(&s, "/e/" LATCH1, "clave/1\nhost=web1\n");
    loaded(&s);
    webrig_advance(s.rig, 1000);
    add(&s, "/jobs/a/_c_" UUID "-lock-0000000001", "");
    add(&s, "/x/_c_" UUID "-lock-0000000000", "");
    webrig_advance(s.rig, 2500);
    add(&s, "/x/_c_" UUID "-lock-0000000001", "");
    clave__observe_gone(s.o, "/jobs/a/_c_" UUID "-lock-0000000000");
    clave__observe_gone(s.o, "/x/_c_" UUID "-lock-0000000000");
    webrig_advance(s.rig, 500);
    add(&s, "/y/_c_" UUID "-lock-0000000000", "");
    struct webrig_call *c = get(&s, "/metrics", 200);
    assert_true(c->done);
    assert_has_line(c, "clave_lock_holders{path=\"/jobs/a\",kind=\"lock\"} 1");
    assert_has_line(c, "clave_lock_holders{path=\"other\",kind=\"lock\"} 3");
    assert_has_line(c, "clave_lock_waiters{path=\"other\",kind=\"lock\"} 0");
    assert_has_line(c, "clave_lock_grants_total{kind=\"lock\"} 4");
    assert_has_line(c, "clave_lock_wait_seconds_sum{kind=\"lock\",outcome=\"granted\"} 2.5");
    assert_has_line(c, "clave_lock_hold_seconds_sum{kind=\"lock\"} 2.5");
    assert_has_line(c, "clave_lock_ends_total{cause=\"unknown\"} 2");
    assert_has_line(c, "clave_election_has_leader{path=\"other\"} 1");
    assert_has_line(c, "clave_deadlocks 0");
    clave__observe_gone(s.o, "/e/" LATCH1);
    webrig_end(c);
    c = get(&s, "/metrics", 200);
    assert_has_line(c, "clave_election_has_leader{path=\"other\"} 0");
    clave__observe_gone(s.o, "/e");
    webrig_end(c);
    c = get(&s, "/metrics", 200);
    assert_null(strstr(webrig_body(c), "clave_election_has_leader{"));
    assert_has_line(c, "clave_http_waiting{how=\"answer\"} 0");
    webrig_end(c);
    c = get(&s, "/metrics", 200);
    assert_has_line(c,
                    "clave_http_requests_total{route=\"/metrics\",method=\"GET\",code=\"200\"} 4");
    webrig_end(c);
    scene_close(&s);
}

/* Pieces of the page that come to no label have no text, and must not end it. */
static void metrics_of_many_locks_without_labels_are_whole(void **state)
{
    enum { LOCKS = 2000 };
    struct scene s;
    (void)state;
    scene_open(&s);
    for (int i = 0; i < LOCKS; i++) {
        char path[96];
        snprintf(path, sizeof path, "/many/l%d/_c_" UUID "-lock-0000000000", i);
        add(&s, path, "");
    }
    loaded(&s);
    struct webrig_call *c = get(&s, "/metrics", 200);
    assert_true(c->done);
    assert_has_line(c, "clave_lock_holders{path=\"other\",kind=\"lock\"} 2000");
    assert_has_line(c, "clave_lock_waiters{path=\"other\",kind=\"lock\"} 0");
    assert_has_line(c, "clave_deadlocks 0");
    webrig_end(c);
    scene_close(&s);
}

/* ---- history --------------------------------------------------------------------------------- */

/* "what:cause" of each entry. */
static const char *history_of(struct scene *s, const char *target)
{
    static char text[4096];
    struct webrig_call *c = get(s, target, 200);
    text[0] = '\0';
    for (const char *at = webrig_body(c); (at = strstr(at, "\"what\": \"")); at++) {
        char what[16], cause[16] = "-";
        sscanf(at, "\"what\": \"%15[^\"]\", \"cause\": \"%15[^\"]", what, cause);
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s:%s ", what, cause);
    }
    webrig_end(c);
    return text;
}

static void history_has_who_held_what_when(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    add(&s, "/a/_c_" UUID "-lock-0000000000", "");
    loaded(&s);
    add(&s, "/a/_c_" UUID "-lock-0000000001", "clave/1\nhost=web1\n");
    add(&s, "/b/_c_" UUID "-lock-0000000000", "");
    clave__observe_gone(s.o, "/a/_c_" UUID "-lock-0000000000");
    assert_string_equal(history_of(&s, "/v1/history"),
                        "queued:- queued:- granted:- ended:unknown granted:- ");
    assert_string_equal(history_of(&s, "/v1/history?path=/b"), "queued:- granted:- ");
    assert_string_equal(history_of(&s, "/v1/history?since=3"), "ended:unknown granted:- ");
    assert_string_equal(history_of(&s, "/v1/history?limit=1"), "granted:- ");
    assert_string_equal(history_of(&s, "/v1/history?since=0&limit=1"), "queued:- ");
    assert_string_equal(history_of(&s, "/v1/history?since=2030-01-01T00:00:00Z"), "");
    webrig_end(get(&s, "/v1/history?since=x", 400));
    struct webrig_call *c = get(&s, "/v1/history?limit=1", 200);
    assert_string_equal(webrig_member(c, "n"), "5");
    assert_string_equal(webrig_member(c, "path"), "/a");
    assert_string_equal(webrig_member(c, "host"), "web1");
    webrig_end(c);
    scene_close(&s);
}

/* A session that still has a place elsewhere did not end. */
static void the_cause_of_an_end_is_found_out_or_said(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    loaded(&s);
    clave_stat stat = {.czxid = 100, .ephemeral_owner = 9};
    clave__observe_node(s.o,
                        &(struct observe_node){"/x/_c_" UUID "-lock-0000000001", &stat, "", 0});
    stat.czxid = 101;
    clave__observe_node(s.o,
                        &(struct observe_node){"/y/_c_" UUID "-lock-0000000001", &stat, "", 0});
    add(&s, "/z/_c_" UUID "-lock-0000000001", "");
    clave__observe_gone(s.o, "/x/_c_" UUID "-lock-0000000001");
    webrig_advance(s.rig, 100);
    assert_string_equal(history_of(&s, "/v1/history?path=/x"),
                        "queued:- granted:- ended:released ");
    clave__observe_gone(s.o, "/y/_c_" UUID "-lock-0000000001");
    webrig_advance(s.rig, 100);
    assert_string_equal(history_of(&s, "/v1/history?path=/y"), "queued:- granted:- ended:unknown ");
    clave__observe_cause(s.o, s.zxid, LOCK_BROKEN);
    clave__observe_gone(s.o, "/z/_c_" UUID "-lock-0000000001");
    webrig_advance(s.rig, 1);
    assert_string_equal(history_of(&s, "/v1/history?path=/z"), "queued:- granted:- ended:broken ");
    scene_close(&s);
}

static void a_semaphore_has_one_history_for_both_its_queues(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    add(&s, "/s/leases/_c_" UUID "-lease-0000000000", "");
    loaded(&s);
    s.zxid = 10;
    clave_stat stat = {.czxid = 11, .ephemeral_owner = 9};
    clave__observe_node(
        s.o, &(struct observe_node){"/s/locks/_c_" UUID "-lock-0000000001", &stat, "", 0});
    stat.czxid = 12;
    clave__observe_node(
        s.o, &(struct observe_node){"/s/leases/_c_" UUID "-lease-0000000001", &stat, "", 0});
    clave__observe_gone(s.o, "/s/locks/_c_" UUID "-lock-0000000001");
    clave__observe_gone(s.o, "/s/leases/_c_" UUID "-lease-0000000001");
    add(&s, "/s/locks/_c_" UUID "-lock-0000000002", ""); /* gives up */
    clave__observe_gone(s.o, "/s/locks/_c_" UUID "-lock-0000000002");
    assert_string_equal(history_of(&s, "/v1/history?path=/s"),
                        "queued:- granted:- ended:unknown queued:- ended:unknown ");
    scene_close(&s);
}

/* Each looks at more than two of its pieces may before there is something to write. */
static void lists_of_which_a_piece_is_empty_are_whole(void **state)
{
    enum { ELECTIONS = 5100 };
    static const char *const targets[] = {"/v1/locks?prefix=/a", "/v1/elections?prefix=/a",
                                          "/v1/history?path=/z&since=0"};
    struct scene s;
    (void)state;
    scene_open(&s);
    loaded(&s);
    for (int i = 0; i < ELECTIONS; i++) {
        char path[96];
        snprintf(path, sizeof path, "/a-%d/" LATCH1, i);
        add(&s, path, "");
    }
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct webrig_call *c = get(&s, targets[i], 200);
        assert_true(c->done);
        webrig_end(c);
    }
    scene_close(&s);
}

/* ---- deadlocks ------------------------------------------------------------------------------- */

static void add_of(struct scene *s, int64_t session, const char *path, const char *data)
{
    s->zxid++;
    clave_stat stat = {.czxid = s->zxid, .mzxid = s->zxid, .ephemeral_owner = session};
    clave__observe_node(s->o, &(struct observe_node){path, &stat, data, strlen(data)});
}

static void a_deadlock_is_found_while_it_lasts(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    loaded(&s);
    struct webrig_call *c = follow(&s, "/v1/events", NULL);
    add_of(&s, 7, "/a/_c_" UUID "-lock-0000000000", "clave/1\nhost=web1\npid=1\n");
    add_of(&s, 8, "/b/_c_" UUID "-lock-0000000000", "clave/1\nhost=web2\npid=2\n");
    add_of(&s, 8, "/a/_c_" UUID "-lock-0000000001", "clave/1\nhost=web2\npid=2\n");
    webrig_advance(s.rig, 200);
    assert_null(strstr(events_of(c), "deadlock"));
    add_of(&s, 9, "/b/_c_" UUID "-lock-0000000001", "");
    add_of(&s, 7, "/b/_c_" UUID "-lock-0000000002", "clave/1\nhost=web1\npid=1\n");
    webrig_advance(s.rig, 120);
    assert_string_equal(strstr(events_of(c), "deadlock"), "deadlock ");
    webrig_end(c);
    c = get(&s, "/v1/deadlocks", 200);
    assert_string_equal(webrig_member(c, "text"),
                        "web1 pid 1 waits for /b behind web2 pid 2, who waits for /a behind "
                        "web1 pid 1");
    assert_string_equal(webrig_member(c, "node"), "/b/_c_" UUID "-lock-0000000002");
    assert_string_equal(webrig_member(c, "blocker"), "/b/_c_" UUID "-lock-0000000000");
    assert_string_equal(webrig_member(c, "identity"), "web1 pid 1");
    webrig_end(c);
    webrig_end(get(&s, "/v1/deadlocks?prefix=/b", 200));
    clave__observe_gone(s.o, "/b/_c_" UUID "-lock-0000000002");
    webrig_advance(s.rig, 20);
    c = get(&s, "/v1/deadlocks", 200);
    assert_string_equal(webrig_body(c),
                        "{\"deadlocks\": [], \"complete\": true, \"current\": true}");
    webrig_end(c);
    c = get(&s, "/v1/deadlocks?prefix=/x", 200);
    assert_string_equal(webrig_body(c),
                        "{\"deadlocks\": [], \"complete\": true, \"current\": true}");
    webrig_end(c);
    scene_close(&s);
}

/* Its text names all of its locks, so it is for those who may see all of them. */
static void a_deadlock_is_told_to_who_may_see_its_locks(void **state)
{
    static const struct web_grant below_a[] = {{WEB_READ, "/a"}};
    static const struct web_grant below_b[] = {{WEB_READ, "/b"}};
    static const struct web_grant both[] = {{WEB_READ, "/a"}, {WEB_READ, "/b"}};
    static const struct web_user users[] = {
        {.token = "ann", .uid = -1, .grants = below_a, .ngrants = 1},
        {.token = "cat", .uid = -1, .grants = below_b, .ngrants = 1},
        {.token = "bob", .uid = -1, .grants = both, .ngrants = 2}};
    static const struct web_access access = {.users = users, .nusers = 3, .owner_uid = -1};
    struct scene s;
    (void)state;
    scene_open(&s);
    loaded(&s);
    clave__web_set_access(s.rig->web, &access);
    struct webrig_call *ann =
        webrig_request(s.rig, "GET", "/v1/events", "Authorization: Bearer ann", NULL);
    struct webrig_call *cat =
        webrig_request(s.rig, "GET", "/v1/events", "Authorization: Bearer cat", NULL);
    struct webrig_call *bob =
        webrig_request(s.rig, "GET", "/v1/events", "Authorization: Bearer bob", NULL);
    add_of(&s, 9, "/a/_c_" UUID "-lock-0000000000", "");
    add_of(&s, 7, "/a/_c_" UUID "-lock-0000000001", "");
    add_of(&s, 7, "/b/_c_" UUID "-lock-0000000000", "");
    add_of(&s, 9, "/b/_c_" UUID "-lock-0000000001", "");
    webrig_advance(s.rig, 300);
    assert_int_equal(s.o->waits.nfound, 1);
    assert_null(strstr(webrig_body(ann), "/b"));
    assert_null(strstr(webrig_body(cat), "/a"));
    assert_non_null(strstr(webrig_body(bob), "event: deadlock"));
    webrig_end(ann);
    webrig_end(cat);
    webrig_end(bob);
    scene_close(&s);
}

static void a_semaphore_can_be_part_of_a_deadlock(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    loaded(&s);
    add_of(&s, 7, "/s/leases/_c_" UUID "-lease-0000000000", "clave/1\nlimit=1\n");
    add_of(&s, 8, "/a/_c_" UUID "-lock-0000000000", "");
    add_of(&s, 7, "/a/_c_" UUID "-lock-0000000001", "");
    add_of(&s, 8, "/s/locks/_c_" UUID "-lock-0000000000", "clave/1\nlimit=1\n");
    webrig_advance(s.rig, 200);
    assert_int_equal(s.o->waits.nfound, 0);
    add_of(&s, 8, "/s/leases/_c_" UUID "-lease-0000000001", "clave/1\nlimit=1\n");
    webrig_advance(s.rig, 200);
    assert_int_equal(s.o->waits.nfound, 1);
    assert_int_equal(s.o->waits.total, 1);
    scene_close(&s);
}

/* ---- elections ------------------------------------------------------------------------------- */

static void an_election_has_terms_gaps_and_a_value(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    add(&s, "/e/" LATCH1, "clave/1\nhost=web1\npid=5\n");
    add(&s, "/e-value", LATCH1 "\nhttp://web1");
    add(&s, "/other-value", "nothing");
    loaded(&s);
    struct webrig_call *c = get(&s, "/v1/elections/e", 200);
    assert_string_equal(webrig_member(c, "term"), "1");
    assert_string_equal(webrig_member(c, "value"), "http://web1");
    webrig_end(c);
    add(&s, "/e/" LATCH2, "");
    clave__observe_gone(s.o, "/e/" LATCH1);
    clave__observe_gone(s.o, "/e/" LATCH2);
    webrig_advance(s.rig, 1000);
    c = get(&s, "/v1/elections/e", 200);
    assert_non_null(strstr(webrig_body(c), "\"leader\": null, \"term\": null, \"since\": null, "
                                           "\"value\": null, \"candidates\": []"));
    webrig_end(c);
    add(&s, "/e/" LATCH3, "");
    add(&s, "/e-value", LATCH3 "\n\xff");
    c = get(&s, "/v1/elections", 200);
    assert_string_equal(paths_of(c), "/e ");
    assert_string_equal(webrig_member(c, "value_base64"), "/w==");
    assert_int_equal(count_of(webrig_body(c), "\"from\": "), 3);
    assert_int_equal(count_of(webrig_body(c), "\"to\": null, \"cause\": null"), 1);
    assert_int_equal(count_of(webrig_body(c), "\"cause\": \"unknown\""), 2);
    assert_non_null(strstr(webrig_body(c), "\"text\": \"web1 pid 5\""));
    webrig_end(c);
    const struct election *e = clave__election_find(&s.o->elections, "/e");
    assert_int_equal(e->vacant_ms, 1000);
    assert_int_equal(e->terms_total, 3);
    webrig_end(get(&s, "/v1/elections/other", 404));
    clave__observe_stale(s.o);
    c = get(&s, "/v1/elections", 200);
    assert_non_null(strstr(webrig_body(c), "\"complete\": true, \"current\": false}"));
    webrig_end(c);
    c = get(&s, "/v1/deadlocks", 200);
    assert_non_null(strstr(webrig_body(c), "\"complete\": true, \"current\": false}"));
    webrig_end(c);
    scene_close(&s);
}

static void a_change_of_leader_is_an_event(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s);
    add(&s, "/e/" LATCH1, "");
    loaded(&s);
    webrig_advance(s.rig, 20);
    struct webrig_call *c = follow(&s, "/v1/events", NULL);
    add(&s, "/e/" LATCH2, "");
    clave__observe_gone(s.o, "/e/" LATCH1);
    webrig_advance(s.rig, 20);
    clave__observe_gone(s.o, "/e/" LATCH2);
    webrig_advance(s.rig, 20);
    assert_string_equal(events_of(c), "reset lock:/e/1/0 lock:/e/1/0 leader lock:/e/0/0 vacant ");
    webrig_end(c);
    scene_close(&s);
}

static void a_session_gets_its_own_events(void **state)
{
    struct scene s;
    char secret[512], id[64];
    (void)state;
    scene_open(&s);
    loaded(&s);
    struct webrig_call *c =
        webrig_request(s.rig, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 10000}");
    assert_int_equal(c->status, 201);
    snprintf(secret, sizeof secret, "Clave-Session: %s", webrig_member(c, "secret"));
    snprintf(id, sizeof id, "%s", webrig_member(c, "id"));
    webrig_end(c);
    c = follow(&s, "/v1/events?claims=1", secret);
    clave__observe_event(
        s.o, &(struct event_text){.name = "held", .session = id, .data = "{\"claim\": \"1\"}"});
    webrig_advance(s.rig, 20);
    assert_string_equal(events_of(c), "reset held ");
    webrig_end(c);
    c = webrig_request(s.rig, "GET", "/v1/events?claims=1", NULL, NULL);
    assert_int_equal(c->status, 401);
    webrig_end(c);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_is_shown_with_its_places),
        cmocka_unit_test(a_list_has_pages_and_a_prefix),
        cmocka_unit_test(a_long_queue_is_shown_whole),
        cmocka_unit_test(requests_wait_for_the_first_load),
        cmocka_unit_test(a_stream_has_the_state_and_then_every_change),
        cmocka_unit_test(a_reader_that_comes_back_gets_what_it_missed),
        cmocka_unit_test(a_slow_reader_is_cut_off),
        cmocka_unit_test(silence_has_comments),
        cmocka_unit_test(events_of_a_session_are_not_for_others),
        cmocka_unit_test(a_session_gets_its_own_events),
        cmocka_unit_test(an_election_has_terms_gaps_and_a_value),
        cmocka_unit_test(a_change_of_leader_is_an_event),
        cmocka_unit_test(a_deadlock_is_found_while_it_lasts),
        cmocka_unit_test(a_deadlock_is_told_to_who_may_see_its_locks),
        cmocka_unit_test(a_semaphore_can_be_part_of_a_deadlock),
        cmocka_unit_test(locks_of_all_clients_are_measured),
        cmocka_unit_test(metrics_of_many_locks_without_labels_are_whole),
        cmocka_unit_test(lists_of_which_a_piece_is_empty_are_whole),
        cmocka_unit_test(history_has_who_held_what_when),
        cmocka_unit_test(the_cause_of_an_end_is_found_out_or_said),
        cmocka_unit_test(a_semaphore_has_one_history_for_both_its_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
