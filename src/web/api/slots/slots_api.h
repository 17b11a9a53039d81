/* slots_api.h - /v1/slots/{path}: who owns the slots of a path and who waits, their limit, and a
 * slot that an operator breaks. */
#ifndef CLAVE_WEB_API_SLOTS_SLOTS_API_H
#define CLAVE_WEB_API_SLOTS_SLOTS_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_slots;
web_handler clave__web_put_slots_limit;
web_handler clave__web_break_slot;

#endif
