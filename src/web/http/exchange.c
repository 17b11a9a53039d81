/* exchange.c - the life of a request and its answer; see exchange.h. Called by web.c and by every
 * handler. */
#include "web/http/exchange.h"

#include <assert.h>
#include <string.h>

#include "web/http/sender_limits.h"

enum { MOST_ANSWER = 64 << 20 };

/* ---- life ----------------------------------------------------------------------------------- */

struct web_exchange *clave__exchange_new(struct web *w, const struct web_request *q,
                                         void *transport,
                                         void (*late)(struct timer *t, int64_t now))
{
    struct web_exchange *x = clave__mem_zalloc(&w->mem, sizeof *x);
    if (!x)
        return NULL;
    x->web = w;
    x->q = q;
    x->peer = q->peer;
    x->transport = transport;
    x->who.name = "";
    x->arrived = w->now;
    clave__timer_init(&x->timer, late);
    clave__buf_init(&x->answer.body, &w->mem, w->o.max_answer ? w->o.max_answer : MOST_ANSWER);
    size_t most = clave__web_max_body(w);
    bool fits = q->body_length > 0 && (uint64_t)q->body_length < most;
    clave__buf_init(&x->received, &w->mem, fits ? (size_t)q->body_length : most);
    x->json = clave__json_to(&x->answer.body);
    list_push_back(&w->exchanges, &x->link);
    return x;
}

static void exchange_free(struct web_exchange *x)
{
    assert(x->ended && x->expected == 0 && !x->sender);
    const struct clave_mem *mem = &x->web->mem;
    list_remove(&x->link);
    clave__buf_fini(&x->answer.body);
    clave__buf_fini(&x->received);
    clave__exchange_memory_free(x);
    clave__mem_free(mem, x);
}

void clave__exchange_drop(struct web_exchange *x)
{
    assert(!x->ended && !x->cancel);
    x->ended = true;
    clave__shares_end(x);
    clave__web_timer_clear(x->web, &x->timer);
    if (x->body)
        x->web->o.jansson->json_delete(x->body);
    x->body = NULL;
    if (x->expected == 0)
        exchange_free(x);
    else
        x->web->given_up++;
}

void clave__web_expect(struct web_exchange *x)
{
    assert(!x->answered && !x->ended);
    x->expected++;
    x->asked |= !x->looking && !clave__web_is_method(x, "GET") && !clave__web_is_method(x, "HEAD");
    if (!x->timer.armed)
        clave__web_timer_set(x->web, &x->timer, x->web->now + WEB_PATIENCE_MS);
}

bool clave__web_expected(struct web_exchange *x)
{
    assert(x->expected > 0);
    x->expected--;
    if (x->ended && x->expected == 0) {
        assert(x->web->given_up > 0);
        x->web->given_up--;
        exchange_free(x);
    } else if (!x->ended) {
        return !x->answered;
    }
    return false;
}

/* ---- what was asked ------------------------------------------------------------------------- */

static char exchange_header_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool exchange_header_is(const char *a, const char *b)
{
    while (*a && exchange_header_lower(*a) == exchange_header_lower(*b)) {
        a++;
        b++;
    }
    return exchange_header_lower(*a) == exchange_header_lower(*b);
}

const char *clave__web_header_at(const struct web_exchange *x, const char *name, size_t skip)
{
    for (size_t i = 0; i < x->q->nheaders; i++)
        if (exchange_header_is(x->q->headers[i].name, name) && skip-- == 0)
            return x->q->headers[i].value;
    return NULL;
}

const char *clave__web_header(const struct web_exchange *x, const char *name)
{
    return clave__web_header_at(x, name, 0);
}

bool clave__web_header_is(const struct web_exchange *x, const char *name, const char *value)
{
    const char *given = clave__web_header(x, name);
    return given && exchange_header_is(given, value);
}

const char *clave__web_header_beyond(const struct web_exchange *x, const char *const *names,
                                     size_t n, size_t most)
{
    for (size_t i = 0; i < n; i++)
        if (clave__web_header_at(x, names[i], most))
            return names[i];
    return NULL;
}

const char *clave__web_query(const struct web_exchange *x, const char *name)
{
    return clave__target_arg(&x->target, name);
}

bool clave__web_is_method(const struct web_exchange *x, const char *method)
{
    return strcmp(x->q->method, method) == 0;
}
