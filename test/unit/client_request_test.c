/* Requests: what is sent when, what becomes of it when the connection goes, guaranteed
 * deletes, identities. Creates of several requests are in client_create_test. */
#include "client/client_for_gate.h"
#include "client/client_internal.h"
#include "lib/fake_server.h"
#include "lib/unit.h"

enum { T = FAKE_TIMEOUT };

static void connected(struct fake_server *s)
{
    fake_open(s, NULL);
    fake_connect(s, true);
}

static void reconnect(struct fake_server *s)
{
    fake_hang_up(s);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    fake_config(s, true);
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

/* ---- the pipeline -------------------------------------------------------------------- */

TEST(requests_wait_for_the_connection_and_go_in_order)
{
    CLOSED_BY(fake_close) struct fake_server s;
    static struct outcome a = {0}, b = {0};
    fake_open(&s, NULL);
    assert_int_equal(clave_async_exists(s.c, "/a", NULL, outcome_cb, &a), CLAVE_OK);
    assert_int_equal(clave_async_delete(s.c, "/b", 3, outcome_cb, &b), CLAVE_OK);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_expect(&s, OP_EXISTS);
    int32_t first = s.q.xid;
    fake_expect(&s, OP_DELETE);
    assert_int_equal(s.q.xid, first + 1);
    assert_int_equal(s.q.body.check.version, 3);
    fake_answer_to(&s, first, OP_EXISTS, CLAVE_ENONODE, NULL);
    fake_answer_to(&s, first + 1, OP_DELETE, CLAVE_EBADVERSION, NULL);
    assert_int_equal(a.err, CLAVE_ENONODE);
    assert_string_equal(a.path, "/a");
    assert_int_equal(b.err, CLAVE_EBADVERSION);
    assert_string_equal(clave_async_client_errmsg(s.c),
                        "cannot delete /b: the node has another version");
}

TEST_CONNECTED(a_reply_out_of_order_ends_the_connection)
{
    static struct outcome a = {0};
    assert_int_equal(clave_async_set(s->c, "/a", "x", 1, -1, outcome_cb, &a), CLAVE_OK);
    fake_expect(s, OP_SET_DATA);
    struct wire_reply m = {0};
    fake_answer_to(s, s->q.xid + 1, OP_SET_DATA, CLAVE_OK, &m);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.err, CLAVE_ECONNLOSS);
    assert_int_equal(clave_async_client_wants(s->c), CLAVE_WANT_HANGUP);
}

TEST_CONNECTED(a_reply_that_is_cut_short_ends_the_connection)
{
    static const uint8_t short_stat[] = {0, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 0,
                                         0, 0, 0, 9,  0, 0, 0, 0, 1, 2, 3, 4};
    static struct outcome a = {0};
    assert_int_equal(clave_async_set(s->c, "/a", "x", 1, -1, outcome_cb, &a), CLAVE_OK);
    fake_expect(s, OP_SET_DATA);
    assert_int_equal(s->q.xid, 2);
    fake_feed(s, short_stat, sizeof short_stat);
    assert_int_equal(a.err, CLAVE_ECONNLOSS);
    assert_int_equal(clave_async_client_wants(s->c), CLAVE_WANT_HANGUP);
}

TEST_CONNECTED(a_lost_write_is_unknown_and_never_sent_twice)
{
    static struct outcome sent = {0}, unsent = {0};
    assert_int_equal(clave_async_set(s->c, "/a", "x", 1, -1, outcome_cb, &sent), CLAVE_OK);
    fake_expect(s, OP_SET_DATA);
    assert_int_equal(clave_async_set(s->c, "/b", "x", 1, -1, outcome_cb, &unsent), CLAVE_OK);
    fake_hang_up(s); /* of the second not a byte had left */
    assert_int_equal(sent.err, CLAVE_ECONNLOSS);
    assert_int_equal(unsent.times, 0);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    fake_expect(s, OP_SET_DATA);
    assert_true(path_is(&s->q, "/b"));
    fake_config(s, true);
    assert_true(fake_is_quiet(s));
    assert_int_equal(sent.times, 1);
}

/* A frame that left in part cannot have been done. */
TEST_CONNECTED(a_write_that_left_in_part_was_not_sent)
{
    static struct outcome a = {0};
    const void *p;
    assert_int_equal(clave_async_set(s->c, "/a", "x", 1, -1, outcome_cb, &a), CLAVE_OK);
    size_t n = clave_async_client_output(s->c, &p);
    clave_async_client_sent(s->c, s->now, n - 1);
    fake_hang_up(s);
    assert_int_equal(a.times, 0);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    fake_expect(s, OP_SET_DATA);
}

TEST_CONNECTED(a_lost_read_is_sent_again_three_times)
{
    static struct outcome a = {0};
    assert_int_equal(clave_async_get(s->c, "/a", NULL, outcome_cb, &a), CLAVE_OK);
    for (int i = 0; i < 3; i++) {
        fake_expect(s, OP_GET_DATA);
        fake_hang_up(s);
        assert_int_equal(a.times, 0);
        if (clave_async_client_wants(s->c) == 0)
            fake_advance_to(s, clave_async_client_deadline(s->c));
        fake_dial(s);
        fake_answer_handshake(s, FAKE_SESSION, T, false);
    }
    fake_expect(s, OP_GET_DATA);
    fake_hang_up(s);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.err, CLAVE_ECONNLOSS);
}

TEST(a_read_may_wait_before_it_is_sent_again)
{
    CLOSED_BY(fake_close) struct fake_server s;
    static struct outcome a = {0};
    clave_client_options o = {.reads = {.kind = CLAVE_RETRY_N_TIMES, .base_ms = 70, .times = 1}};
    fake_open(&s, &o);
    fake_connect(&s, true);
    assert_int_equal(clave_async_get(s.c, "/a", NULL, outcome_cb, &a), CLAVE_OK);
    fake_expect(&s, OP_GET_DATA);
    reconnect(&s);
    assert_true(fake_is_quiet(&s));
    fake_advance_to(&s, s.now + 70);
    fake_expect(&s, OP_GET_DATA);
}

/* It would take effect after somebody was told that it may have failed. */
TEST_CONNECTED(a_write_that_has_not_left_is_withdrawn)
{
    static struct outcome set = {0}, made = {0}, other = {0}, read = {0};
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    fake_hang_up(s);
    assert_int_equal(clave_async_set(s->c, "/a", "x", 1, -1, outcome_cb, &set), CLAVE_OK);
    assert_int_equal(clave_async_create(s->c, "/b", "x", 1, &o, outcome_cb, &made), CLAVE_OK);
    assert_int_equal(clave_async_delete(s->c, "/c", -1, outcome_cb, &other), CLAVE_OK);
    assert_int_equal(clave_async_get(s->c, "/d", NULL, outcome_cb, &read), CLAVE_OK);
    clave__client_withdraw(s->c, s->now, &set);
    clave__client_withdraw(s->c, s->now, &made);
    clave__client_withdraw(s->c, s->now, &read);
    assert_int_equal(set.err, CLAVE_ENOTSENT);
    assert_int_equal(made.err, CLAVE_ENOTSENT);
    fake_advance_to(s, s->now + 2000);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    fake_expect(s, OP_DELETE);
    fake_expect(s, OP_GET_DATA);
    assert_int_equal(set.times, 1);
}

/* It is in the buffer of a connection that takes nothing any more. */
TEST_CONNECTED(a_withdrawn_write_is_not_sent_on_the_next_connection)
{
    static struct outcome set = {0}, other = {0};
    assert_int_equal(clave_async_set(s->c, "/a", "x", 1, -1, outcome_cb, &set), CLAVE_OK);
    assert_int_equal(clave_async_delete(s->c, "/c", -1, outcome_cb, &other), CLAVE_OK);
    clave__client_withdraw(s->c, s->now, &set);
    assert_int_equal(set.times, 0);
    fake_hang_up(s);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    assert_int_equal(set.err, CLAVE_ENOTSENT);
    fake_expect(s, OP_DELETE);
}

TEST_CONNECTED(the_end_of_the_session_ends_what_waits)
{
    static struct outcome read = {0}, unsent = {0}, later = {0};
    assert_int_equal(clave_async_get(s->c, "/a", NULL, outcome_cb, &read), CLAVE_OK);
    fake_expect(s, OP_GET_DATA);
    fake_hang_up(s);
    assert_int_equal(clave_async_delete(s->c, "/b", -1, outcome_cb, &unsent), CLAVE_OK);
    fake_advance_to(s, s->now + 2 * T);
    assert_int_equal(s->states[s->nstates - 1], CLAVE_STATE_LOST);
    assert_int_equal(read.err, CLAVE_ENOTSENT);
    assert_int_equal(unsent.err, CLAVE_ENOTSENT);
    /* The next session is at work again. */
    assert_int_equal(clave_async_delete(s->c, "/c", -1, outcome_cb, &later), CLAVE_OK);
    fake_hang_up(s); /* the dial that had been going on */
    fake_advance_to(s, s->now + 2000);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION + 1, T, false);
    fake_expect(s, OP_DELETE);
    fake_answer(s, CLAVE_OK, NULL);
    assert_int_equal(later.err, CLAVE_OK);
}

TEST_CONNECTED(an_expired_session_is_believed_at_once)
{
    static struct outcome a = {0};
    assert_int_equal(clave_async_set(s->c, "/a", "x", 1, -1, outcome_cb, &a), CLAVE_OK);
    fake_expect(s, OP_SET_DATA);
    fake_answer(s, CLAVE_EEXPIRED, NULL);
    assert_int_equal(a.err, CLAVE_EEXPIRED);
    fake_expect_state(s, CLAVE_STATE_CONNECTED, CLAVE_OK);
    fake_expect_state(s, CLAVE_STATE_SUSPENDED, CLAVE_EEXPIRED);
    fake_expect_state(s, CLAVE_STATE_LOST, CLAVE_EEXPIRED);
}

TEST_CONNECTED(what_cannot_be_sent_is_refused_at_once)
{
    static char big[2 << 20];
    assert_int_equal(clave_async_set(s->c, "a", "x", 1, -1, NULL, NULL), CLAVE_EPATH);
    assert_non_null(strstr(clave_async_client_errmsg(s->c), "\"a\""));
    assert_int_equal(clave_async_get(s->c, "/a/", NULL, NULL, NULL), CLAVE_EPATH);
    assert_int_equal(clave_async_set(s->c, "/a", big, sizeof big, -1, NULL, NULL), CLAVE_ETOOBIG);
    assert_int_equal(clave_async_create(s->c, "/a", big, sizeof big, NULL, NULL, NULL),
                     CLAVE_ETOOBIG);
    assert_non_null(strstr(clave_async_client_errmsg(s->c), "1048575"));
    char path[489];
    memset(path, 'n', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(clave_async_create(s->c, path, big, 1048560, NULL, NULL, NULL), CLAVE_ETOOBIG);
    assert_non_null(strstr(clave_async_client_errmsg(s->c),
                           "nnn... is larger than the 1048575 bytes of one frame"));
    clave_create_options o = {.size = sizeof o, .mode = CLAVE_PERSISTENT_TTL};
    assert_int_equal(clave_async_create(s->c, "/a", NULL, 0, &o, NULL, NULL), CLAVE_EINVAL);
    assert_true(fake_is_quiet(s));
}

TEST(a_chroot_is_put_in_front_and_taken_off)
{
    CLOSED_BY(fake_close) struct fake_server s;
    static struct outcome a = {0};
    clave_client_options o = {.hosts = "h/app"};
    fake_open(&s, &o);
    fake_connect(&s, true);
    assert_int_equal(clave_async_create(s.c, "/a", NULL, 0, NULL, outcome_cb, &a), CLAVE_OK);
    assert_true(path_is(fake_expect(&s, OP_CREATE2), "/app/a"));
    struct wire_reply m = created("/app/a", 0);
    fake_answer(&s, CLAVE_OK, &m);
    assert_string_equal(a.path, "/a");
    assert_int_equal(clave_async_children(s.c, "/", NULL, outcome_cb, &a), CLAVE_OK);
    assert_true(path_is(fake_expect(&s, OP_GET_CHILDREN2), "/app"));
}

TEST_CONNECTED(a_multi_tells_each_of_its_ops)
{
    static struct outcome a = {0};
    clave_op ops[] = {{.kind = CLAVE_OP_CHECK, .path = "/l", .version = -1},
                      {.kind = CLAVE_OP_CREATE, .path = "/n-", .mode = CLAVE_EPHEMERAL_SEQUENTIAL},
                      {.kind = CLAVE_OP_SET, .path = "/d", .data = "x", .len = 1, .version = 2}};
    assert_int_equal(clave_async_multi(s->c, ops, 3, outcome_cb, &a), CLAVE_OK);
    fake_expect(s, OP_MULTI);
    assert_int_equal(s->q.body.multi.count, 3);
    CLOSED_BY(clave__buf_fini) struct buf b;
    clave__buf_init(&b, &s->mem, 4096);
    struct jwriter w = clave__jwriter(&b);
    static const int32_t errs[] = {0, CLAVE_ENODEEXISTS, CLAVE_ERUNTIME};
    for (int i = 0; i < 3; i++)
        clave__wire_put_result(&w, &(struct wire_result){.op = OP_ERROR, .err = errs[i]});
    clave__wire_put_ops_end(&w);
    struct wire_reply m = {.results = {3, clave__buf_bytes(&b), clave__buf_len(&b)}};
    fake_answer(s, CLAVE_OK, &m);
    assert_int_equal(a.err, CLAVE_ENODEEXISTS);
    assert_int_equal(a.nops, 3);
}

/* ---- guaranteed deletes -------------------------------------------------------------- */

TEST_CONNECTED(a_guaranteed_delete_is_asked_for_until_it_is_done)
{
    static struct outcome a = {0};
    assert_int_equal(clave_async_delete_guaranteed(s->c, "/n", outcome_cb, &a), CLAVE_OK);
    fake_expect(s, OP_DELETE);
    fake_hang_up(s);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    fake_expect(s, OP_DELETE);
    assert_int_equal(s->q.body.check.version, -1);
    fake_answer(s, CLAVE_ETHROTTLED, NULL);
    assert_int_equal(a.times, 0);
    fake_config(s, true);
    fake_advance_to(s, s->now + 100);
    fake_expect(s, OP_DELETE);
    fake_answer(s, CLAVE_ENONODE, NULL); /* the one before had been done */
    assert_int_equal(a.times, 1);
    assert_int_equal(a.err, CLAVE_OK);
}

TEST_CONNECTED(a_guaranteed_delete_ends_with_its_session)
{
    static struct outcome a = {0};
    assert_int_equal(clave_async_delete_guaranteed(s->c, "/n", outcome_cb, &a), CLAVE_OK);
    fake_expect(s, OP_DELETE);
    fake_hang_up(s);
    fake_dial(s);
    fake_answer_handshake(s, 0, 0, false);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.err, CLAVE_EEXPIRED);
    fake_hang_up(s);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION + 1, T, false);
    fake_config(s, true);
    assert_true(fake_is_quiet(s)); /* another session's node of that name is not touched */
}

/* The sync is sent at once after a lost answer, else after the question about the ensemble. */
static void answer_look(struct fake_server *s, bool lost, int64_t czxid)
{
    if (!lost) {
        fake_config(s, true);
        fake_advance_to(s, s->now + 1);
    }
    fake_expect(s, OP_SYNC);
    fake_answer(s, CLAVE_OK, &(struct wire_reply){.path = clave__jbytes("/n")});
    if (lost)
        fake_config(s, true);
    fake_expect(s, OP_EXISTS);
    fake_answer(s, CLAVE_OK, &(struct wire_reply){.stat = {.czxid = czxid}});
}

/* Of a node whose name may come again: without a connection, and after a lost answer, it is looked
 * at first, and another node of its name is left alone. */
TEST(a_delete_of_one_node_spares_the_next_of_its_name)
{
    for (int lost = 0; lost < 2; lost++) {
        for (int czxid = 7; czxid <= 8; czxid++) {
            CLOSED_BY(fake_close) struct fake_server s;
            struct outcome a = {0};
            connected(&s);
            if (!lost)
                fake_hang_up(&s);
            assert_int_equal(clave__client_delete_node(s.c, "/n", 7, outcome_cb, &a), CLAVE_OK);
            if (lost) {
                fake_expect(&s, OP_DELETE);
                fake_hang_up(&s);
            }
            fake_dial(&s);
            fake_answer_handshake(&s, FAKE_SESSION, T, false);
            answer_look(&s, lost, czxid);
            if (czxid == 7) {
                fake_expect(&s, OP_DELETE);
                assert_int_equal(a.times, 0);
                fake_answer(&s, CLAVE_OK, NULL);
            }
            assert_int_equal(a.times, 1);
            assert_int_equal(a.err, CLAVE_OK);
            assert_true(fake_is_quiet(&s));
        }
    }
}

/* ---- identities ---------------------------------------------------------------------- */

TEST(identities_go_first_on_every_connection)
{
    CLOSED_BY(fake_close) struct fake_server s;
    static struct outcome a = {0};
    fake_open(&s, NULL);
    assert_int_equal(clave_async_exists(s.c, "/a", NULL, NULL, NULL), CLAVE_OK);
    assert_int_equal(clave_async_add_auth(s.c, "digest", "u:p", 3, outcome_cb, &a), CLAVE_OK);
    for (int i = 0; i < 2; i++) {
        fake_dial(&s);
        fake_answer_handshake(&s, FAKE_SESSION, T, false);
        const struct wire_request *q = fake_expect(&s, OP_AUTH);
        assert_int_equal(q->xid, XID_AUTH);
        assert_true(clave__jbytes_eq(q->body.auth.scheme, clave__jbytes("digest")));
        assert_true(clave__jbytes_eq(q->body.auth.auth, clave__jbytes("u:p")));
        fake_answer_to(&s, XID_AUTH, OP_AUTH, CLAVE_OK, NULL);
        assert_int_equal(a.times, 1);
        assert_int_equal(a.err, CLAVE_OK);
        fake_expect(&s, OP_EXISTS);
        fake_config(&s, true);
        fake_hang_up(&s);
        if (clave_async_client_wants(s.c) == 0)
            fake_advance_to(&s, clave_async_client_deadline(s.c));
    }
}

TEST(a_refused_identity_is_told_and_not_tried_again)
{
    struct fake_server s;
    static struct outcome a = {0};
    connected(&s);
    assert_int_equal(clave_async_add_auth(s.c, "digest", "u", 1, outcome_cb, &a), CLAVE_OK);
    fake_expect(&s, OP_AUTH);
    fake_answer_to(&s, XID_AUTH, OP_AUTH, CLAVE_EAUTHFAILED, NULL);
    assert_int_equal(a.err, CLAVE_EAUTHFAILED);
    assert_non_null(strstr(clave_async_client_errmsg(s.c), "digest"));
    reconnect(&s);
    assert_true(fake_is_quiet(&s));
    fake_close(&s);
    assert_int_equal(a.times, 1);
}

/* NULL is the open ACL, whatever count is left beside it; in composed creates too. */
static const clave_client_options identified = {
    .size = sizeof identified,
    .auths = (const clave_auth[]){{"digest", "u:p", 3}, {"x", NULL, 0}},
    .nauths = 2,
};

/* A server with --require-auth closes the connection for anything that comes before them. */
TEST(identities_of_the_options_precede_everything)
{
    CLOSED_BY(fake_close) struct fake_server s;
    fake_open(&s, &identified);
    for (size_t i = 0; i < 2; i++) {
        fake_dial(&s);
        fake_answer_handshake(&s, FAKE_SESSION, T, false);
        const struct wire_request *q = fake_expect(&s, OP_AUTH);
        assert_true(clave__jbytes_eq(q->body.auth.scheme, clave__jbytes("digest")));
        assert_true(clave__jbytes_eq(q->body.auth.auth, clave__jbytes("u:p")));
        q = fake_expect(&s, OP_AUTH);
        assert_true(clave__jbytes_eq(q->body.auth.scheme, clave__jbytes("x")));
        assert_int_equal(q->body.auth.auth.n, 0);
        fake_answer_to(&s, XID_AUTH, OP_AUTH, CLAVE_OK, NULL);
        assert_int_equal(s.nstates, 2 * i); /* not connected until both are accepted */
        fake_answer_to(&s, XID_AUTH, OP_AUTH, CLAVE_OK, NULL);
        assert_int_equal(s.nstates, 2 * i + 1);
        assert_int_equal(s.states[2 * i], i == 0 ? CLAVE_STATE_CONNECTED : CLAVE_STATE_RECONNECTED);
        fake_config(&s, true);
        fake_hang_up(&s);
        assert_int_equal(s.states[2 * i + 1], CLAVE_STATE_SUSPENDED);
        if (clave_async_client_wants(s.c) == 0)
            fake_advance_to(&s, clave_async_client_deadline(s.c));
    }
}

static void hang_up_and_wait(struct fake_server *s)
{
    fake_hang_up(s);
    if (clave_async_client_wants(s->c) == 0)
        fake_advance_to(s, clave_async_client_deadline(s->c));
}

/* Neither the first session nor a later one: it was not reported, and nothing was answered in it.
 */
TEST(a_session_that_ends_before_its_identities_are_accepted_is_not_lost)
{
    CLOSED_BY(fake_close) struct fake_server s;
    fake_open(&s, &identified);
    for (size_t i = 0; i < 2; i++) {
        fake_dial(&s);
        fake_answer_handshake(&s, FAKE_SESSION, T, false);
        hang_up_and_wait(&s);
        assert_int_equal(fake_dial(&s).session_id, FAKE_SESSION);
        fake_answer_handshake(&s, 0, 0, false); /* it has expired */
        hang_up_and_wait(&s);
        assert_true(fake_expects_no_state(&s));
        assert_int_equal(fake_dial(&s).session_id, 0);
        fake_answer_handshake(&s, FAKE_SESSION + 1, T, false);
        fake_expect(&s, OP_AUTH);
        fake_expect(&s, OP_AUTH);
        fake_answer_to(&s, XID_AUTH, OP_AUTH, CLAVE_OK, NULL);
        fake_answer_to(&s, XID_AUTH, OP_AUTH, CLAVE_OK, NULL);
        fake_expect_state(&s, i == 0 ? CLAVE_STATE_CONNECTED : CLAVE_STATE_RECONNECTED, CLAVE_OK);
        fake_config(&s, true);
        hang_up_and_wait(&s);
        fake_expect_state(&s, CLAVE_STATE_SUSPENDED, CLAVE_ECONNLOSS);
        fake_dial(&s);
        fake_answer_handshake(&s, 0, 0, false);
        fake_expect_state(&s, CLAVE_STATE_LOST, CLAVE_EEXPIRED);
        hang_up_and_wait(&s);
    }
}

TEST(a_refused_identity_of_the_options_closes_the_client)
{
    CLOSED_BY(fake_close) struct fake_server s;
    static struct outcome got = {0};
    fake_open(&s, &identified);
    assert_int_equal(clave_async_exists(s.c, "/a", NULL, outcome_cb, &got), CLAVE_OK);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_answer_to(&s, XID_AUTH, OP_AUTH, CLAVE_OK, NULL);
    fake_answer_to(&s, XID_AUTH, OP_AUTH, CLAVE_EAUTHFAILED, NULL);
    assert_int_equal(s.nstates, 1);
    assert_int_equal(s.states[0], CLAVE_STATE_CLOSED);
    assert_int_equal(s.whys[0], CLAVE_EAUTHFAILED);
    assert_int_equal(got.err, CLAVE_ECLOSED);
    assert_non_null(strstr(clave_async_client_errmsg(s.c), "scheme x:"));
}

TEST(identities_without_their_parts_are_refused)
{
    static const clave_auth bad[] = {{NULL, "u:p", 3}, {"digest", NULL, 3}};
    clave_async_client *c;
    clave_client_options o = {.size = sizeof o, .hosts = "h", .seed = 1, .nauths = 1};
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_EINVAL);
    for (size_t i = 0; i < 2; i++) {
        o.auths = &bad[i];
        assert_int_equal(clave_async_client_new(&c, &o), CLAVE_EINVAL);
        assert_non_null(strstr(clave_async_client_options_fault(&o), "auths"));
    }
    o.auths = identified.auths;
    o.max_frame = 4;
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_ETOOBIG);
    assert_null(c);
}

TEST_CONNECTED(no_acls_are_none_whatever_their_count)
{
    clave_create_options o = {.size = sizeof o, .nacls = 3};
    for (unsigned flags = 0; flags <= CLAVE_CREATE_PROTECTED; flags += CLAVE_CREATE_PROTECTED) {
        o.flags = flags;
        assert_int_equal(clave_async_create(s->c, "/a", NULL, 0, &o, NULL, NULL), CLAVE_OK);
        assert_int_equal(fake_expect(s, OP_CREATE2)->body.create.acl.count, 1);
    }
}

/* Lengths that no frame has are refused before anything looks at the bytes. */
TEST_CONNECTED(more_than_a_frame_is_too_big)
{
    size_t len = (size_t)UINT32_MAX + 2; /* 1, when it is cut */
    clave_op op = {.kind = CLAVE_OP_SET, .path = "/a", .data = "x", .len = len, .version = -1};
    assert_int_equal(clave_async_create(s->c, "/a", "x", len, NULL, NULL, NULL), CLAVE_ETOOBIG);
    assert_int_equal(clave_async_set(s->c, "/a", "x", len, -1, NULL, NULL), CLAVE_ETOOBIG);
    assert_int_equal(clave_async_multi(s->c, &op, 1, NULL, NULL), CLAVE_ETOOBIG);
    op.kind = CLAVE_OP_CREATE;
    assert_int_equal(clave_async_multi(s->c, &op, 1, NULL, NULL), CLAVE_ETOOBIG);
    assert_true(fake_is_quiet(s));
}

/* A server closes the connection when it has read how long the request is; the client hears no more
 * than that. */
TEST(a_connection_lost_under_a_large_request_tells_its_size)
{
    static const struct {
        size_t len;
        const char *told;
    } cases[] = {
        {70000, "script:1 closed the connection while a request of 70026 bytes was unanswered: the "
                "server's limit may be smaller (clave serve --max-request; ZooKeeper's "
                "jute.maxbuffer), or it has ended, as on a full disk: its log says which"},
        {60000, "script:1 closed the connection"},
    };
    static char data[70000];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(fake_close) struct fake_server s;
        struct outcome a = {0};
        connected(&s);
        assert_int_equal(clave_async_set(s.c, "/a", data, cases[i].len, -1, outcome_cb, &a),
                         CLAVE_OK);
        fake_expect(&s, OP_SET_DATA);
        fake_hang_up(&s);
        assert_int_equal(a.err, CLAVE_ECONNLOSS);
        assert_string_equal(clave_async_client_errmsg(s.c), cases[i].told);
    }
}

static void leave_in_part(struct fake_server *s)
{
    const void *p;
    assert_true(clave_async_client_output(s->c, &p) > 100);
    clave_async_client_sent(s->c, s->now, 100);
    fake_hang_up(s);
}

static void dial_after_pause(struct fake_server *s)
{
    if (clave_async_client_wants(s->c) != CLAVE_WANT_DIAL)
        fake_advance_to(s, clave_async_client_deadline(s->c));
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
}

/* It was sent again for ever. A small one may meet as many deaths of servers. */
TEST(a_large_write_that_never_leaves_as_a_whole_ends)
{
    static char data[70000];
    for (size_t len = 200; len <= sizeof data; len += sizeof data - 200) {
        CLOSED_BY(fake_close) struct fake_server s;
        struct outcome large = {0}, next = {0};
        bool fails = len == sizeof data;
        connected(&s);
        assert_int_equal(clave_async_set(s.c, "/a", data, len, -1, outcome_cb, &large), CLAVE_OK);
        assert_int_equal(clave_async_set(s.c, "/b", "x", 1, -1, outcome_cb, &next), CLAVE_OK);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(large.times, 0);
            leave_in_part(&s);
            dial_after_pause(&s);
        }
        assert_int_equal(large.times, fails);
        assert_int_equal(large.err, fails ? CLAVE_ETOOBIG : CLAVE_OK);
        fake_expect(&s, OP_SET_DATA);
        assert_true(path_is(&s.q, fails ? "/b" : "/a"));
        assert_int_equal(next.times, 0);
    }
}

/* A reply over the limit: the read that asked for it would ask again, on every connection to
 * come, and each would end the same way. */
TEST(a_read_whose_reply_is_too_big_fails_at_once)
{
    CLOSED_BY(fake_close) struct fake_server s;
    static struct outcome got = {0}, next = {0};
    clave_client_options o = {.max_frame = 1000};
    fake_open(&s, &o);
    fake_connect(&s, true);
    assert_int_equal(clave_async_children(s.c, "/huge", NULL, outcome_cb, &got), CLAVE_OK);
    assert_int_equal(clave_async_exists(s.c, "/x", NULL, outcome_cb, &next), CLAVE_OK);
    fake_expect(&s, OP_GET_CHILDREN2);
    fake_feed(&s, "\0\0\x10\0", 4);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_ETOOBIG);
    fake_hang_up(&s);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_expect(&s, OP_EXISTS); /* that one was not at fault */
    assert_int_equal(next.times, 0);
}

/* What one huge request or reply took is given back. */
TEST(one_huge_message_does_not_stay)
{
    enum { HUGE = 900000, PIECE = 100000, FEW = 128 * 1024 };
    static char huge[HUGE];
    CLOSED_BY(fake_close) struct fake_server s;
    static struct outcome got = {0};
    struct wire_reply m = {.data = clave__jbytes_n(huge, HUGE)};
    fake_open(&s, NULL);
    fake_connect(&s, true);
    assert_int_equal(clave_async_set(s.c, "/a", huge, HUGE, -1, outcome_cb, &got), CLAVE_OK);
    fake_expect(&s, OP_SET_DATA);
    fake_answer(&s, CLAVE_OK, &m);
    assert_int_equal(clave_async_get(s.c, "/a", NULL, outcome_cb, &got), CLAVE_OK);
    fake_expect(&s, OP_GET_DATA);
    s.piece = PIECE;
    fake_answer(&s, CLAVE_OK, &m);
    assert_int_equal(got.times, 2);
    assert_int_equal(got.len, HUGE);
    assert_true(s.c->encode.cap <= FEW);
    assert_true(s.c->link.out.cap <= FEW);
    assert_true(s.c->link.in.held.cap <= FEW);
}

/* A process with a thousand clients in one queue, which each list it once, keeps none of the lists.
 */
TEST(a_list_of_a_long_queue_does_not_stay)
{
    enum { NAMES = 500, LEN = 4 + 60, PIECE = 10000, FEW = 4096 };
    static uint8_t names[NAMES * LEN];
    CLOSED_BY(fake_close) struct fake_server s;
    static struct outcome got = {0};
    struct wire_reply m = {.names = {NAMES, names, sizeof names}};
    memset(names, 'n', sizeof names);
    for (int i = 0; i < NAMES; i++)
        memcpy(names + i * LEN, "\0\0\0\74", 4);
    fake_open(&s, NULL);
    fake_connect(&s, true);
    assert_int_equal(clave_async_children(s.c, "/queue", NULL, outcome_cb, &got), CLAVE_OK);
    fake_expect(&s, OP_GET_CHILDREN2);
    s.piece = PIECE;
    fake_answer(&s, CLAVE_OK, &m);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_OK);
    assert_true(s.c->decoded.cap <= FEW);
    assert_true(s.c->link.in.held.cap <= FEW);
}

/* A server that refuses an identity has answered: the next connection, without it, need not
 * wait, and a client with several such identities is not slowed down by each. */
TEST(a_server_that_refuses_an_identity_is_dialled_again_at_once)
{
    CLOSED_BY(fake_close) struct fake_server s;
    static struct outcome got = {0};
    fake_open(&s, NULL);
    assert_int_equal(clave_async_add_auth(s.c, "none", "a:b", 3, outcome_cb, &got), CLAVE_OK);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_expect(&s, OP_AUTH);
    fake_answer_to(&s, XID_AUTH, OP_AUTH, CLAVE_EAUTHFAILED, NULL);
    assert_int_equal(got.err, CLAVE_EAUTHFAILED);
    fake_hang_up(&s);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_DIAL);
}

/* A node has no children: the result has names all the same, none of them. */
TEST_CONNECTED(an_empty_list_is_a_list)
{
    static struct outcome out = {0};
    struct wire_reply none = {.names = {0, NULL, 0}};
    assert_int_equal(clave_async_children(s->c, "/a", NULL, outcome_cb, &out), CLAVE_OK);
    fake_expect(s, OP_GET_CHILDREN2);
    fake_answer(s, CLAVE_OK, &none);
    assert_int_equal(out.times, 1);
    assert_int_equal(out.err, CLAVE_OK);
    assert_true(out.has_names);
    assert_int_equal(out.nnames, 0);
}
