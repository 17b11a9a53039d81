/* Guarded writes, and the participants of a queue. */
#include "lib/async_grants.h"
#include "lib/candidate.h"
#include "lib/fake_server.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "recipe/contender/guarded_write.h"

struct answer {
    unsigned calls;
    clave_err err;
    char path[64];
    size_t nops;
    clave_err op_errs[4];
    int32_t version;
};

static void on_result(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct answer *o = arg;
    o->calls++;
    o->err = res->err;
    o->version = res->stat ? res->stat->version : -1;
    o->nops = res->nops;
    snprintf(o->path, sizeof o->path, "%s", res->path ? res->path : "");
    for (size_t i = 0; i < res->nops && i < 4; i++)
        o->op_errs[i] = res->ops[i].err;
}

TEST(writes_are_done_while_the_lock_is_held)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(owner_close) struct mutex_owner a;
    struct answer o = {0};
    owner_open(&a, p, 0, "/l", NULL);
    assert_int_equal(
        guarded_create(of_mutex(a.m, 0), "/x", "1", 1, CLAVE_PERSISTENT, on_result, &o),
        CLAVE_ENOTHELD);
    owner_acquire(&a, OWNER_FOREVER);

    assert_int_equal(
        guarded_create(of_mutex(a.m, 0), "/x", "1", 1, CLAVE_PERSISTENT, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_OK);
    assert_string_equal(o.path, "/x");
    assert_int_equal(o.nops, 0);

    assert_int_equal(guarded_create(of_mutex(a.m, 0), "/x/s-", "", 0, CLAVE_PERSISTENT_SEQUENTIAL,
                                    on_result, &o),
                     CLAVE_OK);
    memnet_settle(p);
    assert_string_equal(o.path, "/x/s-0000000000");

    assert_int_equal(guarded_set(of_mutex(a.m, 0), "/x", "2", 1, 0, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_OK);
    assert_int_equal(o.version, 1);
    assert_string_equal(o.path, "/x");
    assert_int_equal(guarded_set(of_mutex(a.m, 0), "/x", "3", 1, 0, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_EBADVERSION);
    assert_int_equal(guarded_set(of_mutex(a.m, 0), "/none", "3", 1, 0, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_ENONODE); /* the write's, not the check's */

    assert_int_equal(guarded_delete(of_mutex(a.m, 0), "/x/s-0000000000", -1, on_result, &o),
                     CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_OK);
    assert_int_equal(o.calls, 6);
    assert_int_equal(p->clients[0].requests[OP_MULTI], 6);
}

TEST(a_multi_has_the_callers_operations_only)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 1});
    CLOSED_BY(owner_close) struct mutex_owner a;
    struct answer o = {0};
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    clave_op ops[] = {
        {.kind = CLAVE_OP_CREATE, .path = "/x", .data = "", .mode = CLAVE_PERSISTENT},
        {.kind = CLAVE_OP_SET, .path = "/x", .data = "1", .len = 1, .version = 0},
        {.kind = CLAVE_OP_DELETE, .path = "/none", .version = -1},
    };
    assert_int_equal(guarded_multi(of_mutex(a.m, 0), ops, 2, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_OK);
    assert_int_equal(o.nops, 2);
    assert_int_equal(o.op_errs[0], CLAVE_OK);
    assert_int_equal(o.op_errs[1], CLAVE_OK);
    assert_int_equal(guarded_multi(of_mutex(a.m, 0), ops + 1, 2, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_EBADVERSION);
    assert_int_equal(o.nops, 2);
    assert_int_equal(o.op_errs[0], CLAVE_EBADVERSION);
    /* None at all: just the proof that the lock is held. */
    assert_int_equal(guarded_multi(of_mutex(a.m, 0), NULL, 0, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_OK);
    assert_int_equal(o.nops, 0);
}

static const char *errmsg(const struct memnet *p)
{
    return clave_async_client_errmsg(p->clients[0].c);
}

/* Of a transaction the operation that failed, and its path as the caller gave it: not the check of
 * the lock's node, which the caller has not asked for. */
static void a_refusal_names_the_operation(const char *chroot)
{
    CLOSED_BY(memnet_freed)
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2, .chroot = chroot});
    CLOSED_BY(owner_close) struct mutex_owner a;
    CLOSED_BY(candidate_close) struct candidate leader;
    struct answer o = {0};
    const clave_op ops[] = {{.kind = CLAVE_OP_CREATE, .path = "/new"},
                            {.kind = CLAVE_OP_CHECK, .path = "/x", .version = -1},
                            {.kind = CLAVE_OP_DELETE, .path = "/none", .version = -1},
                            {.kind = CLAVE_OP_SET, .path = "/neither", .version = -1}};
    memnet_settle(p);
    if (*chroot)
        assert_int_equal(memnet_create(p, 0, "/"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 0, "/x"), CLAVE_OK);
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_int_equal(guarded_set(of_mutex(a.m, 0), "/missing", "1", 1, -1, on_result, &o),
                     CLAVE_OK);
    memnet_settle(p);
    assert_string_equal(errmsg(p), "cannot write /missing: no such node");
    assert_int_equal(
        guarded_create(of_mutex(a.m, 0), "/x", "1", 1, CLAVE_PERSISTENT, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_string_equal(errmsg(p), "cannot create /x: the node exists already");
    assert_int_equal(guarded_delete(of_mutex(a.m, 0), "/x", 7, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_non_null(strstr(errmsg(p), "cannot delete /x: "));
    assert_int_equal(guarded_multi(of_mutex(a.m, 0), ops, 4, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_string_equal(errmsg(p), "cannot delete /none: no such node");
    assert_int_equal(clave_async_multi(p->clients[0].c, ops, 4, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_string_equal(errmsg(p), "cannot delete /none: no such node");
    candidate_enter(&leader, p, 0, "/e", NULL);
    assert_int_equal(candidate_write(&leader, "/absent", "1"), CLAVE_OK);
    assert_string_equal(errmsg(p), "cannot write /absent: no such node");
}

TEST(a_refusal_names_the_operation_that_failed)
{
    a_refusal_names_the_operation("");
    a_refusal_names_the_operation("/app");
}

/* The node was deleted by a stranger, and the holder does not know yet. */
TEST(a_write_after_the_loss_is_refused_by_the_server)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(owner_close) struct mutex_owner a;
    struct answer o = {0};
    char node[160];
    owner_open(&a, p, 0, "/l", NULL);
    assert_int_equal(memnet_create(p, 1, "/x"), CLAVE_OK);
    owner_acquire(&a, OWNER_FOREVER);
    snprintf(node, sizeof node, "%s", owner_grant(&a).node);
    assert_int_equal(memnet_delete(p, 1, node), CLAVE_OK);
    assert_true(owner_holds(&a));
    assert_int_equal(guarded_set(of_mutex(a.m, 0), "/x", "1", 1, -1, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_ELOST);
    assert_string_equal(o.path, "/x");
    clave_op op = {.kind = CLAVE_OP_DELETE, .path = "/x", .version = -1};
    assert_int_equal(guarded_multi(of_mutex(a.m, 0), &op, 1, on_result, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.err, CLAVE_ELOST);
    assert_int_equal(o.nops, 1);
    assert_int_equal(memnet_set(p, 1, "/x", "here"), CLAVE_OK);
}

/* ---- participants ---------------------------------------------------------------------- */

struct people {
    unsigned calls;
    clave_err err;
    size_t n;
    char nodes[8][96], hosts[8][32], texts[8][32];
    int64_t pids[8], tokens[8];
};

static void on_people(clave_async_client *c, clave_err err, const clave_participant *list, size_t n,
                      void *arg)
{
    (void)c;
    struct people *o = arg;
    o->calls++;
    o->err = err;
    o->n = n;
    for (size_t i = 0; i < n && i < 8; i++) {
        const clave_identity *id = &list[i].identity;
        snprintf(o->nodes[i], sizeof o->nodes[i], "%s", list[i].node);
        snprintf(o->hosts[i], sizeof o->hosts[i], "%s", id->host ? id->host : "");
        snprintf(o->texts[i], sizeof o->texts[i], "%s", id->text ? id->text : "");
        o->pids[i] = id->pid;
        o->tokens[i] = list[i].stat.czxid;
    }
}

static struct people ask(struct memnet *p, size_t client)
{
    struct people o = {0};
    assert_int_equal(clave_async_participants(p->clients[client].c, "/l", on_people, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.calls, 1);
    return o;
}

TEST(participants_stand_in_queue_order)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 3});
    struct mutex_owner s[3];
    struct people o = ask(p, 0);
    assert_int_equal(o.err, CLAVE_OK); /* no path: an empty queue */
    assert_int_equal(o.n, 0);
    for (size_t i = 0; i < 3; i++) {
        char form[64], host[8];
        snprintf(host, sizeof host, "h%zu", i);
        clave_identity id = {.host = host, .pid = 100 + (int64_t)i};
        clave_mutex_options mo = {.size = sizeof mo, .data = form};
        mo.len = clave_identity_format(&id, form, sizeof form);
        owner_open(&s[i], p, i, "/l", &mo);
        owner_acquire(&s[i], OWNER_FOREVER);
    }
    assert_int_equal(memnet_create(p, 0, "/l/6f1e__lock__0000000009"), CLAVE_OK);
    assert_int_equal(memnet_set(p, 0, "/l/6f1e__lock__0000000009", "10.0.0.7"), CLAVE_OK);
    memnet_reset_counts(p);
    o = ask(p, 2);
    assert_int_equal(o.n, 4);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(o.hosts[i][1], '0' + i);
        assert_int_equal(o.pids[i], 100 + i);
    }
    assert_int_equal(o.tokens[0], owner_grant(&s[0]).token);
    assert_string_equal(o.texts[3], "10.0.0.7");
    assert_int_equal(p->clients[2].requests[OP_GET_CHILDREN2], 1);
    assert_int_equal(p->clients[2].requests[OP_GET_DATA], 4);
    for (size_t i = 0; i < 3; i++)
        owner_close(&s[i]);
}

TEST(other_children_are_no_participants)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2});
    CLOSED_BY(owner_close) struct mutex_owner a;
    assert_int_equal(memnet_create(p, 1, "/l"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 1, "/l/deadlock--3"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 1, "/l/n_0000000000"), CLAVE_OK);
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    struct people o = ask(p, 1);
    assert_int_equal(o.n, 1);
    assert_int_equal(o.tokens[0], owner_grant(&a).token);
    owner_release(&a);
    o = ask(p, 1); /* who knows what these are: they are shown */
    assert_int_equal(o.n, 2);
    assert_string_equal(o.nodes[0], "deadlock--3");
    assert_string_equal(o.nodes[1], "n_0000000000");
}

TEST(participants_that_vanish_meanwhile_are_left_out)
{
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 3});
    struct mutex_owner a, b;
    struct people o = {0};
    owner_open(&a, p, 0, "/l", NULL);
    owner_open(&b, p, 1, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    owner_acquire(&b, OWNER_FOREVER);
    memnet_rule(p, (struct memnet_rule){2, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 0});
    assert_int_equal(clave_async_participants(p->clients[2].c, "/l", on_people, &o), CLAVE_OK);
    memnet_settle(p);
    owner_release(&a);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(o.calls, 1);
    assert_int_equal(o.n, 1);
    assert_int_equal(o.tokens[0], owner_grant(&b).token);
    /* The client goes in the middle of it. */
    memnet_rule(p, (struct memnet_rule){2, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 0});
    assert_int_equal(clave_async_participants(p->clients[2].c, "/l", on_people, &o), CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(o.calls, 1);
    owner_close(&a);
    owner_close(&b);
    memnet_free(p);
    assert_int_equal(o.calls, 2);
    assert_int_equal(o.err, CLAVE_ECLOSED);
}

/* The server says that the session is over: the grant is as well, and nothing was done. */
TEST_CONNECTED(a_guarded_write_of_an_expired_session_is_lost)
{
    struct answer o = {0};
    clave_op op = {.kind = CLAVE_OP_SET, .path = "/x", .version = -1};
    struct write_guard lock = {.nodes = (const char *const[]){"/l/a"}, .n = 1};
    assert_int_equal(clave__guarded_write_one(s->c, lock, &op, on_result, &o), CLAVE_OK);
    fake_expect(s, OP_MULTI);
    fake_answer(s, CLAVE_EEXPIRED, NULL);
    assert_int_equal(o.err, CLAVE_ELOST);
}
