/* kazoo.h - nodes with the default name of kazoo's locks. Such a lock counts only its own kind, so
 * it is granted while another client in the queue holds, unless it was told the others' names
 * (extra_lock_patterns), which its own name does not show. */
#ifndef CLAVE_RECIPE_QUEUE_KAZOO_H
#define CLAVE_RECIPE_QUEUE_KAZOO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log_line.h"

/* True for "<32 hexadecimal digits>__lock__<number>", and the same with __rlock__. */
bool clave__kazoo_is_default(const char *name);
/* True if the name is kazoo's, whatever it was told to call its nodes; Curator's begin with
 * "_c_". */
bool clave__kazoo_is_name(const char *name);
/* Logs a warning if there is such a node among these children of `path`. Returns true if it did. */
bool clave__kazoo_warn(const struct log *log, const char *path, const char *const *names, size_t n);

#endif
