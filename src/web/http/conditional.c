/* conditional.c - see conditional.h. Called by the endpoints of nodes. */
#include "web/http/conditional.h"

#include <assert.h>
#include <string.h>

#include "web/http/answer.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"

static const struct problem bad_condition = {.status = 400, .err = CLAVE_EINVAL};

/* "3-4294967301", or "3"; without the quotes it is easier to write in a shell. A write can be made
 * to depend on the version only. */
static bool conditional_version(const char *tag, int32_t *out)
{
    char digits[12];
    int64_t n = 0;
    size_t quote = tag[0] == '"', len = strcspn(tag + quote, "-\"");
    const char *rest = tag + quote + len;
    rest += *rest == '-' ? 1 + strspn(rest + 1, "0123456789") : 0;
    if (len >= sizeof digits || strcmp(rest, quote ? "\"" : "") != 0)
        return false;
    memcpy(digits, tag + quote, len);
    digits[len] = '\0';
    if (!clave__web_parse_int(digits, &n) || n < 0 || n > INT32_MAX)
        return false;
    *out = (int32_t)n;
    return true;
}

bool clave__condition_read(struct web_exchange *x, struct condition *out)
{
    const char *match = clave__web_header(x, "If-Match");
    const char *none = clave__web_header(x, "If-None-Match");
    *out = (struct condition){.version = -1};
    if (match && none) {
        clave__web_problem(x, &bad_condition, "If-Match and If-None-Match exclude each other");
        return false;
    }
    if (match && strcmp(match, "*") != 0 && !conditional_version(match, &out->version)) {
        clave__web_problem(x, &bad_condition, "If-Match must be a version, \"3\", or *");
        return false;
    }
    if (none && strcmp(none, "*") != 0) {
        clave__web_problem(x, &bad_condition, "If-None-Match must be *");
        return false;
    }
    out->must_exist = match != NULL;
    out->must_not_exist = none != NULL;
    return true;
}

bool clave__condition_failed(const struct condition *k, clave_err err)
{
    return (err == CLAVE_EBADVERSION) || (err == CLAVE_ENODEEXISTS && k->must_not_exist) ||
           (err == CLAVE_ENONODE && k->must_exist);
}

/* A list of tags is searched for as a whole: no tag has a quote in it. */
bool clave__condition_knows(const struct web_exchange *x, const char *etag, const char *none)
{
    assert(etag[0] == '"' && none[0] == '"');
    const char *given = clave__web_header(x, "If-None-Match");
    if (!given)
        return false;
    if (strcmp(given, "*") == 0)
        return strcmp(etag, none) != 0;
    return strstr(given, etag) != NULL;
}
