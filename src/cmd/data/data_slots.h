/* data_slots.h - the slots in a tree: a restored backup has those that were owned when it was made,
 * whatever was given back or taken since. */
#ifndef CLAVE_CMD_DATA_DATA_SLOTS_H
#define CLAVE_CMD_DATA_DATA_SLOTS_H

#include "cmd/cli/json.h"
#include "server/server.h"

/* The slots that are owned, one a line after a heading; nothing if there is none. */
void data_slots_show(const struct server *s);
/* Likewise as an array of the object. */
void data_slots_json(struct json *j, const struct server *s);

#endif
