/* claim_scene.c - see claim_scene.h. */
#include "lib/claim_scene.h"
#include "lib/unit.h"

void user_expects(struct webrig_call *c, unsigned status)
{
    assert_true(c->answered);
    if (c->status != status)
        print_error("%s\n", webrig_body(c));
    assert_int_equal(c->status, status);
}

void user_enter(struct webrig *r, struct user *u)
{
    struct webrig_call *c = webrig_request(r, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 8000}");
    user_expects(c, 201);
    snprintf(u->id, sizeof u->id, "%s", webrig_member(c, "id"));
    snprintf(u->secret, sizeof u->secret, "%s", webrig_member(c, "secret"));
    webrig_end(c);
}

struct webrig_call *user_sends(struct webrig *r, const struct user *u, const char *method, int wait,
                               const char *more, const char *body)
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

struct webrig_call *user_gives_sign(struct webrig *r, const struct user *u)
{
    char target[96], header[128];
    snprintf(target, sizeof target, "/v1/claims/%s/alive", u->claim);
    snprintf(header, sizeof header, "Clave-Session: %s", u->secret);
    return webrig_request(r, "POST", target, header, NULL);
}

void user_takes_claim(struct user *u, struct webrig_call *c)
{
    snprintf(u->claim, sizeof u->claim, "%s", webrig_member(c, "id"));
    webrig_end(c);
}
