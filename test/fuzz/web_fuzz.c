/* web_fuzz.c - requests to HTTP's engine, with a server behind it. An input is a play of requests,
 * each up to a NUL: a line "METHOD TARGET", header lines, an empty line, the body. One that begins
 * with a digit lets so many seconds pass instead, and one with a '-' hangs up the oldest.
 *
 * Every answer has a status, headers without control characters and, where it says so, valid JSON;
 * whatever waits is over when the engine is closed, and the rig checks that nothing is left. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "lib/webrig.h"
#include "web/http/jansson.h"

enum { MOST_CALLS = 24, MOST_HEADERS = 12 };

static const struct web_grant all[] = {{WEB_ADMIN, "/"}};
static const struct web_user users[] = {
    {.name = "ann", .token = "ann", .uid = 7, .grants = all, .ngrants = 1}};
static const struct web_access access_of_test = {.users = users, .nusers = 1, .owner_uid = -1};

static void check_answer(const struct webrig_call *c)
{
    if (!c->x || !c->answered)
        return;
    const struct web_answer *a = clave__web_exchange_answer(c->x);
    must(a->status >= 200 && a->status < 600);
    for (size_t i = 0; i < a->nheaders; i++)
        for (const char *v = a->headers[i].value; *v; v++)
            must((unsigned char)*v >= ' ' && *v != 0x7f);
    const char *type = webrig_header(c, "Content-Type");
    if (!c->done || !type ||
        (strcmp(type, "application/json") != 0 && strcmp(type, "application/problem+json") != 0))
        return;
    json_t *body = json_loadb(webrig_body(c), clave__buf_len(&c->body), 0, NULL);
    must(body != NULL);
    json_decref(body);
}

/* The header lines of the text up to an empty one, for the rig: at most so many, each with a name.
 * Returns where the body begins. */
static size_t take_headers(const char *text, size_t n, char *out)
{
    size_t at = 0, len = 0;
    for (unsigned count = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t line = end ? (size_t)(end - text) - at : n - at;
        if (line == 0) {
            at++;
            break;
        }
        const char *colon = memchr(text + at, ':', line - 1);
        if (colon && colon > text + at && colon[1] == ' ' && count++ < MOST_HEADERS) {
            if (len > 0)
                out[len++] = '\n';
            memcpy(out + len, text + at, line);
            len += line;
        }
        at += line + (end != NULL);
    }
    out[len] = '\0';
    return at;
}

static struct webrig_call *send_request(struct webrig *r, const char *text, size_t n)
{
    char *copy = malloc(2 * n + 3), *headers = copy + n + 1;
    must(copy != NULL);
    memcpy(copy, text, n);
    copy[n] = '\0';
    size_t line = strcspn(copy, "\n");
    copy[line] = '\0';
    char *target = strchr(copy, ' ');
    struct webrig_call *c = NULL;
    if (target) {
        *target++ = '\0';
        size_t rest = line < n ? line + 1 : n;
        size_t body = rest + take_headers(text + rest, n - rest, headers);
        c = webrig_request_bytes(r, copy, target, headers, text + body, n - body);
        check_answer(c);
    }
    free(copy);
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct webrig_options o = {.access = &access_of_test};
    struct webrig *r = webrig_new(&o);
    struct webrig_call *calls[MOST_CALLS] = {NULL};
    size_t first = 0, n = 0;
    r->peer.is_unix = true;
    r->peer.uid = 7;
    while (size > 0 && n < MOST_CALLS) {
        const uint8_t *end = memchr(data, 0, size);
        size_t len = end ? (size_t)(end - data) : size;
        if (len > 0 && *data >= '0' && *data <= '9') {
            webrig_advance(r, (int64_t)(*data - '0') * 1000);
        } else if (len > 0 && *data == '-' && first < n) {
            webrig_end(calls[first]);
            calls[first++] = NULL;
        } else if (len > 0) {
            calls[n++] = send_request(r, (const char *)data, len);
        }
        data += end ? len + 1 : len;
        size -= end ? len + 1 : len;
    }
    webrig_settle(r);
    for (size_t i = 0; i < n; i++)
        if (calls[i])
            check_answer(calls[i]);
    webrig_free(r);
    return 0;
}
