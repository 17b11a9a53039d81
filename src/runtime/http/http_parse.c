/* http_parse.c - see http_parse.h; http_exchange.c calls it. The library is paused when a head is
 * complete, and is begun anew for the next one. */
#include "runtime/http/http_parse.h"

#include <string.h>

enum { FAILED = -1 };

static const char bad_length[] = "Content-Length is no number, or too large, or is given twice, or "
                                 "beside Transfer-Encoding";

static const struct http_library *http_parse_library(void)
{
    const char *why;
    return clave__http_library(&why); /* the server has started with it */
}

/* ---- what the library calls ----------------------------------------------------------------- */

static int http_parse_refuse(struct http_parse *t, unsigned status, const char *why)
{
    t->refused = status;
    t->why = why;
    return status ? FAILED : 0;
}

static int http_parse_put(http_library_parser *p, enum http_head_part part, const char *at,
                          size_t n)
{
    struct http_parse *t = p->data;
    return http_parse_refuse(t, clave__http_head_put(t->head, part, at, n), NULL);
}

static int http_parse_on_target(http_library_parser *p, const char *at, size_t n)
{
    return http_parse_put(p, HTTP_HEAD_TARGET, at, n);
}

static int http_parse_on_name(http_library_parser *p, const char *at, size_t n)
{
    return http_parse_put(p, HTTP_HEAD_NAME, at, n);
}

static int http_parse_on_value(http_library_parser *p, const char *at, size_t n)
{
    return http_parse_put(p, HTTP_HEAD_VALUE, at, n);
}

#ifdef CLAVE_LLHTTP
enum { HAS_LENGTH = F_CONTENT_LENGTH, PAUSES = HPE_PAUSED };

static bool http_parse_keeps_alive(const http_library_parser *p)
{
    return http_parse_library()->llhttp_should_keep_alive(p);
}

static bool http_parse_has_coding(const http_library_parser *p)
{
    return p->flags & F_TRANSFER_ENCODING;
}

static void http_parse_pause(http_library_parser *p)
{
    (void)p; /* the callback's result does it */
}
#else
enum { HAS_LENGTH = F_CONTENTLENGTH, PAUSES = 0 };

static bool http_parse_keeps_alive(const http_library_parser *p)
{
    return http_parse_library()->http_should_keep_alive(p);
}

static bool http_parse_has_coding(const http_library_parser *p)
{
    return p->uses_transfer_encoding;
}

static void http_parse_pause(http_library_parser *p)
{
    http_parse_library()->http_parser_pause(p, 1);
}
#endif

static int64_t http_parse_length(const http_library_parser *p)
{
    if (p->flags & F_CHUNKED)
        return -1;
    if (!(p->flags & HAS_LENGTH))
        return 0;
    return p->content_length <= INT64_MAX ? (int64_t)p->content_length : INT64_MIN;
}

static int http_parse_on_head(http_library_parser *p)
{
    struct http_parse *t = p->data;
    t->is_1_1 = p->http_minor > 0;
    p->upgrade = 0; /* to another protocol: it is answered in this one */
    t->keeps_alive = http_parse_keeps_alive(p);
    t->body_length = http_parse_length(p);
    if (p->http_major != 1 || p->http_minor > 1)
        return http_parse_refuse(t, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    if (t->body_length == INT64_MIN) /* llhttp takes lengths up to 2^64 - 1 */
        return http_parse_refuse(t, 400, bad_length);
    if (http_parse_has_coding(p) && t->body_length >= 0)
        return http_parse_refuse(t, 501, "of Transfer-Encoding only chunked is known");
    if (http_parse_refuse(t, clave__http_head_finish(t->head), NULL))
        return FAILED;
    http_parse_pause(p);
    return PAUSES;
}

/* ---- the library ---------------------------------------------------------------------------- */

static const http_library_settings settings = {
    .on_url = http_parse_on_target,
    .on_header_field = http_parse_on_name,
    .on_header_value = http_parse_on_value,
    .on_headers_complete = http_parse_on_head,
};

#ifdef CLAVE_LLHTTP
static void http_parse_reset(http_library_parser *p)
{
    http_parse_library()->llhttp_init(p, HTTP_REQUEST, &settings);
}

static size_t http_parse_run(struct http_parse *t, const char *p, size_t n, int *fault)
{
    const struct http_library *lib = http_parse_library();
    *fault = (int)lib->llhttp_execute(&t->library, p, n);
    return *fault == HPE_OK ? n : (size_t)(lib->llhttp_get_error_pos(&t->library) - p);
}
#else
static void http_parse_reset(http_library_parser *p)
{
    http_parse_library()->http_parser_init(p, HTTP_REQUEST);
}

/* It pauses before the last byte of a head, which it would take for whatever it is. */
static size_t http_parse_run(struct http_parse *t, const char *p, size_t n, int *fault)
{
    size_t used = http_parse_library()->http_parser_execute(&t->library, &settings, p, n);
    *fault = (int)HTTP_PARSER_ERRNO(&t->library);
    if (*fault == HPE_PAUSED && p[used] != '\n')
        *fault = HPE_LF_EXPECTED;
    return *fault == HPE_PAUSED ? used + 1 : used;
}
#endif

static bool http_parse_is_in_word(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == ' ' || c == '-' || c == '_';
}

/* What the library does not take; what a callback refused has said its own status. */
static void http_parse_judge(struct http_parse *t, int fault, char at)
{
    if (t->refused) {
        if (!t->why)
            t->why = t->refused == 414   ? "the path and query are too long"
                     : t->refused == 431 ? "the headers are too large, or too many"
                     : t->refused == 503 ? "out of memory"
                                         : "the name of a header has a blank in it";
    } else if (fault == HPE_INVALID_VERSION) {
        http_parse_refuse(t, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    } else if (fault == HPE_INVALID_METHOD && http_parse_is_in_word(at)) {
        http_parse_refuse(t, 501, "this method is not known");
    } else if (fault == HPE_INVALID_TRANSFER_ENCODING && !(t->library.flags & HAS_LENGTH)) {
        http_parse_refuse(t, 501, "of Transfer-Encoding only chunked is known");
    } else if (fault == HPE_UNEXPECTED_CONTENT_LENGTH || fault == HPE_INVALID_CONTENT_LENGTH ||
               fault == HPE_INVALID_TRANSFER_ENCODING) {
        http_parse_refuse(t, 400, bad_length);
    } else {
        http_parse_refuse(t, 400, "this is not a well-formed request of HTTP/1.1");
    }
}

/* A value that goes on in the next line, which the library takes. */
static bool http_parse_is_folded(struct http_parse *t, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((p[i] == ' ' || p[i] == '\t') && t->last == '\n')
            return true;
        t->last = p[i];
    }
    return false;
}

/* ---- to the owner --------------------------------------------------------------------------- */

void clave__http_parse_begin(struct http_parse *t, struct http_head *head,
                             void (*take)(void *arg, const void *p, size_t n), void *arg)
{
    *t = (struct http_parse){.head = head, .take = take, .arg = arg};
    http_parse_reset(&t->library);
    t->library.data = t;
}

static size_t http_parse_head(struct http_parse *t, const char *p, size_t n, enum http_parsed *what)
{
    int fault;
    size_t used = http_parse_run(t, p, n, &fault);
    if (http_parse_is_folded(t, p, used)) {
        http_parse_refuse(t, 400, "a header goes on in the next line");
        *what = HTTP_PARSED_FAULT;
    } else if (fault == HPE_OK) {
        *what = HTTP_PARSED_ALL;
    } else if (fault == HPE_PAUSED) {
        *what = HTTP_PARSED_HEAD;
        t->has_head = true;
        clave__http_body_begin(&t->body, t->body_length);
    } else {
        *what = HTTP_PARSED_FAULT;
        http_parse_judge(t, fault, used < n ? p[used] : '\0');
    }
    return used;
}

size_t clave__http_parse(struct http_parse *t, const void *p, size_t n, enum http_parsed *what)
{
    size_t len;
    if (!t->has_head)
        return http_parse_head(t, p, n, what);
    size_t used = clave__http_body_read(&t->body, p, n, &len);
    if (len > 0)
        t->take(t->arg, (const char *)p + used - len, len);
    *what = t->body.state == HTTP_BODY_END     ? HTTP_PARSED_END
            : t->body.state == HTTP_BODY_FAULT ? HTTP_PARSED_FAULT
                                               : HTTP_PARSED_ALL;
    if (*what == HTTP_PARSED_FAULT)
        http_parse_refuse(t, 400, "where the chunks of the body end is not beyond doubt");
    return used;
}

const char *clave__http_parse_method(const struct http_parse *t)
{
    switch (t->library.method) {
#define HTTP_PARSE_METHOD(number, name, text)                                                      \
    case number:                                                                                   \
        return #text;
        HTTP_METHOD_MAP(HTTP_PARSE_METHOD)
#undef HTTP_PARSE_METHOD
    default:
        return "";
    }
}
