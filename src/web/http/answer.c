/* answer.c - answers. Called by handlers, admission.c and request.c. Invariants: every answer
 * passes answer_send, which adds the headers that all answers have, and the first answer counts;
 * the `end` of a stream has run once when the exchange is freed. */
#include "web/http/exchange.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/http_reason.h"
#include "web/http/sender.h"

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

/* Tells browsers not to guess types, run or frame anything, or keep a copy. A handler's own value
 * of such a header stays. */
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

/* Blanks the UUID of a session of the contrib REST gateway, since it is all that a client needs to
 * use the session. */
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
    if (x->deed.path)
        return x->deed.path;
    return has_path ? x->params[0] : NULL;
}

/* Reports every change, and every refusal of a sender. */
static void answer_audit(struct web_exchange *x, unsigned status)
{
    const struct web_env *env = x->web->o.env;
    bool changes = !clave__web_reads(x) && x->route && !(x->route->flags & ROUTE_QUIET);
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

/* A piece of a stream counts as the sender's memory until the client has read it. */
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

/* There is no room for the answer: replaces it with one that says so. */
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
    if (type)
        answer_add(x, "Content-Type", type);
    answer_secure(x);
    x->answer.status = status;
    x->answered = true;
    clave__web_leave(x);
    clave__http_metrics_note(x, status);
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
    bool changed = !clave__web_reads(x) && (status < 300 || status == 504 || x->asked);
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

void clave__web_answer_object(struct web_exchange *x, unsigned status)
{
    clave__json_close(&x->json, '}');
    clave__web_answer_json(x, status);
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
    /* nginx would hold back lines until it has a few kilobytes */
    clave__web_set_header(x, "X-Accel-Buffering", "no");
    answer_send(x, status, type);
}

void clave__web_wake(struct web_exchange *x)
{
    if (x->answered && !x->ended)
        x->web->o.env->wake(x->web->o.env->arg, x, x->transport);
}

/* ==== problems ================================================================================ */

/* How long a client should wait before it tries again. */
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

/* Adds the members that a FleetLock client reads, to whatever problem and however early (421 comes
 * before the route is known). */
static void problem_put_fleetlock(struct web_exchange *x, clave_err err, const char *detail)
{
    bool asked = x->is_fleetlock || clave__web_header(x, "fleet-lock-protocol");
    if (!asked)
        return;
    clave__json_string(&x->json, "kind", clave_err_name(err));
    clave__json_string(&x->json, "value", detail);
}

static void problem_answer(struct web_exchange *x, const struct problem *p, const char *fmt,
                           va_list ap)
{
    char detail[DETAIL_CAP];
    assert(p->status >= 400 && p->status <= 599);
    vsnprintf(detail, sizeof detail, fmt, ap);
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

void clave__web_problem(struct web_exchange *x, const struct problem *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    problem_answer(x, p, fmt, ap);
    va_end(ap);
}

static struct problem problem_of(unsigned status, clave_err err, const char *path)
{
    unsigned retry_after_s = status == 503 || status == 429 ? RETRY_AFTER_S : 0;
    return (struct problem){
        .status = status, .err = err, .path = path, .retry_after_s = retry_after_s};
}

bool clave__web_refuse(struct web_exchange *x, unsigned status, clave_err err, const char *path,
                       const char *fmt, ...)
{
    const struct problem p = problem_of(status, err, path);
    va_list ap;
    va_start(ap, fmt);
    problem_answer(x, &p, fmt, ap);
    va_end(ap);
    return false;
}

bool clave__web_bad_request(struct web_exchange *x, const char *fmt, ...)
{
    const struct problem p = problem_of(400, CLAVE_EINVAL, NULL);
    va_list ap;
    va_start(ap, fmt);
    problem_answer(x, &p, fmt, ap);
    va_end(ap);
    return false;
}

static unsigned problem_status_of_class(const struct web_exchange *x, clave_err err)
{
    clave_err_class class_ = clave_err_classify(err);
    bool changes = !x->only_reads && !clave__web_reads(x);
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
        {CLAVE_ENONODE, 404},        {CLAVE_ENOAUTH, 403},     {CLAVE_EAUTHFAILED, 403},
        {CLAVE_ESASLREQUIRED, 401},  {CLAVE_EBADVERSION, 409}, {CLAVE_ENODEEXISTS, 409},
        {CLAVE_ENOTEMPTY, 409},      {CLAVE_ENOCHILDREN, 409}, {CLAVE_EBUSY, 409},
        {CLAVE_EDEADLOCK, 409},      {CLAVE_EUPGRADE, 409},    {CLAVE_ELOST, 410},
        {CLAVE_EMAXHOLD, 410},       {CLAVE_ENOTHELD, 410},    {CLAVE_EREPLACED, 410},
        {CLAVE_ESILENT, 410},        {CLAVE_EEXPIRED, 410},    {CLAVE_ETOOBIG, 413},
        {CLAVE_EUNIMPLEMENTED, 501}, {CLAVE_EQUOTA, 507},      {CLAVE_ESEQUENCE, 507},
        {CLAVE_ETHROTTLED, 429},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].err == err)
            return table[i].status;
    return problem_status_of_class(x, err);
}

/* Returns NULL if no hold or wait can end with this error. */
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
                 {CLAVE_ESILENT, "work_silent"},
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

void clave__web_put_cause(struct json *j, const void *why)
{
    clave__json_string(j, "cause", clave__web_cause(*(const clave_err *)why));
}

void clave__web_problem_as(struct web_exchange *x, unsigned status, clave_err err, const char *what,
                           const char *path)
{
    /* The server has done nothing, whatever it was asked to do. */
    bool unproved = err == CLAVE_ESASLREQUIRED;
    if (unproved)
        status = 401;
    const char *more = status == 504 ? "; it may or may not have been done" : "";
    if (unproved)
        more =
            " (--require-auth): a session gets its identity by \"auth\" of POST /v1/sessions, the "
            "gate by --auth";
    clave__web_refuse(x, status, err, path, "cannot %s%s%s: %s%s", what, path ? " " : "",
                      path ? path : "", clave_strerror(err), more);
}

void clave__web_problem_err(struct web_exchange *x, clave_err err, const char *what,
                            const char *path)
{
    clave__web_problem_as(x, clave__web_status(x, err), err, what, path);
}

/* ==== long lists ============================================================================== */

struct pieces {
    struct web_exchange *x;
    pieces_next *next;
    void (*end)(void *arg);
    void *arg;
};

static void json_pieces_end(void *arg)
{
    struct pieces *p = arg;
    if (p->end)
        p->end(p->arg);
}

/* The writer continues in another buffer. A piece is empty if nothing that was examined belongs in
 * the answer. */
static clave_err json_pieces_more(void *arg, struct buf *out, bool *done)
{
    struct pieces *p = arg;
    size_t before = clave__buf_len(out);
    p->x->json.to = out;
    clave_err err = p->next(p->arg, &p->x->json, done);
    if (!*done && clave__buf_len(out) == before)
        clave__web_wake(p->x);
    return err == CLAVE_OK ? p->x->json.err : err;
}

void clave__web_answer_pieces(struct web_exchange *x, pieces_next *next, void (*end)(void *arg),
                              void *arg)
{
    assert(!x->answered && !x->answer.more);
    struct pieces *p = clave__web_alloc(x, sizeof *p);
    bool done = false;
    clave_err err = CLAVE_ENOMEM;
    if (p) {
        *p = (struct pieces){x, next, end, arg};
        err = json_pieces_more(p, &x->answer.body, &done);
    }
    if (err == CLAVE_OK && !done) {
        x->answer.more = json_pieces_more;
        x->answer.end = json_pieces_end;
        x->answer.arg = p;
        clave__web_answer_stream(x, 200, "application/json");
        return;
    }
    if (end)
        end(arg);
    if (err == CLAVE_OK)
        clave__web_answer_json(x, 200);
    else
        clave__web_refuse(x, 503, err, NULL, "out of memory");
}
