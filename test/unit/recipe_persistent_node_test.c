/* A node that stays as long as its owner: created, created again, replaced, told of, deleted.
 * Curator's tests of PersistentNode, PersistentEphemeralNode, PersistentTtlNode and GroupMember
 * bear their names. */
#include "clave/async/persistent_node.h"
#include "lib/each_fault.h"
#include "lib/fake_server.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 8000, A = 0, B = 1, OTHER = 2 };

/* One node and everything it told: "present absent:ENONODE conflict failed:ENOAUTH ". */
struct keeper {
    struct memnet *p;
    size_t client;
    clave_async_persistent_node *n;
    char text[512];
    int64_t czxid, owner;
    bool free_in_event;
    unsigned answers;
    clave_err err;
};

static void on_event(clave_async_persistent_node *n, const clave_persistent_node_event *ev,
                     void *arg)
{
    static const char *const words[] = {
        [CLAVE_PERSISTENT_NODE_PRESENT] = "present",
        [CLAVE_PERSISTENT_NODE_ABSENT] = "absent:",
        [CLAVE_PERSISTENT_NODE_CONFLICT] = "conflict",
        [CLAVE_PERSISTENT_NODE_FAILED] = "failed:",
    };
    struct keeper *k = arg;
    size_t used = strlen(k->text);
    bool has_err =
        ev->type == CLAVE_PERSISTENT_NODE_ABSENT || ev->type == CLAVE_PERSISTENT_NODE_FAILED;
    snprintf(k->text + used, sizeof k->text - used, "%s%s ", words[ev->type],
             has_err ? clave_err_name(ev->err) : "");
    assert_string_equal(ev->path, clave_async_persistent_node_path(n));
    if (ev->type == CLAVE_PERSISTENT_NODE_PRESENT) {
        assert_true(ev->czxid > k->czxid);
        k->czxid = ev->czxid;
    }
    if (ev->type == CLAVE_PERSISTENT_NODE_CONFLICT)
        k->owner = ev->owner;
    if (ev->type != CLAVE_PERSISTENT_NODE_FAILED)
        assert_int_equal(clave_async_persistent_node_is_present(n),
                         ev->type == CLAVE_PERSISTENT_NODE_PRESENT);
    if (k->free_in_event)
        clave_async_persistent_node_free(n);
}

static void on_done(clave_async_persistent_node *n, clave_err err, void *arg)
{
    struct keeper *k = arg;
    (void)n;
    k->answers++;
    k->err = err;
}

static void told(struct keeper *k, const char *text)
{
    assert_string_equal(k->text, text);
    k->text[0] = '\0';
}

static struct memnet *world(void)
{
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 3, .timeout_ms = TIMEOUT});
    memnet_settle(p);
    return p;
}

/* Does not settle. */
static void keep(struct keeper *k, struct memnet *p, size_t client, const char *path,
                 clave_persistent_node_options o)
{
    *k = (struct keeper){.p = p, .client = client};
    o.size = sizeof o;
    o.event_cb = on_event;
    o.event_arg = k;
    if (!o.data) {
        o.data = "up";
        o.len = 2;
    }
    assert_int_equal(clave_async_persistent_node_new(&k->n, p->clients[client].c, path, &o),
                     CLAVE_OK);
}

static void stay(struct keeper *k, struct memnet *p, size_t client)
{
    keep(k, p, client, "/group/a", (clave_persistent_node_options){0});
    memnet_settle(p);
}

/* The node as the server has it. */
struct seen {
    bool there;
    char data[64];
    clave_stat stat;
};

static void on_seen(clave_async_client *c, const clave_result *res, void *arg)
{
    struct seen *s = arg;
    (void)c;
    if (res->err != CLAVE_OK)
        return;
    s->there = true;
    s->stat = *res->stat;
    snprintf(s->data, sizeof s->data, "%.*s", (int)res->len, (const char *)res->data);
}

static struct seen look(struct memnet *p, const char *path)
{
    struct seen s = {0};
    assert_int_equal(clave_async_get(p->clients[OTHER].c, path, NULL, on_seen, &s), CLAVE_OK);
    memnet_settle(p);
    return s;
}

static void expect(struct memnet *p, const char *path, size_t client, const char *data)
{
    struct seen s = look(p, path);
    assert_true(s.there);
    assert_string_equal(s.data, data);
    assert_int_equal(s.stat.ephemeral_owner, clave_async_client_session_id(p->clients[client].c));
}

static void gone(struct memnet *p, const char *path)
{
    assert_false(look(p, path).there);
}

static void end(struct memnet *p)
{
    memnet_settle(p);
    assert_int_equal(memnet_stats(p).watches, 0);
    memnet_free(p);
}

static void leave(struct keeper *k)
{
    clave_async_persistent_node_free(k->n);
    memnet_settle(k->p);
}

/* ---- it is there, and there again ------------------------------------------------------------ */

TEST(testDeletesNodeWhenClosed)
{
    struct memnet *p = world();
    struct keeper k;
    stay(&k, p, A);
    told(&k, "present ");
    expect(p, "/group/a", A, "up");
    assert_int_equal(look(p, "/group/a").stat.czxid, k.czxid);
    assert_int_equal(clave_async_persistent_node_close(k.n, on_done, &k), CLAVE_OK);
    assert_int_equal(k.answers, 0);
    memnet_settle(p);
    assert_int_equal(k.answers, 1);
    assert_int_equal(k.err, CLAVE_OK);
    gone(p, "/group/a");
    told(&k, "");
    /* testClosingMultipleTimes */
    assert_int_equal(clave_async_persistent_node_close(k.n, on_done, &k), CLAVE_EINVAL);
    assert_int_equal(clave_async_persistent_node_set(k.n, "x", 1, on_done, &k), CLAVE_EINVAL);
    leave(&k);
    assert_int_equal(k.answers, 1);
    stay(&k, p, A);
    leave(&k);
    gone(p, "/group/a");
    end(p);
}

TEST(testRecreatesNodeWhenItGetsDeleted)
{
    struct memnet *p = world();
    struct keeper k;
    stay(&k, p, A);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(memnet_delete(p, OTHER, "/group/a"), CLAVE_OK);
        memnet_settle(p);
        expect(p, "/group/a", A, "up");
    }
    told(&k, "present absent:ENONODE present absent:ENONODE present absent:ENONODE present ");
    leave(&k);
    end(p);
}

TEST(testRecreatesNodeWhenSessionReconnects)
{
    struct memnet *p = world();
    struct keeper k;
    stay(&k, p, A);
    for (int i = 0; i < 2; i++) {
        memnet_kill_session(p, A);
        memnet_advance(p, 2000);
        expect(p, "/group/a", A, "up");
    }
    told(&k, "present absent:EEXPIRED present absent:EEXPIRED present ");
    leave(&k);
    end(p);
}

TEST(a_reconnect_keeps_the_node)
{
    struct memnet *p = world();
    struct keeper k;
    stay(&k, p, A);
    int64_t czxid = k.czxid;
    memnet_cut(p, A);
    memnet_advance(p, 2000);
    assert_int_equal(look(p, "/group/a").stat.czxid, czxid);
    told(&k, "present ");
    /* it was deleted while there was no connection */
    memnet_refuse(p, A, true);
    memnet_settle(p);
    assert_int_equal(memnet_delete(p, OTHER, "/group/a"), CLAVE_OK);
    memnet_refuse(p, A, false);
    memnet_advance(p, 2000);
    expect(p, "/group/a", A, "up");
    told(&k, "absent:ENONODE present ");
    leave(&k);
    end(p);
}

/* The client gives its session up by its own clock while the server still has it: the node of the
 * former session is replaced in one transaction. Curator adopts it, and loses it. */
TEST(a_node_of_a_former_session_is_replaced_without_a_gap)
{
    struct memnet *p = world();
    struct keeper k;
    stay(&k, p, A);
    int64_t session = clave_async_client_session_id(p->clients[A].c);
    memnet_refuse(p, A, true);
    for (int i = 0; i < 100 && !memnet_saw(p, A, CLAVE_STATE_LOST); i++)
        memnet_advance(p, TIMEOUT / 100);
    told(&k, "present absent:EEXPIRED ");
    assert_int_equal(look(p, "/group/a").stat.ephemeral_owner, session);
    memnet_reset_counts(p);
    memnet_refuse(p, A, false);
    for (int i = 0; i < 100 && k.text[0] == '\0'; i++) {
        memnet_advance(p, 20);
        assert_true(look(p, "/group/a").there);
    }
    told(&k, "present ");
    assert_int_not_equal(clave_async_client_session_id(p->clients[A].c), session);
    assert_int_equal(p->clients[A].requests[OP_MULTI], 1);
    memnet_advance(p, 3 * TIMEOUT); /* the former session ends */
    expect(p, "/group/a", A, "up");
    told(&k, "");
    leave(&k);
    end(p);
}

/* ---- others ---------------------------------------------------------------------------------- */

/* testRecreatesNodeWhenEphemeralOwnerSessionExpires: it is created when the other one is gone. */
TEST(anothers_node_is_a_conflict_and_not_adopted)
{
    struct memnet *p = world();
    struct keeper a, b;
    stay(&a, p, A);
    stay(&b, p, B);
    told(&b, "conflict ");
    assert_int_equal(b.owner, clave_async_client_session_id(p->clients[A].c));
    memnet_cut(p, B); /* looked at again, and told once */
    memnet_advance(p, 2000);
    expect(p, "/group/a", A, "up");
    told(&b, "");
    memnet_kill_session(p, A);
    memnet_settle(p);
    expect(p, "/group/a", B, "up");
    told(&b, "present ");
    memnet_advance(p, 2000);
    told(&a, "present absent:EEXPIRED conflict ");
    leave(&a); /* nothing of its own is there */
    expect(p, "/group/a", B, "up");
    leave(&b);
    gone(p, "/group/a");
    end(p);
}

TEST(a_node_that_is_not_ephemeral_is_a_conflict)
{
    struct memnet *p = world();
    struct keeper k;
    assert_int_equal(memnet_create(p, OTHER, "/group"), CLAVE_OK);
    assert_int_equal(memnet_create(p, OTHER, "/group/a"), CLAVE_OK);
    stay(&k, p, A);
    told(&k, "conflict ");
    assert_int_equal(k.owner, 0);
    assert_int_equal(clave_async_persistent_node_close(k.n, on_done, &k), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(k.err, CLAVE_OK);
    assert_true(look(p, "/group/a").there);
    leave(&k);
    end(p);
}

TEST(the_last_to_come_may_replace)
{
    struct memnet *p = world();
    struct keeper a, b;
    stay(&a, p, A);
    keep(&b, p, B, "/group/a", (clave_persistent_node_options){.replace = true});
    memnet_settle(p);
    memnet_advance(p, 5000);
    expect(p, "/group/a", B, "up");
    told(&a, "present absent:ENONODE conflict ");
    told(&b, "present ");
    leave(&b);
    expect(p, "/group/a", A, "up");
    leave(&a);
    /* one with children stays */
    assert_int_equal(memnet_create(p, OTHER, "/group/a"), CLAVE_OK);
    assert_int_equal(memnet_create(p, OTHER, "/group/a/b"), CLAVE_OK);
    keep(&b, p, B, "/group/a", (clave_persistent_node_options){.replace = true});
    memnet_settle(p);
    told(&b, "conflict ");
    leave(&b);
    end(p);
}

/* ---- answers that are lost ------------------------------------------------------------------- */

static void lose(struct memnet *p, enum memnet_direction way, int op)
{
    memnet_rule(p, (struct memnet_rule){.client = A, .way = way, .op = op, .fate = MEMNET_LOSE});
}

TEST(a_lost_answer_makes_no_second_node)
{
    for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++) {
        struct memnet *p = world();
        struct keeper k;
        assert_int_equal(memnet_create(p, OTHER, "/group"), CLAVE_OK);
        lose(p, way, OP_CREATE2);
        stay(&k, p, A);
        memnet_advance(p, 2000);
        told(&k, "present ");
        expect(p, "/group/a", A, "up");
        leave(&k);
        gone(p, "/group/a");
        end(p);
    }
}

/* testQuickClose, testQuickCloseNodeExists: nothing is left, whatever was lost, and when. */
TEST(freed_while_it_is_created)
{
    for (int step = 0; step < 4; step++) {
        struct memnet *p = world();
        struct keeper k;
        assert_int_equal(memnet_create(p, OTHER, "/group"), CLAVE_OK);
        if (step == 1 || step == 2)
            lose(p, step == 1 ? MEMNET_REQUEST : MEMNET_REPLY, OP_CREATE2);
        if (step == 3)
            memnet_rule(p,
                        (struct memnet_rule){.client = A, .way = MEMNET_REPLY, .op = OP_CREATE2});
        keep(&k, p, A, "/group/a", (clave_persistent_node_options){0});
        if (step == 3)
            memnet_settle(p);
        clave_async_persistent_node_free(k.n);
        memnet_clear(p);
        if (step == 1 || step == 2)
            lose(p, step == 1 ? MEMNET_REQUEST : MEMNET_REPLY, OP_CREATE2);
        memnet_settle(p);
        memnet_advance(p, 3000);
        told(&k, "");
        gone(p, "/group/a");
        end(p);
    }
}

/* The answer to a transaction tells that a node was made, but not its czxid: what is deleted is
 * that node, not the one whose place it took. */
TEST(left_while_it_takes_the_place_of_another)
{
    for (int closes = 0; closes < 2; closes++) {
        struct memnet *p = world();
        struct keeper a, b;
        stay(&b, p, B);
        memnet_rule(p, (struct memnet_rule){.client = A, .way = MEMNET_REPLY, .op = OP_MULTI});
        keep(&a, p, A, "/group/a", (clave_persistent_node_options){.replace = true});
        memnet_settle(p);
        if (closes)
            assert_int_equal(clave_async_persistent_node_close(a.n, on_done, &a), CLAVE_OK);
        else
            clave_async_persistent_node_free(a.n);
        clave_async_persistent_node_free(b.n); /* else it takes the place that is given up */
        memnet_settle(p);
        expect(p, "/group/a", A, "up");
        memnet_clear(p);
        lose(p, MEMNET_REQUEST, OP_DELETE); /* the node that is there then has to be the same */
        memnet_settle(p);
        memnet_advance(p, 3000);
        gone(p, "/group/a");
        if (closes)
            leave(&a);
        end(p);
    }
}

/* The answer to the create was lost: before it is looked for, something is committed, since a
 * deposed leader would show no node that its successor has. */
TEST(left_in_doubt_it_looks_behind_a_commit)
{
    struct memnet *p = world();
    struct keeper k;
    assert_int_equal(memnet_create(p, OTHER, "/group"), CLAVE_OK);
    lose(p, MEMNET_REPLY, OP_CREATE2);
    memnet_rule(p, (struct memnet_rule){.client = A, .way = MEMNET_REPLY, .op = OP_MULTI});
    keep(&k, p, A, "/group/a", (clave_persistent_node_options){0});
    assert_int_equal(clave_async_persistent_node_close(k.n, on_done, &k), CLAVE_OK);
    memnet_advance(p, 100);
    assert_int_equal(p->clients[A].requests[OP_EXISTS], 0);
    assert_int_equal(k.answers, 0);
    memnet_clear(p);
    memnet_advance(p, 100);
    assert_int_equal(p->clients[A].requests[OP_EXISTS], 1);
    assert_int_equal(k.answers, 1);
    assert_int_equal(k.err, CLAVE_OK);
    gone(p, "/group/a");
    leave(&k);
    end(p);
}

/* It had no session yet when it was freed; the create that waits for one is followed by a delete.
 */
TEST(freed_before_there_is_a_session)
{
    struct memnet *p = world();
    struct keeper k;
    memnet_refuse(p, A, true);
    memnet_settle(p);
    memnet_advance(p, 2 * TIMEOUT);
    keep(&k, p, A, "/group/a", (clave_persistent_node_options){0});
    clave_async_persistent_node_free(k.n);
    memnet_refuse(p, A, false);
    memnet_advance(p, 3000);
    gone(p, "/group/a");
    end(p);
}

TEST(another_is_left_alone_after_a_lost_answer)
{
    struct memnet *p = world();
    struct keeper k;
    assert_int_equal(memnet_create(p, OTHER, "/group"), CLAVE_OK);
    memnet_rule(p, (struct memnet_rule){.client = A, .way = MEMNET_REQUEST, .op = OP_CREATE2});
    keep(&k, p, A, "/group/a", (clave_persistent_node_options){0});
    memnet_settle(p);
    memnet_refuse(p, A, true); /* the request is lost */
    memnet_clear(p);
    assert_int_equal(memnet_create(p, OTHER, "/group/a"), CLAVE_OK);
    leave(&k);
    memnet_refuse(p, A, false);
    memnet_advance(p, 3000);
    assert_true(look(p, "/group/a").there);
    end(p);
}

/* ---- data ------------------------------------------------------------------------------------ */

static void set(struct keeper *k, const char *data)
{
    assert_int_equal(clave_async_persistent_node_set(k->n, data, strlen(data), on_done, k),
                     CLAVE_OK);
}

TEST(testSettingData)
{
    struct memnet *p = world();
    struct keeper k;
    keep(&k, p, A, "/group/a", (clave_persistent_node_options){0});
    set(&k, "before"); /* testQuickSetData: it is the first data, or follows them */
    memnet_settle(p);
    assert_int_equal(k.answers, 1);
    expect(p, "/group/a", A, "before");
    set(&k, "one");
    set(&k, "two");
    memnet_settle(p);
    assert_int_equal(k.answers, 3);
    expect(p, "/group/a", A, "two");
    assert_int_equal(memnet_delete(p, OTHER, "/group/a"), CLAVE_OK);
    memnet_settle(p);
    expect(p, "/group/a", A, "two");
    leave(&k);
    end(p);
}

/* testSetDataWhenDisconnected, testSetUpdatedDataWhenReconnected. */
TEST(data_set_without_a_connection_or_an_answer)
{
    struct memnet *p = world();
    struct keeper k;
    stay(&k, p, A);
    memnet_refuse(p, A, true);
    memnet_settle(p);
    set(&k, "apart");
    memnet_advance(p, 500);
    assert_int_equal(k.answers, 0);
    memnet_refuse(p, A, false);
    memnet_advance(p, 2000);
    assert_int_equal(k.answers, 1);
    expect(p, "/group/a", A, "apart");
    for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++) {
        lose(p, way, OP_SET_DATA);
        set(&k, way == MEMNET_REPLY ? "lost answer" : "lost request");
        memnet_advance(p, 2000);
        assert_int_equal(k.err, CLAVE_OK);
        expect(p, "/group/a", A, way == MEMNET_REPLY ? "lost answer" : "lost request");
    }
    assert_int_equal(k.answers, 3);
    memnet_kill_session(p, A);
    set(&k, "later");
    memnet_advance(p, 2000);
    assert_int_equal(k.answers, 4);
    expect(p, "/group/a", A, "later");
    told(&k, "present absent:EEXPIRED present ");
    leave(&k);
    end(p);
}

/* What is changed by others stays, until the owner changes it. */
TEST(others_may_change_the_data)
{
    struct memnet *p = world();
    struct keeper k;
    stay(&k, p, A);
    assert_int_equal(memnet_set(p, OTHER, "/group/a", "theirs"), CLAVE_OK);
    memnet_settle(p);
    expect(p, "/group/a", A, "theirs");
    set(&k, "mine");
    memnet_settle(p);
    expect(p, "/group/a", A, "mine");
    /* a conflict keeps a set waiting; a close ends it */
    struct keeper b;
    stay(&b, p, B);
    set(&b, "b");
    memnet_settle(p);
    assert_int_equal(b.answers, 0);
    assert_int_equal(clave_async_persistent_node_close(b.n, NULL, NULL), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.err, CLAVE_ECANCELED);
    leave(&b);
    leave(&k);
    end(p);
}

/* A write of A's is under way when its node is deleted and B's takes the place, at the same
 * version: the server does it, and A learns that the node is another's. */
TEST(a_write_to_anothers_node_is_not_taken_for_done)
{
    struct memnet *p = world();
    struct keeper a, b;
    stay(&a, p, A);
    stay(&b, p, B);
    memnet_rule(p, (struct memnet_rule){A, MEMNET_REQUEST, OP_SET_DATA, MEMNET_HOLD, 0});
    set(&a, "late");
    memnet_settle(p);
    assert_int_equal(memnet_delete(p, OTHER, "/group/a"), CLAVE_OK);
    memnet_settle(p);
    expect(p, "/group/a", B, "up");
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(a.answers, 0);
    told(&a, "present absent:ENONODE conflict ");
    expect(p, "/group/a", B, "late");
    leave(&b);
    memnet_settle(p);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.err, CLAVE_OK);
    expect(p, "/group/a", A, "late");
    leave(&a);
    end(p);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* testEphemeralSequentialWithProtectionReconnection, testSettingDataSequential: one node, always of
 * the same name. */
TEST(a_sequential_node_keeps_its_name)
{
    for (int lost = 0; lost < 2; lost++) {
        struct memnet *p = world();
        struct keeper k;
        char names[4][96], first[96];
        assert_int_equal(memnet_create(p, OTHER, "/group"), CLAVE_OK);
        if (lost)
            lose(p, MEMNET_REPLY, OP_CREATE2);
        keep(&k, p, A, "/group/n-",
             (clave_persistent_node_options){.kind = CLAVE_KEPT_EPHEMERAL_SEQUENTIAL});
        memnet_settle(p);
        memnet_advance(p, 2000);
        assert_int_equal(memnet_list(p, OTHER, "/group", names, 4), 1);
        snprintf(first, sizeof first, "%s", names[0]);
        assert_string_equal(first, "n-0000000000");
        assert_string_equal(clave_async_persistent_node_path(k.n), "/group/n-0000000000");
        assert_int_equal(memnet_create(p, OTHER, "/group/other"), CLAVE_OK);
        assert_int_equal(memnet_delete(p, OTHER, "/group/other"), CLAVE_OK);
        memnet_kill_session(p, A);
        memnet_advance(p, 2000);
        assert_int_equal(memnet_list(p, OTHER, "/group", names, 4), 1);
        assert_string_equal(names[0], first);
        set(&k, "new");
        memnet_settle(p);
        expect(p, "/group/n-0000000000", A, "new");
        told(&k, "present absent:EEXPIRED present ");
        leave(&k);
        assert_int_equal(memnet_list(p, OTHER, "/group", names, 4), 0);
        end(p);
    }
}

/* testBasic of PersistentNode; testSetDataWhenNodeExists. */
TEST(a_persistent_node_outlives_its_owner)
{
    struct memnet *p = world();
    struct keeper k;
    const clave_persistent_node_options o = {.kind = CLAVE_KEPT_PERSISTENT};
    keep(&k, p, A, "/group/a", o);
    memnet_settle(p);
    memnet_kill_session(p, A);
    memnet_advance(p, 2000);
    told(&k, "present ");
    leave(&k);
    assert_string_equal(look(p, "/group/a").data, "up");
    clave_persistent_node_options other = o;
    other.data = "other";
    other.len = 5;
    keep(&k, p, B, "/group/a", other);
    memnet_settle(p);
    told(&k, "present ");
    assert_string_equal(look(p, "/group/a").data, "other");
    assert_int_equal(clave_async_persistent_node_close(k.n, on_done, &k), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(k.err, CLAVE_OK);
    gone(p, "/group/a");
    leave(&k);
    end(p);
}

/* testBasic of PersistentTtlNode, testForcedDeleteOfTouchNode, testEventsOnParent. */
TEST(a_ttl_node_is_kept_by_its_child)
{
    struct memnet *p = memnet_new(
        &(struct memnet_options){.clients = 3, .timeout_ms = TIMEOUT, .extended_types = true});
    memnet_settle(p);
    struct keeper k;
    keep(&k, p, A, "/group/a",
         (clave_persistent_node_options){.kind = CLAVE_KEPT_TTL, .ttl_ms = 10000});
    memnet_settle(p);
    told(&k, "present ");
    int64_t mzxid = look(p, "/group/a").stat.mzxid;
    for (int i = 0; i < 12; i++) {
        if (i == 6)
            assert_int_equal(memnet_delete(p, OTHER, "/group/a/touch"), CLAVE_OK);
        memnet_advance(p, 5000);
        struct seen touch = look(p, "/group/a/touch");
        assert_true(touch.there);
        assert_int_equal(touch.stat.ephemeral_owner, 0);
        assert_int_equal(look(p, "/group/a").stat.mzxid, mzxid);
    }
    told(&k, "");
    uint64_t sets = p->clients[A].requests[OP_SET_DATA];
    assert_in_range(sets, 10, 16);
    leave(&k);
    assert_true(look(p, "/group/a").there);
    memnet_advance(p, 60000);
    assert_int_equal(p->clients[A].requests[OP_SET_DATA], sets);
    /* a close deletes both */
    keep(&k, p, A, "/group/a",
         (clave_persistent_node_options){.kind = CLAVE_KEPT_TTL, .ttl_ms = 10000});
    memnet_settle(p);
    assert_int_equal(clave_async_persistent_node_close(k.n, on_done, &k), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(k.err, CLAVE_OK);
    gone(p, "/group/a");
    leave(&k);
    end(p);
}

/* ---- refusals and ends ----------------------------------------------------------------------- */

static void on_ok(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    (void)arg;
    assert_int_equal(res->err, CLAVE_OK);
}

static void allow(struct memnet *p, const char *path, int32_t perms)
{
    const clave_acl acl = {.perms = perms, .scheme = "world", .id = "anyone"};
    assert_int_equal(clave_async_set_acl(p->clients[OTHER].c, path, &acl, 1, -1, on_ok, NULL),
                     CLAVE_OK);
    memnet_settle(p);
}

/* CURATOR-228: no endless loop; and it is tried again on the next connection. */
TEST(testNoCreatePermission)
{
    struct memnet *p = world();
    struct keeper k;
    assert_int_equal(memnet_create(p, OTHER, "/group"), CLAVE_OK);
    allow(p, "/group", CLAVE_PERM_ALL & ~CLAVE_PERM_CREATE);
    stay(&k, p, A);
    memnet_advance(p, 60000);
    told(&k, "failed:ENOAUTH ");
    assert_int_equal(p->clients[A].requests[OP_CREATE2], 1);
    allow(p, "/group", CLAVE_PERM_ALL);
    memnet_cut(p, A);
    memnet_advance(p, 2000);
    told(&k, "present ");
    leave(&k);
    end(p);
}

TEST(testNoWritePermission)
{
    struct memnet *p = world();
    struct keeper k;
    const clave_acl acl = {
        .perms = CLAVE_PERM_ALL & ~CLAVE_PERM_WRITE, .scheme = "world", .id = "anyone"};
    keep(&k, p, A, "/group/a", (clave_persistent_node_options){.acls = &acl, .nacls = 1});
    memnet_settle(p);
    set(&k, "new");
    memnet_advance(p, 60000);
    assert_int_equal(k.answers, 1);
    assert_int_equal(k.err, CLAVE_ENOAUTH);
    assert_int_equal(p->clients[A].requests[OP_SET_DATA], 1);
    expect(p, "/group/a", A, "up");
    told(&k, "present failed:ENOAUTH ");
    leave(&k);
    gone(p, "/group/a");
    end(p);
}

TEST(the_client_ends_first)
{
    for (int present = 0; present < 2; present++) {
        CLOSED_BY(memnet_freed) struct memnet *p = world();
        CLOSED_BY(leave) struct keeper k;
        keep(&k, p, A, "/group/a", (clave_persistent_node_options){0});
        if (present)
            memnet_settle(p);
        set(&k, "x");
        if (present)
            assert_int_equal(clave_async_persistent_node_close(k.n, on_done, &k), CLAVE_OK);
        clave_async_client_abandon(p->clients[A].c, p->now);
        memnet_settle(p);
        assert_int_equal(k.answers, present ? 2 : 1);
        assert_int_equal(k.err, CLAVE_ECLOSED);
        assert_int_equal(clave_async_persistent_node_set(k.n, "y", 1, NULL, NULL),
                         present ? CLAVE_EINVAL : CLAVE_ECLOSED);
        told(&k, present ? "present " : "");
        clave_async_persistent_node *late;
        assert_int_equal(clave_async_persistent_node_new(&late, p->clients[A].c, "/group/b", NULL),
                         CLAVE_ECLOSED);
        assert_null(late);
    }
}

TEST(it_may_be_freed_in_its_event)
{
    struct memnet *p = world();
    struct keeper k;
    keep(&k, p, A, "/group/a", (clave_persistent_node_options){0});
    k.free_in_event = true;
    memnet_settle(p);
    told(&k, "present ");
    gone(p, "/group/a");
    end(p);
}

TEST_EACH_ALLOCATION(any_allocation_may_fail, 8)
{
    struct keeper k = {0};
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 3, TIMEOUT);
    memnet_settle(p);
    failmem_arm(mem, which, 1);
    const clave_persistent_node_options o = {
        .size = sizeof o, .kind = which % 2 ? CLAVE_KEPT_EPHEMERAL_SEQUENTIAL : 0};
    clave_err err = clave_async_persistent_node_new(&k.n, p->clients[A].c, "/group/a", &o);
    assert_int_equal(err == CLAVE_OK, k.n != NULL);
    memnet_settle(p);
    memnet_advance(p, 3000);
    failmem_disarm(mem);
    if (err == CLAVE_OK) {
        assert_true(clave_async_persistent_node_is_present(k.n));
        assert_int_equal(memnet_list(p, OTHER, "/group", NULL, 0), 1);
    }
    clave_async_persistent_node_free(k.n);
    memnet_settle(p);
    if (err == CLAVE_OK)
        assert_int_equal(memnet_list(p, OTHER, "/group", NULL, 0), 0);
}

TEST(an_invalid_node_is_refused)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world();
    clave_async_client *c = p->clients[A].c;
    clave_async_persistent_node *n;
    clave_persistent_node_options o = CLAVE_PERSISTENT_NODE_OPTIONS_INIT;
    assert_int_equal(clave_async_persistent_node_new(&n, c, "a", &o), CLAVE_EPATH);
    assert_int_equal(clave_async_persistent_node_new(&n, c, "/", &o), CLAVE_EPATH);
    assert_int_equal(clave_async_persistent_node_new(&n, c, "/a/", &o), CLAVE_EPATH);
    o.ttl_ms = 5;
    assert_int_equal(clave_async_persistent_node_new(&n, c, "/a", &o), CLAVE_EINVAL);
    o.kind = CLAVE_KEPT_TTL;
    o.ttl_ms = 0;
    assert_int_equal(clave_async_persistent_node_new(&n, c, "/a", &o), CLAVE_EINVAL);
    o.kind = (clave_persistent_node_kind)7;
    assert_int_equal(clave_async_persistent_node_new(&n, c, "/a", &o), CLAVE_EINVAL);
    assert_null(n);
    clave_async_persistent_node_free(NULL);
}

/* ---- a server that puts requests off --------------------------------------------------------- */

/* A create whose answer is lost, and nobody wants the node any more: the proof that it is not there
 * is asked for, and put off. */
static void leave_in_doubt(struct fake_server *f, clave_async_persistent_node **n, struct keeper *k,
                           bool frees)
{
    fake_open(f, NULL);
    fake_connect(f, true);
    assert_int_equal(clave_async_persistent_node_new(n, f->c, "/a", NULL), CLAVE_OK);
    fake_take_output(f);
    fake_hang_up(f);
    if (frees)
        clave_async_persistent_node_free(*n);
    else
        assert_int_equal(clave_async_persistent_node_close(*n, on_done, k), CLAVE_OK);
    fake_dial(f);
    fake_answer_handshake(f, FAKE_SESSION, FAKE_TIMEOUT, false);
    fake_expect(f, OP_MULTI);
    fake_answer(f, CLAVE_ETHROTTLED, NULL);
    fake_config(f, true);
}

TEST(one_that_is_closed_asks_a_server_that_puts_it_off_again_after_pauses)
{
    for (int frees = 0; frees <= 1; frees++) {
        CLOSED_BY(fake_close) struct fake_server f;
        struct keeper k = {0};
        clave_async_persistent_node *n;
        leave_in_doubt(&f, &n, &k, frees);
        int64_t at = f.now;
        for (int64_t pause = 100; pause <= 400; pause *= 2) {
            fake_advance_to(&f, at + pause - 1);
            assert_true(fake_is_quiet(&f));
            fake_advance_to(&f, at + pause);
            fake_expect(&f, OP_MULTI);
            at = f.now;
            if (pause < 400)
                fake_answer(&f, CLAVE_ETHROTTLED, NULL);
        }
        fake_answer_checks(&f, CLAVE_OK);
        fake_expect(&f, OP_EXISTS);
        fake_answer(&f, CLAVE_ENONODE, NULL);
        assert_int_equal(k.answers, !frees);
        assert_int_equal(k.err, CLAVE_OK);
        assert_true(fake_is_quiet(&f));
        if (!frees)
            clave_async_persistent_node_free(n);
    }
}

/* What is paused ends with its client. */
TEST(one_that_is_freed_and_pauses_goes_with_its_client)
{
    struct fake_server f;
    struct keeper k = {0};
    clave_async_persistent_node *n;
    leave_in_doubt(&f, &n, &k, true);
    assert_true(fake_is_quiet(&f));
    fake_close(&f);
}
