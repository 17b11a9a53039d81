/* claim_data.c - what the node of a claim says, for `clave locks`, the page and deadlocks. Called
 * by claim.c. */
#include <stdio.h>
#include <string.h>

#include "web/session/claim.h"

enum { CLAIM_DATA = 8192 };

/* Like clave_identity_format's fields, whose readers skip those that they do not know. */
static void claim_add_field(char *data, size_t cap, size_t *n, const char *key, const char *value)
{
    int more = snprintf(data + *n, cap - *n, "%s=%s\n", key, value);
    *n += more > 0 ? (size_t)more : 0;
}

/* As of W3C Trace Context: no character of it needs an escape. */
static bool claim_is_traceparent(const char *text)
{
    return strlen(text) <= 128 && strspn(text, "0123456789abcdef-") == strlen(text);
}

clave_err clave__claim_describe(struct claim *c, const struct claim_terms *t)
{
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    const clave_identity id = {.host = t->host, .name = t->name, .command = t->command};
    char *data = clave__mem_alloc(mem, CLAIM_DATA);
    if (!data)
        return CLAVE_ENOMEM;
    c->data = data;
    if (strcmp(c->kind->name, "election") == 0) { /* the candidate's id, which Curator reads too */
        const char *text = t->text ? t->text : t->name ? t->name : "";
        c->len = strlen(text);
        if (c->len >= CLAIM_DATA)
            return CLAVE_ETOOBIG;
        memcpy(data, text, c->len + 1);
        return CLAVE_OK;
    }
    c->len = clave_identity_format(&id, data, CLAIM_DATA);
    if (c->len < CLAIM_DATA && t->traceparent && claim_is_traceparent(t->traceparent))
        claim_add_field(data, CLAIM_DATA, &c->len, "traceparent", t->traceparent);
    return c->len < CLAIM_DATA ? CLAVE_OK : CLAVE_ETOOBIG;
}
