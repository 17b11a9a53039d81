/* gate_jansson.h - jansson, which parses bodies. It is loaded when HTTP is served: processes that
 * do not serve HTTP need neither the library nor its memory. */
#ifndef CLAVE_RUNTIME_GATE_GATE_JANSSON_H
#define CLAVE_RUNTIME_GATE_GATE_JANSSON_H

#include "web/http/jansson.h"

/* Any thread. NULL: it is not installed; *why says what is missing. */
const struct jansson *gate_jansson(const char **why);

#endif
