/* lock_path.h - where a node belongs, by its path: its kind, and its queue; and where the nodes of
 * a lock are. */
#ifndef CLAVE_OBSERVE_LOCK_PATH_H
#define CLAVE_OBSERVE_LOCK_PATH_H

#include "observe/lock_model.h"

struct lock_path {
    enum queue_kind kind;
    struct lock_queue_key key;
    const char *name;
    bool bare; /* a UUID right below the path: a lease, if it is a semaphore's at all */
    bool kept; /* a slot */
};

/* The model may be NULL: no places of programs written by hand. */
struct lock_path clave__lock_path_of(const struct lock_model *m, const char *path);
/* It belongs to the leases of the path without a folder of n characters at its end. */
void clave__lock_path_go_up(struct lock_path *s, size_t n);
bool clave__lock_path_ends(const char *path, size_t len, const char *end, size_t n);

/* Where the nodes of one lock can be. */
enum lock_side {
    LOCK_SIDE_PATH,
    LOCK_SIDE_LEASES,
    LOCK_SIDE_LOCKS,
    LOCK_SIDE_KAZOO, /* its semaphores queue beside the path */
    LOCK_SIDES
};
/* The path whose children they are, to be freed. NULL: no memory. */
char *clave__lock_side_path(const struct clave_mem *mem, const char *path, enum lock_side side);
/* The path of the mark of a lock delay, likewise. */
char *clave__lock_mark_path(const struct clave_mem *mem, const char *path);

#endif
