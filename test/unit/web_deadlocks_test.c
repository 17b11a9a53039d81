/* Deadlocks at /v1/deadlocks, and their events. */
#include "lib/observe_scene.h"
#include "lib/unit.h"

TEST(a_deadlock_is_found_while_it_lasts)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    struct webrig_call *c = scene_follow(&s, "/v1/events", NULL);
    scene_add_of(&s, 7, "/a/_c_" UUID "-lock-0000000000", "clave/1\nhost=web1\npid=1\n");
    scene_add_of(&s, 8, "/b/_c_" UUID "-lock-0000000000", "clave/1\nhost=web2\npid=2\n");
    scene_add_of(&s, 8, "/a/_c_" UUID "-lock-0000000001", "clave/1\nhost=web2\npid=2\n");
    webrig_advance(s.rig, 200);
    assert_null(strstr(scene_events(c), "deadlock"));
    scene_add_of(&s, 9, "/b/_c_" UUID "-lock-0000000001", "");
    scene_add_of(&s, 7, "/b/_c_" UUID "-lock-0000000002", "clave/1\nhost=web1\npid=1\n");
    webrig_advance(s.rig, 120);
    assert_string_equal(strstr(scene_events(c), "deadlock"), "deadlock ");
    webrig_end(c);
    c = scene_get(&s, "/v1/deadlocks", 200);
    assert_string_equal(webrig_member(c, "text"),
                        "web1 pid 1 waits for /b behind web2 pid 2, who waits for /a behind "
                        "web1 pid 1");
    /* Another thread of either session may hold what it has. */
    assert_non_null(strstr(webrig_body(c), "\"certain\": false"));
    assert_string_equal(webrig_member(c, "node"), "/b/_c_" UUID "-lock-0000000002");
    assert_string_equal(webrig_member(c, "blocker"), "/b/_c_" UUID "-lock-0000000000");
    assert_string_equal(webrig_member(c, "identity"), "web1 pid 1");
    webrig_end(c);
    webrig_end(scene_get(&s, "/v1/deadlocks?prefix=/b", 200));
    clave__observe_gone(s.o, "/b/_c_" UUID "-lock-0000000002");
    webrig_advance(s.rig, 20);
    c = scene_get(&s, "/v1/deadlocks", 200);
    assert_string_equal(webrig_body(c), "{\"deadlocks\": [], \"complete\": true, \"source\": "
                                        "\"copy\", \"current\": true, \"age_ms\": 0}");
    webrig_end(c);
    c = scene_get(&s, "/v1/deadlocks?prefix=/x", 200);
    assert_string_equal(webrig_body(c), "{\"deadlocks\": [], \"complete\": true, \"source\": "
                                        "\"copy\", \"current\": true, \"age_ms\": 0}");
    webrig_end(c);
}

/* Its text names all of its locks, so it is for those who may see all of them. */
TEST(a_deadlock_is_told_to_who_may_see_its_locks)
{
    static const struct web_grant below_a[] = {{WEB_READ, "/a"}};
    static const struct web_grant below_b[] = {{WEB_READ, "/b"}};
    static const struct web_grant both[] = {{WEB_READ, "/a"}, {WEB_READ, "/b"}};
    static const struct web_user users[] = {
        {.token = "ann", .uid = -1, .grants = below_a, .ngrants = 1},
        {.token = "cat", .uid = -1, .grants = below_b, .ngrants = 1},
        {.token = "bob", .uid = -1, .grants = both, .ngrants = 2}};
    static const struct web_access access = {.users = users, .nusers = 3, .owner_uid = -1};
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    clave__web_set_access(s.rig->web, &access);
    struct webrig_call *ann =
        webrig_request(s.rig, "GET", "/v1/events", "Authorization: Bearer ann", NULL);
    struct webrig_call *cat =
        webrig_request(s.rig, "GET", "/v1/events", "Authorization: Bearer cat", NULL);
    struct webrig_call *bob =
        webrig_request(s.rig, "GET", "/v1/events", "Authorization: Bearer bob", NULL);
    scene_add_of(&s, 9, "/a/_c_" UUID "-lock-0000000000", "");
    scene_add_of(&s, 7, "/a/_c_" UUID "-lock-0000000001", "");
    scene_add_of(&s, 7, "/b/_c_" UUID "-lock-0000000000", "");
    scene_add_of(&s, 9, "/b/_c_" UUID "-lock-0000000001", "");
    webrig_advance(s.rig, 300);
    assert_int_equal(s.o->waits.nfound, 1);
    assert_null(strstr(webrig_body(ann), "/b"));
    assert_null(strstr(webrig_body(cat), "/a"));
    assert_non_null(strstr(webrig_body(bob), "event: deadlock"));
    assert_null(strstr(webrig_body(bob), "there is no deadlock"));
    /* That there is none any more names no lock: whoever was told of one is told that, too. */
    clave__observe_gone(s.o, "/b/_c_" UUID "-lock-0000000001");
    webrig_advance(s.rig, 300);
    assert_int_equal(s.o->waits.nfound, 0);
    assert_non_null(strstr(webrig_body(bob), "there is no deadlock"));
    webrig_end(ann);
    webrig_end(cat);
    webrig_end(bob);
}

TEST(a_semaphore_can_be_part_of_a_deadlock)
{
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    scene_loaded(&s);
    scene_add_of(&s, 7, "/s/leases/_c_" UUID "-lease-0000000000", "clave/1\nlimit=1\n");
    scene_add_of(&s, 8, "/a/_c_" UUID "-lock-0000000000", "");
    scene_add_of(&s, 7, "/a/_c_" UUID "-lock-0000000001", "");
    scene_add_of(&s, 8, "/s/locks/_c_" UUID "-lock-0000000000", "clave/1\nlimit=1\n");
    webrig_advance(s.rig, 200);
    assert_int_equal(s.o->waits.nfound, 0);
    scene_add_of(&s, 8, "/s/leases/_c_" UUID "-lease-0000000001", "clave/1\nlimit=1\n");
    webrig_advance(s.rig, 200);
    assert_int_equal(s.o->waits.nfound, 1);
}

/* Each owner here has named itself, and waits with its only thread; and then one of two has. */
TEST(only_owners_that_certainly_wait_count)
{
    static const struct {
        const char *other;
        bool certain;
    } cases[] = {{"clave/1\nowner=y\n", true}, {"", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(scene_close) struct scene s;
        scene_open(&s);
        scene_loaded(&s);
        struct webrig_call *follower = scene_follow(&s, "/v1/events", NULL);
        scene_add_of(&s, 7, "/a/_c_" UUID "-lock-0000000000", "clave/1\nowner=x\n");
        scene_add_of(&s, 8, "/b/_c_" UUID "-lock-0000000000", cases[i].other);
        scene_add_of(&s, 8, "/a/_c_" UUID "-lock-0000000001", cases[i].other);
        scene_add_of(&s, 9, "/b/_c_" UUID "-lock-0000000001", "clave/1\nowner=x\n");
        webrig_advance(s.rig, 200);
        const char *told = strstr(webrig_body(follower), "event: deadlock");
        assert_non_null(told);
        assert_non_null(
            strstr(told, cases[i].certain ? "\"certain\": true" : "\"certain\": false"));
        webrig_end(follower);
        assert_int_equal(s.o->waits.nfound, 1);
        assert_int_equal(s.o->waits.ncertain, cases[i].certain);
        assert_int_equal(s.o->waits.total, cases[i].certain);
        CLOSED_BY(webrig_ended) struct webrig_call *c = scene_get(&s, "/metrics", 200);
        assert_int_equal(scene_count(webrig_body(c), "\nclave_deadlocks 1\n"), cases[i].certain);
        assert_int_equal(scene_count(webrig_body(c), "\nclave_deadlocks_possible 1\n"),
                         !cases[i].certain);
    }
}
