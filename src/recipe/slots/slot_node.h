/* slot_node.h - the nodes of slots. They are named "slot-<id>", with the id escaped so that any id
 * gives a valid name and the name tells whose slot it is. Their data has the form of lock nodes
 * (recipe/queue/identity.h) with two more fields, as has the record of a broken slot. */
#ifndef CLAVE_RECIPE_SLOTS_SLOT_NODE_H
#define CLAVE_RECIPE_SLOTS_SLOT_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"
#include "base/rand.h"
#include "clave/async/slots.h"

enum { SLOT_NAME_CAP = 5 + 3 * CLAVE_SLOT_ID_MAX + 1 };
/* Room for the name of the node below it, "take-<uuid>". */
enum { SLOT_BELOW_CAP = 5 + CLAVE_UUID_TEXT + 1 };

/* True for 1 to 128 bytes of UTF-8 without control characters. */
bool clave__slot_id_is_valid(const char *id);
/* True for NULL, and for at most 1024 bytes of the same kind. */
bool clave__slot_text_is_valid(const char *text);

/* Writes a valid id in the form that it has in names. */
void clave__slot_name_escape(char *out, const char *id);
/* Writes the name of the slot of a valid id. */
void clave__slot_name_format(char out[SLOT_NAME_CAP], const char *id);
/* Extracts the id from a name. Returns false if this is not a slot's name. */
bool clave__slot_name_parse(const char *name, char id[CLAVE_SLOT_ID_MAX + 1]);

/* The number that the node of a limit has; CLAVE_SLOTS_LIMIT_BAD: it is not a number of slots. */
int64_t clave__slot_limit_parse(const void *data, size_t n);

/* The data of a slot: id, host, by and reason; for a record, also the token of the broken slot. To
 * be freed by the caller. NULL: no memory. */
char *clave__slot_data_format(const struct clave_mem *mem, const clave_slot *slot, size_t *n);

/* A copy of a slot in a single block. */
struct slot_copy {
    clave_slot slot;
    char texts[];
};
/* The slot described by the answer to a getData of its node, to be freed by the caller. Its id is
 * that in the name, or NULL if that is not a slot's name. `below` is the name of its child; NULL:
 * it has none. NULL: no memory. */
struct slot_copy *clave__slot_data_parse(const struct clave_mem *mem, const clave_result *res,
                                         const char *below);
/* The same for the node of a record. */
struct slot_copy *clave__slot_data_parse_record(const struct clave_mem *mem,
                                                const clave_result *res);

#endif
