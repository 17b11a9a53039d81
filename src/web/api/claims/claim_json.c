/* claim_json.c - see claim_json.h. Called by claims_api.c and sessions_api.c. */
#include "web/api/claims/claim_json.h"

#include "web/http/problem.h"
#include "web/session/claim_rights.h"

static const char *claim_json_state_name(const struct claim *c, bool proven)
{
    switch (c->state) {
    case CLAIM_WAITING:
        return clave__claim_is_fresh(c) ? "waiting" : "suspended";
    case CLAIM_PROVING:
        return clave__http_session_is_shared(c->part.s) ? "suspended" : "waiting";
    case CLAIM_DELAYED:
        return "waiting";
    case CLAIM_HELD:
        return proven ? "held" : "suspended";
    case CLAIM_LEAVING:
        return "released";
    case CLAIM_ENDED:
        break;
    }
    return c->why == CLAVE_OK || c->why == CLAVE_ECANCELED ? "released" : "lost";
}

clave_err clave__web_admit_claim(const struct web_exchange *x, struct claim *c)
{
    return clave__claim_admit(c, &x->peer, clave__web_header(x, "Authorization"));
}

void clave__web_put_claim(struct web_exchange *x, struct claim *c, bool proven)
{
    struct json *j = &x->json;
    /* What another gate made is judged by whoever asks, until somebody who may lock there does. */
    proven = proven && (c->sender || clave__web_may(x, WEB_LOCK, c->path));
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "id", c->place.uuid);
    clave__json_string(j, "path", c->path);
    clave__json_string(j, "kind", c->kind->name);
    clave__json_string(j, "state", claim_json_state_name(c, proven));
    if (c->state == CLAIM_HELD) {
        clave__json_int64(j, "token", c->grant.token);
        if (proven)
            clave__json_int(j, "valid_ms", clave__claim_tell_valid(c, x->arrived));
        clave__json_string(j, "node", c->node);
        if (c->forbidden)
            clave__web_put_cause(j, CLAVE_EAUTHFAILED);
    } else if (c->state == CLAIM_WAITING && c->placed && c->part.s->attached &&
               clave__claim_is_fresh(c)) { /* else it is not known */
        clave__json_int(j, "position", (int64_t)c->ahead + 1);
        if (c->left_over)
            clave__json_string(j, "left_over", c->left_over);
    } else if (c->state == CLAIM_ENDED) {
        clave__web_put_cause(j, c->why);
    }
    clave__json_close(j, '}');
}
