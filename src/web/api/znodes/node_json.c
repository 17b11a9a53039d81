/* node_json.c - see node_json.h. Called by the endpoints of nodes. */
#include "web/api/znodes/node_json.h"

#include <string.h>

#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/problem.h"

/* ---- stat ----------------------------------------------------------------------------------- */

void clave__web_json_stat(struct json *j, const char *key, const clave_stat *st)
{
    if (!st) {
        clave__json_string(j, key, NULL);
        return;
    }
    clave__json_open(j, key, '{');
    clave__json_int64(j, "czxid", st->czxid);
    clave__json_int64(j, "mzxid", st->mzxid);
    clave__json_int64(j, "pzxid", st->pzxid);
    clave__json_int(j, "ctime", st->ctime);
    clave__json_int(j, "mtime", st->mtime);
    clave__json_int(j, "version", st->version);
    clave__json_int(j, "cversion", st->cversion);
    clave__json_int(j, "aversion", st->aversion);
    clave__json_int64(j, "ephemeral_owner", st->ephemeral_owner);
    clave__json_int(j, "data_length", st->data_length);
    clave__json_int(j, "num_children", st->num_children);
    clave__json_close(j, '}');
}

/* ---- access lists --------------------------------------------------------------------------- */

static const char perm_letters[] = "rwcda"; /* by bit */

void clave__web_json_acls(struct json *j, const char *key, const clave_acl *acls, size_t n)
{
    clave__json_open(j, key, '[');
    for (size_t i = 0; i < n; i++) {
        char perms[sizeof perm_letters];
        size_t len = 0;
        for (size_t bit = 0; bit < sizeof perm_letters - 1; bit++)
            if (acls[i].perms & 1 << bit)
                perms[len++] = perm_letters[bit];
        clave__json_open(j, NULL, '{');
        clave__json_bytes(j, "perms", perms, len);
        clave__json_string(j, "scheme", acls[i].scheme);
        clave__json_string(j, "id", acls[i].id);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
}

static bool node_json_acl_read(struct web_exchange *x, json_t *o, clave_acl *out)
{
    static const struct problem bad = {.status = 400, .err = CLAVE_EINVALIDACL};
    static const char *const keys[] = {"perms", "scheme", "id", NULL};
    const char *perms = NULL;
    *out = (clave_acl){0};
    if (!json_is_object(o)) {
        clave__web_problem(x, &bad, "an access entry is an object of perms, scheme and id");
        return false;
    }
    if (!clave__body_only(x, o, keys) || !clave__body_text(x, o, "perms", &perms) ||
        !clave__body_text(x, o, "scheme", &out->scheme) || !clave__body_text(x, o, "id", &out->id))
        return false;
    for (const char *c = perms; c && *c; c++) {
        const char *at = strchr(perm_letters, *c);
        if (at)
            out->perms |= 1 << (at - perm_letters);
        else
            perms = NULL;
    }
    if (!perms || !out->scheme || !out->id) {
        clave__web_problem(x, &bad,
                           "an access entry needs perms of the letters cdrwa, scheme "
                           "and id");
        return false;
    }
    return true;
}

bool clave__web_read_acls(struct web_exchange *x, const json_t *list, const clave_acl **acls,
                          size_t *n)
{
    const struct jansson *json = x->web->o.jansson;
    *acls = NULL;
    *n = list ? json->json_array_size(list) : 0;
    if (*n == 0)
        return true;
    clave_acl *all = clave__web_alloc(x, *n * sizeof *all);
    if (!all) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "read the access list", NULL);
        return false;
    }
    for (size_t i = 0; i < *n; i++)
        if (!node_json_acl_read(x, json->json_array_get(list, i), &all[i]))
            return false;
    *acls = all;
    return true;
}
