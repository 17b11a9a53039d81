/* slot_claim_id.c - see slot_claim_id.h. Called by the endpoints of slots. Invariant: each pair of
 * a path and an owner has one text, since neither contains a line feed. */
#include "web/slots/slot_claim_id.h"

#include <assert.h>
#include <string.h>

#include "base/base64.h"
#include "base/path.h"
#include "recipe/slots/slot_name.h"
#include "web/http/problem.h"

static const char slot_mark[] = "slot.";

/* NULL: the slot may be. */
static const char *slot_claim_id_fault(const char *path, const char *owner)
{
    size_t n = strlen(path);
    if (n > SLOT_MOST_PATH)
        return "its path is longer than 4096 bytes";
    const char *fault = clave__path_fault(path, n, false);
    if (fault)
        return fault;
    return clave__slot_id_is_valid(owner)
               ? NULL
               : "an owner is 1 to 128 bytes of UTF-8 without control characters";
}

static char *slot_claim_id_text(struct web_exchange *x, const char *path, const char *owner)
{
    char *both = clave__web_sprintf(x, "%s\n%s", path, owner);
    size_t n = both ? strlen(both) : 0, mark = sizeof slot_mark - 1;
    char *text = both ? clave__web_alloc(x, mark + BASE64_LEN(n) + 1) : NULL;
    if (!text)
        return NULL;
    memcpy(text, slot_mark, mark);
    clave__base64(both, n, text + mark);
    for (char *c = text + mark; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c == '=' ? '\0' : *c;
    return text;
}

bool clave__slot_claim_id_is_one(const char *text)
{
    return strncmp(text, slot_mark, sizeof slot_mark - 1) == 0;
}

bool clave__slot_claim_id_make(struct web_exchange *x, const char *path, const char *owner,
                               struct slot_claim_id *out)
{
    const char *fault = slot_claim_id_fault(path, owner);
    struct problem bad = {.status = 400, .err = CLAVE_EINVAL};
    if (fault) {
        clave__web_problem(x, &bad, "there can be no such slot: %s", fault);
        return false;
    }
    *out = (struct slot_claim_id){path, owner, slot_claim_id_text(x, path, owner)};
    if (!out->text)
        clave__web_problem_err(x, CLAVE_ENOMEM, "take a slot of", path);
    return out->text != NULL;
}

/* The bytes of base64url, with a NUL; NULL: it is none. */
static char *slot_claim_id_decode(struct web_exchange *x, const char *text)
{
    size_t n = strlen(text), padded = BASE64_LEN((n * 3 + 3) / 4), len = 0;
    char *copy = clave__web_alloc(x, padded + 5), *out = clave__web_alloc(x, padded + 1);
    if (!copy || !out)
        return NULL;
    padded = (n + 3) / 4 * 4;
    memset(copy, '=', padded + 1);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '+' || text[i] == '/' || text[i] == '=')
            return NULL;
        copy[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    }
    if (!clave__base64_decode(copy, padded, out, &len))
        return NULL;
    out[len] = '\0';
    return strlen(out) == len ? out : NULL;
}

bool clave__slot_claim_id_parse(struct web_exchange *x, const char *text, struct slot_claim_id *out)
{
    assert(clave__slot_claim_id_is_one(text));
    static const struct problem unknown = {.status = 404, .err = CLAVE_ENOTHELD};
    char *both = slot_claim_id_decode(x, text + sizeof slot_mark - 1);
    char *line = both ? strchr(both, '\n') : NULL;
    if (line)
        *line = '\0';
    if (line && !slot_claim_id_fault(both, line + 1))
        return clave__slot_claim_id_make(x, both, line + 1, out);
    clave__web_problem(x, &unknown, "this is no id of a claim to a slot: POST /v1/claims tells it");
    return false;
}
