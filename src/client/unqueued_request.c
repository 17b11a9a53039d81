/* unqueued_request.c - requests that the engine writes by itself, past the pipeline's queue: pings,
 * identities, watches, closeSession. */
#include <assert.h>

#include "client/client_internal.h"

clave_err clave__unqueued_request_put(clave_async_client *c, const struct wire_request *q)
{
    assert(clave__link_is_open(&c->link));
    struct jwriter w = clave__jwriter(&c->link.out);
    size_t begin = clave__frame_begin(&w);
    clave__wire_put_request(&w, q);
    clave_err err = clave__frame_end(&w, begin);
    if (err != CLAVE_OK)
        return err;
    c->link.wrote = c->now;
    if (q->op >= 0) /* closeSession is negative */
        c->pipeline.counts[clave__client_opcode_place(q->op)]++;
    return CLAVE_OK;
}
