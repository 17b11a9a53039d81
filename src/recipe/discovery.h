/* discovery.h - parses an instance that somebody is about to register. There a member that
 * instances do not have is probably misspelt, and is reported; in the tree it may come from a later
 * version, and is ignored (discovery.c). */
#ifndef CLAVE_RECIPE_DISCOVERY_H
#define CLAVE_RECIPE_DISCOVERY_H

#include "clave/async/instances.h"

/* As clave_instance_parse. *unknown is the first member that an instance does not have, NULL if
 * there is none; it is valid until the instance is freed. */
clave_err clave__instance_parse(clave_instance **out, const void *data, size_t len,
                                const clave_mem *mem, const char **fault, const char **unknown);

#endif
