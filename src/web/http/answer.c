/* answer.c - see answer.h. Called by handlers and by problem.c. Invariant: every answer passes
 * answer_send, which adds the headers that all of them have, and the first one counts. */
#include "web/http/answer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "web/http/http_metrics.h"
#include "web/http/route.h"
#include "web/http/sender_limits.h"

/* ---- headers -------------------------------------------------------------------------------- */

static void answer_add(struct web_exchange *x, const char *name, const char *value)
{
    struct web_answer *a = &x->answer;
    assert(a->nheaders < WEB_MAX_HEADERS);
    a->headers[a->nheaders++] = (struct web_header){name, value};
}

void clave__web_set_header(struct web_exchange *x, const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *value = n < 0 ? NULL : clave__web_alloc(x, (size_t)n + 1);
    if (!value)
        return;
    va_start(ap, fmt);
    vsnprintf(value, (size_t)n + 1, fmt, ap);
    va_end(ap);
    answer_add(x, name, value);
}

static bool answer_has(const struct web_exchange *x, const char *name)
{
    for (size_t i = 0; i < x->answer.nheaders; i++)
        if (strcmp(x->answer.headers[i].name, name) == 0)
            return true;
    return false;
}

/* A browser neither guesses a type, nor runs or frames anything, nor keeps a copy. A handler's own
 * value of such a header stays. */
static void answer_secure(struct web_exchange *x)
{
    static const struct web_header always[] = {
        {"X-Content-Type-Options", "nosniff"},
        {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Referrer-Policy", "no-referrer"},
        {"Cache-Control", "no-store"},
    };
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (!answer_has(x, always[i].name))
            answer_add(x, always[i].name, always[i].value);
}

/* ---- answers -------------------------------------------------------------------------------- */

/* The UUID of a session of the contrib REST gateway is all that it takes to use it. */
static const char *answer_audit_target(struct web_exchange *x)
{
    static const char of_path[] = "/sessions/v1/", of_query[] = "session=";
    char *text = clave__web_strndup(x, x->q->target, strlen(x->q->target));
    char *query = text ? strchr(text, '?') : NULL, *at = query;
    bool blank = false;
    if (!text)
        return "?";
    if (x->route && strncmp(x->route->pattern, of_path, strlen(of_path)) == 0) {
        size_t n = strcspn(text, "?");
        while (n > 0 && text[n - 1] != '/')
            text[--n] = '*';
    }
    while (at && (at = strstr(at + 1, of_query)))
        if (at[-1] == '?' || at[-1] == '&') {
            at += strlen(of_query);
            memset(at, '*', strcspn(at, "&"));
            blank = true;
        }
    if (query && !blank && clave__web_query(x, "session")) /* its name has escapes */
        *query = '\0';
    return text;
}

/* The node that the handler named, or else the path of the target, if it has one. */
static const char *answer_audit_path(const struct web_exchange *x)
{
    bool has_path = x->route && strstr(x->route->pattern, "{path}");
    return x->deed.path ? x->deed.path : has_path ? x->params[0] : NULL;
}

/* Every change, and every refusal of a sender. */
static void answer_audit(struct web_exchange *x, unsigned status)
{
    const struct web_env *env = x->web->o.env;
    bool changes = !clave__web_is_method(x, "GET") && !clave__web_is_method(x, "HEAD") &&
                   x->route && !(x->route->flags & ROUTE_QUIET);
    if (!env->audit || (!changes && status != 401 && status != 403 && status != 421))
        return;
    env->audit(env->arg, &(struct web_audit){.user = x->who.name,
                                             .address = x->peer.address,
                                             .method = x->q->method,
                                             .target = answer_audit_target(x),
                                             .session = x->deed.session,
                                             .path = answer_audit_path(x),
                                             .what = x->deed.what,
                                             .status = status,
                                             .reason = x->deed.reason});
}

/* A client that does not read its stream has a piece of it here. */
static clave_err answer_more(void *arg, struct buf *out, bool *done)
{
    struct web_exchange *x = arg;
    assert(x->answered && !x->ended);
    size_t before = clave__buf_len(out);
    clave_err err = x->more(x->more_arg, out, done);
    bool room = clave__shares_count_piece(x, clave__buf_len(out) - before);
    return err == CLAVE_OK && !room ? CLAVE_ETHROTTLED : err;
}

static void answer_count_pieces(struct web_exchange *x)
{
    assert(!x->more);
    x->more = x->answer.more;
    x->more_arg = x->answer.arg;
    x->answer.more = answer_more;
    x->answer.arg = x;
}

/* There is no room for what was read: the answer says that instead. */
static unsigned answer_refuse(struct web_exchange *x, enum sender_found found, const char **type)
{
    static const char
        text[] = "{\"title\": \"Too Many Requests\", \"status\": 429, \"detail\": \"the answers to "
                 "this sender take too much memory already, and no sender may have more\", "
                 "\"code\": \"ETHROTTLED\", \"class\": \"retry\"}",
        all[] = "{\"title\": \"Service Unavailable\", \"status\": 503, \"detail\": \"bodies and "
                "answers of all senders take too much memory together\", "
                "\"code\": \"ETHROTTLED\", \"class\": \"retry\"}";
    bool one = found == SENDER_HAS_MOST;
    clave__buf_clear(&x->answer.body);
    clave__buf_trim(&x->answer.body, 0);
    (void)clave__buf_append(&x->answer.body, one ? text : all,
                            one ? sizeof text - 1 : sizeof all - 1);
    x->answer.nheaders = 0;
    x->answer.more = NULL;
    x->refused = HTTP_REFUSED_MEMORY;
    answer_add(x, "Retry-After", "1");
    *type = "application/problem+json";
    return one ? 429 : 503;
}

static void answer_send(struct web_exchange *x, unsigned status, const char *type)
{
    const struct web_env *env = x->web->o.env;
    assert(status >= 200 && status <= 599);
    if (x->answered || x->ended)
        return;
    enum sender_found found = clave__shares_count_answer(x);
    if (found != SENDER_MAY)
        status = answer_refuse(x, found, &type);
    if (x->answering)
        x->answering(x);
    if (type)
        answer_add(x, "Content-Type", type);
    answer_secure(x);
    x->answer.status = status;
    x->answered = true;
    clave__http_metrics_note(x, status);
    x->cancel = NULL;
    if (x->answer.more)
        answer_count_pieces(x);
    else
        clave__shares_leave(x);
    answer_audit(x, status);
    env->answered(env->arg, x, x->transport);
}

void clave__web_answer_text(struct web_exchange *x, unsigned status, const char *type)
{
    static const char memory[] = "{\"title\": \"Service Unavailable\", \"status\": 503, "
                                 "\"detail\": \"out of memory\", \"code\": \"ENOMEM\", "
                                 "\"class\": \"retry\"}";
    static const char done[] = "{\"title\": \"Gateway Timeout\", \"status\": 504, "
                               "\"detail\": \"it may have been done, but there is no memory for "
                               "the answer, or it is too long\", \"code\": \"EOPTIMEOUT\", "
                               "\"class\": \"unknown\"}";
    bool reads = clave__web_is_method(x, "GET") || clave__web_is_method(x, "HEAD");
    bool changed = !reads && (status < 300 || status == 504 || x->asked);
    if (x->json.err == CLAVE_OK) {
        answer_send(x, status, type);
        return;
    }
    clave__log(&x->web->o.log, CLAVE_LOG_WARN, "cannot answer %s %s: %s", x->q->method,
               x->target.path, clave_strerror(x->json.err));
    clave__buf_clear(&x->answer.body);
    /* A buffer that could not grow has room for this, unless it has none at all. */
    (void)clave__buf_append(&x->answer.body, changed ? done : memory,
                            changed ? sizeof done - 1 : sizeof memory - 1);
    answer_send(x, changed ? 504 : 503, "application/problem+json");
}

void clave__web_answer_json(struct web_exchange *x, unsigned status)
{
    clave__web_answer_text(x, status,
                           status >= 400 ? "application/problem+json" : "application/json");
}

void clave__web_answer_empty(struct web_exchange *x, unsigned status)
{
    clave__buf_clear(&x->answer.body);
    answer_send(x, status, NULL);
}

void clave__web_answer_bytes(struct web_exchange *x, unsigned status, const char *type,
                             const void *p, size_t n)
{
    x->json.err = clave__buf_append(&x->answer.body, p, n);
    if (x->json.err != CLAVE_OK)
        clave__web_answer_json(x, 503);
    else
        answer_send(x, status, type);
}

void clave__web_answer_stream(struct web_exchange *x, unsigned status, const char *type)
{
    assert(x->answer.more);
    /* nginx would keep its lines until there are some kilobytes of them */
    clave__web_set_header(x, "X-Accel-Buffering", "no");
    answer_send(x, status, type);
}

void clave__web_wake(struct web_exchange *x)
{
    if (x->answered && !x->ended)
        x->web->o.env->wake(x->web->o.env->arg, x, x->transport);
}
