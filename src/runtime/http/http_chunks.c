/* http_chunks.c - see http_chunks.h; http_parse.c calls it. */
#include "runtime/http/http_chunks.h"

enum { MAX_DIGITS = 12, MAX_IGNORED = 4096 };

void clave__http_chunks_begin(struct http_chunks *t)
{
    *t = (struct http_chunks){.state = HTTP_CHUNKS_SIZE};
}

static int http_chunks_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The line of a size has ended. */
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

/* What an extension or a trailer says does not matter. */
static enum http_chunks_state http_chunks_ignore(struct http_chunks *t, char c,
                                                 enum http_chunks_state line,
                                                 enum http_chunks_state lf)
{
    if (c == '\r')
        return lf;
    return ++t->ignored > MAX_IGNORED || c == '\n' || c == '\0' ? HTTP_CHUNKS_FAULT : line;
}

/* Every byte that is not data. */
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

size_t clave__http_chunks_read(struct http_chunks *t, const char *p, size_t n, size_t *len)
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
