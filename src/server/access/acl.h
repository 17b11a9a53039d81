/* acl.h - access lists. Nodes with equal lists share one, under the key it has in the
 * snapshot's map. It lives as long as a node or a change refers to it. */
#ifndef CLAVE_SERVER_ACCESS_ACL_H
#define CLAVE_SERVER_ACCESS_ACL_H

#include "base/list.h"
#include "base/map.h"
#include "server/access/auth.h"
#include "wire/record.h"

/* The key of world:anyone:31 for nodes created without a list: the built-in ones.
 * It is never written to the map. */
enum { ACL_OPEN_KEY = -1, ACL_NEW_KEY = 0 };

/* The entries follow the struct, encoded as on the wire. */
struct acl {
    struct map_node in_cache;
    struct list in_all;
    int64_t key;
    uint32_t refs;
    int32_t everyone; /* permissions of world:anyone, which decide most checks */
    int32_t count;
    uint32_t len;
    bool saved; /* as of a node (tree/tree.h) */
};

struct snapshot_save;

struct acls {
    const struct clave_mem *mem;
    struct map lists;
    struct list all; /* of lists, but for those that a snapshot has still to write */
    int64_t next_key;
    struct acl *open; /* key ACL_OPEN_KEY */
    bool saved;
    /* Runs before a list that is not saved is freed; NULL: nobody has to know. */
    void (*before_free)(struct acls *a, const struct acl *list);
    struct snapshot_save *observer;
};

/* `seed` keys the hash of the lists, which clients choose. ENOMEM. */
clave_err clave__acls_init(struct acls *a, const struct clave_mem *mem, uint64_t seed);
void clave__acls_fini(struct acls *a); /* there are no references left */

/* A reference to the list with these entries. `key`: the key of a new list; ACL_NEW_KEY: the next
 * free one. NULL: no memory. */
struct acl *clave__acls_take(struct acls *a, struct jvec entries, int64_t key);
struct acl *clave__acl_ref(struct acl *list);
void clave__acls_drop(struct acls *a, struct acl *list); /* NULL is ignored */

struct jvec clave__acl_entries(const struct acl *list);
bool clave__acl_allows(const struct acl *list, const struct identities *who, int32_t perms);
/* The entries for a client without ADMIN on the node: secrets are masked. */
void clave__acl_put_masked(struct jwriter *w, const struct acl *list);

/* Resolves a request's list for this connection: "auth" is replaced, duplicates are
 * dropped. The result lies in `asked` or in `room`. EINVALIDACL, ENOMEM. */
clave_err clave__acl_fix_up(struct jvec asked, const struct identities *who, struct buf *room,
                            struct jvec *fixed);

#endif
