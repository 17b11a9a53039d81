/* kazoo.h - nodes with the default name of kazoo's locks. They count their own kind only, so they
 * are granted while another of the queue holds, unless they were told of the others' names
 * (extra_lock_patterns), which the name does not show. */
#ifndef CLAVE_RECIPE_QUEUE_KAZOO_H
#define CLAVE_RECIPE_QUEUE_KAZOO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log_line.h"

/* "<32 hexadecimal digits>__lock__<number>", or __rlock__. */
bool clave__kazoo_is_default(const char *name);
/* The name is kazoo's, whatever it was told to call its nodes: Curator's begin with "_c_". */
bool clave__kazoo_is_name(const char *name);
/* If there is such a node among these, the children of `path`, the log says so. */
bool clave__kazoo_warn(const struct log *log, const char *path, const char *const *names, size_t n);

#endif
