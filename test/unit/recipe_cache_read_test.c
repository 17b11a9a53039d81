/* The cache of trees: what it asks for. Many nodes are read by one request; what is refused, or too
 * long for the client, is left out and said to be. */
#include "base/rand.h"
#include "lib/cache_play.h"
#include "recipe/cache/cache_internal.h"
#include "wire/proto.h"

/* A client that takes replies of four times as many bytes. */
enum { FRAME = 1000, NARROW = 2 };

static void play_init_narrow(struct play *y, bool each)
{
    clave_client_options o = {.size = sizeof o,
                              .hosts = "pair:1",
                              .session_timeout_ms = PLAY_TIMEOUT,
                              .seed = 7,
                              .max_frame = FRAME};
    play_init(y, each);
    assert_int_equal(memnet_open(y->p, &o), NARROW);
    memnet_settle(y->p);
}

/* Its connection goes with each reply that is too long. */
static void play_open_narrow(struct play *y)
{
    clave_cache_options o = play_options();
    o.without_persistent_watch = y->each;
    assert_int_equal(clave_async_cache_new(&y->cache, y->p->clients[NARROW].c, "/t", &o,
                                           cache_mirror_on_event, &y->m),
                     CLAVE_OK);
    memnet_advance(y->p, PLAY_TIMEOUT);
}

static uint64_t asked(const struct play *y, size_t client, int32_t op)
{
    return y->p->clients[client].requests[op];
}

TEST(many_nodes_are_read_at_once)
{
    CLOSED_BY(play_end) struct play y;
    play_init(&y, false);
    play_create(&y, "/t");
    play_create_many(&y, "/t", 640);
    uint64_t before = asked(&y, USER, OP_GET_DATA);
    play_open(&y, "/t", NULL);
    assert_int_equal(y.m.count, 641);
    assert_int_equal(y.m.initialized, 1);
    assert_int_equal(asked(&y, USER, OP_MULTI_READ), 640 / 16);
    assert_int_equal(asked(&y, USER, OP_GET_DATA), before + 1);
    play_set(&y, "/t/00007", "x"); /* one is read by itself */
    assert_int_equal(asked(&y, USER, OP_MULTI_READ), 640 / 16);
    assert_int_equal(asked(&y, USER, OP_GET_DATA), before + 2);
}

/* A node that has come and gone before its turn is not asked for: where nodes come faster than they
 * are read one by one, as on a slow way to the server, the cache would never be current. */
TEST(nodes_that_are_gone_are_not_asked_for)
{
    enum { NODES = 50 };
    CLOSED_BY(play_end) struct play y;
    char path[16];
    clave_cache_options o = play_options();
    o.window = 1;
    play_init(&y, false);
    play_create(&y, "/t");
    play_open(&y, "/t", &o);
    uint64_t before = asked(&y, USER, OP_GET_DATA);
    memnet_rule(y.p,
                (struct memnet_rule){
                    .client = USER, .way = MEMNET_REQUEST, .op = OP_GET_DATA, .fate = MEMNET_HOLD});
    for (int i = 0; i < NODES; i++) {
        snprintf(path, sizeof path, "/t/%02d", i);
        play_create(&y, path);
        if (i < NODES - 1)
            play_delete(&y, path);
    }
    memnet_clear(y.p);
    memnet_settle(y.p);
    assert_int_equal(asked(&y, USER, OP_GET_DATA), before + 2); /* the first, and the last */
    assert_int_equal(y.m.count, 2);
}

static void assert_data(const struct play *y, const char *path, bool has_data, size_t len)
{
    clave_cache_node n;
    assert_int_equal(clave_async_cache_get(y->cache, path, &n), CLAVE_OK);
    assert_int_equal(n.has_data, has_data);
    assert_int_equal(n.len, len);
}

/* Each read of a multiRead has an error of its own. */
TEST_PLAYED(a_node_that_may_not_be_read_hides_no_other)
{
    const clave_acl unreadable = {CLAVE_PERM_ALL & ~CLAVE_PERM_READ, "world", "anyone"};
    play_create(y, "/t");
    play_create(y, "/t/a");
    play_create(y, "/t/b");
    play_create(y, "/t/c");
    assert_int_equal(
        clave_async_set_acl(y->p->clients[ACTOR].c, "/t/b", &unreadable, 1, -1, NULL, NULL),
        CLAVE_OK);
    play_set(y, "/t/a", "12");
    play_set(y, "/t/c", "345");
    play_open(y, "/t", NULL);
    assert_int_equal(y->m.initialized, 1);
    assert_int_equal(y->m.count, 4);
    assert_data(y, "/t/a", true, 2);
    assert_data(y, "/t/b", false, 0);
    assert_data(y, "/t/c", true, 3);
}

/* The answer to a multiRead is too long for the client: the nodes are read one at a time. */
TEST_BOTH(long_data_is_read_alone)
{
    CLOSED_BY(play_end) struct play y;
    char path[16], data[FRAME];
    memset(data, 'x', sizeof data - 1);
    data[sizeof data - 1] = '\0';
    play_init_narrow(&y, each);
    play_create(&y, "/t");
    for (unsigned i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "/t/%02u", i);
        play_create(&y, path);
        play_set(&y, path, data);
    }
    play_open_narrow(&y);
    assert_int_equal(y.m.initialized, 1);
    assert_int_equal(y.m.count, 41);
    for (unsigned i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "/t/%02u", i);
        assert_data(&y, path, true, FRAME - 1);
    }
    assert_true(clave_async_cache_status_of(y.cache).complete);
    assert_true(asked(&y, NARROW, OP_MULTI_READ) <= 16); /* what the window had */
}

/* A listing is too long for the client: the cache does not have what is below, and says so. */
TEST_BOTH(a_listing_that_is_too_long_is_left_out)
{
    CLOSED_BY(play_end) struct play y;
    play_init_narrow(&y, each);
    play_create(&y, "/t");
    play_create(&y, "/t/a");
    play_create(&y, "/t/b");
    play_create_many(&y, "/t/a", 600);
    play_open_narrow(&y);
    assert_int_equal(y.m.initialized, 1);
    assert_int_equal(y.m.count, 3);
    assert_int_equal(y.m.full, 1);
    assert_false(clave_async_cache_status_of(y.cache).complete);
    play_create(&y, "/t/c"); /* what is beside it is followed */
    assert_int_equal(y.m.count, 4);
}

/* A node is read again, because there is room for its data now, while its watch is armed; meanwhile
 * it is deleted and made again. The watch goes with the old node, and the answer leaves none. */
TEST_BOTH(a_node_made_again_while_it_is_read_is_watched)
{
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = play_options();
    char big[2000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    o.max_bytes = 3000;
    play_init(&y, each);
    play_create(&y, "/t");
    play_create(&y, "/t/a");
    play_create(&y, "/t/b");
    play_open(&y, "/t", &o);
    play_set(&y, "/t/b", big);
    play_set(&y, "/t/a", big);
    assert_int_equal(y.m.full, 1);
    memnet_rule(y.p, (struct memnet_rule){USER, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 0});
    uint64_t before = asked(&y, USER, OP_GET_DATA);
    play_delete(&y, "/t/b"); /* /t/a is asked for */
    play_delete(&y, "/t/a");
    play_create(&y, "/t/a");
    memnet_clear(y.p);
    memnet_settle(y.p);
    assert_true(asked(&y, USER, OP_GET_DATA) > before);
    play_set(&y, "/t/a", "small");
    assert_data(&y, "/t/a", true, 5);
    play_assert_equals_the_tree(&y);
}

/* A node is deleted and made again while its parent is listed, and it itself after that: it is read
 * nevertheless, as its own listing says nothing of the new one. */
TEST_PLAYED(a_node_made_again_while_it_is_listed_is_read)
{
    play_create(y, "/t");
    play_create(y, "/t/a");
    play_open(y, "/t", NULL);
    memnet_rule(y->p, (struct memnet_rule){USER, MEMNET_REQUEST, OP_GET_CHILDREN2, MEMNET_HOLD, 0});
    play_create(y, "/t/b");
    play_create(y, "/t/a/x");
    play_delete(y, "/t/a/x");
    play_delete(y, "/t/a");
    play_create(y, "/t/a");
    memnet_clear(y->p);
    memnet_settle(y->p);
    assert_int_equal(y->m.count, 3);
    play_assert_equals_the_tree(y);
}

/* So many messages of the user, and no more. */
static void play_let_pass(struct play *y, unsigned requests, unsigned replies)
{
    memnet_clear(y->p);
    memnet_rule(y->p, (struct memnet_rule){USER, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, replies});
    memnet_rule(y->p,
                (struct memnet_rule){USER, MEMNET_REQUEST, MEMNET_ANY, MEMNET_HOLD, requests});
    memnet_settle(y->p);
    memnet_clear(y->p);
    memnet_rule(y->p, (struct memnet_rule){USER, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    memnet_rule(y->p, (struct memnet_rule){USER, MEMNET_REQUEST, MEMNET_ANY, MEMNET_HOLD, 0});
}

/* What was changed before the time that the cache names is in it, wherever its questions are, and
 * that time goes on while there is always something to be read. */
TEST_BOTH(a_cache_knows_as_of_when_it_is)
{
    enum { STEPS = 3000 };
    static int64_t made[STEPS];
    struct rand_state rand;
    CLOSED_BY(play_end) struct play y;
    clave_cache_options o = play_options();
    int64_t last = 0;
    unsigned moved = 0;
    char path[32];
    o.window = 8;
    clave__rand_seed(&rand, each ? 11 : 12);
    play_init(&y, each);
    play_create(&y, "/t");
    play_create(&y, "/t/hot");
    play_open(&y, "/t", &o);
    play_let_pass(&y, 0, 0);
    for (int i = 0; i < STEPS; i++) {
        snprintf(path, sizeof path, "/t/%d", i);
        play_set(&y, "/t/hot", path);
        play_create(&y, path);
        made[i] = y.p->now;
        if (clave__rand_below(&rand, 4) == 0)
            assert_int_equal(clave_async_exists(y.p->clients[USER].c, "/t", NULL, NULL, NULL),
                             CLAVE_OK);
        play_let_pass(&y, (unsigned)clave__rand_below(&rand, 11),
                      (unsigned)clave__rand_below(&rand, 11));
        memnet_advance(y.p, (int64_t)clave__rand_below(&rand, 2));
        int64_t as_of = clave__cache_as_of(y.cache);
        moved += as_of > last;
        last = as_of;
        for (int j = i; j >= 0 && j > i - 300; j--) {
            clave_cache_node n;
            snprintf(path, sizeof path, "/t/%d", j);
            if (made[j] < as_of)
                assert_int_equal(clave_async_cache_get(y.cache, path, &n), CLAVE_OK);
        }
    }
    assert_true(moved > 50);
    memnet_clear(y.p);
    memnet_settle(y.p);
    play_assert_equals_the_tree(&y);
}