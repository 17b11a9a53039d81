/* web_slots_test.c - slots over HTTP: they belong to an owner, whatever gate a request reaches. */
#include "lib/claim_scene.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "wire/proto.h"

/* The engine's own session. */
enum { OWN = 0 };

#define SLOT "{\"kind\": \"slot\", \"path\": \"/s\", \"limit\": 1}"
#define PLAIN "{\"kind\": \"slot\", \"path\": \"/s\"}"

static struct webrig_call *slot_post(struct webrig *r, const char *owner, int wait,
                                     const char *body)
{
    char headers[128];
    int n = snprintf(headers, sizeof headers, "Clave-Owner: %s", owner);
    if (wait >= 0)
        snprintf(headers + n, sizeof headers - (size_t)n, "\nPrefer: wait=%d", wait);
    return webrig_request(r, "POST", "/v1/claims", headers, body);
}

/* Of the owner's claim: its id is the same at all times. */
static struct webrig_call *slot_send(struct webrig *r, const char *method, const char *id,
                                     const char *query, int wait)
{
    char target[256], prefer[32] = "";
    snprintf(target, sizeof target, "/v1/claims/%s%s", id, query);
    if (wait >= 0)
        snprintf(prefer, sizeof prefer, "Prefer: wait=%d", wait);
    return webrig_request(r, method, target, prefer[0] ? prefer : NULL, NULL);
}

static void slot_ends(struct webrig_call *c, unsigned status)
{
    user_expects(c, status);
    webrig_end(c);
}

/* The member of an answer, which is ended. */
static const char *slot_told(struct webrig_call *c, unsigned status, const char *key)
{
    static char text[256];
    user_expects(c, status);
    const char *value = webrig_member(c, key);
    snprintf(text, sizeof text, "%s", value ? value : "none");
    webrig_end(c);
    return text;
}

TEST(a_slot_is_taken_and_given_back)
{
    char id[128], token[32], target[96];
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct webrig_call *c = slot_post(r, "web1", 0,
                                      "{\"kind\": \"slot\", \"path\": \"/s\", \"limit\": 2, "
                                      "\"host\": \"h\", \"by\": \"ann\", \"reason\": \"kernel\"}");
    user_expects(c, 201);
    assert_string_equal(webrig_member(c, "state"), "held");
    assert_string_equal(webrig_member(c, "owner"), "web1");
    assert_string_equal(webrig_member(c, "by"), "ann");
    snprintf(id, sizeof id, "%s", webrig_member(c, "id"));
    snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
    assert_string_equal(webrig_header(c, "Location") + strlen("/v1/claims/"), id);
    webrig_end(c);
    assert_string_equal(slot_told(slot_post(r, "web1", 0, SLOT), 200, "token"), token);
    assert_string_equal(slot_told(slot_send(r, "GET", id, "", -1), 200, "reason"), "kernel");
    assert_string_equal(slot_told(slot_send(r, "DELETE", id, "?token=1", -1), 200, "given"),
                        "false");
    assert_string_equal(slot_told(slot_send(r, "GET", id, "", -1), 200, "token"), token);
    snprintf(target, sizeof target, "?token=%s", token);
    assert_string_equal(slot_told(slot_send(r, "DELETE", id, target, -1), 200, "given"), "true");
    assert_string_equal(slot_told(slot_send(r, "DELETE", id, "", -1), 200, "given"), "false");
    slot_ends(slot_send(r, "GET", id, "", -1), 404);
    slot_ends(slot_send(r, "PATCH", id, "", -1), 400);
}

/* Its token holds, and guards writes, as long as it is owned. */
TEST(a_slot_has_a_token)
{
    static const struct web_grant all[] = {{WEB_ADMIN, "/"}};
    static const struct web_user admin = {
        .name = "ann", .token = "0123456789abcdef", .uid = -1, .grants = all, .ngrants = 1};
    static const struct web_access access = {.users = &admin, .nusers = 1};
    char id[128], token[32], target[96], guard[160];
    const char *bearer = "Authorization: Bearer 0123456789abcdef";
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &access});
    snprintf(guard, sizeof guard, "%s\nClave-Owner: web1\nPrefer: wait=0", bearer);
    struct webrig_call *c = webrig_request(r, "POST", "/v1/claims", guard, SLOT);
    user_expects(c, 201);
    assert_string_equal(webrig_member(c, "by"), "ann");
    snprintf(id, sizeof id, "%s", webrig_member(c, "id"));
    snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
    webrig_end(c);
    snprintf(target, sizeof target, "/v1/locks/s?token=%s", token);
    snprintf(guard, sizeof guard,
             "%s\nContent-Type: application/octet-stream\nClave-Guard: /s;token=%s", bearer, token);
    for (int held = 1; held >= 0; held--) {
        assert_string_equal(slot_told(webrig_request(r, "GET", target, bearer, NULL), 200, "holds"),
                            held ? "true" : "false");
        slot_ends(webrig_request(r, "POST", held ? "/v1/znodes/x" : "/v1/znodes/y", guard, "data"),
                  held ? 201 : 410);
        char own[160];
        snprintf(own, sizeof own, "/v1/claims/%s", id);
        slot_ends(webrig_request(r, "DELETE", own, bearer, NULL), 200);
    }
}

TEST(takers_wait_and_keep_their_places)
{
    char id[3][128];
    static const char *const owners[] = {"a", "b", "c"};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    snprintf(id[0], sizeof id[0], "%s", slot_told(slot_post(r, "a", 0, SLOT), 201, "id"));
    struct webrig_call *c = slot_post(r, "b", 0, SLOT);
    user_expects(c, 409);
    assert_string_equal(webrig_member(c, "code"), "EBUSY");
    webrig_end(c);
    for (int i = 1; i < 3; i++) {
        c = slot_post(r, owners[i], -1, PLAIN);
        user_expects(c, 202);
        snprintf(id[i], sizeof id[i], "%s", webrig_member(c, "id"));
        assert_int_equal(atoi(webrig_member(c, "position")), i);
        webrig_end(c);
    }
    for (int i = 0; i < 4; i++) { /* two minutes of polls keep both */
        slot_ends(slot_send(r, "GET", id[1], "", -1), 202);
        slot_ends(slot_post(r, "c", 0, PLAIN), 202);
        webrig_advance(r, 29000);
    }
    assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 2);
    struct webrig_call *b = slot_send(r, "GET", id[1], "", 20);
    assert_false(b->answered);
    assert_string_equal(slot_told(slot_send(r, "DELETE", id[0], "", -1), 200, "given"), "true");
    webrig_settle(r);
    assert_string_equal(slot_told(b, 200, "state"), "held");
    assert_string_equal(slot_told(slot_send(r, "GET", id[2], "", -1), 202, "position"), "1");
    assert_string_equal(slot_told(slot_send(r, "DELETE", id[2], "", -1), 200, "given"), "false");
    assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/s/owners", NULL, 0), 1);
}

/* Its own request that waits is told, too. */
TEST(a_place_that_nobody_polls_is_given_up)
{
    char id[128];
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    slot_ends(slot_post(r, "a", 0, SLOT), 201);
    snprintf(id, sizeof id, "%s", slot_told(slot_post(r, "b", -1, SLOT), 202, "id"));
    webrig_end(slot_send(r, "GET", id, "", 60)); /* it hangs up */
    webrig_advance(r, 29000);
    assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 1);
    webrig_advance(r, 2000);
    assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 0);
    slot_ends(slot_send(r, "GET", id, "", -1), 404);
    struct webrig_call *c = slot_post(r, "b", 60, SLOT);
    webrig_advance(r, 40000);
    assert_false(c->answered);
    assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 1);
    slot_ends(slot_send(r, "DELETE", id, "", -1), 200);
    slot_ends(c, 410);
}

/* What others put among the owners: here, slots below the owners of others. */
TEST(a_child_of_the_owners_that_is_no_slot_is_nobodys_claim)
{
    char id[128];
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    snprintf(id, sizeof id, "%s", slot_told(slot_post(r, "a", 0, SLOT), 201, "id"));
    slot_ends(slot_send(r, "DELETE", id, "", -1), 200);
    slot_ends(slot_post(r, "x", 0, "{\"kind\": \"slot\", \"path\": \"/s/owners\", \"limit\": 1}"),
              201);
    slot_ends(slot_send(r, "GET", id, "", -1), 404);
}

TEST(bad_claims_are_refused)
{
    static const struct {
        const char *headers, *body;
        unsigned status;
    } cases[] = {
        {"Clave-Owner: a\nClave-Session: x", SLOT, 400},
        {"Clave-Owner: a\nClave-Owner: b", SLOT, 400},
        {"Clave-Owner: a\nIdempotency-Key: x", SLOT, 400},
        {"Clave-Owner: ", SLOT, 400},
        {"Clave-Owner: a", LOCK, 400},
        {"Clave-Owner: a", "{\"kind\": \"slot\"}", 400},
        {"Clave-Owner: a", "{\"kind\": \"slot\", \"path\": \"s\"}", 400},
        {"Clave-Owner: a", "{\"kind\": \"slot\", \"path\": \"/s\", \"limit\": 0}", 400},
        {"Clave-Owner: a", "{\"kind\": \"slot\", \"path\": \"/s\", \"ttl_ms\": 1}", 400},
        {"Clave-Owner: a", "{\"kind\": \"slot\", \"path\": \"/s\", \"host\": \"\\u0007\"}", 400},
        {"Clave-Owner: a\nPrefer: wait=0", PLAIN, 404},
        {"Clave-Owner: a", PLAIN, 404},
        {NULL, SLOT, 401},
    };
    static const char *const ids[] = {"slot.",  "slot.x",    "slot.L3M",
                                      "slot.*", "slot.L3MK", "slot.L3MKYQ=="};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        slot_ends(webrig_request(r, "POST", "/v1/claims", cases[i].headers, cases[i].body),
                  cases[i].status);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        slot_ends(slot_send(r, "GET", ids[i], "", -1), 404);
    slot_ends(slot_send(r, "GET", "slot.L3MKYQ", "", -1), 404); /* of "/s" and "a": not owned */
    slot_ends(webrig_request(r, "GET", "/v1/claims/slot.L3MKYQ", "Clave-Owner: b", NULL), 400);
    slot_ends(slot_send(r, "DELETE", "slot.L3MKYQ", "?token=0", -1), 400);
    slot_ends(slot_send(r, "DELETE", "x", "?token=1", -1), 400);
    assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 0);
}

/* What is read is no older than a commit of after the request, which a deposed leader cannot make.
 */
TEST(a_look_at_a_slot_is_behind_a_commit)
{
    char id[128], token[32];
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct webrig_call *c = slot_post(r, "web1", 0, SLOT);
    user_expects(c, 201);
    snprintf(id, sizeof id, "%s", webrig_member(c, "id"));
    snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
    webrig_end(c);
    memnet_rule(r->net, (struct memnet_rule){OWN, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    c = slot_send(r, "GET", id, "", -1);
    webrig_advance(r, 100);
    assert_false(c->answered);
    memnet_clear(r->net);
    webrig_advance(r, 100);
    assert_string_equal(slot_told(c, 200, "token"), token);
}

TEST(a_limit_is_set_owners_are_listed_and_broken)
{
    static const struct web_grant all[] = {{WEB_ADMIN, "/"}};
    static const struct web_user admin = {
        .name = "ann", .token = "0123456789abcdef", .uid = -1, .grants = all, .ngrants = 1};
    static const struct web_access access = {.users = &admin, .nusers = 1};
    const char *bearer = "Authorization: Bearer 0123456789abcdef";
    char owner[160];
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &access});
    slot_ends(webrig_request(r, "GET", "/v1/slots/s", bearer, NULL), 404);
    slot_ends(webrig_request(r, "PUT", "/v1/slots/s", bearer, "{}"), 400);
    slot_ends(webrig_request(r, "PUT", "/v1/slots/s", bearer, "{\"limit\": 1}"), 200);
    for (int i = 0; i < 2; i++) {
        snprintf(owner, sizeof owner, "%s\nClave-Owner: m%d", bearer, i);
        slot_ends(webrig_request(r, "POST", "/v1/claims", owner, PLAIN), i == 0 ? 201 : 202);
    }
    struct webrig_call *c = webrig_request(r, "GET", "/v1/slots/s", bearer, NULL);
    user_expects(c, 200);
    assert_string_equal(webrig_member(c, "limit"), "1");
    assert_non_null(strstr(webrig_body(c), "\"owners\": [{\"owner\": \"m0\""));
    assert_non_null(strstr(webrig_body(c), "\"waiting\": [{\"owner\": \"m1\""));
    webrig_end(c);
    slot_ends(webrig_request(r, "POST", "/v1/slots/s/break", bearer, "{\"owner\": \"m0\"}"), 400);
    slot_ends(webrig_request(r, "POST", "/v1/slots/s/break", bearer,
                             "{\"owner\": \"m0\", \"reason\": \"burnt\", \"token\": \"1\"}"),
              404);
    assert_string_equal(slot_told(webrig_request(r, "POST", "/v1/slots/s/break", bearer,
                                                 "{\"owner\": \"m0\", \"reason\": \"burnt\"}"),
                                  200, "owner"),
                        "m0");
    webrig_settle(r);
    c = webrig_request(r, "GET", "/v1/slots/s", bearer, NULL);
    user_expects(c, 200);
    assert_non_null(strstr(webrig_body(c), "\"owners\": [{\"owner\": \"m1\""));
    assert_non_null(strstr(webrig_body(c), "\"broken\": {\"owner\": \"m0\""));
    assert_non_null(strstr(webrig_body(c), "\"waiting\": []"));
    assert_non_null(strstr(webrig_body(c), "\"reason\": \"burnt\""));
    webrig_end(c);
    slot_ends(webrig_request(r, "GET", "/v1/slots/s",
                             "Authorization: Bearer 0123456789abcdef\nClave-Session: x", NULL),
              400);
}

/* ---- lost answers ---------------------------------------------------------------------------- */

TEST(a_take_whose_answer_is_lost_is_told_as_it_ended)
{
    static const enum memnet_direction ways[] = {MEMNET_REQUEST, MEMNET_REPLY};
    for (size_t i = 0; i < 4; i++) {
        CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
        slot_ends(slot_post(r, "a", 0, SLOT), 201);
        slot_ends(slot_send(r, "DELETE", "slot.L3MKYQ", "", -1), 200);
        memnet_rule(r->net, (struct memnet_rule){OWN, ways[i % 2], OP_MULTI, MEMNET_LOSE, 0});
        struct webrig_call *c = slot_post(r, "b", i < 2 ? 10 : 0, SLOT);
        webrig_advance(r, 12000);
        assert_int_equal(r->net->nrules, 0); /* it was lost */
        assert_true(c->answered);
        bool owned = c->status == 201 || c->status == 200;
        if (i < 2)
            assert_true(owned); /* a take that waits goes on; what was done is found */
        else if (!owned)        /* a try does not wait to find out, and says so */
            assert_string_equal(webrig_member(c, "class"), "unknown");
        size_t n = memnet_list(r->net, 0, "/s/owners", NULL, 0);
        assert_true(owned ? n == 1 : n <= 1);
        webrig_end(c);
        slot_ends(slot_post(r, "b", 0, SLOT), owned || n == 1 ? 200 : 201);
        assert_int_equal(memnet_list(r->net, 0, "/s/owners", NULL, 0), 1);
    }
}

TEST(a_give_whose_answer_is_lost_is_told_as_it_ended)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    slot_ends(slot_post(r, "a", 0, SLOT), 201);
    memnet_rule(r->net, (struct memnet_rule){OWN, MEMNET_REPLY, OP_MULTI, MEMNET_LOSE, 0});
    struct webrig_call *c = slot_send(r, "DELETE", "slot.L3MKYQ", "", -1);
    webrig_advance(r, 5000);
    assert_int_equal(r->net->nrules, 0);
    assert_string_equal(slot_told(c, 200, "given"), "true");
    assert_int_equal(memnet_list(r->net, 0, "/s/owners", NULL, 0), 0);
}

/* It is not known whether it was done; a repeated request tells. */
TEST(what_the_servers_do_not_answer_is_unknown)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    slot_ends(slot_post(r, "a", 0, SLOT), 201);
    slot_ends(slot_send(r, "DELETE", "slot.L3MKYQ", "", -1), 200);
    memnet_rule(r->net, (struct memnet_rule){OWN, MEMNET_REPLY, OP_MULTI, MEMNET_HOLD, 0});
    struct webrig_call *c = slot_post(r, "a", 0, SLOT);
    assert_false(c->answered);
    memnet_refuse(r->net, OWN, true);
    webrig_advance(r, 16000);
    assert_string_equal(slot_told(c, 504, "class"), "unknown");
    slot_ends(slot_post(r, "a", 0, SLOT), 503);
    slot_ends(slot_send(r, "DELETE", "slot.L3MKYQ", "", -1), 503);
    c = slot_send(r, "GET", "slot.L3MKYQ", "", -1);
    webrig_advance(r, 16000);
    slot_ends(c, 503);
    memnet_clear(r->net);
    memnet_refuse(r->net, OWN, false);
    webrig_advance(r, 20000);
    assert_int_equal(memnet_list(r->net, 0, "/s/owners", NULL, 0), 1);
    slot_ends(slot_post(r, "a", 0, SLOT), 200);
}

/* ---- several gates --------------------------------------------------------------------------- */

TEST(any_gate_knows_a_claim_by_its_id)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    slot_ends(slot_post(r, "a", 0, SLOT), 201);
    CLOSED_BY(webrig_ended) struct webrig_call *first = slot_post(r, "b", 60, SLOT);
    webrig_second(r);
    slot_ends(slot_send(r, "GET", "slot.L3MKYQ", "", -1), 200);
    slot_ends(slot_post(r, "a", 0, SLOT), 200);
    struct webrig_call *second = slot_post(r, "b", 60, SLOT);
    webrig_settle(r);
    assert_false(first->answered || second->answered);
    assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 2);
    slot_ends(slot_send(r, "DELETE", "slot.L3MKYQ", "", -1), 200);
    webrig_advance(r, 1000);
    user_expects(first, 201);
    char token[32];
    snprintf(token, sizeof token, "%s", webrig_member(first, "token"));
    assert_string_equal(slot_told(second, 200, "token"), token);
    assert_int_equal(memnet_list(r->net, 0, "/s/owners", NULL, 0), 1);
    assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 0);
}

/* A give at another gate could not withdraw it: whoever waits is told that nothing is known, and
 * when nobody waits it ends. */
TEST(a_take_without_a_place_lasts_as_long_as_its_requests)
{
    for (int i = 0; i < 3; i++) {
        CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
        slot_ends(slot_post(r, "a", 0, SLOT), 201);
        webrig_second(r);
        slot_ends(slot_send(r, "GET", "slot.L3MKYQ", "", -1), 200);
        webrig_other(r);
        memnet_rule(r->net, (struct memnet_rule){OWN, MEMNET_REQUEST, OP_CREATE2, MEMNET_HOLD, 0});
        struct webrig_call *c = slot_post(r, "b", i == 0 ? 2 : 60, SLOT);
        assert_false(c->answered);
        webrig_advance(r, i == 0 ? 2000 : 1000);
        if (i == 0) /* its time is over */
            assert_string_equal(slot_told(c, 504, "class"), "unknown");
        else if (i == 1) /* it hangs up */
            webrig_end(c);
        webrig_other(r);
        slot_ends(slot_send(r, "DELETE", "slot.L3MKYg", "", -1), 200);
        slot_ends(slot_send(r, "DELETE", "slot.L3MKYQ", "", -1), 200);
        memnet_clear(r->net);
        webrig_advance(r, 20000);
        assert_int_equal(memnet_list(r->net, 0, "/s/owners", NULL, 0), i == 2);
        assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 0);
        if (i == 2) /* it waits all the time */
            slot_ends(c, 201);
    }
}

/* Likewise when the place goes with the session of the gate. */
TEST(a_place_that_went_with_its_session_is_not_made_again)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    slot_ends(slot_post(r, "a", 0, SLOT), 201);
    webrig_second(r);
    slot_ends(slot_send(r, "GET", "slot.L3MKYQ", "", -1), 200);
    webrig_other(r);
    slot_ends(slot_post(r, "b", -1, SLOT), 202);
    memnet_freeze(r->net, OWN, true);
    memnet_kill_session(r->net, OWN);
    webrig_other(r);
    slot_ends(slot_send(r, "DELETE", "slot.L3MKYg", "", -1), 200);
    slot_ends(slot_send(r, "DELETE", "slot.L3MKYQ", "", -1), 200);
    memnet_freeze(r->net, OWN, false);
    webrig_advance(r, 20000);
    assert_int_equal(memnet_list(r->net, 0, "/s/owners", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 0);
}

TEST(a_gate_that_stops_does_not_promise)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    slot_ends(slot_post(r, "a", 0, SLOT), 201);
    struct webrig_call *c = slot_post(r, "b", 60, SLOT);
    clave__web_close(r->web, r->net->now);
    webrig_settle(r);
    assert_string_equal(slot_told(c, 504, "class"), "unknown");
    assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 0);
}

/* Who may lock there no more does not wait there either, by a poll or without one. */
TEST(roles_are_judged_again)
{
    static const struct web_access none = {.hosts = NULL};
    static const struct web_grant read[] = {{WEB_READ, "/"}};
    static const struct web_user reader = {
        .name = "r", .token = "0123456789abcdef", .uid = -1, .grants = read, .ngrants = 1};
    static const struct web_access readers = {.users = &reader, .nusers = 1};
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &none});
    slot_ends(slot_post(r, "a", 0, SLOT), 201);
    slot_ends(slot_post(r, "b", -1, SLOT), 202);
    struct webrig_call *c = slot_post(r, "c", 60, SLOT);
    clave__web_set_access(r->web, &readers);
    webrig_settle(r);
    slot_ends(c, 401);
    assert_int_equal(memnet_list(r->net, 0, "/s/queue", NULL, 0), 0);
    slot_ends(webrig_request(r, "POST", "/v1/claims",
                             "Clave-Owner: d\nAuthorization: Bearer 0123456789abcdef", SLOT),
              403);
}
