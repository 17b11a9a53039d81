/* submit.h - what submit.c shares with the composed requests (create.c, lost_create_by_czxid.c,
 * guaranteed_delete.c). On an error each sets clave_async_client_errmsg. */
#ifndef CLAVE_CLIENT_SUBMIT_H
#define CLAVE_CLIENT_SUBMIT_H

#include "client/request/encode.h"

/* Makes a request and hands it to the pipeline. */
clave_err clave__submit(clave_async_client *c, const struct request_spec *spec,
                        const union wire_body *body);

struct submit_create {
    const char *path;
    const void *data;
    size_t len;
    clave_create_mode mode;
    int64_t ttl_ms;
    const clave_acl *acls;
    size_t nacls;
    enum request_again again;
    bool quiet;
    bool raw;
    enum create_place place;
};
/* Of the path these only check that it fits. */
clave_err clave__submit_create(clave_async_client *c, const struct submit_create *s,
                               clave_result_cb *cb, void *arg);
clave_err clave__submit_delete(clave_async_client *c, const char *path, int32_t version,
                               clave_result_cb *cb, void *arg);
/* A read of the spec's path, with its watch. */
clave_err clave__submit_read(clave_async_client *c, int32_t op, struct request_spec *spec);
/* A request whose body is just a path: the spec's op and path. */
clave_err clave__submit_path(clave_async_client *c, const struct request_spec *spec);
/* A multi of the spec's ops. */
clave_err clave__submit_multi(clave_async_client *c, struct request_spec *spec);

#endif
