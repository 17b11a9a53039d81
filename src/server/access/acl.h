/* acl.h - access lists. Nodes with equal lists share one, stored under its key in the snapshot's
 * map of lists. A list lives as long as a node or a change refers to it. */
#ifndef CLAVE_SERVER_ACCESS_ACL_H
#define CLAVE_SERVER_ACCESS_ACL_H

#include "base/list.h"
#include "base/map.h"
#include "server/access/auth.h"
#include "wire/record.h"

/* ACL_OPEN_KEY is the key of world:anyone:31, the list of nodes that were created without one (the
 * built-in ones); that list is never written to the map. ACL_NEW_KEY asks for the next free key. */
enum { ACL_OPEN_KEY = -1, ACL_NEW_KEY = 0 };

/* The encoded entries, as on the wire, follow the struct. */
struct acl {
    struct map_node in_cache;
    struct list in_all;
    int64_t key;
    uint32_t refs;
    int32_t everyone; /* what world:anyone may do, which decides most checks */
    int32_t count;
    uint32_t len;
    bool saved; /* as in struct node (tree/tree.h) */
};

struct snapshot_save;

struct acls {
    const struct clave_mem *mem;
    struct map lists;
    struct list all; /* all lists except those that the snapshot being written has yet to write */
    int64_t next_key;
    struct acl *open; /* the list with key ACL_OPEN_KEY */
    bool saved;
    /* Called before a list that is not in the snapshot yet is freed; may be NULL. */
    void (*before_free)(struct acls *a, const struct acl *list);
    struct snapshot_save *observer;
};

/* `seed` keys the hash of the lists, because clients choose them. ENOMEM. */
clave_err clave__acls_init(struct acls *a, const struct clave_mem *mem, uint64_t seed);
void clave__acls_fini(struct acls *a); /* all references must be gone */

/* Returns a reference to the list with these entries. If there is no such list yet, it is created
 * under `key`; ACL_NEW_KEY means the next free key. NULL: no memory. */
struct acl *clave__acls_take(struct acls *a, struct jvec entries, int64_t key);
struct acl *clave__acl_ref(struct acl *list);
void clave__acls_drop(struct acls *a, struct acl *list); /* NULL is allowed */

struct jvec clave__acl_entries(const struct acl *list);
bool clave__acl_allows(const struct acl *list, const struct identities *who, int32_t perms);
/* Writes the entries for a client without ADMIN permission on the node: secrets are masked. */
void clave__acl_put_masked(struct jwriter *w, const struct acl *list);

/* Resolves the list of a request for this connection: replaces "auth" and drops duplicates. *out
 * points into `asked` or `room`. EINVALIDACL, ENOMEM. */
clave_err clave__acl_fix_up(struct jvec asked, const struct identities *who, struct buf *room,
                            struct jvec *fixed);

#endif
