/* web_access_test.c - who may send what: tokens, peers, roles below paths; hosts and origins;
 * sizes; what is written down. */
#include "lib/claim_scene.h"
#include "lib/unit.h"

static const struct web_grant lock_jobs[] = {{WEB_LOCK, "/jobs"}, {WEB_READ, "/"}};
static const struct web_grant all[] = {{WEB_ADMIN, "/"}};
static const struct web_user users[] = {
    {.name = "ci", .token = "s3cret", .uid = -1, .grants = lock_jobs, .ngrants = 2},
    {.name = "root of it", .token = "other", .uid = 1001, .grants = all, .ngrants = 1},
    {.token = "nobody", .uid = -1, .grants = lock_jobs, .ngrants = 2},
    {.name = "host7", .uid = -1, .tls_subject = "CN=host7", .grants = all, .ngrants = 1},
};
static const char *const hosts[] = {"gate.example.com"};
static const struct web_access access_of_test = {
    .users = users, .nusers = 4, .owner_uid = 1000, .hosts = hosts, .nhosts = 1};

static struct webrig *rig_with_users(void)
{
    struct webrig_options o = {.access = &access_of_test};
    return webrig_new(&o);
}

static void check(struct webrig *r, const char *headers, unsigned status)
{
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(r, "GET", "/v1/server", headers, NULL);
    if (c->status != status)
        print_error("%s: %u, not %u: %s\n", headers ? headers : "none", c->status, status,
                    webrig_body(c));
    assert_int_equal(c->status, status);
}

/* ---- who ------------------------------------------------------------------------------------ */

TEST(without_users_loopback_may_read_and_lock)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct webrig_call *c = webrig_request(r, "GET", "/v1/whoami", NULL, NULL);
    assert_int_equal(c->status, 200);
    assert_string_equal(
        webrig_body(c),
        "{\"name\": \"loopback\", \"grants\": [{\"role\": \"lock\", \"prefix\": \"/\"}]}");
    webrig_end(c);
    r->peer.is_loopback = false;
    check(r, NULL, 401);
    check(r, "Authorization: Bearer s3cret", 401);
}

TEST(a_token_says_who_it_is)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_with_users();
    check(r, NULL, 401);
    check(r, "Authorization: Bearer s3cret", 200);
    check(r, "authorization: bearer other", 200);
    check(r, "Authorization: Bearer nobody", 200);
    check(r, "Authorization: Bearer s3cre", 401);
    check(r, "Authorization: Bearer s3crets3cret", 401);
    check(r, "Authorization: Bearer ", 401);
    check(r, "Authorization: Basic s3cret", 401);
    struct webrig_call *c = webrig_request(r, "GET", "/v1/server", NULL, NULL);
    assert_string_equal(webrig_header(c, "WWW-Authenticate"), "Bearer");
    assert_string_equal(webrig_member(c, "code"), "EAUTHFAILED");
    webrig_end(c);
    c = webrig_request(r, "GET", "/healthz", NULL, NULL);
    assert_int_equal(c->status, 200);
}

TEST(a_peer_is_known_by_uid_or_certificate)
{
    static const struct {
        struct web_peer peer;
        unsigned status;
        const char *name;
    } cases[] = {
        {{.is_unix = true, .uid = 1000}, 200, "owner"},
        {{.is_unix = true, .uid = 0}, 200, "owner"},
        {{.is_unix = true, .uid = 1001}, 200, "root of it"},
        {{.is_unix = true, .uid = 1002}, 401, NULL},
        {{.is_unix = true, .uid = -1}, 401, NULL},
        {{.is_unix = false, .uid = 1000}, 401, NULL},
        {{.is_tls = true, .uid = -1, .tls_subject = "CN=host7"}, 200, "host7"},
        {{.is_tls = true, .uid = -1, .tls_subject = "CN=host8"}, 401, NULL},
    };
    CLOSED_BY(webrig_freed) struct webrig *r = rig_with_users();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        r->peer = cases[i].peer;
        r->peer.address = "somewhere";
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", "/v1/whoami", NULL, NULL);
        assert_int_equal(c->status, cases[i].status);
        if (cases[i].name)
            assert_string_equal(webrig_member(c, "name"), cases[i].name);
    }
}

TEST(a_role_counts_below_its_path)
{
    static const struct web_grant grants[] = {{WEB_WRITE, "/a"}, {WEB_READ, "/b/"}};
    static const struct {
        enum web_role role;
        const char *path;
        bool may;
    } cases[] = {
        {WEB_READ, "/a", true},   {WEB_WRITE, "/a/b/c", true}, {WEB_ADMIN, "/a", false},
        {WEB_READ, "/ab", false}, {WEB_READ, "/b", true},      {WEB_LOCK, "/b/c", false},
        {WEB_READ, "/", false},   {WEB_READ, NULL, true},      {WEB_ADMIN, NULL, false},
        {WEB_NONE, "/c", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(clave__access_covers(grants, 2, cases[i].role, cases[i].path),
                         cases[i].may);
    assert_false(clave__access_covers(grants, 0, WEB_READ, NULL));
}

/* Locking makes nodes. */
TEST(the_lock_role_makes_nothing_below_zookeeper)
{
    static const struct {
        const char *path;
        bool may;
    } cases[] = {{"/zookeeper", false},
                 {"/zookeeper/quota/x", false},
                 {"/zookeeperx", true},
                 {"/a/zookeeper", true}};
    static const char *const targets[] = {"/v1/claims", "/v1/hold"};
    const struct web_grant lock = {WEB_LOCK, "/"}, write = {WEB_WRITE, "/"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(clave__access_covers(&lock, 1, WEB_LOCK, cases[i].path), cases[i].may);
        assert_true(clave__access_covers(&write, 1, WEB_LOCK, cases[i].path));
    }
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char headers[128];
        snprintf(headers, sizeof headers, "Clave-Session: %s", u.secret);
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "POST", targets[i], i == 0 ? headers : NULL,
                                               "{\"path\": \"/zookeeper/quota/l\"}");
        user_expects(c, 403);
    }
}

/* What /metrics needs read on / for. */
TEST(figures_of_the_server_are_for_those_who_may_read_all)
{
    static const struct {
        const char *token;
        bool told;
    } cases[] = {{"Authorization: Bearer some", false}, {"Authorization: Bearer other", true}};
    static const struct web_grant jobs[] = {{WEB_ADMIN, "/jobs"}};
    static const struct web_user both[] = {
        {.token = "some", .uid = -1, .grants = jobs, .ngrants = 1},
        {.token = "other", .uid = -1, .grants = all, .ngrants = 1}};
    static const struct web_access access = {.users = both, .nusers = 2};
    const int64_t figures[WEB_FIGURES] = {[WEB_ZNODES] = 4711};
    struct webrig_options o = {.access = &access};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    clave__web_take_figures(r->web, r->net->now, figures);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct webrig_call *c =
            webrig_request(r, "GET", "/v1/server?samples", cases[i].token, NULL);
        assert_int_equal(c->status, 200);
        assert_int_equal(strstr(webrig_body(c), "4711") != NULL, cases[i].told);
        assert_int_equal(strstr(webrig_body(c), "\"samples\"") != NULL, cases[i].told);
        assert_non_null(strstr(webrig_body(c), "\"current\""));
        webrig_end(c);
    }
}

TEST(roles_have_names)
{
    enum web_role role = WEB_NONE;
    assert_true(clave__web_role_parse("write", &role));
    assert_int_equal(role, WEB_WRITE);
    assert_false(clave__web_role_parse("none", &role));
    assert_false(clave__web_role_parse("root", &role));
    assert_string_equal(clave__web_role_name(WEB_LOCK), "lock");
}

TEST(other_tokens_count_at_once)
{
    static const struct web_access none = {.owner_uid = -1, .users = users + 1, .nusers = 1};
    CLOSED_BY(webrig_freed) struct webrig *r = rig_with_users();
    check(r, "Authorization: Bearer s3cret", 200);
    struct webrig_call *stream =
        webrig_request(r, "GET", "/v1/events", "Authorization: Bearer s3cret", NULL);
    assert_int_equal(stream->status, 200);
    assert_false(stream->done);
    clave__web_set_access(r->web, &none);
    webrig_settle(r);
    assert_true(stream->done); /* its token is in the file no more */
    webrig_end(stream);
    check(r, "Authorization: Bearer s3cret", 401);
    check(r, "Authorization: Bearer other", 200);
}

/* ---- from where ----------------------------------------------------------------------------- */

TEST(only_the_gates_own_names_are_answered)
{
    static const struct {
        const char *host;
        unsigned status;
    } cases[] = {
        {"Host: localhost:8080", 200},
        {"Host: LOCALHOST", 200},
        {"Host: 10.0.0.7:80", 200},
        {"Host: [::1]:80", 200},
        {"Host: [fe80::1]", 200},
        {"Host: gate.example.com:443", 200},
        {"Host: Gate.Example.com", 200},
        {"Host: evil.example", 421},
        {"Host: localhost.evil", 421},
        {"Host: gate.example.com.evil", 421},
        {"Host: [::1].evil", 421},
        {"Host: [evil]", 421},
        {"Host: [::1", 421},
        {"Host: 127.0.0.1.evil", 421},
        {"Host: :80", 421},
    };
    CLOSED_BY(webrig_freed) struct webrig *r = rig_with_users();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", "/healthz", cases[i].host, NULL);
        if (c->status != cases[i].status)
            print_error("%s\n", cases[i].host);
        assert_int_equal(c->status, cases[i].status);
    }
}

/* The host in the target, not that in the header. */
TEST(a_host_in_the_target_counts)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_with_users();
    static const struct {
        const char *target, *host;
        unsigned status;
    } cases[] = {
        {"http://localhost:8080/healthz", "Host: evil.example", 200},
        {"http://evil.example/healthz", "Host: localhost", 421},
        {"http://root@localhost/healthz", "Host: localhost", 421},
        {"http:///healthz", "Host: localhost", 421},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", cases[i].target, cases[i].host, NULL);
        assert_int_equal(c->status, cases[i].status);
    }
}

TEST(pages_of_other_sites_get_nothing_done)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    check(r, "Origin: http://localhost:8080", 200);
    check(r, "Origin: https://localhost:8080\nSec-Fetch-Site: same-origin", 200);
    check(r, "Sec-Fetch-Site: none", 200);
    check(r, "Origin: http://localhost:9090", 403);
    check(r, "Origin: http://evil.example", 403);
    check(r, "Origin: null", 403);
    check(r, "Sec-Fetch-Site: cross-site", 403);
    check(r, "Sec-Fetch-Site: same-site", 403);
    r->peer.is_tls = true; /* what came without TLS, anybody on the way could have written */
    check(r, "Origin: http://localhost:8080", 403);
    check(r, "Origin: https://localhost:8080", 200);
}

/* ---- sizes, arguments ----------------------------------------------------------------------- */

TEST(what_is_too_large_is_refused)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    enum { BIG = 3 << 20 };
    char *big = malloc(BIG + 1);
    memset(big, 'a', BIG);
    big[BIG] = '\0';
    big[0] = '/';
    struct webrig_call *c = webrig_request(r, "GET", big, NULL, NULL);
    assert_int_equal(c->status, 414);
    webrig_end(c);
    c = webrig_request(r, "GET", "/healthz", NULL, big);
    assert_int_equal(c->status, 413);
    webrig_end(c);
    memcpy(big, "X: ", 3);
    big[20000] = '\0';
    c = webrig_request(r, "GET", "/healthz", big, NULL);
    assert_int_equal(c->status, 431);
    free(big);
}

TEST(an_argument_that_is_not_there_is_told)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct webrig_call *c = webrig_request(r, "GET", "/v1/server?limit=3", NULL, NULL);
    assert_int_equal(c->status, 400);
    assert_string_equal(webrig_member(c, "detail"), "unknown query parameter \\");
}

/* ---- the page ------------------------------------------------------------------------------- */

TEST(the_page_may_be_linked_to_and_is_kept)
{
    static const struct web_asset assets[] = {
        {"index.html", "text/html; charset=utf-8", "\"1\"", "gzip", 4},
        {"page.js", "text/javascript", "\"2\"", "gzip2", 5},
    };
    struct webrig_options o = {.assets = assets, .nassets = 2};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    struct webrig_call *c = webrig_request(r, "GET", "/", "Sec-Fetch-Site: cross-site", NULL);
    assert_int_equal(c->status, 308);
    assert_string_equal(webrig_header(c, "Location"), "ui/");
    webrig_end(c);
    c = webrig_request(r, "GET", "/ui/", "Sec-Fetch-Site: cross-site", NULL);
    assert_int_equal(c->status, 200);
    assert_string_equal(webrig_body(c), "gzip");
    assert_string_equal(webrig_header(c, "Content-Encoding"), "gzip");
    assert_non_null(strstr(webrig_header(c, "Content-Security-Policy"), "default-src 'self'"));
    webrig_end(c);
    c = webrig_request(r, "GET", "/ui/page.js", "If-None-Match: \"2\"", NULL);
    assert_int_equal(c->status, 304);
    assert_string_equal(webrig_body(c), "");
    webrig_end(c);
    c = webrig_request(r, "GET", "/ui/../web.c", NULL, NULL);
    assert_int_equal(c->status, 404);
}

/* ---- what is written down ------------------------------------------------------------------- */

TEST(refusals_are_written_down_and_reads_are_not)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_with_users();
    check(r, "Authorization: Bearer s3cret", 200);
    assert_int_equal(r->naudits, 0);
    check(r, "Authorization: Bearer wrong", 401);
    check(r, "Authorization: Bearer s3cret\nOrigin: http://evil.example", 403);
    check(r, "Host: evil.example", 421);
    assert_int_equal(r->naudits, 3);
    assert_string_equal(r->audits[0], " GET /v1/server 401");
    assert_string_equal(r->audits[2], " GET /v1/server 421");
}
