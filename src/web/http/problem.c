/* problem.c - see problem.h. Called by web.c and by handlers. */
#include "web/http/problem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/http_reason.h"
#include "web/http/answer.h"
#include "web/http/route.h"

/* What a client that may try again should wait at least. */
enum { RETRY_AFTER_S = 1, DETAIL_CAP = 512 };

static const char *problem_class(clave_err err)
{
    static const char *const names[] = {
        [CLAVE_CLASS_NONE] = "final",      [CLAVE_CLASS_RETRY] = "retry",
        [CLAVE_CLASS_UNKNOWN] = "unknown", [CLAVE_CLASS_FINAL] = "final",
        [CLAVE_CLASS_FATAL] = "fatal",
    };
    return names[clave_err_classify(err)];
}

/* Beside our own members, those that a client of FleetLock reads: whatever it is refused, and
 * however early (421 comes before there is a route). */
static void problem_put_fleetlock(struct web_exchange *x, clave_err err, const char *detail)
{
    bool asked = x->is_fleetlock || clave__web_header(x, "fleet-lock-protocol");
    if (!asked)
        return;
    clave__json_string(&x->json, "kind", clave_err_name(err));
    clave__json_string(&x->json, "value", detail);
}

void clave__web_problem(struct web_exchange *x, const struct problem *p, const char *fmt, ...)
{
    char detail[DETAIL_CAP];
    va_list ap;
    assert(p->status >= 400 && p->status <= 599);
    va_start(ap, fmt);
    vsnprintf(detail, sizeof detail, fmt, ap);
    va_end(ap);
    clave__buf_clear(&x->answer.body);
    x->json = clave__json_to(&x->answer.body);
    struct json *j = &x->json;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "title", clave__http_reason(p->status));
    clave__json_int(j, "status", p->status);
    clave__json_string(j, "detail", detail);
    clave__json_string(j, "code", p->code ? p->code : clave_err_name(p->err));
    clave__json_string(j, "class", problem_class(p->err));
    if (p->path)
        clave__json_string(j, "path", p->path);
    if (p->members)
        p->members(j, p->arg);
    problem_put_fleetlock(x, p->err, detail);
    clave__json_close(j, '}');
    if (p->retry_after_s)
        clave__web_set_header(x, "Retry-After", "%u", p->retry_after_s);
    clave__web_answer_json(x, p->status);
}

static unsigned problem_status_of_class(const struct web_exchange *x, clave_err err)
{
    clave_err_class class_ = clave_err_classify(err);
    bool changes =
        !x->looking && !clave__web_is_method(x, "GET") && !clave__web_is_method(x, "HEAD");
    if (class_ == CLAVE_CLASS_FINAL)
        return 400;
    return class_ == CLAVE_CLASS_UNKNOWN && changes ? 504 : 503;
}

unsigned clave__web_status(const struct web_exchange *x, clave_err err)
{
    static const struct {
        clave_err err;
        unsigned status;
    } table[] = {
        {CLAVE_ENONODE, 404},       {CLAVE_ENOAUTH, 403},     {CLAVE_EAUTHFAILED, 403},
        {CLAVE_ESASLREQUIRED, 401}, {CLAVE_EBADVERSION, 409}, {CLAVE_ENODEEXISTS, 409},
        {CLAVE_ENOTEMPTY, 409},     {CLAVE_ENOCHILDREN, 409}, {CLAVE_EBUSY, 409},
        {CLAVE_EDEADLOCK, 409},     {CLAVE_EUPGRADE, 409},    {CLAVE_ELOST, 410},
        {CLAVE_EMAXHOLD, 410},      {CLAVE_ENOTHELD, 410},    {CLAVE_EREPLACED, 410},
        {CLAVE_EEXPIRED, 410},      {CLAVE_ETOOBIG, 413},     {CLAVE_EUNIMPLEMENTED, 501},
        {CLAVE_EQUOTA, 507},        {CLAVE_ESEQUENCE, 507},   {CLAVE_ETHROTTLED, 429},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].err == err)
            return table[i].status;
    return problem_status_of_class(x, err);
}

/* NULL: nothing that was had can end by it. */
static const char *problem_cause(clave_err why)
{
    static const struct {
        clave_err why;
        const char *word;
    } words[] = {{CLAVE_OK, "released"},
                 {CLAVE_ECLOSED, "closed"},
                 {CLAVE_EEXPIRED, "expired"},
                 {CLAVE_ETIMEDOUT, "unconfirmed"},
                 {CLAVE_EREQUESTTIMEOUT, "silent"},
                 {CLAVE_ENONODE, "deleted"},
                 {CLAVE_EAUTHFAILED, "forbidden"},
                 {CLAVE_EMAXHOLD, "max_hold"},
                 {CLAVE_EREPLACED, "replaced"},
                 {CLAVE_ECANCELED, "canceled"},
                 {CLAVE_EDEADLOCK, "deadlock"},
                 {CLAVE_EBUSY, "busy"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].why == why)
            return words[i].word;
    return NULL;
}

bool clave__web_is_cause(clave_err why)
{
    return problem_cause(why) != NULL;
}

const char *clave__web_cause(clave_err why)
{
    const char *word = problem_cause(why);
    return word ? word : clave_strerror(why);
}

void clave__web_put_cause(struct json *j, clave_err why)
{
    clave__json_string(j, "cause", clave__web_cause(why));
}

void clave__web_problem_as(struct web_exchange *x, unsigned status, clave_err err, const char *what,
                           const char *path)
{
    /* Whatever the server was asked for, it did nothing. */
    bool unproved = err == CLAVE_ESASLREQUIRED;
    if (unproved)
        status = 401;
    struct problem p = {.status = status,
                        .err = err,
                        .path = path,
                        .retry_after_s = status == 503 || status == 429 ? RETRY_AFTER_S : 0};
    const char *more = status == 504 ? "; it may or may not have been done" : "";
    if (unproved)
        more =
            " (--require-auth): a session gets its identity by \"auth\" of POST /v1/sessions, the "
            "gate by --auth";
    clave__web_problem(x, &p, "cannot %s%s%s: %s%s", what, path ? " " : "", path ? path : "",
                       clave_strerror(err), more);
}

void clave__web_problem_err(struct web_exchange *x, clave_err err, const char *what,
                            const char *path)
{
    clave__web_problem_as(x, clave__web_status(x, err), err, what, path);
}

void clave__web_refuse_role(struct web_exchange *x, enum web_role role, const char *path)
{
    static const struct problem no_proof = {.status = 401, .err = CLAVE_EAUTHFAILED};
    assert(!clave__web_may(x, role, path));
    if (x->who.found == ACCESS_KNOWN && !x->who.is_known) {
        clave__web_problem(x, &(struct problem){.status = 403, .err = CLAVE_ENOAUTH, .path = path},
                           "%s needs the role \"%s\"%s%s, which only a token gives: (umask 077; "
                           "echo $(openssl rand -hex 16) %s >tokens) makes one, --http-tokens "
                           "tokens tells the gate, and Authorization: Bearer TOKEN is sent",
                           x->who.name, clave__web_role_name(role), path ? " on " : "",
                           path ? path : "", clave__web_role_name(role));
        return;
    }
    if (x->who.found == ACCESS_KNOWN) {
        clave__web_problem(x, &(struct problem){.status = 403, .err = CLAVE_ENOAUTH, .path = path},
                           "%s needs the role \"%s\"%s%s: see /v1/whoami, and --http-tokens of "
                           "the gate",
                           x->who.name[0] ? x->who.name : "the sender", clave__web_role_name(role),
                           path ? " on " : "", path ? path : "");
        return;
    }
    clave__web_set_header(x, "WWW-Authenticate", "Bearer");
    clave__web_problem(x, &no_proof, "%s",
                       x->who.found == ACCESS_WRONG_TOKEN
                           ? "unknown token: it is not in the gate's file of tokens"
                           : "a token is needed: Authorization: Bearer TOKEN");
}

bool clave__web_must(struct web_exchange *x, enum web_role role, const char *path)
{
    struct web_need *need = NULL;
    if (!clave__web_may(x, role, path))
        clave__web_refuse_role(x, role, path);
    else if (!(need = clave__web_alloc(x, sizeof *need)))
        clave__web_problem_err(x, CLAVE_ENOMEM, "begin", path);
    else
        *need = (struct web_need){x->needs, role, path};
    x->needs = need ? need : x->needs;
    return need != NULL;
}
