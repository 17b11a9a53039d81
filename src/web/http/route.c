/* route.c - see route.h. Called by admit.c. Invariant: the first route of the table that matches
 * counts. */
#include "web/http/route.h"

#include <string.h>

/* ---- patterns ------------------------------------------------------------------------------- */

struct capture {
    const char *at;
    size_t n;
};

/* The capture of {path}, which ends where `rest` of the pattern begins. */
static bool match_path(const char *rest, const char *path, struct capture *out)
{
    size_t n = strlen(path), end = strlen(rest);
    if (n < end || strcmp(path + n - end, rest) != 0)
        return false;
    *out = (struct capture){path, n - end};
    return true;
}

/* Where a pattern has no slash before {path}, the path's own is there, or there is no path. */
static bool path_is_apart(const char *pattern, const char *at, const char *path)
{
    return (at > pattern && at[-1] == '/') || *path == '/' || *path == '\0';
}

/* `caught` has room for WEB_MAX_PARAMS. */
static bool route_matches(const char *pattern, const char *path, struct capture *caught)
{
    const char *all = pattern;
    while (*pattern) {
        if (strncmp(pattern, "{path}", 6) == 0)
            return path_is_apart(all, pattern, path) && match_path(pattern + 6, path, caught);
        if (*pattern == '{') {
            *caught = (struct capture){path, strcspn(path, "/")};
            if (caught->n == 0)
                return false;
            path += caught++->n;
            pattern += strcspn(pattern, "}") + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0';
}

/* ---- finding -------------------------------------------------------------------------------- */

/* A znode's path has its slash in front, encoded or not; the pattern's own slash is not part of
 * it. */
static enum route_found route_take(struct web_exchange *x, const struct route *r,
                                   const struct capture *caught)
{
    const char *param = strchr(r->pattern, '{');
    for (size_t i = 0; param; i++, param = strchr(param + 1, '{')) {
        bool is_path = strncmp(param, "{path}", 6) == 0;
        char *to = clave__web_alloc(x, caught[i].n + 2);
        if (!to)
            return ROUTE_NO_MEMORY;
        to[0] = '/';
        if (!clave__percent_decode(to + 1, caught[i].at, caught[i].n, false))
            return ROUTE_BAD_PATH;
        x->params[i] = is_path && to[1] != '/' ? to : to + 1;
    }
    x->route = r;
    return ROUTE_OK;
}

static bool method_matches(const struct web_exchange *x, const struct route *r)
{
    return clave__web_is_method(x, r->method) ||
           (clave__web_is_method(x, "HEAD") && strcmp(r->method, "GET") == 0);
}

static void allow_add(char allow[ROUTE_ALLOW_CAP], const char *method)
{
    size_t n = strlen(allow), more = strlen(method);
    if (strstr(allow, method) || n + more + 3 > ROUTE_ALLOW_CAP)
        return;
    if (n > 0) {
        memcpy(allow + n, ", ", 3);
        n += 2;
    }
    memcpy(allow + n, method, more + 1);
}

enum route_found clave__route_find(struct web_exchange *x, char allow[ROUTE_ALLOW_CAP])
{
    allow[0] = '\0';
    for (size_t i = 0; i < x->web->routes->n; i++) {
        const struct route *r = &x->web->routes->at[i];
        struct capture caught[WEB_MAX_PARAMS] = {{NULL, 0}};
        if (!route_matches(r->pattern, x->target.path, caught))
            continue;
        if (method_matches(x, r))
            return route_take(x, r, caught);
        allow_add(allow, r->method);
        if (strcmp(r->method, "GET") == 0)
            allow_add(allow, "HEAD");
    }
    return allow[0] ? ROUTE_OTHER_METHOD : ROUTE_NONE;
}
