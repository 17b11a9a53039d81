/* http_fuzz.c - the bytes of an HTTP connection, as they come: read in one piece and cut anywhere,
 * they are the same requests with the same bodies, and what is refused is the same. The first byte
 * says where they are cut. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/rand.h"
#include "fuzz/fuzz.h"
#include "runtime/http/http_parse.h"

enum { MAX_HEAD = 8192, MAX_TRACE = 1 << 24 };

static void put(struct buf *trace, const void *p, size_t n)
{
    must(clave__buf_append(trace, p, n) == CLAVE_OK);
}

static void put_text(struct buf *trace, const char *text)
{
    put(trace, text, strlen(text) + 1);
}

static void take_body(void *trace, const void *p, size_t n)
{
    must(n > 0);
    put(trace, p, n);
}

static void put_head(struct buf *trace, const struct http_parse *t, const struct http_head *head)
{
    char numbers[64];
    must(t->body_length >= -1);
    must(head->nfields <= HTTP_MAX_FIELDS);
    snprintf(numbers, sizeof numbers, "%lld %d %d", (long long)t->body_length, t->keeps_alive,
             t->is_1_1);
    put_text(trace, clave__http_parse_method(t));
    put_text(trace, head->target);
    put_text(trace, head->path);
    put_text(trace, numbers);
    for (size_t i = 0; i < head->nfields; i++) {
        put_text(trace, head->fields[i].name);
        put_text(trace, head->fields[i].value);
    }
}

/* One request of the bytes from *at on. false: nothing follows it. */
static bool play_request(const uint8_t *p, size_t n, size_t *at, struct rand_state *cuts,
                         struct buf *trace)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct http_head head;
    struct http_parse t;
    enum http_parsed what = HTTP_PARSED_ALL;
    const char *why;
    bool over = false;
    clave__http_head_init(&head, &mem, MAX_HEAD);
    clave__http_parse_begin(&t, clave__http_library(&why), &head, take_body, trace);
    while (*at < n && !over) {
        size_t left = n - *at, piece = cuts ? 1 + (size_t)clave__rand_below(cuts, left) : left;
        piece = cuts && clave__rand_below(cuts, 2) ? 1 : piece;
        size_t used = clave__http_parse(&t, p + *at, piece, &what);
        must(used <= piece);
        must(used > 0 || what != HTTP_PARSED_ALL);
        *at += used;
        if (what == HTTP_PARSED_HEAD)
            put_head(trace, &t, &head);
        over = what == HTTP_PARSED_END || what == HTTP_PARSED_FAULT ||
               (what == HTTP_PARSED_HEAD && t.body_length == 0);
    }
    if (what == HTTP_PARSED_FAULT) {
        must(t.refused >= 400 && t.refused < 600 && t.why);
        put(trace, "!", 1); /* of two faults in one head either may be seen first */
    }
    clave__http_head_fini(&head);
    return over && what != HTTP_PARSED_FAULT;
}

static void play(const uint8_t *p, size_t n, struct rand_state *cuts, struct buf *trace)
{
    size_t at = 0;
    while (at < n && play_request(p, n, &at, cuts, trace))
        put(trace, "|", 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct buf whole, cut;
    struct rand_state cuts;
    const char *why;
    must(clave__http_library(&why) != NULL);
    if (n == 0)
        return 0;
    struct clave_mem mem = clave__mem_or_default(NULL);
    clave__buf_init(&whole, &mem, MAX_TRACE);
    clave__buf_init(&cut, &mem, MAX_TRACE);
    clave__rand_seed(&cuts, (uint64_t)p[0] + 1);
    play(p + 1, n - 1, NULL, &whole);
    play(p + 1, n - 1, &cuts, &cut);
    must(clave__buf_len(&whole) == clave__buf_len(&cut));
    must(clave__buf_len(&cut) == 0 ||
         memcmp(clave__buf_bytes(&whole), clave__buf_bytes(&cut), clave__buf_len(&cut)) == 0);
    clave__buf_fini(&whole);
    clave__buf_fini(&cut);
    return 0;
}
