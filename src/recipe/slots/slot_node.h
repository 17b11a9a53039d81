/* slot_node.h - the nodes of slots: "slot-<id>" with the id escaped, so that any id makes a valid
 * name, and a name says whose slot it is. What such a node says has the form of lock nodes
 * (recipe/queue/identity.h), with two fields more; so has the record of a broken slot. */
#ifndef CLAVE_RECIPE_SLOTS_SLOT_NODE_H
#define CLAVE_RECIPE_SLOTS_SLOT_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"
#include "base/rand.h"
#include "clave/async/slots.h"

enum { SLOT_NAME_CAP = 5 + 3 * CLAVE_SLOT_ID_MAX + 1 };
/* The name below it, "take-<uuid>". */
enum { SLOT_BELOW_CAP = 5 + CLAVE_UUID_TEXT + 1 };

/* 1 to 128 bytes of UTF-8 without control characters. */
bool clave__slot_id_is_valid(const char *id);
/* NULL, or a text that a slot may say: at most 1024 bytes of the same. */
bool clave__slot_text_is_valid(const char *text);

/* A valid id as it stands in names. */
void clave__slot_name_escape(char *out, const char *id);
/* The name of the slot of a valid id. */
void clave__slot_name_format(char out[SLOT_NAME_CAP], const char *id);
/* The id in a name; false: it is no slot's name. */
bool clave__slot_name_parse(const char *name, char id[CLAVE_SLOT_ID_MAX + 1]);

/* What a slot says: id, host, by and reason, for the caller to free; of a record, also the token of
 * the broken slot. NULL: no memory. */
char *clave__slot_data_format(const struct clave_mem *mem, const clave_slot *slot, size_t *n);

/* A copy of a slot in one block. */
struct slot_copy {
    clave_slot slot;
    char texts[];
};
/* The slot of the answer to a getData of its node, for the caller to free. Its id is that in the
 * name, and NULL when that is no slot's. `below`: the name of its child, NULL: it has none.
 * NULL: no memory. */
struct slot_copy *clave__slot_data_parse(const struct clave_mem *mem, const clave_result *res,
                                         const char *below);
/* Likewise, of the node of a record. */
struct slot_copy *clave__slot_data_parse_record(const struct clave_mem *mem,
                                                const clave_result *res);

#endif
