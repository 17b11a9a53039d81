/* acl_text.h - access control lists as text: parsed from flags and arguments, and formatted in the
 * same notation. */
#ifndef CLAVE_CMD_CLI_ACL_TEXT_H
#define CLAVE_CMD_CLI_ACL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "clave/async/client.h"
#include "cmd/cli/cmd_options.h"

enum { ACL_MAX = 16 };

struct acl_list {
    clave_acl list[ACL_MAX];
    size_t n;
    char *text; /* memory that the entries point into */
    /* acl_copy is to fill the list in from the parent node; until then it is empty */
    bool of_parent;
};

/* Parses "open", "read", "creator", "parent", or a list such as
 * "world:anyone:r,digest:joe:<hash>:cdrwa". false: *fault says why. `out` must have
 * been initialised with zeros; call acl_fini in either case. */
bool acl_parse(const char *text, struct acl_list *out, const char **fault);
/* Fills in the list with the entries of a node that were read from a server. false: *fault says why
 * another node cannot get the same list. */
bool acl_copy(struct acl_list *out, const clave_acl *acls, size_t n, const char **fault);
/* false, after a message: an entry stands for the creator of the node, and no identity was
 * given. */
bool acl_has_identity(const struct options *o, const struct acl_list *a);
/* Whether every client may read the node. */
bool acl_lets_all_read(const struct acl_list *a);
/* Whether the creator of the node may write to it, as far as the list tells. */
bool acl_lets_owner_write(const struct acl_list *a);
void acl_fini(struct acl_list *a);
/* Formats permissions the way they are parsed: "cdrwa". Returns out. */
enum { ACL_PERMS_CAP = 6 };
const char *acl_perms(int32_t perms, char out[ACL_PERMS_CAP]);

#endif
