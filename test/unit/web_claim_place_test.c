/* web_claim_place_test.c - a session has one place a path and owner, and a semaphore one limit:
 * claims that are asked for again without an Idempotency-Key, at the same gate and at another. */
#include "lib/claim_scene.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "web/session/claim.h"
#include "web/web_internal.h"
#include "wire/proto.h"

static const uint8_t key[32] = {42};
#define UUID "01234567-89ab-4def-8123-456789abcdef"

/* Each kind, and where its node is. */
static const struct kind {
    const char *body, *dir;
} kinds[] = {
    {"{\"path\": \"/l\"}", "/l"},
    {"{\"path\": \"/l\", \"kind\": \"read\"}", "/l"},
    {"{\"path\": \"/l\", \"kind\": \"write\"}", "/l"},
    {"{\"path\": \"/l\", \"kind\": \"semaphore\", \"limit\": 2}", "/l/leases"},
    {"{\"path\": \"/l\", \"kind\": \"election\"}", "/l"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void expect_member(struct webrig_call *c, unsigned status, const char *name,
                          const char *value)
{
    user_expects(c, status);
    assert_string_equal(webrig_member(c, name), value);
    webrig_end(c);
}

TEST(what_is_held_is_the_answer)
{
    for (size_t i = 0; i < KINDS; i++) {
        CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
        struct user u;
        user_enter(r, &u);
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, kinds[i].body));
        for (int wait = -1; wait <= 5; wait++)
            expect_member(user_sends(r, &u, "POST", wait, NULL, kinds[i].body), 201, "id", u.claim);
        assert_int_equal(memnet_list(r->net, 0, kinds[i].dir, NULL, 0), 1);
        for (size_t other = 0; other < KINDS; other++)
            if (other != i)
                expect_member(user_sends(r, &u, "POST", 0, NULL, kinds[other].body), 409, "claim",
                              u.claim);
        expect_member(user_sends(r, &u, "POST", 0, "Idempotency-Key: k", kinds[i].body), 409,
                      "claim", u.claim);
        user_expects(user_sends(r, &u, "DELETE", -1, NULL, NULL), 204);
        user_expects(user_sends(r, &u, "POST", 0, NULL, kinds[(i + 1) % KINDS].body), 201);
    }
}

TEST(what_waits_is_the_answer)
{
    static const char one[] = "{\"path\": \"/l\", \"kind\": \"semaphore\", \"limit\": 1}";
    static const char three[] = "{\"path\": \"/l\", \"kind\": \"semaphore\", \"limit\": 3}";
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, one));
    user_takes_claim(&v, user_sends(r, &v, "POST", -1, NULL, one));
    expect_member(user_sends(r, &v, "POST", -1, NULL, one), 202, "position", "1");
    struct webrig_call *c = user_sends(r, &v, "POST", 0, NULL, one);
    webrig_advance(r, 1);
    expect_member(c, 202, "id", v.claim);
    expect_member(user_sends(r, &v, "POST", -1, NULL, three), 409, "claim", v.claim);
    c = user_sends(r, &v, "POST", 30, NULL, one);
    assert_false(c->answered);
    user_expects(user_sends(r, &u, "DELETE", -1, NULL, NULL), 204);
    webrig_settle(r);
    expect_member(c, 201, "id", v.claim);
}

/* The owner is the end of a key that is a UUID of version 8: each of a session's owners has a place
 * of its own, at whichever gate. */
#define KEY_OF(owner, n) "Idempotency-Key: 0123456" #n "-89ab-8def-8123-00000000000" #owner
TEST(owners_of_one_session_stand_in_one_queue)
{
    for (int gates = 1; gates <= 2; gates++) {
        CLOSED_BY(webrig_freed)
        struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
        struct user u, second;
        user_enter(r, &u);
        second = u;
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, KEY_OF(a, 1), LOCK));
        if (gates == 2)
            webrig_second(r);
        struct webrig_call *c = user_sends(r, &u, "POST", 0, KEY_OF(b, 9), LOCK);
        user_expects(c, 409);
        assert_non_null(strstr(webrig_body(c), "is held by another"));
        webrig_end(c);
        c = user_sends(r, &u, "POST", -1, KEY_OF(b, 2), LOCK);
        expect_member(c, 202, "position", "2");
        snprintf(second.claim, sizeof second.claim, "01234562-89ab-8def-8123-00000000000b");
        expect_member(user_sends(r, &u, "POST", -1, KEY_OF(a, 3), LOCK), 409, "claim", u.claim);
        expect_member(user_sends(r, &u, "POST", -1, KEY_OF(b, 3), LOCK), 409, "claim",
                      second.claim);
        assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 2);
        c = user_sends(r, &second, "GET", 20, NULL, NULL);
        assert_false(c->answered);
        user_expects(user_sends(r, &u, "DELETE", -1, NULL, NULL), 204);
        webrig_settle(r);
        expect_member(c, 200, "state", "held");
        user_expects(user_sends(r, &second, "DELETE", -1, NULL, NULL), 204);
        assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 0);
    }
}

TEST(what_is_being_given_back_is_asked_for_again_later)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, LOCK));
    memnet_rule(r->net, (struct memnet_rule){1, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *c = user_sends(r, &u, "DELETE", -1, NULL, NULL);
    expect_member(user_sends(r, &u, "POST", 0, NULL, LOCK), 503, "code", "EINUSE");
    memnet_clear(r->net);
    webrig_settle(r);
    user_expects(c, 204);
    user_expects(user_sends(r, &u, "POST", 0, NULL, LOCK), 201);
}

TEST(another_gate_knows_the_place_by_its_session)
{
    for (size_t i = 0; i < KINDS; i++) {
        CLOSED_BY(webrig_freed)
        struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
        struct user u;
        user_enter(r, &u);
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, kinds[i].body));
        webrig_second(r);
        for (size_t other = 0; other < KINDS; other++)
            if (other != i)
                expect_member(user_sends(r, &u, "POST", -1, NULL, kinds[other].body), 409, "claim",
                              u.claim);
        struct webrig_call *c = user_sends(r, &u, "POST", 20, NULL, kinds[i].body);
        webrig_advance(r, 4000); /* its deadline is confirmed first */
        expect_member(c, 201, "id", u.claim);
        assert_int_equal(memnet_list(r->net, 0, kinds[i].dir, NULL, 0), 1);
    }
}

/* A key names one claim: another one is not that of the session, nor is it made beside it. */
TEST(another_gate_makes_no_second_place_for_another_key)
{
    for (size_t i = 0; i < KINDS; i++) {
        CLOSED_BY(webrig_freed)
        struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
        struct user u;
        user_enter(r, &u);
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, "Idempotency-Key: one", kinds[i].body));
        webrig_second(r);
        for (size_t k = 0; k < KINDS; k++)
            expect_member(user_sends(r, &u, "POST", 0, "Idempotency-Key: two", kinds[k].body), 409,
                          "claim", u.claim);
        for (size_t k = 0; k < KINDS; k++)
            if (k != i)
                expect_member(user_sends(r, &u, "POST", 0, "Idempotency-Key: one", kinds[k].body),
                              409, "claim", u.claim);
        struct webrig_call *c =
            user_sends(r, &u, "POST", 20, "Idempotency-Key: one", kinds[i].body);
        webrig_advance(r, 4000);
        expect_member(c, 201, "id", u.claim);
        assert_int_equal(memnet_list(r->net, 0, kinds[i].dir, NULL, 0), 1);
    }
}

/* What a gate remembers is in the way of nothing once another gate has given it back. */
TEST(what_was_given_back_elsewhere_is_not_in_the_way)
{
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u;
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, "Idempotency-Key: " UUID, LOCK));
    expect_member(user_sends(r, &u, "POST", -1, "Idempotency-Key: two", LOCK), 409, "claim", UUID);
    webrig_second(r);
    struct webrig_call *c = user_sends(r, &u, "POST", 20, "Idempotency-Key: " UUID, LOCK);
    webrig_advance(r, 4000);
    expect_member(c, 201, "id", UUID);
    user_expects(user_sends(r, &u, "DELETE", -1, NULL, NULL), 204);
    webrig_other(r);
    c = user_sends(r, &u, "POST", 20, "Idempotency-Key: two", LOCK);
    webrig_advance(r, 4000);
    user_expects(c, 201);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 1);
}

/* Each has a name of its own, and they are one place. */
TEST(several_permits_are_one_place)
{
    static const char three[] =
        "{\"path\": \"/l\", \"kind\": \"semaphore\", \"limit\": 4, \"permits\": 3}";
    static const char two[] =
        "{\"path\": \"/l\", \"kind\": \"semaphore\", \"limit\": 4, \"permits\": 2}";
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
    struct user u;
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, three));
    webrig_second(r);
    char own[96];
    snprintf(own, sizeof own, "Idempotency-Key: %s", u.claim);
    user_expects(user_sends(r, &u, "POST", 0, "Idempotency-Key: two", three), 409);
    user_expects(user_sends(r, &u, "POST", 0, own, two), 409);
    struct webrig_call *c = user_sends(r, &u, "POST", 20, NULL, three);
    webrig_advance(r, 4000);
    expect_member(c, 201, "id", u.claim);
    assert_int_equal(memnet_list(r->net, 0, "/l/leases", NULL, 0), 3);
}

TEST(a_semaphore_has_one_limit)
{
    static const char two[] = "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 2}";
    static const char five[] = "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 5}";
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, two));
    struct webrig_call *c = user_sends(r, &v, "POST", 30, NULL, five);
    assert_non_null(strstr(webrig_body(c), "has the limit 2"));
    assert_non_null(strstr(webrig_body(c), "and 5 was asked for"));
    expect_member(c, 409, "limit", "2");
    c = webrig_request(r, "POST", "/v1/hold", NULL, five);
    expect_member(c, 409, "limit", "2");
    user_expects(user_sends(r, &v, "POST", 0, NULL, two), 201);
}

/* Its node may come before the delete of it does. */
TEST(a_create_that_was_given_up_delays_the_next)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    assert_int_equal(memnet_create(r->net, 0, "/l"), CLAVE_OK);
    memnet_rule(r->net, (struct memnet_rule){1, MEMNET_REQUEST, OP_CREATE2, MEMNET_HOLD, 0});
    struct webrig_call *c = user_sends(r, &u, "POST", 20, "Idempotency-Key: " UUID, LOCK);
    snprintf(u.claim, sizeof u.claim, "%s", UUID);
    struct webrig_call *d = user_sends(r, &u, "DELETE", -1, NULL, NULL);
    assert_false(d->answered);
    expect_member(user_sends(r, &u, "POST", -1, NULL, LOCK), 503, "code", "EINUSE");
    memnet_clear(r->net);
    webrig_settle(r);
    user_expects(d, 204);
    webrig_end(c);
    webrig_end(d);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 0);
    user_expects(user_sends(r, &u, "POST", 0, NULL, LOCK), 201);
}

/* ---- rights ---------------------------------------------------------------------------------- */

static const struct web_grant deep[] = {{WEB_WRITE, "/jobs/deep/a"}};
static const struct web_user ann[] = {
    {.name = "ann", .token = "ann", .uid = -1, .grants = deep, .ngrants = 1}};
static const struct web_access access_of_ann = {.users = ann, .nusers = 1, .owner_uid = -1};

/* Nodes above a grant, and beside it, are nobody's to make. */
TEST(nothing_is_made_outside_of_a_grant)
{
    static const struct {
        const char *target, *body, *made;
    } rows[] = {
        {"/v1/claims", "{\"path\": \"/jobs/deep/a\"}", "/jobs/deep"},
        {"/v1/claims", "{\"path\": \"/jobs/deep/a/b/c\", \"kind\": \"read\"}", "/jobs/deep"},
        {"/v1/claims", "{\"path\": \"/jobs/deep/a\", \"kind\": \"semaphore\", \"limit\": 2}",
         "/jobs/deep"},
        {"/v1/hold", "{\"path\": \"/jobs/deep/a\"}", "/jobs/deep"},
        {"/v1/hold", "{\"path\": \"/jobs/deep/a\", \"lock_delay_ms\": 1}", "/jobs/deep/a-held"},
        {"/v1/claims", "{\"path\": \"/jobs/deep/a\", \"lock_delay_ms\": 1}", "/jobs/deep/a-held"},
        {"/v1/znodes/jobs/deep/a?parents", NULL, "/jobs/deep"},
        {"/v1/znodes/jobs/deep/a/b?parents", NULL, "/jobs/deep"},
    };
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &access_of_ann});
    size_t at_first = memnet_list(r->net, 0, "/", NULL, 0);
    char headers[300];
    struct webrig_call *c =
        webrig_request(r, "POST", "/v1/sessions", "Authorization: Bearer ann", "{}");
    snprintf(headers, sizeof headers, "Authorization: Bearer ann\nClave-Session: %s",
             webrig_member(c, "secret"));
    webrig_end(c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool claims = strcmp(rows[i].target, "/v1/claims") == 0;
        c = webrig_request(r, "POST", rows[i].target,
                           claims ? headers : "Authorization: Bearer ann", rows[i].body);
        assert_non_null(strstr(webrig_body(c), rows[i].made));
        expect_member(c, 403, "path", rows[i].made);
        assert_int_equal(memnet_list(r->net, 0, "/", NULL, 0), at_first);
    }
    expect_member(webrig_request(r, "PUT", "/v1/elections/jobs/deep/a/value", headers, NULL), 403,
                  "path", "/jobs/deep/a-value");
    assert_int_equal(memnet_create(r->net, 0, "/jobs"), CLAVE_OK);
    expect_member(webrig_request(r, "POST", "/v1/claims", headers, rows[1].body), 403, "path",
                  "/jobs/deep");
    assert_int_equal(memnet_create(r->net, 0, "/jobs/deep"), CLAVE_OK);
    user_expects(webrig_request(r, "POST", "/v1/claims", headers, rows[1].body), 201);
    user_expects(webrig_request(r, "POST", rows[7].target, "Authorization: Bearer ann", NULL), 409);
}

/* A look that asks for no wait is not counted as one, so it must be answered. */
TEST(a_look_does_not_wait_for_a_place)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    memnet_rule(r->net, (struct memnet_rule){1, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    struct webrig_call *c = user_sends(r, &u, "POST", -1, "Idempotency-Key: one", LOCK);
    assert_false(c->answered);
    webrig_end(c);
    clave__claim_id_of_key(clave__http_session_by_id(r->web->sessions, atoll(u.id)), "one",
                           u.claim);
    for (int wait = -1; wait <= 0; wait++) {
        c = user_sends(r, &u, "GET", wait, NULL, NULL);
        webrig_advance(r, 1);
        user_expects(c, 202);
        assert_null(webrig_member(c, "position"));
        webrig_end(c);
    }
    memnet_clear(r->net);
    webrig_settle(r);
    user_expects(user_sends(r, &u, "GET", -1, NULL, NULL), 200);
}

/* The servers do not say whether another limit is in its way: nothing was begun. */
TEST(what_is_looked_for_in_vain_is_not_begun)
{
    static const char slow[] = "{\"ttl_ms\": 60000}";
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    struct webrig_call *c = webrig_request(r, "POST", "/v1/sessions", NULL, slow);
    user_expects(c, 201);
    snprintf(u.secret, sizeof u.secret, "%s", webrig_member(c, "secret"));
    webrig_end(c);
    memnet_rule(r->net, (struct memnet_rule){1, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    c = user_sends(r, &u, "POST", 30, NULL, kinds[3].body);
    webrig_advance(r, 14000);
    assert_false(c->answered);
    webrig_advance(r, 2000);
    user_expects(c, 503);
    assert_string_equal(webrig_member(c, "class"), "retry");
    webrig_end(c);
    memnet_clear(r->net);
    webrig_settle(r);
    assert_int_equal(memnet_list(r->net, 0, "/l/leases", NULL, 0), 0);
}
