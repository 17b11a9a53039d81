/* acl_text.h - access control lists as text: parsed as flags and arguments give them, and written
 * so. */
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
    char *text;     /* the text that the entries point into */
    bool of_parent; /* to be copied from the parent, acl_copy; empty until then */
};

/* Parses "open", "read", "creator", "parent", or "world:anyone:r,digest:joe:<hash>:cdrwa". false:
 * *fault says why. Call it once per list. */
bool acl_parse(const char *text, struct acl_list *out, const char **fault);
/* Fills in a list with entries that a server has. false: *fault says why they cannot be those of
 * another node. */
bool acl_copy(struct acl_list *out, const clave_acl *acls, size_t n, const char **fault);
/* false after a message: an entry stands for the creator of the node, and no identity was given. */
bool acl_has_identity(const struct options *o, const struct acl_list *a);
/* May every client read the node? */
bool acl_lets_all_read(const struct acl_list *a);
/* May the creator of the node write to it, as far as the list tells? */
bool acl_lets_owner_write(const struct acl_list *a);
void acl_fini(struct acl_list *a);
/* Permissions as they are parsed: "cdrwa". */
enum { ACL_PERMS_CAP = 6 };
const char *acl_perms(int32_t perms, char out[ACL_PERMS_CAP]);

#endif
