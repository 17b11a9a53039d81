/* The cache of trees, and nodes that the client may not read: they are kept by their names. The
 * server tells nothing of them when they come and go. */
#include "lib/cache_play.h"
#include "server/connection/conn.h"
#include "wire/proto.h"

static const clave_acl closed = {CLAVE_PERM_ALL & ~CLAVE_PERM_READ, "world", "anyone"};
static const clave_acl opened = {CLAVE_PERM_ALL, "world", "anyone"};

static void play_create_closed(struct play *y, const char *path)
{
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    o.acls = &closed;
    o.nacls = 1;
    assert_int_equal(clave_async_create(y->p->clients[ACTOR].c, path, "secret", 6, &o, NULL, NULL),
                     CLAVE_OK);
    memnet_settle(y->p);
}

static void play_set_acl(struct play *y, const char *path, const clave_acl *acl)
{
    assert_int_equal(clave_async_set_acl(y->p->clients[ACTOR].c, path, acl, 1, -1, NULL, NULL),
                     CLAVE_OK);
    memnet_settle(y->p);
}

static void play_reconnect(struct play *y)
{
    memnet_cut(y->p, USER);
    memnet_settle(y->p);
    memnet_advance(y->p, PLAY_TIMEOUT / 2);
}

static void assert_unreadable(const struct play *y, const char *path, bool unreadable)
{
    clave_cache_node n;
    assert_int_equal(clave_async_cache_get(y->cache, path, &n), CLAVE_OK);
    assert_int_equal(n.unreadable, unreadable);
    assert_int_equal(n.stat.czxid == 0, unreadable);
    assert_int_equal(n.has_data, !unreadable);
    assert_true(n.data == NULL || !unreadable);
}

enum { REFRESH = 10000 };

static clave_cache_options refreshing(void)
{
    clave_cache_options o = play_options();
    o.refresh_ms = REFRESH;
    return o;
}

static bool visit_nothing(const clave_cache_node *node, void *arg)
{
    (void)arg;
    fail_msg("%s is visited", node->path);
    return false;
}

/* Its name is known; what is below it is not. */
TEST_PLAYED(an_unreadable_node_is_known_by_its_name)
{
    play_create(y, "/t");
    play_create(y, "/t/a");
    play_create_closed(y, "/t/b");
    play_create(y, "/t/b/below");
    play_open(y, "/t", NULL);
    assert_int_equal(y->m.initialized, 1);
    assert_int_equal(y->m.count, 3);
    assert_unreadable(y, "/t/a", false);
    assert_unreadable(y, "/t/b", true);
    assert_int_equal(clave_async_cache_children(y->cache, "/t/b", visit_nothing, NULL),
                     CLAVE_ENOAUTH);
    assert_int_equal(cache_mirror_find(&y->m, "/t")->stat.num_children, 2);
    assert_true(clave_async_cache_status_of(y->cache).complete);
}

/* By a child watch of their parent. */
TEST_PLAYED(unreadable_siblings_come_and_go)
{
    play_create(y, "/t");
    play_create_closed(y, "/t/1");
    play_open(y, "/t", NULL);
    play_told(y, "+/t +/t/1 initialized ");
    play_create_closed(y, "/t/2");
    play_told(y, "+/t/2 ");
    play_delete(y, "/t/1");
    play_told(y, "-/t/1 ");
    play_create(y, "/t/3");
    play_told(y, "+/t/3 ");
    play_delete(y, "/t/2"); /* the last of them */
    play_told(y, "-/t/2 ");
    play_create_closed(y, "/t/4");
    play_told(y, "+/t/4 ");
    play_delete(y, "/t/3");
    play_told(y, "-/t/3 ");
}

/* Nobody tells of its end, only the listing of its parent. */
TEST_PLAYED(a_node_that_became_unreadable_is_missed_when_it_is_gone)
{
    play_create(y, "/t");
    play_create(y, "/t/1");
    play_create_closed(y, "/t/2");
    play_open(y, "/t", NULL);
    play_set_acl(y, "/t/1", &closed);
    play_told(y, y->m.story);
    play_delete(y, "/t/1");
    play_told(y, "-/t/1 ");
}

/* What an access list has changed is found when the connection is back. */
static void access_lists_are_seen_after_a_reconnect(bool each)
{
    CLOSED_BY(play_end) struct play y;
    play_init(&y, each);
    play_create(&y, "/t");
    play_create(&y, "/t/1");
    play_create(&y, "/t/1/below");
    play_create_closed(&y, "/t/2");
    play_create_closed(&y, "/t/3");
    play_open(&y, "/t", NULL);
    play_set_acl(&y, "/t/1", &closed);
    play_set_acl(&y, "/t/2", &opened);
    play_told(&y, y.m.story);
    play_reconnect(&y);
    assert_unreadable(&y, "/t/1", true);
    assert_unreadable(&y, "/t/2", false);
    assert_unreadable(&y, "/t/3", true);
    assert_int_equal(clave_async_cache_status_of(y.cache).count, 4);
    assert_int_equal(y.m.deleted, 3); /* 1 and what was below it, 2 */
    assert_true(clave_async_cache_status_of(y.cache).current);
}

TEST(access_lists_are_seen_after_a_reconnect_with_a_persistent_watch)
{
    access_lists_are_seen_after_a_reconnect(false);
}

/* The first one below a parent that was listed before has no event at all. */
TEST(the_first_one_is_found_after_a_reconnect)
{
    CLOSED_BY(play_end) struct play y;
    play_init(&y, false);
    play_create(&y, "/t");
    play_create(&y, "/t/1");
    play_open(&y, "/t", NULL);
    play_told(&y, y.m.story);
    play_create_closed(&y, "/t/2");
    play_told(&y, "");
    play_reconnect(&y);
    play_told(&y, "stale +/t/2 resynced ");
    play_delete(&y, "/t/2");
    play_told(&y, "-/t/2 ");
}

/* Or by looking for it from time to time, without a word of it. */
TEST_BOTH(the_first_one_is_found_by_a_refresh)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = refreshing();
    play_init(&y, each);
    play_create(&y, "/t");
    play_create(&y, "/t/1");
    play_create_many(&y, "/t/1", 30);
    play_open(&y, "/t", &o);
    play_told(&y, y.m.story);
    if (!each) {
        play_create_closed(&y, "/t/1/x");
        play_told(&y, "");
        memnet_advance(y.p, 2 * REFRESH);
        play_told(&y, "+/t/1/x ");
        play_delete(&y, "/t/1/x");
        play_told(&y, "-/t/1/x ");
    }
    play_set_acl(&y, "/t/1/00007", &closed);
    play_told(&y, "");
    memnet_advance(y.p, 2 * REFRESH);
    play_told(&y, "-/t/1/00007 +/t/1/00007 ");
    assert_unreadable(&y, "/t/1/00007", true);
    play_set_acl(&y, "/t/1/00007", &opened);
    memnet_advance(y.p, 2 * REFRESH);
    assert_unreadable(&y, "/t/1/00007", false);
    assert_true(clave_async_cache_status_of(y.cache).current);
    assert_int_equal(y.m.stale, 0);
}

/* While their parent may not be read its child watch is used up without a word. */
TEST(a_child_watch_that_was_used_up_is_left_again)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = refreshing();
    play_init(&y, false);
    play_create(&y, "/t");
    play_create(&y, "/t/p");
    play_create_closed(&y, "/t/p/1");
    play_open(&y, "/t", &o);
    play_told(&y, y.m.story);
    play_set_acl(&y, "/t/p", &closed);
    play_create_closed(&y, "/t/p/2");
    play_set_acl(&y, "/t/p", &opened);
    play_set(&y, "/t/p", "x"); /* its new Stat is not that of a listing */
    play_told(&y, "~/t/p=x ");
    memnet_advance(y.p, 2 * REFRESH);
    play_told(&y, "+/t/p/2 ");
    play_create_closed(&y, "/t/p/3");
    play_told(&y, "+/t/p/3 ");
    play_set_acl(&y, "/t/p", &closed);
    memnet_advance(y.p, 2 * REFRESH);
    assert_unreadable(&y, "/t/p", true);
    play_set_acl(&y, "/t/p", &opened);
    memnet_advance(y.p, 2 * REFRESH);
    play_told(&y, y.m.story);
    play_delete(&y, "/t/p/3");
    play_told(&y, "-/t/p/3 ");
}

/* Closed between its reading and its listing, and opened again. */
TEST(a_listing_that_was_refused_is_asked_for_again)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = refreshing();
    play_init(&y, false);
    play_create(&y, "/t");
    play_create(&y, "/t/1");
    memnet_rule(y.p, (struct memnet_rule){.client = USER,
                                          .way = MEMNET_REQUEST,
                                          .op = OP_GET_CHILDREN2,
                                          .fate = MEMNET_HOLD});
    play_open(&y, "/t", &o);
    play_told(&y, "+/t ");
    play_set_acl(&y, "/t", &closed);
    memnet_clear(y.p);
    memnet_settle(y.p);
    play_told(&y, "initialized ");
    play_set_acl(&y, "/t", &opened);
    memnet_advance(y.p, 2 * REFRESH);
    play_told(&y, "+/t/1 ");
}

/* The only child was closed, and deleted: nothing says so but the number of children. */
TEST(the_last_child_is_missed)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = refreshing();
    play_init(&y, false);
    play_create(&y, "/t");
    play_create(&y, "/t/1");
    play_open(&y, "/t", &o);
    play_told(&y, y.m.story);
    play_set_acl(&y, "/t/1", &closed);
    play_delete(&y, "/t/1");
    play_told(&y, "");
    memnet_advance(y.p, 2 * REFRESH);
    play_told(&y, "-/t/1 ");
}

/* An ephemeral node with a number is not read again, whatever there is of them, and the steps go
 * through all. */
TEST(a_refresh_reads_what_can_differ)
{
    enum { NODES = 50 };
    CLOSED_BY(play_end) struct play y;
    char path[32];
    clave_cache_options o = refreshing();
    clave_create_options ephemeral = CLAVE_CREATE_OPTIONS_INIT;
    ephemeral.mode = CLAVE_EPHEMERAL;
    play_init(&y, false);
    play_create(&y, "/t");
    play_create(&y, "/t/1");
    for (int i = 0; i < NODES; i++) {
        snprintf(path, sizeof path, "/t/1/n-%010d", i);
        assert_int_equal(
            clave_async_create(y.p->clients[ACTOR].c, path, "", 0, &ephemeral, NULL, NULL),
            CLAVE_OK);
    }
    memnet_settle(y.p);
    play_open(&y, "/t", &o);
    play_told(&y, y.m.story);
    uint64_t before = y.p->clients[USER].requests[OP_EXISTS];
    memnet_advance(y.p, 10 * REFRESH);
    uint64_t asked = y.p->clients[USER].requests[OP_EXISTS] - before;
    assert_true(asked >= 2 * 6 && asked <= 2 * 11);
    play_told(&y, "");
}

/* Also over the end of the session, with which its watches go. */
TEST_PLAYED(they_are_followed_in_the_next_session)
{
    play_create(y, "/t");
    play_create_closed(y, "/t/1");
    play_open(y, "/t", NULL);
    play_told(y, y->m.story);
    memnet_kill_session(y->p, USER);
    memnet_settle(y->p);
    memnet_advance(y->p, PLAY_TIMEOUT);
    assert_true(clave_async_cache_status_of(y->cache).current);
    play_told(y, y->m.story);
    play_create_closed(y, "/t/2");
    play_told(y, "+/t/2 ");
    play_delete(y, "/t/1");
    play_told(y, "-/t/1 ");
}

/* It is deleted before the cache knows more of it than that it may not be read. */
TEST(a_root_that_comes_again_may_be_readable)
{
    CLOSED_BY(play_end) struct play y;
    play_init(&y, false);
    play_create_closed(&y, "/t");
    memnet_rule(y.p,
                (struct memnet_rule){
                    .client = USER, .way = MEMNET_REQUEST, .op = OP_EXISTS, .fate = MEMNET_HOLD});
    play_open(&y, "/t", NULL);
    play_delete(&y, "/t");
    memnet_clear(y.p);
    memnet_settle(y.p);
    play_told(&y, "initialized ");
    play_create(&y, "/t");
    play_told(&y, "+/t ");
    assert_unreadable(&y, "/t", false);
}

/* The server's bound on the watches of a connection; 0: none that matters. */
static void play_bound_watches(struct play *y, size_t most)
{
    const size_t limits[SERVER_LIMITS] = {[LIMIT_CONNECTION_WATCHES] = most};
    clave__client_limits_set(y->p->server, limits);
}

/* A watch that is refused is asked for again, with pauses; nothing is taken for deleted meanwhile.
 */
TEST_BOTH(a_refused_watch_is_asked_for_again_at_times)
{
    enum { MINUTE = 60000, A_SECOND = 10 };
    for (size_t most = 1; most <= 4; most++) {
        CLOSED_BY(play_end) struct play y;
        play_init(&y, each);
        play_create(&y, "/t");
        play_create_closed(&y, "/t/b");
        play_create(&y, "/t/c");
        play_bound_watches(&y, most);
        play_begin(&y, "/t", NULL);
        memnet_settle(y.p);
        memnet_reset_counts(y.p);
        memnet_advance(y.p, MINUTE);
        uint64_t asked = memnet_requests(y.p, USER);
        if (asked > MINUTE / 1000 * A_SECOND)
            fail_msg("%u requests a minute, with %u watches", (unsigned)asked, (unsigned)most);
        assert_null(strstr(y.m.story, "DELETED"));
        play_bound_watches(&y, 0);
        memnet_advance(y.p, MINUTE);
        assert_int_equal(y.m.initialized, 1);
        assert_int_equal(y.m.count, 3);
        play_delete(&y, "/t/b"); /* seen by a watch that was refused */
        assert_int_equal(y.m.count, 2);
    }
}