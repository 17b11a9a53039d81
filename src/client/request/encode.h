/* encode.h - what requests are made of: paths under the chroot, data, ACLs, the operations of a
 * multi. On an error each sets clave_async_client_errmsg. */
#ifndef CLAVE_CLIENT_ENCODE_H
#define CLAVE_CLIENT_ENCODE_H

#include "client/request/request.h"

/* The path as the server knows it, with the chroot. The slice is valid until the next call. */
clave_err clave__full_path(clave_async_client *c, const char *path, struct jbytes *out);
/* The path below the chroot; the chroot itself and an empty path give "/". n = -1: outside. */
struct jbytes clave__strip_chroot(const clave_async_client *c, struct jbytes full);

/* The path of a create as the server knows it. The number appended to "/" becomes a name below the
 * chroot, not part of the chroot's own name. The slice is valid until the next call. */
clave_err clave__path_to_create(clave_async_client *c, const char *path, clave_create_mode mode,
                                struct jbytes *out);

/* Whether the client takes a request on this path. ECLOSED; EPATH. */
clave_err clave__encode_check(clave_async_client *c, const char *path, bool sequential);
/* Encodes an ACL; the vector lies in c->acls. NULL is the open ACL. */
clave_err clave__encode_acls(clave_async_client *c, const clave_acl *acls, size_t n,
                             struct jvec *out);
/* NULL is null, not empty. ETOOBIG when it does not fit in a frame. */
clave_err clave__encode_data(clave_async_client *c, const char *path, const void *data, size_t len,
                             struct jbytes *out);
/* A multi of the spec's ops, whose op and path it sets. ETOOBIG: the caller says so with the next.
 */
clave_err clave__encode_multi(clave_async_client *c, struct request_spec *spec,
                              union wire_body *body);
/* Sets the fault that the request on this path does not fit in a frame, and returns ETOOBIG. */
clave_err clave__encode_too_big(clave_async_client *c, const char *path);

#endif
