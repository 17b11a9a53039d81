/* path.h - znode paths: the rules of a ZooKeeper server for paths that are
 * written to, the parts of a path, and the chroot. */
#ifndef CLAVE_BASE_PATH_H
#define CLAVE_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "clave/err.h"

/* NULL when the path of n bytes may be created on a server, else why not, as a
 * static text. The rules are those of ZooKeeper's PathUtils: starts with '/', no
 * '/' at the end, no empty, "." or ".." segment, valid UTF-8 without U+0000-001F,
 * U+007F-009F, U+D800-F8FF, U+FFF0-FFFF and nothing above the BMP. With
 * `sequential`, digits will be appended, so a '/' at the end is legal. */
const char *clave__path_fault(const char *path, size_t n, bool sequential);

/* Length of the parent's path: "/a/b" 2, "/a" 1 (the root), "/" 0 (none). */
size_t clave__path_parent_len(const char *path, size_t n);
/* The part behind the last '/'. */
const char *clave__path_name(const char *path);

/* chroot + path into out (NUL-terminated); chroot "" or "/" is none; path "/"
 * under a chroot is the chroot itself. ETOOBIG when cap is too small. */
clave_err clave__path_join(char *out, size_t cap, const char *chroot, const char *path);
/* The part of `full` below chroot ("/" for the chroot itself); NULL when outside. */
const char *clave__path_strip(const char *full, const char *chroot);

#endif
