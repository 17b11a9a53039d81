/* The cache of trees: timelines. Curator's tests of CuratorCache, NodeCache, PathChildrenCache and
 * TreeCache bear their names. Bounds, queries and memory are in recipe_cache_life_test.c. */
#include "lib/cache_play.h"

/* ---- CuratorCache ---------------------------------------------------------------------------- */

/* TestTreeCache.testStartup, testBasics and testUpdate as well, TestNodeCache.testBasics. */
TEST_PLAYED(testAfterInitialized)
{
    play_create(y, "/t");
    play_create(y, "/t/a");
    play_create(y, "/t/a/b");
    play_set(y, "/t/a/b", "x");
    play_open(y, "/t", NULL);
    play_told(y, "+/t +/t/a +/t/a/b=x initialized ");
    assert_true(clave_async_cache_status_of(y->cache).current);
    assert_int_equal(clave_async_cache_status_of(y->cache).count, 3);
    play_create(y, "/t/c");
    play_set(y, "/t/c", "1");
    play_set(y, "/t/c", "2");
    play_create(y, "/t/c/d");
    play_delete(y, "/t/c/d");
    play_delete(y, "/t/c");
    play_told(y, "+/t/c ~/t/c=1 ~/t/c=2 +/t/c/d -/t/c/d -/t/c ");
}

/* TestPathChildrenCache has it too. */
TEST_BOTH(testUpdateWhenNotCachingData)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = play_options();
    clave_cache_node n;
    o.without_data = true;
    play_init(&y, each);
    play_create(&y, "/t");
    play_set(&y, "/t", "first");
    play_open(&y, "/t", &o);
    play_set(&y, "/t", "second");
    play_told(&y, "+/t initialized ~/t ");
    assert_int_equal(clave_async_cache_get(y.cache, "/t", &n), CLAVE_OK);
    assert_false(n.has_data);
    assert_int_equal(n.stat.version, 2);
    assert_int_equal(n.stat.data_length, 6);
}

static void count_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    unsigned *counts = arg;
    (void)cache;
    counts[ev->type]++;
}

static bool count_visit(const clave_cache_node *node, void *arg)
{
    size_t *n = arg;
    assert_true(node->stat.czxid > 0);
    return ++*n < 70000;
}

/* CURATOR-690. A listing of 66 000 short names fits in a frame. */
TEST(testGreaterThan64kZNodes)
{
    enum { MANY = 66000 };
    struct play y;
    unsigned counts[CLAVE_CACHE_ENDED + 1] = {0};
    size_t visited = 0;
    play_init(&y, false);
    play_create(&y, "/t");
    play_create_many(&y, "/t", MANY);
    assert_int_equal(
        clave_async_cache_new(&y.cache, y.p->clients[USER].c, "/t", NULL, count_event, counts),
        CLAVE_OK);
    memnet_settle(y.p);
    assert_int_equal(counts[CLAVE_CACHE_CREATED], MANY + 1);
    assert_int_equal(counts[CLAVE_CACHE_INITIALIZED], 1);
    assert_int_equal(clave_async_cache_status_of(y.cache).count, MANY + 1);
    assert_true(clave_async_cache_status_of(y.cache).bytes < MANY * 100);
    assert_int_equal(clave_async_cache_walk(y.cache, "/t", count_visit, &visited), CLAVE_OK);
    assert_int_equal(visited, MANY + 1);
    clave_async_cache_free(y.cache);
    memnet_settle(y.p);
    assert_int_equal(memnet_stats(y.p).watches, 0);
    memnet_free(y.p);
}

/* TestCuratorCacheEdges. What happens while there is no connection becomes events. */
TEST_PLAYED(testReconnectConsistency)
{
    play_create(y, "/t");
    play_create(y, "/t/stays");
    play_create(y, "/t/goes");
    play_create(y, "/t/goes/below");
    play_create(y, "/t/changes");
    play_create(y, "/t/again");
    play_open(y, "/t", NULL);
    assert_int_equal(y->m.created, 6);
    y->m.nstory = 0;
    memnet_refuse(y->p, USER, true);
    memnet_settle(y->p);
    play_delete(y, "/t/goes/below");
    play_delete(y, "/t/goes");
    play_set(y, "/t/changes", "x");
    play_delete(y, "/t/again");
    play_create(y, "/t/again");
    play_create(y, "/t/comes");
    play_create(y, "/t/comes/too");
    play_told(y, "stale ");
    assert_false(clave_async_cache_status_of(y->cache).current);
    memnet_refuse(y->p, USER, false);
    memnet_advance(y->p, 3000);
    assert_true(memnet_saw(y->p, USER, CLAVE_STATE_RECONNECTED));
    assert_false(memnet_saw(y->p, USER, CLAVE_STATE_LOST));
    assert_int_equal(y->m.resynced, 1);
    assert_int_equal(y->m.created, 6 + 3);
    assert_int_equal(y->m.changed, 1);
    assert_int_equal(y->m.deleted, 3);
    assert_int_equal(clave_async_cache_status_of(y->cache).count, 6);
    play_create(y, "/t/after");
    assert_non_null(cache_mirror_find(&y->m, "/t/after"));
}

/* Each node of it is told, children first, whatever the order of the table they are in. */
TEST_PLAYED(a_large_subtree_goes)
{
    enum { MANY = 1500 };
    char path[64];
    play_create(y, "/t");
    play_create(y, "/t/dir");
    play_create_many(y, "/t/dir", MANY);
    play_open(y, "/t", NULL);
    memnet_refuse(y->p, USER, true);
    memnet_settle(y->p);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/t/dir/%05u", i);
        clave_async_delete(y->p->clients[ACTOR].c, path, -1, NULL, NULL);
    }
    play_delete(y, "/t/dir");
    memnet_refuse(y->p, USER, false);
    memnet_advance(y->p, 3000);
    assert_int_equal(y->m.deleted, MANY + 1);
    assert_int_equal(clave_async_cache_status_of(y->cache).count, 1);
}

/* TestCuratorCacheEdges. */
TEST_PLAYED(testServerLoss)
{
    play_create(y, "/t");
    play_create(y, "/t/a");
    play_open(y, "/t", NULL);
    play_told(y, "+/t +/t/a initialized ");
    memnet_stop_server(y->p);
    memnet_settle(y->p);
    play_told(y, "stale ");
    memnet_start_server(y->p);
    memnet_advance(y->p, 3000);
    play_told(y, "resynced ");
    play_create(y, "/t/b");
    play_told(y, "+/t/b ");
}

/* Compared by version alone, Curator's cache sees no change here. */
TEST_PLAYED(a_node_created_again_with_its_version_is_another)
{
    play_create(y, "/t");
    play_create(y, "/t/a");
    play_open(y, "/t", NULL);
    memnet_refuse(y->p, USER, true);
    memnet_settle(y->p);
    play_delete(y, "/t/a");
    play_create(y, "/t/a");
    memnet_refuse(y->p, USER, false);
    memnet_advance(y->p, 3000);
    play_told(y, "+/t +/t/a initialized stale -/t/a +/t/a resynced ");
}

/* TestNodeCache, TestPathChildrenCache and TestTreeCache; a recipe's own session is another's end.
 */
TEST_PLAYED(testKilledSession)
{
    play_create(y, "/t");
    play_create(y, "/t/a");
    play_open(y, "/t", NULL);
    memnet_kill_session(y->p, USER);
    memnet_settle(y->p);
    play_create(y, "/t/b");
    memnet_advance(y->p, 3000);
    assert_true(memnet_saw(y->p, USER, CLAVE_STATE_LOST));
    assert_int_equal(y->m.resynced, 1);
    assert_int_equal(y->m.created, 3);
    play_set(y, "/t/b", "x");
    assert_int_equal(y->m.changed, 1);
}

/* ---- TestCuratorCacheConsistency ---------------------------------------------------------------
 */

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void random_path(uint64_t *seed, char *out, size_t cap)
{
    size_t n = (size_t)snprintf(out, cap, "/t");
    for (uint64_t depth = next_random(seed) % 4; depth > 0; depth--)
        n += (size_t)snprintf(out + n, cap - n, "/%c", (char)('a' + next_random(seed) % 3));
}

/* One of the actor's operations, which may fail, or something that happens to the user. */
static void random_step(struct play *y, uint64_t *seed)
{
    clave_async_client *c = y->p->clients[ACTOR].c;
    char path[32], text[32];
    random_path(seed, path, sizeof path);
    int n = snprintf(text, sizeof text, "%u", (unsigned)next_random(seed) % 1000);
    switch (next_random(seed) % 16) {
    case 0:
        memnet_cut(y->p, USER);
        break;
    case 1:
        memnet_advance(y->p, (int64_t)(next_random(seed) % 400));
        break;
    case 2:
        memnet_settle(y->p);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        clave_async_delete(c, path, -1, NULL, NULL);
        break;
    case 7:
    case 8:
    case 9:
        clave_async_set(c, path, text, (size_t)n, -1, NULL, NULL);
        break;
    default:
        clave_async_create(c, path, text, (size_t)n, NULL, NULL, NULL);
        break;
    }
    /* One message at a time, so that the user's reads meet the changes at every point. */
    for (size_t i = 0; i < 2; i++) {
        size_t who = next_random(seed) % 2;
        enum memnet_direction way = next_random(seed) % 2 ? MEMNET_REQUEST : MEMNET_REPLY;
        if (memnet_next(y->p, who, way) != MEMNET_NONE)
            memnet_pass(y->p, who, way);
    }
}

static void simulate(bool each, uint64_t seed)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = play_options();
    o.window = 1 + (uint32_t)(seed % 12); /* with 8 and more, two or three in a multiRead */
    play_init(&y, each);
    seed = seed * 0x9e3779b97f4a7c15u + 1;
    play_open(&y, "/t", &o);
    for (unsigned i = 0; i < 200; i++) {
        random_step(&y, &seed);
        if (cache_mirror_differs(&y.m, y.cache))
            fail_msg("%s\n%s", y.m.fault, y.m.story);
    }
    memnet_advance(y.p, 5000);
    assert_true(clave_async_cache_status_of(y.cache).current);
    play_assert_equals_the_tree(&y);
}

/* Random operations; then the cache equals the tree. TestCuratorCacheEventOrdering as well: the
 * mirror finds an event out of order. */
TEST_BOTH(testConsistencyAfterSimulation)
{
    for (uint64_t seed = 1; seed <= 150; seed++)
        simulate(each, seed);
}

/* ---- NodeCache ------------------------------------------------------------------------------- */

TEST_BOTH(testDeleteThenCreate)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = play_options();
    o.single_node = true;
    play_init(&y, each);
    play_open(&y, "/t", &o);
    play_told(&y, "initialized ");
    play_create(&y, "/t");
    play_create(&y, "/t/not-followed");
    play_set(&y, "/t", "x");
    play_delete(&y, "/t/not-followed");
    play_delete(&y, "/t");
    play_create(&y, "/t");
    play_told(&y, "+/t ~/t=x -/t +/t ");
}

/* ---- PathChildrenCache ----------------------------------------------------------------------- */

/* The parents come later. TestTreeCache.testStartEmpty, testStartEmptyDeeper. */
TEST_PLAYED(testParentContainerMissing)
{
    play_open(y, "/a/b", NULL);
    play_told(y, "initialized ");
    play_create(y, "/a");
    play_told(y, "");
    play_create(y, "/a/b");
    play_create(y, "/a/b/c");
    play_told(y, "+/a/b +/a/b/c ");
}

/* CURATOR-476: the child goes between its listing and its reading. */
TEST_PLAYED(testInitializedEvenIfChildDeleted)
{
    play_create(y, "/t");
    play_create(y, "/t/a");
    play_create(y, "/t/b");
    play_begin(y, "/t", NULL);
    memnet_rule(
        y->p, y->each ? (struct memnet_rule){USER, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 1}
                      : (struct memnet_rule){USER, MEMNET_REQUEST, OP_MULTI_READ, MEMNET_HOLD, 0});
    memnet_settle(y->p);
    play_delete(y, "/t/a");
    assert_int_equal(y->m.initialized, 0);
    memnet_clear(y->p);
    memnet_settle(y->p);
    assert_int_equal(y->m.initialized, 1);
    assert_int_equal(y->m.count, 2);
}

/* TestPathChildrenCache.testWithBadConnect, TestTreeCache.testServerNotStartedYet. */
TEST_PLAYED(testWithBadConnect)
{
    play_create(y, "/t");
    memnet_stop_server(y->p);
    memnet_settle(y->p);
    play_open(y, "/t", NULL);
    play_told(y, "");
    memnet_start_server(y->p);
    memnet_advance(y->p, 3000);
    play_told(y, "+/t initialized ");
}

/* An event while the first load is under way is not lost. */
TEST_BOTH(testAsyncInitialPopulation)
{
    static const int ops[] = {OP_GET_DATA, OP_GET_CHILDREN2};
    for (size_t i = 0; i < 2; i++)
        for (unsigned skip = 0; skip < 2; skip++) {
            CLOSED_BY(play_end) struct play y;
            play_init(&y, each);
            play_create(&y, "/t");
            play_create(&y, "/t/a");
            memnet_rule(y.p, (struct memnet_rule){USER, MEMNET_REPLY, ops[i], MEMNET_HOLD, skip});
            play_open(&y, "/t", NULL);
            play_set(&y, "/t", "x");
            play_create(&y, "/t/b");
            play_set(&y, "/t/a", "y");
            play_delete(&y, "/t/a");
            memnet_clear(y.p);
            memnet_settle(y.p);
            assert_int_equal(y.m.initialized, 1);
            play_assert_equals_the_tree(&y);
        }
}

/* ---- TreeCache ------------------------------------------------------------------------------- */

static clave_cache_take take(const char *path, void *arg)
{
    (*(unsigned *)arg)++;
    return strstr(path, "skip")   ? CLAVE_CACHE_TAKE_NOTHING
           : strstr(path, "node") ? CLAVE_CACHE_TAKE_NODE
                                  : CLAVE_CACHE_TAKE_TREE;
}

/* TreeCacheSelector. */
TEST_BOTH(testSelector)
{
    CLOSED_BY(play_end) struct play y;
    unsigned asked = 0;
    clave_cache_options o = play_options();
    o.filter = take;
    o.filter_arg = &asked;
    play_init(&y, each);
    play_create(&y, "/t");
    play_create(&y, "/t/skip");
    play_create(&y, "/t/node");
    play_create(&y, "/t/node/below");
    play_create(&y, "/t/tree");
    play_create(&y, "/t/tree/below");
    play_open(&y, "/t", &o);
    assert_int_equal(y.m.created, 4);
    play_create(&y, "/t/skip/below");
    play_create(&y, "/t/node/below2");
    play_create(&y, "/t/skip2");
    play_create(&y, "/t/tree/node");
    assert_int_equal(y.m.created, 5);
    assert_null(cache_mirror_find(&y.m, "/t/skip"));
    assert_null(cache_mirror_find(&y.m, "/t/node/below"));
    assert_non_null(cache_mirror_find(&y.m, "/t/tree/node"));
    assert_true(asked >= 6);
}

TEST_PLAYED(testFromRoot)
{
    clave_cache_node n;
    play_create(y, "/t");
    play_open(y, "/", NULL);
    assert_non_null(cache_mirror_find(&y->m, "/zookeeper"));
    play_create(y, "/t/a");
    play_create(y, "/u");
    assert_non_null(cache_mirror_find(&y->m, "/t/a"));
    assert_int_equal(clave_async_cache_get(y->cache, "/", &n), CLAVE_OK);
    assert_int_equal(n.stat.num_children, 3);
    assert_int_equal(clave_async_cache_get(y->cache, "/u", &n), CLAVE_OK);
    assert_int_equal(clave_async_cache_get(y->cache, "u", &n), CLAVE_ENONODE);
    assert_int_equal(clave_async_cache_get(y->cache, "/u/", &n), CLAVE_ENONODE);
}

TEST_PLAYED(testDeleteThenCreateRoot)
{
    play_create(y, "/t");
    play_create(y, "/t/a");
    play_open(y, "/t", NULL);
    play_delete(y, "/t/a");
    play_delete(y, "/t");
    play_create(y, "/t");
    play_create(y, "/t/b");
    play_told(y, "+/t +/t/a initialized -/t/a -/t +/t +/t/b ");
}

/* ---- a steady stream of changes -------------------------------------------------------------- */

static void drain(struct play *y, size_t client)
{
    while (memnet_next(y->p, client, MEMNET_REPLY) != MEMNET_NONE)
        memnet_pass(y->p, client, MEMNET_REPLY);
}

static void pass_all(struct play *y, size_t client)
{
    while (memnet_next(y->p, client, MEMNET_REQUEST) != MEMNET_NONE)
        memnet_pass(y->p, client, MEMNET_REQUEST);
    drain(y, client);
}

static void set_alone(struct play *y, const char *path, const char *text)
{
    clave_async_client *c = y->p->clients[ACTOR].c;
    assert_int_equal(clave_async_set(c, path, text, strlen(text), -1, NULL, NULL), CLAVE_OK);
    pass_all(y, ACTOR);
}

/* The user has a request under way at all times: an answer comes only after the next change. */
static void play_stream(struct play *y)
{
    static const char *const hot[] = {"/t/a", "/t/b"};
    static const int ops[] = {OP_ADD_WATCH,     OP_SET_WATCHES, OP_SET_WATCHES2,
                              OP_SYNC,          OP_EXISTS,      OP_GET_DATA,
                              OP_GET_CHILDREN2, OP_MULTI_READ,  MEMNET_CONFIG};
    for (unsigned i = 0; i < 100; i++) {
        set_alone(y, hot[i % 2], "x");
        drain(y, USER);
        size_t asked = memnet_under_way(y->p, USER, ops, sizeof ops / sizeof *ops);
        if (asked > 1 || y->m.count < 2) /* before, it asks for one after the other */
            memnet_pass(y->p, USER, MEMNET_REQUEST);
        drain(y, USER);
        assert_true(memnet_under_way(y->p, USER, ops, sizeof ops / sizeof *ops) > 0);
    }
}

static bool is_told_before(const struct play *y, const char *what, const char *then)
{
    const char *at = strstr(y->m.story, what);
    return at && strstr(at, then);
}

/* The load has an end, and so has the comparison after a reconnect, whatever changes meanwhile. */
TEST_PLAYED(it_is_current_under_a_steady_stream_of_changes)
{
    play_create(y, "/t");
    play_create(y, "/t/a");
    play_create(y, "/t/b");
    play_create(y, "/t/b/c");
    play_begin(y, "/t", NULL);
    play_stream(y);
    assert_int_equal(y->m.initialized, 1);
    assert_true(is_told_before(y, "+/t/b/c ", "initialized "));
    y->m.nstory = 0;
    memnet_sever(y->p, USER);
    set_alone(y, "/t/b/c", "y");
    memnet_connect(y->p, USER);
    play_stream(y);
    assert_int_equal(y->m.resynced, 1);
    assert_true(is_told_before(y, "stale ", "~/t/b/c=y "));
    assert_true(is_told_before(y, "~/t/b/c=y ", "resynced "));
    memnet_settle(y->p);
    play_assert_equals_the_tree(y);
}

/* What did not fit is read as soon as there is room, also while other nodes change. */
TEST_BOTH(it_is_complete_under_a_steady_stream_of_changes)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = play_options();
    o.max_nodes = 4;
    play_init(&y, each);
    play_create(&y, "/t");
    play_create(&y, "/t/a");
    play_create(&y, "/t/b");
    play_create(&y, "/t/c");
    play_open(&y, "/t", &o);
    play_create(&y, "/t/d");
    assert_int_equal(y.m.full, 1);
    set_alone(&y, "/t/a", "y");
    drain(&y, USER); /* it asks for /t/a */
    assert_int_equal(clave_async_delete(y.p->clients[ACTOR].c, "/t/c", -1, NULL, NULL), CLAVE_OK);
    pass_all(&y, ACTOR);
    play_stream(&y);
    assert_int_equal(y.m.resynced, 1);
    assert_true(clave_async_cache_status_of(y.cache).complete);
    assert_non_null(cache_mirror_find(&y.m, "/t/d"));
    memnet_settle(y.p);
    play_assert_equals_the_tree(&y);
}