/* What was before the gate: a log's transactions, put in front of what the gate sees itself. */
#include "clave/async/mutex.h"
#include "lib/observe_scene.h"
#include "lib/unit.h"
#include "observe/lock_replay.h"

#define LOCK1 "_c_" UUID "-lock-0000000001"
#define LOCK2 "_c_" UUID "-lock-0000000002"
#define LOCK3 "_c_" UUID "-lock-0000000003"

enum { BEFORE = 500000 }; /* the time of zxid 0 */

static struct lock_replay *replay_new(void)
{
    static struct clave_mem mem;
    struct lock_replay *r;
    mem = clave__mem_or_default(NULL);
    assert_int_equal(clave__lock_replay_new(&r, &mem, 7), CLAVE_OK);
    return r;
}

static void begin_txn(struct lock_replay *r, int64_t zxid, int64_t session)
{
    clave__lock_replay_txn(r, &(struct lock_replay_txn){zxid, BEFORE + zxid, session});
}

static void create(struct lock_replay *r, int64_t zxid, int64_t session, const char *path)
{
    begin_txn(r, zxid, session);
    clave__lock_replay_created(r, path, true, "", 0);
}

static void remove_node(struct lock_replay *r, int64_t zxid, int64_t session, const char *path)
{
    begin_txn(r, zxid, session);
    clave__lock_replay_deleted(r, path);
}

static void close_session(struct lock_replay *r, int64_t zxid, int64_t session, bool expired)
{
    begin_txn(r, zxid, session);
    clave__lock_replay_closed(r, expired);
}

static int64_t saw_loaded; /* the zxid */

static void on_loaded(void *arg, int64_t zxid)
{
    (void)arg;
    saw_loaded = zxid;
}

/* A scene whose driver has something to replay. */
static void replay_scene_open(struct scene *s)
{
    scene_open(s);
    s->rig->env.loaded = on_loaded;
    saw_loaded = 0;
}

/* "zxid time-BEFORE token what cause" of each entry. */
static const char *history_of(struct scene *s, const char *target)
{
    static char text[4096];
    struct webrig_call *c = scene_get(s, target, 200);
    text[0] = '\0';
    for (const char *at = webrig_body(c); (at = strstr(at, "{\"n\": \"")); at++) {
        char zxid[16] = "-", what[16], cause[16] = "-", token[16];
        sscanf(strstr(at, "\"zxid\": "), "\"zxid\": \"%15[0-9]", zxid);
        sscanf(strstr(at, "\"what\": \""), "\"what\": \"%15[^\"]\", \"cause\": \"%15[^\"]", what,
               cause);
        sscanf(strstr(at, "\"token\": \""), "\"token\": \"%15[0-9]", token);
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%s/%s:%s", n ? " " : "", zxid, token, what);
        n = strlen(text);
        if (cause[0] != '-')
            snprintf(text + n, sizeof text - n, ":%s", cause);
    }
    webrig_end(c);
    return text;
}

TEST(a_log_tells_who_was_granted_and_why_it_ended)
{
    CLOSED_BY(scene_close) struct scene s;
    replay_scene_open(&s);
    scene_loaded(&s);
    struct lock_replay *r = replay_new();
    clave_stat stat = {.czxid = 3, .ctime = BEFORE, .ephemeral_owner = 91};
    clave__lock_replay_node(r, "/a/" LOCK1, &stat, "", 0);
    clave__lock_replay_loaded(r);
    create(r, 10, 92, "/a/" LOCK2);
    create(r, 11, 93, "/a/" LOCK3);
    begin_txn(r, 11, 99);
    clave__lock_replay_written(r, "/a/" LOCK1, 1, CLAVE_REVOKE_WORD, strlen(CLAVE_REVOKE_WORD));
    remove_node(r, 12, 91, "/a/" LOCK1);
    remove_node(r, 13, 99, "/a/" LOCK2);
    close_session(r, 14, 93, true);
    create(r, 15, 94, "/b/" LOCK1);
    create(r, 16, 94, "/b/" LOCK2);
    close_session(r, 17, 94, false);
    remove_node(r, 18, 94, "/b/" LOCK1);
    assert_true(clave__lock_replay_is_complete(r));
    clave__web_take_replay(s.rig->web, 0, r);
    assert_string_equal(history_of(&s, "/v1/history?path=/a"),
                        "10/10:queued 11/11:queued 11/3:asked 12/3:ended:released 12/10:granted "
                        "13/10:ended:broken 13/11:granted 14/11:ended:expired");
    assert_string_equal(history_of(&s, "/v1/history?path=/b"),
                        "15/15:queued 15/15:granted 16/16:queued 17/16:ended:closed "
                        "17/15:ended:closed");
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = scene_get(&s, "/v1/history?path=/a&limit=1", 200);
    assert_string_equal(webrig_member(c, "time"), "1970-01-01T00:08:20.014Z");
}

TEST(history_waits_for_what_was_before)
{
    CLOSED_BY(scene_close) struct scene s;
    replay_scene_open(&s);
    struct webrig_call *c = webrig_request(s.rig, "GET", "/v1/history", NULL, NULL);
    s.zxid = 20;
    scene_loaded(&s);
    assert_int_equal(saw_loaded, 20);
    webrig_end(scene_get(&s, "/v1/locks", 200)); /* waits for nothing */
    struct webrig_call *d = webrig_request(s.rig, "GET", "/v1/elections", NULL, NULL);
    assert_false(c->answered || d->answered);
    clave__web_take_replay(s.rig->web, 0, NULL);
    webrig_settle(s.rig);
    assert_true(c->answered && d->answered);
    assert_int_equal(c->status, 200);
    webrig_end(c);
    webrig_end(d);
    clave__observe_clear(s.o); /* nothing is replayed again */
    saw_loaded = 0;
    scene_loaded(&s);
    assert_int_equal(saw_loaded, 0);
    assert_string_equal(history_of(&s, "/v1/history"), "");
}

/* What came before is in front of what was seen meanwhile, and has smaller numbers. */
TEST(numbers_go_on)
{
    CLOSED_BY(scene_close) struct scene s;
    replay_scene_open(&s);
    s.zxid = 20;
    scene_loaded(&s);
    scene_add(&s, "/a/" LOCK3, "");
    struct lock_replay *r = replay_new();
    clave__lock_replay_loaded(r);
    create(r, 10, 92, "/a/" LOCK2);
    remove_node(r, 11, 92, "/a/" LOCK2);
    uint64_t first = s.o->history.last - 1;
    clave__web_take_replay(s.rig->web, 0, r);
    assert_string_equal(history_of(&s, "/v1/history"), "10/10:queued 10/10:granted "
                                                       "11/10:ended:released 21/21:queued "
                                                       "-/21:granted");
    char target[64];
    snprintf(target, sizeof target, "/v1/history?since=%llu", (unsigned long long)first - 2);
    assert_string_equal(history_of(&s, target), "11/10:ended:released 21/21:queued -/21:granted");
    /* Of a history that began before this one, or after it: then the clock was set back. */
    assert_int_equal(scene_count(history_of(&s, "/v1/history?since=20007"), ":"), 6);
    assert_int_equal(scene_count(history_of(&s, "/v1/history?since=99000000000000"), ":"), 6);
}

/* While a tree never rests its load is over before all of it was read. */
TEST(what_is_read_late_is_told_by_the_log_alone)
{
    CLOSED_BY(scene_close) struct scene s;
    replay_scene_open(&s);
    clave__observe_loaded(s.o, 12);
    s.zxid = 10;
    scene_add(&s, "/a/" LOCK2, "");
    struct lock_replay *r = replay_new();
    clave__lock_replay_loaded(r);
    create(r, 10, 92, "/a/" LOCK1);
    create(r, 11, 11, "/a/" LOCK2);
    remove_node(r, 12, 92, "/a/" LOCK1);
    clave__web_take_replay(s.rig->web, 0, r);
    clave__observe_gone(s.o, "/a/" LOCK2);
    webrig_advance(s.rig, 100);
    assert_string_equal(history_of(&s, "/v1/history"),
                        "10/10:queued 10/10:granted 11/11:queued 12/10:ended:released "
                        "12/11:granted -/11:ended:unknown");
}

/* A leader of before the gate goes on, or not; and holders have the time of their grants. */
TEST(terms_from_before_are_shown)
{
    CLOSED_BY(scene_close) struct scene s;
    replay_scene_open(&s);
    s.zxid = 12;
    scene_add(&s, "/e/" LATCH2, "");
    scene_add(&s, "/a/" LOCK2, "");
    scene_loaded(&s);
    struct lock_replay *r = replay_new();
    clave__lock_replay_loaded(r);
    create(r, 10, 92, "/e/" LATCH1);
    create(r, 11, 92, "/f/" LATCH1);
    create(r, 11, 92, "/g/" LATCH1);
    create(r, 12, 92, "/a/" LOCK1);
    create(r, 13, 13, "/e/" LATCH2);
    create(r, 14, 14, "/a/" LOCK2);
    close_session(r, 20, 92, true);
    remove_node(r, 21, 0, "/g"); /* the server itself, as nobody used it any more */
    clave__web_take_replay(s.rig->web, 0, r);
    struct webrig_call *c = scene_get(&s, "/v1/elections/e", 200);
    assert_non_null(strstr(webrig_body(c), "\"terms\": [{\"token\": \"10\", \"from\": "
                                           "\"1970-01-01T00:08:20.010Z\", \"to\": "
                                           "\"1970-01-01T00:08:20.020Z\", \"cause\": \"expired\""));
    assert_int_equal(scene_count(webrig_body(c), "\"cause\": null"), 1);
    assert_int_equal(scene_count(webrig_body(c), "\"from\": "), 2);
    assert_non_null(strstr(webrig_body(c), "\"since\": \"1970-01-01T00:08:20.020Z\""));
    webrig_end(c);
    c = scene_get(&s, "/v1/elections/f", 200);
    assert_string_equal(webrig_member(c, "cause"), "expired");
    webrig_end(c);
    assert_true(clave__election_find(&s.o->elections, "/f")->vacant_since > 0);
    assert_false(clave__election_find(&s.o->elections, "/f")->over);
    assert_true(clave__election_find(&s.o->elections, "/g")->over);
    c = scene_get(&s, "/v1/locks/a", 200);
    assert_string_equal(webrig_member(c, "held_since"), "1970-01-01T00:08:20.020Z");
    webrig_end(c);
}
