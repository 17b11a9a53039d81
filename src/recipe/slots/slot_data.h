/* slot_data.h - what the node of a slot says, in the form of lock nodes (recipe/queue/identity.h)
 * with two fields more. The record of a broken slot has the same form. */
#ifndef CLAVE_RECIPE_SLOTS_SLOT_DATA_H
#define CLAVE_RECIPE_SLOTS_SLOT_DATA_H

#include "base/memory.h"
#include "clave/async/slots.h"

/* id, host, by and reason, for the caller to free; of a record, also the token of the broken slot.
 * NULL: no memory. */
char *clave__slot_data_format(const struct clave_mem *mem, const clave_slot *slot, size_t *n);

/* A copy of a slot in one block. */
struct slot_copy {
    clave_slot slot;
    char texts[];
};
/* The slot of the answer to a getData of its node; `is_record`: that of a broken one, whose token
 * is in the data. The id is that in the node's name, if the name is a slot's. For the caller to
 * free. NULL: no memory. */
struct slot_copy *clave__slot_data_parse(const struct clave_mem *mem, const clave_result *res,
                                         bool is_record);

#endif
