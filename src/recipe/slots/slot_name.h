/* slot_name.h - the names of slots: "<id>-<uuid>" with the id escaped, so that any id makes a valid
 * name, and a name says whose slot it is. */
#ifndef CLAVE_RECIPE_SLOTS_SLOT_NAME_H
#define CLAVE_RECIPE_SLOTS_SLOT_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rand.h"
#include "clave/async/slots.h"

enum { SLOT_NAME_CAP = 3 * CLAVE_SLOT_ID_MAX + 1 + CLAVE_UUID_TEXT + 1 };

/* 1 to 128 bytes of UTF-8 without control characters. */
bool clave__slot_id_is_valid(const char *id);
/* NULL, or a text that a slot may say: so much UTF-8 without control characters. */
bool clave__slot_text_is_valid(const char *text);

/* A valid id as it stands in names. */
void clave__slot_name_escape(char out[SLOT_NAME_CAP], const char *id);
/* The name of a slot of this valid id, with a UUID in canonical text. */
void clave__slot_name_format(char out[SLOT_NAME_CAP], const char *id, const char *uuid);
/* The id in a name; false: it is no slot's name. */
bool clave__slot_name_parse(const char *name, char id[CLAVE_SLOT_ID_MAX + 1]);

#endif
