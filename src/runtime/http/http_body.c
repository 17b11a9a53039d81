/* http_body.c - see http_body.h; http_parse.c calls it. */
#include "runtime/http/http_body.h"

enum { MAX_DIGITS = 12, MAX_IGNORED = 4096 };

void clave__http_body_begin(struct http_body *b, int64_t length)
{
    *b = (struct http_body){.state = HTTP_BODY_SIZE};
    if (length < 0)
        return;
    b->state = length > 0 ? HTTP_BODY_DATA : HTTP_BODY_END;
    b->left = length;
}

static int http_body_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The line of a size has ended. */
static enum http_body_state http_body_after_size(struct http_body *b)
{
    b->is_last = b->left == 0;
    b->digits = 0;
    return b->is_last ? HTTP_BODY_TRAILER : HTTP_BODY_CHUNK;
}

static enum http_body_state http_body_in_size(struct http_body *b, char c)
{
    int digit = http_body_digit(c);
    if (digit >= 0 && b->digits < MAX_DIGITS) {
        b->left = b->left * 16 + digit;
        b->digits++;
        return HTTP_BODY_SIZE;
    }
    if (b->digits == 0 || digit >= 0)
        return HTTP_BODY_FAULT;
    if (c == '\r')
        return HTTP_BODY_SIZE_LF;
    return c == ';' || c == ' ' || c == '\t' ? HTTP_BODY_EXTENSION : HTTP_BODY_FAULT;
}

/* What an extension or a trailer says does not matter. */
static enum http_body_state http_body_ignore(struct http_body *b, char c, enum http_body_state line,
                                             enum http_body_state lf)
{
    if (c == '\r')
        return lf;
    return ++b->ignored > MAX_IGNORED || c == '\n' || c == '\0' ? HTTP_BODY_FAULT : line;
}

/* Every byte that is not data. */
static enum http_body_state http_body_step(struct http_body *b, char c)
{
    switch (b->state) {
    case HTTP_BODY_SIZE:
        return http_body_in_size(b, c);
    case HTTP_BODY_EXTENSION:
        return http_body_ignore(b, c, HTTP_BODY_EXTENSION, HTTP_BODY_SIZE_LF);
    case HTTP_BODY_SIZE_LF:
        return c == '\n' ? http_body_after_size(b) : HTTP_BODY_FAULT;
    case HTTP_BODY_CHUNK_CR:
        return c == '\r' ? HTTP_BODY_CHUNK_LF : HTTP_BODY_FAULT;
    case HTTP_BODY_CHUNK_LF:
        return c == '\n' ? HTTP_BODY_SIZE : HTTP_BODY_FAULT;
    case HTTP_BODY_TRAILER:
        return http_body_ignore(b, c, HTTP_BODY_TRAILER_LINE, HTTP_BODY_LAST_LF);
    case HTTP_BODY_TRAILER_LINE:
        return http_body_ignore(b, c, HTTP_BODY_TRAILER_LINE, HTTP_BODY_TRAILER_LF);
    case HTTP_BODY_TRAILER_LF:
        return c == '\n' ? HTTP_BODY_TRAILER : HTTP_BODY_FAULT;
    case HTTP_BODY_LAST_LF:
        return c == '\n' ? HTTP_BODY_END : HTTP_BODY_FAULT;
    case HTTP_BODY_DATA:
    case HTTP_BODY_CHUNK:
    case HTTP_BODY_END:
    case HTTP_BODY_FAULT:
        break;
    }
    return HTTP_BODY_FAULT;
}

size_t clave__http_body_read(struct http_body *b, const char *p, size_t n, size_t *len)
{
    size_t used = 0;
    *len = 0;
    while (used < n && b->state != HTTP_BODY_DATA && b->state != HTTP_BODY_CHUNK &&
           b->state != HTTP_BODY_END && b->state != HTTP_BODY_FAULT)
        b->state = http_body_step(b, p[used++]);
    if (b->state != HTTP_BODY_DATA && b->state != HTTP_BODY_CHUNK)
        return used;
    *len = n - used < (uint64_t)b->left ? n - used : (size_t)b->left;
    b->left -= (int64_t)*len;
    if (b->left == 0)
        b->state = b->state == HTTP_BODY_DATA ? HTTP_BODY_END : HTTP_BODY_CHUNK_CR;
    return used + *len;
}
