/* acl.h - access control lists as text. */
#ifndef CLAVE_CMD_CLI_ACL_H
#define CLAVE_CMD_CLI_ACL_H

#include <stdbool.h>
#include <stddef.h>

#include "clave/async/client.h"
#include "cmd/cli/options.h"

enum { ACL_MAX = 16 };

struct acl_list {
    clave_acl list[ACL_MAX];
    size_t n;
    char *text; /* what the entries point into */
};

/* "open", "read", "creator", or "world:anyone:r,digest:joe:<hash>:cdrwa". false: *fault says
 * why. Once for a list. */
bool acl_parse(const char *text, struct acl_list *out, const char **fault);
/* false, told: an entry stands for whoever creates the node, and that is nobody. */
bool acl_has_identity(const struct options *o, const struct acl_list *a);
/* Everybody may read the node, whoever he is. */
bool acl_lets_all_read(const struct acl_list *a);
/* Whoever creates the node may write to it, as far as that can be told. */
bool acl_lets_owner_write(const struct acl_list *a);
void acl_fini(struct acl_list *a);

#endif
