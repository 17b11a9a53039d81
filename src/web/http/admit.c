/* admit.c - see admit.h. Called by web.c. Invariant: a request that is refused has reached no
 * handler. */
#include "web/http/admit.h"

#include <string.h>

#include "web/http/answer.h"
#include "web/http/problem.h"
#include "web/http/routes.h"

enum { MAX_HEADER_BYTES = 16384 };

static void admit_refuse(struct web_exchange *x, unsigned status, clave_err err, const char *text)
{
    clave__web_problem(x, &(struct problem){.status = status, .err = err}, "%s", text);
}

/* The status of a request that is too large, and what of it is; or 0. */
static unsigned admit_size_fault(const struct web *w, const struct web_request *q,
                                 const char **what)
{
    size_t headers = 0;
    for (size_t i = 0; i < q->nheaders; i++)
        headers += strlen(q->headers[i].name) + strlen(q->headers[i].value);
    *what = "the path and query are too long";
    if (strlen(q->target) > TARGET_MAX)
        return 414;
    *what = "the headers are too large";
    if (headers > MAX_HEADER_BYTES)
        return 431;
    *what = "the body is too large";
    return q->len > clave__web_max_body(w) ? 413 : 0;
}

static bool admit_target(struct web_exchange *x)
{
    char *text = clave__web_strndup(x, x->q->target, strlen(x->q->target));
    const char *fault = text ? clave__target_parse(&x->target, text) : NULL;
    if (!text)
        admit_refuse(x, 503, CLAVE_ENOMEM, "out of memory");
    else if (fault)
        admit_refuse(x, 400, CLAVE_EINVAL, fault);
    return text && !fault;
}

static bool admit_route(struct web_exchange *x)
{
    char allow[ROUTE_ALLOW_CAP];
    switch (clave__route_find(x, allow)) {
    case ROUTE_OK:
        return true;
    case ROUTE_NONE:
        admit_refuse(x, 404, CLAVE_EINVAL, "there is nothing at this path: see /v1/openapi.json");
        return false;
    case ROUTE_OTHER_METHOD:
        clave__web_set_header(x, "Allow", "%s", allow);
        clave__web_problem(x, &(struct problem){.status = 405, .err = CLAVE_EINVAL},
                           "this path does not take %.16s, only %s", x->q->method, allow);
        return false;
    case ROUTE_BAD_PATH:
        admit_refuse(x, 400, CLAVE_EINVAL, "the path has a malformed percent escape");
        return false;
    case ROUTE_NO_MEMORY:
        admit_refuse(x, 503, CLAVE_ENOMEM, "out of memory");
        return false;
    }
    return false;
}

/* A page of another site must not act through the browser of somebody who may. What needs no role
 * may be linked to from anywhere. */
static bool admit_origin(struct web_exchange *x)
{
    const char *site = clave__web_header(x, "Sec-Fetch-Site");
    bool foreign = site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
    if (!clave__access_origin_ok(clave__web_header(x, "Origin"), clave__web_header(x, "Host")))
        foreign = true;
    if (!foreign || x->route->role == WEB_NONE)
        return true;
    admit_refuse(x, 403, CLAVE_ENOAUTH, "the request comes from a page of another site");
    return false;
}

/* The path that the role is needed on; NULL: the pattern has none. */
static const char *admit_path(const struct web_exchange *x)
{
    size_t i = 0;
    for (const char *at = x->route->pattern; (at = strchr(at, '{')); at++, i++)
        if (strncmp(at, "{path}", 6) == 0)
            return x->params[i];
    return NULL;
}

static bool admit_sender(struct web_exchange *x)
{
    if (!clave__exchange_identify(x)) {
        admit_refuse(x, 503, CLAVE_ENOMEM, "out of memory");
        return false;
    }
    return clave__web_must(x, x->route->role, admit_path(x));
}

/* `names` are words with blanks between. */
static bool is_word_of(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = names; n > 0 && (at = strstr(at, name)); at += n)
        if ((at == names || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static bool admit_query(struct web_exchange *x)
{
    const char *known = x->route->query ? x->route->query : "";
    for (size_t i = 0; i < x->target.nargs && strcmp(known, "*") != 0; i++) {
        const char *name = x->target.args[i].name;
        if (!is_word_of(known, name)) {
            clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EINVAL},
                               "unknown query parameter \"%.64s\": %s%s", name,
                               known[0] ? "this request takes " : "this request takes none", known);
            return false;
        }
    }
    return true;
}

bool clave__web_admit(struct web_exchange *x)
{
    struct web *w = x->web;
    const char *what;
    unsigned status = admit_size_fault(w, x->q, &what);
    if (status)
        admit_refuse(x, status, CLAVE_ETOOBIG, what);
    else if (!clave__access_host_ok(w->o.access, clave__web_header(x, "Host")))
        admit_refuse(x, 421, CLAVE_EINVAL,
                     "the Host is not a name of this gate: add it with --http-host");
    else
        return admit_target(x) && admit_route(x) && admit_origin(x) && admit_sender(x) &&
               admit_query(x);
    return false;
}

bool clave__web_admit_again(struct web_exchange *x)
{
    return !x->route || !clave__exchange_identify(x) ||
           clave__web_may(x, x->route->role, admit_path(x));
}

void clave__web_refuse_now(struct web_exchange *x)
{
    clave__web_must(x, x->route->role, admit_path(x));
}
