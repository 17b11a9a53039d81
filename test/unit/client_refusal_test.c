/* Errors in answer to what the client asks by itself: none may pass for success. */
#include "client/client_for_recipes.h"
#include "lib/fake_server.h"
#include "lib/unit.h"

enum { T = FAKE_TIMEOUT, MARGIN = T / 8 };

static void ignore(struct hold *h)
{
    (void)h;
}

static void hold(struct fake_server *s, struct hold *h)
{
    *h = (struct hold){.path = "/l/n", .on_missing = ignore, .on_settled = ignore};
    list_init(&h->link);
    clave__client_hold(s->c, h);
}

static void open_with_hold(struct fake_server *s, struct hold *h, bool standalone)
{
    fake_open(s, NULL);
    fake_connect(s, standalone);
    hold(s, h);
    s->told = s->nstates;
}

static void close_with_hold(struct fake_server *s, struct hold *h)
{
    clave__client_unhold(s->c, h);
    fake_close(s);
}

/* The connection was given up as a failure of the only host: there is a pause. */
static void is_left(struct fake_server *s, clave_err why, const char *what)
{
    assert_int_equal(clave_async_client_wants(s->c), CLAVE_WANT_HANGUP);
    fake_expect_state(s, CLAVE_STATE_SUSPENDED, why);
    assert_non_null(strstr(clave_async_client_errmsg(s->c), "script:1"));
    assert_non_null(strstr(clave_async_client_errmsg(s->c), what));
    assert_non_null(strstr(clave_async_client_errmsg(s->c), clave_strerror(why)));
    fake_hang_up(s);
    assert_int_equal(clave_async_client_wants(s->c), 0);
    assert_in_range(clave_async_client_deadline(s->c), s->now + 1, s->now + T / 4);
}

/* ---- pings ----------------------------------------------------------------------------- */

static void expect_ping(struct fake_server *s)
{
    fake_advance_to(s, clave_async_client_deadline(s->c));
    fake_expect(s, OP_PING);
    s->now += 20;
}

/* A server refuses the ping of a session that it has ended, or is about to. */
TEST(a_ping_of_an_expired_session_loses_it)
{
    struct fake_server s;
    struct hold h;
    open_with_hold(&s, &h, true);
    expect_ping(&s);
    fake_answer_to(&s, XID_PING, OP_PING, CLAVE_EEXPIRED, NULL);
    fake_expect_state(&s, CLAVE_STATE_SUSPENDED, CLAVE_EEXPIRED);
    fake_expect_state(&s, CLAVE_STATE_LOST, CLAVE_EEXPIRED);
    assert_true(clave_async_client_hold_deadline(s.c) < s.now);
    close_with_hold(&s, &h);
}

TEST(a_ping_refused_is_no_sign_of_life)
{
    static const clave_err errs[] = {CLAVE_ESESSIONMOVED, CLAVE_ESYSTEM, CLAVE_EUNIMPLEMENTED};
    for (size_t i = 0; i < sizeof errs / sizeof *errs; i++) {
        struct fake_server s;
        struct hold h;
        open_with_hold(&s, &h, true);
        int64_t before = clave_async_client_hold_deadline(s.c);
        expect_ping(&s);
        fake_answer_to(&s, XID_PING, OP_PING, errs[i], NULL);
        assert_int_equal(clave_async_client_hold_deadline(s.c), before);
        is_left(&s, errs[i], "ping");
        close_with_hold(&s, &h);
    }
}

/* An overloaded server is not dialled again for it; the next ping may do. */
TEST(a_ping_throttled_is_sent_again)
{
    struct fake_server s;
    struct hold h;
    open_with_hold(&s, &h, true);
    int64_t before = clave_async_client_hold_deadline(s.c);
    expect_ping(&s);
    fake_answer_to(&s, XID_PING, OP_PING, CLAVE_ETHROTTLED, NULL);
    assert_true(clave_async_client_is_connected(s.c));
    assert_int_equal(clave_async_client_hold_deadline(s.c), before);
    expect_ping(&s);
    fake_answer_ping(&s);
    assert_int_equal(clave_async_client_hold_deadline(s.c), s.now - 20 + T - MARGIN);
    close_with_hold(&s, &h);
}

/* ---- confirmed heartbeats -------------------------------------------------------------- */

/* A member that does not pass it on is of no use to a holder: another may be. */
TEST(a_member_that_refuses_heartbeats_is_left)
{
    static const clave_err errs[] = {CLAVE_ENOTREADONLY, CLAVE_ESYSTEM, CLAVE_EUNIMPLEMENTED,
                                     CLAVE_ESESSIONMOVED};
    for (size_t i = 0; i < sizeof errs / sizeof *errs; i++) {
        struct fake_server s;
        struct hold h;
        open_with_hold(&s, &h, false);
        int64_t before = clave_async_client_hold_deadline(s.c);
        fake_advance_to(&s, clave_async_client_deadline(s.c));
        fake_expect(&s, OP_MULTI);
        fake_answer(&s, errs[i], NULL);
        assert_int_equal(clave_async_client_hold_deadline(s.c), before);
        is_left(&s, errs[i], "heartbeat");
        close_with_hold(&s, &h);
    }
}

static const clave_client_options three_members = {.size = sizeof three_members,
                                                   .hosts = "a:1,b:1,c:1"};

/* The next member takes the session over and answers, but not the heartbeat. */
static void attach_and_refuse(struct fake_server *s)
{
    assert_int_equal(fake_dial(s).session_id, FAKE_SESSION);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    fake_expect(s, OP_MULTI);
    fake_answer(s, CLAVE_ESYSTEM, NULL);
    assert_int_equal(clave_async_client_wants(s->c), CLAVE_WANT_HANGUP);
    fake_hang_up(s);
}

/* Each round of refusals ends with a pause: the members were dialled as fast as they answered. */
TEST(members_that_all_refuse_heartbeats_are_not_dialled_without_a_pause)
{
    struct fake_server s;
    struct hold h;
    fake_open(&s, &three_members);
    fake_connect(&s, false);
    hold(&s, &h);
    fake_hang_up(&s);
    for (int round = 0; round < 4; round++) {
        for (int member = 0; member < 3; member++) {
            assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_DIAL);
            attach_and_refuse(&s);
        }
        assert_int_equal(clave_async_client_wants(s.c), 0);
        assert_in_range(clave_async_client_deadline(s.c), s.now + 1, s.now + T / 4);
        fake_advance_to(&s, clave_async_client_deadline(s.c));
    }
    close_with_hold(&s, &h);
}

/* What failed before it has carried a heartbeat does not delay the way to another member. */
TEST(a_member_that_has_carried_a_heartbeat_is_left_at_once)
{
    struct fake_server s;
    struct hold h;
    fake_open(&s, &three_members);
    for (int failed = 0; failed < 2; failed++)
        clave_async_client_disconnected(s.c, s.now);
    fake_connect(&s, false);
    hold(&s, &h);
    fake_advance_to(&s, clave_async_client_deadline(s.c));
    fake_expect(&s, OP_MULTI);
    fake_answer_checks(&s, CLAVE_OK);
    fake_advance_to(&s, clave_async_client_deadline(s.c));
    fake_expect(&s, OP_MULTI);
    fake_answer(&s, CLAVE_ESYSTEM, NULL);
    fake_hang_up(&s);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_DIAL);
    close_with_hold(&s, &h);
}

/* Another member would say no other, or not sooner. */
TEST(a_heartbeat_that_another_would_refuse_too_is_sent_again)
{
    static const clave_err errs[] = {CLAVE_ETHROTTLED, CLAVE_ENOAUTH};
    for (size_t i = 0; i < sizeof errs / sizeof *errs; i++) {
        struct fake_server s;
        struct hold h;
        open_with_hold(&s, &h, false);
        int64_t before = clave_async_client_hold_deadline(s.c);
        fake_advance_to(&s, clave_async_client_deadline(s.c));
        fake_expect(&s, OP_MULTI);
        fake_answer(&s, errs[i], NULL);
        assert_true(clave_async_client_is_connected(s.c));
        assert_int_equal(clave_async_client_hold_deadline(s.c), before);
        fake_advance_to(&s, clave_async_client_deadline(s.c));
        fake_expect(&s, OP_MULTI);
        close_with_hold(&s, &h);
    }
}

/* ---- the end of a session -------------------------------------------------------------- */

/* A read-only server ends no session: what it holds would stay for a timeout, and the caller was
 * told that it is closed. */
TEST_CONNECTED(a_server_that_refuses_to_close_is_left)
{
    s->told = s->nstates;
    clave_async_client_close(s->c, s->now);
    fake_expect(s, OP_CLOSE_SESSION);
    fake_answer(s, CLAVE_ENOTREADONLY, NULL);
    is_left(s, CLAVE_ENOTREADONLY, "close");
    fake_advance_to(s, clave_async_client_deadline(s->c));
    assert_int_equal(fake_dial(s).session_id, FAKE_SESSION);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    fake_expect(s, OP_CLOSE_SESSION);
    fake_answer(s, CLAVE_OK, NULL);
    fake_expect_state(s, CLAVE_STATE_RECONNECTED, CLAVE_OK);
    fake_expect_state(s, CLAVE_STATE_CLOSED, CLAVE_OK);
}

TEST_CONNECTED(one_that_has_ended_by_itself_is_closed)
{
    s->told = s->nstates;
    clave_async_client_close(s->c, s->now);
    fake_expect(s, OP_CLOSE_SESSION);
    fake_answer(s, CLAVE_EEXPIRED, NULL);
    fake_expect_state(s, CLAVE_STATE_CLOSED, CLAVE_OK);
}

/* ---- a server that wants an identity --------------------------------------------------- */

/* It gives a session, and denies everything else. Returns the pause before the next dial. */
static int64_t attach_and_deny(struct fake_server *s, int64_t session, int32_t timeout_ms)
{
    fake_dial(s);
    fake_answer_handshake(s, session, timeout_ms, false);
    fake_expect(s, OP_GET_DATA);
    fake_answer(s, CLAVE_ESASLREQUIRED, NULL);
    fake_hang_up(s);
    assert_int_equal(clave_async_client_wants(s->c), 0);
    int64_t pause = clave_async_client_deadline(s->c) - s->now;
    fake_advance_to(s, clave_async_client_deadline(s->c));
    return pause;
}

/* The pause grows up to its maximum, though the sessions are short, and stays there from one
 * session to the next: it fell back to a quarter of the session's time, and to nothing when one
 * expired. */
TEST(a_client_that_is_denied_everything_backs_off)
{
    enum { SHORT = 4000, MOST = 2000, ENOUGH = 10 };
    CLOSED_BY(fake_close) struct fake_server s;
    fake_open(&s, NULL);
    assert_in_range(attach_and_deny(&s, FAKE_SESSION, SHORT), 1, MOST / 4);
    int64_t pause = 0;
    for (int64_t session = FAKE_SESSION; session < FAKE_SESSION + 2; session++) {
        for (int i = 0; i < ENOUGH; i++)
            pause = attach_and_deny(&s, session, SHORT);
        assert_int_equal(pause, MOST);
        fake_dial(&s);
        fake_answer_handshake(&s, 0, 0, false); /* it has expired */
        fake_hang_up(&s);
        assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_DIAL); /* for the next one */
        assert_int_equal(attach_and_deny(&s, session + 1, SHORT), MOST);
    }
}

/* The rule is switched off: what was denied before it delays nothing. */
TEST(a_client_that_is_served_again_does_not_back_off)
{
    CLOSED_BY(fake_close) struct fake_server s;
    fake_open(&s, NULL);
    for (int i = 0; i < 10; i++)
        attach_and_deny(&s, FAKE_SESSION, T);
    fake_connect(&s, true);
    fake_hang_up(&s);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_DIAL);
    assert_in_range(attach_and_deny(&s, FAKE_SESSION, T), 1, 100); /* the first pause */
}

/* ---- bounds of the server ---------------------------------------------------------------- */

static void told(const struct fake_server *s, const char *text)
{
    assert_string_equal(clave_async_client_errmsg(s->c), text);
}

#define PATHS "may be beyond the server's limits (clave serve --max-name, --max-path, --max-depth)"

TEST(a_path_that_may_be_too_long_is_measured)
{
    CLOSED_BY(fake_close) struct fake_server s;
    clave_client_options o = {.hosts = "h/app"};
    clave_create_options numbered = {.size = sizeof numbered, .mode = CLAVE_EPHEMERAL_SEQUENTIAL};
    clave_create_options mortal = {
        .size = sizeof mortal, .mode = CLAVE_PERSISTENT_TTL, .ttl_ms = INT64_MAX};
    clave_op op = {.kind = CLAVE_OP_CREATE, .path = "/a"};
    fake_open(&s, &o);
    fake_connect(&s, true);
    assert_int_equal(clave_async_create(s.c, "/a/bc", NULL, 0, NULL, NULL, NULL), CLAVE_OK);
    fake_expect(&s, OP_CREATE2);
    fake_answer(&s, CLAVE_EBADARGS, NULL);
    told(&s, "cannot create /a/bc: the server refused the arguments: a name of 2 bytes, a path of "
             "9, or a depth of 3 " PATHS "; the server's log says which");
    assert_int_equal(clave_async_create(s.c, "/a-", NULL, 0, &numbered, NULL, NULL), CLAVE_OK);
    fake_expect(&s, OP_CREATE2);
    fake_answer(&s, CLAVE_EBADARGS, NULL);
    told(&s, "cannot create /a-: the server refused the arguments: a name of 12 bytes, a path of "
             "17, or a depth of 2 " PATHS "; or the parent's sequence numbers are used up; the "
             "server's log says which");
    assert_int_equal(clave_async_create(s.c, "/t", NULL, 0, &mortal, NULL, NULL), CLAVE_OK);
    fake_expect(&s, OP_CREATE_TTL);
    fake_answer(&s, CLAVE_EBADARGS, NULL);
    told(&s, "cannot create /t: the server refused the arguments: a name of 1 bytes, a path of 6, "
             "or a depth of 2 " PATHS ", or the time to live; the server's log says which");
    assert_int_equal(clave_async_multi(s.c, &op, 1, NULL, NULL), CLAVE_OK);
    fake_expect(&s, OP_MULTI);
    fake_answer(&s, CLAVE_EBADARGS, NULL);
    assert_non_null(strstr(clave_async_client_errmsg(s.c), "depth that it creates " PATHS "; the"));
    /* Of a write there is nothing to add. */
    assert_int_equal(clave_async_set(s.c, "/a", "x", 1, -1, NULL, NULL), CLAVE_OK);
    fake_expect(&s, OP_SET_DATA);
    fake_answer(&s, CLAVE_EBADARGS, NULL);
    told(&s, "cannot write /a: the server refused the arguments");
}

/* What is to be done about it must not fall off the end of the message. */
TEST(of_a_long_path_only_the_beginning_is_told)
{
    CLOSED_BY(fake_close) struct fake_server s;
    char path[2000], begins[200];
    memset(path, 'n', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    memcpy(path + 127, "\xc3\xa4", 2); /* a character that is not cut */
    fake_open(&s, NULL);
    fake_connect(&s, true);
    assert_int_equal(clave_async_create(s.c, path, NULL, 0, NULL, NULL, NULL), CLAVE_OK);
    fake_expect(&s, OP_CREATE2);
    fake_answer(&s, CLAVE_EBADARGS, NULL);
    snprintf(begins, sizeof begins, "cannot create %.127s...: the server refused", path);
    assert_memory_equal(clave_async_client_errmsg(s.c), begins, strlen(begins));
    assert_non_null(strstr(clave_async_client_errmsg(s.c), "a path of 1999, or a depth of 1 " PATHS
                                                           "; the server's log says which"));
}

TEST(watches_quotas_and_answers_have_bounds_too)
{
    CLOSED_BY(fake_close) struct fake_server s;
    clave_async_watch *w;
    const char *room = "the server may have no room for another watch (clave serve "
                       "--max-connection-watches, --max-watches), or none for a path of 2 bytes "
                       "(--max-path); its log says which";
    fake_open(&s, NULL);
    fake_connect(&s, true);
    assert_int_equal(clave_async_watch_new(&w, s.c, NULL, NULL), CLAVE_OK);
    assert_int_equal(clave_async_exists(s.c, "/a", w, NULL, NULL), CLAVE_OK);
    fake_expect(&s, OP_EXISTS);
    fake_answer(&s, CLAVE_EBADARGS, NULL);
    assert_non_null(strstr(clave_async_client_errmsg(s.c), room));
    clave__client_fault(s.c, "-");
    assert_int_equal(clave__client_read_once(s.c, OP_EXISTS, "/a", w, NULL, NULL), CLAVE_OK);
    fake_expect(&s, OP_EXISTS);
    fake_answer(&s, CLAVE_EBADARGS, NULL); /* of a recipe, whose other errors are not told */
    assert_non_null(strstr(clave_async_client_errmsg(s.c), room));
    assert_int_equal(clave_async_set(s.c, "/a", "x", 1, -1, NULL, NULL), CLAVE_OK);
    fake_expect(&s, OP_SET_DATA);
    fake_answer(&s, CLAVE_EQUOTA, NULL);
    assert_non_null(strstr(clave_async_client_errmsg(s.c), "below /zookeeper/quota"));
    assert_int_equal(clave_async_children(s.c, "/a", NULL, NULL, NULL), CLAVE_OK);
    fake_expect(&s, OP_GET_CHILDREN2);
    fake_answer(&s, CLAVE_EMARSHALLING, NULL);
    told(&s, "cannot list /a: the server does not send an answer this long (clave serve "
             "--max-answer), or could not read the request");
    clave_async_watch_free(w);
}

/* A server that has no room for the watches of a client that comes back disconnects it. */
TEST_CONNECTED(watches_that_are_not_set_again_are_told)
{
    clave_async_watch *w;
    assert_int_equal(clave_async_watch_new(&w, s->c, NULL, NULL), CLAVE_OK);
    assert_int_equal(clave_async_exists(s->c, "/a", w, NULL, NULL), CLAVE_OK);
    fake_expect(s, OP_EXISTS);
    fake_answer(s, CLAVE_ENONODE, NULL);
    fake_hang_up(s);
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, T, false);
    fake_expect(s, OP_SET_WATCHES);
    fake_hang_up(s);
    assert_non_null(strstr(clave_async_client_errmsg(s->c), "--max-connection-watches"));
    clave_async_watch_free(w);
}
