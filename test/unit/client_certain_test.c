/* Creates whose outcome is to be certain although their names are the caller's own
 * (CLAVE_CREATE_CERTAIN): each has its one node in the end, whatever answer was lost. */
#include "lib/each_fault.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000, CREATES = 4 };

struct made {
    unsigned answers;
    clave_err err;
    char path[64];
    clave_stat stat;
};

static void on_made(clave_async_client *c, const clave_result *res, void *arg)
{
    struct made *m = arg;
    (void)c;
    m->answers++;
    m->err = res->err;
    snprintf(m->path, sizeof m->path, "%s", res->err == CLAVE_OK ? res->path : "");
    if (res->stat)
        m->stat = *res->stat;
}

static void on_made_by_multi(clave_async_client *c, const clave_result *res, void *arg)
{
    struct made *m = arg;
    (void)c;
    m->err = res->err;
    snprintf(m->path, sizeof m->path, "%s", res->nops ? res->ops[0].path : "");
}

static clave_err ask(struct memnet *p, size_t client, const char *path, clave_create_mode mode,
                     struct made *m)
{
    clave_create_options o = {
        .size = sizeof o, .mode = mode, .flags = CLAVE_CREATE_PARENTS | CLAVE_CREATE_CERTAIN};
    return clave_async_create(p->clients[client].c, path, "x", 1, &o, on_made, m);
}

static struct memnet *world(void)
{
    return memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = TIMEOUT});
}

/* Each has a node of the present session, in the order asked, and there is no other. */
static void assert_one_each(struct memnet *p, const struct made *m, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(m[i].answers, 1);
        assert_int_equal(m[i].err, CLAVE_OK);
        assert_int_equal(m[i].stat.ephemeral_owner, clave_async_client_session_id(p->clients[0].c));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(m[i].path, m[j].path);
    }
    assert_int_equal(memnet_list(p, 1, "/q", NULL, 0), n);
}

/* Several at once, and the connection goes at each message of theirs, both ways, once or twice;
 * another session has nodes of that name before, between and after. */
TEST(any_answer_may_be_lost)
{
    static const int ops[] = {OP_CREATE2, OP_MULTI, OP_GET_CHILDREN2, OP_EXISTS, MEMNET_HANDSHAKE};
    for (unsigned skip = 0; skip < CREATES; skip++)
        for (int fate = MEMNET_LOSE; fate <= MEMNET_PASS_CUT; fate++)
            for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++)
                for (size_t second = 0; second < sizeof ops / sizeof *ops; second++) {
                    CLOSED_BY(memnet_freed) struct memnet *p = world();
                    struct made before = {0}, m[CREATES] = {{0}};
                    memnet_settle(p);
                    ask(p, 0, "/q/n_", CLAVE_EPHEMERAL_SEQUENTIAL, &before);
                    memnet_settle(p);
                    memnet_rule(p, (struct memnet_rule){0, way, OP_CREATE2, fate, skip});
                    memnet_rule(p,
                                (struct memnet_rule){0, MEMNET_REPLY, ops[second], MEMNET_LOSE, 1});
                    for (size_t i = 0; i < CREATES; i++)
                        assert_int_equal(ask(p, 0, "/q/n_", CLAVE_EPHEMERAL_SEQUENTIAL, &m[i]),
                                         CLAVE_OK);
                    memnet_advance(p, 3000);
                    assert_int_equal(memnet_delete(p, 1, before.path), CLAVE_OK);
                    memnet_clear(p);
                    assert_one_each(p, m, CREATES);
                }
}

/* Of the others' nodes, older and newer ones, none is taken for ours. */
TEST(a_node_of_another_is_never_taken)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world();
    struct made other[3] = {{0}}, ours = {0}, own = {0};
    memnet_settle(p);
    ask(p, 1, "/q/n_", CLAVE_EPHEMERAL_SEQUENTIAL, &other[0]);
    ask(p, 0, "/q/n_", CLAVE_EPHEMERAL_SEQUENTIAL, &own);
    memnet_settle(p);
    /* The request is lost: no node of ours exists. */
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_CREATE2, MEMNET_LOSE, 0});
    memnet_refuse(p, 0, false);
    ask(p, 0, "/q/n_", CLAVE_EPHEMERAL_SEQUENTIAL, &ours);
    ask(p, 1, "/q/n_", CLAVE_EPHEMERAL_SEQUENTIAL, &other[1]);
    memnet_settle(p);
    ask(p, 1, "/q/n_10000000000", CLAVE_EPHEMERAL, &other[2]); /* no number of a server's */
    memnet_advance(p, 1000);
    assert_int_equal(ours.answers, 1);
    assert_int_equal(ours.err, CLAVE_OK);
    assert_string_not_equal(ours.path, own.path);
    assert_int_equal(ours.stat.ephemeral_owner, clave_async_client_session_id(p->clients[0].c));
    assert_int_equal(memnet_list(p, 1, "/q", NULL, 0), 5);
}

/* The node of the session before is left to the server, and another one made. */
TEST(a_node_of_an_older_session_is_never_taken)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world();
    struct made m = {0};
    memnet_settle(p);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_LOSE, 1});
    p->clients[0].refused = true; /* it cannot come back before its session is over */
    ask(p, 0, "/q/n_", CLAVE_EPHEMERAL_SEQUENTIAL, &m);
    memnet_settle(p);
    int64_t old = clave_async_client_session_id(p->clients[0].c);
    memnet_advance(p, 3 * TIMEOUT);
    p->clients[0].refused = false;
    memnet_advance(p, 3000);
    assert_int_equal(m.answers, 1);
    if (m.err == CLAVE_OK) {
        assert_int_not_equal(m.stat.ephemeral_owner, old);
        assert_int_equal(memnet_list(p, 1, "/q", NULL, 0), 1);
    }
}

/* A fixed name: whose node it is tells the czxid, of two of one session as well. */
TEST(a_fixed_name_is_of_one)
{
    for (unsigned skip = 0; skip < 2; skip++)
        for (int way = MEMNET_REQUEST; way <= MEMNET_REPLY; way++) {
            CLOSED_BY(memnet_freed) struct memnet *p = world();
            struct made m[2] = {{0}}, stranger = {0};
            memnet_settle(p);
            assert_int_equal(memnet_create(p, 1, "/q"), CLAVE_OK);
            memnet_rule(p, (struct memnet_rule){0, way, OP_CREATE2, MEMNET_LOSE, skip});
            ask(p, 0, "/q/one", CLAVE_EPHEMERAL, &m[0]);
            ask(p, 0, "/q/one", CLAVE_EPHEMERAL, &m[1]);
            memnet_advance(p, 1000);
            ask(p, 1, "/q/one", CLAVE_EPHEMERAL, &stranger);
            memnet_advance(p, 1000);
            assert_int_equal(m[0].answers + m[1].answers, 2);
            assert_int_equal((m[0].err == CLAVE_OK) + (m[1].err == CLAVE_OK), 1);
            assert_int_equal((m[0].err == CLAVE_ENODEEXISTS) + (m[1].err == CLAVE_ENODEEXISTS), 1);
            assert_int_equal(stranger.err, CLAVE_ENODEEXISTS);
        }
}

/* A number alone is a name below the chroot too, and not the end of the chroot's own. */
TEST(a_name_of_digits_alone_lies_below_the_chroot)
{
    static const unsigned flags[] = {CLAVE_CREATE_PARENTS, CLAVE_CREATE_CERTAIN, 0};
    struct memnet *p =
        memnet_new(&(struct memnet_options){.clients = 1, .timeout_ms = TIMEOUT, .chroot = "/x"});
    memnet_settle(p);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct made m = {0};
        clave_create_options o = {
            .size = sizeof o, .mode = CLAVE_EPHEMERAL_SEQUENTIAL, .flags = flags[i]};
        assert_int_equal(clave_async_create(p->clients[0].c, "/", "x", 1, &o, on_made, &m),
                         CLAVE_OK);
        memnet_settle(p);
        assert_int_equal(m.answers, 1);
        assert_int_equal(m.err, CLAVE_OK);
        assert_int_equal(strlen(m.path), strlen("/0000000001"));
    }
    clave_op op = {.kind = CLAVE_OP_CREATE, .path = "/", .mode = CLAVE_EPHEMERAL_SEQUENTIAL};
    struct made multi = {.err = CLAVE_EINVAL};
    assert_int_equal(clave_async_multi(p->clients[0].c, &op, 1, on_made_by_multi, &multi),
                     CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(multi.err, CLAVE_OK);
    assert_int_equal(strlen(multi.path), strlen("/0000000001"));
    assert_int_equal(memnet_list(p, 0, "/", NULL, 0), 4);
    memnet_free(p);
}

TEST(what_it_cannot_tell_is_refused)
{
    CLOSED_BY(memnet_freed) struct memnet *p = world();
    clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_CERTAIN};
    assert_int_equal(clave_async_create(p->clients[0].c, "/q", NULL, 0, &o, NULL, NULL),
                     CLAVE_EINVAL);
    o.mode = CLAVE_EPHEMERAL;
    o.flags |= CLAVE_CREATE_PROTECTED;
    assert_int_equal(clave_async_create(p->clients[0].c, "/q", NULL, 0, &o, NULL, NULL),
                     CLAVE_EINVAL);
}

TEST_EACH_ALLOCATION(every_allocation_may_fail, 20)
{
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_on(mem, 2, TIMEOUT);
    struct made m[CREATES] = {{0}};
    memnet_settle(p);
    assert_int_equal(memnet_create(p, 1, "/q"), CLAVE_OK);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_CREATE2, MEMNET_LOSE, 1});
    failmem_arm(mem, which, 2);
    size_t asked = 0, nodes = 0;
    for (size_t i = 0; i < CREATES; i++)
        asked += ask(p, 0, "/q/n_", CLAVE_EPHEMERAL_SEQUENTIAL, &m[i]) == CLAVE_OK;
    memnet_advance(p, 3000);
    failmem_disarm(mem);
    for (size_t i = 0; i < CREATES; i++) {
        asked -= m[i].answers;
        nodes += m[i].answers && m[i].err == CLAVE_OK;
    }
    assert_int_equal(asked, 0);
    assert_int_equal(memnet_list(p, 1, "/q", NULL, 0), nodes);
}
