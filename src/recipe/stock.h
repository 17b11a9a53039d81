/* stock.h - a contender_spec and its own copies of all it points to: what every recipe that
 * queues keeps for as long as it has contenders. */
#ifndef CLAVE_RECIPE_STOCK_H
#define CLAVE_RECIPE_STOCK_H

#include "base/mem.h"
#include "recipe/contender.h"

struct stock {
    const struct clave_mem *mem;
    struct contender_spec spec;
    struct queue_rule bare; /* with its base name behind it, when the names are the caller's */
    char *base;
    char *path;
    char *stem;
    void *data;
    clave_acl *acls; /* and their texts behind them */
    bool warned_of_kazoo;
};

/* Path and rule (copied when it is a bare one); `what` is the recipe's word for the path in the
 * client's fault ("the lock's path"). EPATH, ENOMEM: then nothing is taken. */
clave_err clave__stock_init(struct stock *s, clave_client *c, const char *path,
                            const struct queue_rule *rule, const char *what);
/* Another stem, with `tag` before the rule's base name; to be freed. NULL: no memory. */
char *clave__stock_stem(const struct stock *s, const char *tag);
/* Of the nodes to come. ENOMEM: nothing has changed. */
clave_err clave__stock_set_data(struct stock *s, const void *data, size_t len);
/* `acls` NULL: open. ENOMEM: nothing has changed. */
clave_err clave__stock_set_acls(struct stock *s, const clave_acl *acls, size_t nacls);
void clave__stock_fini(struct stock *s);

#endif
