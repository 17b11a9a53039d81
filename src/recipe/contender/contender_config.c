/* contender_config.c - a recipe's own copies of its path, data, ACLs and names. Used by the _new
 * and _free of mutex, semaphore and latch. What must stay true: whatever `spec` points to belongs
 * to the config until _fini. */
#include "recipe/contender/contender_config.h"

#include <string.h>

#include "base/path.h"

char *clave__contender_config_stem(const struct contender_config *s, const char *tag)
{
    const char *base = s->spec.rule->base;
    char *stem = clave__mem_alloc(s->mem, strlen(s->path) + strlen(tag) + strlen(base) + 2);
    if (stem)
        memcpy(stem + clave__path_put_child(stem, s->path, tag), base, strlen(base) + 1);
    return stem;
}

/* Copies an unprotected rule, because that is made for one call and contains the caller's name. */
static clave_err contender_config_take_rule(struct contender_config *s,
                                            const struct queue_order_rule *rule)
{
    s->spec.rule = rule;
    if (!rule->unprotected)
        return CLAVE_OK;
    s->base = clave__mem_strdup(s->mem, rule->base);
    s->unprotected = *rule;
    s->unprotected.base = s->base;
    s->spec.rule = &s->unprotected;
    return s->base ? CLAVE_OK : CLAVE_ENOMEM;
}

clave_err clave__contender_config_init(struct contender_config *s, clave_async_client *c,
                                       const char *path, const struct queue_order_rule *rule,
                                       const char *what)
{
    *s = (struct contender_config){.mem = clave__client_mem(c)};
    const char *fault = clave__path_fault(path, strlen(path), false);
    if (fault) {
        clave__client_fault(c, "%s \"%s\" %s", what, path, fault);
        return CLAVE_EPATH;
    }
    bool taken = contender_config_take_rule(s, rule) == CLAVE_OK;
    s->path = taken ? clave__mem_strdup(s->mem, path) : NULL;
    s->stem = s->path ? clave__contender_config_stem(s, "") : NULL;
    s->spec.path = s->path;
    s->spec.stem = s->stem;
    s->spec.warned_of_kazoo = &s->warned_of_kazoo;
    if (s->stem)
        return CLAVE_OK;
    clave__contender_config_fini(s);
    return CLAVE_ENOMEM;
}

clave_err clave__contender_config_set_data(struct contender_config *s, const void *data, size_t len)
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

/* The list and all its texts are one block. */
clave_err clave__contender_config_set_acls(struct contender_config *s, const clave_acl *acls,
                                           size_t nacls)
{
    clave_acl *copy = NULL;
    if (acls) {
        copy = clave__mem_alloc(s->mem, clave__acls_size(acls, nacls));
        if (!copy)
            return CLAVE_ENOMEM;
        clave__acls_copy(copy, acls, nacls);
    }
    clave__mem_free(s->mem, s->acls);
    s->acls = copy;
    s->spec.acls = copy;
    s->spec.nacls = copy ? nacls : 0;
    return CLAVE_OK;
}

void clave__contender_config_fini(struct contender_config *s)
{
    clave__mem_free(s->mem, s->path);
    clave__mem_free(s->mem, s->stem);
    clave__mem_free(s->mem, s->base);
    clave__mem_free(s->mem, s->data);
    clave__mem_free(s->mem, s->acls);
    s->path = s->stem = s->base = NULL;
    s->data = NULL;
    s->acls = NULL;
    s->spec = (struct contender_spec){0};
}
