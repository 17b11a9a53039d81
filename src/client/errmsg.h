/* errmsg.h - the latest fault of a client: the text of clave_async_client_errmsg, and the error it
 * explains. */
#ifndef CLAVE_CLIENT_ERRMSG_H
#define CLAVE_CLIENT_ERRMSG_H

#include "clave/async/client.h"

enum { CLIENT_FAULT_CAP = 512 };

struct client_fault {
    char text[CLIENT_FAULT_CAP];
    clave_err err; /* the error that it explains; CLAVE_OK: none, as for faults of the connection */
    size_t detail; /* offset of what the text says beyond clave_strerror(err); at the end of the
                      text if nothing */
};

/* Sets the client's fault, in place of any other. */
__attribute__((format(printf, 2, 3))) void clave__client_fault(clave_async_client *c,
                                                               const char *fmt, ...);
/* Sets the fault that explains `err`: the text `before`, followed by the formatted detail. */
__attribute__((format(printf, 4, 5))) void clave__client_fault_of(clave_async_client *c,
                                                                  clave_err err, const char *before,
                                                                  const char *fmt, ...);
const struct client_fault *clave__client_latest_fault(const clave_async_client *c);
/* What the fault says about this error; "" if nothing. */
const char *clave__client_fault_detail(const struct client_fault *f, clave_err err);

#endif
