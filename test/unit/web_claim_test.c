/* web_claim_test.c - locks, leases and leaderships over HTTP: asked for, waited for with the place
 * kept, lost, given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <malloc.h>

#include "lib/mutex_owner.h"
#include "lib/webrig.h"
#include "server/server_internal.h"

struct user {
    char secret[96];
    char claim[64];
};

static void expect(struct webrig_call *c, unsigned status)
{
    assert_true(c->answered);
    if (c->status != status)
        print_error("%s\n", webrig_body(c));
    assert_int_equal(c->status, status);
}

static void user_enter(struct webrig *r, struct user *u)
{
    struct webrig_call *c = webrig_request(r, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 8000}");
    expect(c, 201);
    snprintf(u->secret, sizeof u->secret, "%s", webrig_member(c, "secret"));
    webrig_end(c);
}

/* `wait` in seconds; -1: no preference. */
static struct webrig_call *user_sends(struct webrig *r, const struct user *u, const char *method,
                                      int wait, const char *more, const char *body)
{
    char headers[320], target[96] = "/v1/claims";
    int n = snprintf(headers, sizeof headers, "Clave-Session: %s", u->secret);
    if (wait >= 0)
        n += snprintf(headers + n, sizeof headers - (size_t)n, "\nPrefer: wait=%d", wait);
    if (more)
        snprintf(headers + n, sizeof headers - (size_t)n, "\n%s", more);
    if (strcmp(method, "POST") != 0)
        snprintf(target, sizeof target, "/v1/claims/%s", u->claim);
    return webrig_request(r, method, target, headers, body);
}

static void user_takes_claim(struct user *u, struct webrig_call *c)
{
    snprintf(u->claim, sizeof u->claim, "%s", webrig_member(c, "id"));
    webrig_end(c);
}

static const char lock[] = "{\"path\": \"/l\"}";

static void each_kind_is_held_and_given_back(void **state)
{
    static const char *const bodies[] = {
        "{\"path\": \"/l\"}",
        "{\"path\": \"/l\", \"kind\": \"lock\", \"lock_delay_ms\": 100, \"name\": \"n\"}",
        "{\"path\": \"/l\", \"kind\": \"read\"}",
        "{\"path\": \"/l\", \"kind\": \"write\"}",
        "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 2}",
        "{\"path\": \"/e\", \"kind\": \"election\"}",
    };
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    int64_t last = 0;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct webrig_call *c = user_sends(r, &u, "POST", 30, NULL, bodies[i]);
        expect(c, 201);
        assert_string_equal(webrig_member(c, "state"), "held");
        assert_true(atoll(webrig_member(c, "token")) > last);
        last = atoll(webrig_member(c, "token"));
        assert_true(atoi(webrig_member(c, "valid_ms")) > 4000);
        user_takes_claim(&u, c);
        c = user_sends(r, &u, "GET", -1, NULL, NULL);
        expect(c, 200);
        webrig_end(c);
        c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
        expect(c, 204);
        webrig_end(c);
        c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
        expect(c, 204);
        webrig_end(c);
        c = user_sends(r, &u, "GET", -1, NULL, NULL);
        expect(c, 410);
        assert_string_equal(webrig_member(c, "cause"), "released");
        webrig_end(c);
    }
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/e", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 0);
    webrig_free(r);
}

static void a_poll_keeps_its_place(void **state)
{
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, lock));
    struct webrig_call *c = user_sends(r, &v, "POST", -1, NULL, lock);
    expect(c, 202);
    assert_string_equal(webrig_member(c, "position"), "1");
    user_takes_claim(&v, c);
    char before[8][96], after[8][96];
    assert_int_equal(memnet_list(r->net, 0, "/l", before, 8), 2);
    c = user_sends(r, &v, "GET", 3, NULL, NULL);
    assert_false(c->answered);
    webrig_advance(r, 3000);
    expect(c, 202);
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
    expect(d, 204);
    webrig_end(d);
    webrig_settle(r);
    expect(c, 200);
    /* Granted 6 s after the request: counted from the request all the same. */
    assert_true(atoi(webrig_member(c, "valid_ms")) > 11000);
    webrig_end(c);
    webrig_free(r);
}

static void a_long_poll_outlives_the_timeout(void **state)
{
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, lock));
    struct webrig_call *c = user_sends(r, &v, "POST", 60, NULL, lock);
    webrig_advance(r, 8000);
    assert_false(c->answered);
    webrig_advance(r, 1500); /* u was silent: its lock is given back */
    expect(c, 201);
    assert_true(atoi(webrig_member(c, "valid_ms")) > 12000);
    webrig_end(c);
    c = user_sends(r, &u, "GET", -1, NULL, NULL);
    expect(c, 410);
    assert_string_equal(webrig_member(c, "cause"), "silent");
    webrig_end(c);
    webrig_free(r);
}

static void who_does_not_wait_leaves_nothing(void **state)
{
    static const char *const bodies[] = {
        "{\"path\": \"/l\"}",
        "{\"path\": \"/l\", \"kind\": \"write\"}",
        "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 1}",
        "{\"path\": \"/e\", \"kind\": \"election\"}",
    };
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct webrig_call *c = user_sends(r, &u, "POST", 0, NULL, bodies[i]);
        expect(c, 201);
        char node[128];
        snprintf(node, sizeof node, "%s", webrig_member(c, "node"));
        user_takes_claim(&u, c);
        c = user_sends(r, &v, "POST", 0, NULL, bodies[i]);
        expect(c, 409);
        assert_non_null(strstr(webrig_body(c), "\"holder\""));
        assert_non_null(strstr(node, webrig_member(c, "node")));
        webrig_end(c);
        webrig_end(user_sends(r, &u, "DELETE", -1, NULL, NULL));
    }
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/e", NULL, 0), 0);
    webrig_free(r);
}

/* While both ask who holds it: neither goes by what the other has forgotten. */
static void two_tries_with_one_key_end_alike(void **state)
{
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, lock));
    memnet_rule(r->net, (struct memnet_rule){2, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *c = user_sends(r, &v, "POST", 0, "Idempotency-Key: one", lock);
    struct webrig_call *d = user_sends(r, &v, "POST", 0, "Idempotency-Key: one", lock);
    assert_false(c->answered || d->answered);
    memnet_clear(r->net);
    webrig_settle(r);
    expect(c, 409);
    expect(d, 409);
    webrig_end(c);
    webrig_end(d);
    c = user_sends(r, &v, "POST", -1, "Idempotency-Key: one", lock); /* anew */
    expect(c, 202);
    webrig_end(c);
    webrig_free(r);
}

/* The answer to its create is lost. It looks for its node by the id, so that a second try of this
 * id would get a node that the first one deletes. */
static void a_try_that_is_given_back_is_not_tried_again(void **state)
{
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    assert_int_equal(memnet_create(r->net, 0, "/l"), CLAVE_OK);
    memnet_rule(r->net, (struct memnet_rule){1, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *c = user_sends(r, &u, "POST", 0, "Idempotency-Key: one", lock);
    memnet_refuse(r->net, 1, true);
    memnet_clear(r->net);
    webrig_settle(r);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
    struct webrig_call *d = user_sends(r, &u, "POST", 0, "Idempotency-Key: one", lock);
    expect(d, 503);
    assert_string_equal(webrig_header(d, "Retry-After"), "1");
    memnet_refuse(r->net, 1, false);
    webrig_advance(r, 1000);
    expect(c, 409);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 0);
    webrig_end(c);
    webrig_end(d);
    c = user_sends(r, &u, "POST", 0, "Idempotency-Key: one", lock);
    expect(c, 201);
    user_takes_claim(&u, c);
    webrig_advance(r, 1000);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
    c = user_sends(r, &u, "GET", -1, NULL, NULL);
    expect(c, 200);
    webrig_end(c);
    webrig_free(r);
}

static void a_key_finds_its_own_claim(void **state)
{
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, "Idempotency-Key: job 7", lock);
    expect(c, 201);
    char token[32];
    snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
    user_takes_claim(&u, c);
    c = user_sends(r, &u, "POST", -1, "Idempotency-Key: job 7", lock);
    expect(c, 201);
    assert_string_equal(webrig_member(c, "id"), u.claim);
    assert_string_equal(webrig_member(c, "token"), token);
    webrig_end(c);
    c = user_sends(r, &u, "POST", -1, "Idempotency-Key: job 7", "{\"path\": \"/other\"}");
    expect(c, 409);
    webrig_end(c);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
    webrig_free(r);
}

static void another_gate_finds_the_place(void **state)
{
    static const char *const bodies[] = {
        "{\"path\": \"/l\"}",
        "{\"path\": \"/l\", \"kind\": \"read\"}",
        "{\"path\": \"/e\", \"kind\": \"election\"}",
        "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 1}",
    };
    static const char *const dirs[] = {"/l", "/l", "/e", "/s/leases"};
    static const uint8_t key[32] = {42};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
        struct user u;
        user_enter(r, &u);
        struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, bodies[i]);
        expect(c, 201);
        char token[32], again[96];
        snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
        user_takes_claim(&u, c);
        webrig_second(r);
        c = user_sends(r, &u, "GET", -1, NULL, NULL);
        expect(c, 404);
        webrig_end(c);
        snprintf(again, sizeof again, "Idempotency-Key: %s", u.claim);
        c = user_sends(r, &u, "POST", 5, again, bodies[i]);
        webrig_advance(r, 4000); /* its deadline is confirmed first */
        expect(c, 201);
        assert_string_equal(webrig_member(c, "token"), token);
        webrig_end(c);
        c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
        expect(c, 204);
        webrig_end(c);
        assert_int_equal(memnet_list(r->net, 0, dirs[i], NULL, 0), 0);
        webrig_free(r);
    }
    (void)state;
}

/* Its session's: also while another session waits, first in the queue, for that lease. */
static void another_gate_finds_a_lease(void **state)
{
    static const char one[] = "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 1}";
    static const char u_key[] = "Idempotency-Key: u", v_key[] = "Idempotency-Key: v";
    static const uint8_t key[32] = {42};
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u, v;
    char token[32];
    (void)state;
    user_enter(r, &u);
    user_enter(r, &v);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, u_key, one);
    expect(c, 201);
    snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
    user_takes_claim(&u, c);
    user_takes_claim(&v, user_sends(r, &v, "POST", -1, v_key, one));
    assert_int_equal(memnet_list(r->net, 0, "/s/locks", NULL, 0), 1);
    assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 2);
    webrig_second(r);
    c = user_sends(r, &u, "POST", 5, u_key, one);
    struct webrig_call *d = user_sends(r, &v, "POST", 20, v_key, one);
    webrig_advance(r, 4000); /* its deadline is confirmed first */
    expect(c, 201);
    assert_string_equal(webrig_member(c, "token"), token);
    webrig_end(c);
    assert_false(d->answered);
    assert_int_equal(memnet_list(r->net, 0, "/s/locks", NULL, 0), 1);
    assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 2);
    c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
    expect(c, 204);
    webrig_end(c);
    webrig_advance(r, 4000);
    expect(d, 201);
    webrig_end(d);
    assert_int_equal(memnet_list(r->net, 0, "/s/locks", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 1);
    webrig_free(r);
}

/* Their clients rely on what they were told: of a stream too, if it holds. */
static void a_gate_that_stops_leaves_what_is_held(void **state)
{
    static const uint8_t key[32] = {42};
    const size_t own = 5; /* the client of the second gate */
    (void)state;
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, lock);
    expect(c, 201);
    char token[32], again[96];
    snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
    user_takes_claim(&u, c);
    user_takes_claim(&v, user_sends(r, &v, "POST", -1, NULL, lock));
    struct webrig_call *holds = webrig_request(r, "POST", "/v1/hold", NULL, "{\"path\": \"/h\"}");
    struct webrig_call *waits = webrig_request(r, "POST", "/v1/hold", NULL, lock);
    expect(holds, 200);
    expect(waits, 200);
    webrig_second(r);
    assert_int_equal(memnet_list(r->net, own, "/l", NULL, 0), 3);
    clave__web_close(r->first, r->net->now);
    webrig_settle(r);
    assert_true(clave__web_is_closed(r->first));
    assert_int_equal(memnet_list(r->net, own, "/h", NULL, 0), 1);
    assert_int_equal(memnet_list(r->net, own, "/l", NULL, 0), 2);
    snprintf(again, sizeof again, "Idempotency-Key: %s", u.claim);
    c = user_sends(r, &u, "POST", 5, again, lock);
    webrig_advance(r, 4000); /* its deadline is confirmed first */
    expect(c, 201);
    assert_string_equal(webrig_member(c, "token"), token);
    webrig_end(c);
    webrig_end(holds);
    webrig_end(waits);
    webrig_advance(r, 20000); /* what nobody goes on with expires */
    assert_int_equal(memnet_list(r->net, own, "/h", NULL, 0), 0);
    webrig_free(r);
}

/* A release that the servers refuse is none. */
static void a_refusal_of_the_servers_is_told(void **state)
{
    static const char acl[] = "{\"acl\": [{\"perms\": \"%s\", \"scheme\": \"world\", "
                              "\"id\": \"anyone\"}]}";
    static const struct web_access access = {.owner_uid = 7}; /* who may do everything */
    char text[128];
    (void)state;
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &access});
    r->peer.is_unix = true;
    r->peer.uid = 7;
    struct user u;
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, lock));
    snprintf(text, sizeof text, acl, "ra");
    struct webrig_call *c = webrig_request(r, "PUT", "/v1/znodes/l?acl", NULL, text);
    expect(c, 200);
    webrig_end(c);
    c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
    expect(c, 403);
    webrig_end(c);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
    c = user_sends(r, &u, "POST", -1, "Idempotency-Key: 2", lock);
    expect(c, 403);
    webrig_end(c);
    c = user_sends(r, &u, "POST", -1, NULL, "{\"path\": \"/full\"}");
    webrig_end(c);
    clave__tree_find(&r->net->server->tree, clave__jbytes("/full"))->stat.cversion = INT32_MAX;
    c = user_sends(r, &u, "POST", -1, NULL, "{\"path\": \"/full\"}");
    expect(c, 507); /* nothing was lost */
    assert_string_equal(webrig_member(c, "code"), "EQUOTA");
    webrig_end(c);
    webrig_free(r);
}

static void a_loss_is_told_with_its_cause(void **state)
{
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, lock);
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
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, lock));
    memnet_kill_session(r->net, 1);
    webrig_settle(r);
    webrig_end(user_sends(r, &u, "GET", -1, NULL, NULL)); /* it connects again */
    c = user_sends(r, &u, "GET", -1, NULL, NULL);
    expect(c, 410);
    assert_string_equal(webrig_member(c, "cause"), "expired");
    webrig_end(c);
    webrig_free(r);
}

static void a_session_ends_under_a_release(void **state)
{
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, lock));
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
    webrig_free(r);
}

/* A session that does nothing but that takes no more and more memory. */
static void claims_that_ended_are_forgotten_in_time(void **state)
{
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    char first[64] = "";
    for (int i = 0; i < 40; i++) {
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, lock));
        webrig_end(user_sends(r, &u, "DELETE", -1, NULL, NULL));
        if (i == 0)
            snprintf(first, sizeof first, "%s", u.claim);
    }
    struct webrig_call *c = user_sends(r, &u, "GET", -1, NULL, NULL);
    expect(c, 410);
    webrig_end(c);
    snprintf(u.claim, sizeof u.claim, "%s", first);
    c = user_sends(r, &u, "GET", -1, NULL, NULL);
    expect(c, 404);
    webrig_end(c);
    webrig_free(r);
}

static void bad_claims_are_refused(void **state)
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
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, bodies[i]);
        expect(c, 400);
        webrig_end(c);
    }
    webrig_free(r);
}

static void a_hold_lives_as_long_as_its_connection(void **state)
{
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    struct webrig_call *c = webrig_request(r, "POST", "/v1/hold", NULL, lock);
    expect(c, 200);
    assert_non_null(strstr(webrig_body(c), "{\"event\": \"held\", \"token\": "));
    webrig_advance(r, 60000);
    assert_non_null(strstr(webrig_body(c), "{\"event\": \"heartbeat\"}\n"));
    user_enter(r, &u);
    struct webrig_call *d = webrig_request(r, "POST", "/v1/hold", NULL, lock);
    expect(d, 200);
    assert_string_equal(webrig_body(d), "{\"event\": \"queued\", \"position\": 1}\n");
    struct webrig_call *e = webrig_request(r, "POST", "/v1/hold", "Prefer: wait=0", lock);
    expect(e, 409);
    webrig_end(e);
    e = webrig_request(r, "POST", "/v1/hold", "Prefer: wait=2", lock);
    assert_false(e->answered);
    webrig_advance(r, 2000);
    expect(e, 409);
    webrig_end(e);
    webrig_end(c); /* hangs up */
    webrig_settle(r);
    assert_non_null(strstr(webrig_body(d), "\"held\""));
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
    char node[1][96], path[128];
    memnet_list(r->net, 0, "/l", node, 1);
    snprintf(path, sizeof path, "/l/%s", node[0]);
    webrig_advance(r, 5000); /* its node is watched by now */
    assert_int_equal(memnet_delete(r->net, 0, path), CLAVE_OK);
    webrig_advance(r, 5000);
    assert_non_null(strstr(webrig_body(d), "{\"event\": \"lost\", \"cause\": \"deleted\"}"));
    assert_true(d->done);
    webrig_end(d);
    webrig_settle(r);
    assert_int_equal(memnet_stats(r->net).sessions, 2);
    webrig_free(r);
}

static struct webrig_call *user_orders(struct webrig *r, const char *what, const char *body)
{
    char target[96];
    snprintf(target, sizeof target, "/v1/locks/l%s", what);
    return webrig_request(r, body ? "POST" : "GET", target, NULL, body);
}

static void a_token_holds_or_not(void **state)
{
    static const struct web_grant all = {WEB_ADMIN, "/"};
    static const struct web_user admin = {.name = "root", .uid = 7, .grants = &all, .ngrants = 1};
    static const struct web_access access = {.users = &admin, .nusers = 1, .owner_uid = -1};
    (void)state;
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
    user_takes_claim(&v, user_sends(r, &v, "POST", -1, NULL, lock));
    snprintf(query, sizeof query, "?token=%s", token);
    c = user_orders(r, query, NULL);
    expect(c, 200);
    assert_non_null(strstr(webrig_body(c), "\"holds\": true"));
    webrig_end(c);
    c = user_orders(r, "?token=x", NULL);
    expect(c, 400);
    webrig_end(c);
    snprintf(order, sizeof order, "{\"token\": \"%s\", \"force\": true}", token);
    c = user_orders(r, "/break", order);
    expect(c, 200);
    webrig_end(c);
    c = user_orders(r, query, NULL);
    expect(c, 200);
    assert_non_null(strstr(webrig_body(c), "\"holds\": false"));
    webrig_end(c);
    c = user_sends(r, &v, "GET", 5, NULL, NULL);
    expect(c, 200);
    webrig_end(c);
    webrig_free(r);
}

static void the_leader_publishes_a_value(void **state)
{
    static const char election[] = "{\"path\": \"/e\", \"kind\": \"election\", \"name\": \"n\"}";
    (void)state;
    struct webrig *r = webrig_new(NULL);
    struct user u, v;
    char proof[160];
    user_enter(r, &u);
    user_enter(r, &v);
    user_takes_claim(&u, user_sends(r, &u, "POST", 5, NULL, election));
    user_takes_claim(&v, user_sends(r, &v, "POST", -1, NULL, election));
    snprintf(proof, sizeof proof, "Clave-Session: %s", u.secret);
    struct webrig_call *c =
        webrig_request_bytes(r, "PUT", "/v1/elections/e/value", proof, "10.0.0.1", 8);
    expect(c, 204);
    webrig_end(c);
    snprintf(proof, sizeof proof, "Clave-Session: %s", v.secret);
    c = webrig_request_bytes(r, "PUT", "/v1/elections/e/value", proof, "10.0.0.2", 8);
    expect(c, 410);
    webrig_end(c);
    webrig_free(r);
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
static void a_claim_that_waits_is_small(void **state)
{
    enum { MOST = 6 * 1024 };
    static const clave_mem counted = {count_alloc, count_realloc, count_free, NULL};
    const struct webrig_options o = {.mem = &counted};
    (void)state;
    struct webrig *r = webrig_new(&o);
    struct user holder, u;
    user_enter(r, &holder);
    user_enter(r, &u);
    user_takes_claim(&holder, user_sends(r, &holder, "POST", -1, NULL, lock));
    size_t before = live;
    struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, lock);
    expect(c, 202);
    webrig_end(c);
    assert_in_range(live - before, 1, MOST);
    webrig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_held_and_given_back),
        cmocka_unit_test(a_poll_keeps_its_place),
        cmocka_unit_test(a_claim_that_waits_is_small),
        cmocka_unit_test(a_long_poll_outlives_the_timeout),
        cmocka_unit_test(who_does_not_wait_leaves_nothing),
        cmocka_unit_test(two_tries_with_one_key_end_alike),
        cmocka_unit_test(a_try_that_is_given_back_is_not_tried_again),
        cmocka_unit_test(a_key_finds_its_own_claim),
        cmocka_unit_test(another_gate_finds_the_place),
        cmocka_unit_test(another_gate_finds_a_lease),
        cmocka_unit_test(a_gate_that_stops_leaves_what_is_held),
        cmocka_unit_test(a_refusal_of_the_servers_is_told),
        cmocka_unit_test(a_loss_is_told_with_its_cause),
        cmocka_unit_test(a_session_ends_under_a_release),
        cmocka_unit_test(claims_that_ended_are_forgotten_in_time),
        cmocka_unit_test(bad_claims_are_refused),
        cmocka_unit_test(the_leader_publishes_a_value),
        cmocka_unit_test(a_token_holds_or_not),
        cmocka_unit_test(a_hold_lives_as_long_as_its_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
