/* mirror_disk.h - a directory in memory, made by the steps of a mirror (recipe/mirror.h), and
 * compared with the tree that it is to equal. */
#ifndef CLAVE_TEST_MIRROR_DISK_H
#define CLAVE_TEST_MIRROR_DISK_H

#include "recipe/mirror.h"

struct mirror_disk;

/* Never NULL. */
struct mirror_disk *mirror_disk_new(void);
void mirror_disk_free(struct mirror_disk *d); /* NULL is ignored */
/* false: as on a disk, it cannot be done, because the directory that it is in is not there. */
bool mirror_disk_do(struct mirror_disk *d, const struct mirror_step *s);
/* Compares it with what the cache has of the tree at `top`. "" or what differs. */
void mirror_disk_compare(const struct mirror_disk *d, const clave_async_cache *cache,
                         const char *top, char *out, size_t cap);

#endif
