/* Watches: armed by an answer, fired once, owed to every new connection, forgotten when
 * nobody wants them. */
#include "lib/failmem.h"
#include "lib/fake_server.h"
#include "lib/unit.h"

enum { T = FAKE_TIMEOUT };

struct seen {
    clave_async_watch *w;
    unsigned events;
    clave_event_type type;
    char path[64];
    const char *next;   /* what its callback watches then */
    struct seen *other; /* and what it tries to use as well */
    unsigned refused;
};

static void on_event(clave_async_client *c, clave_async_watch *w, const clave_event *ev, void *arg)
{
    struct seen *seen = arg;
    assert_ptr_equal(w, seen->w);
    assert_false(clave_async_watch_is_armed(w));
    seen->events++;
    seen->type = ev->type;
    if (seen->next)
        assert_int_equal(clave_async_get(c, seen->next, w, NULL, NULL), CLAVE_OK);
    if (seen->other)
        seen->refused += clave_async_get(c, "/other", seen->other->w, NULL, NULL) == CLAVE_EINVAL;
    snprintf(seen->path, sizeof seen->path, "%s", ev->path);
}

static void watch(struct fake_server *s, struct seen *seen)
{
    *seen = (struct seen){0};
    assert_int_equal(clave_async_watch_new(&seen->w, s->c, on_event, seen), CLAVE_OK);
}

static void start(struct fake_server *s, struct seen *seen, size_t n)
{
    fake_open(s, NULL);
    fake_connect(s, true);
    for (size_t i = 0; i < n; i++)
        watch(s, &seen[i]);
}

static void finish(struct fake_server *s, struct seen *seen, size_t n)
{
    for (size_t i = 0; i < n; i++)
        clave_async_watch_free(seen[i].w);
    fake_close(s);
}

enum ask { ASK_GET, ASK_EXISTS, ASK_CHILDREN };

/* Gives the watch to a request, which is answered so. */
static void arm(struct fake_server *s, struct seen *seen, enum ask ask, const char *path,
                clave_err err)
{
    static const int32_t ops[] = {OP_GET_DATA, OP_EXISTS, OP_GET_CHILDREN2};
    struct wire_reply m = {.data = JBYTES_NULL};
    clave_err submitted;
    if (ask == ASK_GET)
        submitted = clave_async_get(s->c, path, seen->w, NULL, NULL);
    else if (ask == ASK_EXISTS)
        submitted = clave_async_exists(s->c, path, seen->w, NULL, NULL);
    else
        submitted = clave_async_children(s->c, path, seen->w, NULL, NULL);
    assert_int_equal(submitted, CLAVE_OK);
    assert_true(clave_async_watch_is_armed(seen->w));
    assert_true(fake_expect(s, ops[ask])->body.read.watch);
    fake_answer(s, err, &m);
}

TEST(events_go_to_those_they_concern)
{
    static const struct {
        int32_t type;
        bool fires[4]; /* get, exists of a node, exists of none, children */
    } cases[] = {{EVENT_CREATED, {true, true, true, false}},
                 {EVENT_DATA_CHANGED, {true, true, true, false}},
                 {EVENT_DELETED, {true, true, true, true}},
                 {EVENT_CHILDREN_CHANGED, {false, false, false, true}}};
    for (size_t i = 0; i < 4; i++) {
        struct fake_server s;
        struct seen seen[5];
        start(&s, seen, 5);
        arm(&s, &seen[0], ASK_GET, "/a", CLAVE_OK);
        arm(&s, &seen[1], ASK_EXISTS, "/a", CLAVE_OK);
        arm(&s, &seen[2], ASK_EXISTS, "/a", CLAVE_ENONODE);
        arm(&s, &seen[3], ASK_CHILDREN, "/a", CLAVE_OK);
        arm(&s, &seen[4], ASK_GET, "/ab", CLAVE_OK);
        fake_event(&s, cases[i].type, "/a");
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(seen[k].events, cases[i].fires[k]);
            assert_int_equal(clave_async_watch_is_armed(seen[k].w), !cases[i].fires[k]);
            if (seen[k].events) {
                assert_int_equal(seen[k].type, cases[i].type);
                assert_string_equal(seen[k].path, "/a");
            }
        }
        assert_int_equal(seen[4].events, 0);
        fake_event(&s, cases[i].type, "/a"); /* one-shot */
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(seen[k].events, cases[i].fires[k]);
        finish(&s, seen, 5);
    }
}

TEST(a_request_that_fails_leaves_its_watch_idle)
{
    struct fake_server s;
    struct seen seen[2];
    start(&s, seen, 2);
    arm(&s, &seen[0], ASK_GET, "/a", CLAVE_ENONODE);
    arm(&s, &seen[1], ASK_EXISTS, "/a", CLAVE_ENOAUTH);
    assert_false(clave_async_watch_is_armed(seen[0].w));
    assert_false(clave_async_watch_is_armed(seen[1].w));
    arm(&s, &seen[0], ASK_GET, "/b", CLAVE_OK);
    assert_int_equal(clave_async_get(s.c, "/c", seen[0].w, NULL, NULL), CLAVE_EINVAL);
    finish(&s, seen, 2);
}

/* Counts the paths of a vector, and looks for one. */
static bool has(struct jvec v, const char *path)
{
    struct jreader r = clave__jvec_reader(v);
    for (int32_t i = 0; i < v.count; i++)
        if (clave__jbytes_eq(clave__jget_bytes(&r), clave__jbytes(path)))
            return true;
    return false;
}

TEST(every_new_connection_hears_of_them_first)
{
    struct fake_server s;
    struct seen seen[4];
    start(&s, seen, 4);
    arm(&s, &seen[0], ASK_GET, "/a", CLAVE_OK);
    arm(&s, &seen[1], ASK_EXISTS, "/b", CLAVE_ENONODE);
    arm(&s, &seen[2], ASK_CHILDREN, "/c", CLAVE_OK);
    arm(&s, &seen[3], ASK_EXISTS, "/d", CLAVE_OK);
    int64_t zxid = s.zxid;
    fake_hang_up(&s);
    assert_int_equal(clave_async_exists(s.c, "/x", NULL, NULL, NULL), CLAVE_OK);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    const struct wire_set_watches *w = &fake_expect(&s, OP_SET_WATCHES)->body.watches;
    assert_int_equal(s.q.xid, XID_SET_WATCHES);
    assert_int_equal(w->relative_zxid, zxid);
    assert_int_equal(w->data.count, 2);
    assert_true(has(w->data, "/a") && has(w->data, "/d"));
    assert_int_equal(w->exist.count, 1);
    assert_true(has(w->exist, "/b"));
    assert_int_equal(w->child.count, 1);
    assert_true(has(w->child, "/c"));
    fake_expect(&s, OP_EXISTS);
    /* What happened meanwhile comes before the answer. */
    fake_event(&s, EVENT_DELETED, "/a");
    assert_int_equal(seen[0].events, 1);
    finish(&s, seen, 4);
}

TEST(many_are_told_in_frames_of_a_bounded_size)
{
    enum { MANY = 5000 };
    static struct seen seen[MANY];
    struct fake_server s;
    char path[64];
    int32_t told = 0, frames = 0;
    start(&s, seen, MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/some/rather/long/directory/for/watches/node-%05d", i);
        arm(&s, &seen[i], ASK_GET, path, CLAVE_OK);
    }
    fake_hang_up(&s);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    while (told < MANY) {
        told += fake_expect(&s, OP_SET_WATCHES)->body.watches.data.count;
        frames++;
        assert_true(clave__buf_len(&s.seen) < 140 * 1024);
    }
    assert_int_equal(told, MANY);
    assert_in_range(frames, 2, 4);
    fake_config(&s, true);
    finish(&s, seen, MANY);
}

TEST(the_end_of_the_session_is_an_event)
{
    struct fake_server s;
    struct seen seen[2];
    start(&s, seen, 2);
    arm(&s, &seen[0], ASK_GET, "/a", CLAVE_OK);
    assert_int_equal(clave_async_get(s.c, "/b", seen[1].w, NULL, NULL),
                     CLAVE_OK); /* not answered */
    fake_hang_up(&s);
    fake_dial(&s);
    fake_answer_handshake(&s, 0, 0, false);
    assert_int_equal(seen[0].events, 1);
    assert_int_equal(seen[0].type, CLAVE_EVENT_LOST);
    assert_string_equal(seen[0].path, "/a");
    assert_int_equal(seen[1].events, 0);
    assert_false(clave_async_watch_is_armed(seen[1].w));
    finish(&s, seen, 2);
}

/* The disarmed watch left its entry to one that was still asked for, which then armed nothing. */
TEST(an_entry_left_to_a_request_is_removed_when_it_fails)
{
    for (int freed = 0; freed < 2; freed++) {
        struct fake_server s;
        struct seen seen[2];
        start(&s, seen, 2);
        arm(&s, &seen[0], ASK_EXISTS, "/a", CLAVE_ENONODE);
        assert_int_equal(clave_async_get(s.c, "/a", seen[1].w, NULL, NULL), CLAVE_OK);
        fake_expect(&s, OP_GET_DATA);
        clave_async_watch_disarm(seen[0].w);
        assert_true(fake_is_quiet(&s));
        if (freed)
            clave_async_watch_disarm(seen[1].w);
        fake_answer(&s, CLAVE_ENONODE, NULL);
        assert_false(clave_async_watch_is_armed(seen[1].w));
        assert_int_equal(fake_expect(&s, OP_REMOVE_WATCHES)->body.typed.type, WATCHER_DATA);
        finish(&s, seen, 2);
    }
}

TEST(the_server_is_told_when_nobody_watches_any_more)
{
    struct fake_server s;
    struct seen seen[3];
    start(&s, seen, 3);
    arm(&s, &seen[0], ASK_GET, "/a", CLAVE_OK);
    arm(&s, &seen[1], ASK_EXISTS, "/a", CLAVE_OK);
    arm(&s, &seen[2], ASK_CHILDREN, "/a", CLAVE_OK);
    clave_async_watch_disarm(seen[0].w); /* another one still watches its data */
    assert_true(fake_is_quiet(&s));
    clave_async_watch_disarm(seen[1].w);
    assert_int_equal(fake_expect(&s, OP_REMOVE_WATCHES)->body.typed.type, WATCHER_DATA);
    fake_answer(&s, CLAVE_OK, NULL);
    clave_async_watch_disarm(seen[2].w);
    assert_int_equal(fake_expect(&s, OP_REMOVE_WATCHES)->body.typed.type, WATCHER_CHILDREN);
    fake_answer(&s, CLAVE_ENOWATCHER, NULL);
    finish(&s, seen, 3);
}

static void arm_recursive(struct fake_server *s, struct seen *seen)
{
    const struct wire_reply m = {0};
    const clave_watch_mode mode = CLAVE_WATCH_PERSISTENT_RECURSIVE;
    assert_int_equal(clave_async_add_watch(s->c, "/a", mode, seen->w, NULL, NULL), CLAVE_OK);
    fake_expect(s, OP_ADD_WATCH);
    fake_answer(s, CLAVE_OK, &m);
}

static void expect_removal(struct fake_server *s, int32_t type)
{
    assert_int_equal(fake_expect(s, OP_REMOVE_WATCHES)->body.typed.type, type);
    fake_answer(s, CLAVE_OK, NULL);
}

/* A server before 3.9 would lose the persistent watch with the other one. */
TEST(what_was_left_beside_a_persistent_watch_goes_with_it)
{
    struct fake_server s;
    struct seen seen[3];
    start(&s, seen, 3);
    arm_recursive(&s, &seen[0]);
    arm(&s, &seen[1], ASK_EXISTS, "/a", CLAVE_OK);
    arm(&s, &seen[2], ASK_CHILDREN, "/a", CLAVE_OK);
    clave_async_watch_disarm(seen[1].w);
    assert_true(fake_is_quiet(&s));
    clave_async_watch_disarm(seen[0].w);
    expect_removal(&s, WATCHER_PERSISTENT_RECURSIVE);
    expect_removal(&s, WATCHER_DATA);
    assert_true(fake_is_quiet(&s)); /* the children are watched still */
    clave_async_watch_disarm(seen[2].w);
    expect_removal(&s, WATCHER_CHILDREN);
    finish(&s, seen, 3);
}

/* Given up while its request is under way: the server is asked to remove it after the answer. */
TEST(a_watch_freed_too_early_is_taken_back)
{
    struct fake_server s;
    struct seen seen[1];
    struct wire_reply m = {.data = JBYTES_NULL};
    start(&s, seen, 1);
    assert_int_equal(clave_async_get(s.c, "/a", seen[0].w, NULL, NULL), CLAVE_OK);
    clave_async_watch_free(seen[0].w);
    fake_expect(&s, OP_GET_DATA);
    assert_true(fake_is_quiet(&s));
    fake_answer(&s, CLAVE_OK, &m);
    fake_expect(&s, OP_REMOVE_WATCHES);
    finish(&s, seen, 0);
}

/* ---- a server that refuses them -------------------------------------------------------- */

/* A connection that comes back with a watch, to the setWatches; with an identity its answer comes
 * first. */
static void come_back(struct fake_server *s, bool with_identity)
{
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    if (with_identity) {
        fake_expect(s, OP_AUTH);
        fake_answer(s, CLAVE_OK, NULL);
    }
    fake_expect(s, OP_SET_WATCHES);
}

/* Its watches are not there, so nobody may rely on this connection. */
TEST(a_server_that_refuses_them_is_left)
{
    static const clave_err errs[] = {CLAVE_EUNIMPLEMENTED, CLAVE_EMARSHALLING, CLAVE_ESYSTEM,
                                     CLAVE_ENOAUTH, CLAVE_ESESSIONMOVED};
    for (size_t i = 0; i < sizeof errs / sizeof *errs; i++) {
        struct fake_server s;
        struct seen seen[1];
        start(&s, seen, 1);
        arm(&s, &seen[0], ASK_GET, "/a", CLAVE_OK);
        fake_hang_up(&s);
        come_back(&s, false);
        s.told = s.nstates;
        fake_answer(&s, errs[i], NULL);
        assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
        fake_expect_state(&s, CLAVE_STATE_SUSPENDED, errs[i]);
        assert_non_null(strstr(clave_async_client_errmsg(s.c), "script:1"));
        assert_non_null(strstr(clave_async_client_errmsg(s.c), "watches"));
        fake_hang_up(&s);
        fake_advance_to(&s, clave_async_client_deadline(s.c));
        come_back(&s, false); /* it is owed still */
        fake_answer(&s, CLAVE_OK, NULL);
        fake_config(&s, true);
        fake_event(&s, EVENT_DELETED, "/a");
        assert_int_equal(seen[0].events, 1);
        finish(&s, seen, 1);
    }
}

/* One that has lost the session says so here too. */
TEST(a_session_that_has_expired_is_lost_at_once)
{
    struct fake_server s;
    struct seen seen[1];
    start(&s, seen, 1);
    arm(&s, &seen[0], ASK_GET, "/a", CLAVE_OK);
    fake_hang_up(&s);
    come_back(&s, false);
    s.told = s.nstates;
    fake_answer(&s, CLAVE_EEXPIRED, NULL);
    fake_expect_state(&s, CLAVE_STATE_SUSPENDED, CLAVE_EEXPIRED);
    fake_expect_state(&s, CLAVE_STATE_LOST, CLAVE_EEXPIRED);
    assert_int_equal(seen[0].type, CLAVE_EVENT_LOST);
    finish(&s, seen, 1);
}

/* How many dials there are in two seconds when every host refuses them. */
static unsigned dials_when_refused(bool with_identity)
{
    struct fake_server s;
    struct seen seen[1];
    unsigned dials = 0;
    fake_open(&s, &(clave_client_options){.hosts = "a:1,b:2,c:3"});
    if (with_identity)
        assert_int_equal(clave_async_add_auth(s.c, "digest", "u:p", 3, NULL, NULL), CLAVE_OK);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    if (with_identity) {
        fake_expect(&s, OP_AUTH);
        fake_answer(&s, CLAVE_OK, NULL);
    }
    fake_config(&s, true);
    watch(&s, &seen[0]);
    arm(&s, &seen[0], ASK_GET, "/a", CLAVE_OK);
    fake_hang_up(&s);
    for (int64_t end = s.now + 2000; s.now < end && dials < 1000;) {
        s.told = s.nstates = 0;
        if (clave_async_client_wants(s.c) != CLAVE_WANT_DIAL) {
            fake_advance_to(&s, clave_async_client_deadline(s.c));
            continue;
        }
        dials++;
        come_back(&s, with_identity);
        fake_answer(&s, CLAVE_EUNIMPLEMENTED, NULL);
        fake_hang_up(&s);
    }
    finish(&s, seen, 1);
    return dials;
}

/* Refusing is a failure of the host, whatever it has answered before: there are pauses, and they
 * grow. */
TEST(those_that_always_refuse_are_not_dialled_in_a_loop)
{
    assert_in_range(dials_when_refused(false), 6, 30);
    assert_in_range(dials_when_refused(true), 6, 30);
}

/* Of several setWatches the first was taken: all are owed to the next server. */
TEST(of_a_batch_refused_in_part_all_are_owed_again)
{
    enum { MANY = 5000 };
    static struct seen seen[MANY];
    struct fake_server s;
    char path[64];
    int32_t told = 0;
    start(&s, seen, MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/some/rather/long/directory/for/watches/node-%05d", i);
        arm(&s, &seen[i], ASK_GET, path, CLAVE_OK);
    }
    int64_t zxid = s.zxid;
    fake_hang_up(&s);
    come_back(&s, false);
    fake_answer(&s, CLAVE_OK, NULL);
    fake_expect(&s, OP_SET_WATCHES);
    fake_answer(&s, CLAVE_EUNIMPLEMENTED, NULL);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    fake_hang_up(&s);
    assert_int_equal(clave_async_client_wants(s.c), 0); /* a pause: it counts as a failure */
    fake_advance_to(&s, clave_async_client_deadline(s.c));
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    while (told < MANY) {
        const struct wire_set_watches *w = &fake_expect(&s, OP_SET_WATCHES)->body.watches;
        assert_int_equal(w->relative_zxid, zxid);
        told += w->data.count;
    }
    assert_int_equal(told, MANY);
    finish(&s, seen, MANY);
}

/* An answer to what was never asked. */
TEST(an_answer_to_no_set_watches_is_none_of_ours)
{
    CLOSED_BY(fake_close) struct fake_server s;
    start(&s, NULL, 0);
    fake_answer_to(&s, XID_SET_WATCHES, OP_SET_WATCHES, CLAVE_OK, NULL);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
}

/* The path of an event lay in a buffer that a longer path, watched by the callback, moved. */
TEST(the_path_of_an_event_outlives_what_its_callback_asks_for)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct seen seen;
    char longer[2000] = "/";
    memset(longer + 1, 'x', sizeof longer - 2);
    fake_open(&s, NULL);
    fake_connect(&s, true);
    watch(&s, &seen);
    arm(&s, &seen, ASK_GET, "/a", CLAVE_OK);
    seen.next = longer;
    fake_event(&s, EVENT_DATA_CHANGED, "/a");
    assert_int_equal(seen.events, 1);
    assert_string_equal(seen.path, "/a");
    seen.next = NULL;
    fake_expect(&s, OP_GET_DATA);
    fake_answer(&s, CLAVE_OK, &(struct wire_reply){.data = JBYTES_NULL});
    fake_event(&s, EVENT_DATA_CHANGED, longer);
    assert_int_equal(seen.events, 2);
    clave_async_watch_free(seen.w);
}

/* One change is the event of two watches, and the first callback wants to use both anew. The
 * second has its event still to come: it would have been taken for one of its next path. */
TEST_CONNECTED(a_watch_is_in_use_until_its_event_was_delivered)
{
    struct seen a, b;
    watch(s, &a);
    watch(s, &b);
    arm(s, &a, ASK_GET, "/a", CLAVE_OK);
    arm(s, &b, ASK_GET, "/a", CLAVE_OK);
    a.other = &b;
    b.other = &a;
    fake_event(s, EVENT_DATA_CHANGED, "/a");
    assert_int_equal(a.events + b.events, 2);
    assert_int_equal(a.refused + b.refused, 1);
    assert_string_equal(a.path, "/a");
    assert_string_equal(b.path, "/a");
    clave_async_watch_free(a.w);
    clave_async_watch_free(b.w);
}

/* A request that fails leaves its watch idle, and no memory for its answer is a failure. */
TEST(a_listing_without_memory_leaves_its_watch_idle)
{
    static const char *const names[] = {"one", "two", "three"};
    struct failmem mem;
    struct fake_server s;
    struct seen seen;
    struct outcome got = {0};
    struct wire_reply m = {.names = fake_names(names, 3)};
    failmem_init(&mem);
    clave_client_options o = {.mem = &mem.mem};
    fake_open(&s, &o);
    fake_connect(&s, true);
    watch(&s, &seen);
    assert_int_equal(clave_async_children(s.c, "/a", seen.w, outcome_cb, &got), CLAVE_OK);
    fake_expect(&s, OP_GET_CHILDREN2);
    failmem_arm(&mem, 1, 1);
    fake_answer(&s, CLAVE_OK, &m);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_ENOMEM);
    assert_false(clave_async_watch_is_armed(seen.w));
    assert_int_equal(fake_expect(&s, OP_REMOVE_WATCHES)->body.typed.type, WATCHER_CHILDREN);
    clave_async_watch_free(seen.w);
    fake_close(&s);
    assert_int_equal(mem.live, 0);
}
