/* contender_config.h - a contender_spec together with its own copies of all that it points to.
 * Every recipe that queues keeps one for as long as it has contenders. */
#ifndef CLAVE_RECIPE_CONTENDER_CONTENDER_CONFIG_H
#define CLAVE_RECIPE_CONTENDER_CONTENDER_CONFIG_H

#include "base/memory.h"
#include "recipe/contender/contender.h"

struct contender_config {
    const struct clave_mem *mem;
    struct contender_spec spec;
    /* A copy of the rule if the names are the caller's; its `base` is that name. */
    struct queue_order_rule unprotected;
    char *base;
    char *path;
    char *stem;
    void *data;
    clave_acl *acls; /* their texts follow in the same block */
    bool warned_of_kazoo;
};

/* Takes path and rule (a copy, if it is an unprotected one). `what` is what error messages call the
 * path ("the lock's path"). EPATH, ENOMEM: nothing was taken. */
clave_err clave__contender_config_init(struct contender_config *s, clave_async_client *c,
                                       const char *path, const struct queue_order_rule *rule,
                                       const char *what);
/* Another stem, with `tag` before the rule's base name; to be freed by the caller. NULL: no
 * memory. */
char *clave__contender_config_stem(const struct contender_config *s, const char *tag);
/* Sets the data of nodes still to be created. ENOMEM: nothing has changed. */
clave_err clave__contender_config_set_data(struct contender_config *s, const void *data,
                                           size_t len);
/* If `acls` is NULL, the nodes are open to everybody. ENOMEM: nothing has changed. */
clave_err clave__contender_config_set_acls(struct contender_config *s, const clave_acl *acls,
                                           size_t nacls);
void clave__contender_config_fini(struct contender_config *s);

#endif
