/* slot_json.h - what is said of a slot, in all answers alike. */
#ifndef CLAVE_WEB_API_SLOTS_SLOT_JSON_H
#define CLAVE_WEB_API_SLOTS_SLOT_JSON_H

#include "base/json_writer.h"
#include "clave/async/slots.h"

/* The members token, since, host, by, reason and node of an open object. */
void clave__slot_put(struct json *j, const clave_slot *slot);
/* "since": a moment in ms since 1970. */
void clave__slot_put_time(struct json *j, const char *key, int64_t ms);

#endif
