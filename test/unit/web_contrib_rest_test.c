/* web_contrib_rest_test.c - /znodes/v1 and /sessions/v1: what the tests of Apache's contrib REST
 * gateway ask for, and the table of errors of its specification. */
#include "base/rand.h"
#include "lib/unit.h"
#include "lib/webrig_answer.h"
#include "web/web_internal.h"

#define JSON_ "Accept: application/json"
#define XML_ "Accept: application/xml"
#define OCTETS_ "Accept: application/octet-stream"
#define SEND_ "\nContent-Type: application/octet-stream"

static const struct web_grant all[] = {{WEB_WRITE, "/"}};
static const struct web_user users[] = {
    {.name = "ann", .token = "ann", .uid = 7, .grants = all, .ngrants = 1}};
static const struct web_access access_of_test = {.users = users, .nusers = 1, .owner_uid = -1};

static struct webrig *rig_new(void)
{
    struct webrig_options o = {.access = &access_of_test};
    struct webrig *r = webrig_new(&o);
    r->peer.is_unix = true;
    r->peer.uid = 7;
    return r;
}

static void body_is(struct webrig_call *c, const char *text)
{
    assert_string_equal(webrig_body(c), text);
    webrig_end(c);
}

static void body_has(struct webrig_call *c, const char *text)
{
    if (!strstr(webrig_body(c), text))
        print_error("%s is not in %s\n", text, webrig_body(c));
    assert_non_null(strstr(webrig_body(c), text));
    webrig_end(c);
}

/* ---- create --------------------------------------------------------------------------------- */

TEST(nodes_are_created_below_a_parent)
{
    static const struct {
        const char *query, *data;
        unsigned status;
        const char *path;
    } cases[] = {
        {"dataformat=utf8&null=true&name=foo%20bar", NULL, 201, "/b/foo bar"},
        {"dataformat=utf8&null=true&name=t1", NULL, 201, "/b/t1"},
        {"dataformat=utf8&null=true&name=t1", NULL, 409, NULL},
        {"dataformat=utf8&name=t2", "", 201, "/b/t2"},
        {"dataformat=utf8&name=t2", "", 409, NULL},
        {"dataformat=utf8&name=t3", "foo", 201, "/b/t3"},
        {"dataformat=base64&name=t4", "foo", 201, "/b/t4"},
        {"null=true&name=c-&sequence=true", NULL, 201, "/b/c-0000000005"},
        {"null=true&name=c-&sequence=true", NULL, 201, "/b/c-0000000006"},
    };
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    webrig_done(r, "POST", "/znodes/v1/?name=b&op=create", JSON_, NULL, 201);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char target[200];
        snprintf(target, sizeof target, "/znodes/v1/b?%s", cases[i].query);
        struct webrig_call *c =
            webrig_answer(r, "POST", target, JSON_ SEND_, cases[i].data, cases[i].status);
        if (cases[i].path) {
            assert_string_equal(webrig_member(c, "path"), cases[i].path);
            assert_string_equal(webrig_member(c, "uri"), "http://localhost:8080/znodes/v1/b");
        } else {
            assert_string_equal(webrig_member(c, "request"), "POST /znodes/v1/b");
        }
        webrig_end(c);
    }
    body_is(webrig_answer(r, "GET", "/znodes/v1/b/t4", OCTETS_, NULL, 200), "foo");
    webrig_done(r, "GET", "/znodes/v1/b/t1", OCTETS_, NULL, 204);
}

TEST(a_node_is_created_below_the_root)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    struct webrig_call *c =
        webrig_answer(r, "POST", "/znodes/v1/?dataformat=utf8&name=root", JSON_ SEND_, "foo", 201);
    assert_string_equal(webrig_member(c, "uri"), "http://localhost:8080/znodes/v1/");
    assert_string_equal(webrig_header(c, "Location"), "/znodes/v1/root");
    webrig_end(c);
    body_is(webrig_answer(r, "POST", "/znodes/v1/?name=octets", OCTETS_ SEND_, "x", 201),
            "/octets");
    body_is(webrig_answer(r, "GET", "/znodes/v1/root", OCTETS_, NULL, 200), "foo");
}

/* ---- delete, exists ------------------------------------------------------------------------- */

TEST(nodes_are_deleted_and_asked_for_in_every_format)
{
    static const char *const formats[] = {OCTETS_, JSON_, XML_};
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    for (size_t i = 0; i < 3; i++) {
        bool octets = formats[i] == formats[0];
        webrig_done(r, "POST", "/znodes/v1/?name=d", JSON_, NULL, 201);
        webrig_done(r, "HEAD", "/znodes/v1/d", formats[i], NULL, octets ? 204 : 200);
        webrig_done(r, "HEAD", "/znodes/v1/dkdk", formats[i], NULL, 404);
        webrig_done(r, "DELETE", "/znodes/v1/d?version=3", formats[i], NULL, 412);
        webrig_done(r, "DELETE", "/znodes/v1/d?version=0", formats[i], NULL, 204);
        webrig_done(r, "DELETE", "/znodes/v1/d", formats[i], NULL, 404);
    }
}

/* ---- get, children -------------------------------------------------------------------------- */

TEST(data_are_base64_or_text)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    webrig_done(r, "POST", "/znodes/v1/?name=g&null=true", JSON_, NULL, 201);
    struct webrig_call *c =
        webrig_answer(r, "GET", "/znodes/v1/g?dataformat=utf8", JSON_, NULL, 200);
    assert_null(webrig_member(c, "dataUtf8"));
    assert_null(webrig_member(c, "data64"));
    assert_string_equal(webrig_member(c, "path"), "/g");
    assert_string_equal(webrig_member(c, "uri"), "http://localhost:8080/znodes/v1/g");
    assert_string_equal(webrig_member(c, "version"), "0");
    webrig_end(c);
    webrig_done(r, "PUT", "/znodes/v1/g", JSON_, NULL, 200);
    body_has(webrig_answer(r, "GET", "/znodes/v1/g?dataformat=utf8", JSON_, NULL, 200),
             "\"dataUtf8\": \"\"");
    body_has(webrig_answer(r, "GET", "/znodes/v1/g", JSON_, NULL, 200), "\"data64\": \"\"");
    webrig_done(r, "PUT", "/znodes/v1/g", JSON_ SEND_, "f<o", 200);
    body_has(webrig_answer(r, "GET", "/znodes/v1/g?dataformat=utf8", JSON_, NULL, 200),
             "\"dataUtf8\": \"f<o\"");
    body_has(webrig_answer(r, "GET", "/znodes/v1/g?dataformat=base64", NULL, NULL, 200),
             "\"data64\": \"Zjxv\"");
    body_has(webrig_answer(r, "GET", "/znodes/v1/g?dataformat=utf8", XML_, NULL, 200),
             "<dataUtf8>f&lt;o</dataUtf8>");
    body_has(webrig_answer(r, "GET", "/znodes/v1/g", XML_, NULL, 200),
             "<stat><path>/g</path><uri>");
    body_is(webrig_answer(r, "GET", "/znodes/v1/dkdk", JSON_, NULL, 404),
            "{\"request\": \"GET /znodes/v1/dkdk\", \"message\": \"/dkdk: no such node\"}");
    body_has(webrig_answer(r, "GET", "/znodes/v1/dkdk", XML_, NULL, 404),
             "<error><request>GET /znodes/v1/dkdk</request><message>");
    body_is(webrig_answer(r, "GET", "/znodes/v1/dkdk", OCTETS_, NULL, 404),
            "GET /znodes/v1/dkdk: /dkdk: no such node");
}

TEST(children_are_listed)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    webrig_done(r, "POST", "/znodes/v1/?name=p", JSON_, NULL, 201);
    webrig_done(r, "GET", "/znodes/v1/dkdk?view=children", JSON_, NULL, 404);
    webrig_done(r, "GET", "/znodes/v1/dkdk?view=children", XML_, NULL, 404);
    body_has(webrig_answer(r, "GET", "/znodes/v1/p?view=children", JSON_, NULL, 200),
             "\"children\": []");
    body_has(webrig_answer(r, "GET", "/znodes/v1/p?view=children", XML_, NULL, 200),
             "<children></children></child>");
    webrig_done(r, "POST", "/znodes/v1/p?name=c1", JSON_, NULL, 201);
    struct webrig_call *c = webrig_answer(r, "GET", "/znodes/v1/p?view=children", JSON_, NULL, 200);
    assert_string_equal(webrig_member(c, "uri"), "http://localhost:8080/znodes/v1/p");
    assert_string_equal(webrig_member(c, "child_uri_template"),
                        "http://localhost:8080/znodes/v1/p/{child}");
    body_has(c, "\"children\": [\"c1\"]");
    body_has(webrig_answer(r, "GET", "/znodes/v1/p?view=children", XML_, NULL, 200),
             "<children><child>c1</child></children>");
    body_has(webrig_answer(r, "GET", "/znodes/v1/?view=children", JSON_, NULL, 200),
             "\"http://localhost:8080/znodes/v1/{child}\"");
}

/* ---- set ------------------------------------------------------------------------------------ */

TEST(data_are_set)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    webrig_done(r, "POST", "/znodes/v1/?name=s", JSON_ SEND_, "initial", 201);
    struct webrig_call *c = webrig_answer(r, "PUT", "/znodes/v1/s", JSON_ SEND_, "foobar", 200);
    assert_string_equal(webrig_member(c, "version"), "1");
    assert_null(webrig_member(c, "data64"));
    webrig_end(c);
    body_is(webrig_answer(r, "GET", "/znodes/v1/s", OCTETS_, NULL, 200), "foobar");
    webrig_done(r, "PUT", "/znodes/v1/s?null=true", JSON_ SEND_, NULL, 200);
    webrig_done(r, "GET", "/znodes/v1/s", OCTETS_, NULL, 204);
    webrig_done(r, "PUT", "/znodes/v1/s", OCTETS_ SEND_, "x", 204);
    webrig_done(r, "PUT", "/znodes/v1/s?version=3", JSON_ SEND_, "y", 200);
    webrig_done(r, "PUT", "/znodes/v1/s?version=3", JSON_ SEND_, "y", 412);
    webrig_done(r, "PUT", "/znodes/v1/s?version=x", JSON_ SEND_, "y", 400);
    webrig_done(r, "PUT", "/znodes/v1/dkdk", JSON_ SEND_, "y", 404);
    webrig_done(r, "PUT", "/znodes/v1/s", JSON_ "\nContent-Type: text/plain", "y", 415);
}

/* ---- formats and faults --------------------------------------------------------------------- */

TEST(formats_are_negotiated)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    struct webrig_call *c = webrig_answer(r, "GET", "/znodes/v1/?view=children&callback=got_it",
                                          "Accept: application/javascript", NULL, 200);
    assert_string_equal(webrig_header(c, "Content-Type"), "application/javascript");
    assert_memory_equal(webrig_body(c), "got_it({", 8);
    webrig_end(c);
    webrig_done(r, "GET", "/znodes/v1/?callback=a.b", "Accept: application/javascript", NULL, 400);
    /* What is no name is not echoed, whatever is wrong with the rest. */
    for (int i = 0; i < 2; i++) {
        c = webrig_answer(r, "GET",
                          i == 0 ? "/znodes/v1/?callback=alert(1);//"
                                 : "/znodes/v1/none?callback=alert(1);//",
                          "Accept: application/javascript", NULL, 400);
        assert_null(strstr(webrig_body(c), "alert"));
        assert_int_equal(webrig_body(c)[0], '{');
        webrig_end(c);
    }
    c = webrig_answer(r, "GET", "/znodes/v1/",
                      "Accept: text/html, application/xml;q=0.9, */*;q=0.8", NULL, 200);
    assert_string_equal(webrig_header(c, "Content-Type"), "application/xml");
    webrig_end(c);
    c = webrig_answer(r, "GET", "/znodes/v1", "Accept: text/html, */*", NULL, 200);
    assert_string_equal(webrig_header(c, "Content-Type"), "application/json");
    webrig_end(c);
    webrig_done(r, "GET", "/znodes/v1/", "Accept: text/html", NULL, 406);
}

TEST(faults_have_the_statuses_of_the_specification)
{
    static const struct {
        const char *method, *target;
        unsigned status;
    } cases[] = {
        {"POST", "/znodes/v1/?op=drop&name=a", 400},
        {"POST", "/znodes/v1/", 400},
        {"POST", "/znodes/v1/?name=a/b", 400},
        {"POST", "/znodes/v1/no?name=a", 409},
        {"POST", "/znodes/v1/?name=.", 400},
        {"DELETE", "/znodes/v1/?version=", 400},
        {"POST", "/znodes/v1/?name=e&ephemeral=true", 400},
        {"POST", "/znodes/v1/?name=a&session=nonsense", 401},
        {"GET", "/znodes/v1/a//b", 400},
    };
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        webrig_done(r, cases[i].method, cases[i].target, JSON_, NULL, cases[i].status);
    webrig_done(r, "POST", "/znodes/v1/?name=a", JSON_, NULL, 201);
    webrig_done(r, "POST", "/znodes/v1/a?name=b", JSON_, NULL, 201);
    webrig_done(r, "DELETE", "/znodes/v1/a", JSON_, NULL, 409);
    memnet_rule(r->net,
                (struct memnet_rule){
                    .client = 0, .way = MEMNET_REPLY, .op = OP_SET_DATA, .fate = MEMNET_LOSE});
    webrig_done(r, "PUT", "/znodes/v1/a", JSON_, NULL, 503);
}

/* ---- sessions ------------------------------------------------------------------------------- */

/* Its path: "/sessions/v1/UUID". */
static void session_new(struct webrig *r, const char *expire, char path[80])
{
    char target[80];
    snprintf(target, sizeof target, "/sessions/v1?op=create&expire=%s", expire);
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_answer(r, "POST", target, JSON_, NULL, 201);
    assert_int_equal(strlen(webrig_member(c, "id")), 36);
    snprintf(path, 80, "/sessions/v1/%s", webrig_member(c, "id"));
    assert_string_equal(webrig_member(c, "uri") + strlen("http://localhost:8080"), path);
}

TEST(a_session_owns_ephemeral_nodes_and_is_deleted)
{
    char path[80], target[200];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    session_new(r, "30", path);
    snprintf(target, sizeof target, "/znodes/v1/?op=create&name=e&ephemeral=true&session=%s",
             path + strlen("/sessions/v1/"));
    webrig_done(r, "POST", target, JSON_, NULL, 201);
    struct webrig_call *c = webrig_answer(r, "GET", "/znodes/v1/e", JSON_, NULL, 200);
    assert_string_not_equal(webrig_member(c, "ephemeralOwner"), "0");
    webrig_end(c);
    webrig_done(r, "DELETE", path, JSON_, NULL, 204);
    webrig_done(r, "DELETE", path, JSON_, NULL, 404);
    webrig_done(r, "PUT", path, JSON_, NULL, 404);
    webrig_done(r, "GET", "/znodes/v1/e", JSON_, NULL, 404);
    webrig_done(r, "POST", target, JSON_, NULL, 401);
}

/* It is all the proof there is: who sees what else the engine draws does not know it. */
TEST(a_sessions_uuid_cannot_be_drawn_again)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    struct rand_state seen = r->web->rand;
    char path[80], drawn[CLAVE_UUID_TEXT + 1];
    session_new(r, "30", path);
    for (int skipped = 0; skipped < 64; skipped++) {
        struct rand_state from = seen;
        clave__rand_uuid(&from, drawn);
        assert_string_not_equal(path + strlen("/sessions/v1/"), drawn);
        clave__rand_u64(&seen);
    }
}

TEST(a_session_ends_without_heartbeats)
{
    char path[80];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    session_new(r, "1", path);
    webrig_advance(r, 900);
    webrig_done(r, "PUT", path, JSON_, NULL, 200);
    webrig_advance(r, 900);
    webrig_done(r, "PUT", path, JSON_, NULL, 200);
    webrig_advance(r, 1500);
    webrig_done(r, "PUT", path, JSON_, NULL, 404);
    webrig_done(r, "POST", "/sessions/v1?op=drop", JSON_, NULL, 400);
    webrig_done(r, "POST", "/sessions/v1?expire=0", JSON_, NULL, 400);
}

/* Longer than any server lets a session be silent. */
TEST(a_session_lives_as_long_as_its_maker_said)
{
    char path[80];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    session_new(r, "600", path);
    webrig_advance(r, 590000);
    webrig_done(r, "PUT", path, JSON_, NULL, 200);
    webrig_advance(r, 601000);
    webrig_done(r, "PUT", path, JSON_, NULL, 404);
}

TEST(a_session_whose_maker_hangs_up_is_not_kept)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    memnet_stop_server(r->net);
    struct webrig_call *c = webrig_request(r, "POST", "/sessions/v1?expire=2", JSON_, NULL);
    assert_false(c->answered);
    webrig_end(c);
    memnet_start_server(r->net);
    webrig_advance(r, 20000);
    c = webrig_request(r, "POST", "/sessions/v1", JSON_, NULL);
    assert_true(c->answered);
}

/* Nobody knows its UUID, so nobody can end it. */
TEST(a_session_of_nobody_does_not_live_for_its_time)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    memnet_stop_server(r->net);
    webrig_end(webrig_request(r, "POST", "/sessions/v1?expire=3600", JSON_, NULL));
    memnet_start_server(r->net);
    webrig_advance(r, 20000);
    assert_true(list_empty(&r->web->rest_sessions));
    webrig_done(r, "POST", "/sessions/v1?expire=3601", JSON_, NULL, 400);
}

/* A session's UUID is all it takes to use it. */
TEST(no_uuid_is_written_down)
{
    char path[80], target[200];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    session_new(r, "30", path);
    const char *uuid = path + strlen("/sessions/v1/");
    static const char *const asked[] = {"session=%s&op=create&name=e",
                                        "op=create&name=f&session=%s",
                                        "s%%65ssion=%s&op=create&name=g"};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        size_t n = (size_t)snprintf(target, sizeof target, "/znodes/v1/?");
        snprintf(target + n, sizeof target - n, asked[i], uuid);
        webrig_done(r, "POST", target, JSON_, NULL, 201);
    }
    webrig_done(r, "DELETE", path, JSON_, NULL, 204);
    size_t named = 0;
    for (size_t i = 0; i < r->naudits; i++) {
        assert_null(strstr(r->audits[i], uuid));
        named += strstr(r->audits[i], "op=create&name=f") || strstr(r->audits[i], "name=e");
    }
    assert_int_equal(named, 2);
    assert_int_equal(r->naudits, 5);
}
