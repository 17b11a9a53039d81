/* claim_data.c - what the node of a claim says, for `clave locks`, the page and deadlocks. Called
 * by claim.c. */
#include <string.h>

#include "recipe/contender/identity.h"
#include "web/session/claim.h"

enum { CLAIM_DATA = 8192 };

clave_err clave__claim_describe(struct claim *c, const struct claim_terms *t)
{
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    const clave_identity id = {.host = t->host,
                               .name = t->name,
                               .command = t->command,
                               .traceparent = t->traceparent,
                               .revocable = t->revocable ? 1 : -1};
    const char *text = t->text ? t->text : t->name ? t->name : "";
    char data[CLAIM_DATA];
    if (strcmp(c->kind->name, "election") == 0) { /* the candidate's id, which Curator reads too */
        c->len = strlen(text);
    } else {
        c->len = clave_identity_format(&id, data, sizeof data);
        if (t->lock_delay_ms > 0)
            c->len = clave__identity_put_delays(data, c->len, sizeof data);
        text = data;
    }
    if (c->len >= CLAIM_DATA)
        return CLAVE_ETOOBIG;
    c->data = clave__mem_strndup(mem, text, c->len);
    return c->data ? CLAVE_OK : CLAVE_ENOMEM;
}
