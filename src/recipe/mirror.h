/* mirror.h - what a directory must contain so that it equals a tree of nodes: the plan, without the
 * disk. It follows the tree with a cache and says, for one file or directory after another, what it
 * has to be; the caller, who has the disk, makes it so. Used by `clave mirror` and the simulated
 * world, not part of the public interface.
 *
 * A node without children is a file with the node's data. A node with children is a directory; if
 * it has data of its own, these are in the file "%data" in it. The node at the mirror's own path is
 * always the directory itself. In names '%' is written "%25", so no node's name collides with
 * "%data", nor with what else begins with '%'; all other characters that a node's name can have are
 * those of file names, and "." and ".." are names of no nodes. A name that is then longer than 255
 * bytes, and a node that may not be read, are left out, with everything below them, and reported.
 *
 * What must stay true: whenever there are no steps left and the cache is current, taking all steps
 * so far in order has made the directory equal to the tree. */
#ifndef CLAVE_RECIPE_MIRROR_H
#define CLAVE_RECIPE_MIRROR_H

#include "clave/async/cache.h"

#define MIRROR_DATA "%data"

struct mirror;

enum mirror_kind { MIRROR_NOTHING, MIRROR_FILE, MIRROR_DIRECTORY };

/* What has to be at one place, whatever is there now. What it points to is valid until the next
 * call that may run callbacks. */
struct mirror_step {
    const char *path; /* of the node */
    const char *file; /* where, relative to the directory; "": the directory itself */
    enum mirror_kind kind;
    const void *data; /* of a file, or of "%data" in a directory */
    size_t len;
    bool has_data;     /* of a directory: there is to be such a file */
    const char *fault; /* why the node is left out, as text that follows the path; NULL: it is not
                          left out */
};

/* There may be steps; or the mirror is current now, or no longer. */
typedef void mirror_changed(void *arg);

/* `changed` runs inside the client's callbacks. EPATH, ENOMEM, ECLOSED. */
clave_err clave__mirror_new(struct mirror **out, clave_async_client *c, const char *path,
                            mirror_changed *changed, void *arg);
void clave__mirror_free(struct mirror *m); /* NULL is ignored */
/* CLAVE_OK, or why nothing is followed any more. */
clave_err clave__mirror_err(const struct mirror *m);
/* True if the steps contain everything that is in the tree now: the tree was loaded, and there is a
 * connection. */
bool clave__mirror_is_current(const struct mirror *m);

/* Returns the next step, which then counts as taken; parents come before their children. Returns
 * false if there is none now; if that is for want of memory, clave__mirror_err returns ENOMEM.
 * There are no steps before the whole tree has been loaded. */
bool clave__mirror_next(struct mirror *m, struct mirror_step *out);
/* A step could not be carried out: it will be returned again, after the step of its parent, which
 * may be the reason. */
void clave__mirror_again(struct mirror *m, const char *path);
const clave_async_cache *clave__mirror_cache(const struct mirror *m);

#endif
