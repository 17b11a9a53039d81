/* submit.h - what submit.c shares with the composed requests. */
#ifndef CLAVE_CLIENT_SUBMIT_H
#define CLAVE_CLIENT_SUBMIT_H

#include "client/request.h"

/* ECLOSED; EPATH, with its text told. */
clave_err clave__submit_check(clave_async_client *c, const char *path, bool sequential);
/* The vector lies in c->acls; NULL is the open ACL. */
clave_err clave__submit_acls(clave_async_client *c, const clave_acl *acls, size_t n,
                             struct jvec *out);
/* NULL is null, not empty. ETOOBIG, told, when no frame has so much. */
clave_err clave__submit_data(clave_async_client *c, const char *path, const void *data, size_t len,
                             struct jbytes *out);
/* Makes a request and hands it to the pipeline. */
clave_err clave__submit(clave_async_client *c, const struct request_spec *spec,
                        const union wire_body *body);

/* The server's path of a create. The number that will be appended to "/" is a name below the
 * chroot, not a part of the chroot's own. The slice is valid until the next call. */
clave_err clave__path_to_create(clave_async_client *c, const char *path, clave_create_mode mode,
                                struct jbytes *out);

struct submit_create {
    const char *path;
    const void *data;
    size_t len;
    clave_create_mode mode;
    int64_t ttl_ms;
    const clave_acl *acls;
    size_t nacls;
    bool quiet;
    bool raw;
};
/* Each checks nothing of a create's path but that it fits. */
clave_err clave__submit_create(clave_async_client *c, const struct submit_create *s,
                               clave_result_cb *cb, void *arg);
clave_err clave__submit_delete(clave_async_client *c, const char *path, int32_t version,
                               clave_result_cb *cb, void *arg);
/* Of the spec's path and watch. */
clave_err clave__submit_read(clave_async_client *c, int32_t op, struct request_spec *spec);
/* A request whose body is a path: of the spec's op and path. */
clave_err clave__submit_path(clave_async_client *c, const struct request_spec *spec);
/* Of the spec's ops. */
clave_err clave__submit_multi(clave_async_client *c, struct request_spec *spec);

#endif
