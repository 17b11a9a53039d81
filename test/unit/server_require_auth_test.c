/* server_require_auth_test.c - require_auth: what a client may do before it has authenticated, what
 * it gets for the rest, that every scheme named will do, and that nobody takes another's session.
 */
#include "lib/memserver.h"
#include "lib/unit.h"
#include "server/request/session_tracker.h"

static clave_err authenticate(struct memserver_conn *c)
{
    union wire_body body = {.auth = {0, clave__jbytes("digest"), clave__jbytes("joe:secret")}};
    return memserver_call(c, OP_AUTH, &body, NULL);
}

TEST(before_and_after)
{
    struct server_options o = {.require_auth = "x509,digest"};
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn c;
    union wire_body none = {0};
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 30000);
    assert_int_equal(memserver_call(&c, OP_PING, &none, NULL), CLAVE_OK);
    assert_int_equal(authenticate(&c), CLAVE_OK);
    assert_int_equal(memserver_create(&c, "/a", "", 0), CLAVE_OK);
    memserver_hang_up(&c);
    memserver_connect(&c, &d, 30000);
    assert_int_equal(memserver_call(&c, OP_CLOSE_SESSION, &none, NULL), CLAVE_OK);
    memserver_hang_up(&c);
}

/* Reads and writes alike, and a read that shows nothing of the tree. */
TEST(refused)
{
    static const int32_t ops[] = {OP_GET_DATA, OP_CREATE, OP_SYNC, OP_WHO_AM_I, OP_SET_WATCHES};
    struct server_options o = {.require_auth = "digest"};
    CLOSED_BY(memserver_close) struct memserver d;
    memserver_open(&d, &o);
    size_t nodes = memserver_stats(&d).nodes;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        CLOSED_BY(memserver_hang_up) struct memserver_conn c;
        struct wire_reply_header h;
        struct jreader rest;
        union wire_body body = {.read.path = clave__jbytes("/")};
        if (ops[i] == OP_CREATE)
            body = memserver_create_body("/a", "", 0);
        if (ops[i] == OP_SET_WATCHES)
            memset(&body, 0, sizeof body);
        memserver_connect(&c, &d, 30000);
        int32_t xid = memserver_request(&c, ops[i], &body);
        memserver_request(&c, OP_PING, &body); /* unanswered */
        assert_true(memserver_next(&c, &h, &rest));
        assert_int_equal(h.xid, xid);
        assert_int_equal(h.zxid, 0);
        assert_int_equal(h.err, CLAVE_ESASLREQUIRED);
        assert_false(memserver_next(&c, &h, &rest));
        assert_null(c.c);
    }
    assert_int_equal(memserver_stats(&d).nodes, nodes);
    assert_non_null(strstr(d.lines, "it has not authenticated (--require-auth digest)"));
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* They come again and again: a line in ten seconds tells how many. */
TEST(strangers_do_not_fill_the_log)
{
    struct server_options o = {.require_auth = "digest"};
    CLOSED_BY(memserver_close) struct memserver d;
    memserver_open(&d, &o);
    for (int i = 0; i < 50; i++) {
        struct memserver_conn c;
        memserver_connect(&c, &d, 30000);
        assert_int_equal(memserver_create(&c, "/a", "", 0), CLAVE_ESASLREQUIRED);
        memserver_hang_up(&c);
        memserver_advance(&d, 250);
    }
    assert_int_equal(count(d.lines, "it has not authenticated"), 2);
    assert_non_null(strstr(d.lines, "is closed, and 0 before it"));
    assert_non_null(strstr(d.lines, "is closed, and 40 before it"));
}

TEST(a_user_of_the_machine)
{
    struct server_options o = {.require_auth = "uid"};
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn local, remote;
    memserver_open(&d, &o);
    memserver_connect_local(&local, &d, 1000);
    assert_int_equal(memserver_create(&local, "/a", "", 0), CLAVE_OK);
    memserver_connect(&remote, &d, 30000);
    assert_int_equal(authenticate(&remote), CLAVE_OK); /* which is not what is asked for */
    assert_int_equal(memserver_create(&remote, "/b", "", 0), CLAVE_ESASLREQUIRED);
}

/* ---- sessions of others ---------------------------------------------------------------------- */

enum { TICK_MS = 2000, SESSION_MS = 30000, LEAST_MS = 2 * TICK_MS, SESSIONLESS_MS = 10000 };

static void open_for_digest(struct memserver *d)
{
    struct server_options o = {.require_auth = "digest"};
    memserver_open(d, &o);
}

/* Has authenticated, and holds /held. */
static void connect_holder(struct memserver_conn *c, struct memserver *d)
{
    memserver_connect(c, d, SESSION_MS);
    assert_int_equal(authenticate(c), CLAVE_OK);
    assert_int_equal(memserver_create(c, "/held", "", MODE_EPHEMERAL), CLAVE_OK);
}

/* Knows the id of the session, as everybody can, and nothing else. */
static struct memserver_conn stranger_to(const struct memserver_conn *holder)
{
    struct memserver_conn of = {.d = holder->d, .session = holder->session, .timeout_ms = LEAST_MS};
    clave__session_password(of.session, of.passwd);
    return of;
}

static bool is_held(struct memserver *d)
{
    return memserver_stats(d).ephemerals == 1;
}

TEST(nobody_ends_anothers_session)
{
    static const int32_t ops[] = {OP_CLOSE_SESSION, OP_PING, OP_SASL, OP_GET_DATA};
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn holder, c;
    struct wire_stat st;
    open_for_digest(&d);
    connect_holder(&holder, &d);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct memserver_conn of = stranger_to(&holder);
        union wire_body body;
        memset(&body, 0, sizeof body);
        if (ops[i] == OP_GET_DATA)
            body.read.path = clave__jbytes("/held");
        assert_true(memserver_resume(&c, &of));
        assert_true(c.session == holder.session);
        assert_int_equal(memserver_call(&c, ops[i], &body, NULL), CLAVE_ESASLREQUIRED);
        assert_null(c.c);
        memserver_hang_up(&c);
        of.passwd[0] ^= 1;
        assert_false(memserver_resume(&c, &of));
        memserver_hang_up(&c);
        assert_non_null(holder.c);
        assert_int_equal(memserver_stat(&holder, "/held", &st), CLAVE_OK);
    }
    memserver_hang_up(&holder);
}

/* A client that says nothing for so long is disconnected, with its holder still there. */
TEST(nobody_shortens_anothers_session)
{
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn holder, c;
    open_for_digest(&d);
    connect_holder(&holder, &d);
    struct memserver_conn of = stranger_to(&holder);
    assert_true(memserver_resume(&c, &of));
    assert_int_equal(c.timeout_ms, LEAST_MS);
    memserver_advance(&d, SESSIONLESS_MS - 1);
    assert_non_null(c.c);
    memserver_advance(&d, 1);
    assert_null(c.c);
    memserver_hang_up(&c);
    memserver_advance(&d, SESSION_MS - SESSIONLESS_MS);
    assert_true(is_held(&d));
    assert_non_null(holder.c);
    memserver_advance(&d, SESSION_MS + 2 * TICK_MS); /* nobody has heard of the holder */
    assert_false(is_held(&d));
    memserver_hang_up(&holder);
}

/* Its connection stays with the old client up to then, and so do its events. */
TEST(a_session_goes_on_when_its_client_has_authenticated)
{
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn holder, back;
    open_for_digest(&d);
    connect_holder(&holder, &d);
    assert_int_equal(memserver_watch(&holder, OP_EXISTS, "/w"), CLAVE_ENONODE);
    assert_true(memserver_resume(&back, &holder));
    assert_int_equal(back.timeout_ms, SESSION_MS);
    assert_int_equal(memserver_create(&holder, "/other", "", 0), CLAVE_OK);
    memserver_advance(&d, TICK_MS);
    assert_non_null(holder.c);
    union wire_body w = memserver_create_body("/w", "", 0);
    memserver_request(&holder, OP_CREATE, &w);
    assert_string_equal(memserver_events(&holder), "CREATED /w");
    assert_int_equal(authenticate(&back), CLAVE_OK);
    assert_null(holder.c);
    memserver_hang_up(&holder);
    assert_int_equal(memserver_stats(&d).sessions, 1);
    assert_true(is_held(&d));
    assert_int_equal(memserver_delete(&back, "/held", 0), CLAVE_OK);
    memserver_advance(&d, SESSIONLESS_MS); /* it is no connection without a session any more */
    assert_int_equal(memserver_call(&back, OP_PING, NULL, NULL), CLAVE_OK);
    assert_int_equal(memserver_call(&back, OP_CLOSE_SESSION, NULL, NULL), CLAVE_OK);
    assert_int_equal(memserver_stats(&d).sessions, 0);
    memserver_hang_up(&back);
}

/* As without the rule, where the later handshake closes the earlier connection: what was sent on
 * that one is not done once the client has gone on. */
TEST(an_earlier_connection_does_not_come_back)
{
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn holder, late, back;
    open_for_digest(&d);
    connect_holder(&holder, &d);
    struct memserver_conn of = holder;
    memserver_hang_up(&holder);
    assert_true(memserver_resume(&late, &of));
    assert_true(memserver_resume(&back, &of));
    assert_int_equal(authenticate(&back), CLAVE_OK);
    assert_int_equal(authenticate(&late), CLAVE_ECONNLOSS);
    assert_null(late.c);
    assert_int_equal(memserver_delete(&back, "/held", 0), CLAVE_OK);
    memserver_hang_up(&late);
    assert_true(memserver_resume(&late, &of));
    memserver_hang_up(&back);
    assert_int_equal(authenticate(&late), CLAVE_OK);
    assert_int_equal(memserver_create(&late, "/held", "", MODE_EPHEMERAL), CLAVE_OK);
    memserver_hang_up(&late);
}

TEST(a_session_ends_before_its_client_has_authenticated)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn holder, back;
    open_for_digest(&d);
    connect_holder(&holder, &d);
    assert_true(memserver_resume(&back, &holder));
    assert_int_equal(memserver_call(&holder, OP_CLOSE_SESSION, NULL, NULL), CLAVE_OK);
    assert_int_equal(authenticate(&back), CLAVE_ECONNLOSS);
    assert_null(back.c);
}

/* A client that was told that its session goes on relies on it, even if its identity is lost on the
 * way; but a dead client's session does not live on strangers. */
TEST(what_was_told_is_kept_and_ends)
{
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn holder, c;
    open_for_digest(&d);
    connect_holder(&holder, &d);
    struct memserver_conn of = holder;
    int64_t died = d.now, told = 0;
    memserver_hang_up(&holder);
    while (is_held(&d)) {
        if (memserver_resume(&c, &of))
            told = d.now;
        memserver_hang_up(&c);
        memserver_advance(&d, 500);
    }
    assert_true(told >= died + SESSION_MS && told < died + SESSION_MS + TICK_MS);
    assert_true(d.now >= told + SESSION_MS);
    assert_true(d.now <= died + 2 * (SESSION_MS + TICK_MS));
    assert_non_null(strstr(d.lines, "nobody has authenticated in time for session"));
}

TEST(the_rule_is_switched_off_meanwhile)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn holder, back;
    open_for_digest(&d);
    connect_holder(&holder, &d);
    assert_true(memserver_resume(&back, &holder));
    struct server_options o = d.o;
    o.require_auth = NULL;
    assert_int_equal(clave__server_change(d.s, &o), CLAVE_OK);
    assert_non_null(holder.c);
    assert_int_equal(memserver_delete(&back, "/held", 0), CLAVE_OK);
    assert_null(holder.c);
}

/* Connections from before meet it with their next request, and end no session that holds something.
 */
TEST_SERVER(while_it_serves)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn c, held;
    memserver_connect(&c, d, 30000);
    assert_int_equal(memserver_create(&c, "/a", "", 0), CLAVE_OK);
    struct server_options o = d->o;
    o.require_auth = "digest";
    memserver_connect(&held, d, SESSION_MS);
    assert_int_equal(memserver_create(&held, "/held", "", MODE_EPHEMERAL), CLAVE_OK);
    assert_int_equal(clave__server_change(d->s, &o), CLAVE_OK);
    assert_int_equal(memserver_create(&c, "/b", "", 0), CLAVE_ESASLREQUIRED);
    assert_int_equal(memserver_call(&held, OP_PING, NULL, NULL), CLAVE_OK);
    assert_int_equal(memserver_call(&held, OP_CLOSE_SESSION, NULL, NULL), CLAVE_ESASLREQUIRED);
    assert_true(is_held(d));
}
