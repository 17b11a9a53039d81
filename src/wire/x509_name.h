/* x509_name.h - distinguished names: the ids of the x509 scheme. An id is the subject of a client's
 * certificate as Java writes it (X500Principal.getName(), RFC 2253), because Apache's servers
 * compare ids as text. */
#ifndef CLAVE_WIRE_X509_NAME_H
#define CLAVE_WIRE_X509_NAME_H

#include "base/buf.h"
#include "wire/jute.h"

/* Appends the text of a Name in DER. EINVAL: it is not a Name; ETOOBIG, ENOMEM. */
clave_err clave__x509_name_put(struct buf *out, const void *der, size_t n);
/* True if an access list may contain this id, which is so if new X500Principal(id) accepts it. */
bool clave__x509_name_valid(struct jbytes id);

#endif
