#include "recipe/stock.h"

#include <string.h>

#include "base/path.h"

static clave_err copy_path(struct stock *s, const char *path, const char *base)
{
    size_t npath = strlen(path);
    size_t nbase = strlen(base);
    size_t ndir = npath == 1 ? 0 : npath; /* under the root, "/" is its own separator */
    s->path = clave__mem_strndup(s->mem, path, npath);
    s->stem = clave__mem_alloc(s->mem, ndir + nbase + 2);
    if (!s->path || !s->stem)
        return CLAVE_ENOMEM;
    memcpy(s->stem, path, ndir);
    s->stem[ndir] = '/';
    memcpy(s->stem + ndir + 1, base, nbase + 1);
    return CLAVE_OK;
}

clave_err clave__stock_init(struct stock *s, clave_client *c, const char *path,
                            const struct queue_rule *rule, const char *what)
{
    *s = (struct stock){.mem = clave__client_mem(c)};
    const char *fault = clave__path_fault(path, strlen(path), false);
    if (fault) {
        clave__client_fault(c, "%s \"%s\" %s", what, path, fault);
        return CLAVE_EPATH;
    }
    clave_err err = copy_path(s, path, rule->base);
    if (err != CLAVE_OK) {
        clave__stock_fini(s);
        return err;
    }
    s->spec.rule = rule;
    s->spec.path = s->path;
    s->spec.stem = s->stem;
    return CLAVE_OK;
}

clave_err clave__stock_set_data(struct stock *s, const void *data, size_t len)
{
    void *copy = NULL;
    if (len) {
        copy = clave__mem_alloc(s->mem, len);
        if (!copy)
            return CLAVE_ENOMEM;
        memcpy(copy, data, len);
    }
    clave__mem_free(s->mem, s->data);
    s->data = copy;
    s->spec.data = copy;
    s->spec.len = len;
    return CLAVE_OK;
}

/* The list and all its texts in one piece. */
clave_err clave__stock_set_acls(struct stock *s, const clave_acl *acls, size_t nacls)
{
    clave_acl *copy = NULL;
    size_t size = nacls * sizeof *acls;
    for (size_t i = 0; acls && i < nacls; i++)
        size += strlen(acls[i].scheme) + strlen(acls[i].id) + 2;
    if (acls) {
        copy = clave__mem_alloc(s->mem, size);
        if (!copy)
            return CLAVE_ENOMEM;
    }
    char *text = (char *)(copy + nacls);
    for (size_t i = 0; copy && i < nacls; i++) {
        size_t nscheme = strlen(acls[i].scheme) + 1;
        size_t nid = strlen(acls[i].id) + 1;
        memcpy(text, acls[i].scheme, nscheme);
        memcpy(text + nscheme, acls[i].id, nid);
        copy[i] = (clave_acl){acls[i].perms, text, text + nscheme};
        text += nscheme + nid;
    }
    clave__mem_free(s->mem, s->acls);
    s->acls = copy;
    s->spec.acls = copy;
    s->spec.nacls = copy ? nacls : 0;
    return CLAVE_OK;
}

void clave__stock_fini(struct stock *s)
{
    clave__mem_free(s->mem, s->path);
    clave__mem_free(s->mem, s->stem);
    clave__mem_free(s->mem, s->data);
    clave__mem_free(s->mem, s->acls);
    s->path = s->stem = NULL;
    s->data = NULL;
    s->acls = NULL;
    s->spec = (struct contender_spec){0};
}
