/* Elections at /v1/elections, and their events. */
#include "lib/observe_scene.h"
#include "lib/unit.h"

TEST(an_election_has_terms_gaps_and_a_value)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/e/" LATCH1, "clave/1\nhost=web1\npid=5\n");
    scene_add(&s, "/e-value", LATCH1 "\nhttp://web1");
    scene_add(&s, "/other-value", "nothing");
    scene_loaded(&s);
    struct webrig_call *c = scene_get(&s, "/v1/elections/e", 200);
    assert_string_equal(webrig_member(c, "term"), "1");
    assert_string_equal(webrig_member(c, "value"), "http://web1");
    webrig_end(c);
    scene_add(&s, "/e/" LATCH2, "");
    clave__observe_gone(s.o, "/e/" LATCH1);
    clave__observe_gone(s.o, "/e/" LATCH2);
    webrig_advance(s.rig, 1000);
    c = scene_get(&s, "/v1/elections/e", 200);
    assert_non_null(strstr(webrig_body(c), "\"leader\": null, \"term\": null, \"since\": null, "
                                           "\"value\": null, \"candidates\": []"));
    webrig_end(c);
    scene_add(&s, "/e/" LATCH3, "");
    scene_add(&s, "/e-value", LATCH3 "\n\xff");
    c = scene_get(&s, "/v1/elections", 200);
    assert_string_equal(scene_paths(c), "/e ");
    assert_string_equal(webrig_member(c, "value_base64"), "/w==");
    assert_int_equal(scene_count(webrig_body(c), "\"from\": "), 3);
    assert_int_equal(scene_count(webrig_body(c), "\"to\": null, \"cause\": null"), 1);
    assert_int_equal(scene_count(webrig_body(c), "\"cause\": \"unknown\""), 2);
    assert_non_null(strstr(webrig_body(c), "\"text\": \"web1 pid 5\""));
    webrig_end(c);
    const struct election *e = clave__election_find(&s.o->elections, "/e");
    assert_int_equal(e->vacant_ms, 1000);
    assert_int_equal(e->terms_total, 3);
    webrig_end(scene_get(&s, "/v1/elections/other", 404));
    clave__observe_stale(s.o);
    c = scene_get(&s, "/v1/elections", 200);
    assert_non_null(
        strstr(webrig_body(c), "\"complete\": true, \"source\": \"copy\", \"current\": false"));
    webrig_end(c);
    c = scene_get(&s, "/v1/deadlocks", 200);
    assert_non_null(
        strstr(webrig_body(c), "\"complete\": true, \"source\": \"copy\", \"current\": false"));
    webrig_end(c);
}

static void reload(struct scene *s, int64_t czxid, const char *path)
{
    clave__observe_clear(s->o);
    s->zxid = czxid - 1;
    scene_add(s, "/e", "");
    s->zxid = czxid - 1;
    scene_add(s, path, "web");
    s->zxid = 10;
    scene_loaded(s);
}

TEST(a_copy_made_anew_goes_on_with_the_term)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/e", "");
    scene_loaded(&s);
    webrig_advance(s.rig, 1000);
    scene_add(&s, "/e/" LATCH1, "web");
    scene_add(&s, "/e-value", LATCH1 "\nhttp://web1");
    webrig_advance(s.rig, 1000);
    reload(&s, 2, "/e/" LATCH1);
    struct webrig_call *c = scene_get(&s, "/v1/elections/e", 200);
    assert_int_equal(scene_count(webrig_body(c), "\"from\": "), 1);
    assert_non_null(
        strstr(webrig_body(c), "\"term\": \"2\", \"since\": \"1970-01-01T00:16:42.000Z\""));
    assert_string_equal(webrig_member(c, "from"), "1970-01-01T00:16:42.000Z");
    assert_string_equal(webrig_member(c, "value"), "null");
    assert_string_equal(webrig_member(c, "over"), "false");
    webrig_end(c);
    webrig_advance(s.rig, 1000);
    reload(&s, 3, "/e/" LATCH2);
    c = scene_get(&s, "/v1/elections/e", 200);
    assert_non_null(strstr(webrig_body(c), "\"term\": \"3\", \"since\": null"));
    assert_non_null(strstr(webrig_body(c), "\"to\": \"1970-01-01T00:16:44.000Z\""));
    assert_non_null(strstr(webrig_body(c), "\"token\": \"3\", \"from\": null, \"to\": null"));
    assert_int_equal(scene_count(webrig_body(c), "\"token\": "), 3); /* and the leader's */
    webrig_end(c);
    clave__observe_clear(s.o);
    scene_loaded(&s);
    c = scene_get(&s, "/v1/elections/e", 200);
    assert_string_equal(webrig_member(c, "leader"), "null");
    assert_string_equal(webrig_member(c, "over"), "true");
    assert_int_equal(scene_count(webrig_body(c), "\"to\": null"), 0);
    webrig_end(c);
}

/* It has no leader, though its first candidate's node is there. */
TEST(a_candidate_that_no_session_owns_leads_nobody)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add_of(&s, 0, "/e/" LATCH1, "web1");
    scene_loaded(&s);
    scene_add_of(&s, 0, "/f/" LATCH1, "web1");
    scene_add(&s, "/f/" LATCH2, "web2");
    webrig_advance(s.rig, 1000);
    struct webrig_call *c = scene_get(&s, "/v1/elections", 200);
    assert_string_equal(scene_paths(c), "/e /f ");
    assert_int_equal(scene_count(webrig_body(c), "\"leader\": null"), 2);
    assert_int_equal(scene_count(webrig_body(c), "\"terms\": []"), 2);
    assert_int_equal(scene_count(webrig_body(c), "\"role\": \"left-over\""), 2);
    assert_int_equal(scene_count(webrig_body(c), "\"role\": \"candidate\""), 1);
    webrig_end(c);
    c = scene_get(&s, "/v1/locks/f", 200);
    assert_string_equal(webrig_member(c, "nholders"), "0");
    assert_string_equal(webrig_member(c, "nwaiters"), "1");
    assert_string_equal(webrig_member(c, "nleft_over"), "1");
    assert_non_null(strstr(webrig_body(c), "\"left_over\": [{\"node\": \"" LATCH1 "\""));
    webrig_end(c);
    clave__observe_gone(s.o, "/e/" LATCH1);
    clave__observe_gone(s.o, "/f/" LATCH1);
    webrig_advance(s.rig, 1000);
    c = scene_get(&s, "/v1/elections", 200);
    assert_string_equal(scene_paths(c), "/f ");
    assert_int_equal(scene_count(webrig_body(c), "\"text\": \"web2\""), 2); /* it leads */
    webrig_end(c);
    c = scene_get(&s, "/v1/history?path=/f", 200);
    assert_int_equal(scene_count(webrig_body(c), "\"what\": \"ended\", \"cause\": \"broken\""), 1);
    webrig_end(c);
}

TEST(a_change_of_leader_is_an_event)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/e/" LATCH1, "");
    scene_loaded(&s);
    webrig_advance(s.rig, 20);
    struct webrig_call *c = scene_follow(&s, "/v1/events", NULL);
    scene_add(&s, "/e/" LATCH2, "");
    clave__observe_gone(s.o, "/e/" LATCH1);
    webrig_advance(s.rig, 20);
    clave__observe_gone(s.o, "/e/" LATCH2);
    webrig_advance(s.rig, 20);
    assert_string_equal(scene_events(c),
                        "reset lock:/e/1/0 lock:/e/1/0 leader lock:/e/0/0 vacant ");
    /* With its terms: a reader that has nothing but events shows them. */
    const char *vacant = strstr(webrig_body(c), "event: vacant");
    assert_int_equal(scene_count(vacant, "\"from\": "), 2);
    assert_non_null(strstr(vacant, "\"over\": false"));
    /* Its node goes when nobody uses it any more: that is no vacancy. */
    clave__observe_gone(s.o, "/e");
    webrig_advance(s.rig, 20);
    assert_int_equal(scene_count(webrig_body(c), "event: vacant"), 2);
    assert_non_null(strstr(webrig_body(c), "\"over\": true"));
    webrig_end(c);
    scene_add(&s, "/e/" LATCH3, "");
    c = scene_get(&s, "/v1/elections/e", 200);
    assert_non_null(strstr(webrig_body(c), "\"over\": false"));
    webrig_end(c);
}

/* The gate may not read it: only its name is known. */
static void scene_add_unreadable(struct scene *s, const char *path)
{
    static const clave_stat unknown = {0};
    clave__observe_node(s->o, &(struct observe_node){path, &unknown, NULL, 0});
}

TEST(leaders_that_may_not_be_read_are_events)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add_unreadable(&s, "/e/" LATCH1);
    scene_add_unreadable(&s, "/f/" LATCH1);
    scene_loaded(&s);
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_follow(&s, "/v1/events", NULL);
    scene_add_unreadable(&s, "/e/" LATCH2);
    clave__observe_gone(s.o, "/f/" LATCH1);
    webrig_advance(s.rig, 20);
    size_t before = strlen(scene_events(c));
    assert_int_equal(scene_count(scene_events(c), "leader"), 0);
    assert_int_equal(scene_count(scene_events(c), "vacant"), 1);
    clave__observe_gone(s.o, "/e/" LATCH1);
    webrig_advance(s.rig, 20);
    assert_string_equal(scene_events(c) + before, "lock:/e/1/0 leader ");
}
