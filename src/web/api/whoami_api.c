/* whoami_api.c - see whoami_api.h. */
#include "web/api/whoami_api.h"

#include "web/http/answer.h"
#include "web/http/problem.h"

void clave__web_get_whoami(struct web_exchange *x)
{
    struct json *j = &x->json;
    if (x->who.found != ACCESS_KNOWN && !clave__web_must(x, WEB_READ, NULL))
        return;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "name", x->who.name);
    clave__json_open(j, "grants", '[');
    for (size_t i = 0; i < x->who.ngrants; i++) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "role", clave__web_role_name(x->who.grants[i].role));
        clave__json_string(j, "prefix", x->who.grants[i].prefix);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
    clave__json_close(j, '}');
    clave__web_answer_json(x, 200);
}
