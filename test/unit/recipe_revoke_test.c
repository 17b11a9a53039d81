/* Asking for a lock that another holds: Curator's Revoker, for every kind of lock. */
#include "lib/async_grants.h"
#include "lib/semaphore_user.h"
#include "lib/unit.h"

static const clave_mutex_options revocable = {.size = sizeof revocable, .revocable = true};

static struct memnet *world(size_t clients)
{
    return memnet_new(&(struct memnet_options){.clients = clients});
}

static void on_asked_for(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    *(clave_err *)arg = res->err;
}

static clave_err revoke(struct memnet *p, size_t by, const char *node)
{
    clave_err done = CLAVE_ETIMEDOUT;
    clave_err err = clave_async_revoke(p->clients[by].c, node, on_asked_for, &done);
    memnet_settle(p);
    return err == CLAVE_OK ? done : err;
}

/* The Revoker wakes the holder's listener; when that lets go, the second lock acquires. */
TEST(testRevoking)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    char node[160];
    owner_open(&a, p, 0, "/l", &revocable);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(a.asked, 0);
    snprintf(node, sizeof node, "%s", owner_grant(&a).node);
    assert_int_equal(revoke(p, 1, node), CLAVE_OK);
    assert_int_equal(a.asked, 1);
    assert_true(owner_holds(&a)); /* it is only asked */
    assert_int_equal(a.lost, 0);
    memnet_advance(p, 60000);
    assert_int_equal(a.asked, 1);
    assert_int_equal(revoke(p, 1, node), CLAVE_OK);
    assert_int_equal(a.asked, 2);
    assert_int_equal(owner_release(&a), CLAVE_OK);
    assert_true(owner_holds(&b));
    assert_int_equal(revoke(p, 1, node), CLAVE_ENONODE);
}

TEST(one_that_is_not_revocable_hears_nothing)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a;
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(revoke(p, 1, owner_grant(&a).node), CLAVE_OK);
    memnet_advance(p, 60000);
    assert_int_equal(a.asked, 0);
    assert_true(owner_holds(&a));
}

/* Asked for while it waits: told when it holds, since only then can it let go. */
TEST(one_that_waits_hears_of_it_when_it_holds)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a, b;
    char names[2][96], node[128];
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", &revocable);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    assert_int_equal(memnet_list(p, 0, "/l", names, 2), 2);
    snprintf(node, sizeof node, "/l/%s",
             strstr(owner_grant(&a).node, names[0]) ? names[1] : names[0]);
    assert_int_equal(revoke(p, 0, node), CLAVE_OK);
    assert_int_equal(b.asked, 0);
    owner_release(&a);
    assert_true(owner_holds(&b));
    assert_int_equal(b.asked, 1);
}

TEST(both_sides_of_a_read_write_lock_can_be_asked)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(rwlock_owner_close) struct rwlock_owner a;
    rwlock_owner_open(&a, p, 0, "/rw", &revocable);
    owner_acquire(&a.write, OWNER_FOREVER);
    owner_acquire(&a.read, OWNER_FOREVER);
    assert_int_equal(revoke(p, 1, owner_grant(&a.read).node), CLAVE_OK);
    assert_int_equal(a.read.asked, 1);
    assert_int_equal(a.write.asked, 0);
    assert_int_equal(revoke(p, 1, owner_grant(&a.write).node), CLAVE_OK);
    assert_int_equal(a.write.asked, 1);
}

TEST(a_lease_can_be_asked_for)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(semaphore_user_close) struct semaphore_user a, b;
    struct grant_facts g;
    clave_semaphore_options o = {.limit = 2, .revocable = true};
    assert_int_equal(semaphore_user_open_with(&a, p, 0, o), CLAVE_OK);
    semaphore_user_open(&b, p, 1, 2);
    semaphore_user_acquire(&a, 2, OWNER_FOREVER);
    semaphore_user_acquire(&b, 1, OWNER_FOREVER);
    assert_true(clave__lease_held(a.held[0], &g));
    assert_int_equal(revoke(p, 1, g.node), CLAVE_OK);
    assert_int_equal(a.asked, 1);
    assert_int_equal(semaphore_user_release(&a), CLAVE_OK);
    assert_int_equal(b.n, 1);
}

/* The word comes while the holder is cut off: it is heard of after the reconnect. */
TEST(a_request_is_heard_of_after_a_reconnect)
{
    CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a;
    char node[160];
    owner_open(&a, p, 0, "/l", &revocable);
    owner_acquire(&a, OWNER_FOREVER);
    snprintf(node, sizeof node, "%s", owner_grant(&a).node);
    memnet_refuse(p, 0, true);
    assert_int_equal(revoke(p, 1, node), CLAVE_OK);
    memnet_advance(p, 1000);
    assert_int_equal(a.asked, 0);
    memnet_refuse(p, 0, false);
    memnet_advance(p, 3000);
    assert_true(owner_holds(&a));
    assert_int_equal(a.asked, 1);
}

/* ---- what the node says ---------------------------------------------------------------------- */

#define WHO "clave/1\nhost=web1\npid=4711\n"

static void on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    assert_int_equal(res->err, CLAVE_OK);
    memcpy(arg, res->data, res->len);
    ((char *)arg)[res->len] = '\0';
}

static const char *says(struct memnet *p, const char *node)
{
    static char data[512];
    assert_int_equal(clave_async_get(p->clients[1].c, node, NULL, on_read, data), CLAVE_OK);
    memnet_settle(p);
    return data;
}

/* Opened by client 0, and long enough held that its node is watched. */
static const char *held_with(struct mutex_owner *a, struct memnet *p, const char *data,
                             bool listens)
{
    clave_mutex_options o = {
        .size = sizeof o, .data = data, .len = strlen(data), .revocable = listens};
    owner_open(a, p, 0, "/l", &o);
    owner_acquire(a, OWNER_FOREVER);
    memnet_advance(p, 9000);
    return owner_grant(a).node;
}

/* By clave, and by Curator, whose word the holder replaces. */
TEST(a_request_keeps_what_a_node_of_claves_says)
{
    static const struct {
        const char *data, *asked;
        bool listens, word;
        clave_err err;
    } rows[] = {
        {WHO "revocable=1\n", WHO "revocable=1\nasked=1\n", true, false, CLAVE_OK},
        {WHO, WHO "asked=1\n", true, false, CLAVE_OK},
        {WHO, WHO "asked=1\n", false, false,
         CLAVE_OK}, /* it does not say that it does not listen */
        {WHO "revocable=0\n", WHO "revocable=0\n", false, false, CLAVE_EINVAL},
        {WHO "revocable=1\n", WHO "revocable=1\nasked=1\n", true, true, CLAVE_OK},
        {WHO "revocable=0\n", WHO "revocable=0\nasked=1\n", false, true, CLAVE_OK},
        {"10.0.0.1", "10.0.0.1", true, true, CLAVE_OK},
        {"10.0.0.1", "10.0.0.1", true, false, CLAVE_OK},
        {CLAVE_REVOKE_WORD, CLAVE_REVOKE_WORD, true, true, CLAVE_OK}, /* nothing to restore */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLOSED_BY(memnet_left_clean) struct memnet *p = world(2);
        CLOSED_BY(owner_close) struct mutex_owner a;
        const char *node = held_with(&a, p, rows[i].data, rows[i].listens);
        for (unsigned n = 1; n <= 2; n++) {
            clave_err err =
                rows[i].word ? memnet_set(p, 1, node, CLAVE_REVOKE_WORD) : revoke(p, 1, node);
            assert_int_equal(err, rows[i].err);
            memnet_advance(p, 1000);
            assert_string_equal(says(p, node), rows[i].asked);
            assert_int_equal(a.asked, rows[i].listens ? n : 0);
        }
    }
}

/* The owner writes to its node (`clave lock`, once, after the grant) between the look and the
 * request. */
TEST(a_write_in_between_is_not_overwritten)
{
    clave_err done = CLAVE_ETIMEDOUT;
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a;
    const char *node = held_with(&a, p, WHO "granted=ctime\n", false);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REPLY, OP_GET_DATA, MEMNET_HOLD, 0});
    assert_int_equal(clave_async_revoke(p->clients[1].c, node, on_asked_for, &done), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(memnet_set(p, 0, node, WHO "granted=mtime\n"), CLAVE_OK);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(done, CLAVE_OK);
    assert_string_equal(says(p, node), WHO "granted=mtime\nasked=1\n");
}

/* The answer is lost: whether it was asked is not known, and it was. */
TEST(an_answer_that_is_lost_is_neither)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    CLOSED_BY(owner_close) struct mutex_owner a;
    const char *node = held_with(&a, p, WHO, true);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REPLY, OP_SET_DATA, MEMNET_LOSE, 0});
    clave_err err = revoke(p, 1, node);
    assert_int_equal(clave_err_classify(err), CLAVE_CLASS_UNKNOWN);
    memnet_advance(p, 5000);
    assert_int_equal(a.asked, 1);
    assert_string_equal(says(p, node), WHO "asked=1\n");
}

TEST(a_node_that_goes_between_look_and_request)
{
    clave_err done = CLAVE_ETIMEDOUT;
    struct mutex_owner a;
    char node[160];
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    snprintf(node, sizeof node, "%s", held_with(&a, p, WHO, true));
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REPLY, OP_GET_DATA, MEMNET_HOLD, 0});
    assert_int_equal(clave_async_revoke(p->clients[1].c, node, on_asked_for, &done), CLAVE_OK);
    memnet_settle(p);
    owner_release(&a);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(done, CLAVE_ENONODE);
    assert_int_equal(a.asked, 0);
    owner_close(&a);
}

TEST(of_others_only_curators_are_sent_the_word)
{
    static const struct {
        const char *node, *then;
        clave_err err;
    } rows[] = {
        {"/x/_c_1-lock-0000000001", CLAVE_REVOKE_WORD, CLAVE_OK},
        {"/x/_c_1-__WRIT__0000000002", CLAVE_REVOKE_WORD, CLAVE_OK},
        {"/x/_c_1-latch-0000000003", "me", CLAVE_OK}, /* clave's leaders look for any write */
        {"/x/0123456789abcdef0123456789abcdef__lock__0000000004", "me", CLAVE_EINVAL},
    };
    CLOSED_BY(memnet_freed) struct memnet *p = world(2);
    assert_int_equal(memnet_create(p, 0, "/x"), CLAVE_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(memnet_create(p, 0, rows[i].node), CLAVE_OK);
        assert_int_equal(memnet_set(p, 0, rows[i].node, "me"), CLAVE_OK);
        assert_int_equal(revoke(p, 1, rows[i].node), rows[i].err);
        assert_string_equal(says(p, rows[i].node), rows[i].then);
    }
}
