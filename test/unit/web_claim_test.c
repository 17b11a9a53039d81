/* web_claim_test.c - locks, leases and leaderships over HTTP: asked for, waited for with the place
 * kept, lost, given back. See web_claim_gates_test.c and web_hold_test.c, too. */
#include <malloc.h>

#include "lib/claim_scene.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "server/server_internal.h"
#include "web/session/claim.h"

TEST(each_kind_is_held_and_given_back)
{
    static const char *const bodies[] = {
        "{\"path\": \"/l\"}",
        "{\"path\": \"/l\", \"kind\": \"lock\", \"lock_delay_ms\": 100, \"name\": \"n\"}",
        "{\"path\": \"/l\", \"kind\": \"read\"}",
        "{\"path\": \"/l\", \"kind\": \"write\"}",
        "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 2}",
        "{\"path\": \"/e\", \"kind\": \"election\"}",
    };
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    int64_t last = 0;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct webrig_call *c = user_sends(r, &u, "POST", 30, NULL, bodies[i]);
        user_expects(c, 201);
        assert_string_equal(webrig_member(c, "state"), "held");
        assert_true(atoll(webrig_member(c, "token")) > last);
        last = atoll(webrig_member(c, "token"));
        assert_true(atoi(webrig_member(c, "valid_ms")) > 4000);
        user_takes_claim(&u, c);
        c = user_sends(r, &u, "GET", -1, NULL, NULL);
        user_expects(c, 200);
        webrig_end(c);
        c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
        user_expects(c, 204);
        webrig_end(c);
        c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
        user_expects(c, 204);
        webrig_end(c);
        c = user_sends(r, &u, "GET", -1, NULL, NULL);
        user_expects(c, 410);
        assert_string_equal(webrig_member(c, "cause"), "released");
        webrig_end(c);
    }
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/e", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 0);
}

TEST(a_poll_keeps_its_place)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, LOCK));
    struct webrig_call *c = user_sends(r, &v, "POST", -1, NULL, LOCK);
    user_expects(c, 202);
    assert_string_equal(webrig_member(c, "position"), "2");
    user_takes_claim(&v, c);
    char before[8][96], after[8][96];
    assert_int_equal(memnet_list(r->net, 0, "/l", before, 8), 2);
    c = user_sends(r, &v, "GET", 3, NULL, NULL);
    assert_false(c->answered);
    webrig_advance(r, 3000);
    user_expects(c, 202);
    webrig_end(c);
    c = user_sends(r, &v, "GET", 30, NULL, NULL); /* and hangs up */
    webrig_advance(r, 3000);
    webrig_end(c);
    /* Only a poll keeps both sessions alive. */
    webrig_end(user_sends(r, &u, "GET", -1, NULL, NULL));
    c = user_sends(r, &v, "GET", 30, NULL, NULL);
    assert_false(c->answered);
    assert_int_equal(memnet_list(r->net, 0, "/l", after, 8), 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(before[i], after[i]);
    webrig_advance(r, 6000);
    struct webrig_call *d = user_sends(r, &u, "DELETE", -1, NULL, NULL);
    user_expects(d, 204);
    webrig_end(d);
    webrig_settle(r);
    user_expects(c, 200);
    /* Granted 6 s after the request: counted from the request all the same. */
    assert_true(atoi(webrig_member(c, "valid_ms")) > 11000);
    webrig_end(c);
}

TEST(a_long_poll_outlives_the_timeout)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, LOCK));
    struct webrig_call *c = user_sends(r, &v, "POST", 60, NULL, LOCK);
    webrig_advance(r, 8000);
    assert_false(c->answered);
    webrig_advance(r, 1500); /* u was silent: its lock is given back */
    user_expects(c, 201);
    assert_true(atoi(webrig_member(c, "valid_ms")) > 12000);
    webrig_end(c);
    c = user_sends(r, &u, "GET", -1, NULL, NULL);
    user_expects(c, 410);
    assert_string_equal(webrig_member(c, "cause"), "silent");
    webrig_end(c);
}

TEST(who_does_not_wait_leaves_nothing)
{
    static const char *const bodies[] = {
        "{\"path\": \"/l\"}",
        "{\"path\": \"/l\", \"kind\": \"write\"}",
        "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 1}",
        "{\"path\": \"/e\", \"kind\": \"election\"}",
    };
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct webrig_call *c = user_sends(r, &u, "POST", 0, NULL, bodies[i]);
        user_expects(c, 201);
        char node[128];
        snprintf(node, sizeof node, "%s", webrig_member(c, "node"));
        user_takes_claim(&u, c);
        c = user_sends(r, &v, "POST", 0, NULL, bodies[i]);
        user_expects(c, 409);
        assert_non_null(strstr(webrig_body(c), "\"holder\""));
        assert_non_null(strstr(node, webrig_member(c, "node")));
        webrig_end(c);
        webrig_end(user_sends(r, &u, "DELETE", -1, NULL, NULL));
    }
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/e", NULL, 0), 0);
}

/* A server that was restored from a backup grants nothing for a while, and nobody is in the way. */
TEST(a_restored_server_is_no_holder)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    struct session *quiet;
    user_enter(r, &u);
    clave_err err =
        clave__sessions_add(&r->net->server->sessions, SESSION_OF_RESTORE, INT32_MAX, &quiet);
    assert_int_equal(err, CLAVE_OK);
    struct webrig_call *c = user_sends(r, &u, "POST", 0, NULL, LOCK);
    user_expects(c, 409);
    assert_non_null(strstr(webrig_body(c), "nobody holds it"));
    assert_null(strstr(webrig_body(c), "\"holder\""));
    webrig_end(c);
    clave__sessions_remove(&r->net->server->sessions, quiet);
    c = user_sends(r, &u, "POST", 0, NULL, LOCK);
    user_expects(c, 201);
    webrig_end(c);
}

/* A release that the servers refuse is none. */
TEST(a_refusal_of_the_servers_is_told)
{
    static const char acl[] = "{\"acl\": [{\"perms\": \"%s\", \"scheme\": \"world\", "
                              "\"id\": \"anyone\"}]}";
    static const struct web_access access = {.owner_uid = 7}; /* who may do everything */
    char text[128];
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &access});
    r->peer.is_unix = true;
    r->peer.uid = 7;
    struct user u, v;
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, LOCK));
    snprintf(text, sizeof text, acl, "ra");
    struct webrig_call *c = webrig_request(r, "PUT", "/v1/znodes/l?acl", NULL, text);
    user_expects(c, 200);
    webrig_end(c);
    c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
    user_expects(c, 403);
    webrig_end(c);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
    c = user_sends(r, &u, "POST", -1, "Idempotency-Key: 2", LOCK);
    user_expects(c, 403);
    webrig_end(c);
    v = u;
    user_takes_claim(&v, user_sends(r, &u, "POST", -1, NULL, "{\"path\": \"/full\"}"));
    user_expects(c = user_sends(r, &v, "DELETE", -1, NULL, NULL), 204);
    webrig_end(c);
    clave__tree_find(&r->net->server->tree, clave__jbytes("/full"))->stat.cversion = INT32_MAX;
    c = user_sends(r, &u, "POST", -1, NULL, "{\"path\": \"/full\"}");
    user_expects(c, 400); /* nothing was lost */
    assert_string_equal(webrig_member(c, "code"), "EBADARGS");
    webrig_end(c);
}

TEST(a_loss_is_told_with_its_cause)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, LOCK);
    char node[128], target[96];
    snprintf(node, sizeof node, "%s", webrig_member(c, "node"));
    user_takes_claim(&u, c);
    assert_int_equal(memnet_delete(r->net, 0, node), CLAVE_OK);
    /* No watch has told it yet: a renewal finds out. */
    c = user_sends(r, &u, "GET", -1, NULL, NULL);
    webrig_end(c);
    snprintf(target, sizeof target, "Clave-Session: %s", u.secret);
    struct webrig_call *d = webrig_request(r, "GET", "/v1/sessions", NULL, NULL);
    webrig_end(d);
    c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
    assert_true(c->status == 204 || c->status == 410);
    webrig_end(c);
    /* The session ends. */
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, LOCK));
    memnet_kill_session(r->net, 1);
    webrig_settle(r);
    webrig_end(user_sends(r, &u, "GET", -1, NULL, NULL)); /* it connects again */
    c = user_sends(r, &u, "GET", -1, NULL, NULL);
    user_expects(c, 410);
    assert_string_equal(webrig_member(c, "cause"), "expired");
    webrig_end(c);
}

TEST(a_session_ends_under_a_release)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, LOCK));
    v = u;
    user_takes_claim(&v, user_sends(r, &u, "POST", -1, NULL, "{\"path\": \"/other\"}"));
    memnet_rule(r->net, (struct memnet_rule){1, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
    struct webrig_call *d = user_sends(r, &v, "DELETE", -1, NULL, NULL);
    assert_false(c->answered || d->answered);
    memnet_refuse(r->net, 1, true);
    memnet_clear(r->net);
    webrig_advance(r, 10000);
    assert_true(c->answered && d->answered);
    assert_int_not_equal(c->status, 204);
    webrig_end(c);
    webrig_end(d);
    memnet_refuse(r->net, 1, false);
}

/* A session that does nothing but that takes no more and more memory. */
TEST(claims_that_ended_are_forgotten_in_time)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    char first[64] = "";
    for (int i = 0; i < 100; i++) {
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, LOCK));
        webrig_end(user_sends(r, &u, "DELETE", -1, NULL, NULL));
        webrig_advance(r, 700);
        if (i == 0)
            snprintf(first, sizeof first, "%s", u.claim);
    }
    struct webrig_call *c = user_sends(r, &u, "GET", -1, NULL, NULL);
    user_expects(c, 410);
    webrig_end(c);
    snprintf(u.claim, sizeof u.claim, "%s", first);
    c = user_sends(r, &u, "GET", -1, NULL, NULL);
    user_expects(c, 404);
    webrig_end(c);
}

TEST(a_session_has_so_many_claims)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    unsigned n = 0;
    user_enter(r, &u);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, LOCK);
    while (n < SESSION_CLAIMS + SESSION_ENDED_CLAIMS && strcmp(webrig_member(c, "id"), "") != 0) {
        char body[40];
        webrig_end(c);
        snprintf(body, sizeof body, "{\"path\": \"/l%u\"}", ++n);
        c = user_sends(r, &u, "POST", -1, NULL, body);
    }
    assert_true(n >= SESSION_CLAIMS);
    user_expects(c, 507);
    assert_string_equal(webrig_member(c, "code"), "EQUOTA");
    assert_string_equal(webrig_member(c, "detail"),
                        "a session has at most 1000 claims: end some, or use another session");
    webrig_end(c);
}

TEST(bad_claims_are_refused)
{
    static const char *const bodies[] = {
        "{}",
        "{\"path\": \"l\"}",
        "{\"path\": \"/l\", \"kind\": \"spin\"}",
        "{\"path\": \"/l\", \"limit\": 2}",
        "{\"path\": \"/l\", \"kind\": \"semaphore\"}",
        "{\"path\": \"/l\", \"kind\": \"read\", \"lock_delay_ms\": 1}",
        "{\"path\": \"/l\", \"what\": 1}",
        "{\"path\": 7}",
        "{\"path\": \"/l\", \"session\": \"1\"}",
        "{\"path\": \"/l\", \"ttl_ms\": 1000}",
        "[]",
    };
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, bodies[i]);
        user_expects(c, 400);
    }
}

static struct webrig_call *user_orders(struct webrig *r, const char *what, const char *body)
{
    char target[96];
    snprintf(target, sizeof target, "/v1/locks/l%s", what);
    return webrig_request(r, body ? "POST" : "GET", target, NULL, body);
}

TEST(a_token_holds_or_not)
{
    static const struct web_grant all = {WEB_ADMIN, "/"};
    static const struct web_user admin = {.name = "root", .uid = 7, .grants = &all, .ngrants = 1};
    static const struct web_access access = {.users = &admin, .nusers = 1, .owner_uid = -1};
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &access});
    r->peer = (struct web_peer){.is_unix = true, .uid = 7, .address = "unix"};
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    struct webrig_call *c =
        user_sends(r, &u, "POST", -1, NULL, "{\"path\": \"/l\", \"revocable\": true}");
    char token[32], query[64], order[96];
    snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
    user_takes_claim(&u, c);
    user_takes_claim(&v, user_sends(r, &v, "POST", -1, NULL, LOCK));
    snprintf(query, sizeof query, "?token=%s", token);
    c = user_orders(r, query, NULL);
    user_expects(c, 200);
    assert_non_null(strstr(webrig_body(c), "\"holds\": true"));
    webrig_end(c);
    c = user_orders(r, "?token=x", NULL);
    user_expects(c, 400);
    webrig_end(c);
    snprintf(order, sizeof order, "{\"token\": \"%s\", \"force\": true}", token);
    c = user_orders(r, "/break", order);
    user_expects(c, 200);
    webrig_end(c);
    c = user_orders(r, query, NULL);
    user_expects(c, 200);
    assert_non_null(strstr(webrig_body(c), "\"holds\": false"));
    webrig_end(c);
    c = user_sends(r, &v, "GET", 5, NULL, NULL);
    user_expects(c, 200);
    webrig_end(c);
}

TEST(the_leader_publishes_a_value)
{
    static const char election[] = "{\"path\": \"/e\", \"kind\": \"election\", \"name\": \"n\"}";
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v;
    char proof[160];
    user_enter(r, &u);
    user_enter(r, &v);
    user_takes_claim(&u, user_sends(r, &u, "POST", 5, NULL, election));
    user_takes_claim(&v, user_sends(r, &v, "POST", -1, NULL, election));
    snprintf(proof, sizeof proof, "Clave-Session: %s", u.secret);
    struct webrig_call *c =
        webrig_request_bytes(r, "PUT", "/v1/elections/e/value", proof, "10.0.0.1", 8);
    user_expects(c, 204);
    webrig_end(c);
    snprintf(proof, sizeof proof, "Clave-Session: %s", v.secret);
    c = webrig_request_bytes(r, "PUT", "/v1/elections/e/value", proof, "10.0.0.2", 8);
    user_expects(c, 410);
    webrig_end(c);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t live; /* bytes that are out */

static void *count_alloc(void *arg, size_t n)
{
    (void)arg;
    void *p = malloc(n);
    live += malloc_usable_size(p);
    return p;
}

static void *count_realloc(void *arg, void *p, size_t n)
{
    (void)arg;
    live -= malloc_usable_size(p);
    p = realloc(p, n);
    live += malloc_usable_size(p);
    return p;
}

static void count_free(void *arg, void *p)
{
    (void)arg;
    live -= malloc_usable_size(p);
    free(p);
}

/* A gate may have thousands of them. */
TEST(a_claim_that_waits_is_small)
{
    enum { MOST = 6 * 1024 };
    static const clave_mem counted = {count_alloc, count_realloc, count_free, NULL};
    const struct webrig_options o = {.mem = &counted};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    struct user holder, u;
    user_enter(r, &holder);
    user_enter(r, &u);
    user_takes_claim(&holder, user_sends(r, &holder, "POST", -1, NULL, LOCK));
    size_t before = live;
    struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, LOCK);
    user_expects(c, 202);
    webrig_end(c);
    assert_in_range(live - before, 1, MOST);
}
