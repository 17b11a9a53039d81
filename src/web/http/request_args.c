/* request_args.c - see request_args.h. Called by handlers. */
#include "web/http/request_args.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/path.h"
#include "web/http/problem.h"

bool clave__web_parse_int(const char *text, int64_t *out)
{
    size_t i = text[0] == '-' ? 1 : 0;
    int64_t n = 0;
    if (text[i] == '\0')
        return false;
    for (; text[i] >= '0' && text[i] <= '9'; i++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, text[i] - '0', &n))
            return false;
    if (text[i] != '\0' || (text[0] != '-' && n == INT64_MIN))
        return false;
    *out = text[0] == '-' ? n : -n;
    return true;
}

bool clave__query_int(struct web_exchange *x, const char *name, const int64_t bounds[2],
                      int64_t *out)
{
    assert(bounds[0] <= bounds[1]);
    const char *text = clave__web_query(x, name);
    int64_t n;
    if (!text)
        return true;
    if (!clave__web_parse_int(text, &n) || n < bounds[0] || n > bounds[1]) {
        clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EINVAL},
                           "%s is a number from %" PRId64 " to %" PRId64, name, bounds[0],
                           bounds[1]);
        return false;
    }
    *out = n;
    return true;
}

static bool request_args_is_path(struct web_exchange *x, const char *what, const char *path)
{
    const char *fault = clave__path_fault(path, strlen(path), false);
    if (fault)
        clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EPATH, .path = path},
                           "%s is not the path of a znode: it %s", what, fault);
    return !fault;
}

bool clave__query_path(struct web_exchange *x, const char *name)
{
    const char *path = clave__web_query(x, name);
    return !path || request_args_is_path(x, name, path);
}

bool clave__param_path(struct web_exchange *x)
{
    assert(x->params[0]); /* the route's pattern has it */
    return request_args_is_path(x, x->params[0], x->params[0]);
}
