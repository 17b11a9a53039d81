/* web_claim_elsewhere_test.c - a session behind a balancer: each request may come to either of two
 * gates with one key, and each gate knows what the other has made, granted and given back. */
#include "lib/claim_scene.h"
#include "lib/failmem.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "server/server_internal.h"

static const uint8_t key[32] = {42};

#define UUID "0b7e6a52-3c1d-8f4e-9a5b-6c7d8e9f0a1b"
#define KEYED "Idempotency-Key: " UUID

static const struct {
    const char *body, *dir, *queue;
} kinds[] = {
    {"{\"path\": \"/l\"}", "/l", NULL},
    {"{\"path\": \"/l\", \"kind\": \"read\"}", "/l", NULL},
    {"{\"path\": \"/l\", \"kind\": \"write\"}", "/l", NULL},
    {"{\"path\": \"/e\", \"kind\": \"election\"}", "/e", NULL},
    {"{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 1}", "/s/leases", "/s/locks"},
    {"{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 3, \"permits\": 3}", "/s/leases",
     "/s/locks"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static size_t places(struct webrig *r, size_t kind)
{
    size_t n = memnet_list(r->net, 0, kinds[kind].dir, NULL, 0);
    return kinds[kind].queue ? n + memnet_list(r->net, 0, kinds[kind].queue, NULL, 0) : n;
}

/* Until it is answered: a deadline may have to be confirmed first. */
static struct webrig_call *ends(struct webrig *r, struct webrig_call *c, unsigned status)
{
    for (int i = 0; i < 60 && !c->answered; i++)
        webrig_advance(r, 100);
    user_expects(c, status);
    return c;
}

static struct webrig_call *renews(struct webrig *r, const struct user *u)
{
    char target[96], header[128];
    snprintf(target, sizeof target, "/v1/sessions/%s/renew", u->id);
    snprintf(header, sizeof header, "Clave-Session: %s", u->secret);
    return webrig_request(r, "POST", target, header, NULL);
}

/* Of a claim that is held alone. */
static size_t places_of_one(size_t kind)
{
    return strstr(kinds[kind].body, "permits") ? 3 : 1;
}

static struct webrig *two_gates_of(struct user *u, const char *hosts)
{
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key, .hosts = hosts});
    user_enter(r, u);
    snprintf(u->claim, sizeof u->claim, "%s", UUID);
    return r;
}

static struct webrig *two_gates(struct user *u)
{
    return two_gates_of(u, NULL);
}

/* The request reaches the first gate when the second has had it, and has given the claim back: of
 * every kind, whether the first gate knew the claim or not. */
TEST(what_comes_after_the_release_takes_nothing)
{
    for (size_t i = 0; i < 2 * (size_t)KINDS; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        const char *body = kinds[i / 2].body;
        if (i % 2)
            webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, body), 201));
        webrig_second(r);
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, body), 201));
        webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204));
        assert_int_equal(places(r, i / 2), 0);
        webrig_other(r);
        struct webrig_call *c = ends(r, user_sends(r, &u, "POST", 5, KEYED, body), 410);
        assert_string_equal(webrig_member(c, "cause"), "released");
        webrig_end(c);
        assert_int_equal(places(r, i / 2), 0);
        webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204)); /* and again */
        c = ends(r, user_sends(r, &u, "POST", 5, NULL, body), 201); /* what is new is taken */
        webrig_end(c);
        webrig_free(r);
    }
}

/* Of a claim that was never made: no request of before makes it. */
TEST(what_was_given_up_before_it_was_made_is_not_made)
{
    struct user u;
    struct webrig *r = two_gates(&u);
    webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 404));
    webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, LOCK), 410));
    webrig_second(r);
    webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, LOCK), 410));
    assert_int_equal(places(r, 0), 0);
    webrig_free(r);
}

/* The answer to the mark is lost with the connection, and the node's delete as well. */
TEST(a_release_whose_answers_were_lost_is_one)
{
    enum { U_SECOND = 3 };
    for (size_t i = 0; i < KINDS; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, kinds[i].body), 201));
        webrig_second(r);
        webrig_end(ends(r, renews(r, &u), 200));
        memnet_rule(r->net,
                    (struct memnet_rule){U_SECOND, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
        struct webrig_call *c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
        assert_false(c->answered);
        memnet_refuse(r->net, U_SECOND, true);
        memnet_clear(r->net);
        webrig_settle(r);
        memnet_refuse(r->net, U_SECOND, false);
        webrig_end(ends(r, c, 204));
        assert_int_equal(places(r, i), 0);
        webrig_other(r);
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, kinds[i].body), 410));
        assert_int_equal(places(r, i), 0);
        webrig_free(r);
    }
}

/* The first DELETE has not been answered by the servers, so the second is not answered from memory.
 */
TEST(a_repeated_release_waits_for_the_servers)
{
    enum { U_FIRST = 1 };
    for (size_t i = 0; i < KINDS; i++) {
        struct user u, v;
        struct webrig *r = two_gates(&u);
        user_enter(r, &v);
        user_takes_claim(&v, ends(r, user_sends(r, &v, "POST", -1, NULL, kinds[i].body), 201));
        webrig_end(
            ends(r, user_sends(r, &u, "POST", -1, KEYED, kinds[i].body), i == 1 ? 201 : 202));
        memnet_rule(r->net,
                    (struct memnet_rule){U_FIRST, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
        struct webrig_call *first = user_sends(r, &u, "DELETE", -1, NULL, NULL);
        struct webrig_call *again = user_sends(r, &u, "DELETE", -1, NULL, NULL);
        assert_false(first->answered);
        assert_false(again->answered);
        memnet_clear(r->net);
        webrig_settle(r);
        webrig_end(ends(r, first, 204));
        webrig_end(ends(r, again, 204));
        webrig_free(r);
    }
}

/* A release that was given up before the servers answered is not said to be done: it is lost with
 * the connection, and the other gate holds the claim. */
TEST(a_release_that_may_be_lost_is_not_said_to_be_done)
{
    enum { U_FIRST = 1 };
    for (size_t i = 0; i < 2 * (size_t)KINDS; i++) {
        struct user u, v;
        bool waits = i % 2 && i / 2 != 1;
        const char *body = kinds[i / 2].body;
        struct webrig *r = two_gates(&u);
        user_enter(r, &v);
        if (waits)
            user_takes_claim(&v, ends(r, user_sends(r, &v, "POST", -1, NULL, body), 201));
        webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, body), waits ? 202 : 201));
        memnet_rule(r->net,
                    (struct memnet_rule){U_FIRST, MEMNET_REQUEST, MEMNET_ANY, MEMNET_HOLD, 0});
        webrig_end(user_sends(r, &u, "DELETE", -1, NULL, NULL)); /* its client gives up */
        struct webrig_call *posts = user_sends(r, &u, "POST", -1, KEYED, body);
        struct webrig_call *gets = user_sends(r, &u, "GET", -1, NULL, NULL);
        webrig_advance(r, 100);
        assert_false(posts->answered && posts->status == 410);
        assert_false(gets->answered && gets->status == 410);
        webrig_end(posts);
        webrig_end(gets);
        webrig_second(r);
        webrig_end(ends(r, user_sends(r, &u, "GET", -1, NULL, NULL), waits ? 202 : 200));
        memnet_clear(r->net);
        webrig_other(r);
        struct webrig_call *c = user_sends(r, &u, "GET", -1, NULL, NULL);
        for (int n = 0; n < 60 && !c->answered; n++)
            webrig_advance(r, 100);
        if (c->status == 410) /* as it says: nothing of it stands */
            assert_int_equal(places(r, i / 2), waits ? places_of_one(i / 2) : 0);
        else
            user_expects(c, waits ? 202 : 200);
        webrig_end(c);
        webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204));
        webrig_end(ends(r, user_sends(r, &u, "GET", -1, NULL, NULL), 410));
        webrig_free(r);
    }
}

/* v waits at the first gate, and is granted at the second: the first does not say from memory that
 * it waits still. */
TEST(a_renewal_says_nothing_worse_than_what_was_proved)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct user u, v;
        char token[32];
        struct webrig *r = two_gates(&u);
        user_enter(r, &v);
        user_takes_claim(&u, ends(r, user_sends(r, &u, "POST", -1, NULL, kinds[i].body), 201));
        if (i == 1) /* readers share */
            webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204));
        if (i == 1)
            user_takes_claim(&u, ends(r, user_sends(r, &u, "POST", -1, NULL, kinds[2].body), 201));
        user_takes_claim(&v, ends(r, user_sends(r, &v, "POST", -1, NULL, kinds[i].body), 202));
        webrig_second(r);
        webrig_end(ends(r, user_sends(r, &v, "GET", -1, NULL, NULL), 202));
        webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204));
        struct webrig_call *c = ends(r, user_sends(r, &v, "GET", 5, NULL, NULL), 200);
        snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
        webrig_end(c);
        webrig_other(r);
        c = ends(r, renews(r, &v), 200);
        assert_null(strstr(webrig_body(c), "waiting"));
        assert_non_null(strstr(webrig_body(c), "\"held\""));
        assert_string_equal(webrig_member(c, "token"), token);
        webrig_end(c);
        webrig_free(r);
    }
}

/* And it lists what another gate has made, and not what that has given back. */
TEST(a_renewal_lists_what_the_session_has)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, kinds[i].body), 201));
        webrig_second(r);
        struct webrig_call *c = ends(r, renews(r, &u), 200);
        assert_non_null(strstr(webrig_body(c), UUID));
        assert_non_null(strstr(webrig_body(c), "\"held\""));
        webrig_end(c);
        webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204));
        webrig_other(r);
        c = ends(r, renews(r, &u), 200);
        assert_null(strstr(webrig_body(c), "\"held\""));
        assert_null(strstr(webrig_body(c), "\"waiting\""));
        webrig_end(c);
        webrig_free(r);
    }
}

/* The clients of those who enter at the first gate. */
enum { U_FIRST = 1, U_SECOND = 2 };

/* A try whose answers are held back. */
static struct webrig_call *tries_unanswered(struct webrig *r, struct user *u)
{
    user_takes_claim(u, ends(r, user_sends(r, u, "POST", -1, NULL, LOCK), 201)); /* makes /l */
    webrig_end(ends(r, user_sends(r, u, "DELETE", -1, NULL, NULL), 204));
    snprintf(u->claim, sizeof u->claim, "%s", UUID);
    memnet_rule(r->net, (struct memnet_rule){U_FIRST, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    return user_sends(r, u, "POST", 0, KEYED, LOCK);
}

/* With what was held back; then a server can be reached again. */
static void loses_connection(struct webrig *r)
{
    memnet_refuse(r->net, U_FIRST, true);
    memnet_clear(r->net);
    webrig_settle(r);
    memnet_refuse(r->net, U_FIRST, false);
}

/* The first gate has not heard yet that the session has moved, so what it knows from memory does
 * not show that there is no such claim. */
TEST(what_is_not_known_is_asked_for)
{
    struct user u;
    struct webrig *r = two_gates(&u);
    webrig_end(ends(r, renews(r, &u), 200));
    memnet_freeze(r->net, U_FIRST, true);
    webrig_second(r);
    webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, LOCK), 201));
    webrig_other(r);
    struct webrig_call *c = user_sends(r, &u, "GET", -1, NULL, NULL);
    assert_false(c->answered);
    memnet_freeze(r->net, U_FIRST, false);
    webrig_end(ends(r, c, 200));
    u.claim[0] ^= 1;
    webrig_end(ends(r, user_sends(r, &u, "GET", -1, NULL, NULL), 404));
    webrig_free(r);
}

/* Each allocation fails once, while the first gate takes up what the second has made: that it holds
 * is not known then, and not denied. */
TEST(without_memory_no_claim_is_denied)
{
    static const char *const methods[] = {"GET", "DELETE"};
    for (size_t m = 0; m < 2; m++) {
        bool failed = true;
        for (size_t failing = 1; failed; failing++) {
            struct user u;
            struct failmem fail;
            failmem_init(&fail);
            struct webrig *r =
                webrig_new(&(struct webrig_options){.session_key = key, .mem = &fail.mem});
            user_enter(r, &u);
            snprintf(u.claim, sizeof u.claim, "%s", UUID);
            webrig_second(r);
            webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, LOCK), 201));
            webrig_other(r);
            failmem_arm(&fail, failing, 1);
            struct webrig_call *c = user_sends(r, &u, methods[m], -1, NULL, NULL);
            for (int i = 0; i < 60 && c && !c->answered; i++)
                webrig_advance(r, 100);
            failed = fail.failed;
            failmem_arm(&fail, 0, 0);
            if (c && c->answered && places(r, 0) == 1)
                assert_int_not_equal(c->status, 404);
            webrig_end(c);
            webrig_free(r);
            assert_int_equal(fail.live, 0);
        }
    }
}

/* v waits, and is granted at the second gate; the first has not heard of that yet, and does not say
 * that it waits. */
TEST(what_waits_is_asked_for)
{
    enum { V_FIRST = 2 };
    for (size_t i = 0; i < 2 * (size_t)KINDS; i++) {
        struct user u, v;
        char token[32];
        const char *body = kinds[i / 2].body;
        struct webrig *r = two_gates(&u);
        user_enter(r, &v);
        user_takes_claim(
            &u,
            ends(r, user_sends(r, &u, "POST", -1, NULL, kinds[i / 2 == 1 ? 2 : i / 2].body), 201));
        struct webrig_call *c = ends(r, user_sends(r, &v, "POST", -1, KEYED, body), 202);
        assert_string_equal(webrig_member(c, "state"), "waiting");
        user_takes_claim(&v, c);
        c = ends(r, user_sends(r, &v, "GET", -1, NULL, NULL), 202);
        assert_string_equal(webrig_member(c, "state"), "waiting");
        webrig_end(c);
        memnet_freeze(r->net, V_FIRST, true);
        webrig_second(r);
        c = ends(r, user_sends(r, &v, "GET", -1, NULL, NULL), 202);
        assert_string_equal(webrig_member(c, "state"), "waiting");
        webrig_end(c);
        webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204));
        c = ends(r, user_sends(r, &v, "GET", 5, NULL, NULL), 200);
        snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
        webrig_end(c);
        webrig_other(r);
        c = i % 2 ? user_sends(r, &v, "GET", 0, NULL, NULL)
                  : user_sends(r, &v, "POST", -1, KEYED, body);
        assert_false(c->answered);
        memnet_freeze(r->net, V_FIRST, false);
        for (int n = 0; n < 60 && !c->answered; n++)
            webrig_advance(r, 100);
        assert_true(c->answered);
        if (c->status == 202) /* the connection is gone, and the gate does not take it back */
            assert_string_equal(webrig_member(c, "state"), "suspended");
        webrig_end(c);
        c = ends(r, user_sends(r, &v, "GET", -1, NULL, NULL), 200);
        assert_string_equal(webrig_member(c, "token"), token);
        webrig_end(c);
        webrig_free(r);
    }
}

/* That they wait is proved by one commit for all that end at a time, and by none when another
 * request has asked for one meanwhile. */
TEST(those_that_wait_share_a_proof)
{
    enum { V_FIRST = 2, POLLS = 8 };
    struct user u, v;
    struct webrig_call *polls[POLLS];
    struct webrig *r = two_gates(&u);
    const uint64_t *multis = &r->net->clients[V_FIRST].requests[OP_MULTI];
    user_enter(r, &v);
    user_takes_claim(&u, ends(r, user_sends(r, &u, "POST", -1, NULL, LOCK), 201));
    user_takes_claim(&v, ends(r, user_sends(r, &v, "POST", -1, NULL, LOCK), 202));
    for (int renewed = 0; renewed < 2; renewed++) {
        uint64_t before = *multis;
        for (size_t i = 0; i < POLLS; i++)
            polls[i] = user_sends(r, &v, "GET", 3, NULL, NULL);
        webrig_advance(r, 1000);
        assert_int_equal(*multis, before); /* waiting costs nothing */
        if (renewed)
            webrig_end(ends(r, renews(r, &v), 200));
        for (size_t i = 0; i < POLLS; i++) {
            ends(r, polls[i], 202);
            assert_string_equal(webrig_member(polls[i], "state"), "waiting");
            assert_string_equal(webrig_member(polls[i], "position"), "2");
            webrig_end(polls[i]);
        }
        assert_int_equal(*multis, before + 1);
    }
    webrig_free(r);
}

/* w, before v, goes. v's gate hears of that just before its proof is answered, so what it knew of
 * the place before that proof is out of date. */
TEST(a_place_that_has_changed_is_listed_first)
{
    enum { V_FIRST = 3 };
    struct user u, v, w;
    struct webrig *r = two_gates(&u);
    user_enter(r, &w);
    user_enter(r, &v);
    user_takes_claim(&u, ends(r, user_sends(r, &u, "POST", -1, NULL, LOCK), 201));
    user_takes_claim(&w, ends(r, user_sends(r, &w, "POST", -1, NULL, LOCK), 202));
    user_takes_claim(&v, ends(r, user_sends(r, &v, "POST", -1, NULL, LOCK), 202));
    webrig_end(ends(r, renews(r, &v), 200));
    memnet_rule(r->net,
                (struct memnet_rule){V_FIRST, MEMNET_REPLY, OP_NOTIFICATION, MEMNET_HOLD, 0});
    webrig_end(ends(r, user_sends(r, &w, "DELETE", -1, NULL, NULL), 204));
    struct webrig_call *c = renews(r, &v);
    assert_false(c->answered);
    memnet_clear(r->net);
    ends(r, c, 200);
    assert_string_equal(webrig_member(c, "state"), "waiting");
    assert_string_equal(webrig_member(c, "position"), "2");
    webrig_end(c);
    webrig_free(r);
}

/* Requests of one session wait at both gates for as long as the servers confirm nothing. The gates
 * take the session from each other, but ever more rarely, and both requests are answered soon
 * after.
 */
TEST(gates_do_not_fight_for_a_session)
{
    enum { U_SECOND = 3, MOVES = 12 };
    struct user u;
    struct webrig *r = two_gates_of(&u, "pair:1,pair:2,pair:3");
    webrig_end(ends(r, renews(r, &u), 200));
    webrig_second(r);
    webrig_end(ends(r, renews(r, &u), 200));
    memnet_rule(r->net, (struct memnet_rule){U_FIRST, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    memnet_rule(r->net, (struct memnet_rule){U_SECOND, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    const uint64_t dials[] = {r->net->clients[U_FIRST].dials, r->net->clients[U_SECOND].dials};
    struct webrig_call *second = renews(r, &u);
    webrig_other(r);
    struct webrig_call *first = renews(r, &u);
    for (int ms = 0; ms < 1000; ms++)
        webrig_advance(r, 1);
    assert_false(first->answered || second->answered);
    assert_in_range(r->net->clients[U_FIRST].dials - dials[0], 2, MOVES);
    assert_in_range(r->net->clients[U_SECOND].dials - dials[1], 2, MOVES);
    memnet_clear(r->net);
    int64_t since = r->net->now;
    for (int ms = 0; ms < 2000 && !(first->answered && second->answered); ms++)
        webrig_advance(r, 1);
    webrig_end(ends(r, first, 200));
    webrig_end(ends(r, second, 200));
    assert_true(r->net->now - since < 1500);
    webrig_free(r);
}

/* The answer to a try is lost with the connection, and what it has made stays, since another gate
 * may hold it. The session's nodes are listed while the try still looks for it: it is known all the
 * same, and nothing is made beside it. */
TEST(what_a_lost_try_left_is_known)
{
    struct user u;
    struct webrig *r = two_gates(&u);
    struct webrig_call *tries = tries_unanswered(r, &u);
    struct webrig_call *renewal = renews(r, &u);
    assert_int_equal(places(r, 0), 1);
    loses_connection(r);
    struct webrig_call *look = user_sends(r, &u, "GET", -1, NULL, NULL);
    webrig_end(ends(r, look, 200)); /* which comes while the try looks for it */
    webrig_end(ends(r, tries, 504));
    webrig_end(ends(r, renewal, 200));
    assert_int_equal(places(r, 0), 1);
    webrig_end(ends(r, user_sends(r, &u, "GET", -1, NULL, NULL), 200));
    webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, LOCK), 201));
    assert_int_equal(places(r, 0), 1);
    webrig_free(r);
}

/* The delete of what a failed try has made is lost with the connection. By when that is known, the
 * second gate may have been granted it: it stays, and the try does not say that it has failed. */
TEST(a_try_that_failed_takes_nothing_from_another_gate)
{
    struct user u, v;
    struct webrig *r = two_gates(&u);
    user_enter(r, &v);
    user_takes_claim(&v, ends(r, user_sends(r, &v, "POST", -1, NULL, LOCK), 201));
    memnet_rule(r->net, (struct memnet_rule){U_FIRST, MEMNET_REQUEST, OP_DELETE, MEMNET_HOLD, 0});
    struct webrig_call *tries = user_sends(r, &u, "POST", 0, KEYED, LOCK);
    assert_false(tries->answered);
    assert_int_equal(places(r, 0), 2);
    memnet_refuse(r->net, U_FIRST, true);
    memnet_clear(r->net);
    webrig_second(r);
    webrig_end(ends(r, user_sends(r, &v, "DELETE", -1, NULL, NULL), 204));
    webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, LOCK), 201));
    webrig_other(r);
    memnet_refuse(r->net, U_FIRST, false);
    webrig_end(ends(r, tries, 201)); /* it begins again, and finds what it has there */
    webrig_advance(r, 1000);
    assert_int_equal(places(r, 0), 1);
    struct webrig_call *c = ends(r, user_sends(r, &u, "GET", -1, NULL, NULL), 200);
    assert_string_equal(webrig_member(c, "state"), "held");
    webrig_end(c);
    webrig_free(r);
}

/* A release meanwhile is confirmed when what the try has made is gone, not before. */
TEST(what_a_lost_try_left_is_given_back)
{
    struct user u;
    struct webrig *r = two_gates(&u);
    struct webrig_call *tries = tries_unanswered(r, &u);
    assert_int_equal(places(r, 0), 1);
    loses_connection(r);
    struct webrig_call *gives = user_sends(r, &u, "DELETE", -1, NULL, NULL);
    webrig_end(ends(r, tries, 504));
    webrig_end(ends(r, gives, 204));
    assert_int_equal(places(r, 0), 0);
    webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204));
    webrig_free(r);
}

TEST(a_leader_publishes_at_either_gate)
{
    struct user u;
    char header[128];
    struct webrig *r = two_gates(&u);
    webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, kinds[3].body), 201));
    webrig_second(r);
    snprintf(header, sizeof header, "Clave-Session: %s", u.secret);
    webrig_end(ends(r, webrig_request(r, "PUT", "/v1/elections/e/value", header, "10.0.0.7"), 204));
    webrig_free(r);
}

/* The first gate has not heard yet that the session leads. */
TEST(a_leader_publishes_where_that_is_not_known)
{
    struct user u;
    char header[128];
    struct webrig *r = two_gates(&u);
    webrig_end(ends(r, renews(r, &u), 200));
    snprintf(header, sizeof header, "Clave-Session: %s", u.secret);
    memnet_freeze(r->net, U_FIRST, true);
    webrig_second(r);
    webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, kinds[3].body), 201));
    webrig_other(r);
    struct webrig_call *c = webrig_request(r, "PUT", "/v1/elections/e/value", header, "10.0.0.7");
    assert_false(c->answered);
    memnet_freeze(r->net, U_FIRST, false);
    webrig_end(ends(r, c, 204));
    webrig_end(ends(r, webrig_request(r, "PUT", "/v1/elections/f/value", header, "x"), 410));
    webrig_free(r);
}

/* A waiter that was given back at the second gate is forgotten at the first one: the next request
 * there has a place that exists. */
TEST(the_first_request_after_a_release_elsewhere_has_a_place)
{
    struct user u, v;
    struct webrig *r = two_gates(&u);
    user_enter(r, &v);
    user_takes_claim(&u, ends(r, user_sends(r, &u, "POST", -1, NULL, LOCK), 201));
    user_takes_claim(&v, ends(r, user_sends(r, &v, "POST", -1, NULL, LOCK), 202));
    webrig_second(r);
    webrig_end(ends(r, user_sends(r, &v, "DELETE", -1, NULL, NULL), 204));
    assert_int_equal(places(r, 0), 1);
    webrig_other(r);
    webrig_end(ends(r, user_sends(r, &v, "POST", -1, NULL, LOCK), 202));
    assert_int_equal(places(r, 0), 2);
    webrig_free(r);
}

/* Of a lock and of an election, whose place says the candidate's id alone. */
TEST(the_mark_of_a_lock_delay_goes_with_a_release_elsewhere)
{
    static const char *const delayed[] = {
        "{\"path\": \"/d/l\", \"lock_delay_ms\": 9000}",
        "{\"path\": \"/d/l\", \"lock_delay_ms\": 9000, \"kind\": \"election\"}"};
    for (size_t i = 0; i < 2; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, delayed[i]), 201));
        assert_int_equal(memnet_list(r->net, 0, "/d", NULL, 0), 2); /* the lock, the mark */
        webrig_second(r);
        webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204));
        assert_int_equal(memnet_list(r->net, 0, "/d", NULL, 0), 1);
        webrig_free(r);
    }
}

/* ---- the longest hold ---- */

/* Whether its place may be written to, and what that may say, differs; for how long it is held does
 * not. */
static const struct {
    const char *body;
    size_t kind; /* of `kinds` */
} limited[] = {
    {"{\"path\": \"/l\", \"max_hold_ms\": 4000}", 0},
    {"{\"path\": \"/l\", \"max_hold_ms\": 4000, \"revocable\": true}", 0},
    {"{\"path\": \"/l\", \"max_hold_ms\": 4000, \"kind\": \"write\"}", 2},
    {"{\"path\": \"/e\", \"max_hold_ms\": 4000, \"kind\": \"election\"}", 3},
    {"{\"path\": \"/e\", \"max_hold_ms\": 4000, \"kind\": \"election\", \"revocable\": true}", 3},
    {"{\"path\": \"/s\", \"max_hold_ms\": 4000, \"kind\": \"semaphore\", \"limit\": 3, "
     "\"permits\": 3, \"revocable\": true}",
     5},
};
enum { LIMITED = sizeof limited / sizeof *limited };

/* Held since then, and for 4 s, at whichever gate it is renewed. */
static void check_longest_hold(struct webrig *r, const struct user *u, size_t i, int64_t since)
{
    size_t kind = limited[i].kind, n = kind == 5 ? 3 : 1;
    while (r->net->now < since + 3500) {
        struct webrig_call *c = ends(r, renews(r, u), 200);
        const char *valid = strstr(webrig_body(c), "\"token\"");
        assert_non_null(valid);
        assert_true(atoll(strstr(valid, "valid_ms\": ") + 11) <= 4000 - (r->net->now - since));
        assert_null(strstr(webrig_body(c), "asked"));
        webrig_end(c);
        assert_int_equal(places(r, kind), n);
        webrig_advance(r, 500);
        webrig_other(r);
    }
    webrig_advance(r, since + 4100 - r->net->now);
    for (int gates = 0; gates < 2; gates++) {
        struct webrig_call *c = ends(r, renews(r, u), 200);
        assert_string_equal(webrig_member(c, "cause"), "max_hold");
        webrig_end(c);
        assert_int_equal(places(r, kind), n); /* a gate does not know what the other has told */
        webrig_other(r);
    }
    webrig_advance(r, 4600);
    webrig_end(ends(r, renews(r, u), 200));
    assert_int_equal(places(r, kind), 0);
}

/* Nothing is left of what the gates tell each other of a claim. */
static void check_no_notes(struct webrig *r, const struct user *u)
{
    char names[16][96];
    webrig_end(ends(r, renews(r, u), 200));
    size_t n = memnet_list(r->net, 0, "/clave-gate", names, 16);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(strncmp(names[i], "gone-", 5), 0);
}

/* At whichever gates it is renewed, and whether it was granted at once or after others. */
TEST(a_longest_hold_goes_on_at_the_next_gate)
{
    enum { AT_ONCE, AFTER_ANOTHER, DESCRIBED, WAYS };
    for (size_t i = 0; i < (size_t)WAYS * LIMITED; i++) {
        struct user u, v;
        struct webrig *r = two_gates(&u);
        const char *body = limited[i / WAYS].body;
        user_enter(r, &v);
        if (i % WAYS == AFTER_ANOTHER) {
            user_takes_claim(&v, ends(r, user_sends(r, &v, "POST", -1, NULL, body), 201));
            webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, body), 202));
            webrig_advance(r, 3000);
            webrig_end(ends(r, renews(r, &u), 200));
            webrig_end(ends(r, user_sends(r, &v, "DELETE", -1, NULL, NULL), 204));
        }
        user_takes_claim(&u, ends(r, user_sends(r, &u, "POST", 5, KEYED, body), 201));
        int64_t since = r->net->now;
        if (i % WAYS == DESCRIBED)
            webrig_end(ends(r, user_sends(r, &u, "PATCH", -1, NULL, "{\"name\": \"new\"}"), 200));
        webrig_second(r);
        check_longest_hold(r, &u, i / WAYS, since);
        check_no_notes(r, &u);
        webrig_free(r);
    }
}

/* A gate where it is over learns that it was made anew with its key: it then lists it as held, and
 * not also as it was. */
TEST(a_renewal_lists_each_claim_once)
{
    struct user u;
    struct webrig *r = two_gates(&u);
    webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, limited[0].body), 201));
    while (places(r, limited[0].kind) > 0) {
        webrig_advance(r, 1000);
        webrig_end(ends(r, renews(r, &u), 200));
    }
    webrig_second(r);
    webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, limited[0].body), 201));
    webrig_other(r);
    struct webrig_call *c = ends(r, renews(r, &u), 200);
    const char *once = strstr(webrig_body(c), "{\"id\": \"" UUID);
    assert_non_null(once);
    assert_non_null(strstr(once, "\"held\""));
    assert_null(strstr(once + 1, "{\"id\": \"" UUID));
    webrig_end(c);
    webrig_free(r);
}

/* The note of an election's terms is lost with the connection: on the next one it is made before
 * the place, so that a gate which takes up the place finds it. */
TEST(the_terms_of_an_election_are_noted_before_its_place)
{
    enum { ELECTION = 3 };
    struct user u;
    struct webrig *r = two_gates(&u);
    memnet_rule(r->net, (struct memnet_rule){U_FIRST, MEMNET_REQUEST, OP_CREATE2, MEMNET_LOSE, 0});
    struct webrig_call *c =
        ends(r, user_sends(r, &u, "POST", 5, KEYED, limited[ELECTION].body), 201);
    const struct node *terms =
        clave__tree_find(&r->net->server->tree, clave__jbytes("/clave-gate/terms-" UUID));
    assert_non_null(terms);
    assert_true(terms->stat.czxid < atoll(webrig_member(c, "token")));
    webrig_end(c);
    webrig_free(r);
}

TEST(the_terms_of_an_election_are_noted_where_there_is_no_directory_yet)
{
    enum { ELECTION = 3 };
    struct user u;
    struct webrig *r = two_gates(&u);
    assert_int_equal(memnet_delete(r->net, 0, "/clave-gate"), CLAVE_OK);
    webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, limited[ELECTION].body), 201));
    assert_non_null(
        clave__tree_find(&r->net->server->tree, clave__jbytes("/clave-gate/terms-" UUID)));
    webrig_free(r);
}

TEST(a_release_leaves_its_mark_where_there_is_no_directory_yet)
{
    struct user u;
    struct webrig *r = two_gates(&u);
    webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, "{\"path\": \"/l\"}"), 201));
    assert_int_equal(memnet_delete(r->net, 0, "/clave-gate"), CLAVE_OK);
    webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204));
    assert_non_null(
        clave__tree_find(&r->net->server->tree, clave__jbytes("/clave-gate/gone-" UUID)));
    webrig_free(r);
}

/* It waits at the first gate, and is granted at the second, which knows the terms as well. */
TEST(a_longest_hold_begins_where_it_is_granted)
{
    for (size_t i = 0; i < LIMITED; i++) {
        struct user u, v;
        struct webrig *r = two_gates(&u);
        user_enter(r, &v);
        user_takes_claim(&v, ends(r, user_sends(r, &v, "POST", -1, NULL, limited[i].body), 201));
        webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, limited[i].body), 202));
        webrig_second(r);
        webrig_end(ends(r, renews(r, &u), 200));
        webrig_end(ends(r, user_sends(r, &v, "DELETE", -1, NULL, NULL), 204));
        webrig_end(ends(r, user_sends(r, &u, "GET", 5, NULL, NULL), 200));
        int64_t since = r->net->now;
        webrig_other(r);
        check_longest_hold(r, &u, i, since);
        webrig_free(r);
    }
}

/* For how long it is told as held. */
static int64_t told_for(struct webrig *r, const struct user *u)
{
    struct webrig_call *c = ends(r, renews(r, u), 200);
    const char *token = strstr(webrig_body(c), "\"token\"");
    int64_t ms = token ? atoll(strstr(token, "valid_ms\": ") + 11) : 0;
    webrig_end(c);
    return ms;
}

/* The servers' clock says for how long it has been held, and is set while that is so: what a gate
 * has told stays, whatever the other one makes of it. */
TEST(what_a_gate_has_told_stays_when_the_servers_clock_is_set)
{
    for (size_t i = 0; i < 2 * (size_t)LIMITED; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        size_t kind = limited[i / 2].kind, n = kind == 5 ? 3 : 1;
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, limited[i / 2].body), 201));
        webrig_second(r);
        webrig_advance(r, 2000);
        if (i % 2)
            r->net->wall_shift -= 3000;
        int64_t told = r->net->now;
        told += told_for(r, &u);
        if (i % 2 == 0)
            r->net->wall_shift += 3000;
        webrig_advance(r, 100);
        webrig_other(r);
        while (r->net->now + 300 < told) {
            int64_t now = r->net->now, more = told_for(r, &u);
            told = now + more > told ? now + more : told;
            assert_int_equal(more > 0, i % 2);
            webrig_advance(r, 200);
            assert_int_equal(places(r, kind), n);
        }
        for (int k = 0; k < 30; k++) {
            webrig_advance(r, 300);
            assert_int_equal(told_for(r, &u), 0);
            webrig_other(r);
        }
        assert_int_equal(places(r, kind), 0);
        check_no_notes(r, &u);
        webrig_free(r);
    }
}

/* A gate has no connection when the end comes, and the clock of the servers is set back: it deletes
 * nothing by what it knew when it comes back. */
TEST(a_gate_that_was_away_learns_anew_when_a_hold_ends)
{
    for (size_t i = 0; i < LIMITED; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        size_t kind = limited[i].kind, n = kind == 5 ? 3 : 1;
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, limited[i].body), 201));
        webrig_advance(r, 3000);
        r->net->wall_shift -= 3000;
        webrig_second(r);
        int64_t told = r->net->now;
        told += told_for(r, &u);
        webrig_advance(r, 1500);
        assert_int_equal(places(r, kind), n);
        webrig_other(r);
        assert_in_range(told_for(r, &u), 1, 3000);
        while (r->net->now + 300 < told) {
            webrig_advance(r, 200);
            assert_int_equal(places(r, kind), n);
        }
        webrig_free(r);
    }
}

/* A gate writes that the end has come, and loses the connection: whether it was written or not, no
 * gate says that it is held after one has said that it is not. */
TEST(an_end_that_was_said_stays)
{
    for (size_t i = 0; i < 2 * (size_t)LIMITED; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        size_t kind = limited[i / 2].kind, n = kind == 5 ? 3 : 1;
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, limited[i / 2].body), 201));
        webrig_advance(r, 3900);
        memnet_rule(r->net, (struct memnet_rule){U_FIRST, i % 2 ? MEMNET_REPLY : MEMNET_REQUEST,
                                                 OP_SET_DATA, MEMNET_HOLD, 0});
        webrig_advance(r, 200);
        assert_int_equal(places(r, kind), n);
        r->net->wall_shift -= 3000;
        webrig_second(r);
        if (i % 2)
            assert_int_equal(told_for(r, &u), 0);
        int64_t told = r->net->now;
        told += told_for(r, &u);
        memnet_clear(r->net);
        webrig_other(r);
        while (r->net->now + 300 < told) {
            webrig_advance(r, 200);
            assert_int_equal(places(r, kind), n);
            assert_int_equal(told_for(r, &u) > 0, !(i % 2));
        }
        for (int k = 0; k < 30; k++) {
            webrig_advance(r, 300);
            (void)told_for(r, &u);
        }
        assert_int_equal(told_for(r, &u), 0);
        assert_int_equal(places(r, kind), 0);
        webrig_free(r);
    }
}

/* Each allocation fails once, while the claim is made and granted, or while the first gate takes it
 * up from the second: it ends in time all the same. */
TEST(without_memory_a_longest_hold_ends)
{
    for (size_t i = 0; i < 2 * (size_t)LIMITED; i++) {
        bool failed = true;
        for (size_t failing = 1; failed; failing++) {
            struct user u;
            struct failmem fail;
            failmem_init(&fail);
            struct webrig *r =
                webrig_new(&(struct webrig_options){.session_key = key, .mem = &fail.mem});
            user_enter(r, &u);
            snprintf(u.claim, sizeof u.claim, "%s", UUID);
            webrig_second(r);
            int64_t since = r->net->now;
            if (i % 2)
                webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, limited[i / 2].body), 201));
            webrig_other(r);
            failmem_arm(&fail, failing, 1);
            struct webrig_call *c =
                i % 2 ? renews(r, &u) : user_sends(r, &u, "POST", 1, KEYED, limited[i / 2].body);
            webrig_advance(r, 200);
            failed = fail.failed;
            failmem_arm(&fail, 0, 0);
            webrig_end(c);
            while (r->net->now < since + 5000) {
                webrig_end(ends(r, renews(r, &u), 200));
                webrig_advance(r, 500);
            }
            assert_int_equal(told_for(r, &u), 0);
            webrig_advance(r, 5000);
            webrig_end(ends(r, renews(r, &u), 200));
            assert_int_equal(places(r, limited[i / 2].kind), 0);
            webrig_free(r);
            assert_int_equal(fail.live, 0);
        }
    }
}

/* The session is being closed, so that the end cannot be said any more. */
TEST(a_longest_hold_ends_while_its_session_is_closed)
{
    struct user u;
    char target[64], header[128];
    struct webrig *r = two_gates(&u);
    webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, limited[0].body), 201));
    memnet_rule(r->net,
                (struct memnet_rule){U_FIRST, MEMNET_REPLY, OP_CLOSE_SESSION, MEMNET_HOLD, 0});
    snprintf(target, sizeof target, "/v1/sessions/%s", u.id);
    snprintf(header, sizeof header, "Clave-Session: %s", u.secret);
    struct webrig_call *c = webrig_request(r, "DELETE", target, header, NULL);
    webrig_advance(r, 4100);
    memnet_clear(r->net);
    webrig_end(ends(r, c, 204));
    assert_int_equal(places(r, 0), 0);
    webrig_free(r);
}

/* What a released claim had told other gates is gone with it, at whichever gate that was. */
TEST(a_release_leaves_no_note)
{
    for (size_t i = 0; i < 2 * (size_t)LIMITED; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, limited[i / 2].body), 201));
        size_t notes = limited[i / 2].kind == 3 ? 2 : 1; /* the terms of an election, too */
        assert_int_equal(memnet_list(r->net, 0, "/clave-gate", NULL, 0), notes);
        if (i % 2)
            webrig_second(r);
        webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204));
        check_no_notes(r, &u);
        webrig_free(r);
    }
}

/* ---- signs of life ---- */

/* As `limited`, with depend_ms instead. */
static const char *const depending[LIMITED] = {
    "{\"path\": \"/l\", \"depend_ms\": 4000}",
    "{\"path\": \"/l\", \"depend_ms\": 4000, \"revocable\": true}",
    "{\"path\": \"/l\", \"depend_ms\": 4000, \"kind\": \"write\", \"max_hold_ms\": 60000}",
    "{\"path\": \"/e\", \"depend_ms\": 4000, \"kind\": \"election\"}",
    "{\"path\": \"/e\", \"depend_ms\": 4000, \"kind\": \"election\", \"revocable\": true}",
    "{\"path\": \"/s\", \"depend_ms\": 4000, \"kind\": \"semaphore\", \"limit\": 3, "
    "\"permits\": 3, \"revocable\": true}",
};

/* What a request for a claim that is there asks otherwise is named, with both values. */
static void is_refused(struct webrig *r, const struct user *u, const char *keyed, const char *body,
                       const char *text)
{
    struct webrig_call *c = ends(r, user_sends(r, u, "POST", 5, keyed, body), 409);
    assert_string_equal(webrig_member(c, "code"), "ENODEEXISTS");
    assert_string_equal(webrig_member(c, "claim"), u->claim);
    assert_non_null(strstr(webrig_body(c), text));
    webrig_end(c);
}

/* With another Idempotency-Key than the first, or none, and at either gate: terms that differ are a
 * conflict, and the same ones are the same claim. */
TEST(a_claim_is_asked_for_again_on_its_terms_alone)
{
    static const struct {
        const char *made, *again, *text;
    } rows[] = {
        {"{\"path\": \"/l\", \"depend_ms\": 4000}", "{\"path\": \"/l\", \"depend_ms\": 3000}",
         "made with \\\"depend_ms\\\": 4000, and is asked for with \\\"depend_ms\\\": 3000"},
        {"{\"path\": \"/l\", \"depend_ms\": 4000}", "{\"path\": \"/l\"}",
         "made with \\\"depend_ms\\\": 4000, and is asked for without \\\"depend_ms\\\""},
        {"{\"path\": \"/l\"}", "{\"path\": \"/l\", \"max_hold_ms\": 9000}",
         "made without \\\"max_hold_ms\\\", and is asked for with \\\"max_hold_ms\\\": 9000"},
        {"{\"path\": \"/l\", \"lock_delay_ms\": 5}", "{\"path\": \"/l\", \"lock_delay_ms\": 6}",
         "\\\"lock_delay_ms\\\": 5, and"},
        {"{\"path\": \"/l\", \"revocable\": true}", "{\"path\": \"/l\"}",
         "with \\\"revocable\\\", and is asked for without \\\"revocable\\\""},
        {"{\"path\": \"/l\"}", "{\"path\": \"/l\", \"kind\": \"write\"}",
         "with \\\"kind\\\": \\\"lock\\\", and is asked for with \\\"kind\\\": \\\"write\\\""},
        {"{\"path\": \"/e\", \"kind\": \"election\", \"max_hold_ms\": 4000}",
         "{\"path\": \"/e\", \"kind\": \"election\", \"max_hold_ms\": 5000}",
         "\\\"max_hold_ms\\\": 4000, and"},
        {"{\"path\": \"/e\", \"kind\": \"election\"}",
         "{\"path\": \"/e\", \"kind\": \"election\", \"depend_ms\": 5000}",
         "made without \\\"depend_ms\\\""},
        {"{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 3, \"permits\": 2}",
         "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 3}",
         "\\\"permits\\\": 2, and is asked for with \\\"permits\\\": 1"},
    };
    for (size_t i = 0; i < 4 * (sizeof rows / sizeof *rows); i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        const char *keyed = i & 1 ? KEYED : NULL;
        const char *made = rows[i / 4].made, *again = rows[i / 4].again;
        struct webrig_call *c = ends(r, user_sends(r, &u, "POST", 5, keyed, made), 201);
        user_takes_claim(&u, c);
        if (i & 2)
            webrig_second(r);
        is_refused(r, &u, keyed, again, rows[i / 4].text);
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, keyed, made), 201));
        webrig_end(ends(r, user_sends(r, &u, "GET", 5, NULL, NULL), 200));
        webrig_end(ends(r, user_sends(r, &u, "DELETE", -1, NULL, NULL), 204));
        webrig_free(r);
    }
}

/* Its sign of life is noted, and extends the hold to 4 s from now at most. */
static void is_alive(struct webrig *r, const struct user *u)
{
    struct webrig_call *c = ends(r, user_gives_sign(r, u), 200);
    assert_string_equal(webrig_member(c, "state"), "held");
    assert_in_range(atoi(webrig_member(c, "valid_ms")), 3500, 4000);
    webrig_end(c);
}

/* It is over since its work was silent, which a late sign does not change. */
static void check_silent_here(struct webrig *r, const struct user *u)
{
    struct webrig_call *c = ends(r, renews(r, u), 200);
    assert_string_equal(webrig_member(c, "cause"), "work_silent");
    webrig_end(c);
    c = ends(r, user_gives_sign(r, u), 410);
    assert_string_equal(webrig_member(c, "code"), "ESILENT");
    assert_string_equal(webrig_member(c, "cause"), "work_silent");
    webrig_end(c);
}

static void check_silent(struct webrig *r, const struct user *u)
{
    check_silent_here(r, u);
    webrig_other(r);
    check_silent_here(r, u);
}

/* Held for longer than depend_ms as signs come, at whichever gate; renewals are none; and over
 * depend_ms after the newest sign, whichever gate had that. */
TEST(a_hold_that_depends_goes_on_by_signs_at_any_gate)
{
    for (size_t i = 0; i < 2 * (size_t)LIMITED; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        size_t kind = limited[i / 2].kind, n = kind == 5 ? 3 : 1;
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, depending[i / 2]), 201));
        webrig_second(r);
        for (int k = 0; k < 8; k++) {
            is_alive(r, &u);
            webrig_advance(r, 1500);
            if (i % 2 || k % 3 == 2)
                webrig_other(r);
        }
        is_alive(r, &u);
        int64_t since = r->net->now;
        while (r->net->now < since + 3500) {
            webrig_other(r);
            assert_in_range(told_for(r, &u), 1, since + 4000 - r->net->now);
            webrig_advance(r, 500);
        }
        webrig_advance(r, since + 4100 - r->net->now);
        check_silent(r, &u);
        assert_int_equal(places(r, kind), n); /* a gate does not know what the other has told */
        webrig_advance(r, 4600);
        webrig_end(ends(r, renews(r, &u), 200));
        assert_int_equal(places(r, kind), 0);
        check_no_notes(r, &u);
        webrig_free(r);
    }
}

/* One commit a sign, and one for those that come while it is under way. */
TEST(a_sign_of_life_is_one_commit)
{
    enum { SIGNS = 5 };
    struct user u;
    struct webrig_call *calls[SIGNS];
    struct webrig *r = two_gates(&u);
    webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, depending[0]), 201));
    webrig_end(ends(r, renews(r, &u), 200));
    int64_t zxid = r->net->server->last_zxid;
    is_alive(r, &u);
    assert_int_equal(r->net->server->last_zxid, zxid + 1);
    memnet_freeze(r->net, U_FIRST, true);
    for (size_t i = 0; i < SIGNS; i++)
        calls[i] = user_gives_sign(r, &u);
    memnet_freeze(r->net, U_FIRST, false);
    for (size_t i = 0; i < SIGNS; i++)
        webrig_end(ends(r, calls[i], 200));
    assert_int_equal(r->net->server->last_zxid, zxid + 3);
    webrig_free(r);
}

/* Its answer is lost, whether it was noted or not: that is told as not known, and the next one
 * counts, at either gate. */
TEST(a_sign_whose_answer_is_lost_may_be_given_again)
{
    for (int i = 0; i < 8; i++) {
        struct user u;
        struct webrig *r = webrig_new(&(struct webrig_options){.session_key = i & 4 ? NULL : key});
        user_enter(r, &u);
        snprintf(u.claim, sizeof u.claim, "%s", UUID);
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, depending[0]), 201));
        webrig_advance(r, 2000);
        memnet_rule(r->net, (struct memnet_rule){U_FIRST, i & 1 ? MEMNET_REPLY : MEMNET_REQUEST,
                                                 OP_MULTI, MEMNET_LOSE, 0});
        struct webrig_call *c = ends(r, user_gives_sign(r, &u), 504);
        assert_string_equal(webrig_member(c, "class"), "unknown");
        webrig_end(c);
        memnet_clear(r->net);
        if (i & 2 && !(i & 4))
            webrig_second(r);
        is_alive(r, &u);
        webrig_advance(r, 3000);
        assert_true(told_for(r, &u) > 0);
        webrig_advance(r, 1200);
        assert_int_equal(told_for(r, &u), 0);
        webrig_end(ends(r, user_gives_sign(r, &u), 410));
        webrig_free(r);
    }
}

/* The end is under way at the servers when the sign comes, or the sign when the time is up: one of
 * them is. */
TEST(a_sign_and_the_end_exclude_each_other)
{
    for (int i = 0; i < 4; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        bool sign_first = i & 1;
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, depending[0]), 201));
        webrig_end(ends(r, renews(r, &u), 200)); /* no gate has had it before */
        webrig_advance(r, 3900);
        struct webrig_call *c = NULL;
        memnet_freeze(r->net, U_FIRST, true);
        if (sign_first)
            c = user_gives_sign(r, &u);
        webrig_advance(r, 200);
        if (!c)
            c = user_gives_sign(r, &u);
        if (i & 2) {
            memnet_freeze(r->net, U_FIRST, false);
            webrig_end(ends(r, c, sign_first ? 200 : 410));
            assert_int_equal(told_for(r, &u) > 0, sign_first);
        } else { /* neither gets there: the next gate ends it */
            webrig_second(r);
            webrig_end(ends(r, user_gives_sign(r, &u), 410));
            memnet_freeze(r->net, U_FIRST, false);
            webrig_other(r);
            webrig_end(ends(r, c, 410));
            check_silent(r, &u);
        }
        webrig_free(r);
    }
}

/* A sign that does not get to the servers in time does not prolong what other gates tell. */
TEST(a_sign_counts_from_when_it_came)
{
    struct user u;
    struct webrig *r = two_gates(&u);
    webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, depending[0]), 201));
    webrig_advance(r, 1000);
    int64_t since = r->net->now;
    memnet_refuse(r->net, U_FIRST, true);
    webrig_settle(r);
    struct webrig_call *c = user_gives_sign(r, &u);
    webrig_advance(r, 1500);
    assert_false(c->answered);
    memnet_refuse(r->net, U_FIRST, false);
    webrig_end(ends(r, c, 200));
    webrig_second(r);
    while (r->net->now < since + 3500) {
        assert_in_range(told_for(r, &u), 1, since + 4000 - r->net->now);
        webrig_advance(r, 300);
    }
    webrig_advance(r, since + 4100 - r->net->now);
    check_silent(r, &u);
    webrig_free(r);
}

/* Each allocation fails once while a sign is given: it is answered, and those after it count. */
TEST(without_memory_a_sign_is_answered)
{
    bool failed = true;
    for (size_t failing = 1; failed; failing++) {
        struct user u;
        struct failmem fail;
        failmem_init(&fail);
        struct webrig *r =
            webrig_new(&(struct webrig_options){.session_key = key, .mem = &fail.mem});
        user_enter(r, &u);
        snprintf(u.claim, sizeof u.claim, "%s", UUID);
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, depending[5]), 201));
        webrig_end(ends(r, renews(r, &u), 200));
        failmem_arm(&fail, failing, 1);
        struct webrig_call *c = user_gives_sign(r, &u);
        webrig_advance(r, 200);
        failed = fail.failed;
        failmem_arm(&fail, 0, 0);
        assert_true(c->answered);
        webrig_end(c);
        webrig_advance(r, 2000);
        is_alive(r, &u);
        webrig_advance(r, 3000);
        assert_true(told_for(r, &u) > 0);
        webrig_advance(r, 1200);
        check_silent_here(r, &u);
        webrig_free(r);
        assert_int_equal(fail.live, 0);
    }
}

/* Its place is deleted by an operator: no sign finds it held. */
TEST(a_sign_finds_its_place_gone)
{
    struct user u;
    struct webrig *r = two_gates(&u);
    char path[128];
    struct webrig_call *c = ends(r, user_sends(r, &u, "POST", 5, KEYED, depending[0]), 201);
    snprintf(path, sizeof path, "%s", webrig_member(c, "node"));
    webrig_end(c);
    assert_int_equal(memnet_delete(r->net, 0, path), CLAVE_OK);
    c = ends(r, user_gives_sign(r, &u), 410);
    assert_string_equal(webrig_member(c, "cause"), "deleted");
    webrig_end(c);
    webrig_free(r);
}

/* A gate that has not had the claim before, as after a restart, is asked to release it: the release
 * is confirmed when the node is gone, and not while its delete is on the way. */
TEST(a_release_is_confirmed_when_the_node_is_gone)
{
    enum { U_OTHER = 3 };
    for (size_t i = 0; i < KINDS; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, kinds[i].body), 201));
        webrig_second(r);
        memnet_rule(r->net,
                    (struct memnet_rule){U_OTHER, MEMNET_REQUEST, OP_DELETE, MEMNET_HOLD, 0});
        struct webrig_call *c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
        webrig_advance(r, 500);
        assert_false(c->answered);
        assert_int_equal(places(r, i), places_of_one(i));
        memnet_clear(r->net);
        webrig_end(ends(r, c, 204));
        assert_int_equal(places(r, i), 0);
        webrig_free(r);
    }
}

static struct webrig_call *closes(struct webrig *r, const struct user *u)
{
    char target[96], header[128];
    snprintf(target, sizeof target, "/v1/sessions/%s", u->id);
    snprintf(header, sizeof header, "Clave-Session: %s", u->secret);
    return webrig_request(r, "DELETE", target, header, NULL);
}

/* The gate that is asked to end the session reaches no server, and the session goes on at the
 * other: that it has ended is not said, for however long nobody has heard of it here. */
TEST(an_end_of_a_session_is_confirmed_by_the_servers)
{
    enum { U_FIRST = 1 };
    struct user u;
    struct webrig *r = two_gates(&u);
    webrig_end(ends(r, user_sends(r, &u, "POST", -1, KEYED, LOCK), 201));
    memnet_refuse(r->net, U_FIRST, true);
    webrig_settle(r);
    struct webrig_call *c = closes(r, &u);
    webrig_second(r);
    for (int i = 0; i < 20; i++) {
        webrig_end(ends(r, renews(r, &u), 200));
        webrig_advance(r, 1000);
    }
    user_expects(c, 504);
    assert_string_equal(webrig_member(c, "class"), "unknown");
    webrig_end(c);
    assert_int_equal(places(r, 0), 1);
    webrig_other(r);
    memnet_refuse(r->net, U_FIRST, false);
    webrig_end(ends(r, renews(r, &u), 200)); /* it goes on here, too */
    webrig_end(ends(r, closes(r, &u), 204));
    assert_int_equal(places(r, 0), 0);
    webrig_free(r);
}

/* u waits, and gives that up; the mark is answered, and the delete of the place is lost with the
 * connection. It is repeated, and no new place is made before: a session has one. */
TEST(a_new_place_waits_for_a_delete_that_is_repeated)
{
    for (int shared = 0; shared < 2; shared++) {
        struct user u, v;
        struct webrig *r = webrig_new(&(struct webrig_options){.session_key = shared ? key : NULL});
        user_enter(r, &v);
        user_enter(r, &u);
        user_takes_claim(&v, ends(r, user_sends(r, &v, "POST", -1, NULL, LOCK), 201));
        user_takes_claim(&u, ends(r, user_sends(r, &u, "POST", -1, NULL, LOCK), 202));
        memnet_rule(r->net,
                    (struct memnet_rule){U_SECOND, MEMNET_REQUEST, OP_DELETE, MEMNET_HOLD, 0});
        webrig_end(user_sends(r, &u, "DELETE", -1, NULL, NULL)); /* its client gives up */
        assert_int_equal(places(r, 0), 2);
        memnet_refuse(r->net, U_SECOND, true);
        memnet_clear(r->net);
        webrig_settle(r);
        memnet_rule(r->net,
                    (struct memnet_rule){U_SECOND, MEMNET_REQUEST, OP_SYNC, MEMNET_HOLD, 0});
        memnet_refuse(r->net, U_SECOND, false);
        struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, LOCK);
        webrig_advance(r, 500);
        memnet_clear(r->net);
        webrig_settle(r);
        assert_true(c->answered);
        if (c->status != 503) { /* the delete came first */
            user_expects(c, 202);
            assert_string_equal(webrig_member(c, "position"), "2");
        }
        webrig_end(c);
        webrig_end(ends(r, user_sends(r, &u, "POST", -1, NULL, LOCK), 202));
        assert_int_equal(places(r, 0), 2);
        webrig_free(r);
    }
}

/* The answers to a release are lost, and so is the delete of the note. */
TEST(a_note_that_stayed_behind_is_deleted)
{
    for (size_t i = 0; i < LIMITED; i++) {
        struct user u;
        struct webrig *r = two_gates(&u);
        webrig_end(ends(r, user_sends(r, &u, "POST", 5, KEYED, limited[i].body), 201));
        memnet_rule(r->net,
                    (struct memnet_rule){U_FIRST, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
        struct webrig_call *gives = user_sends(r, &u, "DELETE", -1, NULL, NULL);
        assert_int_equal(places(r, limited[i].kind), 0);
        webrig_second(r);
        webrig_end(ends(r, renews(r, &u), 200));
        assert_int_equal(memnet_list(r->net, 0, "/clave-gate", NULL, 0), 1); /* the mark */
        memnet_clear(r->net);
        webrig_end(gives);
        check_no_notes(r, &u);
        webrig_free(r);
    }
}

/* What is taken up at another gate counts there as what is made. */
TEST(sessions_that_are_taken_up_count_for_their_sender)
{
    enum { MOST = 4 };
    struct user u[MOST + 1];
    struct webrig *r = two_gates(&u[0]);
    for (size_t i = 1; i <= MOST; i++)
        user_enter(r, &u[i]);
    webrig_second(r);
    clave__web_set_max_sender_sessions(r->web, MOST);
    for (size_t i = 0; i <= MOST; i++)
        webrig_end(ends(r, renews(r, &u[i]), i < MOST ? 200 : 429));
    webrig_free(r);
}
