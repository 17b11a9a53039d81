/* node_create.c - see node_create.h. Called by znodes_write.c and multi_api.c. */
#include "web/api/znodes/node_create.h"

#include <string.h>

#include "base/path.h"
#include "web/http/answer.h"
#include "web/http/forwarded.h"
#include "web/http/problem.h"

bool clave__web_parse_mode(const char *name, clave_create_mode *out)
{
    static const char *const names[] = {
        [CLAVE_PERSISTENT] = "persistent",
        [CLAVE_EPHEMERAL] = "ephemeral",
        [CLAVE_PERSISTENT_SEQUENTIAL] = "persistent_sequential",
        [CLAVE_EPHEMERAL_SEQUENTIAL] = "ephemeral_sequential",
        [CLAVE_CONTAINER] = "container",
        [CLAVE_PERSISTENT_TTL] = "persistent_ttl",
        [CLAVE_PERSISTENT_SEQUENTIAL_TTL] = "persistent_sequential_ttl",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (clave_create_mode)i;
            return true;
        }
    }
    return false;
}

bool clave__web_must_create(struct web_exchange *x, clave_create_mode mode, const char *path)
{
    /* Its number is not known yet, so a prefix covers it only if it covers all its siblings. */
    const char *covered =
        clave__web_mode_is_sequential(mode)
            ? clave__web_strndup(x, path, clave__path_parent_len(path, strlen(path)))
            : path;
    if (covered)
        return clave__web_must(x, WEB_WRITE, covered);
    clave__web_problem_err(x, CLAVE_ENOMEM, "create", path);
    return false;
}

void clave__web_set_location(struct web_exchange *x, const char *path)
{
    char *encoded = clave__web_alloc(x, 3 * strlen(path) + 1);
    if (!encoded)
        return;
    clave__percent_encode(encoded, path);
    clave__web_set_header(x, "Location", "%s/v1/znodes%s", clave__web_prefix(x), encoded);
}
