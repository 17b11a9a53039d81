/* What a client with holds proves to the leader by its heartbeats, and what it may promise until
 * then. The arithmetic alone is in client_hold_deadline_test. */
#include "client/client_internal.h"
#include "lib/fake_server.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { T = FAKE_TIMEOUT, TIMEOUT = 4000, STEP = 10 };

static void ignore(struct hold *h)
{
    (void)h;
}

static void hold(struct fake_server *s, struct hold *h, const char *path)
{
    *h = (struct hold){.path = path, .on_missing = ignore, .on_settled = ignore};
    clave__client_hold(s->c, h);
}

/* The heartbeat was made and its bytes never left. It goes out on the next connection, which
 * was left at once: its time was counted from the first attempt. */
TEST(a_heartbeat_that_never_left_has_its_time_on_the_next_connection)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct hold h;
    fake_open(&s, NULL);
    fake_connect(&s, false);
    hold(&s, &h, "/l/a");
    fake_advance_to(&s, clave_async_client_deadline(s.c));
    assert_true(clave_async_client_wants(s.c) & CLAVE_WANT_WRITE);
    fake_hang_up(&s); /* and it is not taken */
    s.now += T / 6;
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, false);
    fake_advance_to(&s, s.now);
    assert_true(clave_async_client_is_connected(s.c));
    assert_true(clave_async_client_deadline(s.c) > s.now);
    fake_expect(&s, OP_MULTI);
    clave__client_unhold(s.c, &h);
}

/* The leader still counts by the timeout that it agreed on. */
TEST(a_read_only_server_cannot_prolong_a_hold)
{
    CLOSED_BY(fake_close) struct fake_server s;
    clave_client_options o = {.read_only = true, .margin_ms = 1000};
    fake_open(&s, &o);
    fake_connect(&s, false);
    int64_t deadline = clave_async_client_hold_deadline(s.c);
    fake_hang_up(&s);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, 2 * T, true);
    fake_config(&s, false);
    assert_int_equal(clave_async_client_hold_deadline(s.c), deadline);
    fake_hang_up(&s);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T / 2, true);
    fake_config(&s, false);
    assert_true(clave_async_client_hold_deadline(s.c) <= deadline);
}

/* Members may differ in the longest timeout that they agree to, while they are configured anew for
 * example. The one that answers a handshake may have been deposed: the leader that counts does not
 * know of a longer timeout before something is committed on that connection. */
TEST(a_longer_timeout_counts_once_something_is_committed)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct hold h;
    clave_client_options o = {.margin_ms = 1000};
    fake_open(&s, &o);
    fake_connect(&s, false);
    hold(&s, &h, "/l/a");
    int64_t deadline = clave_async_client_hold_deadline(s.c);
    fake_hang_up(&s);
    fake_advance_to(&s, s.now + 10);
    int64_t sent = s.now;
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, 2 * T, false);
    assert_int_equal(clave_async_client_hold_deadline(s.c), deadline);
    fake_expect(&s, OP_MULTI);
    fake_answer(&s, CLAVE_ENONODE, NULL);
    assert_int_equal(clave_async_client_hold_deadline(s.c), sent + 2 * T - 1000);
    clave__client_unhold(s.c, &h);
}

/* A read-only server answers at once and confirms nothing: another one may. */
TEST(a_holder_does_not_stay_with_a_read_only_server)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct hold h;
    clave_client_options o = {.hosts = "a:1,b:2", .read_only = true};
    fake_open(&s, &o);
    fake_connect(&s, false);
    hold(&s, &h, "/l/a");
    fake_hang_up(&s);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, T, true);
    fake_config(&s, false);
    fake_advance_to(&s, clave_async_client_deadline(s.c));
    fake_expect(&s, OP_MULTI);
    fake_answer(&s, CLAVE_ENOTREADONLY, NULL);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    fake_hang_up(&s);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_DIAL);
    assert_string_equal(clave_async_client_target(s.c).host, "a");
    clave__client_unhold(s.c, &h);
}

struct seen {
    struct fake_server *s;
    unsigned times;
    clave_err err;
    clave_state state;
    int64_t deadline;
};

static void see(clave_async_client *c, const clave_result *res, void *arg)
{
    struct seen *g = arg;
    g->times++;
    g->err = res->err;
    g->state = clave_async_client_state(c);
    g->deadline = clave_async_client_hold_deadline(c);
}

/* An answer that says "expired" is none of those that keep a session. */
TEST_CONNECTED(an_expired_session_promises_nothing_to_its_last_callback)
{
    struct seen g = {0}, next = {0};
    assert_int_equal(clave_async_delete(s->c, "/a", -1, see, &g), CLAVE_OK);
    assert_int_equal(clave_async_delete(s->c, "/b", -1, see, &next), CLAVE_OK);
    fake_expect(s, OP_DELETE);
    fake_answer(s, CLAVE_EEXPIRED, NULL);
    assert_int_equal(g.times, 1);
    assert_int_equal(g.err, CLAVE_EEXPIRED);
    assert_int_equal(g.state, CLAVE_STATE_LOST);
    assert_true(g.deadline == INT64_MIN);
    assert_int_equal(next.times, 1);
    assert_int_equal(next.err, CLAVE_ECONNLOSS);
}

/* From closeSession on the server may end the session at any moment, also when the connection
 * goes before the answer. */
TEST_CONNECTED(nothing_is_promised_after_close)
{
    assert_int_equal(clave_async_delete(s->c, "/a", -1, NULL, NULL), CLAVE_OK);
    assert_true(clave_async_client_hold_deadline(s->c) > s->now);
    clave_async_client_close(s->c, s->now);
    assert_true(clave_async_client_hold_deadline(s->c) == INT64_MIN);
    fake_expect(s, OP_DELETE);
    fake_expect(s, OP_CLOSE_SESSION);
    fake_hang_up(s);
    fake_dial(s);
    assert_true(clave_async_client_hold_deadline(s->c) == INT64_MIN);
}

/* Cut off from its quorum a leader re-attached a holder, as Apache's does for up to syncLimit
 * ticks (measured: 11.4 s), and the holder counted from there, while the next leader had long
 * been counting: two held. What it answers may be believed, but proves nothing. (Seed 1670,
 * docs/evidence/simulation.md.) */
TEST(a_deposed_leader_that_re_attaches_prolongs_no_hold)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct hold h;
    fake_open(&s, NULL);
    fake_connect(&s, false);
    hold(&s, &h, "/l/n");
    int64_t deadline = clave_async_client_hold_deadline(s.c);
    fake_hang_up(&s);
    s.now += FAKE_TIMEOUT / 2;
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, FAKE_TIMEOUT, false);
    fake_expect(&s, OP_MULTI); /* and no answer to it */
    assert_int_equal(clave_async_client_hold_deadline(s.c), deadline);
    fake_advance_to(&s, deadline);
    assert_int_equal(s.states[s.nstates - 1], CLAVE_STATE_LOST);
    clave__client_unhold(s.c, &h);
}

static void see_answered(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    assert_int_equal(res->err, CLAVE_OK);
    ++*(int *)arg;
}

/* A member answers reads whatever has become of its leader. A write confirms the answers that came
 * a relay interval before it was sent; a read at the same time confirms nothing. */
TEST(a_read_prolongs_no_hold)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct hold h;
    const struct wire_reply reply = {.stat = {.version = 1}};
    const clave_client_options o = {.relay_interval_ms = 100};
    int answered = 0;
    fake_open(&s, &o);
    fake_connect(&s, false);
    hold(&s, &h, "/l/n");
    int64_t deadline = clave_async_client_hold_deadline(s.c);
    for (int i = 0; i < 2; i++) {
        fake_advance_to(&s, s.now + o.relay_interval_ms);
        assert_int_equal(clave_async_exists(s.c, "/data", NULL, see_answered, &answered), CLAVE_OK);
        fake_expect(&s, OP_EXISTS);
        fake_answer(&s, CLAVE_OK, &reply);
    }
    assert_int_equal(answered, 2);
    assert_int_equal(clave_async_client_hold_deadline(s.c), deadline);
    assert_int_equal(clave_async_set(s.c, "/data", "", 0, -1, see_answered, &answered), CLAVE_OK);
    fake_expect(&s, OP_SET_DATA);
    fake_answer(&s, CLAVE_OK, &reply);
    assert_int_equal(answered, 3);
    assert_true(clave_async_client_hold_deadline(s.c) > deadline);
    clave__client_unhold(s.c, &h);
}

/* A lock was granted by its predecessor's Deleted event, which carries no zxid before ZooKeeper
 * 3.9. The holder moved to a member that lagged behind that event and read what the one before
 * had long written over. Now nothing is read there before a write has been committed. (Seed
 * 988, docs/evidence/simulation.md.) */
TEST(a_holder_reads_nothing_at_another_member_before_a_write)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct outcome got = {0};
    struct hold h;
    fake_open(&s, NULL);
    fake_connect(&s, false);
    hold(&s, &h, "/l/n");
    fake_hang_up(&s);
    assert_int_equal(clave_async_exists(s.c, "/data", NULL, outcome_cb, &got), CLAVE_OK);
    fake_dial(&s);
    fake_answer_handshake(&s, FAKE_SESSION, FAKE_TIMEOUT, false);
    fake_expect(&s, OP_MULTI);
    fake_expect(&s, OP_EXISTS);
    fake_expect(&s, OP_GET_DATA); /* which kind of server it is */
    clave__client_unhold(s.c, &h);
}

/* A leader that is cut off from its followers does not know for ten
 * seconds that it no longer is one. It commits nothing, but by itself it answers reads, and the
 * handshake of a session it knows, as often as a client comes back. The client took that for a
 * proof: it held for three session timeouts, while the new leader was about to expire it. (Found by
 * make real-cutoff.) */
TEST(a_handshake_with_a_deposed_leader_proves_nothing)
{
    struct mutex_owner a;
    struct memnet *p =
        memnet_new(&(struct memnet_options){.clients = 1, .timeout_ms = TIMEOUT, .ensemble = true});
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    assert_true(owner_holds(&a));
    memnet_advance(p, 2 * TIMEOUT);
    assert_true(owner_holds(&a));
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    int64_t last = p->now + TIMEOUT; /* no proof is newer than this, and none will come */
    while (p->now < last + TIMEOUT) {
        memnet_advance(p, STEP);
        assert_true(!owner_holds(&a) || owner_grant(&a).deadline < last);
        assert_true(!owner_holds(&a) || p->now < last);
    }
    assert_true(memnet_saw(p, 0, CLAVE_STATE_RECONNECTED));
    assert_int_equal(a.lost, 1);
    memnet_clear(p);
    memnet_settle(p);
    owner_close(&a);
    memnet_free(p);
}

/* A holder that comes back to a real leader holds on, beyond the deadline that it came with. */
TEST(a_holder_that_comes_back_holds_on)
{
    struct mutex_owner a;
    struct memnet *p =
        memnet_new(&(struct memnet_options){.clients = 1, .timeout_ms = TIMEOUT, .ensemble = true});
    owner_open(&a, p, 0, "/l", NULL);
    owner_acquire(&a, OWNER_FOREVER);
    for (int i = 0; i < 10; i++) {
        memnet_cut(p, 0);
        memnet_advance(p, TIMEOUT / 4);
        assert_int_equal(clave_async_client_state(p->clients[0].c), CLAVE_STATE_RECONNECTED);
        assert_true(owner_grant(&a).deadline > p->now + TIMEOUT / 2);
    }
    assert_int_equal(a.lost, 0);
    owner_close(&a);
    memnet_free(p);
}

/* Lets each heartbeat be answered after `latency`, for 20 session timeouts, and returns the least
 * time that was left until the hold deadline; *beats: how many there were. */
static int64_t answer_after(int64_t latency, unsigned *beats)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct hold h;
    int64_t due = INT64_MAX, least = INT64_MAX;
    fake_open(&s, NULL);
    fake_connect(&s, false);
    hold(&s, &h, "/l/a");
    for (int64_t end = s.now + 20 * T; s.now < end;) {
        int64_t at = clave_async_client_deadline(s.c);
        fake_advance_to(&s, at < due ? at : due);
        int64_t left = clave_async_client_hold_deadline(s.c) - s.now;
        least = left < least ? left : least;
        if (s.now == due) {
            fake_answer_checks(&s, CLAVE_OK);
            due = INT64_MAX;
        } else if (!fake_is_quiet(&s)) {
            fake_expect(&s, OP_MULTI);
            due = s.now + latency;
            ++*beats;
        }
        assert_true(clave_async_client_is_connected(s.c));
    }
    clave__client_unhold(s.c, &h);
    return least;
}

/* As long as a heartbeat may take (a sixth of the timeout) before another member is tried, a hold
 * is kept; while answers take a sixteenth, it never comes near the end of a command under it, a
 * quarter of the timeout before its deadline; and in an ensemble that answers fast nothing more is
 * sent. */
TEST(a_hold_is_kept_by_an_ensemble_that_answers_slowly)
{
    for (int64_t latency = 1; latency < T / 6; latency += T / 96) {
        unsigned beats = 0;
        int64_t left = answer_after(latency, &beats);
        int64_t enough = latency <= T / 16 ? T / 4 - STEP : T / 32;
        if (left < enough)
            fail_msg("answers after %d ms: %d ms left", (int)latency, (int)left);
        if (latency <= T / 32)
            assert_true(beats <= 20 * 4);
    }
}
