/* openapi_and_page_api.c - see openapi_and_page_api.h. */
#include "web/api/openapi_and_page_api.h"

#include <assert.h>
#include <string.h>

#include "web/http/answer.h"
#include "web/http/problem.h"

/* Made of openapi.json by cmake/embed.cmake. */
extern const unsigned char clave__openapi_json[];
extern const size_t clave__openapi_json_len;

void clave__web_get_openapi(struct web_exchange *x)
{
    clave__web_answer_bytes(x, 200, "application/json", clave__openapi_json,
                            clave__openapi_json_len);
}

/* Of "/" and of "/ui": relative, so that it is right behind a proxy that serves the gate below a
 * path of its own. */
void clave__web_get_to_page(struct web_exchange *x)
{
    clave__web_set_header(x, "Location", "ui/");
    clave__web_answer_empty(x, 308);
}

static const struct web_asset *page_asset_find(const struct web *w, const char *path)
{
    for (size_t i = 0; i < w->o.nassets; i++)
        if (strcmp(w->o.assets[i].path, path) == 0)
            return &w->o.assets[i];
    return NULL;
}

/* A browser may keep them, and asks each time whether they are still the same. */
void clave__web_get_page(struct web_exchange *x)
{
    assert(x->params[0][0] == '/'); /* as every {path} */
    const char *path = x->params[0] + 1;
    const struct web_asset *a = page_asset_find(x->web, path[0] ? path : "index.html");
    if (!a) {
        clave__web_problem(x, &(struct problem){.status = 404, .err = CLAVE_EINVAL},
                           "the page has no such file");
        return;
    }
    const char *known = clave__web_header(x, "If-None-Match");
    clave__web_set_header(x, "ETag", "%s", a->etag);
    clave__web_set_header(x, "Cache-Control", "no-cache");
    clave__web_set_header(x, "Content-Security-Policy",
                          "default-src 'self'; base-uri 'none'; form-action 'none'; "
                          "frame-ancestors 'none'");
    if (known && strstr(known, a->etag)) {
        clave__web_answer_empty(x, 304);
        return;
    }
    clave__web_set_header(x, "Content-Encoding", "gzip");
    clave__web_answer_bytes(x, 200, a->type, a->gzip, a->len);
}
