/* fleetlock_api.h - FleetLock, by which machines of a fleet reboot in turns: POST /v1/pre-reboot
 * takes a slot for a machine, POST /v1/steady-state gives it back. Each group has its slots below
 * the path of --fleetlock, which switches these endpoints on; a group without a limit has one of
 * 1. */
#ifndef CLAVE_WEB_API_FLEETLOCK_FLEETLOCK_API_H
#define CLAVE_WEB_API_FLEETLOCK_FLEETLOCK_API_H

#include "web/http/exchange.h"

web_handler clave__web_fleetlock_take;
web_handler clave__web_fleetlock_give;

#endif
