/* server_session_nodes_test.c - the sessions as a super user sees and ends them: what goes at once,
 * what stays until the holder has stopped for certain, and that nobody else can. */
#include "lib/memserver.h"
#include "lib/unit.h"
#include "server/server_internal.h"

enum { ROOT = 7, TIMEOUT_MS = 8000 };

static char path_of_session[64];

static const char *node_of(const struct memserver_conn *c, const char *rest)
{
    snprintf(path_of_session, sizeof path_of_session, "/zookeeper/sessions/0x%llx%s",
             (unsigned long long)c->session, rest);
    return path_of_session;
}

struct scene {
    struct memserver d;
    struct memserver_conn root, holder, other;
};

static void begin(struct scene *s)
{
    struct server_options o = {.super_uid = "7"};
    memserver_open(&s->d, &o);
    memserver_connect_local(&s->root, &s->d, ROOT);
    memserver_connect(&s->holder, &s->d, TIMEOUT_MS);
    memserver_connect(&s->other, &s->d, 30000);
    assert_int_equal(memserver_create(&s->holder, "/held", "", 1), CLAVE_OK);
}

static void end(struct scene *s)
{
    memserver_hang_up(&s->root);
    memserver_hang_up(&s->holder);
    memserver_hang_up(&s->other);
    memserver_close(&s->d);
}

static bool is_held(struct scene *s)
{
    struct wire_stat st;
    return memserver_stat(&s->other, "/held", &st) == CLAVE_OK;
}

/* Not even while its client tries again and again. */
TEST(what_it_holds_stays_until_it_expires)
{
    CLOSED_BY(end) struct scene s;
    begin(&s);
    memserver_advance(&s.d, 3000);
    assert_int_equal(memserver_delete(&s.root, node_of(&s.holder, ""), -1), CLAVE_OK);
    assert_null(s.holder.c);
    int64_t cut_at = s.d.now;
    while (is_held(&s)) {
        struct memserver_conn again;
        assert_false(memserver_resume(&again, &s.holder));
        memserver_hang_up(&again);
        memserver_advance(&s.d, 500);
        union wire_body none = {0};
        memserver_call(&s.root, OP_PING, &none, NULL);
        assert_true(s.d.now - cut_at < 2 * TIMEOUT_MS);
    }
    /* Its last sign of life was 3 s before. */
    assert_true(s.d.now - cut_at >= TIMEOUT_MS - 3000);
    assert_non_null(strstr(s.d.lines, "its nodes are removed when its time is over"));
    assert_non_null(strstr(s.d.lines, "an operator has ended session"));
    assert_int_equal(s.d.s->sessions.ends[SESSION_BARRED], 1);
    assert_int_equal(s.d.s->sessions.ends[SESSION_EXPIRED], 0);
}

TEST(at_once)
{
    CLOSED_BY(end) struct scene s;
    begin(&s);
    assert_int_equal(memserver_delete(&s.root, node_of(&s.holder, "/now"), -1), CLAVE_OK);
    assert_null(s.holder.c);
    assert_false(is_held(&s));
    assert_non_null(strstr(s.d.lines, "at once, whatever its client believes"));
    assert_int_equal(s.d.s->sessions.ends[SESSION_BARRED], 1);
    assert_int_equal(memserver_delete(&s.root, node_of(&s.holder, ""), -1), CLAVE_ENONODE);
}

TEST(what_is_shown)
{
    CLOSED_BY(end) struct scene s;
    struct wire_reply r;
    begin(&s);
    union wire_body body = {.read.path = clave__jbytes("/zookeeper/sessions")};
    assert_int_equal(memserver_call(&s.root, OP_GET_CHILDREN, &body, &r), CLAVE_OK);
    assert_int_equal(r.names.count, 3);
    assert_int_equal(memserver_call(&s.root, OP_EXISTS, &body, NULL), CLAVE_OK);
    body.read.path = clave__jbytes(node_of(&s.holder, ""));
    assert_int_equal(memserver_call(&s.root, OP_GET_DATA, &body, &r), CLAVE_OK);
    char text[300];
    snprintf(text, sizeof text, "%.*s", (int)r.data.n, r.data.p);
    assert_non_null(strstr(text, "timeout_ms=8000\n"));
    assert_non_null(strstr(text, "\nephemerals=1\nending=false\n"));
    static const char *const wrong[] = {"/zookeeper/sessions/", "/zookeeper/sessions/1",
                                        "/zookeeper/sessions/0x", "/zookeeper/sessions/0x1",
                                        "/zookeeper/sessions/0x11111111111111111"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        body.read.path = clave__jbytes(wrong[i]);
        assert_int_equal(memserver_call(&s.root, OP_GET_DATA, &body, NULL), CLAVE_ENONODE);
        assert_int_equal(memserver_delete(&s.root, wrong[i], -1), CLAVE_ENONODE);
    }
    assert_int_equal(memserver_delete(&s.root, "/zookeeper/sessions", -1), CLAVE_EBADARGS);
    assert_int_equal(memserver_delete(&s.root, node_of(&s.root, ""), -1), CLAVE_EBADARGS);
}

/* For others such nodes do not exist, as with Apache, and those that they make are no sessions. */
TEST(nobody_else)
{
    CLOSED_BY(end) struct scene s;
    CLOSED_BY(memserver_hang_up) struct memserver_conn user;
    struct wire_reply r;
    begin(&s);
    memserver_connect_local(&user, &s.d, ROOT + 1);
    struct memserver_conn *const others[] = {&s.other, &user};
    union wire_body body = {.read.path = clave__jbytes("/zookeeper/sessions")};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(memserver_call(others[i], OP_GET_CHILDREN, &body, NULL), CLAVE_ENONODE);
        assert_int_equal(memserver_delete(others[i], node_of(&s.holder, ""), -1), CLAVE_ENONODE);
        assert_int_equal(memserver_delete(others[i], node_of(&s.holder, "/now"), -1),
                         CLAVE_ENONODE);
    }
    assert_true(is_held(&s));
    assert_non_null(s.holder.c);
    assert_int_equal(memserver_create(&s.other, "/zookeeper/sessions", "mine", 0), CLAVE_OK);
    assert_int_equal(memserver_call(&s.root, OP_GET_CHILDREN, &body, &r), CLAVE_OK);
    assert_int_equal(r.names.count, 4);
}
