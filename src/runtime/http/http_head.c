/* http_head.c - see http_head.h; http_parse.c fills it. */
#include "runtime/http/http_head.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

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

static unsigned http_head_append(struct http_head *head, const char *p, size_t n)
{
    clave_err err = clave__buf_append(&head->text, p, n);
    if (err == CLAVE_OK)
        return 0;
    return err == CLAVE_ENOMEM ? 503 : head->part == HTTP_HEAD_TARGET ? 414 : 431;
}

unsigned clave__http_head_put(struct http_head *head, enum http_head_part part, const char *p,
                              size_t n)
{
    unsigned refused = part != head->part ? http_head_append(head, "", 1) : 0;
    if (part == HTTP_HEAD_NAME && head->part != HTTP_HEAD_NAME && ++head->nfields > HTTP_MAX_FIELDS)
        refused = 431;
    head->part = part;
    return refused ? refused : http_head_append(head, p, n);
}

static int http_head_digit(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

/* In place; an escape that is none stays as it is. */
static void http_head_decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        int high = *from == '%' ? http_head_digit(from[1]) : -1;
        int low = high >= 0 ? http_head_digit(from[2]) : -1;
        *to++ = low >= 0 ? (char)(high * 16 + low) : *from;
        from += low >= 0 ? 2 : 0;
    }
    *to = '\0';
}

/* The text does not move any more. false: a name has a blank in it. */
static bool http_head_point(struct http_head *head, size_t path_at)
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
    http_head_decode(text + path_at);
    return true;
}

unsigned clave__http_head_finish(struct http_head *head)
{
    unsigned refused = http_head_append(head, "", 1);
    size_t path_at = clave__buf_len(&head->text);
    if (refused)
        return refused;
    size_t n = strcspn((const char *)clave__buf_bytes(&head->text), "?");
    size_t room = head->nfields > 0 ? head->nfields : 1;
    head->fields = clave__mem_alloc(head->text.mem, room * sizeof *head->fields);
    head->text.max += n + 1; /* the path was bounded with the target */
    if (!head->fields || clave__buf_reserve(&head->text, n + 1) != CLAVE_OK)
        return 503;
    clave__buf_append(&head->text, clave__buf_bytes(&head->text), n);
    clave__buf_append(&head->text, "", 1);
    return http_head_point(head, path_at) ? 0 : 400;
}

const char *clave__http_head_find(const struct http_head *head, const char *name)
{
    for (size_t i = 0; head->fields && i < head->nfields; i++)
        if (strcasecmp(head->fields[i].name, name) == 0)
            return head->fields[i].value;
    return NULL;
}
