/* web_audit_test.c - the audit names what was done: which node, of which session, which kind of
 * claim, which operations of a transaction. */
#include "lib/claim_scene.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "web/http/exchange.h"
#include "web/web_internal.h"

static const struct web_access access = {.owner_uid = 7}; /* who may do everything */

static struct webrig *audit_rig(void)
{
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &access});
    r->peer.is_unix = true;
    r->peer.uid = 7;
    return r;
}

static const char *audit_last(const struct webrig *r)
{
    return r->naudits ? r->audits[r->naudits - 1] : "";
}

TEST(claims_are_named)
{
    static const struct {
        const char *body, *line;
    } rows[] = {
        {"{\"path\": \"/l\"}", "owner POST /v1/claims 201 session /l (lock)"},
        {"{\"path\": \"/r\", \"kind\": \"read\"}", "owner POST /v1/claims 201 session /r (read)"},
        {"{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 3}",
         "owner POST /v1/claims 201 session /s (semaphore limit=3 permits=1)"},
        {"{\"path\": \"/e\", \"kind\": \"election\"}",
         "owner POST /v1/claims 201 session /e (election)"},
        {"{\"path\": \"/l\", \"kind\": \"write\"}", "owner POST /v1/claims 409 session /l (write)"},
    };
    CLOSED_BY(webrig_freed) struct webrig *r = audit_rig();
    struct user u, v;
    user_enter(r, &u);
    assert_string_equal(audit_last(r), "owner POST /v1/sessions 201 session");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, rows[i].body);
        assert_string_equal(audit_last(r), rows[i].line);
        if (i == 0)
            user_takes_claim(&u, c);
    }
    user_enter(r, &v);
    user_sends(r, &v, "POST", 0, NULL, LOCK);
    assert_string_equal(audit_last(r), "owner POST /v1/claims 409 session /l (lock)");
    user_sends(r, &u, "DELETE", -1, NULL, NULL);
    char line[120];
    snprintf(line, sizeof line, "owner DELETE /v1/claims/%s 204 session /l (lock)", u.claim);
    assert_string_equal(audit_last(r), line);
    webrig_request(r, "POST", "/v1/hold", NULL, LOCK);
    assert_string_equal(audit_last(r), "owner POST /v1/hold 200 session /l (lock)");
}

TEST(orders_name_the_node)
{
    static const char *const verbs[] = {"revoke", "break"};
    CLOSED_BY(webrig_freed) struct webrig *r = audit_rig();
    struct user u;
    user_enter(r, &u);
    struct webrig_call *c = user_sends(r, &u, "POST", -1, NULL, "{\"path\": \"/l\"}");
    char node[128], token[32], line[160], target[40], body[80];
    snprintf(node, sizeof node, "%s", webrig_member(c, "node"));
    snprintf(token, sizeof token, "%s", webrig_member(c, "token"));
    for (size_t i = 0; i < 2; i++) {
        snprintf(target, sizeof target, "/v1/locks/l/%s", verbs[i]);
        snprintf(body, sizeof body, "{\"token\": \"%s\"}", token);
        webrig_request(r, "POST", target, NULL, body);
        snprintf(line, sizeof line, "owner POST %s 409 %s", target, node);
        assert_string_equal(audit_last(r), line);
    }
    snprintf(body, sizeof body, "{\"token\": \"%s\", \"force\": true}", token);
    user_expects(webrig_request(r, "POST", target, NULL, body), 200);
    snprintf(line, sizeof line, "owner POST %s 200 %s", target, node);
    assert_string_equal(audit_last(r), line);
}

TEST(transactions_name_each_operation)
{
    CLOSED_BY(webrig_freed) struct webrig *r = audit_rig();
    webrig_request(r, "POST", "/v1/multi", NULL,
                   "{\"ops\": [{\"op\": \"create\", \"path\": \"/a\"}, "
                   "{\"op\": \"set\", \"path\": \"/a\"}, {\"op\": \"delete\", \"path\": \"/b\"}]}");
    assert_string_equal(audit_last(r), "owner POST /v1/multi 404 (create /a, set /a, delete /b)");
    enum { OPS = 500 };
    char *body = malloc(OPS * 80), *at = body;
    at += sprintf(at, "{\"ops\": [");
    for (int i = 0; i < OPS; i++)
        at += sprintf(at, "%s{\"op\": \"create\", \"path\": \"/node-of-a-long-list-%03d\"}",
                      i ? ", " : "", i);
    sprintf(at, "]}");
    r->naudits = 0;
    user_expects(webrig_request(r, "POST", "/v1/multi", NULL, body), 200);
    free(body);
    assert_non_null(strstr(audit_last(r), "(create /node-of-a-long-list-000, create "));
    webrig_request(r, "POST", "/v1/znodes/n-?mode=persistent_sequential",
                   "Content-Type: application/octet-stream", "x");
    assert_non_null(strstr(audit_last(r), " 201 /n-0000000"));
}

/* Over every route that changes something at a path: the node is named, done or refused. */
TEST(whatever_changes_at_a_path_names_it)
{
    CLOSED_BY(webrig_freed) struct webrig *r = audit_rig();
    for (size_t i = 0; i < clave__routes.n; i++) {
        const struct route *at = &clave__routes.at[i];
        const char *param = strstr(at->pattern, "{path}");
        char target[80], named[160];
        if (strcmp(at->method, "GET") == 0 || !param)
            continue;
        snprintf(target, sizeof target, "%.*s%sa/b%s", (int)(param - at->pattern), at->pattern,
                 param[-1] == '/' ? "" : "/", param + 6);
        webrig_end(webrig_request(r, at->method, target, NULL, NULL));
        snprintf(named, sizeof named, "owner %s %s %s", at->method, target, audit_last(r));
        if (!strstr(audit_last(r), " /a/b"))
            print_error("%s\n", named);
        assert_non_null(strstr(audit_last(r), " /a/b"));
    }
}

TEST(changes_of_values_name_their_nodes)
{
    CLOSED_BY(webrig_freed) struct webrig *r = audit_rig();
    struct user u;
    char secret[160];
    user_enter(r, &u);
    user_takes_claim(
        &u, user_sends(r, &u, "POST", -1, NULL, "{\"path\": \"/e\", \"kind\": \"election\"}"));
    snprintf(secret, sizeof secret, "Clave-Session: %s\nContent-Type: application/octet-stream",
             u.secret);
    user_expects(webrig_request(r, "PUT", "/v1/elections/e/value", secret, "v"), 204);
    assert_string_equal(audit_last(r), "owner PUT /v1/elections/e/value 204 session /e-value");
    user_expects(webrig_request(r, "PUT", "/v1/znodes/n", "If-None-Match: *", "v"), 201);
    assert_string_equal(audit_last(r), "owner PUT /v1/znodes/n 201 /n");
    user_expects(webrig_request(r, "PUT", "/v1/znodes/n", NULL, "w"), 200);
    assert_string_equal(audit_last(r), "owner PUT /v1/znodes/n 200 /n");
    user_expects(webrig_request(r, "DELETE", "/v1/znodes/n", NULL, NULL), 204);
    assert_string_equal(audit_last(r), "owner DELETE /v1/znodes/n 204 /n");
}
