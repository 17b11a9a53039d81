/* The locks of the tree at /v1/locks. */
#include "lib/observe_scene.h"
#include "lib/unit.h"

TEST(a_lock_is_shown_with_its_places)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/jobs/nightly/_c_" UUID "-lock-0000000000",
              "clave/1\nhost=web1\npid=7\nname=nightly\ncommand=./x\n"
              "traceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\nrevocable=1\n");
    webrig_advance(s.rig, 1500);
    scene_add(&s, "/jobs/nightly/_c_" UUID "-lock-0000000001", "10.0.0.7");
    webrig_advance(s.rig, 500);
    scene_loaded(&s);
    struct webrig_call *c = scene_get(&s, "/v1/locks/jobs/nightly", 200);
    assert_string_equal(webrig_member(c, "path"), "/jobs/nightly");
    assert_string_equal(webrig_member(c, "kind"), "lock");
    assert_string_equal(webrig_member(c, "nholders"), "1");
    assert_string_equal(webrig_member(c, "nwaiters"), "1");
    assert_string_equal(webrig_member(c, "oldest_wait_ms"), "500");
    assert_non_null(strstr(webrig_body(c),
                           "\"holders\": [{\"node\": \"_c_" UUID
                           "-lock-0000000000\", \"token\": \"1\", \"session\": \"1\", \"role\": "
                           "\"holder\", \"client\": \"clave\", \"host\": \"web1\", \"pid\": 7, "
                           "\"name\": \"nightly\", \"command\": \"./x\", \"text\": null, "
                           "\"traceparent\": "
                           "\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\", "
                           "\"revocable\": true, \"asked\": false, \"since\": \"1970-01-01T00:"));
    assert_string_equal(webrig_member(c, "traceparent"),
                        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_non_null(strstr(webrig_body(c), "\"client\": \"curator\""));
    assert_non_null(strstr(webrig_body(c), "\"text\": \"10.0.0.7\""));
    webrig_end(c);
    webrig_end(scene_get(&s, "/v1/locks/jobs", 404));
}

/* Candidates' nodes hold an id and nothing else, as in Curator. */
TEST(a_nodes_name_says_whose_it_is)
{
    static const struct {
        const char *path, *client;
    } cases[] = {
        {"/a/_c_01234567-89ab-4def-8123-456789abcdef-latch-0000000000", "curator"},
        {"/b/_c_01234567-89ab-8def-8123-456789abcdef-latch-0000000000", "clave"},
        {"/c/_c_01234567-89ab-8def-8123-456789abcdef-lock-0000000000", "clave"},
        {"/d/0123456789abcdef0123456789abcdef__lock__0000000000", "kazoo"},
        {"/e/lock-0000000000", "other"},
        {"/f/_c_lock-0000000000", "curator"},
    };
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char target[64];
        scene_add(&s, cases[i].path, "10.0.0.7");
        snprintf(target, sizeof target, "/v1/locks/%c", cases[i].path[1]);
        CLOSED_BY(webrig_ended) struct webrig_call *c = scene_get(&s, target, 200);
        assert_string_equal(webrig_member(c, "client"), cases[i].client);
    }
}

static void held_since(struct scene *s, const char *target, const char *since, const char *by)
{
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_get(s, target, 200);
    assert_string_equal(webrig_member(c, "held_since"), since);
    assert_string_equal(webrig_member(c, "held_since_by"), by);
}

/* A place's ctime is not the time of its grant. */
TEST(since_when_it_is_held_is_told_if_it_is_known)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/before/_c_" UUID "-lock-0000000000", "10.0.0.7");
    scene_add(&s, "/says/_c_" UUID "-lock-0000000000", "clave/1\ngranted=ctime\n");
    scene_add(&s, "/digits/_c_" UUID "-lock-0000000000",
              "clave/1\ngranted=mtime\ntext=x\ngranted-at=2000\nasked=1\n");
    scene_add(&s, "/a/_c_" UUID "-lock-0000000000", "");
    scene_add(&s, "/w/_c_" UUID "-lock-0000000000", "");
    scene_loaded(&s);
    held_since(&s, "/v1/locks/before", "null", "null");
    held_since(&s, "/v1/locks/says", "1970-01-01T00:16:41.000Z", "node");
    held_since(&s, "/v1/locks/digits", "1970-01-01T00:00:02.000Z", "node");
    webrig_advance(s.rig, 1000);
    scene_add(&s, "/new/_c_" UUID "-lock-0000000000", "");
    scene_add(&s, "/a/_c_" UUID "-lock-0000000001", "");
    scene_add(&s, "/w/_c_" UUID "-lock-0000000001", "clave/1\ngranted=ctime\n");
    webrig_advance(s.rig, 1000);
    scene_add(&s, "/b/_c_" UUID "-lock-0000000001", "");
    clave__observe_gone(s.o, "/a/_c_" UUID "-lock-0000000000");
    clave__observe_gone(s.o, "/w/_c_" UUID "-lock-0000000000");
    held_since(&s, "/v1/locks/new", "1970-01-01T00:16:42.000Z", "gate");
    held_since(&s, "/v1/locks/a", "1970-01-01T00:16:43.000Z", "gate");
    held_since(&s, "/v1/locks/w", "1970-01-01T00:16:43.000Z", "gate"); /* it is still to say so */
    clave__observe_stale(s.o); /* what happened meanwhile is told in any order */
    clave__observe_gone(s.o, "/a/_c_" UUID "-lock-0000000001");
    scene_add(&s, "/a/_c_" UUID "-lock-0000000002", "");
    scene_loaded(&s);
    held_since(&s, "/v1/locks/a", "null", "null");
    held_since(&s, "/v1/locks/new", "1970-01-01T00:16:42.000Z", "gate");
}

TEST(a_list_has_pages_and_a_prefix)
{
    CLOSED_BY(scene_close) struct scene s;
    char path[96];
    scene_open(&s);
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "/a/%d/_c_" UUID "-lock-0000000000", i);
        scene_add(&s, path, "");
    }
    scene_add(&s, "/a-b/_c_" UUID "-lock-0000000000", "");
    scene_add(&s, "/a/s/leases/_c_" UUID "-lease-0000000000", "");
    scene_add(&s, "/a/s/locks/_c_" UUID "-lock-0000000000", "");
    scene_loaded(&s);
    struct webrig_call *c = scene_get(&s, "/v1/locks", 200);
    assert_string_equal(scene_paths(c), "/a-b /a/0 /a/1 /a/2 /a/3 /a/4 /a/s ");
    assert_string_equal(webrig_member(c, "zxid"), "8");
    assert_non_null(strstr(webrig_body(c), "\"next\": null"));
    webrig_end(c);
    c = scene_get(&s, "/v1/locks?prefix=/a&limit=2", 200);
    assert_string_equal(scene_paths(c), "/a/0 /a/1 ");
    assert_string_equal(webrig_member(c, "next"), "/a/1");
    webrig_end(c);
    c = scene_get(&s, "/v1/locks?prefix=/a&limit=4&after=/a/1", 200);
    assert_string_equal(scene_paths(c), "/a/2 /a/3 /a/4 /a/s ");
    assert_non_null(strstr(webrig_body(c), "\"kind\": \"semaphore\""));
    webrig_end(c);
    c = scene_get(&s, "/v1/locks?prefix=/a/3", 200);
    assert_string_equal(scene_paths(c), "/a/3 ");
    webrig_end(c);
    c = scene_get(&s, "/v1/locks?prefix=/b", 200);
    assert_string_equal(scene_paths(c), "");
    webrig_end(c);
    webrig_end(scene_get(&s, "/v1/locks?limit=0", 400));
    webrig_end(scene_get(&s, "/v1/locks?limit=x", 400));
    webrig_end(scene_get(&s, "/v1/locks?prefix=a", 400));
}

/* In pieces; the list shows twenty of them. */
TEST(a_long_queue_is_shown_whole)
{
    enum { PLACES = 2000 };
    CLOSED_BY(scene_close) struct scene s;
    char path[96];
    scene_open(&s);
    for (int i = 0; i < PLACES; i++) {
        snprintf(path, sizeof path, "/a/_c_" UUID "-lock-%010d", i);
        scene_add(&s, path, "");
    }
    scene_loaded(&s);
    struct webrig_call *c = scene_get(&s, "/v1/locks/a", 200);
    assert_true(c->done);
    assert_int_equal(scene_count(webrig_body(c), "\"node\": "), PLACES);
    assert_int_equal(scene_count(webrig_body(c), "\"role\": \"waiting\""), PLACES - 1);
    static const char end[] = "}], \"left_over\": []}";
    assert_string_equal(webrig_body(c) + strlen(webrig_body(c)) - strlen(end), end);
    webrig_end(c);
    c = scene_get(&s, "/v1/locks", 200);
    assert_int_equal(scene_count(webrig_body(c), "\"node\": "), 21);
    assert_string_equal(webrig_member(c, "nwaiters"), "1999");
    webrig_end(c);
}

TEST(requests_wait_for_the_first_load)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_add(&s, "/a/_c_" UUID "-lock-0000000000", "");
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(s.rig, "GET", "/v1/locks/a", NULL, NULL);
    struct webrig_call *gone = webrig_request(s.rig, "GET", "/v1/locks", NULL, NULL);
    assert_false(c->answered);
    webrig_end(gone);
    scene_loaded(&s);
    assert_true(c->answered);
    assert_int_equal(c->status, 200);
}

/* Each looks at more than two of its pieces may before there is something to write. */
TEST(lists_of_which_a_piece_is_empty_are_whole)
{
    enum { ELECTIONS = 5100 };
    static const char *const targets[] = {"/v1/locks?prefix=/a", "/v1/elections?prefix=/a",
                                          "/v1/history?path=/z&since=0"};
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    for (int i = 0; i < ELECTIONS; i++) {
        char path[96];
        snprintf(path, sizeof path, "/a-%d/" LATCH1, i);
        scene_add(&s, path, "");
    }
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        CLOSED_BY(webrig_ended) struct webrig_call *c = scene_get(&s, targets[i], 200);
        assert_true(c->done);
    }
}

TEST(not_all_may_wait_for_the_first_load)
{
    enum { MOST = 1000 };
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    struct webrig_call *waits = webrig_request(s.rig, "GET", "/v1/locks", NULL, NULL);
    struct webrig_call *gone = webrig_request(s.rig, "GET", "/v1/locks", NULL, NULL);
    assert_false(waits->answered || gone->answered);
    s.o->nwaiting += MOST - 2; /* as if so many others did */
    struct webrig_call *c = scene_get(&s, "/v1/elections", 503);
    assert_string_equal(webrig_header(c, "Retry-After"), "2");
    webrig_end(c);
    webrig_end(gone);
    c = webrig_request(s.rig, "GET", "/v1/locks", NULL, NULL);
    assert_false(c->answered);
    s.o->nwaiting -= MOST - 2;
    scene_loaded(&s);
    assert_true(waits->answered && c->answered);
    assert_int_equal(s.o->nwaiting, 0);
    webrig_end(waits);
    webrig_end(c);
}
