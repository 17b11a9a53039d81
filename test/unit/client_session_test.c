/* The session: its states, the hold deadline, and servers that do not behave. */
#include "client/client_for_recipes.h"
#include "client/client_metrics.h"
#include "lib/fake_server.h"
#include "lib/unit.h"
#include "wire/opcode.h"

enum { T = FAKE_TIMEOUT, MARGIN = T / 8, RELAY = T / 4 };

/* ---- states -------------------------------------------------------------------------- */

TEST(the_order_of_states_is_curators)
{
    CLOSED_BY(fake_close) struct fake_server s;
    fake_open(&s, NULL);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_LATENT);
    struct wire_connect_request q = fake_dial(&s);
    assert_int_equal(q.session_id, 0);
    assert_int_equal(q.timeout_ms, T);
    assert_int_equal(q.last_zxid_seen, 0);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_config(&s, true);
    fake_expect_state(&s, CLAVE_STATE_CONNECTED, CLAVE_OK);
    fake_hang_up(&s);
    fake_expect_state(&s, CLAVE_STATE_SUSPENDED, CLAVE_ECONNLOSS);
    q = fake_dial(&s);
    assert_int_equal(q.session_id, FAKE_SESSION);
    assert_int_equal(q.passwd.n, WIRE_PASSWORD_LEN);
    assert_memory_equal(q.passwd.p, "0123456789abcdef", WIRE_PASSWORD_LEN);
    assert_int_equal(q.last_zxid_seen, s.zxid);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_config(&s, true);
    fake_expect_state(&s, CLAVE_STATE_RECONNECTED, CLAVE_OK);
    fake_hang_up(&s);
    fake_expect_state(&s, CLAVE_STATE_SUSPENDED, CLAVE_ECONNLOSS);
    fake_dial(&s);
    fake_answer_handshake(&s, 0, 0, false); /* the server knows it no more */
    fake_expect_state(&s, CLAVE_STATE_LOST, CLAVE_EEXPIRED);
    assert_int_equal(clave_async_client_session_id(s.c), 0);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    fake_hang_up(&s);
    q = fake_dial(&s);
    assert_int_equal(q.session_id, 0); /* a new one by itself */
    assert_int_equal(q.last_zxid_seen, 0);
    fake_answer_handshake(&s, FAKE_SESSION + 1, T, false);
    fake_expect_state(&s, CLAVE_STATE_RECONNECTED, CLAVE_OK);
    assert_true(fake_expects_no_state(&s));
}

struct warnings {
    unsigned n;
    char last[300];
};

static void count_limits(void *arg, int level, const char *text)
{
    struct warnings *w = arg;
    if (level != CLAVE_LOG_WARN || !strstr(text, "limited the session timeout"))
        return;
    w->n++;
    snprintf(w->last, sizeof w->last, "%s", text);
}

/* The server knows the last session no more, and grants another. */
static void begin_session(struct fake_server *s, int64_t session, int32_t granted_ms)
{
    fake_hang_up(s);
    fake_dial(s);
    fake_answer_handshake(s, 0, 0, false);
    fake_hang_up(s);
    fake_dial(s);
    fake_answer_handshake(s, session, granted_ms, false);
    fake_config(s, true);
}

TEST(another_timeout_than_requested_is_said_once)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct warnings w = {0, ""};
    clave_client_options o = {.session_timeout_ms = 300000, .log = count_limits, .log_arg = &w};
    fake_open(&s, &o);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, 40000, false);
    fake_config(&s, true);
    assert_int_equal(w.n, 1);
    assert_string_equal(
        w.last, "the server limited the session timeout to 40000 ms (requested 300000 ms): its "
                "maxSessionTimeout (clave serve --max-session-timeout) allows no more");
    begin_session(&s, FAKE_SESSION + 1, 40000);
    assert_int_equal(w.n, 1);
    begin_session(&s, FAKE_SESSION + 2, 400000); /* another server, with other limits */
    assert_int_equal(w.n, 2);
    assert_non_null(strstr(w.last, "minSessionTimeout (clave serve --min-session-timeout) allows"));
    begin_session(&s, FAKE_SESSION + 3, 300000);
    assert_int_equal(w.n, 2);
}

TEST_CONNECTED(another_session_than_asked_for_is_a_loss)
{
    fake_hang_up(s);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION + 5, T, false);
    fake_expect_state(s, CLAVE_STATE_CONNECTED, CLAVE_OK);
    fake_expect_state(s, CLAVE_STATE_SUSPENDED, CLAVE_ECONNLOSS);
    fake_expect_state(s, CLAVE_STATE_LOST, CLAVE_EREPLACED);
    assert_int_equal(clave_async_client_wants(s->c), CLAVE_WANT_HANGUP);
    fake_hang_up(s);
    assert_int_equal(fake_dial(s).session_id, 0);
}

TEST(a_read_only_server_is_told_of)
{
    CLOSED_BY(fake_close) struct fake_server s;
    clave_client_options o = {.read_only = true};
    fake_open(&s, &o);
    assert_true(fake_dial(&s).read_only);
    fake_answer_handshake(&s, FAKE_SESSION, T, true);
    fake_expect_state(&s, CLAVE_STATE_READ_ONLY, CLAVE_OK);
    /* It has no leader behind it: no promise. */
    assert_int_equal(clave_async_client_hold_deadline(s.c), INT64_MIN);
}

/* Without holds the session is given up when it must have ended, and not before. */
TEST_CONNECTED(lost_comes_a_timeout_after_the_last_sign_of_life)
{
    int64_t sent = s->now; /* of the newest answered request */
    s->now += 300;
    fake_hang_up(s);
    fake_advance_to(s, sent + T - 1);
    fake_expect_state(s, CLAVE_STATE_CONNECTED, CLAVE_OK);
    fake_expect_state(s, CLAVE_STATE_SUSPENDED, CLAVE_ECONNLOSS);
    assert_true(fake_expects_no_state(s));
    assert_int_equal(clave_async_client_session_id(s->c), FAKE_SESSION);
    fake_advance_to(s, sent + T);
    fake_expect_state(s, CLAVE_STATE_LOST, CLAVE_ETIMEDOUT);
    assert_int_equal(clave_async_client_session_id(s->c), 0);
}

TEST_CONNECTED(silence_ends_a_connection)
{
    int64_t quiet = s->now;
    assert_int_equal(clave_async_client_deadline(s->c), quiet + T / 3);
    fake_advance_to(s, quiet + T / 3);
    fake_expect(s, OP_PING);
    assert_int_equal(s->q.xid, XID_PING);
    fake_advance_to(s, quiet + T * 2 / 3 - 1);
    assert_true(fake_is_quiet(s)); /* one at a time */
    assert_true(clave_async_client_is_connected(s->c));
    fake_advance_to(s, quiet + T * 2 / 3);
    assert_int_equal(clave_async_client_wants(s->c), CLAVE_WANT_HANGUP);
    fake_expect_state(s, CLAVE_STATE_CONNECTED, CLAVE_OK);
    fake_expect_state(s, CLAVE_STATE_SUSPENDED, CLAVE_ETIMEDOUT);
}

TEST_CONNECTED(pings_keep_a_connection)
{
    for (int i = 0; i < 100; i++) {
        fake_advance_to(s, clave_async_client_deadline(s->c));
        fake_expect(s, OP_PING);
        s->now += 20;
        fake_answer_ping(s);
        assert_int_equal(clave_async_client_hold_deadline(s->c), s->now - 20 + T - MARGIN);
    }
    assert_int_equal(clave__client_requests_sent(s->c, OP_PING), 100);
    assert_true(clave_async_client_is_connected(s->c));
}

TEST(opcodes_are_counted_apart)
{
    const char *at[CLIENT_OPCODES] = {NULL};
    for (int32_t op = 0; op < 1000; op++) {
        if (!clave__opcode(op)->body)
            continue;
        assert_true(op <= OP_WHO_AM_I); /* the last one that the metrics show */
        assert_null(at[clave__client_opcode_place(op)]);
        at[clave__client_opcode_place(op)] = clave__opcode(op)->name;
    }
}

/* ---- holds --------------------------------------------------------------------------- */

struct holder {
    struct hold hold;
    unsigned missing, settled;
};

static void on_missing(struct hold *h)
{
    LIST_ENTRY(h, struct holder, hold)->missing++;
}

static void on_settled(struct hold *h)
{
    LIST_ENTRY(h, struct holder, hold)->settled++;
}

static void hold(struct fake_server *s, struct holder *h, const char *path)
{
    *h =
        (struct holder){.hold = {.path = path, .on_missing = on_missing, .on_settled = on_settled}};
    list_init(&h->hold.link);
    clave__client_hold(s->c, &h->hold);
}

/* An ensemble: pings prove nothing, a heartbeat is a multi that passes the leader, and it
 * proves what was answered a relay interval before. */
TEST(a_holder_in_an_ensemble_sends_confirmed_heartbeats)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct holder h;
    fake_open(&s, NULL);
    int64_t start = s.now;
    fake_connect(&s, false);
    assert_int_equal(clave_async_client_hold_deadline(s.c), start + T - MARGIN);
    hold(&s, &h, "/l/n");
    int64_t last_answer = start;
    for (int i = 0; i < 20; i++) {
        int64_t due = clave_async_client_deadline(s.c);
        assert_in_range(due, s.now + 1, s.now + RELAY);
        fake_advance_to(&s, due);
        const struct wire_request *q = fake_expect(&s, OP_MULTI);
        assert_int_equal(q->body.multi.count, 1);
        int64_t before = clave_async_client_hold_deadline(s.c);
        s.now += 10;
        fake_answer_checks(&s, CLAVE_OK);
        if (i > 0 && s.now - 10 >= last_answer + RELAY)
            assert_true(clave_async_client_hold_deadline(s.c) > before);
        /* It never promises more than the rule. */
        assert_true(clave_async_client_hold_deadline(s.c) <= s.now - RELAY + T - MARGIN);
        last_answer = s.now;
    }
    assert_true(clave_async_client_hold_deadline(s.c) > s.now + T / 4);
    assert_int_equal(clave__client_requests_sent(s.c, OP_PING), 0);
    assert_int_equal(h.settled, 1);
    assert_int_equal(h.missing, 0);
    clave__client_unhold(s.c, &h.hold);
}

/* A client that was idle for long needs nothing but its create to be sure of a grant. */
TEST(a_write_confirms_what_was_answered_before)
{
    static const clave_err committed[] = {CLAVE_OK, CLAVE_ENODEEXISTS, CLAVE_ENONODE};
    static const clave_err local[] = {CLAVE_ETHROTTLED, CLAVE_ENOTREADONLY, CLAVE_EUNIMPLEMENTED,
                                      CLAVE_ENOAUTH, CLAVE_EINVALIDACL};
    for (size_t i = 0; i < 8; i++) {
        CLOSED_BY(fake_close) struct fake_server s;
        struct outcome got = {0};
        clave_err err = i < 3 ? committed[i] : local[i - 3];
        struct wire_reply m = {.path = clave__jbytes("/x")};
        fake_open(&s, NULL);
        fake_connect(&s, false);
        for (int beats = 0; beats < 15; beats++) {
            fake_advance_to(&s, clave_async_client_deadline(s.c));
            fake_expect(&s, OP_PING);
            fake_answer_ping(&s);
        }
        s.now += 100;
        clave_async_client_tick(s.c, s.now);
        assert_true(clave_async_client_hold_deadline(s.c) < s.now);
        assert_int_equal(clave_async_create(s.c, "/x", NULL, 0, NULL, outcome_cb, &got), CLAVE_OK);
        fake_expect(&s, OP_CREATE2);
        fake_answer(&s, err, &m);
        assert_int_equal(got.err, err);
        assert_int_equal(clave_async_client_hold_deadline(s.c) >= s.now + T / 8, i < 3);
    }
}

/* The cut-off member of the design: it answers reads and pings, and never a write. */
TEST(a_member_without_a_leader_is_left_and_the_deadline_stands)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct holder h;
    clave_client_options o = {.hosts = "a:1,b:2"};
    fake_open(&s, &o);
    int64_t start = s.now;
    fake_connect(&s, false);
    hold(&s, &h, "/l/n");
    fake_advance_to(&s, clave_async_client_deadline(s.c));
    fake_expect(&s, OP_MULTI);
    int64_t asked = s.now;
    /* Reads are answered all the time: no promise grows from them. */
    struct outcome got = {0};
    for (int i = 0; i < 5; i++) {
        fake_advance_to(&s, s.now + 100);
        assert_int_equal(clave_async_exists(s.c, "/x", NULL, outcome_cb, &got), CLAVE_OK);
        fake_expect(&s, OP_EXISTS);
        assert_int_equal(clave_async_client_hold_deadline(s.c), start + T - MARGIN);
    }
    fake_advance_to(&s, asked + T / 6);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    assert_non_null(strstr(clave_async_client_errmsg(s.c), "leader"));
    fake_hang_up(&s);
    assert_string_equal(clave_async_client_target(s.c).host, "b");
    assert_true(s.now < start + T - MARGIN);
    fake_advance_to(&s, start + T - MARGIN - 1);
    assert_int_equal(clave_async_client_session_id(s.c), FAKE_SESSION);
    fake_advance_to(&s, start + T - MARGIN);
    assert_int_equal(clave_async_client_session_id(s.c), 0);
    assert_int_equal(s.states[s.nstates - 1], CLAVE_STATE_LOST);
    clave__client_unhold(s.c, &h.hold);
}

/* Any leader answers a handshake, one that was deposed too: so something is committed at once. */
TEST(a_new_connection_counts_when_it_has_committed_something)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct holder h;
    fake_open(&s, NULL);
    int64_t start = s.now;
    fake_connect(&s, false);
    hold(&s, &h, "/l/n");
    s.now += T / 2;
    fake_hang_up(&s);
    fake_dial(&s);
    int64_t sent = s.now;
    s.now += 30;
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    assert_int_equal(clave_async_client_hold_deadline(s.c), start + T - MARGIN);
    fake_expect(&s, OP_MULTI);
    fake_answer_checks(&s, CLAVE_OK);
    assert_int_equal(clave_async_client_hold_deadline(s.c), sent + T - MARGIN);
    clave__client_unhold(s.c, &h.hold);
}

TEST_CONNECTED(a_new_connection_to_a_standalone_server_counts_at_once)
{
    struct holder h;
    hold(s, &h, "/l/n");
    s->now += T / 2;
    fake_hang_up(s);
    fake_dial(s);
    s->now += 30;
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    fake_config(s, true);
    assert_int_equal(clave_async_client_hold_deadline(s->c), s->now + T - MARGIN);
    assert_true(fake_is_quiet(s));
    clave__client_unhold(s->c, &h.hold);
}

/* A machine that slept: the loss is reported before the bytes that came meanwhile are read. */
TEST_CONNECTED(what_comes_in_late_is_no_sign_of_life)
{
    struct holder h;
    struct outcome got = {0};
    hold(s, &h, "/l/n");
    assert_int_equal(clave_async_exists(s->c, "/x", NULL, outcome_cb, &got), CLAVE_OK);
    fake_expect(s, OP_EXISTS);
    s->now += T - MARGIN;
    fake_answer(s, CLAVE_ENONODE, NULL);
    fake_expect_state(s, CLAVE_STATE_CONNECTED, CLAVE_OK);
    fake_expect_state(s, CLAVE_STATE_SUSPENDED, CLAVE_ETIMEDOUT);
    fake_expect_state(s, CLAVE_STATE_LOST, CLAVE_ETIMEDOUT);
    assert_int_equal(got.times, 1);
    assert_int_equal(clave_err_classify(got.err), CLAVE_CLASS_RETRY);
    clave__client_unhold(s->c, &h.hold);
}

TEST(a_heartbeat_finds_a_node_that_has_gone)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct holder a, b;
    fake_open(&s, NULL);
    fake_connect(&s, false);
    hold(&s, &a, "/l/a");
    hold(&s, &b, "/l/b");
    fake_advance_to(&s, clave_async_client_deadline(s.c));
    fake_expect(&s, OP_MULTI);
    assert_int_equal(s.q.body.multi.count, 2);
    fake_answer_checks(&s, CLAVE_ENONODE); /* of the last */
    assert_int_equal(a.missing, 0);
    assert_int_equal(b.missing, 1);
    clave__client_unhold(s.c, &a.hold);
    clave__client_unhold(s.c, &b.hold);
}

TEST(a_hold_that_ends_during_a_heartbeat_is_told_nothing)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct holder h;
    fake_open(&s, NULL);
    fake_connect(&s, false);
    hold(&s, &h, "/l/a");
    fake_advance_to(&s, clave_async_client_deadline(s.c));
    fake_expect(&s, OP_MULTI);
    clave__client_unhold(s.c, &h.hold);
    fake_answer_checks(&s, CLAVE_ENONODE);
    assert_int_equal(h.missing, 0);
}

/* ---- the end ------------------------------------------------------------------------- */

TEST(a_policy_that_has_had_enough_closes_the_client)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct outcome got = {0};
    clave_client_options o = {
        .hosts = "a:1,b:2", .reconnect = {.kind = CLAVE_RETRY_N_TIMES, .base_ms = 40, .times = 1}};
    fake_open(&s, &o);
    assert_int_equal(clave_async_get(s.c, "/x", NULL, outcome_cb, &got), CLAVE_OK);
    fake_hang_up(&s);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_DIAL); /* b, at once */
    fake_hang_up(&s);
    assert_int_equal(clave_async_client_wants(s.c), 0);
    assert_int_equal(clave_async_client_deadline(s.c), s.now + 40);
    fake_advance_to(&s, s.now + 40);
    fake_hang_up(&s);
    fake_hang_up(&s);
    fake_expect_state(&s, CLAVE_STATE_CLOSED, CLAVE_EUNREACHABLE);
    assert_int_equal(got.err, CLAVE_ECLOSED);
    assert_non_null(strstr(clave_async_client_errmsg(s.c), "b:2"));
}

/* Dials that nobody answers, until the session is lost: none takes more than a quarter of the time
 * it had left, so that one of them begins soon after the network is back. */
TEST(a_dial_leaves_most_of_what_a_session_has_left)
{
    CLOSED_BY(fake_close) struct fake_server s;
    int dials = 0;
    fake_open(&s, &(clave_client_options){.hosts = "a:1"});
    fake_connect(&s, true);
    int64_t lost = s.now + T;
    fake_hang_up(&s);
    while (clave_async_client_state(s.c) != CLAVE_STATE_LOST) {
        if (clave_async_client_wants(s.c) & CLAVE_WANT_DIAL) {
            int64_t quarter = (lost - s.now) / 4;
            int64_t until = clave_async_client_deadline(s.c);
            assert_true(until <= s.now + (quarter > 250 ? quarter : 250));
            dials++;
        }
        fake_advance_to(&s, clave_async_client_deadline(s.c));
        if (clave_async_client_wants(s.c) & CLAVE_WANT_HANGUP)
            fake_hang_up(&s);
    }
    assert_in_range(dials, 6, 30);
}

/* A server that shakes hands with thousands of clients is not left, only to be asked again from the
 * end of its queue, if there is no other; but there is time for one more attempt. */
TEST(a_client_waits_for_its_turn_to_shake_hands)
{
    struct fake_server s;
    fake_open(&s, &(clave_client_options){.hosts = "tls:a:1"});
    clave_async_client_securing(s.c, s.now); /* no session yet: nothing to lose */
    assert_int_equal(clave_async_client_deadline(s.c), s.now + T - T / 3);
    fake_connect(&s, true);
    int64_t lost = s.now + T;
    fake_hang_up(&s);
    assert_true(clave_async_client_deadline(s.c) <= s.now + T / 4);
    s.now += 20;
    clave_async_client_securing(s.c, s.now);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_DIAL);
    assert_int_equal(clave_async_client_deadline(s.c), lost - T / 3);
    fake_advance_to(&s, lost - T / 3);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    assert_non_null(strstr(clave_async_client_errmsg(s.c), "in the TLS handshake"));
    fake_hang_up(&s);
    fake_advance_to(&s, clave_async_client_deadline(s.c));
    clave_async_client_securing(s.c, s.now);
    assert_int_equal(clave_async_client_deadline(s.c), lost);
    fake_close(&s);

    fake_open(&s, &(clave_client_options){.hosts = "tls:a:1,b:1"}); /* the other may be quicker */
    clave_async_client_securing(s.c, s.now);
    assert_int_equal(clave_async_client_deadline(s.c), s.now + T / 3);
    fake_close(&s);
}

/* Between two dials of the one server, which has gone: the longest pause, and the longest in
 * quarters of what the session had left. */
struct pauses {
    int64_t longest, quarters;
};

static struct pauses until_lost(struct fake_server *s, int32_t timeout_ms)
{
    struct pauses p = {0};
    int64_t lost = s->now + timeout_ms;
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, timeout_ms, false);
    fake_config(s, true);
    while (clave_async_client_state(s->c) != CLAVE_STATE_LOST) {
        int64_t from = s->now, left = lost - from;
        while (clave_async_client_is_connected(s->c) ||
               clave_async_client_wants(s->c) == CLAVE_WANT_DIAL)
            fake_hang_up(s);
        fake_advance_to(s, clave_async_client_deadline(s->c));
        int64_t pause = s->now - from;
        p.longest = pause > p.longest ? pause : p.longest;
        if (pause > 50 && pause < left && 4 * pause > left * p.quarters)
            p.quarters = (4 * pause + left - 1) / left;
    }
    return p;
}

/* A server that is back for the last moments of a session is found in time; unless the user has
 * said how often it is to be tried. */
TEST(a_pause_leaves_most_of_what_a_session_has_left)
{
    struct fake_server s;
    fake_open(&s, &(clave_client_options){.hosts = "a"});
    struct pauses p = until_lost(&s, 4000);
    assert_int_equal(p.quarters, 1);
    assert_in_range(p.longest, 200, 1000);
    fake_close(&s);
    fake_open(&s, &(clave_client_options){
                      .hosts = "a", .reconnect = {.kind = CLAVE_RETRY_FOREVER, .base_ms = 3000}});
    assert_int_equal(until_lost(&s, 4000).longest, 3000);
    fake_close(&s);
}

/* ---- servers that are none ----------------------------------------------------------- */

TEST(what_is_no_zookeeper_is_named_so)
{
    static const char *const greetings[] = {"HTTP/1.1 400 Bad Request\r\n\r\n",
                                            "220 mail ESMTP\r\n", "\0\0\0\5hello",
                                            "\xff\xff\xff\xff....", "\0\0\0\0"};
    static const size_t lengths[] = {28, 16, 9, 8, 4};
    for (size_t i = 0; i < 5; i++) {
        CLOSED_BY(fake_close) struct fake_server s;
        fake_open(&s, NULL);
        fake_dial(&s);
        fake_feed(&s, greetings[i], lengths[i]);
        assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
        assert_non_null(strstr(clave_async_client_errmsg(s.c), "script:1"));
        assert_non_null(strstr(clave_async_client_errmsg(s.c), "ZooKeeper"));
        assert_true(fake_expects_no_state(&s));
    }
}

TEST(a_server_that_does_not_answer_is_left)
{
    CLOSED_BY(fake_close) struct fake_server s;
    fake_open(&s, NULL);
    fake_dial(&s);
    fake_advance_to(&s, s.now + T);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    assert_non_null(strstr(clave_async_client_errmsg(s.c), "does not answer"));
}

TEST(options_are_checked)
{
    clave_async_client *c;
    clave_client_options o = {.size = sizeof o, .hosts = "h", .seed = 7};
    o.session_timeout_ms = -1;
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_EINVAL);
    assert_null(c);
    o.session_timeout_ms = 1000;
    o.margin_ms = 1000;
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_EINVAL);
    o.margin_ms = 0;
    o.hosts = "h:";
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_EHOST);
    assert_non_null(clave_async_client_host_fault("h:"));
    assert_null(clave_async_client_host_fault("h"));
}

/* ---- other hosts ----------------------------------------------------------------------- */

static bool dials(struct fake_server *s, const char *host)
{
    bool wants = clave_async_client_wants(s->c) == CLAVE_WANT_DIAL;
    return wants && strcmp(clave_async_client_target(s->c).host, host) == 0;
}

TEST(another_list_of_hosts_moves_the_session)
{
    CLOSED_BY(fake_close) struct fake_server s;
    fake_open(&s, &(clave_client_options){.hosts = "a,b/x", .keep_order = true});
    assert_true(dials(&s, "a"));
    fake_connect(&s, true);
    fake_expect_state(&s, CLAVE_STATE_CONNECTED, CLAVE_OK);
    /* Its server is still there: nothing happens. */
    assert_int_equal(clave_async_client_set_hosts(s.c, "c,a:2181/x", s.now), CLAVE_OK);
    assert_true(clave_async_client_is_connected(s.c));
    /* It is not: on to the others, with the session. */
    assert_int_equal(clave_async_client_set_hosts(s.c, "d,e/x", s.now), CLAVE_OK);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    assert_true(fake_expects_no_state(&s)); /* never inside the call */
    fake_advance_to(&s, s.now);
    fake_expect_state(&s, CLAVE_STATE_SUSPENDED, CLAVE_ECONNLOSS);
    fake_hang_up(&s);
    assert_true(dials(&s, "e") || dials(&s, "d"));
    struct wire_connect_request q = fake_dial(&s);
    assert_true(q.session_id == FAKE_SESSION);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_config(&s, true);
    fake_expect_state(&s, CLAVE_STATE_RECONNECTED, CLAVE_OK);
    /* What cannot be changed. */
    assert_int_equal(clave_async_client_set_hosts(s.c, "d,e", s.now), CLAVE_EINVAL);
    assert_int_equal(clave_async_client_set_hosts(s.c, "tls:d/x", s.now), CLAVE_EINVAL);
    assert_non_null(strstr(clave_async_client_errmsg(s.c), "'tls:d/x' has another chroot"));
    assert_int_equal(clave_async_client_set_hosts(s.c, "d/x,e/x", s.now), CLAVE_EHOST);
    assert_non_null(
        strstr(clave_async_client_errmsg(s.c), "'d/x,e/x': there can be only one chroot"));
    assert_true(clave_async_client_is_connected(s.c));
}

/* In the pause after a round of failures, and in the middle of a dial. */
TEST(another_list_of_hosts_is_tried_at_once)
{
    CLOSED_BY(fake_close) struct fake_server s;
    fake_open(&s, &(clave_client_options){.hosts = "a"});
    clave_async_client_disconnected(s.c, s.now);
    assert_int_equal(clave_async_client_wants(s.c), 0);
    assert_int_equal(clave_async_client_set_hosts(s.c, "b", s.now), CLAVE_OK);
    fake_advance_to(&s, s.now);
    assert_true(dials(&s, "b"));
    assert_int_equal(clave_async_client_set_hosts(s.c, "c", s.now), CLAVE_OK);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    clave_async_client_disconnected(s.c, s.now);
    fake_advance_to(&s, clave_async_client_deadline(s.c) < CLAVE_NEVER
                            ? clave_async_client_deadline(s.c)
                            : s.now);
    assert_true(dials(&s, "c"));
}

/* In an ensemble a proof is a relay interval old when it comes. */
TEST(options_that_leave_no_time_to_hold_are_refused)
{
    clave_async_client *c;
    clave_client_options o = {.size = sizeof o, .hosts = "h", .seed = 7, .margin_ms = 6000};
    o.relay_interval_ms = 4000;
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_EINVAL);
    o.relay_interval_ms = 3000;
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_OK);
    clave_async_client_free(c);
}

/* 0 means "no session", also to us: it could not be lost, nor owned by. */
TEST(a_session_without_a_number_is_none)
{
    CLOSED_BY(fake_close) struct fake_server s;
    fake_open(&s, NULL);
    fake_dial(&s);
    fake_answer_handshake(&s, 0, T, false);
    assert_true(fake_expects_no_state(&s));
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
}

/* A server whose bytes make no sense is asked again after a pause, not at once for ever. */
TEST_CONNECTED(a_server_that_answers_nonsense_is_dialled_after_a_pause)
{
    assert_int_equal(clave_async_get(s->c, "/x", NULL, NULL, NULL), CLAVE_OK);
    fake_expect(s, OP_GET_DATA);
    fake_answer(s, CLAVE_OK, NULL); /* without a body */
    assert_int_equal(clave_async_client_wants(s->c), CLAVE_WANT_HANGUP);
    fake_hang_up(s);
    assert_int_equal(clave_async_client_wants(s->c), 0);
    assert_true(clave_async_client_deadline(s->c) > s->now);
}
