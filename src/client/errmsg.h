/* errmsg.h - the latest fault of a client: the text of clave_async_client_errmsg, and what it is
 * about. */
#ifndef CLAVE_CLIENT_ERRMSG_H
#define CLAVE_CLIENT_ERRMSG_H

#include "clave/async/client.h"

enum { CLIENT_FAULT_CAP = 512 };

struct client_fault {
    char text[CLIENT_FAULT_CAP];
    clave_err err; /* the error that it explains; CLAVE_OK: none, as those of the connection */
    size_t detail; /* where the text says more than clave_strerror(err); its end: nowhere */
};

/* The client has no other fault than this one now. */
__attribute__((format(printf, 2, 3))) void clave__client_fault(clave_async_client *c,
                                                               const char *fmt, ...);
/* The fault that explains an error: `before`, and then the detail as formatted. */
__attribute__((format(printf, 4, 5))) void clave__client_fault_of(clave_async_client *c,
                                                                  clave_err err, const char *before,
                                                                  const char *fmt, ...);
const struct client_fault *clave__client_latest_fault(const clave_async_client *c);
/* What it says about this error; "": nothing. */
const char *clave__client_fault_detail(const struct client_fault *f, clave_err err);

#endif
