/* slot_json.c - see slot_json.h. Called by the endpoints of slots. */
#include "web/api/slots/slot_json.h"

#include "base/time_format.h"

void clave__slot_put_time(struct json *j, const char *key, int64_t ms)
{
    char text[RFC3339_CAP];
    clave__json_string(j, key, clave__rfc3339_format(ms, text));
}

void clave__slot_put(struct json *j, const clave_slot *slot)
{
    clave__json_int64(j, "token", slot->token);
    clave__slot_put_time(j, "since", slot->since);
    clave__json_string(j, "host", slot->host);
    clave__json_string(j, "by", slot->by);
    clave__json_string(j, "reason", slot->reason);
    clave__json_string(j, "node", slot->node);
}
