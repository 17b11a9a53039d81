/* Persistent watches: the client's clave_async_add_watch, and the watcher that keeps one. Curator's
 * tests of PersistentWatcher bear their names. */
#include "clave/async/cache.h"
#include "clave/async/persistent_watcher.h"
#include "lib/each_fault.h"
#include "lib/fake_server.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000, ACTOR = 0, USER = 1 };

/* Everything a watcher was told: "armed +/a ~/a -/a =/a suspended ended:ECLOSED ". */
struct story {
    clave_async_persistent_watcher *w;
    char text[512];
    bool free_in_event;
};

static void on_event(clave_async_persistent_watcher *w, const clave_persistent_watcher_event *ev,
                     void *arg)
{
    static const char *const words[] = {
        [CLAVE_PERSISTENT_WATCHER_ARMED] = "armed",
        [CLAVE_PERSISTENT_WATCHER_SUSPENDED] = "suspended",
        [CLAVE_PERSISTENT_WATCHER_CREATED] = "+",
        [CLAVE_PERSISTENT_WATCHER_DELETED] = "-",
        [CLAVE_PERSISTENT_WATCHER_CHANGED] = "~",
        [CLAVE_PERSISTENT_WATCHER_CHILDREN] = "=",
        [CLAVE_PERSISTENT_WATCHER_ENDED] = "ended:",
    };
    struct story *s = arg;
    size_t n = strlen(s->text);
    bool has_path = ev->type >= CLAVE_PERSISTENT_WATCHER_CREATED &&
                    ev->type <= CLAVE_PERSISTENT_WATCHER_CHILDREN;
    bool is_end = ev->type == CLAVE_PERSISTENT_WATCHER_ENDED;
    snprintf(s->text + n, sizeof s->text - n, "%s%s ", words[ev->type],
             has_path ? ev->path
             : is_end ? clave_err_name(ev->err)
                      : "");
    assert_int_equal(clave_async_persistent_watcher_is_armed(w),
                     ev->type == CLAVE_PERSISTENT_WATCHER_ARMED || has_path);
    if (s->free_in_event)
        clave_async_persistent_watcher_free(w);
}

static void told(struct story *s, const char *text)
{
    assert_string_equal(s->text, text);
    s->text[0] = '\0';
}

static struct memnet *world(const char *chroot)
{
    struct memnet *p =
        memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = TIMEOUT, .chroot = chroot});
    memnet_settle(p);
    return p;
}

static void watch(struct story *s, struct memnet *p, const char *path, bool single)
{
    clave_persistent_watcher_options o = CLAVE_PERSISTENT_WATCHER_OPTIONS_INIT;
    o.single_node = single;
    *s = (struct story){0};
    assert_int_equal(
        clave_async_persistent_watcher_new(&s->w, p->clients[USER].c, path, &o, on_event, s),
        CLAVE_OK);
    memnet_settle(p);
}

static void create(struct memnet *p, const char *path)
{
    assert_int_equal(memnet_create(p, ACTOR, path), CLAVE_OK);
    memnet_settle(p);
}

static void set(struct memnet *p, const char *path)
{
    assert_int_equal(memnet_set(p, ACTOR, path, "x"), CLAVE_OK);
    memnet_settle(p);
}

static void delete (struct memnet *p, const char *path)
{
    assert_int_equal(memnet_delete(p, ACTOR, path), CLAVE_OK);
    memnet_settle(p);
}

static void end(struct memnet *p, struct story *s)
{
    clave_async_persistent_watcher_free(s->w);
    memnet_settle(p);
    assert_int_equal(memnet_stats(p).watches, 0);
    memnet_free(p);
}

/* ---- events ---------------------------------------------------------------------------------- */

TEST(a_single_node_is_watched_with_its_children)
{
    struct story s;
    struct memnet *p = world(NULL);
    watch(&s, p, "/a", true);
    create(p, "/a");
    set(p, "/a");
    create(p, "/a/b");
    create(p, "/a/b/c");
    set(p, "/a/b");
    delete (p, "/a/b/c");
    delete (p, "/a/b");
    delete (p, "/a");
    create(p, "/a");
    told(&s, "armed +/a ~/a =/a =/a -/a +/a ");
    end(p, &s);
}

TEST(a_tree_is_watched_without_lists)
{
    struct story s;
    struct memnet *p = world(NULL);
    watch(&s, p, "/a", false);
    create(p, "/a");
    create(p, "/a/b");
    create(p, "/a/b/c");
    set(p, "/a/b/c");
    create(p, "/ab");
    delete (p, "/a/b/c");
    told(&s, "armed +/a +/a/b +/a/b/c ~/a/b/c -/a/b/c ");
    end(p, &s);
    p = world(NULL);
    watch(&s, p, "/", false);
    create(p, "/a");
    create(p, "/a/b");
    set(p, "/");
    told(&s, "armed +/a +/a/b ~/ ");
    end(p, &s);
}

static void testConnectionLost(bool single)
{
    struct story s;
    struct memnet *p = world(NULL);
    create(p, "/a");
    watch(&s, p, "/a", single);
    memnet_refuse(p, USER, true);
    memnet_settle(p);
    told(&s, "armed suspended ");
    set(p, "/a");
    memnet_refuse(p, USER, false);
    memnet_advance(p, 2000);
    told(&s, "armed ");
    set(p, "/a");
    told(&s, "~/a ");
    memnet_kill_session(p, USER);
    memnet_advance(p, 2000);
    told(&s, "suspended armed ");
    set(p, "/a");
    told(&s, "~/a ");
    end(p, &s);
}

TEST(testConnectionLost_single)
{
    testConnectionLost(true);
}

TEST(testConnectionLostRecursive)
{
    testConnectionLost(false);
}

/* GH-1259. */
TEST(testNamespacedWatching)
{
    struct story s;
    struct memnet *p = world("/ns");
    create(p, "/");
    watch(&s, p, "/", false);
    create(p, "/a");
    create(p, "/a/b");
    memnet_cut(p, USER);
    memnet_advance(p, 2000);
    set(p, "/a/b");
    told(&s, "armed +/a +/a/b suspended armed ~/a/b ");
    end(p, &s);
}

/* A one-shot watch on the same node: each has its events, and goes without the other. */
static void on_once(clave_async_client *c, clave_async_watch *w, const clave_event *ev, void *arg)
{
    (void)c, (void)w, (void)ev;
    ++*(unsigned *)arg;
}

TEST(watches_of_several_kinds_share_a_node)
{
    struct story s, t;
    unsigned fired = 0;
    clave_async_watch *once;
    struct memnet *p = world(NULL);
    create(p, "/a");
    watch(&s, p, "/a", false);
    watch(&t, p, "/a", true);
    assert_int_equal(clave_async_watch_new(&once, p->clients[USER].c, on_once, &fired), CLAVE_OK);
    assert_int_equal(clave_async_get(p->clients[USER].c, "/a", once, NULL, NULL), CLAVE_OK);
    memnet_settle(p);
    set(p, "/a");
    assert_int_equal(fired, 1);
    assert_int_equal(clave_async_get(p->clients[USER].c, "/a", once, NULL, NULL), CLAVE_OK);
    clave_async_persistent_watcher_free(t.w);
    memnet_settle(p);
    set(p, "/a");
    assert_int_equal(fired, 2);
    told(&t, "armed ~/a ");
    told(&s, "armed ~/a ~/a ");
    clave_async_watch_free(once);
    set(p, "/a");
    told(&s, "~/a ");
    end(p, &s);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* CURATOR-729. */
TEST(testAfterClientClose)
{
    struct story s;
    struct memnet *p = world(NULL);
    watch(&s, p, "/a", false);
    clave_async_client_close(p->clients[USER].c, p->now);
    memnet_settle(p);
    told(&s, "armed suspended ended:ECLOSED ");
    clave_async_persistent_watcher *late;
    assert_int_equal(
        clave_async_persistent_watcher_new(&late, p->clients[USER].c, "/a", NULL, on_event, &s),
        CLAVE_ECLOSED);
    assert_null(late);
    end(p, &s);
}

/* Before the server has answered; and while it pauses between two attempts. */
TEST(testConcurrentClientClose)
{
    struct story s = {0};
    struct memnet *p = world(NULL);
    assert_int_equal(
        clave_async_persistent_watcher_new(&s.w, p->clients[USER].c, "/a", NULL, on_event, &s),
        CLAVE_OK);
    clave_async_client_abandon(p->clients[USER].c, p->now);
    memnet_settle(p);
    told(&s, "ended:ECLOSED ");
    end(p, &s);
}

/* GH-1292: after its _free nothing is left of it, neither here nor at the server. */
TEST(testCuratorListenersNotLeaking)
{
    struct story s;
    CLOSED_BY(memnet_freed) struct memnet *p = world(NULL);
    for (int i = 0; i < 20; i++) {
        watch(&s, p, "/a", i % 2);
        clave_async_persistent_watcher_free(s.w);
        memnet_settle(p);
        assert_int_equal(memnet_stats(p).watches, 0);
    }
    memnet_cut(p, USER);
    create(p, "/a");
    memnet_advance(p, 2000);
    told(&s, "armed ");
}

TEST(a_watcher_may_be_freed_in_its_event)
{
    struct story s = {.free_in_event = true};
    CLOSED_BY(memnet_freed) struct memnet *p = world(NULL);
    assert_int_equal(
        clave_async_persistent_watcher_new(&s.w, p->clients[USER].c, "/a", NULL, on_event, &s),
        CLAVE_OK);
    memnet_settle(p);
    create(p, "/a");
    told(&s, "armed ");
    assert_int_equal(memnet_stats(p).watches, 0);
}

/* ---- servers --------------------------------------------------------------------------------- */

static void watch_fake(struct story *s, struct fake_server *f)
{
    *s = (struct story){0};
    fake_open(f, NULL);
    fake_connect(f, true);
    assert_int_equal(clave_async_persistent_watcher_new(&s->w, f->c, "/a", NULL, on_event, s),
                     CLAVE_OK);
    const struct wire_path_type *q = &fake_expect(f, OP_ADD_WATCH)->body.typed;
    assert_int_equal(q->type, ADD_WATCH_PERSISTENT_RECURSIVE);
}

TEST(a_server_before_3_6_ends_a_watcher)
{
    struct story s;
    CLOSED_BY(fake_close) struct fake_server f;
    watch_fake(&s, &f);
    fake_answer(&f, CLAVE_EUNIMPLEMENTED, NULL);
    told(&s, "ended:EUNIMPLEMENTED ");
    clave_async_persistent_watcher_free(s.w);
}

/* The ensemble has members of both sorts, and the session moves to an older one. */
TEST(a_member_before_3_6_ends_a_watcher)
{
    struct story s;
    CLOSED_BY(fake_close) struct fake_server f;
    static const struct wire_reply none;
    watch_fake(&s, &f);
    fake_answer(&f, CLAVE_OK, &none);
    fake_hang_up(&f);
    fake_dial(&f);
    fake_answer_handshake(&f, FAKE_SESSION, FAKE_TIMEOUT, false);
    const struct wire_set_watches *w = &fake_expect(&f, OP_SET_WATCHES2)->body.watches;
    assert_int_equal(w->persistent_recursive.count, 1);
    assert_int_equal(w->persistent.count + w->data.count + w->exist.count + w->child.count, 0);
    told(&s, "armed suspended armed ");
    fake_answer_to(&f, XID_SET_WATCHES, OP_SET_WATCHES2, CLAVE_EUNIMPLEMENTED, NULL);
    told(&s, "suspended ");
    assert_non_null(strstr(clave_async_client_errmsg(f.c), "persistent"));
    fake_hang_up(&f);
    fake_dial(&f);
    fake_answer_handshake(&f, FAKE_SESSION, FAKE_TIMEOUT, false);
    /* Nothing is owed that the server would refuse again. */
    fake_expect(&f, OP_ADD_WATCH);
    fake_answer(&f, CLAVE_EUNIMPLEMENTED, NULL);
    told(&s, "ended:EUNIMPLEMENTED ");
    clave_async_persistent_watcher_free(s.w);
}

/* Curator's asks again at once, and again. */
TEST(a_refused_watcher_asks_again_after_pauses)
{
    struct story s;
    CLOSED_BY(fake_close) struct fake_server f;
    static const struct wire_reply none;
    watch_fake(&s, &f);
    fake_put_off(&f, OP_ADD_WATCH);
    fake_answer(&f, CLAVE_OK, &none);
    told(&s, "armed ");
    clave_async_persistent_watcher_free(s.w);
}

/* A cache goes on with a watch for each node. TestCuratorCacheBridge. */
TEST(a_cache_follows_on_a_server_before_3_6)
{
    CLOSED_BY(fake_close) struct fake_server f;
    clave_async_cache *cache;
    fake_open(&f, NULL);
    fake_connect(&f, true);
    assert_int_equal(clave_async_cache_new(&cache, f.c, "/a", NULL, NULL, NULL), CLAVE_OK);
    fake_expect(&f, OP_ADD_WATCH);
    fake_answer(&f, CLAVE_EUNIMPLEMENTED, NULL);
    fake_expect(&f, OP_EXISTS); /* which that server does not read any more */
    fake_hang_up(&f);
    fake_dial(&f);
    fake_answer_handshake(&f, FAKE_SESSION, FAKE_TIMEOUT, false);
    fake_config(&f, true);
    const struct wire_path_watch *q = &fake_expect(&f, OP_EXISTS)->body.read;
    assert_true(q->watch);
    fake_answer(&f, CLAVE_ENONODE, NULL);
    assert_true(clave_async_cache_status_of(cache).current);
    fake_event(&f, EVENT_CREATED, "/a");
    q = &fake_expect(&f, OP_GET_DATA)->body.read;
    assert_true(q->watch);
    clave_async_cache_free(cache);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TEST_EACH_ALLOCATION(any_allocation_may_fail, 4)
{
    struct story s = {0};
    struct memnet *p = memnet_on(mem, 2, TIMEOUT);
    memnet_settle(p);
    failmem_arm(mem, which, 1);
    clave_err err =
        clave_async_persistent_watcher_new(&s.w, p->clients[USER].c, "/a", NULL, on_event, &s);
    memnet_settle(p);
    memnet_cut(p, USER);
    memnet_advance(p, 3000);
    failmem_disarm(mem);
    memnet_advance(p, 3000);
    if (err == CLAVE_OK) {
        assert_true(clave_async_persistent_watcher_is_armed(s.w));
        s.text[0] = '\0';
        create(p, "/a");
        told(&s, "+/a ");
    } else {
        assert_int_equal(err, CLAVE_ENOMEM);
        assert_null(s.w);
    }
    end(p, &s);
}

TEST(an_invalid_watcher_is_refused)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(NULL);
    clave_async_client *c = p->clients[USER].c;
    clave_async_persistent_watcher *w;
    clave_async_watch *watch;
    unsigned fired;
    assert_int_equal(clave_async_persistent_watcher_new(&w, c, "a", NULL, on_event, NULL),
                     CLAVE_EPATH);
    assert_int_equal(clave_async_persistent_watcher_new(&w, c, NULL, NULL, on_event, NULL),
                     CLAVE_EPATH);
    assert_int_equal(clave_async_persistent_watcher_new(&w, c, "/a", NULL, NULL, NULL),
                     CLAVE_EINVAL);
    assert_null(w);
    clave_async_persistent_watcher_free(NULL);
    assert_int_equal(clave_async_watch_new(&watch, c, on_once, &fired), CLAVE_OK);
    assert_int_equal(clave_async_add_watch(c, "/a", (clave_watch_mode)2, watch, NULL, NULL),
                     CLAVE_EINVAL);
    assert_int_equal(clave_async_add_watch(c, "/a", CLAVE_WATCH_PERSISTENT, NULL, NULL, NULL),
                     CLAVE_EINVAL);
    assert_int_equal(clave_async_add_watch(c, "/a", CLAVE_WATCH_PERSISTENT, watch, NULL, NULL),
                     CLAVE_OK);
    assert_int_equal(clave_async_add_watch(c, "/a", CLAVE_WATCH_PERSISTENT, watch, NULL, NULL),
                     CLAVE_EINVAL);
    clave_async_watch_free(watch);
    memnet_settle(p);
    assert_int_equal(memnet_stats(p).watches, 0);
}
