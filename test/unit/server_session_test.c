/* server_session_test.c - the table of sessions against a plain model, and what becomes of a
 * session when its connection, its client or the server goes. */
#include "base/memory.h"
#include "base/rand.h"
#include "lib/memserver.h"
#include "lib/unit.h"
#include "server/request/session_tracker.h"

/* ---- the table ------------------------------------------------------------------------------- */

enum { TICK = 100, SESSIONS = 40, TURNS = 20000 };

/* What ought to be: when each session ends; 0: there is none. */
struct model {
    int64_t now;
    int64_t ends[SESSIONS];
    int32_t timeout[SESSIONS];
    uint64_t heard; /* in another tick than before, and the time left then */
    int64_t slack;
};

static int64_t end_of(const struct model *m, size_t i)
{
    return ((m->now + m->timeout[i]) / TICK + 1) * TICK;
}

/* The table gives exactly those whose time is over; some are spared for a tick. */
static void expire(struct sessions *t, struct model *m, struct rand_state *rand)
{
    struct session *s;
    int looks = 1 << 30;
    clave__sessions_advance(t, m->now);
    while ((s = clave__sessions_next_due(t, &looks))) {
        size_t i = (size_t)s->id;
        assert_true(m->ends[i] != 0 && m->ends[i] <= m->now);
        if (clave__rand_below(rand, 4) == 0) {
            clave__session_postpone(t, s);
            m->ends[i] = (m->now / TICK + 1) * TICK;
            continue;
        }
        clave__sessions_remove(t, s);
        m->ends[i] = 0;
    }
    for (size_t i = 0; i < SESSIONS; i++)
        assert_true(m->ends[i] == 0 || m->ends[i] > m->now);
}

static void check_deadline(const struct sessions *t, const struct model *m)
{
    int64_t first = INT64_MAX, deadline = clave__sessions_deadline(t);
    for (size_t i = 0; i < SESSIONS; i++)
        if (m->ends[i] != 0 && m->ends[i] < first)
            first = m->ends[i];
    assert_true(deadline <= first && deadline > m->now);
    assert_true(first != INT64_MAX || deadline == INT64_MAX);
}

static void add_or_touch(struct sessions *t, struct model *m, struct rand_state *rand)
{
    size_t i = (size_t)clave__rand_below(rand, SESSIONS);
    struct session *s = clave__sessions_find(t, (int64_t)i);
    assert_true((s != NULL) == (m->ends[i] != 0));
    if (!s) {
        /* Also further ahead than the ring is long. */
        m->timeout[i] = (int32_t)clave__rand_below(rand, 3 * SESSION_RING * TICK);
        assert_int_equal(clave__sessions_add(t, (int64_t)i, m->timeout[i], &s), CLAVE_OK);
    } else {
        clave__session_heard(t, s);
        m->heard += end_of(m, i) != m->ends[i];
        m->slack += end_of(m, i) != m->ends[i] ? m->ends[i] - m->now : 0;
    }
    m->ends[i] = end_of(m, i);
}

TEST(the_table_does_as_the_model)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        CLOSED_BY(clave__sessions_fini) struct sessions t;
        struct model m = {.now = 12345};
        struct rand_state rand;
        clave__rand_seed(&rand, seed);
        assert_int_equal(clave__sessions_init(&t, &mem, TICK, 1), CLAVE_OK);
        clave__sessions_start(&t, m.now, 0);
        for (int turn = 0; turn < TURNS; turn++) {
            if (clave__rand_below(&rand, 2) == 0) {
                add_or_touch(&t, &m, &rand);
            } else {
                /* Mostly a little, now and then as if the machine had been asleep. */
                bool long_pause = clave__rand_below(&rand, 200) == 0;
                m.now += (int64_t)clave__rand_below(&rand, long_pause ? 1000 * TICK : TICK);
                expire(&t, &m, &rand);
            }
            if (turn % 16 == 0) {
                expire(&t, &m, &rand);
                check_deadline(&t, &m);
            }
        }
        assert_true(m.heard > 0);
        assert_int_equal(clave__histogram_count(&t.slack_ms), m.heard);
        assert_int_equal(t.slack_ms.sum, m.slack);
    }
}

/* An id is given out once, even if the clock was set back or earlier ids exist. */
TEST(ids_are_given_once)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct sessions t;
    struct session *s;
    const int64_t wall = (int64_t)1700000000 * 1000;
    assert_int_equal(clave__sessions_init(&t, &mem, TICK, 1), CLAVE_OK);
    clave__sessions_start(&t, 1, wall);
    int64_t id = clave__sessions_new_id(&t);
    clave__sessions_fini(&t);

    assert_int_equal(clave__sessions_init(&t, &mem, TICK, 1), CLAVE_OK);
    assert_int_equal(clave__sessions_add(&t, id, 1000, &s), CLAVE_OK); /* as recovery does */
    assert_int_equal(clave__sessions_add(&t, 77, 1000, &s), CLAVE_OK); /* of another server */
    clave__sessions_start(&t, 1, wall - 3600 * 1000);
    assert_true(clave__sessions_new_id(&t) == id + 1);
    assert_int_equal(clave__sessions_add(&t, id + 3, 1000, &s), CLAVE_OK);
    assert_true(clave__sessions_new_id(&t) == id + 4);
    clave__sessions_fini(&t);

    assert_int_equal(clave__sessions_init(&t, &mem, TICK, 1), CLAVE_OK);
    clave__sessions_start(&t, 1, wall);
    assert_int_equal(clave__sessions_add(&t, id, 1000, &s), CLAVE_OK);
    assert_true(clave__sessions_new_id(&t) == id + 1);
    clave__sessions_fini(&t);
}

/* They make no other client wait, and one that is heard in between is alive. */
TEST_SERVER(thousands_expire_a_few_at_a_time)
{
    enum { MANY = 2000 };
    struct memserver_conn c, last;
    for (int i = 0; i < MANY; i++) {
        memserver_connect(&c, d, 4000);
        memserver_hang_up(&c);
    }
    memserver_connect(&last, d, 4000);
    memserver_advance(d, clave__server_deadline(d->s) - d->now);
    size_t left = memserver_stats(d).sessions;
    while (left == MANY + 1) {
        memserver_advance(d, clave__server_deadline(d->s) - d->now);
        left = memserver_stats(d).sessions;
    }
    assert_in_range(left, MANY / 2, MANY);
    assert_true(clave__server_deadline(d->s) == d->now + 1);
    memserver_call(&last, OP_PING, NULL, NULL);
    while (clave__server_deadline(d->s) == d->now + 1)
        memserver_advance(d, 1);
    assert_int_equal(memserver_stats(d).sessions, 1);
    memserver_hang_up(&last);
}

/* ---- a session and its connections ----------------------------------------------------------- */

/* The second connection takes over: what the first has still to hear, and to say, is dropped. */
TEST(the_older_connection_is_cut_off)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn old, young, other;
    struct wire_stat st;
    union wire_body b = memserver_create_body("/said", "", MODE_EPHEMERAL);
    memserver_open(&d, NULL);
    memserver_connect(&old, &d, 10000);
    memserver_connect(&other, &d, 10000);
    d.disk_stands = true;
    memserver_request(&old, OP_CREATE, &b);
    memserver_send(&old, "\0\0", 2); /* half a frame more */
    assert_int_equal(clave__buf_len(&old.in), 0);
    d.disk_stands = false;
    assert_true(memserver_resume(&young, &old));
    assert_null(old.c);
    assert_int_equal(clave__buf_len(&old.in), 0); /* the reply is lost, what it did is not */
    assert_int_equal(memserver_stat(&young, "/said", &st), CLAVE_OK);
    assert_true(st.ephemeral_owner == young.session);
    assert_int_equal(memserver_stats(&d).connections, 2);
}

/* Back and forth: there is one connection at any time, and the session is the same. */
TEST_SERVER(taken_over_again_and_again)
{
    struct memserver_conn c[2];
    memserver_connect(&c[0], d, 10000);
    assert_int_equal(memserver_create(&c[0], "/e", "", MODE_EPHEMERAL), CLAVE_OK);
    for (size_t i = 0; i < 50; i++) {
        struct memserver_conn *from = &c[i % 2], *to = &c[(i + 1) % 2];
        assert_true(memserver_resume(to, from));
        assert_null(from->c);
        memserver_hang_up(from);
        assert_int_equal(memserver_stats(d).connections, 1);
        assert_int_equal(memserver_set(to, "/e", "", (int32_t)i), CLAVE_OK);
        memserver_advance(d, 3000);
    }
    assert_int_equal(memserver_stats(d).sessions, 1);
    memserver_hang_up(&c[0]);
}

/* Requests after closeSession are ignored. */
TEST_SESSION(nothing_is_done_behind_the_close, 10000)
{
    static const uint8_t bytes[] = {
        0, 0, 0, 8,   0, 0, 0, 7, 0xff, 0xff, 0xff, 0xf5, /* closeSession */
        0, 0, 0, 22,  0, 0, 0, 8, 0,    0,    0,    5,    0,
        0, 0, 1, '/', 0, 0, 0, 1, 'x',  0xff, 0xff, 0xff, 0xff, /* setData "/" */
    };
    struct wire_reply_header h;
    struct jreader r;
    memserver_send(c, bytes, sizeof bytes);
    assert_null(c->c);
    assert_true(memserver_next(c, &h, &r));
    assert_int_equal(h.xid, 7);
    assert_int_equal(h.err, CLAVE_OK);
    assert_false(memserver_next(c, &h, &r));
    assert_int_equal(memserver_stats(d).requests[OP_SET_DATA], 0);
}

/* A process that stood still has not read what its clients sent: they are heard first. */
TEST(standing_still_ends_no_session)
{
    static const struct {
        int64_t late;  /* after its deadline */
        bool told;     /* of it */
        bool alive;    /* at once, and */
        bool survives; /* a tick later, having been heard of */
    } cases[] = {
        {20000, false, false, false},
        {20000, true, true, true},
        {2001, true, true, true},
        {2000, true, false, false}, /* a tick is no standing still */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(memserver_close) struct memserver d;
        CLOSED_BY(memserver_hang_up) struct memserver_conn heard, silent;
        memserver_open(&d, NULL);
        memserver_connect(&heard, &d, 4000);
        memserver_connect(&silent, &d, 4000);
        int64_t due = d.now + 8000; /* of both, rounded up to a tick and more */
        d.now = due + cases[i].late;
        if (cases[i].told)
            clave__server_woke_late(d.s, due, d.now);
        memserver_advance(&d, 0);
        assert_int_equal(memserver_stats(&d).sessions, cases[i].alive ? 2 : 0);
        if (cases[i].alive)
            assert_int_equal(memserver_create(&heard, "/e", "", MODE_EPHEMERAL), CLAVE_OK);
        memserver_advance(&d, 4001);
        assert_int_equal(memserver_stats(&d).sessions, cases[i].survives ? 1 : 0);
    }
}

/* The timeout that was agreed on last counts, and is none that the disk does not know: a client
 * holds locks by it, and a server that was started again must not end the session before. */
TEST(the_timeout_after_a_restart)
{
    static const struct {
        int32_t asked, agreed;
    } resumes[] = {{30000, 10000}, {4000, 4000}, {30000, 10000}};
    struct memserver d, again;
    struct memserver_conn c, resumed, back;
    struct wire_connect_response r;
    struct log_replay replay;
    memserver_open(&d, NULL);
    memserver_connect(&c, &d, 10000);
    for (size_t i = 0; i < sizeof resumes / sizeof *resumes; i++) {
        struct wire_connect_request q = {.timeout_ms = resumes[i].asked, .session_id = c.session};
        q.passwd = clave__jbytes_n(c.passwd, sizeof c.passwd);
        memserver_dial(&resumed, &d);
        assert_true(memserver_handshake(&resumed, &q, &r));
        assert_int_equal(r.timeout_ms, resumes[i].agreed);
        memserver_advance(&d, r.timeout_ms - 1);
        assert_int_equal(memserver_stats(&d).sessions, 1);
        memserver_hang_up(&resumed);
    }

    assert_int_equal(memserver_open_bare(&again, NULL), CLAVE_OK);
    assert_int_equal(clave__server_replay_log(again.s, d.log.data, d.log.tail, &replay), CLAVE_OK);
    again.now += 3600 * 1000; /* the time without a server does not count */
    memserver_start(&again);
    memserver_advance(&again, r.timeout_ms - 1);
    assert_int_equal(memserver_stats(&again).sessions, 1);
    struct memserver_conn of = c;
    of.d = &again;
    assert_true(memserver_resume(&back, &of));
    memserver_hang_up(&back);
    memserver_advance(&again, r.timeout_ms + 2000);
    assert_int_equal(memserver_stats(&again).sessions, 0);
    memserver_close(&again);
    memserver_hang_up(&c);
    memserver_close(&d);
}

/* One session of 10 s, on a server that has just been started again. */
static void restart(struct memserver *d, struct memserver_conn *client)
{
    struct memserver before;
    struct log_replay replay;
    memserver_open(&before, NULL);
    memserver_connect(client, &before, 10000);
    assert_int_equal(memserver_open_bare(d, NULL), CLAVE_OK);
    assert_int_equal(clave__server_replay_log(d->s, before.log.data, before.log.tail, &replay),
                     CLAVE_OK);
    memserver_start(d);
    memserver_hang_up(client);
    memserver_close(&before);
    client->d = d;
}

/* A client that has connected, and waits for its handshake among thousands, finds its session. */
TEST(who_has_connected_after_a_restart_may_be_back)
{
    static const struct {
        int32_t connects, until; /* ms after the restart */
        bool lasts;
    } cases[] = {
        {9000, 15000, true},
        {9000, 18900, true},   /* as long as the connection may be without a session */
        {9000, 21100, false},  /* no longer, and a tick */
        {10001, 14100, false}, /* it came too late */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(memserver_close) struct memserver d;
        struct memserver_conn client, waits, back;
        restart(&d, &client);
        memserver_advance(&d, cases[i].connects);
        memserver_dial(&waits, &d);
        for (int32_t at = cases[i].connects; at < cases[i].until; at += 100)
            memserver_advance(&d, 100);
        assert_int_equal(memserver_stats(&d).sessions, cases[i].lasts ? 1 : 0);
        assert_int_equal(memserver_resume(&back, &client), cases[i].lasts);
        memserver_hang_up(&back);
        memserver_hang_up(&waits);
    }
}

/* The time to start a session begins with the turn to shake hands, however long that takes to come;
 * until then whoever waits may be the client of a session of before. */
TEST(the_time_for_a_session_begins_with_the_turn)
{
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn client, waits;
    restart(&d, &client);
    memserver_dial(&waits, &d);
    clave__server_conn_set_waiting(waits.c, true);
    for (int i = 0; i < 300; i++)
        memserver_advance(&d, 100);
    assert_non_null(waits.c);
    assert_int_equal(memserver_stats(&d).sessions, 1);
    clave__server_conn_set_waiting(waits.c, false);
    for (int i = 0; i < 99; i++)
        memserver_advance(&d, 100);
    assert_non_null(waits.c);
    assert_int_equal(memserver_stats(&d).sessions, 1);
    for (int i = 0; i < 22; i++)
        memserver_advance(&d, 100);
    assert_null(waits.c);
    assert_int_equal(memserver_stats(&d).sessions, 0);
    memserver_hang_up(&waits);
}

/* A thousand sessions end together: one transaction each, within milliseconds. */
TEST_SERVER(many_end_together)
{
    enum { MANY = 1000 };
    static struct memserver_conn c[MANY];
    for (size_t i = 0; i < MANY; i++) {
        memserver_connect(&c[i], d, 4000);
        assert_int_equal(memserver_create(&c[i], "/e-", "", MODE_EPHEMERAL_SEQUENTIAL), CLAVE_OK);
    }
    int64_t zxid = memserver_stats(d).last_zxid;
    memserver_advance(d, 6000);
    for (int i = 0; i < 10; i++)
        memserver_advance(d, 1);
    struct server_stats st = memserver_stats(d);
    assert_int_equal(st.sessions, 0);
    assert_int_equal(st.ephemerals, 0);
    assert_int_equal(st.connections, 0);
    assert_int_equal(st.last_zxid, zxid + MANY);
    for (size_t i = 0; i < MANY; i++)
        memserver_hang_up(&c[i]);
}

/* Those that own many nodes take more turns, and so do those whose nodes many watch: none removes
 * many more than `owned` nodes, or many more than one session owns, since its end is one
 * transaction. */
static void check_ends(size_t watchers, size_t owned)
{
    enum { SESSIONS_OF_EACH = 100, EACH = 50, MOST_WATCHERS = 20 };
    static struct memserver_conn watcher[MOST_WATCHERS];
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn c;
    const union wire_body all = {.typed = {clave__jbytes("/"), ADD_WATCH_PERSISTENT_RECURSIVE}};
    memserver_open(&d, NULL);
    for (size_t i = 0; i < watchers; i++) {
        memserver_connect(&watcher[i], &d, 30000);
        assert_int_equal(memserver_call(&watcher[i], OP_ADD_WATCH, &all, NULL), CLAVE_OK);
    }
    for (int i = 0; i < SESSIONS_OF_EACH; i++) {
        memserver_connect(&c, &d, 4000);
        for (int k = 0; k < EACH; k++)
            assert_int_equal(memserver_create(&c, "/e-", "", MODE_EPHEMERAL_SEQUENTIAL), CLAVE_OK);
        memserver_hang_up(&c);
    }
    size_t most = 0, turns = 0;
    for (size_t left = memserver_stats(&d).ephemerals; left > 0;) {
        assert_true(turns++ < 1000);
        d.now = clave__server_deadline(d.s);
        clave__server_tick(d.s, d.now, memserver_wall(&d));
        size_t now_left = memserver_stats(&d).ephemerals;
        most = left - now_left > most ? left - now_left : most;
        left = now_left;
    }
    assert_in_range(most, EACH, owned + EACH);
    assert_int_equal(memserver_stats(&d).sessions, watchers);
    for (size_t i = 0; i < watchers; i++)
        memserver_hang_up(&watcher[i]);
}

TEST(their_nodes_count_too)
{
    check_ends(0, 1500);
}

TEST(and_the_events_of_these)
{
    check_ends(20, 75);
}

/* Sessions that were heard, and are due for another look only, are looked at in pieces as well. */
TEST(a_look_at_many_yields)
{
    enum { MANY = 100, LOOKS = 30 };
    struct clave_mem mem = clave__mem_or_default(NULL);
    CLOSED_BY(clave__sessions_fini) struct sessions t;
    struct session *s;
    assert_int_equal(clave__sessions_init(&t, &mem, TICK, 1), CLAVE_OK);
    clave__sessions_start(&t, 0, 0);
    for (int64_t id = 1; id <= MANY; id++)
        assert_int_equal(clave__sessions_add(&t, id, 5 * TICK, &s), CLAVE_OK);
    clave__sessions_advance(&t, 3 * TICK);
    for (int64_t id = 1; id < MANY; id++)
        clave__session_heard(&t, clave__sessions_find(&t, id));
    clave__sessions_advance(&t, 6 * TICK);
    for (int turn = 0; turn < MANY / LOOKS; turn++) {
        int looks = LOOKS;
        assert_null(clave__sessions_next_due(&t, &looks));
        assert_int_equal(looks, 0);
        assert_true(clave__sessions_deadline(&t) == 6 * TICK + 1);
    }
    int looks = LOOKS;
    s = clave__sessions_next_due(&t, &looks);
    assert_true(s && s->id == MANY);
    assert_int_equal(looks, LOOKS - MANY % LOOKS);
    clave__sessions_remove(&t, s);
    assert_true(clave__sessions_deadline(&t) > 6 * TICK + 1);
}

/* After a pause nobody expires for a tick; those with more time keep it. */
TEST(postponed_all_together)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    CLOSED_BY(clave__sessions_fini) struct sessions t;
    struct session *brief, *lasting;
    int looks = 100;
    assert_int_equal(clave__sessions_init(&t, &mem, TICK, 1), CLAVE_OK);
    clave__sessions_start(&t, 0, 0);
    assert_int_equal(clave__sessions_add(&t, 1, TICK, &brief), CLAVE_OK);
    assert_int_equal(clave__sessions_add(&t, 2, 50 * TICK, &lasting), CLAVE_OK);
    clave__sessions_postpone_all(&t, 10 * TICK);
    assert_true(clave__session_expires(&t, brief) == 12 * TICK);
    assert_true(clave__session_expires(&t, lasting) == 51 * TICK);
    clave__sessions_advance(&t, 12 * TICK - 1);
    assert_null(clave__sessions_next_due(&t, &looks));
    assert_true(clave__sessions_deadline(&t) == 12 * TICK);
    clave__sessions_advance(&t, 12 * TICK);
    assert_ptr_equal(clave__sessions_next_due(&t, &looks), brief);
    assert_null(clave__sessions_next_due(&t, &looks));
}

/* As with Apache: auth packets do not keep a session, whatever is answered; others do. */
TEST(packets_that_are_no_sign_of_life)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn auth, reads;
    union wire_body ip = {.auth = {0, clave__jbytes("ip"), clave__jbytes("")}};
    union wire_body root = {.read = {clave__jbytes("/"), false}};
    memserver_open(&d, NULL);
    memserver_connect(&auth, &d, 4000);
    memserver_connect(&reads, &d, 4000);
    for (int i = 0; i < 80; i++) {
        if (auth.c)
            assert_int_equal(memserver_call(&auth, OP_AUTH, &ip, NULL), CLAVE_OK);
        assert_int_equal(memserver_call(&reads, OP_EXISTS, &root, NULL), CLAVE_OK);
        assert_true(auth.c || i >= 40);
        memserver_advance(&d, 100);
    }
    assert_null(auth.c);
    assert_int_equal(memserver_stats(&d).sessions, 1);
}

/* At once, as Apache answers a wrong password: a client that is answered anything else tries until
 * its session expires. The session goes on without the connection. */
TEST(sasl_fails_at_once)
{
    static const char *const tokens[] = {"", "token"};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        CLOSED_BY(memserver_close) struct memserver d;
        CLOSED_BY(memserver_hang_up) struct memserver_conn c;
        union wire_body token = {.path = clave__jbytes(tokens[i])};
        memserver_open(&d, NULL);
        memserver_connect(&c, &d, 4000);
        assert_int_equal(memserver_call(&c, OP_SASL, &token, NULL), CLAVE_EAUTHFAILED);
        assert_null(c.c);
        assert_int_equal(memserver_stats(&d).sessions, 1);
    }
}
