/* Deadlocks of real clients, found from outside: which there are, and who is in them. */
#include "clave/async/deadlock.h"
#include "lib/deadlock_cycle.h"
#include "lib/unit.h"

/* ---- looking from outside ---------------------------------------------------------------- */

struct finding {
    unsigned times;
    clave_err err;
    size_t n, members;
    size_t victim;
    bool certain;
    char text[512];
    char node[128];
};

static void on_found(clave_async_client *c, clave_err err, const clave_deadlock *list, size_t n,
                     void *arg)
{
    struct finding *f = arg;
    (void)c;
    f->times++;
    f->err = err;
    f->n = n;
    f->members = n > 0 ? list[0].n : 0;
    f->victim = n > 0 ? list[0].victim : 0;
    f->certain = n > 0 && list[0].certain;
    snprintf(f->text, sizeof f->text, "%s", n > 0 ? list[0].text : "");
    snprintf(f->node, sizeof f->node, "%s", n > 0 ? list[0].members[0].node : "");
}

static void ask(struct finding *f, struct memnet *p, size_t client, const char *root)
{
    *f = (struct finding){0};
    assert_int_equal(clave_async_deadlocks_find(p->clients[client].c, &root, 1, on_found, f),
                     CLAVE_OK);
}

static struct finding look(struct memnet *p, size_t client, const char *root)
{
    struct finding f;
    ask(&f, p, client, root);
    memnet_settle(p);
    assert_int_equal(f.times, 1);
    return f;
}

TEST(a_cycle_is_found_and_told)
{
    struct memnet *p = cycle_world(4);
    CLOSED_BY(cycle_close) struct deadlock_cycle r;
    cycle_open(&r, p, 3, NULL);
    cycle_wait(&r, 0);
    cycle_wait(&r, 1);
    assert_int_equal(look(p, 3, "/locks").n, 0);
    cycle_wait(&r, 2);
    struct finding f = look(p, 3, "/");
    assert_int_equal(f.err, CLAVE_OK);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.members, 3);
    assert_int_equal(f.victim, 3); /* nobody has offered to give up */
    assert_false(f.certain);       /* a session may have another owner, which holds and goes on */
    assert_string_equal(f.text, "h pid 3 (C) waits for /locks/a behind h pid 1 (A), who waits for "
                                "/locks/b behind h pid 2 (B), who waits for /locks/c behind h pid "
                                "3 (C)");
    owner_close(&r.wants[1]);
    assert_int_equal(look(p, 3, "/locks").n, 0);
}

TEST(nothing_is_found_where_nothing_is)
{
    CLOSED_BY(memnet_freed) struct memnet *p = cycle_world(1);
    struct finding f = look(p, 0, "/nowhere");
    assert_int_equal(f.err, CLAVE_OK);
    assert_int_equal(f.n, 0);
    const char *bad = "locks";
    assert_int_equal(clave_async_deadlocks_find(p->clients[0].c, &bad, 1, on_found, &f),
                     CLAVE_EPATH);
    assert_int_equal(clave_async_deadlocks_find(p->clients[0].c, &bad, 0, on_found, &f),
                     CLAVE_EINVAL);
    assert_int_equal(clave_async_deadlocks_find(p->clients[0].c, &bad, 1, NULL, &f), CLAVE_EINVAL);
}

/* A wait that ends between the two readings did not stand with the others. */
TEST(a_cycle_that_dissolves_between_two_looks_is_none)
{
    struct memnet *p = cycle_world(3);
    CLOSED_BY(cycle_close) struct deadlock_cycle r;
    struct finding f;
    cycle_open(&r, p, 2, NULL);
    cycle_wait(&r, 0);
    cycle_wait(&r, 1);
    assert_int_equal(look(p, 2, "/locks").n, 1);
    /* The second reading begins with a sync, too. */
    memnet_rule(p, (struct memnet_rule){2, MEMNET_REQUEST, OP_SYNC, MEMNET_HOLD, 1});
    ask(&f, p, 2, "/locks");
    memnet_settle(p);
    assert_int_equal(f.times, 0);
    owner_close(&r.wants[1]);
    assert_int_equal(owner_open(&r.wants[1], p, 1, "/locks/a", NULL), CLAVE_OK);
    cycle_wait(&r, 1); /* and another takes its place: a cycle again, of another node */
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(f.times, 1);
    assert_int_equal(f.n, 0);
    assert_int_equal(look(p, 2, "/locks").n, 1);
}

static void on_known(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    (void)arg;
    assert_int_equal(res->err, CLAVE_OK);
}

/* The one who looks may know less than those who wait. */
TEST(nodes_that_are_not_readable_are_left_out)
{
    static const clave_acl own = {CLAVE_PERM_ALL, "auth", ""};
    struct memnet *p = cycle_world(3);
    CLOSED_BY(cycle_close) struct deadlock_cycle r;
    clave_mutex_options o = {.size = sizeof o, .acls = &own, .nacls = 1};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(clave_async_add_auth(p->clients[i].c, "digest", "a:b", 3, on_known, NULL),
                         CLAVE_OK);
    cycle_open(&r, p, 2, &o);
    cycle_wait(&r, 0);
    cycle_wait(&r, 1);
    struct finding f = look(p, 2, "/locks");
    assert_int_equal(f.err, CLAVE_OK);
    assert_int_equal(f.n, 0);
    assert_int_equal(look(p, 1, "/locks").members, 2);
}

TEST(a_look_survives_a_lost_connection)
{
    static const int ops[] = {OP_SYNC, OP_GET_CHILDREN2, OP_GET_DATA};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (unsigned skip = 0; skip < 3; skip++) {
            struct memnet *p = cycle_world(3);
            CLOSED_BY(cycle_close) struct deadlock_cycle r;
            struct finding f;
            cycle_open(&r, p, 2, NULL);
            cycle_wait(&r, 0);
            cycle_wait(&r, 1);
            memnet_rule(p, (struct memnet_rule){2, MEMNET_REPLY, ops[i], MEMNET_LOSE, skip});
            ask(&f, p, 2, "/locks");
            memnet_advance(p, 1000);
            assert_int_equal(f.times, 1);
            if (f.err == CLAVE_OK)
                assert_int_equal(f.n, 1);
            else
                assert_int_equal(clave_err_classify(f.err), CLAVE_CLASS_UNKNOWN);
        }
}

TEST(a_look_ends_with_its_client)
{
    CLOSED_BY(memnet_freed) struct memnet *p = cycle_world(2);
    struct finding f;
    assert_int_equal(memnet_create(p, 0, "/locks"), CLAVE_OK);
    ask(&f, p, 1, "/locks");
    clave_async_client_free(p->clients[1].c);
    p->clients[1].c = NULL;
    assert_int_equal(f.times, 1);
    assert_int_equal(f.err, CLAVE_ECLOSED);
}

/* ---- owners ------------------------------------------------------------------------------ */

static void open_as(struct mutex_owner *s, struct memnet *p, size_t client, uint64_t owner,
                    const char *path)
{
    clave_mutex_options o = cycle_options();
    assert_int_equal(owner_open(s, p, client, path, &o), CLAVE_OK);
    s->owner = owner;
}

static void close_all(struct mutex_owner *s, size_t n)
{
    CLOSED_BY(memnet_freed) struct memnet *p = s->p;
    for (size_t i = 0; i < n; i++)
        owner_close(&s[i]);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
}

/* Of three owners on one session, one holds what another session waits for, and another waits:
 * no deadlock. When the holder waits too, there is one. */
TEST(owners_of_one_session_are_told_apart)
{
    struct memnet *p = cycle_world(3);
    struct mutex_owner s[5];
    open_as(&s[0], p, 0, 1, "/locks/a");
    open_as(&s[1], p, 1, 0, "/locks/b");
    open_as(&s[2], p, 0, 2, "/locks/b");
    open_as(&s[3], p, 1, 0, "/locks/a");
    open_as(&s[4], p, 0, 1, "/locks/b");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(owner_acquire(&s[i], OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(look(p, 2, "/locks").n, 0);
    assert_int_equal(owner_acquire(&s[4], OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(look(p, 2, "/locks").members, 2);
    close_all(s, 5);
}

static void on_roll(clave_async_client *c, clave_err err, const clave_participant *list, size_t n,
                    void *arg)
{
    (void)c;
    assert_int_equal(err, CLAVE_OK);
    assert_int_equal(n, 1);
    snprintf(arg, 32, "%s", list[0].identity.task ? list[0].identity.task : "");
}

static void task_of(struct memnet *p, char out[32])
{
    strcpy(out, "?");
    assert_int_equal(clave_async_participants(p->clients[0].c, "/locks/a", on_roll, out), CLAVE_OK);
    memnet_settle(p);
}

/* Where the data is of clave's form, and not to be left as it is. */
TEST(nodes_say_which_owner_they_are_of)
{
    CLOSED_BY(memnet_freed) struct memnet *p = cycle_world(1);
    clave_mutex_options form = cycle_options(), text = form, none = {.size = sizeof none};
    text.data = "mine";
    text.len = 4;
    const struct {
        const clave_mutex_options *o;
        uint64_t owner;
        bool simple;
        const char *task;
    } cases[] = {
        {&form, 0, false, ""}, {&form, 0xa1, false, "a1"}, {&form, 0xa1, true, ""},
        {&text, 7, false, ""}, {&none, 7, false, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(owner_close) struct mutex_owner s;
        char task[32];
        clave_err err = cases[i].simple ? owner_open_simple(&s, p, 0, "/locks/a", "n-", cases[i].o)
                                        : owner_open(&s, p, 0, "/locks/a", cases[i].o);
        assert_int_equal(err, CLAVE_OK);
        s.owner = cases[i].owner;
        assert_int_equal(owner_acquire(&s, OWNER_FOREVER), CLAVE_OK);
        task_of(p, task);
        assert_string_equal(task, cases[i].task);
    }
}

static void open_named(struct mutex_owner *s, struct memnet *p, size_t client, const char *owner,
                       const char *path)
{
    char data[128];
    clave_identity id = {.owner = owner};
    clave_mutex_options o = {.size = sizeof o, .data = data};
    o.len = clave_identity_format(&id, data, sizeof data);
    assert_int_equal(owner_open(s, p, client, path, &o), CLAVE_OK);
    assert_int_equal(owner_acquire(s, OWNER_FOREVER), CLAVE_OK);
}

/* A command under a lock that takes another: two sessions, one owner and its part. */
TEST(an_owner_may_have_several_sessions)
{
    struct memnet *p = cycle_world(5);
    struct mutex_owner s[4];
    open_named(&s[0], p, 0, "x", "/locks/a");
    open_named(&s[1], p, 1, "y", "/locks/b");
    open_named(&s[2], p, 2, "x/1", "/locks/b");
    assert_int_equal(look(p, 4, "/locks").n, 0);
    open_named(&s[3], p, 3, "y/1", "/locks/a");
    struct finding f = look(p, 4, "/locks");
    assert_int_equal(f.n, 1);
    assert_true(f.certain);
    assert_int_equal(f.members, 4);
    close_all(s, 4);
}

TEST(a_part_that_waits_for_its_whole)
{
    struct memnet *p = cycle_world(3);
    struct mutex_owner s[2];
    open_named(&s[0], p, 0, "x", "/locks/a");
    open_named(&s[1], p, 1, "x/1", "/locks/a");
    struct finding f = look(p, 2, "/locks");
    assert_int_equal(f.members, 2);
    assert_string_equal(f.text, "owner x/1 waits for /locks/a behind owner x, who is to outlast "
                                "owner x/1");
    close_all(s, 2);
}

TEST(a_downgraded_read_is_not_behind_its_write)
{
    CLOSED_BY(memnet_freed) struct memnet *p = cycle_world(3);
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a, b;
    clave_mutex_options o = cycle_options();
    assert_int_equal(rwlock_owner_open(&a, p, 0, "/locks/rw", &o), CLAVE_OK);
    assert_int_equal(rwlock_owner_open(&b, p, 1, "/locks/rw", &o), CLAVE_OK);
    assert_int_equal(owner_acquire(&a.write, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(owner_acquire(&b.write, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(owner_acquire(&a.read, OWNER_FOREVER), CLAVE_OK);
    assert_true(owner_holds(&a.read));
    assert_int_equal(look(p, 2, "/").n, 0);
}

TEST(too_many_nodes_are_too_many)
{
    CLOSED_BY(memnet_freed) struct memnet *p = cycle_world(1);
    char path[32];
    assert_int_equal(memnet_create(p, 0, "/locks"), CLAVE_OK);
    for (size_t i = 0; i < 50100; i++) {
        if (i % 10000 == 0)
            sprintf(path, "/locks/%zu", i / 10000);
        else
            sprintf(path, "/locks/%zu/%zu", i / 10000, i % 10000);
        assert_int_equal(memnet_create(p, 0, path), CLAVE_OK);
    }
    struct finding f = look(p, 0, "/");
    assert_int_equal(f.err, CLAVE_ETOOBIG);
    assert_non_null(
        strstr(clave_async_client_errmsg(p->clients[0].c), "more than 50000 nodes below /"));
}
