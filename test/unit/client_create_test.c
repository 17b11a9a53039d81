/* Composed creates: parents, names, and protected creates whose answer was lost. */
#include "client/client_internal.h"
#include "lib/failmem.h"
#include "lib/fake_server.h"
#include "lib/unit.h"

enum { T = FAKE_TIMEOUT };

static void connected(struct fake_server *s)
{
    fake_open(s, NULL);
    fake_connect(s, true);
}

static struct wire_reply created(const char *path, int64_t owner)
{
    return (struct wire_reply){.path = clave__jbytes(path),
                               .stat = {.czxid = 42, .ephemeral_owner = owner}};
}

static bool path_is(const struct wire_request *q, const char *path)
{
    return clave__jbytes_eq(q->body.path, clave__jbytes(path)); /* the first field of each */
}

static const clave_create_options protected_options = {
    .size = sizeof protected_options,
    .mode = CLAVE_EPHEMERAL_SEQUENTIAL,
    .flags = CLAVE_CREATE_PARENTS | CLAVE_CREATE_PROTECTED,
    .with_names = true,
};

/* Submits one below /a/b, and leaves its path (with the prefix) in `path`. */
static void create_protected(struct fake_server *s, struct outcome *out, char path[128])
{
    assert_int_equal(
        clave_async_create(s->c, "/a/b/x-", NULL, 0, &protected_options, outcome_cb, out),
        CLAVE_OK);
    fake_expect(s, OP_CREATE2);
    struct jbytes p = s->q.body.create.path;
    snprintf(path, 128, "%.*s", (int)p.n, p.p);
    assert_memory_equal(path, "/a/b/_c_", 8);
    assert_string_equal(path + strlen(path) - 3, "-x-");
}

TEST_CONNECTED(create_and_listing_are_one_flight)
{
    static struct outcome a = {0};
    char path[128];
    create_protected(s, &a, path);
    int32_t create = s->q.xid;
    assert_true(path_is(fake_expect(s, OP_GET_CHILDREN2), "/a/b"));
    int32_t list = s->q.xid;
    strcat(path, "0000000003");
    struct wire_reply m = created(path, FAKE_SESSION);
    fake_answer_to(s, create, OP_CREATE2, CLAVE_OK, &m);
    assert_int_equal(a.times, 0);
    const char *names[] = {path + 5, "other"};
    m = (struct wire_reply){.names = fake_names(names, 2)};
    fake_answer_to(s, list, OP_GET_CHILDREN2, CLAVE_OK, &m);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.err, CLAVE_OK);
    assert_string_equal(a.path, path);
    assert_int_equal(a.stat.czxid, 42);
    assert_int_equal(a.nnames, 2);
    assert_string_equal(a.first_name, path + 5);
}

TEST_CONNECTED(missing_parents_cost_one_more_flight)
{
    static struct outcome a = {0};
    char path[128];
    create_protected(s, &a, path);
    int32_t xid = s->q.xid;
    fake_expect(s, OP_GET_CHILDREN2);
    fake_answer_to(s, xid++, OP_CREATE2, CLAVE_ENONODE, NULL);
    fake_answer_to(s, xid++, OP_GET_CHILDREN2, CLAVE_ENONODE, NULL);
    assert_true(path_is(fake_expect(s, OP_CREATE_CONTAINER), "/a"));
    assert_true(path_is(fake_expect(s, OP_CREATE_CONTAINER), "/a/b"));
    assert_true(path_is(fake_expect(s, OP_CREATE2), path));
    fake_expect(s, OP_GET_CHILDREN2);
    fake_answer_to(s, xid++, OP_CREATE_CONTAINER, CLAVE_ENODEEXISTS, NULL);
    struct wire_reply m = created("/a/b", 0);
    fake_answer_to(s, xid++, OP_CREATE_CONTAINER, CLAVE_OK, &m);
    strcat(path, "0000000000");
    m = created(path, FAKE_SESSION);
    fake_answer_to(s, xid++, OP_CREATE2, CLAVE_OK, &m);
    fake_answer_to(s, xid++, OP_GET_CHILDREN2, CLAVE_EAUTHFAILED, NULL);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.err, CLAVE_OK);
    assert_false(a.has_names); /* only the listing failed */
}

TEST_CONNECTED(why_a_parent_could_not_be_made_is_told)
{
    static struct outcome a = {0};
    char path[128];
    create_protected(s, &a, path);
    int32_t xid = s->q.xid;
    fake_answer_to(s, xid++, OP_CREATE2, CLAVE_ENONODE, NULL);
    fake_answer_to(s, xid++, OP_GET_CHILDREN2, CLAVE_ENONODE, NULL);
    fake_answer_to(s, xid++, OP_CREATE_CONTAINER, CLAVE_ENOAUTH, NULL);
    fake_answer_to(s, xid++, OP_CREATE_CONTAINER, CLAVE_ENONODE, NULL);
    fake_answer_to(s, xid++, OP_CREATE2, CLAVE_ENONODE, NULL);
    fake_answer_to(s, xid++, OP_GET_CHILDREN2, CLAVE_ENONODE, NULL);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.err, CLAVE_ENOAUTH);
    assert_string_equal(clave_async_client_errmsg(s->c), "cannot create /a: not authorised");
}

static const clave_create_options with_parents = {.size = sizeof with_parents,
                                                  .flags = CLAVE_CREATE_PARENTS};

/* Submits one, which has no parent; its ancestors' creates are answered so. */
static void create_below(struct fake_server *s, struct outcome *out, const char *path,
                         clave_err ancestors)
{
    assert_int_equal(clave_async_create(s->c, path, NULL, 0, &with_parents, outcome_cb, out),
                     CLAVE_OK);
    fake_expect(s, OP_CREATE2);
    int32_t xid = s->q.xid;
    fake_answer(s, CLAVE_ENONODE, NULL);
    fake_answer_to(s, ++xid, OP_CREATE_CONTAINER, ancestors, NULL);
    fake_answer_to(s, ++xid, OP_CREATE_CONTAINER, CLAVE_ENODEEXISTS, NULL);
}

TEST_CONNECTED(a_bound_that_a_parent_meets_is_told)
{
    static struct outcome a = {0};
    create_below(s, &a, "/a/bc/d", CLAVE_EBADARGS);
    fake_expect(s, OP_CREATE_CONTAINER);
    fake_expect(s, OP_CREATE_CONTAINER);
    fake_expect(s, OP_CREATE2);
    assert_string_equal(clave_async_client_errmsg(s->c), "no fault so far");
    fake_answer(s, CLAVE_ENONODE, NULL);
    assert_int_equal(a.err, CLAVE_EBADARGS);
    assert_string_equal(
        clave_async_client_errmsg(s->c),
        "cannot create /a: the server refused the arguments: a name of 1 bytes, a path of 2, or a "
        "depth of 1 may be beyond the server's limits (clave serve --max-name, --max-path, "
        "--max-depth); the server's log says which");
}

/* The root may be: the server looks at that before it sees that /a exists. */
TEST_CONNECTED(an_ancestor_that_is_closed_to_us_is_no_fault)
{
    static struct outcome a = {0};
    create_below(s, &a, "/a/b/c", CLAVE_ENOAUTH);
    fake_expect(s, OP_CREATE_CONTAINER);
    fake_expect(s, OP_CREATE_CONTAINER);
    fake_expect(s, OP_CREATE2);
    struct wire_reply m = created("/a/b/c", 0);
    fake_answer(s, CLAVE_OK, &m);
    assert_int_equal(a.err, CLAVE_OK);
    assert_string_equal(clave_async_client_errmsg(s->c), "no fault so far");
    fake_hang_up(s);
    assert_string_equal(clave_async_client_errmsg(s->c), "script:1 closed the connection");
}

TEST_CONNECTED(ancestors_that_never_stay_are_told)
{
    static struct outcome a = {0};
    char path[300] = "/a/b/", told[300];
    memset(path + 5, 'n', 200);
    memcpy(path + 127, "\xc3\xa4", 2); /* a character that is not cut */
    create_below(s, &a, path, CLAVE_ENODEEXISTS);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(a.times, 0);
        fake_expect(s, OP_CREATE_CONTAINER);
        fake_expect(s, OP_CREATE_CONTAINER);
        fake_expect(s, OP_CREATE2);
        int32_t xid = s->q.xid;
        fake_answer(s, CLAVE_ENONODE, NULL);
        if (a.times == 0) {
            fake_answer_to(s, ++xid, OP_CREATE_CONTAINER, CLAVE_ENODEEXISTS, NULL);
            fake_answer_to(s, ++xid, OP_CREATE_CONTAINER, CLAVE_ENODEEXISTS, NULL);
        }
    }
    assert_int_equal(a.err, CLAVE_ENONODE);
    snprintf(told, sizeof told,
             "cannot create %.127s...: its ancestors were removed again each time", path);
    assert_string_equal(clave_async_client_errmsg(s->c), told);
}

/* The answer to a protected create is lost; what then comes of it. */
enum fate { FATE_FOUND, FATE_FOREIGN, FATE_MISSING, FATE_GONE_AGAIN };

static void search_for_it(struct fake_server *s, enum fate fate, char *path)
{
    char found[160];
    const char *names[] = {"_c_00000000-0000-4000-8000-000000000000-x-0000000001", found};
    snprintf(found, sizeof found, "%s0000000007", path + 5);
    fake_expect(s, OP_MULTI);
    fake_answer_checks(s, CLAVE_OK);
    assert_true(path_is(fake_expect(s, OP_GET_CHILDREN2), "/a/b"));
    struct wire_reply m =
        (struct wire_reply){.names = fake_names(names, fate == FATE_MISSING ? 1 : 2)};
    fake_answer(s, CLAVE_OK, &m);
    fake_config(s, true); /* it was sent after what was waiting */
    if (fate == FATE_MISSING)
        return;
    fake_expect(s, OP_EXISTS);
    strcat(path, "0000000007");
    assert_true(path_is(&s->q, path));
    m = created(path, fate == FATE_FOREIGN ? FAKE_SESSION - 1 : FAKE_SESSION);
    fake_answer(s, fate == FATE_GONE_AGAIN ? CLAVE_ENONODE : CLAVE_OK, &m);
}

TEST(a_lost_protected_create_becomes_known)
{
    for (int fate = FATE_FOUND; fate <= FATE_GONE_AGAIN; fate++) {
        struct fake_server s;
        struct outcome a = {0};
        char path[256], first[128];
        connected(&s);
        create_protected(&s, &a, path);
        snprintf(first, sizeof first, "%s", path);
        fake_take_output(&s);
        fake_hang_up(&s);
        fake_dial(&s);
        fake_answer_handshake(&s, FAKE_SESSION, T, false);
        assert_int_equal(a.times, 0);
        search_for_it(&s, (enum fate)fate, path);
        if (fate == FATE_FOUND) {
            assert_int_equal(a.times, 1);
            assert_int_equal(a.err, CLAVE_OK);
            assert_string_equal(a.path, path);
            assert_int_equal(a.stat.czxid, 42);
        }
        if (fate != FATE_FOUND) { /* another client's is neither adopted nor deleted */
            assert_int_equal(a.times, 0);
            assert_true(path_is(fake_expect(&s, OP_CREATE2), first));
        }
        fake_close(&s);
        assert_int_equal(a.times, 1);
    }
}

/* The server closes the connection, or the client gives it up. */
enum loss { LOSS_HANG_UP, LOSS_SILENCE };

static void lose_and_search(struct fake_server *s, enum loss loss)
{
    if (loss == LOSS_SILENCE) {
        fake_take_output(s);
        fake_advance_to(s, s->now + T * 2 / 3);
        assert_int_equal(clave_async_client_wants(s->c), CLAVE_WANT_HANGUP);
    }
    fake_hang_up(s);
    if (clave_async_client_wants(s->c) != CLAVE_WANT_DIAL)
        fake_advance_to(s, clave_async_client_deadline(s->c));
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    fake_expect(s, OP_MULTI);
    fake_answer_checks(s, CLAVE_OK);
    fake_expect(s, OP_GET_CHILDREN2);
    struct wire_reply m = {.names = fake_names(NULL, 0)};
    fake_answer(s, CLAVE_OK, &m);
    fake_config(s, true);
}

/* A server that takes no request so large closes each connection on which it comes, and answers the
 * search on the next: create and search went on for ever, as fast as the server answered. */
TEST(a_create_that_is_lost_each_time_ends_or_pauses)
{
    static char data[70000];
    const clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PROTECTED};
    for (size_t len = 100; len <= sizeof data; len += sizeof data - 100) {
        CLOSED_BY(fake_close) struct fake_server s;
        struct outcome a = {0};
        connected(&s);
        assert_int_equal(clave_async_create(s.c, "/x", data, len, &o, outcome_cb, &a), CLAVE_OK);
        for (int i = 0; i < 3; i++) {
            fake_expect(&s, OP_CREATE2);
            lose_and_search(&s, LOSS_HANG_UP);
        }
        assert_true(fake_is_quiet(&s));
        assert_string_equal(clave_async_client_errmsg(s.c),
                            len == sizeof data
                                ? "the server closed the connection each of the 3 times that a "
                                  "node with 70000 bytes of data was to be created: the server's "
                                  "limit may be smaller (clave serve --max-request; ZooKeeper's "
                                  "jute.maxbuffer)"
                                : "script:1 closed the connection");
        assert_int_equal(a.times, len == sizeof data);
        assert_int_equal(a.err, len == sizeof data ? CLAVE_ETOOBIG : CLAVE_OK);
        if (a.times == 0) { /* a pause, and then the search, which has to be of this connection */
            fake_advance_to(&s, s.now + 100);
            fake_expect(&s, OP_MULTI);
        }
    }
}

/* Its size is no reason for those. */
TEST_CONNECTED(a_large_create_outlives_losses_that_are_not_the_servers)
{
    static char data[70000];
    static const enum loss losses[] = {LOSS_SILENCE, LOSS_SILENCE, LOSS_SILENCE, LOSS_HANG_UP,
                                       LOSS_HANG_UP, LOSS_SILENCE, LOSS_HANG_UP};
    const clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PROTECTED};
    static struct outcome a = {0};
    assert_int_equal(clave_async_create(s->c, "/x", data, sizeof data, &o, outcome_cb, &a),
                     CLAVE_OK);
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        fake_expect(s, OP_CREATE2);
        lose_and_search(s, losses[i]);
    }
    fake_expect(s, OP_CREATE2);
    assert_int_equal(a.times, 0);
}

/* A named one that has not left fails with its connection, too. The first loss is such a one. */
TEST_CONNECTED(a_large_create_of_which_nothing_left_counts_no_loss)
{
    static char data[70000];
    const clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PROTECTED};
    static struct outcome a = {0};
    struct client_named_create n = {.path = "/x",
                                    .data = data,
                                    .len = sizeof data,
                                    .o = &o,
                                    .uuid = "01234567-89ab-4def-8123-456789abcdef"};
    assert_int_equal(clave__client_create_named(s->c, &n, outcome_cb, &a), CLAVE_OK);
    for (int i = 0; i < 3; i++)
        lose_and_search(s, LOSS_HANG_UP);
    fake_expect(s, OP_CREATE2);
    assert_int_equal(a.times, 0);
}

TEST(a_search_goes_on_in_the_next_session)
{
    struct fake_server s;
    static struct outcome a = {0};
    char path[256];
    connected(&s);
    create_protected(&s, &a, path);
    fake_take_output(&s);
    fake_hang_up(&s);
    fake_dial(&s);
    fake_answer_handshake(&s, 0, 0, false); /* expired */
    fake_hang_up(&s);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION + 1, T, false);
    assert_int_equal(a.times, 0);
    search_for_it(&s, FATE_FOUND, path); /* it is of the old session, though */
    assert_true(path_is(fake_expect(&s, OP_DELETE), path));
    fake_close(&s);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.err, CLAVE_ECLOSED);
}

/* Of an ancestor and the create after it only the ancestor had left when the connection went:
 * nobody knows whether it was made, and the create failed for it. (Seed 1004798,
 * docs/evidence/simulation.md.) */
TEST_CONNECTED(an_ancestor_whose_answer_was_lost_is_made_again)
{
    static struct outcome got = {0};
    const clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PARENTS};
    const void *p;
    assert_int_equal(clave_async_create(s->c, "/a/b", NULL, 0, &o, outcome_cb, &got), CLAVE_OK);
    fake_expect(s, OP_CREATE2);
    fake_answer(s, CLAVE_ENONODE, NULL);
    assert_true(clave_async_client_output(s->c, &p) > 4);
    const uint8_t *frame = p;
    clave_async_client_sent(s->c, s->now, 4 + (size_t)(frame[2] << 8 | frame[3]));
    fake_hang_up(s);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, FAKE_TIMEOUT, false);
    fake_expect(s, OP_CREATE2);
    fake_answer(s, CLAVE_ENONODE, NULL);
    fake_config(s, true);
    fake_expect(s, OP_CREATE_CONTAINER);
    fake_answer(s, CLAVE_OK, &(struct wire_reply){.path = clave__jbytes("/a")});
    fake_expect(s, OP_CREATE2);
    fake_answer(s, CLAVE_OK, &(struct wire_reply){.path = clave__jbytes("/a/b")});
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_OK);
}

/* The leader that took the create is deposed, and its side still answers what it had before;
 * the successor commits the create later. "It is not there" counts only after something that
 * was committed: else a second node is made, or none is known of, and the first stands in the
 * queue, of a session that lives, and everybody waits for nobody. (Seed 405559,
 * docs/evidence/simulation.md.) */
TEST(a_deposed_leader_does_not_tell_that_a_create_was_not_done)
{
    CLOSED_BY(fake_close) struct fake_server s;
    static struct outcome got = {0};
    char path[128];
    clave_create_options o = {
        .size = sizeof o, .mode = CLAVE_EPHEMERAL_SEQUENTIAL, .flags = CLAVE_CREATE_PROTECTED};
    fake_open(&s, NULL);
    fake_connect(&s, false);
    assert_int_equal(clave_async_create(s.c, "/q/n-", "", 0, &o, outcome_cb, &got), CLAVE_OK);
    const struct wire_request *q = fake_expect(&s, OP_CREATE2);
    snprintf(path, sizeof path, "%.*s0000000005", (int)q->body.create.path.n,
             (const char *)q->body.create.path.p);
    const char *names[] = {path + strlen("/q/")};
    fake_hang_up(&s);
    fake_dial(&s); /* the deposed leader's side */
    fake_answer_handshake(&s, FAKE_SESSION, FAKE_TIMEOUT, false);
    fake_expect(&s, OP_MULTI); /* which it cannot commit */
    int32_t multi = s.q.xid;
    fake_answer_to(&s, multi, OP_MULTI, CLAVE_ENOTREADONLY, NULL);
    struct wire_reply m = {.names = fake_names(names, 0)};
    fake_answer_to(&s, multi + 1, OP_GET_CHILDREN2, CLAVE_OK, &m);
    assert_int_equal(got.times, 0);
    fake_hang_up(&s);
    fake_dial(&s); /* and its successor's */
    fake_answer_handshake(&s, FAKE_SESSION, FAKE_TIMEOUT, false);
    fake_config(&s, false);
    fake_advance_to(&s, s.now + 1000);
    fake_expect(&s, OP_MULTI);
    fake_answer_checks(&s, CLAVE_OK);
    fake_expect(&s, OP_GET_CHILDREN2);
    m = (struct wire_reply){.names = fake_names(names, 1)};
    fake_answer(&s, CLAVE_OK, &m);
    fake_expect(&s, OP_EXISTS);
    m = (struct wire_reply){.stat = {.czxid = 7, .ephemeral_owner = FAKE_SESSION}};
    fake_answer(&s, CLAVE_OK, &m);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_OK);
    assert_string_equal(got.path, path);
}

/* The root has no parent to list: that was told as the create's fault. */
TEST_CONNECTED(a_create_of_the_root_is_answered_by_the_server)
{
    static struct outcome got = {0};
    clave_create_options o = {.size = sizeof o, .with_names = true};
    assert_int_equal(clave_async_create(s->c, "/", NULL, 0, &o, outcome_cb, &got), CLAVE_OK);
    assert_null(strstr(clave_async_client_errmsg(s->c), "not valid"));
    int32_t xid = fake_expect(s, OP_CREATE2)->xid;
    fake_answer_to(s, xid, OP_CREATE2, CLAVE_ENODEEXISTS, NULL);
    fake_expect(s, OP_GET_CHILDREN2);
    fake_answer(s, CLAVE_OK, &(struct wire_reply){.names = fake_names(NULL, 0)});
    assert_int_equal(got.err, CLAVE_ENODEEXISTS);
}

/* The reply to the search of a create whose answer was lost is over the limit: the search would go
 * on for ever. */
TEST(a_search_that_cannot_be_answered_ends)
{
    CLOSED_BY(fake_close) struct fake_server s;
    static struct outcome got = {0};
    clave_create_options create = {.size = sizeof create, .flags = CLAVE_CREATE_PROTECTED};
    clave_client_options o = {.max_frame = 1000};
    fake_open(&s, &o);
    fake_connect(&s, true);
    assert_int_equal(clave_async_create(s.c, "/a", NULL, 0, &create, outcome_cb, &got), CLAVE_OK);
    fake_expect(&s, OP_CREATE2);
    fake_hang_up(&s);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_expect(&s, OP_MULTI);
    fake_answer_checks(&s, CLAVE_OK);
    fake_expect(&s, OP_GET_CHILDREN2);
    fake_feed(&s, "\0\0\x10\0", 4);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_ECONNLOSS); /* it may be there, and we cannot see it */
}

/* A create whose answer is lost, and no memory for the search but its sync: then the client
 * closes, the failure of that sync is told after CLOSED, and no time passes any more. */
TEST(a_search_that_breaks_off_while_the_client_closes_is_told)
{
    struct failmem mem;
    struct fake_server s;
    static struct outcome got = {0};
    clave_create_options create = {.size = sizeof create, .flags = CLAVE_CREATE_PROTECTED};
    failmem_init(&mem);
    clave_client_options o = {.mem = &mem.mem};
    fake_open(&s, &o);
    fake_connect(&s, true);
    assert_int_equal(clave_async_create(s.c, "/a", NULL, 0, &create, outcome_cb, &got), CLAVE_OK);
    fake_expect(&s, OP_CREATE2);
    failmem_arm(&mem, 3, 1);
    fake_hang_up(&s);
    assert_true(mem.failed);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_expect(&s, OP_MULTI);
    clave_async_client_close(s.c, s.now);
    fake_hang_up(&s);
    fake_advance_to(&s, clave_async_client_deadline(s.c));
    fake_dial(&s);
    fake_answer_handshake(&s, 0, 0, false);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    assert_int_equal(got.times, 1);
    fake_close(&s);
    assert_int_equal(mem.live, 0);
}

/* ---- a name that another process with this session may create, too ------------------------------
 */

/* The create was refused for want of its ancestors; the listing of its parent ends with the client.
 * Ancestors that were asked for then would have no answer. */
TEST(a_client_that_closes_asks_for_no_parents)
{
    struct fake_server s;
    static struct outcome a = {0};
    char path[128];
    connected(&s);
    create_protected(&s, &a, path);
    int32_t create = s.q.xid;
    fake_expect(&s, OP_GET_CHILDREN2);
    fake_answer_to(&s, create, OP_CREATE2, CLAVE_ENONODE, NULL);
    assert_int_equal(a.times, 0);
    fake_close(&s);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.err, CLAVE_ECLOSED);
}

static void create_named(struct fake_server *s, struct outcome *out, bool search)
{
    struct client_named_create n = {.path = "/a/b/x-",
                                    .o = &protected_options,
                                    .uuid = "01234567-89ab-4def-8123-456789abcdef",
                                    .search = search};
    assert_int_equal(clave__client_create_named(s->c, &n, outcome_cb, out), CLAVE_OK);
}

static void attach_again(struct fake_server *s)
{
    fake_hang_up(s);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
}

/* The other one may have had the session in between. */
TEST_CONNECTED(a_named_create_that_never_left_is_looked_for_first)
{
    static struct outcome a = {0};
    char path[160] = "/a/b/_c_01234567-89ab-4def-8123-456789abcdef-x-";
    create_named(s, &a, false);
    attach_again(s);
    assert_int_equal(a.times, 0);
    search_for_it(s, FATE_FOUND, path);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.err, CLAVE_OK);
    assert_string_equal(a.path, path);
    assert_true(fake_is_quiet(s));
}

/* The server of the second one need not know yet what the other process has done meanwhile. */
TEST_CONNECTED(a_search_for_a_name_proves_nothing_on_the_next_connection)
{
    static struct outcome a = {0};
    create_named(s, &a, true);
    fake_expect(s, OP_MULTI);
    fake_answer_checks(s, CLAVE_OK);
    fake_expect(s, OP_GET_CHILDREN2);
    attach_again(s);
    fake_expect(s, OP_GET_CHILDREN2);
    struct wire_reply none = {.names = fake_names(NULL, 0)};
    fake_answer(s, CLAVE_OK, &none);
    fake_config(s, true);
    assert_true(fake_is_quiet(s));
    fake_advance_to(s, clave_async_client_deadline(s->c));
    fake_expect(s, OP_MULTI);
    fake_answer_checks(s, CLAVE_OK);
    fake_expect(s, OP_GET_CHILDREN2);
    fake_answer(s, CLAVE_OK, &none);
    fake_expect(s, OP_CREATE2);
}

static bool is_in_the_way(void *arg, const char *path)
{
    (void)arg;
    return strncmp(path, "/a/b/_c_1", strlen("/a/b/_c_1")) == 0;
}

static void create_alone(struct fake_server *s, struct outcome *out)
{
    struct client_named_create n = {.path = "/a/b/x-",
                                    .o = &protected_options,
                                    .uuid = "01234567-89ab-4def-8123-456789abcdef",
                                    .search = true,
                                    .below = "/a/b",
                                    .excludes = is_in_the_way};
    assert_int_equal(clave__client_create_named(s->c, &n, outcome_cb, out), CLAVE_OK);
    fake_expect(s, OP_MULTI);
    fake_answer_checks(s, CLAVE_OK);
    assert_true(path_is(fake_expect(s, OP_GET_EPHEMERALS), "/a/b"));
}

TEST(a_node_of_the_session_excludes_another)
{
    static const struct {
        const char *listed;
        int next; /* request; 0: ENODEEXISTS */
    } rows[] = {
        {"/a/b/_c_11111111-89ab-4def-8123-456789abcdef-x-0000000001", 0},
        {"/a/b/_c_01234567-89ab-4def-8123-456789abcdef-x-0000000001", OP_EXISTS},
        {"/a/b/other", OP_CREATE2},
        {"/a/bc/_c_11111111-89ab-4def-8123-456789abcdef-x-0000000001", OP_CREATE2},
        {"/a/bc/_c_01234567-89ab-4def-8123-456789abcdef-x-0000000001", OP_CREATE2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLOSED_BY(fake_close) struct fake_server s;
        struct outcome a = {0};
        connected(&s);
        create_alone(&s, &a);
        struct wire_reply m = {.names = fake_names(&rows[i].listed, 1)};
        fake_answer(&s, CLAVE_OK, &m);
        if (rows[i].next)
            fake_expect(&s, rows[i].next);
        assert_int_equal(a.times, rows[i].next == 0);
        assert_int_equal(a.err, rows[i].next == 0 ? CLAVE_ENODEEXISTS : CLAVE_OK);
    }
}

/* Before 3.6; the node itself is found all the same. */
TEST_CONNECTED(a_server_that_lists_no_ephemeral_nodes_is_asked_for_the_children)
{
    static struct outcome a = {0};
    const char *own = "_c_01234567-89ab-4def-8123-456789abcdef-x-0000000001";
    create_alone(s, &a);
    fake_answer(s, CLAVE_EUNIMPLEMENTED, NULL);
    fake_expect(s, OP_MULTI);
    fake_answer_checks(s, CLAVE_OK);
    assert_true(path_is(fake_expect(s, OP_GET_CHILDREN2), "/a/b"));
    struct wire_reply m = {.names = fake_names(&own, 1)};
    fake_answer(s, CLAVE_OK, &m);
    fake_expect(s, OP_EXISTS);
}
