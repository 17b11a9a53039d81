/* parents_access.c - see parents_access.h. Called by what creates nodes with their parents.
 * Invariant: `go` is called only when no missing node above the path is outside of the sender's
 * role. */
#include "web/api/znodes/parents_access.h"

#include <string.h>

#include "base/path.h"
#include "web/http/problem.h"

struct parents {
    struct web_exchange *x;
    enum web_role role;
    char *path; /* the nearest that the sender may not make; those above it are of no interest */
    request_client *go;
};

/* Cuts the path to the nearest node above it without the role. false: there is only the root. */
static bool parents_access_cut(const struct web_exchange *x, enum web_role role, char *path)
{
    size_t n = clave__path_parent_len(path, strlen(path));
    for (; n > 1; n = clave__path_parent_len(path, n)) {
        path[n] = '\0';
        if (!clave__web_may(x, role, path))
            return true;
    }
    return false;
}

static void on_parents_stat(clave_async_client *c, const clave_result *res, void *arg)
{
    struct parents *p = arg;
    struct web_exchange *x = p->x;
    if (!clave__web_expected(x))
        return;
    x->looking = res->err != CLAVE_OK;
    if (res->err == CLAVE_OK)
        p->go(x, c);
    else if (res->err == CLAVE_ENONODE)
        clave__web_problem(x,
                           &(struct problem){.status = 403, .err = CLAVE_ENOAUTH, .path = p->path},
                           "%s would have to be created, and the role \"%s\" is needed there: see "
                           "/v1/whoami",
                           p->path, clave__web_role_name(p->role));
    else
        clave__web_problem_as(
            x, clave_err_classify(res->err) == CLAVE_CLASS_FINAL ? 403 : 503,
            clave_err_classify(res->err) == CLAVE_CLASS_UNKNOWN ? CLAVE_EUNREACHABLE : res->err,
            "look at", p->path);
}

void clave__web_look_at_parents(struct web_exchange *x, clave_async_client *c, enum web_role role,
                                const char *path, request_client *go)
{
    struct parents *p = clave__web_alloc(x, sizeof *p);
    char *above = clave__web_strndup(x, path, strlen(path));
    clave_err err = p && above ? CLAVE_OK : CLAVE_ENOMEM;
    if (err == CLAVE_OK && !parents_access_cut(x, role, above)) {
        go(x, c);
        return;
    }
    if (err == CLAVE_OK) {
        *p = (struct parents){.x = x, .role = role, .path = above, .go = go};
        err = clave_async_exists(c, above, NULL, on_parents_stat, p);
        x->looking = true;
    }
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__request_client_refused(x, c, err, "look at", path);
}
