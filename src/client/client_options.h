/* client_options.h - what the user of a client may choose. */
#ifndef CLAVE_CLIENT_CLIENT_OPTIONS_H
#define CLAVE_CLIENT_CLIENT_OPTIONS_H

#include "client/client_internal.h"

/* A server may send longer frames than it accepts: a listing has no limit of its own. */
enum { CLIENT_REPLY_FRAMES = 4 };

/* What is wrong with complete options; NULL: nothing. */
const char *clave__client_options_fault(const clave_client_options *o);
/* Of a new client: what is 0 has its default. The options are valid. */
void clave__client_options_apply(clave_async_client *c, const clave_client_options *o);

#endif
