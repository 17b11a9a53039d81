/* web_claim_gates_test.c - claims over HTTP that are asked for again with their Idempotency-Key: of
 * the same gate, of another one of the service, after the end of the first. */
#include "lib/claim_scene.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

/* While both ask who holds it: neither goes by what the other has forgotten. */
TEST(two_tries_with_one_key_end_alike)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, LOCK));
    memnet_rule(r->net, (struct memnet_rule){2, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *c = user_sends(r, &v, "POST", 0, "Idempotency-Key: one", LOCK);
    struct webrig_call *d = user_sends(r, &v, "POST", 0, "Idempotency-Key: one", LOCK);
    assert_false(c->answered || d->answered);
    memnet_clear(r->net);
    webrig_settle(r);
    user_expects(c, 409);
    user_expects(d, 409);
    webrig_end(c);
    webrig_end(d);
    c = user_sends(r, &v, "POST", -1, "Idempotency-Key: one", LOCK); /* anew */
    user_expects(c, 202);
    webrig_end(c);
}

/* The answer to its create is lost. It looks for its node by the id, so that a second try of this
 * id would get a node that the first one deletes. */
TEST(a_try_that_is_given_back_is_not_tried_again)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    assert_int_equal(memnet_create(r->net, 0, "/l"), CLAVE_OK);
    memnet_rule(r->net, (struct memnet_rule){1, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *c = user_sends(r, &u, "POST", 0, "Idempotency-Key: one", LOCK);
    memnet_refuse(r->net, 1, true);
    memnet_clear(r->net);
    webrig_settle(r);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
    struct webrig_call *d = user_sends(r, &u, "POST", 0, "Idempotency-Key: one", LOCK);
    user_expects(d, 503);
    assert_string_equal(webrig_header(d, "Retry-After"), "1");
    memnet_refuse(r->net, 1, false);
    webrig_advance(r, 1000);
    user_expects(c, 409);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 0);
    webrig_end(c);
    webrig_end(d);
    c = user_sends(r, &u, "POST", 0, "Idempotency-Key: one", LOCK);
    user_expects(c, 201);
    user_takes_claim(&u, c);
    webrig_advance(r, 1000);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
    c = user_sends(r, &u, "GET", -1, NULL, NULL);
    user_expects(c, 200);
    webrig_end(c);
}

TEST(a_key_finds_its_own_claim)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, "Idempotency-Key: job 7", LOCK);
    user_expects(c, 201);
    char token[32];
    snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
    user_takes_claim(&u, c);
    c = user_sends(r, &u, "POST", -1, "Idempotency-Key: job 7", LOCK);
    user_expects(c, 201);
    assert_string_equal(webrig_member(c, "id"), u.claim);
    assert_string_equal(webrig_member(c, "token"), token);
    webrig_end(c);
    c = user_sends(r, &u, "POST", -1, "Idempotency-Key: job 7", "{\"path\": \"/other\"}");
    user_expects(c, 409);
    webrig_end(c);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
}

TEST(another_gate_finds_the_place)
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
        CLOSED_BY(webrig_freed)
        struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
        struct user u;
        user_enter(r, &u);
        struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, bodies[i]);
        user_expects(c, 201);
        char token[32], again[96];
        snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
        user_takes_claim(&u, c);
        webrig_second(r);
        c = user_sends(r, &u, "GET", 5, NULL, NULL);
        webrig_advance(r, 4000); /* its deadline is confirmed first */
        user_expects(c, 200);
        assert_string_equal(webrig_member(c, "token"), token);
        webrig_end(c);
        snprintf(again, sizeof again, "Idempotency-Key: %s", u.claim);
        c = user_sends(r, &u, "POST", 5, again, bodies[i]);
        webrig_advance(r, 4000); /* its deadline is confirmed first */
        user_expects(c, 201);
        assert_string_equal(webrig_member(c, "token"), token);
        webrig_end(c);
        c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
        user_expects(c, 204);
        webrig_end(c);
        assert_int_equal(memnet_list(r->net, 0, dirs[i], NULL, 0), 0);
    }
}

/* The second gate is the session's from now on, and has not asked what it has. */
static void user_attaches(struct webrig *r, const struct user *u)
{
    char header[128];
    snprintf(header, sizeof header, "Clave-Session: %s", u->secret);
    webrig_end(webrig_request(r, "GET", "/v1/znodes/", header, NULL));
}

/* Its session's: also while another session waits, first in the queue, for that lease. */
TEST(another_gate_finds_a_lease)
{
    static const char one[] = "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 1}";
    static const char u_key[] = "Idempotency-Key: u", v_key[] = "Idempotency-Key: v";
    static const uint8_t key[32] = {42};
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u, v;
    char token[32];
    user_enter(r, &u);
    user_enter(r, &v);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, u_key, one);
    user_expects(c, 201);
    snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
    user_takes_claim(&u, c);
    user_takes_claim(&v, user_sends(r, &v, "POST", -1, v_key, one));
    assert_int_equal(memnet_list(r->net, 0, "/s/locks", NULL, 0), 1);
    assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 2);
    webrig_second(r);
    c = user_sends(r, &u, "POST", 5, u_key, one);
    struct webrig_call *d = user_sends(r, &v, "POST", 20, v_key, one);
    webrig_advance(r, 4000); /* its deadline is confirmed first */
    user_expects(c, 201);
    assert_string_equal(webrig_member(c, "token"), token);
    webrig_end(c);
    assert_false(d->answered);
    assert_int_equal(memnet_list(r->net, 0, "/s/locks", NULL, 0), 1);
    assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 2);
    c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
    user_expects(c, 204);
    webrig_end(c);
    webrig_advance(r, 4000);
    user_expects(d, 201);
    webrig_end(d);
    assert_int_equal(memnet_list(r->net, 0, "/s/locks", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 1);
}

/* It queues for a lease at one gate and is given it at another. The first finds it there, and makes
 * no lease of its own, when its request has the session back. */
TEST(a_gate_finds_the_lease_that_another_has_made_meanwhile)
{
    static const char one[] = "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 1}";
    static const char w_key[] = "Idempotency-Key: w";
    static const uint8_t key[32] = {42};
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u, v, w;
    user_enter(r, &u);
    user_enter(r, &v);
    user_enter(r, &w);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, one));
    user_takes_claim(&v, user_sends(r, &v, "POST", -1, NULL, one));
    user_takes_claim(&w, user_sends(r, &w, "POST", -1, w_key, one));
    assert_int_equal(memnet_list(r->net, 0, "/s/locks", NULL, 0), 2);
    assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 2);
    webrig_second(r);
    struct webrig_call *c = user_sends(r, &w, "POST", 20, w_key, one);
    webrig_other(r);
    user_expects(user_sends(r, &u, "DELETE", -1, NULL, NULL), 204);
    user_expects(user_sends(r, &v, "DELETE", -1, NULL, NULL), 204);
    webrig_other(r);
    webrig_advance(r, 4000);
    user_expects(c, 201);
    webrig_end(c);
    webrig_other(r);
    c = user_sends(r, &w, "POST", 20, w_key, one);
    webrig_advance(r, 4000);
    user_expects(c, 201);
    webrig_end(c);
    assert_int_equal(memnet_list(r->net, 0, "/s/locks", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 1);
}

/* v waits for its lease; at another gate it asks for the claim again, and gives it back before that
 * gate has found any of its nodes, or before it has found the lease. */
TEST(what_is_given_back_before_it_is_found_goes)
{
    static const char one[] = "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 1}";
    static const char u_key[] = "Idempotency-Key: u", v_key[] = "Idempotency-Key: v";
    static const uint8_t key[32] = {42};
    enum { V_SECOND = 4 }; /* the client of v at the second gate */
    static const struct memnet_rule held[] = {
        {V_SECOND, MEMNET_REPLY, OP_GET_EPHEMERALS, MEMNET_HOLD, 0},
        {V_SECOND, MEMNET_REPLY, OP_GET_CHILDREN2, MEMNET_HOLD, 1},
        {V_SECOND, MEMNET_REPLY, OP_GET_EPHEMERALS, MEMNET_HOLD, 1},
    };
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        CLOSED_BY(webrig_freed)
        struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
        struct user u, v;
        user_enter(r, &u);
        user_enter(r, &v);
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, u_key, one));
        user_takes_claim(&v, user_sends(r, &v, "POST", -1, v_key, one));
        assert_int_equal(memnet_list(r->net, 0, "/s/locks", NULL, 0), 1);
        assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 2);
        webrig_second(r);
        user_attaches(r, &v);
        memnet_rule(r->net, held[i]);
        struct webrig_call *c, *waits = user_sends(r, &v, "POST", 20, v_key, one);
        assert_false(waits->answered);
        c = user_sends(r, &v, "DELETE", -1, NULL, NULL);
        memnet_clear(r->net);
        webrig_settle(r);
        user_expects(c, 204);
        webrig_end(c);
        webrig_end(waits);
        webrig_advance(r, 1000);
        assert_int_equal(memnet_list(r->net, 0, "/s/locks", NULL, 0), 0);
        assert_int_equal(memnet_list(r->net, 0, "/s/leases", NULL, 0), 1);
    }
}

/* While a gate asks who holds what it has tried in vain, another gate gets it for the session. */
TEST(a_try_is_answered_with_what_another_gate_got_meanwhile)
{
    static const char u_key[] = "Idempotency-Key: u";
    static const uint8_t key[32] = {42};
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u, v;
    user_enter(r, &u); /* by client 1 */
    user_enter(r, &v);
    user_takes_claim(&v, user_sends(r, &v, "POST", -1, NULL, LOCK));
    memnet_rule(r->net, (struct memnet_rule){1, MEMNET_REQUEST, OP_GET_CHILDREN2, MEMNET_HOLD, 1});
    struct webrig_call *tries = user_sends(r, &u, "POST", 0, u_key, LOCK);
    assert_false(tries->answered);
    user_expects(user_sends(r, &v, "DELETE", -1, NULL, NULL), 204);
    memnet_refuse(r->net, 1, true);
    memnet_clear(r->net);
    webrig_second(r);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, u_key, LOCK);
    webrig_advance(r, 1000);
    user_takes_claim(&u, c);
    memnet_refuse(r->net, 1, false);
    webrig_advance(r, 4000);
    user_expects(tries, 201);
    assert_string_equal(webrig_member(tries, "id"), u.claim);
    webrig_end(tries);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
}

/* The connection is lost while a try at the second gate looks for the node that the first holds. */
TEST(a_try_leaves_what_it_only_found)
{
    static const char u_key[] = "Idempotency-Key: u";
    static const uint8_t key[32] = {42};
    const size_t second = 3; /* the client of u at the second gate */
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u;
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, u_key, LOCK));
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
    webrig_second(r);
    user_attaches(r, &u);
    memnet_rule(r->net,
                (struct memnet_rule){second, MEMNET_REPLY, OP_GET_CHILDREN2, MEMNET_HOLD, 0});
    struct webrig_call *tries = user_sends(r, &u, "POST", 0, u_key, LOCK);
    assert_false(tries->answered);
    memnet_refuse(r->net, second, true);
    memnet_clear(r->net);
    webrig_settle(r);
    memnet_refuse(r->net, second, false);
    webrig_advance(r, 2000);
    assert_true(tries->answered);
    webrig_end(tries);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
}

/* The create of a try at the first gate is lost with its connection, since the session has moved to
 * the second, where the same claim is granted: what the first finds then is not its own to delete,
 * and it says that it does not know. */
TEST(a_try_that_was_cut_off_leaves_what_another_gate_holds)
{
    static const char u_key[] = "Idempotency-Key: u";
    static const uint8_t key[32] = {42};
    const size_t first = 1; /* the client of u at the first gate */
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u;
    user_enter(r, &u);
    webrig_second(r);
    webrig_other(r);
    memnet_rule(r->net, (struct memnet_rule){first, MEMNET_REQUEST, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *tries = user_sends(r, &u, "POST", 0, u_key, LOCK);
    assert_false(tries->answered);
    webrig_other(r);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, u_key, LOCK);
    user_expects(c, 201);
    webrig_end(c);
    memnet_clear(r->net);
    for (int i = 0; i < 10; i++)
        webrig_advance(r, 300);
    user_expects(tries, 504);
    webrig_end(tries);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
}

/* ---- one request for all waits of a session ---------------------------------------------------
 */

#define FIRST "01234561-89ab-8def-8123-00000000000a"
#define SECOND "01234562-89ab-8def-8123-00000000000b"

static struct webrig_call *session_waits(struct webrig *r, const struct user *u, const char *tag)
{
    char headers[320], target[64];
    snprintf(target, sizeof target, "/v1/sessions/%s", u->id);
    snprintf(headers, sizeof headers, "Clave-Session: %s\nPrefer: wait=4\nIf-None-Match: %s",
             u->secret, tag);
    return webrig_request(r, "GET", target, headers, NULL);
}

static void take_tag(struct webrig_call *c, char tag[32])
{
    user_expects(c, 200);
    snprintf(tag, 32, "%s", webrig_header(c, "ETag"));
    webrig_end(c);
}

/* It is told of what has changed between two of them, by whichever gate, and of a move. */
TEST(one_request_waits_for_all_claims_of_a_session)
{
    static const uint8_t key[32] = {42};
    char tag[32], old[32];
    for (int shared = 0; shared < 2; shared++) {
        CLOSED_BY(webrig_freed)
        struct webrig *r = webrig_new(shared ? &(struct webrig_options){.session_key = key} : NULL);
        struct user u, other;
        user_enter(r, &u);
        user_enter(r, &other);
        user_takes_claim(&other, user_sends(r, &other, "POST", -1, NULL, LOCK));
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, "Idempotency-Key: " FIRST, LOCK));
        webrig_end(user_sends(r, &u, "POST", -1, "Idempotency-Key: " SECOND, LOCK));
        take_tag(session_waits(r, &u, "\"none\""), tag);
        struct webrig_call *c = session_waits(r, &u, tag);
        assert_false(c->answered);
        webrig_end(user_sends(r, &other, "DELETE", -1, NULL, NULL));
        webrig_settle(r);
        assert_non_null(strstr(webrig_body(c), "\"held\""));
        assert_non_null(strstr(webrig_body(c), "\"valid_ms\""));
        assert_non_null(strstr(webrig_body(c), "\"waiting\""));
        snprintf(old, sizeof old, "%s", tag);
        take_tag(c, tag);
        assert_string_not_equal(old, tag);
        webrig_end(user_sends(r, &u, "DELETE", -1, NULL, NULL));
        if (shared)
            webrig_second(r);
        take_tag(session_waits(r, &u, tag), old); /* what came before the request counts */
        assert_string_not_equal(old, tag);
        snprintf(u.claim, sizeof u.claim, SECOND);
        webrig_end(user_sends(r, &u, "POST", -1, "Idempotency-Key: " FIRST, LOCK)); /* 410 */
        user_takes_claim(&other, user_sends(r, &other, "POST", -1, NULL, LOCK));
        webrig_end(user_sends(r, &u, "DELETE", -1, NULL, NULL));
        c = session_waits(r, &u, old);
        take_tag(c, tag); /* it has nothing, and waits for nothing */
    }
}

TEST(who_waits_for_a_session_that_moves_is_told)
{
    static const uint8_t key[32] = {42};
    char tag[32], elsewhere[32];
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u, other;
    user_enter(r, &other);
    webrig_end(user_sends(r, &other, "POST", -1, NULL, LOCK));
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, "Idempotency-Key: " FIRST, LOCK));
    take_tag(session_waits(r, &u, "\"none\""), tag);
    struct webrig_call *first = session_waits(r, &u, tag);
    assert_false(first->answered);
    webrig_second(r);
    take_tag(session_waits(r, &u, "\"none\""), elsewhere);
    assert_string_equal(tag, elsewhere);
    webrig_advance(r, 2000);
    user_expects(first, 200); /* the other gate may know better: nothing is said to be unchanged */
    assert_string_equal(webrig_header(first, "ETag"), tag);
    assert_non_null(strstr(webrig_body(first), "\"suspended\""));
    webrig_end(first);
    CLOSED_BY(webrig_ended) struct webrig_call *c = session_waits(r, &u, tag);
    assert_false(c->answered);
    webrig_advance(r, 4000);
    user_expects(c, 304);
}

/* Their clients rely on what they were told: of a stream too, if it holds. */
TEST(a_gate_that_stops_leaves_what_is_held)
{
    static const uint8_t key[32] = {42};
    const size_t own = 5; /* the client of the second gate */
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, LOCK);
    user_expects(c, 201);
    char token[32], again[96];
    snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
    user_takes_claim(&u, c);
    user_takes_claim(&v, user_sends(r, &v, "POST", -1, NULL, LOCK));
    struct webrig_call *holds = webrig_request(r, "POST", "/v1/hold", NULL, "{\"path\": \"/h\"}");
    struct webrig_call *waits = webrig_request(r, "POST", "/v1/hold", NULL, LOCK);
    user_expects(holds, 200);
    user_expects(waits, 200);
    webrig_second(r);
    assert_int_equal(memnet_list(r->net, own, "/l", NULL, 0), 3);
    clave__web_close(r->first, r->net->now);
    webrig_settle(r);
    assert_true(clave__web_is_closed(r->first));
    assert_int_equal(memnet_list(r->net, own, "/h", NULL, 0), 1);
    assert_int_equal(memnet_list(r->net, own, "/l", NULL, 0), 2);
    snprintf(again, sizeof again, "Idempotency-Key: %s", u.claim);
    c = user_sends(r, &u, "POST", 5, again, LOCK);
    webrig_advance(r, 4000); /* its deadline is confirmed first */
    user_expects(c, 201);
    assert_string_equal(webrig_member(c, "token"), token);
    webrig_end(c);
    webrig_end(holds);
    webrig_end(waits);
    webrig_advance(r, 20000); /* what nobody goes on with expires */
    assert_int_equal(memnet_list(r->net, own, "/h", NULL, 0), 0);
}
