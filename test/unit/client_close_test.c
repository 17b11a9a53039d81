/* The end of a client: what close still waits for, when it gives up, and what is answered. */
#include "lib/fake_server.h"
#include "lib/unit.h"

enum { T = FAKE_TIMEOUT };

TEST_CONNECTED(close_lets_requests_go_first)
{
    struct outcome got = {0};
    assert_int_equal(clave_async_set(s->c, "/x", "1", 1, -1, outcome_cb, &got), CLAVE_OK);
    clave_async_client_close(s->c, s->now);
    assert_int_equal(clave_async_set(s->c, "/x", "1", 1, -1, NULL, NULL), CLAVE_ECLOSED);
    fake_expect(s, OP_SET_DATA);
    int32_t xid = s->q.xid;
    fake_expect(s, OP_CLOSE_SESSION);
    int32_t close_xid = s->q.xid;
    struct wire_reply m = {0};
    fake_answer_to(s, xid, OP_SET_DATA, CLAVE_OK, &m);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_OK);
    assert_int_not_equal(clave_async_client_state(s->c), CLAVE_STATE_CLOSED);
    fake_answer_to(s, close_xid, OP_CLOSE_SESSION, CLAVE_OK, NULL);
    fake_expect_state(s, CLAVE_STATE_CONNECTED, CLAVE_OK);
    fake_expect_state(s, CLAVE_STATE_CLOSED, CLAVE_OK);
    assert_int_equal(clave_async_client_wants(s->c), CLAVE_WANT_HANGUP);
    fake_hang_up(s);
    assert_int_equal(clave_async_client_wants(s->c), 0);
    assert_true(clave_async_client_deadline(s->c) == CLAVE_NEVER);
}

TEST(close_tries_until_the_session_must_be_over)
{
    struct fake_server s;
    fake_open(&s, NULL);
    fake_connect(&s, true);
    int64_t sent = s.now;
    fake_hang_up(&s);
    clave_async_client_close(s.c, s.now);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_DIAL);
    /* Once it comes through, but the connection goes before the answer. */
    assert_int_equal(fake_dial(&s).session_id, FAKE_SESSION);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_expect(&s, OP_CLOSE_SESSION);
    fake_hang_up(&s);
    assert_int_not_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    fake_advance_to(&s, sent + T);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    fake_close(&s);

    fake_open(&s, NULL); /* and one that finds its session gone has what it wanted */
    fake_connect(&s, true);
    fake_hang_up(&s);
    clave_async_client_close(s.c, s.now);
    fake_dial(&s);
    fake_answer_handshake(&s, 0, 0, false);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    fake_close(&s);
}

TEST(close_before_there_was_a_session)
{
    struct fake_server s;
    fake_open(&s, NULL);
    clave_async_client_close(s.c, s.now);
    fake_expect_state(&s, CLAVE_STATE_CLOSED, CLAVE_OK);
    fake_close(&s);

    fake_open(&s, NULL); /* the handshake is out: there may be one already */
    fake_dial(&s);
    clave_async_client_close(s.c, s.now);
    assert_true(fake_expects_no_state(&s));
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_expect(&s, OP_CLOSE_SESSION);
    fake_answer(&s, CLAVE_OK, NULL);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    fake_close(&s);
}

/* What a guardian does for the dead: attaches to the session it was told, and ends it. */
TEST(a_session_of_another_client_can_be_closed)
{
    CLOSED_BY(fake_close) struct fake_server s;
    clave_client_options o = {.resume_session_id = 0x99};
    memcpy(o.resume_passwd, "0123456789abcdef", 16);
    fake_open(&s, &o);
    clave_async_client_close(s.c, s.now);
    struct wire_connect_request q = fake_dial(&s);
    assert_int_equal(q.session_id, 0x99);
    assert_memory_equal(q.passwd.p, "0123456789abcdef", 16);
    fake_answer_handshake(&s, 0x99, T, false);
    fake_expect(&s, OP_CLOSE_SESSION);
    fake_answer(&s, CLAVE_OK, NULL);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
}

TEST_CONNECTED(abandon_leaves_the_session_to_the_server)
{
    struct outcome got = {0};
    assert_int_equal(clave_async_get(s->c, "/x", NULL, outcome_cb, &got), CLAVE_OK);
    clave_async_client_abandon(s->c, s->now);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_ECLOSED);
    assert_int_equal(clave_async_client_state(s->c), CLAVE_STATE_CLOSED);
    assert_int_equal(clave_async_client_wants(s->c), CLAVE_WANT_HANGUP);
    assert_true(fake_is_quiet(s));
}

/* Closed while the handshake is out, and the connection goes: there may be a session whose
 * number nobody knows. Dialling on would make another one, only to end it. */
TEST(a_client_closed_before_it_had_a_session_asks_for_none)
{
    struct fake_server s;
    fake_open(&s, NULL);
    fake_dial(&s);
    clave_async_client_close(s.c, s.now);
    fake_hang_up(&s);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    assert_int_equal(clave_async_client_wants(s.c), 0);
    fake_close(&s);

    fake_open(&s, NULL); /* or it does not answer */
    fake_dial(&s);
    clave_async_client_close(s.c, s.now);
    fake_advance_to(&s, clave_async_client_deadline(s.c));
    fake_hang_up(&s);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    fake_close(&s);

    fake_open(&s, NULL); /* or says no */
    fake_dial(&s);
    clave_async_client_close(s.c, s.now);
    fake_answer_handshake(&s, 0, 0, false);
    fake_hang_up(&s);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    fake_close(&s);
}

/* Requests that were submitted before the close go first, one that waits to be sent again
 * among them. */
TEST(close_waits_for_a_read_that_is_sent_again)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct outcome got = {0};
    clave_client_options o = {.reads = {.kind = CLAVE_RETRY_N_TIMES, .base_ms = 500, .times = 3}};
    fake_open(&s, &o);
    fake_connect(&s, true);
    assert_int_equal(clave_async_exists(s.c, "/x", NULL, outcome_cb, &got), CLAVE_OK);
    fake_expect(&s, OP_EXISTS);
    fake_hang_up(&s);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_config(&s, true);
    clave_async_client_close(s.c, s.now);
    assert_true(fake_is_quiet(&s));
    fake_advance_to(&s, s.now + 500);
    fake_expect(&s, OP_EXISTS);
    fake_answer(&s, CLAVE_ENONODE, NULL);
    assert_int_equal(got.err, CLAVE_ENONODE);
    fake_expect(&s, OP_CLOSE_SESSION);
    fake_answer(&s, CLAVE_OK, NULL);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
}

/* Asked for before there was a session, and not done when the client closes and its session is
 * refused: it is told once. */
TEST(a_guaranteed_delete_is_told_when_the_client_closes)
{
    struct fake_server s;
    struct outcome out = {0};
    fake_open(&s, NULL);
    assert_int_equal(clave_async_delete_guaranteed(s.c, "/l", outcome_cb, &out), CLAVE_OK);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, FAKE_TIMEOUT, false);
    clave_async_client_close(s.c, s.now);
    fake_hang_up(&s); /* the request has not left: it will be sent again */
    fake_advance_to(&s, s.now + 1000);
    fake_dial(&s);
    fake_answer_handshake(&s, 0, 0, false);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    assert_int_equal(out.times, 1);
    assert_int_equal(out.err, CLAVE_ECLOSED);
    fake_close(&s);
    assert_int_equal(out.times, 1);
}
