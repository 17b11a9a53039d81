/* Who held what when, at /v1/history. */
#include "clave/async/mutex.h"
#include "lib/claim_scene.h"
#include "lib/observe_scene.h"
#include "lib/unit.h"

/* "what:cause" of each entry. */
static const char *history_of(struct scene *s, const char *target)
{
    static char text[4096];
    struct webrig_call *c = scene_get(s, target, 200);
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

TEST(history_has_who_held_what_when)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/a/_c_" UUID "-lock-0000000000", "");
    scene_loaded(&s);
    scene_add(&s, "/a/_c_" UUID "-lock-0000000001", "clave/1\nhost=web1\n");
    scene_add(&s, "/b/_c_" UUID "-lock-0000000000", "");
    clave__observe_gone(s.o, "/a/_c_" UUID "-lock-0000000000");
    assert_string_equal(history_of(&s, "/v1/history"),
                        "queued:- queued:- granted:- ended:unknown granted:- ");
    assert_string_equal(history_of(&s, "/v1/history?path=/b"), "queued:- granted:- ");
    char since[64];
    snprintf(since, sizeof since, "/v1/history?since=%llu",
             (unsigned long long)s.o->history.last - 2);
    assert_string_equal(history_of(&s, since), "ended:unknown granted:- ");
    assert_string_equal(history_of(&s, "/v1/history?limit=1"), "granted:- ");
    assert_string_equal(history_of(&s, "/v1/history?since=0&limit=1"), "queued:- ");
    assert_string_equal(history_of(&s, "/v1/history?since=2030-01-01T00:00:00Z"), "");
    webrig_end(scene_get(&s, "/v1/history?since=x", 400));
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_get(&s, "/v1/history?limit=1", 200);
    assert_int_equal(strtoull(webrig_member(c, "n"), NULL, 10), s.o->history.last);
    assert_string_equal(webrig_member(c, "path"), "/a");
    assert_string_equal(webrig_member(c, "host"), "web1");
}

/* Curator's request replaces what the node said: it is shown all the same. */
TEST(who_was_asked_is_told)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    clave_stat stat = {.czxid = 100, .ephemeral_owner = 9};
    struct observe_node n = {"/a/_c_" UUID "-lock-0000000000", &stat, "clave/1\nhost=web1\n", 18};
    clave__observe_node(s.o, &n);
    stat.version = 1;
    n.data = CLAVE_REVOKE_WORD;
    n.len = strlen(CLAVE_REVOKE_WORD);
    clave__observe_node(s.o, &n);
    assert_string_equal(history_of(&s, "/v1/history"), "queued:- granted:- asked:- ");
    for (int i = 0; i < 2; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = scene_get(&s, i ? "/v1/locks/a" : "/v1/history?limit=1", 200);
        assert_string_equal(webrig_member(c, "host"), "web1");
        assert_non_null(strstr(webrig_body(c), "\"revocable\": null, \"asked\": true"));
    }
}

/* A session that still has a place elsewhere did not end. */
TEST(the_cause_of_an_end_is_found_out_or_said)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    clave_stat stat = {.czxid = 100, .ephemeral_owner = 9};
    clave__observe_node(s.o,
                        &(struct observe_node){"/x/_c_" UUID "-lock-0000000001", &stat, "", 0});
    stat.czxid = 101;
    clave__observe_node(s.o,
                        &(struct observe_node){"/y/_c_" UUID "-lock-0000000001", &stat, "", 0});
    scene_add(&s, "/z/_c_" UUID "-lock-0000000001", "");
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
}

/* Said before the entry comes, after it, and of a place that nothing happens to. */
TEST(who_broke_it_and_why_is_told)
{
    static const char node[] = "/z/_c_" UUID "-lock-0000000001";
    for (int late = 0; late < 2; late++) {
        CLOSED_BY(scene_close) struct scene s;
        scene_open(&s);
        scene_loaded(&s);
        scene_add(&s, node, "");
        webrig_end(scene_get(&s, "/v1/locks", 200)); /* leaves its bytes in freed memory */
        const struct history_deed deed = {s.zxid, LOCK_ENDED, "ann", "its \"host\" is gone"};
        clave__history_say(&s.o->history, &(struct history_deed){77, LOCK_ENDED, "bob", ""});
        if (!late)
            clave__history_say(&s.o->history, &deed);
        clave__observe_gone(s.o, node);
        if (late)
            clave__history_say(&s.o->history, &deed);
        CLOSED_BY(webrig_ended) struct webrig_call *c = scene_get(&s, "/v1/history", 200);
        assert_int_equal(scene_count(webrig_body(c), "\"deed\": null"), 2);
        assert_int_equal(scene_count(webrig_body(c), "\"deed\": {\"by\": \"ann\", \"reason\": "
                                                     "\"its \\\"host\\\" is gone\"}"),
                         1);
    }
}

/* What waits for its entry is bounded; the newest is kept. */
TEST(what_is_said_of_nothing_is_forgotten)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    scene_add(&s, "/z/_c_" UUID "-lock-0000000001", "");
    for (int i = 0; i < 1000; i++)
        clave__history_say(&s.o->history,
                           &(struct history_deed){s.zxid + 1 + i, LOCK_ASKED, "ann", "r"});
    assert_int_equal(s.o->history.ndeeds, 100);
}

/* A driver that sees how nodes go says it; what the engine knows counts more. */
TEST(a_driver_may_know_why_it_ended)
{
    static const struct {
        enum lock_cause said, told;
        const char *history;
    } cases[] = {
        {LOCK_UNKNOWN, LOCK_CLOSED, "queued:- granted:- ended:closed "},
        {LOCK_UNKNOWN, LOCK_RELEASED, "queued:- granted:- ended:released "},
        {LOCK_EXPIRED, LOCK_RELEASED, "queued:- granted:- ended:expired "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int late = 0; late < 2; late++) {
            CLOSED_BY(scene_close) struct scene s;
            scene_open(&s);
            scene_loaded(&s);
            scene_add(&s, "/x/_c_" UUID "-lock-0000000001", "");
            if (cases[i].said != LOCK_UNKNOWN)
                clave__observe_cause(s.o, s.zxid, cases[i].said);
            if (!late)
                clave__web_tell_cause(s.rig->web, s.zxid, (int)cases[i].told);
            clave__observe_gone(s.o, "/x/_c_" UUID "-lock-0000000001");
            if (late)
                clave__web_tell_cause(s.rig->web, s.zxid, (int)cases[i].told);
            webrig_advance(s.rig, 100);
            assert_string_equal(history_of(&s, "/v1/history?path=/x"), cases[i].history);
        }
}

TEST(a_semaphore_has_one_history_for_both_its_queues)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/s/leases/_c_" UUID "-lease-0000000000", "");
    scene_loaded(&s);
    s.zxid = 10;
    clave_stat stat = {.czxid = 11, .ephemeral_owner = 9};
    clave__observe_node(
        s.o, &(struct observe_node){"/s/locks/_c_" UUID "-lock-0000000001", &stat, "", 0});
    stat.czxid = 12;
    clave__observe_node(
        s.o, &(struct observe_node){"/s/leases/_c_" UUID "-lease-0000000001", &stat, "", 0});
    clave__observe_gone(s.o, "/s/locks/_c_" UUID "-lock-0000000001");
    clave__observe_gone(s.o, "/s/leases/_c_" UUID "-lease-0000000001");
    scene_add(&s, "/s/locks/_c_" UUID "-lock-0000000002", ""); /* gives up */
    clave__observe_gone(s.o, "/s/locks/_c_" UUID "-lock-0000000002");
    assert_string_equal(history_of(&s, "/v1/history?path=/s"),
                        "queued:- granted:- ended:unknown queued:- ended:unknown ");
}

/* All of them queue before there is a lease: their nodes say that they are a semaphore's. */
TEST(those_who_begin_a_semaphore_are_in_its_history)
{
    static const char says[] = "clave/1\nlimit=1\n", lock[] = "/s/locks/_c_" UUID "-lock-000000000",
                      lease[] = "/s/leases/_c_" UUID "-lease-0000000000";
    CLOSED_BY(scene_close) struct scene s;
    char path[80];
    scene_open(&s);
    scene_loaded(&s);
    for (int i = 1; i <= 3; i++) {
        const clave_stat stat = {.czxid = 10 + i, .ephemeral_owner = 10 + i};
        snprintf(path, sizeof path, "%s%d", lock, i);
        clave__observe_node(s.o,
                            &(struct observe_node){path, &stat, says, (int32_t)sizeof says - 1});
    }
    assert_string_equal(history_of(&s, "/v1/history?path=/s"), "queued:- queued:- queued:- ");
    assert_string_equal(history_of(&s, "/v1/history?path=/s/locks"), "");
    const clave_stat stat = {.czxid = 20, .ephemeral_owner = 11};
    clave__observe_node(s.o, &(struct observe_node){lease, &stat, says, (int32_t)sizeof says - 1});
    clave__observe_gone(s.o, "/s/locks/_c_" UUID "-lock-0000000001");
    clave__observe_gone(s.o, "/s/locks/_c_" UUID "-lock-0000000002"); /* gives up */
    clave__observe_gone(s.o, lease);
    clave__observe_gone(s.o, "/s/locks/_c_" UUID "-lock-0000000003");
    assert_string_equal(history_of(&s, "/v1/history?path=/s"),
                        "queued:- queued:- queued:- granted:- ended:unknown ended:unknown "
                        "ended:unknown ");
}

/* Its session ends since its client was silent: each of its leases has expired. */
TEST(each_lease_of_a_claim_has_its_cause)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    webrig_end(webrig_request(r, "GET", "/v1/history", NULL, NULL)); /* it begins to look */
    webrig_advance(r, 1000);
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL,
                                    "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 3, "
                                    "\"permits\": 3}"));
    for (int i = 0; i < 30; i++)
        webrig_advance(r, 1000);
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(r, "GET", "/v1/history?path=/s", NULL, NULL);
    size_t expired = 0;
    for (const char *at = webrig_body(c); (at = strstr(at, "\"cause\": \"expired\"")); at++)
        expired++;
    if (expired != 3)
        print_error("%s\n", webrig_body(c));
    assert_int_equal(expired, 3);
}

/* Not all of it is looked at in one piece, also where the newest entries are not asked for. */
TEST(a_long_history_is_read_in_pieces)
{
    enum { LOCKS = 3000 };
    CLOSED_BY(scene_close) struct scene s;
    char path[80];
    scene_open(&s);
    scene_loaded(&s);
    for (int i = 0; i < LOCKS; i++) {
        snprintf(path, sizeof path, "/l%d/_c_" UUID "-lock-0000000000", i);
        scene_add(&s, path, "");
    }
    struct webrig_call *c = scene_get(&s, "/v1/history?path=/l1", 200);
    assert_int_equal(scene_count(webrig_body(c), "\"path\": \"/l1\""), 2);
    assert_true(c->wakes >= 2); /* by pieces that show nothing */
    webrig_end(c);
    c = scene_get(&s, "/v1/history?path=/nosuch", 200);
    assert_non_null(strstr(webrig_body(c), "\"entries\": []"));
    assert_true(c->wakes >= 2);
    webrig_end(c);
    c = scene_get(&s, "/v1/history?limit=1", 200);
    snprintf(path, sizeof path, "\"path\": \"/l%d\"", LOCKS - 1);
    assert_non_null(strstr(webrig_body(c), path));
    webrig_end(c);
}

/* The oldest entries go first, and the answer says so. */
TEST(nothing_is_missing_since_from)
{
    enum { LOCKS = 10100, HOUR_MS = 3600000 }; /* two entries each, of 20000 */
    CLOSED_BY(scene_close) struct scene s;
    char path[80], begun[40];
    scene_open(&s);
    scene_loaded(&s);
    struct webrig_call *c = scene_get(&s, "/v1/history", 200);
    snprintf(begun, sizeof begun, "%s", webrig_member(c, "from"));
    webrig_end(c);
    for (int i = 0; i < LOCKS; i++) {
        if (i == 99)
            webrig_advance(s.rig, HOUR_MS);
        snprintf(path, sizeof path, "/l%d/_c_" UUID "-lock-0000000000", i);
        scene_add(&s, path, "");
        if (i == 99 || i == LOCKS - 102) {
            c = scene_get(&s, "/v1/history?limit=1", 200);
            assert_string_equal(webrig_member(c, "from"), begun);
            webrig_end(c);
        }
    }
    c = scene_get(&s, "/v1/history?limit=1", 200);
    assert_true(strcmp(webrig_member(c, "from"), begun) > 0);
    webrig_end(c);
}
