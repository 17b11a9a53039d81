/* web_claim_terms_test.c - what a claim may ask for beside its path: several permits of a
 * semaphore, a maximum hold, and that its node says something else. */
#include "lib/claim_scene.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "web/session/claim.h"

#define OF_THREE "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 3, \"permits\": "

static size_t leases(struct webrig *r, char names[8][96])
{
    return memnet_list(r->net, 0, "/s/leases", names, names ? 8 : 0);
}

static void expect_member(struct webrig_call *c, unsigned status, const char *name,
                          const char *value)
{
    user_expects(c, status);
    assert_string_equal(webrig_member(c, name), value);
    webrig_end(c);
}

static void renew(struct webrig *r, const struct user *u)
{
    char target[80], header[120];
    snprintf(target, sizeof target, "/v1/sessions/%s/renew", u->id);
    snprintf(header, sizeof header, "Clave-Session: %s", u->secret);
    user_expects(webrig_request(r, "POST", target, header, NULL), 200);
}

/* ---- permits --------------------------------------------------------------------------------- */

TEST(permits_are_had_all_or_none)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v, w;
    user_enter(r, &u);
    user_enter(r, &v);
    user_enter(r, &w);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, OF_THREE "2}"));
    assert_int_equal(leases(r, NULL), 2);
    user_expects(user_sends(r, &v, "POST", 0, NULL, OF_THREE "2}"), 409);
    assert_int_equal(leases(r, NULL), 2);
    struct webrig_call *c = user_sends(r, &v, "POST", 30, NULL, OF_THREE "2}");
    struct webrig_call *d = user_sends(r, &w, "POST", 30, NULL, OF_THREE "3}");
    assert_false(c->answered || d->answered);
    user_expects(user_sends(r, &u, "DELETE", -1, NULL, NULL), 204);
    webrig_settle(r);
    user_expects(c, 201);
    assert_false(d->answered);
    user_takes_claim(&v, c);
    user_expects(user_sends(r, &v, "DELETE", -1, NULL, NULL), 204);
    webrig_settle(r);
    user_expects(d, 201);
    user_takes_claim(&w, d);
    assert_int_equal(leases(r, NULL), 3);
    user_expects(user_sends(r, &w, "DELETE", -1, NULL, NULL), 204);
    assert_int_equal(leases(r, NULL), 0);
}

TEST(a_permit_lost_is_the_claim_lost)
{
    for (size_t gone = 0; gone < 3; gone++) {
        CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
        struct user u;
        char names[8][96], path[128];
        user_enter(r, &u);
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, OF_THREE "3}"));
        assert_int_equal(leases(r, names), 3);
        snprintf(path, sizeof path, "/s/leases/%s", names[gone]);
        assert_int_equal(memnet_delete(r->net, 0, path), CLAVE_OK);
        renew(r, &u);
        expect_member(user_sends(r, &u, "GET", -1, NULL, NULL), 410, "cause", "deleted");
        assert_int_equal(leases(r, NULL), 0);
    }
}

TEST(another_gate_finds_all_permits)
{
    static const uint8_t key[32] = {42};
    static const char *const keys[] = {"Idempotency-Key: one", NULL};
    for (size_t i = 0; i < 2; i++) {
        CLOSED_BY(webrig_freed)
        struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
        struct user u;
        char before[8][96], after[8][96];
        user_enter(r, &u);
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, keys[i], OF_THREE "3}"));
        assert_int_equal(leases(r, before), 3);
        webrig_second(r);
        struct webrig_call *c = user_sends(r, &u, "POST", 20, keys[i], OF_THREE "3}");
        webrig_advance(r, 4000); /* its deadline is confirmed first */
        expect_member(c, 201, "id", u.claim);
        assert_int_equal(leases(r, after), 3);
        for (size_t n = 0; n < 3; n++)
            assert_string_equal(before[n], after[n]);
        user_expects(user_sends(r, &u, "DELETE", -1, NULL, NULL), 204);
        assert_int_equal(leases(r, NULL), 0);
    }
}

/* The rest of them is given back before the claim queues again: those before it may wait for it. */
TEST(a_part_of_the_permits_is_given_back)
{
    static const uint8_t key[32] = {42};
    for (size_t gone = 0; gone < 3; gone++) {
        CLOSED_BY(webrig_freed)
        struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
        struct user u;
        char names[8][96], path[128];
        user_enter(r, &u);
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, "Idempotency-Key: one", OF_THREE "3}"));
        webrig_second(r);
        assert_int_equal(leases(r, names), 3);
        snprintf(path, sizeof path, "/s/leases/%s", names[gone]);
        assert_int_equal(memnet_delete(r->net, 0, path), CLAVE_OK);
        struct webrig_call *c =
            user_sends(r, &u, "POST", 20, "Idempotency-Key: one", OF_THREE "3}");
        webrig_advance(r, 8000);
        expect_member(c, 201, "id", u.claim);
        assert_int_equal(leases(r, NULL), 3);
    }
}

/* ---- the maximum hold ------------------------------------------------------------------------ */

TEST(a_hold_has_a_maximum)
{
    static const char *const bodies[] = {
        "{\"path\": \"/l\", \"max_hold_ms\": 3000}",
        "{\"path\": \"/l\", \"kind\": \"read\", \"max_hold_ms\": 3000}",
        "{\"path\": \"/l\", \"kind\": \"write\", \"max_hold_ms\": 3000}",
        OF_THREE "2, \"max_hold_ms\": 3000}",
        "{\"path\": \"/e\", \"kind\": \"election\", \"max_hold_ms\": 3000}",
    };
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, bodies[i]);
        user_expects(c, 201);
        assert_true(atoi(webrig_member(c, "valid_ms")) <= 3000);
        user_takes_claim(&u, c);
        webrig_advance(r, 2000);
        c = user_sends(r, &u, "GET", -1, NULL, NULL);
        user_expects(c, 200);
        assert_true(atoi(webrig_member(c, "valid_ms")) <= 1000);
        webrig_end(c);
        webrig_advance(r, 1100);
        expect_member(user_sends(r, &u, "GET", -1, NULL, NULL), 410, "cause", "max_hold");
    }
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 0);
    assert_int_equal(memnet_list(r->net, 0, "/e", NULL, 0), 0);
    assert_int_equal(leases(r, NULL), 0);
}

/* ---- what its node says ---------------------------------------------------------------------- */

static const struct claim *claim_of(struct webrig *r, const struct user *u)
{
    struct http_session *s = clave__http_session_by_id(r->web->sessions, atoll(u->id));
    assert_non_null(s);
    const struct claim *c = clave__claim_find(s, u->claim);
    assert_non_null(c);
    return c;
}

/* The node has this in its data. */
static void node_says(struct webrig *r, const char *node, const char *text)
{
    char target[160];
    snprintf(target, sizeof target, "/v1/znodes%s", node);
    CLOSED_BY(webrig_ended) struct webrig_call *c = webrig_request(r, "GET", target, NULL, NULL);
    user_expects(c, 200);
    if (!strstr(webrig_body(c), text))
        fail_msg("%s says %s, not %s", node, webrig_body(c), text);
}

static void revoke(struct webrig *r, const char *path, const char *node)
{
    char target[80], body[160];
    snprintf(target, sizeof target, "/v1/locks%s/revoke", path);
    snprintf(body, sizeof body, "{\"node\": \"%s\"}", strrchr(node, '/') + 1);
    user_expects(webrig_request(r, "POST", target, NULL, body), 200);
}

static const struct row {
    const char *path, *rest, *says;
} said_rows[] = {
    {"/l", "", "\nname=new%0Aline\n"},
    {"/l", ", \"kind\": \"read\"", "\nname=new%0Aline\n"},
    {"/l", ", \"kind\": \"write\"", "\nname=new%0Aline\n"},
    {"/s", ", \"kind\": \"semaphore\", \"limit\": 2", "\nname=new%0Aline\n"},
    {"/e", ", \"kind\": \"election\"", "new\nline"},
};
enum { SAID_ROWS = sizeof said_rows / sizeof *said_rows };

/* Its own write is no request to release, and a request is not written over. */
TEST(a_node_says_something_else)
{
    for (size_t i = 0; i < SAID_ROWS; i++) {
        const struct row *row = &said_rows[i];
        CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
        struct user u;
        char body[160], node[128];
        bool form = strcmp(row->path, "/e") != 0;
        user_enter(r, &u);
        snprintf(body, sizeof body,
                 "{\"path\": \"%s\", \"name\": \"old\", \"command\": \"make\", "
                 "\"revocable\": true%s}",
                 row->path, row->rest);
        struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, body);
        user_expects(c, 201);
        snprintf(node, sizeof node, "%s", webrig_member(c, "node"));
        user_takes_claim(&u, c);
        for (int round = 0; round < 2; round++) {
            expect_member(user_sends(r, &u, "PATCH", -1, NULL, "{\"name\": \"new\\nline\"}"), 200,
                          "node", node);
            node_says(r, node, row->says);
            if (form)
                node_says(r, node, "\ncommand=make\n");
            if (form && i == 3)
                node_says(r, node, "\nlimit=2\n");
            assert_int_equal(claim_of(r, &u)->asked, round == 1);
            if (round == 1)
                break;
            revoke(r, row->path, node);
            assert_true(claim_of(r, &u)->asked);
            node_says(r, node, row->says);
        }
        if (form)
            node_says(r, node, "\nasked=1\n");
        user_expects(user_sends(r, &u, "DELETE", -1, NULL, NULL), 204);
        user_expects(user_sends(r, &u, "PATCH", -1, NULL, "{\"name\": \"x\"}"), 410);
    }
}

/* A request that came while it waited is told when it holds, though its node was written since. */
TEST(what_waits_says_something_else)
{
    for (size_t i = 0; i < SAID_ROWS; i++) {
        const struct row *row = &said_rows[i];
        bool leases = strcmp(row->path, "/s") == 0;
        struct webrig *r = webrig_new(NULL);
        struct user u, v;
        char body[160], names[8][96], node[160];
        user_enter(r, &u);
        user_enter(r, &v);
        snprintf(body, sizeof body, "{\"path\": \"%s\"%s}", row->path,
                 leases   ? ", \"kind\": \"semaphore\", \"limit\": 2, \"permits\": 2"
                 : i == 1 ? ", \"kind\": \"write\""
                          : row->rest);
        user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, body));
        snprintf(body, sizeof body, "{\"path\": \"%s\", \"name\": \"old\", \"revocable\": true%s}",
                 row->path, row->rest);
        struct webrig_call *c = user_sends(r, &v, "POST", -1, NULL, body);
        user_expects(c, 202);
        user_takes_claim(&v, c);
        c = user_sends(r, &v, "PATCH", -1, NULL, "{\"name\": \"new\\nline\"}");
        if (leases) {
            expect_member(c, 409, "code", "EBUSY");
            webrig_free(r);
            continue;
        }
        expect_member(c, 202, "position", "2");
        assert_int_equal(memnet_list(r->net, 0, row->path, names, 8), 2);
        size_t own = strstr(names[0], v.claim) ? 0 : 1;
        snprintf(node, sizeof node, "%s/%s", row->path, names[own]);
        node_says(r, node, row->says);
        revoke(r, row->path, node);
        user_expects(user_sends(r, &v, "PATCH", -1, NULL, "{\"name\": \"new\\nline\"}"), 202);
        assert_false(claim_of(r, &v)->asked);
        user_expects(user_sends(r, &u, "DELETE", -1, NULL, NULL), 204);
        webrig_settle(r);
        user_expects(user_sends(r, &v, "GET", 5, NULL, NULL), 200);
        assert_true(claim_of(r, &v)->asked);
        webrig_free(r);
    }
}

TEST(what_is_said_is_checked)
{
    static const char *const bodies[] = {"{}", "{\"name\": 1}", "{\"path\": \"/m\"}", "[]"};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, LOCK));
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        user_expects(user_sends(r, &u, "PATCH", -1, NULL, bodies[i]), 400);
    snprintf(u.claim, sizeof u.claim, "unknown");
    user_expects(user_sends(r, &u, "PATCH", -1, NULL, "{\"name\": \"x\"}"), 404);
}

TEST(terms_that_do_not_fit_are_named)
{
    static const struct {
        const char *body, *text;
    } rows[] = {
        {"{\"path\": \"/l\", \"permits\": 1}", "are for a semaphore"},
        {"{\"path\": \"/l\", \"kind\": \"election\", \"limit\": 1}", "are for a semaphore"},
        {"{\"path\": \"/l\", \"kind\": \"semaphore\"}", "needs \\\"limit\\\""},
        {OF_THREE "4}", "more than \\\"limit\\\""},
        {OF_THREE "0}", "from 1 to 1000"},
        {OF_THREE "1, \"lock_delay_ms\": 5}", "for lock, write and election"},
        {"{\"path\": \"/l\", \"kind\": \"read\", \"lock_delay_ms\": 5}",
         "for lock, write and election"},
        {"{\"path\": \"/l\", \"max_hold_ms\": 0}", "from 1 to"},
        {"{\"path\": \"/l\", \"depend_ms\": 0}", "from 1 to 2147483647"},
        {"{\"path\": \"/l\", \"depend_ms\": -1}", "from 1 to 2147483647, not -1"},
        {"{\"path\": \"/l\", \"depend_ms\": \"5s\"}", "from 1 to 2147483647, not \\\"5s\\\""},
        {"{\"path\": \"/l\", \"kind\": \"slot\"}", "send the header Clave-Owner"},
        {"{\"path\": \"/l\", \"depend_ms\": 2147483648}", "from 1 to 2147483647"},
        {"{\"path\": \"/l\", \"depend_ms\": \"5s\"}", "depend_ms"},
        {"{\"path\": \"/l\", \"kind\": \"spin\"}", "none of lock, read"},
    };
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, rows[i].body);
        user_expects(c, 400);
        assert_non_null(strstr(webrig_body(c), rows[i].text));
        webrig_end(c);
        c = webrig_request(r, "POST", "/v1/hold", NULL, rows[i].body);
        user_expects(c, 400);
        webrig_end(c);
    }
}

TEST(signs_of_life_are_for_a_hold_that_depends_on_them)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u, v;
    user_enter(r, &u);
    user_enter(r, &v);
    snprintf(u.claim, sizeof u.claim, "unknown");
    user_expects(user_gives_sign(r, &u), 404);
    snprintf(u.claim, sizeof u.claim, "slot.L2E.b25l");
    user_expects(user_gives_sign(r, &u), 400);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, LOCK));
    struct webrig_call *c = user_gives_sign(r, &u);
    user_expects(c, 400);
    assert_non_null(strstr(webrig_body(c), "without \\\"depend_ms\\\""));
    user_takes_claim(
        &v, user_sends(r, &v, "POST", -1, NULL, "{\"path\": \"/l\", \"depend_ms\": 3000}"));
    webrig_advance(r, 5000); /* it waits, which no silence ends */
    c = user_gives_sign(r, &v);
    user_expects(c, 409);
    assert_string_equal(webrig_member(c, "code"), "EBUSY");
    assert_string_equal(webrig_member(c, "class"), "retry");
    user_expects(user_sends(r, &u, "DELETE", -1, NULL, NULL), 204);
    webrig_settle(r);
    user_expects(user_gives_sign(r, &v), 200);
    user_expects(user_sends(r, &v, "DELETE", -1, NULL, NULL), 204);
    c = user_gives_sign(r, &v);
    user_expects(c, 410);
    assert_string_equal(webrig_member(c, "cause"), "released");
    c = webrig_request(r, "POST", "/v1/hold", NULL, "{\"path\": \"/l\", \"depend_ms\": 3000}");
    user_expects(c, 400);
    assert_non_null(strstr(webrig_body(c), "claims of a session"));
}
