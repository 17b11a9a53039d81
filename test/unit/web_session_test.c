/* web_session_test.c - sessions over HTTP: made, renewed, attached to again, and their end. */
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "lib/webrig.h"
#include "web/session/http_session.h"

struct user {
    char id[32], secret[96], header[160];
};

static void user_enter(struct webrig *r, struct user *u, const char *body)
{
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(r, "POST", "/v1/sessions", NULL, body);
    assert_true(c->answered);
    assert_int_equal(c->status, 201);
    snprintf(u->id, sizeof u->id, "%s", webrig_member(c, "id"));
    snprintf(u->secret, sizeof u->secret, "%s", webrig_member(c, "secret"));
    snprintf(u->header, sizeof u->header, "Clave-Session: %s", u->secret);
}

static struct webrig_call *user_asks(struct webrig *r, const struct user *u, const char *method,
                                     const char *what)
{
    char target[128];
    snprintf(target, sizeof target, "/v1/sessions/%s%s", u->id, what);
    return webrig_request(r, method, target, u->header, NULL);
}

static void expect(struct webrig_call *c, unsigned status)
{
    assert_true(c->answered);
    if (c->status != status)
        print_error("%s\n", webrig_body(c));
    assert_int_equal(c->status, status);
}

/* It says that it is this gate which cannot read the secret: the session may live. */
TEST(a_secret_of_another_key_has_a_code_of_its_own)
{
    static const uint8_t key[32] = {7};
    struct webrig *r = webrig_new(NULL),
                  *other = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u;
    user_enter(r, &u, "{}");
    struct webrig_call *c = user_asks(other, &u, "POST", "/renew");
    expect(c, 403);
    assert_string_equal(webrig_member(c, "code"), "EOTHERKEY");
    webrig_end(c);
    webrig_free(r);
    webrig_free(other);
}

/* The server of --require-auth does nothing for a session without an identity, and that is what
 * every request for one is told. */
TEST(a_session_without_the_identity_that_is_required_is_told)
{
    static const struct {
        const char *method, *target, *body;
    } requests[] = {
        {"POST", "/v1/claims", "{\"path\": \"/l\"}"},
        {"POST", "/v1/claims", "{\"path\": \"/l\", \"kind\": \"election\"}"},
        {"POST", "/v1/claims", "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 2}"},
        {"POST", "/v1/multi", "{\"ops\": [{\"op\": \"create\", \"path\": \"/x\"}]}"},
        {"PUT", "/v1/znodes/x", "y"},
        {"GET", "/v1/znodes/x", NULL},
    };
    char headers[256];
    const clave_auth gate = {.scheme = "digest", .auth = "gate:secret", .len = 11};
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(
        &(struct webrig_options){.net = {.require_auth = "digest"}, .auths = &gate, .nauths = 1});
    struct user u;
    r->peer = (struct web_peer){.is_unix = true, .uid = 0};
    for (int wait = -1; wait <= 0; wait++)
        for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
            user_enter(r, &u, "{}");
            snprintf(headers, sizeof headers, "%s%s", u.header,
                     wait == 0 ? "\nPrefer: wait=0" : "");
            CLOSED_BY(webrig_ended)
            struct webrig_call *c = webrig_request(r, requests[i].method, requests[i].target,
                                                   headers, requests[i].body);
            for (int n = 0; n < 40 && !c->answered; n++)
                webrig_advance(r, 100);
            expect(c, 401);
            assert_string_equal(webrig_member(c, "code"), "ESASLREQUIRED");
            assert_non_null(strstr(webrig_body(c), "--require-auth"));
        }
}

/* That of a session without identities, as every version has made it. */
#define OLD_SECRET "xOk4dgQ1Jhoc1obi9BbQQ7Its-AJaUqAKy3lt2uQ-L5PozZT2p1DxjWXPYE"

TEST(a_secret_is_made_and_read_with_its_key_only)
{
    static const size_t lengths[] = {0, 1, 2, 3, 20, SEAL_AUTHS};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        static const uint8_t bytes[2][SEAL_KEY] = {{1, 2, 3}, {1, 2, 4}};
        struct hmac_key key, other;
        clave__hmac_take_key(&key, bytes[0], SEAL_KEY);
        clave__hmac_take_key(&other, bytes[1], SEAL_KEY);
        struct sealed_session in = {.id = -77, .ttl_ms = 15000, .nauths = lengths[l]}, out;
        char text[SEAL_TEXT + 2];
        for (size_t i = 0; i < sizeof in.passwd; i++)
            in.passwd[i] = (uint8_t)(i * 17);
        for (size_t i = 0; i < in.nauths; i++)
            in.auths[i] = (char)(i * 31);
        clave__seal(&key, &in, text);
        assert_int_equal(strlen(text), ((SEAL_TAG + SEAL_PLAIN + in.nauths) * 8 + 5) / 6);
        if (in.nauths == 0)
            assert_string_equal(text, OLD_SECRET);
        assert_true(clave__unseal(&key, text, &out));
        assert_true(out.id == in.id && out.ttl_ms == in.ttl_ms && out.nauths == in.nauths);
        assert_memory_equal(out.passwd, in.passwd, sizeof in.passwd);
        assert_memory_equal(out.auths, in.auths, in.nauths);
        assert_false(clave__unseal(&other, text, &out));
        for (size_t i = 0; text[i]; i++) {
            char was = text[i];
            text[i] = was == 'A' ? 'B' : 'A';
            assert_false(clave__unseal(&key, text, &out));
            text[i] = was;
        }
        assert_false(clave__unseal(&key, "", &out));
        size_t n = strlen(text);
        text[n] = 'A';
        text[n + 1] = '\0';
        assert_false(clave__unseal(&key, text, &out));
        for (; n > 0; n--) { /* every beginning of it */
            text[n - 1] = '\0';
            assert_false(clave__unseal(&key, text, &out));
        }
    }
}

TEST(validity_is_counted_from_the_request)
{
    struct validity v = {
        .arrived = 1000, .granted = 0, .hold_deadline = 9000, .ttl_ms = 10000, .now = 1000};
    assert_int_equal(clave__validity_ms(&v), 8000); /* the hold deadline */
    v.hold_deadline = 99000;
    assert_int_equal(clave__validity_ms(&v), 10000); /* the silence that the gate bears */
    v.granted = 30000;
    v.now = 30000;
    assert_int_equal(clave__validity_ms(&v), 39000 - (29000 + 63) / 64);
    v.hold_deadline = 1000;
    assert_int_equal(clave__validity_ms(&v), 0);
    v.hold_deadline = INT64_MIN;
    assert_int_equal(clave__validity_ms(&v), 0);
}

TEST(a_session_is_made_renewed_and_ended)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u, "{\"ttl_ms\": 8000, \"name\": \"nightly\"}");
    struct webrig_call *c = user_asks(r, &u, "POST", "/renew");
    expect(c, 200);
    assert_string_equal(webrig_member(c, "id"), u.id);
    assert_string_equal(webrig_member(c, "ttl_ms"), "8000");
    assert_int_equal(atoi(webrig_member(c, "valid_ms")), 7000); /* less the margin */
    webrig_end(c);
    c = user_asks(r, &u, "DELETE", "");
    expect(c, 204);
    webrig_end(c);
    c = user_asks(r, &u, "POST", "/renew");
    expect(c, 410);
    assert_string_equal(webrig_member(c, "cause"), "closed");
    webrig_end(c);
}

TEST(what_proves_nothing_is_refused)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u, NULL);
    user_enter(r, &v, NULL);
    char target[96];
    snprintf(target, sizeof target, "/v1/sessions/%s/renew", u.id);
    struct webrig_call *c = webrig_request(r, "POST", target, NULL, NULL);
    expect(c, 401);
    webrig_end(c);
    c = webrig_request(r, "POST", target, "Clave-Session: guess", NULL);
    expect(c, 403);
    webrig_end(c);
    c = webrig_request(r, "POST", target, v.header, NULL);
    expect(c, 403);
    webrig_end(c);
}

TEST(sessions_are_bounded)
{
    char name[1100];
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.max_sessions = 2});
    struct user u, v;
    user_enter(r, &u, "{}");
    user_enter(r, &v, "{}");
    struct webrig_call *c = webrig_request(r, "POST", "/v1/sessions", NULL, "{}");
    expect(c, 429);
    webrig_end(c);
    c = user_asks(r, &u, "DELETE", "");
    expect(c, 204);
    webrig_end(c);
    webrig_advance(r, 60000); /* until it is forgotten */
    user_enter(r, &u, "{}");
    snprintf(name, sizeof name, "{\"name\": \"%01050d\"}", 0);
    c = webrig_request(r, "POST", "/v1/sessions", NULL, name);
    expect(c, 400);
    webrig_end(c);
}

TEST(a_silent_clients_session_ends)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u, "{\"ttl_ms\": 8000}");
    webrig_advance(r, 7000);
    struct webrig_call *c = user_asks(r, &u, "POST", "/renew");
    expect(c, 200);
    webrig_end(c);
    webrig_advance(r, 8000);
    assert_int_equal(memnet_stats(r->net).sessions, 2); /* and the engine's own */
    webrig_advance(r, 1000);
    c = user_asks(r, &u, "POST", "/renew");
    expect(c, 410);
    assert_string_equal(webrig_member(c, "cause"), "silent");
    webrig_end(c);
    webrig_advance(r, 12000);
    assert_int_equal(memnet_stats(r->net).sessions, 1);
    /* And when it is forgotten, the servers say so. */
    webrig_advance(r, 20000);
    c = user_asks(r, &u, "POST", "/renew");
    expect(c, 410);
    assert_string_equal(webrig_member(c, "cause"), "expired");
    webrig_end(c);
}

TEST(another_gate_attaches_to_the_session)
{
    static const uint8_t key[32] = {42};
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct web *first = r->web;
    struct user u;
    user_enter(r, &u, "{\"ttl_ms\": 8000}");
    webrig_second(r);
    assert_true(r->web != first);
    struct webrig_call *c = user_asks(r, &u, "POST", "/renew");
    expect(c, 200);
    assert_string_equal(webrig_member(c, "id"), u.id);
    assert_true(atoi(webrig_member(c, "valid_ms")) >= 5000);
    webrig_end(c);
    /* The first gate does not take it back by itself. */
    uint64_t handshakes = memnet_stats(r->net).sessions;
    webrig_advance(r, 3000);
    c = user_asks(r, &u, "POST", "/renew");
    expect(c, 200);
    webrig_end(c);
    assert_int_equal(memnet_stats(r->net).sessions, handshakes);
}

/* A node that only its identity may read is its own at the other gate, too. */
TEST(another_gate_knows_its_identities)
{
    static const uint8_t key[32] = {42};
    static const char acl[] =
        "{\"acl\": [{\"perms\": \"cdrwa\", \"scheme\": \"auth\", \"id\": \"\"}]}";
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct webrig_call *c;
    char secret[256];
    assert_int_equal(memnet_create(r->net, 0, "/n"), CLAVE_OK);
    c = webrig_request(r, "POST", "/v1/sessions", NULL,
                       "{\"ttl_ms\": 8000, \"auth\": [\"digest:ann:secret\", \"digest:b:c\"]}");
    expect(c, 201);
    snprintf(secret, sizeof secret, "Clave-Session: %s", webrig_member(c, "secret"));
    webrig_end(c);
    r->peer = (struct web_peer){.is_unix = true, .address = "unix"}; /* who may write */
    c = webrig_request(r, "PUT", "/v1/znodes/n?acl", secret, acl);
    expect(c, 200);
    webrig_end(c);
    webrig_second(r);
    c = webrig_request(r, "GET", "/v1/znodes/n", NULL, NULL);
    expect(c, 403);
    webrig_end(c);
    c = webrig_request(r, "GET", "/v1/znodes/n", secret, NULL);
    expect(c, 200);
    webrig_end(c);
}

TEST(identities_are_bounded)
{
    static const struct {
        size_t each, n;
        unsigned status;
    } rows[] = {{1023, 1, 201}, {1024, 1, 400}, {63, 16, 201}, {64, 16, 400}, {9, 17, 400}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
        char body[2048], text[1100];
        size_t at = (size_t)sprintf(body, "{\"auth\": [");
        memset(text, 'x', sizeof text);
        memcpy(text, "digest:a:", 9);
        text[rows[i].each] = '\0';
        for (size_t k = 0; k < rows[i].n; k++)
            at += (size_t)sprintf(body + at, "%s\"%s\"", k ? ", " : "", text);
        sprintf(body + at, "]}");
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "POST", "/v1/sessions", NULL, body);
        expect(c, rows[i].status);
        if (rows[i].n < 17 && rows[i].status == 400)
            assert_non_null(strstr(webrig_body(c), "more than 1024 bytes"));
    }
}

TEST(an_expired_session_is_never_another)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u, "{\"ttl_ms\": 8000}");
    memnet_kill_session(r->net, 1);
    webrig_settle(r);
    struct webrig_call *c = user_asks(r, &u, "POST", "/renew");
    expect(c, 410);
    webrig_end(c);
    assert_int_equal(memnet_stats(r->net).sessions, 1);
}

TEST(a_renewal_under_an_end_is_not_proven)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u, "{\"ttl_ms\": 8000}");
    memnet_refuse(r->net, 1, true);
    struct webrig_call *c = user_asks(r, &u, "POST", "/renew");
    struct webrig_call *d = user_asks(r, &u, "DELETE", "");
    struct webrig_call *again[] = {user_asks(r, &u, "POST", "/renew"),
                                   user_asks(r, &u, "DELETE", "")};
    assert_false(c->answered || d->answered || again[0]->answered || again[1]->answered);
    webrig_advance(r, 20000); /* no server has said that the session has expired */
    expect(c, 503);
    expect(d, 504);
    expect(again[0], 503);
    expect(again[1], 503);
    webrig_end(c);
    webrig_end(d);
    webrig_end(again[0]);
    webrig_end(again[1]);
    memnet_refuse(r->net, 1, false);
    c = user_asks(r, &u, "POST", "/renew");
    expect(c, 410);
    webrig_end(c);
}

/* Paths that are too long for the checks of one transaction do not end a session. */
TEST(a_renewal_that_is_too_big_is_no_end)
{
    enum { LEN = 8000, CLAIMS = 140 };
    static char body[LEN + 64];
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u, "{\"ttl_ms\": 8000}");
    memset(body, 'a', sizeof body);
    for (int i = 0; i < CLAIMS; i++) {
        size_t n = (size_t)sprintf(body, "{\"path\": \"/%03d", i);
        body[n] = 'a';
        memcpy(body + n + LEN, "\"}", sizeof "\"}");
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "POST", "/v1/claims", u.header, body);
        expect(c, 201);
    }
    struct webrig_call *c = user_asks(r, &u, "POST", "/renew");
    expect(c, 413);
    webrig_end(c);
    c = user_asks(r, &u, "DELETE", "");
    expect(c, 204);
    webrig_end(c);
}

TEST(an_unknown_server_is_told)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    memnet_stop_server(r->net);
    struct webrig_call *c = webrig_request(r, "POST", "/v1/sessions", NULL, NULL);
    assert_false(c->answered);
    webrig_advance(r, 3000);
    expect(c, 503);
    webrig_end(c);
    memnet_start_server(r->net);
}

TEST(a_renewal_waits_for_the_servers_not_beyond_the_session)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u, "{\"ttl_ms\": 8000}");
    memnet_stop_server(r->net);
    struct webrig_call *c = user_asks(r, &u, "POST", "/renew");
    assert_false(c->answered);
    memnet_start_server(r->net);
    webrig_advance(r, 2500);
    expect(c, 200);
    webrig_end(c);
    memnet_stop_server(r->net);
    c = user_asks(r, &u, "POST", "/renew");
    webrig_advance(r, 9000);
    expect(c, 503);
    webrig_end(c);
    /* It may live on: that the servers say. */
    c = user_asks(r, &u, "POST", "/renew");
    webrig_advance(r, 11000);
    expect(c, 503);
    webrig_end(c);
    memnet_start_server(r->net);
    c = user_asks(r, &u, "POST", "/renew");
    webrig_advance(r, 3000);
    expect(c, 200);
    webrig_end(c);
}

/* The list has what all of them hold, wherever that is. */
TEST(the_list_is_for_who_may_do_everything)
{
    static const struct web_grant jobs[] = {{WEB_ADMIN, "/jobs"}};
    static const struct web_user users[] = {{.uid = 7, .grants = jobs, .ngrants = 1}};
    static const struct web_access access = {.users = users, .nusers = 1, .owner_uid = 8};
    struct webrig_options o = {.access = &access};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    r->peer.is_unix = true;
    r->peer.uid = 7;
    struct webrig_call *c = webrig_request(r, "GET", "/v1/sessions", NULL, NULL);
    expect(c, 403);
    webrig_end(c);
    r->peer.uid = 8;
    c = webrig_request(r, "GET", "/v1/sessions", NULL, NULL);
    expect(c, 200);
    webrig_end(c);
}
