/* discovery.h - reading an instance that somebody is about to register, whose misspelt members are
 * to be told, while those in the tree may be of a later version (discovery.c). */
#ifndef CLAVE_RECIPE_DISCOVERY_H
#define CLAVE_RECIPE_DISCOVERY_H

#include "clave/async/instances.h"

/* As clave_instance_parse. *unknown is the first member that an instance does not have, NULL if
 * there is none; it is valid until the instance is freed. */
clave_err clave__instance_parse(clave_instance **out, const void *data, size_t len,
                                const clave_mem *mem, const char **fault, const char **unknown);

#endif
