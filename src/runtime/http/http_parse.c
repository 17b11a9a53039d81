/* http_parse.c - see http_parse.h. The library is paused when a head is complete, and starts afresh
 * with the next one. */
#include "runtime/http/http_parse.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/load_library.h"

/* ---- loading the library --------------------------------------------------------------------- */

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#ifdef CLAVE_LLHTTP
#define LIBRARY "libllhttp.so." TEXT(LLHTTP_VERSION_MAJOR) "." TEXT(LLHTTP_VERSION_MINOR)
#else
#define LIBRARY                                                                                    \
    "libhttp_parser.so." TEXT(HTTP_PARSER_VERSION_MAJOR) "." TEXT(HTTP_PARSER_VERSION_MINOR)
#endif
LOADS_LIBRARY(LIBRARY, "suggested", "http", "admin pages and metrics of the server, over HTTP");

/* Written once, under `library_once`. */
static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static struct http_library library_functions;
static char library_fault[256];

static void http_library_load(void)
{
    static const struct load_row wanted[] = {
#define HTTP_LIBRARY_ROW(name) {#name, offsetof(struct http_library, name)},
        HTTP_LIBRARY_FUNCTIONS(HTTP_LIBRARY_ROW)
#undef HTTP_LIBRARY_ROW
    };
    const char *why;
    void *lib = clave__load(LIBRARY, &why);
    if (!lib) {
        snprintf(library_fault, sizeof library_fault,
                 "cannot load " LIBRARY ", which HTTP needs: %s", why);
        return;
    }
    const char *missing =
        clave__load_functions(lib, wanted, sizeof wanted / sizeof *wanted, &library_functions);
    if (missing)
        snprintf(library_fault, sizeof library_fault, "%s has no function %s", LIBRARY, missing);
}

const struct http_library *clave__http_library(const char **why)
{
    pthread_once(&library_once, http_library_load);
    *why = library_fault;
    return library_fault[0] ? NULL : &library_functions;
}

/* ---- chunked bodies -------------------------------------------------------------------------- */

enum { MAX_DIGITS = 12, MAX_IGNORED = 4096 };

static void http_chunks_begin(struct http_chunks *t)
{
    *t = (struct http_chunks){.state = HTTP_CHUNKS_SIZE};
}

static int http_chunks_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Called when the line with a chunk's size has ended. */
static enum http_chunks_state http_chunks_after_size(struct http_chunks *t)
{
    t->digits = 0;
    return t->left == 0 ? HTTP_CHUNKS_TRAILER : HTTP_CHUNKS_DATA;
}

static enum http_chunks_state http_chunks_in_size(struct http_chunks *t, char c)
{
    int digit = http_chunks_digit(c);
    if (digit >= 0 && t->digits < MAX_DIGITS) {
        t->left = t->left * 16 + digit;
        t->digits++;
        return HTTP_CHUNKS_SIZE;
    }
    if (t->digits == 0 || digit >= 0)
        return HTTP_CHUNKS_FAULT;
    if (c == '\r')
        return HTTP_CHUNKS_SIZE_LF;
    return c == ';' || c == ' ' || c == '\t' ? HTTP_CHUNKS_EXTENSION : HTTP_CHUNKS_FAULT;
}

/* Skips extensions and trailers, whose content does not matter. */
static enum http_chunks_state http_chunks_ignore(struct http_chunks *t, char c,
                                                 enum http_chunks_state line,
                                                 enum http_chunks_state lf)
{
    if (c == '\r')
        return lf;
    return ++t->ignored > MAX_IGNORED || c == '\n' || c == '\0' ? HTTP_CHUNKS_FAULT : line;
}

/* Handles every byte that is not data. */
static enum http_chunks_state http_chunks_step(struct http_chunks *t, char c)
{
    switch (t->state) {
    case HTTP_CHUNKS_SIZE:
        return http_chunks_in_size(t, c);
    case HTTP_CHUNKS_EXTENSION:
        return http_chunks_ignore(t, c, HTTP_CHUNKS_EXTENSION, HTTP_CHUNKS_SIZE_LF);
    case HTTP_CHUNKS_SIZE_LF:
        return c == '\n' ? http_chunks_after_size(t) : HTTP_CHUNKS_FAULT;
    case HTTP_CHUNKS_DATA_CR:
        return c == '\r' ? HTTP_CHUNKS_DATA_LF : HTTP_CHUNKS_FAULT;
    case HTTP_CHUNKS_DATA_LF:
        return c == '\n' ? HTTP_CHUNKS_SIZE : HTTP_CHUNKS_FAULT;
    case HTTP_CHUNKS_TRAILER:
        return http_chunks_ignore(t, c, HTTP_CHUNKS_TRAILER_LINE, HTTP_CHUNKS_LAST_LF);
    case HTTP_CHUNKS_TRAILER_LINE:
        return http_chunks_ignore(t, c, HTTP_CHUNKS_TRAILER_LINE, HTTP_CHUNKS_TRAILER_LF);
    case HTTP_CHUNKS_TRAILER_LF:
        return c == '\n' ? HTTP_CHUNKS_TRAILER : HTTP_CHUNKS_FAULT;
    case HTTP_CHUNKS_LAST_LF:
        return c == '\n' ? HTTP_CHUNKS_END : HTTP_CHUNKS_FAULT;
    case HTTP_CHUNKS_DATA:
    case HTTP_CHUNKS_END:
    case HTTP_CHUNKS_FAULT:
        break;
    }
    return HTTP_CHUNKS_FAULT;
}

/* Returns how many bytes were used up, the last *len of which are data. More may follow unless the
 * state is HTTP_CHUNKS_END or HTTP_CHUNKS_FAULT. */
static size_t http_chunks_read(struct http_chunks *t, const char *p, size_t n, size_t *len)
{
    size_t used = 0;
    *len = 0;
    while (used < n && t->state != HTTP_CHUNKS_DATA && t->state != HTTP_CHUNKS_END &&
           t->state != HTTP_CHUNKS_FAULT)
        t->state = http_chunks_step(t, p[used++]);
    if (t->state != HTTP_CHUNKS_DATA)
        return used;
    *len = n - used < (uint64_t)t->left ? n - used : (size_t)t->left;
    t->left -= (int64_t)*len;
    if (t->left == 0)
        t->state = HTTP_CHUNKS_DATA_CR;
    return used + *len;
}

enum { FAILED = -1 };

static const char bad_length[] = "Content-Length is not a number, too large, given twice, or given "
                                 "together with Transfer-Encoding";

/* ---- the head as text ----------------------------------------------------------------------- */

void clave__http_head_init(struct http_head *head, const struct clave_mem *mem, size_t most)
{
    *head = (struct http_head){.part = HTTP_HEAD_TARGET};
    clave__buf_init(&head->text, mem, most);
}

void clave__http_head_fini(struct http_head *head)
{
    clave__mem_free(head->text.mem, head->fields);
    clave__buf_fini(&head->text);
}

static unsigned http_parse_head_append(struct http_head *head, const char *p, size_t n)
{
    clave_err err = clave__buf_append(&head->text, p, n);
    if (err == CLAVE_OK)
        return 0;
    if (err == CLAVE_ENOMEM)
        return 503;
    return head->part == HTTP_HEAD_TARGET ? 414 : 431;
}

/* Appends to this part of the head; a different part ends the previous one. Returns 0, or the
 * status to refuse the request with: 414 or 431 if it is too long, 503 if there is no memory. */
static unsigned http_parse_head_put(struct http_head *head, enum http_head_part part, const char *p,
                                    size_t n)
{
    unsigned refused = part != head->part ? http_parse_head_append(head, "", 1) : 0;
    if (part == HTTP_HEAD_NAME && head->part != HTTP_HEAD_NAME && ++head->nfields > HTTP_MAX_FIELDS)
        refused = 431;
    head->part = part;
    return refused ? refused : http_parse_head_append(head, p, n);
}

static int http_parse_head_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Decodes in place. An invalid percent-escape is copied unchanged. */
static void http_parse_head_decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        int high = *from == '%' ? http_parse_head_digit(from[1]) : -1;
        int low = high >= 0 ? http_parse_head_digit(from[2]) : -1;
        *to++ = low >= 0 ? (char)(high * 16 + low) : *from;
        from += low >= 0 ? 2 : 0;
    }
    *to = '\0';
}

/* Sets the pointers, now that the text does not move any more. Returns false if a name contains a
 * space. */
static bool http_parse_head_point(struct http_head *head, size_t path_at)
{
    char *text = (char *)clave__buf_bytes(&head->text), *at = text;
    head->target = text;
    at += strlen(at) + 1;
    for (size_t i = 0; i < head->nfields; i++) {
        char *value = at + strlen(at) + 1;
        if (strpbrk(at, " \t"))
            return false;
        size_t n = strlen(value), blank = n;
        while (blank > 0 && (value[blank - 1] == ' ' || value[blank - 1] == '\t'))
            blank--;
        head->fields[i] = (struct web_header){at, value};
        at = value + n + 1;
        value[blank] = '\0';
    }
    head->path = text + path_at;
    http_parse_head_decode(text + path_at);
    return true;
}

/* Called when the head is complete. Returns 0, or a status as http_parse_head_put does; 400: a name
 * contains a space. */
static unsigned http_parse_head_finish(struct http_head *head)
{
    unsigned refused = http_parse_head_append(head, "", 1);
    size_t path_at = clave__buf_len(&head->text);
    if (refused)
        return refused;
    size_t n = strcspn((const char *)clave__buf_bytes(&head->text), "?");
    size_t room = head->nfields > 0 ? head->nfields : 1;
    head->fields = clave__mem_alloc(head->text.mem, room * sizeof *head->fields);
    head->text.max += n + 1; /* the path was already bounded as part of the target */
    if (!head->fields || clave__buf_reserve(&head->text, n + 1) != CLAVE_OK)
        return 503;
    clave__buf_append(&head->text, clave__buf_bytes(&head->text), n);
    clave__buf_append(&head->text, "", 1);
    return http_parse_head_point(head, path_at) ? 0 : 400;
}

const char *clave__http_head_find(const struct http_head *head, const char *name)
{
    for (size_t i = 0; head->fields && i < head->nfields; i++)
        if (strcasecmp(head->fields[i].name, name) == 0)
            return head->fields[i].value;
    return NULL;
}

/* ---- callbacks of the library ---------------------------------------------------------------- */

static const struct http_library *http_parse_library(const http_library_parser *p)
{
    return ((const struct http_parse *)p->data)->library;
}

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
    return http_parse_refuse(t, http_parse_head_put(t->head, part, at, n), NULL);
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
    return http_parse_library(p)->llhttp_should_keep_alive(p);
}

static bool http_parse_has_coding(const http_library_parser *p)
{
    return p->flags & F_TRANSFER_ENCODING;
}

static void http_parse_pause(http_library_parser *p)
{
    (void)p; /* the callback's result does that */
}
#else
enum { HAS_LENGTH = F_CONTENTLENGTH, PAUSES = 0 };

static bool http_parse_keeps_alive(const http_library_parser *p)
{
    return http_parse_library(p)->http_should_keep_alive(p);
}

static bool http_parse_has_coding(const http_library_parser *p)
{
    return p->uses_transfer_encoding;
}

static void http_parse_pause(http_library_parser *p)
{
    http_parse_library(p)->http_parser_pause(p, 1);
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
    p->upgrade = 0; /* a request to switch protocols is answered in the present one */
    t->keeps_alive = http_parse_keeps_alive(p);
    t->body_length = http_parse_length(p);
    if (p->http_major != 1 || p->http_minor > 1)
        return http_parse_refuse(t, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    if (t->body_length == INT64_MIN) /* llhttp accepts lengths up to 2^64 - 1 */
        return http_parse_refuse(t, 400, bad_length);
    if (http_parse_has_coding(p) && t->body_length >= 0)
        return http_parse_refuse(t, 501, "the only supported Transfer-Encoding is chunked");
    if (http_parse_refuse(t, http_parse_head_finish(t->head), NULL))
        return FAILED;
    const char *expects = t->is_1_1 ? clave__http_head_find(t->head, "Expect") : NULL;
    t->expects_continue = expects && strcasecmp(expects, "100-continue") == 0;
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
static void http_parse_reset(struct http_parse *t)
{
    t->library->llhttp_init(&t->parser, HTTP_REQUEST, &settings);
}

static size_t http_parse_run(struct http_parse *t, const char *p, size_t n, int *fault)
{
    const struct http_library *lib = t->library;
    *fault = (int)lib->llhttp_execute(&t->parser, p, n);
    return *fault == HPE_OK ? n : (size_t)(lib->llhttp_get_error_pos(&t->parser) - p);
}
#else
static void http_parse_reset(struct http_parse *t)
{
    t->library->http_parser_init(&t->parser, HTTP_REQUEST);
}

/* Runs the library, but pauses before the last byte of a head, because the library accepts anything
 * in its place. */
static size_t http_parse_run(struct http_parse *t, const char *p, size_t n, int *fault)
{
    size_t used = t->library->http_parser_execute(&t->parser, &settings, p, n);
    *fault = (int)HTTP_PARSER_ERRNO(&t->parser);
    if (*fault == HPE_PAUSED && p[used] != '\n')
        *fault = HPE_LF_EXPECTED;
    return *fault == HPE_PAUSED ? used + 1 : used;
}
#endif

static bool http_parse_is_in_word(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == ' ' || c == '-' || c == '_';
}

static const char *http_parse_why(unsigned status)
{
    switch (status) {
    case 414:
        return "the path and query are too long";
    case 431:
        return "the headers are too large, or too many";
    case 503:
        return "out of memory";
    default:
        return "the name of a header contains a blank";
    }
}

/* Sets the status for what the library refuses. A callback that refused has already set its own. */
static void http_parse_judge(struct http_parse *t, int fault, char at)
{
    if (t->refused) {
        if (!t->why)
            t->why = http_parse_why(t->refused);
    } else if (fault == HPE_INVALID_VERSION) {
        http_parse_refuse(t, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    } else if (fault == HPE_INVALID_METHOD && http_parse_is_in_word(at)) {
        http_parse_refuse(t, 501, "this method is not known");
    } else if (fault == HPE_INVALID_TRANSFER_ENCODING && !(t->parser.flags & HAS_LENGTH)) {
        http_parse_refuse(t, 501, "the only supported Transfer-Encoding is chunked");
    } else if (fault == HPE_UNEXPECTED_CONTENT_LENGTH || fault == HPE_INVALID_CONTENT_LENGTH ||
               fault == HPE_INVALID_TRANSFER_ENCODING) {
        http_parse_refuse(t, 400, bad_length);
    } else {
        http_parse_refuse(t, 400, "this is not a well-formed request of HTTP/1.1");
    }
}

/* True if a value continues on the next line, which the library would accept. */
static bool http_parse_is_folded(struct http_parse *t, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((p[i] == ' ' || p[i] == '\t') && t->last == '\n')
            return true;
        t->last = p[i];
    }
    return false;
}

/* ---- the interface --------------------------------------------------------------------------- */

void clave__http_parse_begin(struct http_parse *t, const struct http_library *library,
                             struct http_head *head,
                             void (*take)(void *arg, const void *p, size_t n), void *arg)
{
    *t = (struct http_parse){.library = library, .head = head, .take = take, .arg = arg};
    http_parse_reset(t);
    t->parser.data = t;
}

static size_t http_parse_head(struct http_parse *t, const char *p, size_t n, enum http_parsed *what)
{
    int fault;
    size_t used = http_parse_run(t, p, n, &fault);
    if (http_parse_is_folded(t, p, used)) {
        http_parse_refuse(t, 400, "a header continues on the next line");
        *what = HTTP_PARSED_FAULT;
    } else if (fault == HPE_OK) {
        *what = HTTP_PARSED_ALL;
    } else if (fault == HPE_PAUSED) {
        *what = HTTP_PARSED_HEAD;
        t->has_head = true;
        t->left = t->body_length;
        if (t->body_length < 0)
            http_chunks_begin(&t->chunks);
    } else {
        *what = HTTP_PARSED_FAULT;
        http_parse_judge(t, fault, used < n ? p[used] : '\0');
    }
    return used;
}

static size_t http_parse_chunks(struct http_parse *t, const char *p, size_t n,
                                enum http_parsed *what)
{
    size_t len, used = http_chunks_read(&t->chunks, p, n, &len);
    if (len > 0)
        t->take(t->arg, p + used - len, len);
    *what = t->chunks.state == HTTP_CHUNKS_END ? HTTP_PARSED_END : HTTP_PARSED_ALL;
    if (t->chunks.state != HTTP_CHUNKS_FAULT)
        return used;
    *what = HTTP_PARSED_FAULT;
    http_parse_refuse(t, 400, "the end of the chunked body is ambiguous");
    return used;
}

size_t clave__http_parse(struct http_parse *t, const void *p, size_t n, enum http_parsed *what)
{
    if (!t->has_head)
        return http_parse_head(t, p, n, what);
    if (t->body_length < 0)
        return http_parse_chunks(t, p, n, what);
    size_t len = n < (uint64_t)t->left ? n : (size_t)t->left;
    t->left -= (int64_t)len;
    if (len > 0)
        t->take(t->arg, p, len);
    *what = t->left > 0 ? HTTP_PARSED_ALL : HTTP_PARSED_END;
    return len;
}

const char *clave__http_parse_method(const struct http_parse *t)
{
    switch (t->parser.method) {
#define HTTP_PARSE_METHOD(number, name, text)                                                      \
    case number:                                                                                   \
        return #text;
        HTTP_METHOD_MAP(HTTP_PARSE_METHOD)
#undef HTTP_PARSE_METHOD
    default:
        return "";
    }
}
