/* fault.c - the text of clave_async_client_errmsg. */
#include <stdarg.h>
#include <stdio.h>

#include "base/sized_options.h"
#include "client/engine.h"

void clave__client_fault(clave_async_client *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->fault, sizeof c->fault, fmt, args);
    va_end(args);
    c->fault_is_news = true;
    clave__log(&c->log, CLAVE_LOG_DEBUG, "%s", c->fault);
}

clave_err clave__client_take_options(clave_async_client *c, void *dst, size_t dst_size,
                                     const void *src, const char *name)
{
    const char *fault = clave__options_fault(dst_size, src);
    if (fault)
        clave__client_fault(c, "%s %s", name, fault);
    return clave__options_take(dst, dst_size, src);
}

const char *clave_async_client_errmsg(const clave_async_client *c)
{
    if (c->fault[0])
        return c->fault;
    switch (c->link.phase) {
    case LINK_HANDSHAKE:
        return "a server was connected to, but has not answered yet";
    case LINK_DIALLING:
    case LINK_SECURING:
        return "the attempt to connect has not been answered yet";
    case LINK_IDLE:
    case LINK_OPEN:
    case LINK_HANGUP:
        break;
    }
    return "no fault so far";
}
