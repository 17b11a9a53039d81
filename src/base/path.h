/* path.h - znode paths: the rules a ZooKeeper server applies to the path of a
 * write, and the parts of a path. */
#ifndef CLAVE_BASE_PATH_H
#define CLAVE_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>

struct clave_mem;

/* NULL when a node with this path of n bytes may be created on a server, else the
 * reason why not, as static text. The rules are those of ZooKeeper's PathUtils: the path
 * starts with '/', does not end with '/', has no empty, "." or ".." segment, and is
 * valid UTF-8 without U+0000-001F, U+007F-009F, U+D800-F8FF, U+FFF0-FFFF or anything
 * above the BMP. With `sequential`, digits will be appended, so a '/' at the end is legal. */
const char *clave__path_fault(const char *path, size_t n, bool sequential);

/* The length of the parent's path: 2 for "/a/b", 1 (the root) for "/a", 0 (none) for "/". */
size_t clave__path_parent_len(const char *path, size_t n);
/* The part after the last '/'. */
const char *clave__path_name(const char *path);

/* The path of a child: dir, '/' and name; under "/" just '/' and name. Writes it to out, which has
 * strlen(dir) + strlen(name) + 2 bytes, NUL-terminated; returns its length. */
size_t clave__path_put_child(char *out, const char *dir, const char *name);
/* The same, to be freed by the caller; NULL: out of memory. `mem` NULL: libc's. */
char *clave__path_child(const struct clave_mem *mem, const char *dir, const char *name);
bool clave__path_is_child(const char *path, const char *dir, const char *name);

#endif
