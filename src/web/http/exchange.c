/* exchange.c - the life of an exchange, and its memory. Called by web.c and by every handler.
 * Invariant: an exchange that was ended is freed when the last callback that it expects has come.
 */
#include "web/http/exchange.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/http_host.h"
#include "base/path.h"
#include "web/http/sender.h"

enum { MOST_ANSWER = 64 << 20, CHUNK = 496 };

struct exchange_chunk {
    struct exchange_chunk *next;
    size_t used, size;
    _Alignas(max_align_t) char bytes[];
};

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
    for (struct exchange_chunk *next; x->chunks; x->chunks = next) {
        next = x->chunks->next;
        clave__mem_free(mem, x->chunks);
    }
    clave__mem_free(mem, x);
}

void clave__exchange_drop(struct web_exchange *x)
{
    assert(!x->ended && !x->owner);
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

void clave__web_own(struct web_exchange *x, const struct exchange_owner *o, void *owned)
{
    assert(!x->owner && !x->answered && !x->ended);
    x->owner = o;
    x->owned = owned;
}

void clave__web_own_as(struct web_exchange *x, const struct exchange_owner *o)
{
    assert(x->owner && x->owner->leave == o->leave && !x->answered && !x->ended);
    x->owner = o;
}

void clave__web_disown(struct web_exchange *x)
{
    x->owner = NULL;
}

void clave__web_leave(struct web_exchange *x)
{
    const struct exchange_owner *o = x->owner;
    x->owner = NULL;
    if (o && o->leave)
        o->leave(x);
}

void clave__web_expect(struct web_exchange *x)
{
    assert(!x->answered && !x->ended);
    x->expected++;
    x->asked |= !x->only_reads && !clave__web_reads(x);
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

const char *clave__web_header_at(const struct web_exchange *x, const char *name, size_t skip)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < x->q->nheaders; i++)
        if (clave__http_name_is(name, n, x->q->headers[i].name) && skip-- == 0)
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
    return given && clave__http_name_is(given, strlen(given), value);
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

/* ==== memory ================================================================================== */

void *clave__web_alloc(struct web_exchange *x, size_t n)
{
    struct exchange_chunk *k = x->chunks;
    n = (n + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    if (!k || k->size - k->used < n) {
        size_t size = n > CHUNK ? n : CHUNK;
        k = clave__mem_alloc(&x->web->mem, sizeof *k + size);
        if (!k)
            return NULL;
        *k = (struct exchange_chunk){.next = x->chunks, .size = size};
        x->chunks = k;
    }
    void *p = k->bytes + k->used;
    k->used += n;
    return p;
}

char *clave__web_strndup(struct web_exchange *x, const char *s, size_t n)
{
    char *copy = clave__web_alloc(x, n + 1);
    if (copy) {
        memcpy(copy, s, n);
        copy[n] = '\0';
    }
    return copy;
}

char *clave__web_sprintf(struct web_exchange *x, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = n < 0 ? NULL : clave__web_alloc(x, (size_t)n + 1);
    if (text) {
        va_start(ap, fmt);
        vsnprintf(text, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    return text;
}

char *clave__web_child(struct web_exchange *x, const char *dir, const char *name)
{
    char *path = clave__web_alloc(x, strlen(dir) + strlen(name) + 2);
    if (path)
        clave__path_put_child(path, dir, name);
    return path;
}

/* ==== the target ============================================================================== */

static int target_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool clave__percent_decode(char *to, const char *from, size_t n, bool plus)
{
    for (size_t i = 0; i < n; i++) {
        char c = from[i] == '+' && plus ? ' ' : from[i];
        if (c == '%') {
            int high = n - i > 2 ? target_hex_digit(from[i + 1]) : -1;
            int low = high >= 0 ? target_hex_digit(from[i + 2]) : -1;
            if (low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0')
            return false;
        *to++ = c;
    }
    *to = '\0';
    return true;
}

void clave__percent_encode(char *to, const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("/-._~", *c);
        if (plain) {
            *to++ = (char)*c;
            continue;
        }
        *to++ = '%';
        *to++ = hex[*c >> 4];
        *to++ = hex[*c & 15];
    }
    *to = '\0';
}

/* `text` is one argument: NAME or NAME=VALUE. */
static const char *target_add_arg(struct target *t, char *text)
{
    if (t->nargs == TARGET_MAX_ARGS)
        return "the query has too many arguments";
    char *value = strchr(text, '=');
    if (value)
        *value++ = '\0';
    else
        value = text + strlen(text);
    if (!clave__percent_decode(text, text, strlen(text), true) ||
        !clave__percent_decode(value, value, strlen(value), true))
        return "the query has a malformed percent escape";
    t->args[t->nargs].name = text;
    t->args[t->nargs++].value = value;
    return NULL;
}

/* The length of the scheme that the text begins with; 0: neither http nor https. */
static size_t target_scheme(const char *text)
{
    size_t plain = strlen("http://"), tls = strlen("https://");
    if (clave__http_begins(text, "http://", plain))
        return plain;
    return clave__http_begins(text, "https://", tls) ? tls : 0;
}

/* A client that takes the gate for a proxy sends the whole URI (RFC 9112, 3.2.2). Moves the host to
 * the front, which makes room for the slash of an empty path. Returns the path. */
static char *target_take_host(struct target *t, char *text)
{
    size_t scheme = target_scheme(text);
    if (scheme == 0)
        return text;
    size_t n = strcspn(text + scheme, "/?");
    char *path = text + scheme + n;
    memmove(text, text + scheme, n);
    text[n] = '\0';
    t->host = text;
    if (*path != '/')
        *--path = '/';
    return path;
}

const char *clave__target_parse(struct target *t, char *text)
{
    *t = (struct target){.path = text};
    t->path = text = target_take_host(t, text);
    if (text[0] != '/')
        return "the target does not begin with /: send the path, and the host in Host";
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '#')
            return "the target contains a character that must be percent-encoded";
    char *query = strchr(text, '?');
    if (!query)
        return NULL;
    *query++ = '\0';
    const char *fault = NULL;
    for (char *next; query && !fault; query = next) {
        next = strchr(query, '&');
        if (next)
            *next++ = '\0';
        if (query[0] != '\0')
            fault = target_add_arg(t, query);
    }
    return fault;
}

const char *clave__target_arg(const struct target *t, const char *name)
{
    for (size_t i = 0; i < t->nargs; i++)
        if (strcmp(t->args[i].name, name) == 0)
            return t->args[i].value;
    return NULL;
}

/* ---- patterns ------------------------------------------------------------------------------- */

/* The part for {path}, which ends where `rest` of the pattern begins. */
static bool target_part_of_path(const char *rest, const char *path, struct target_part *out)
{
    size_t n = strlen(path), end = strlen(rest);
    if (n < end || strcmp(path + n - end, rest) != 0)
        return false;
    *out = (struct target_part){path, n - end};
    return true;
}

/* If the pattern has no slash before {path}, the path must begin with its own or be empty. */
static bool target_is_path_apart(const char *pattern, const char *at, const char *path)
{
    return (at > pattern && at[-1] == '/') || *path == '/' || *path == '\0';
}

bool clave__target_matches(const struct target *t, const char *pattern, struct target_part *parts)
{
    const char *all = pattern, *path = t->path;
    while (*pattern) {
        if (strncmp(pattern, "{path}", 6) == 0)
            return target_is_path_apart(all, pattern, path) &&
                   target_part_of_path(pattern + 6, path, parts);
        if (*pattern == '{') {
            *parts = (struct target_part){path, strcspn(path, "/")};
            if (parts->n == 0)
                return false;
            path += parts++->n;
            pattern += strcspn(pattern, "}") + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0';
}
