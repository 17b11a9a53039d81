/* errmsg.c - the latest fault of a client (errmsg.h). */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "client/client_internal.h"

static void errmsg_set(clave_async_client *c, const char *before, const char *fmt, va_list args)
{
    struct client_fault *f = &c->fault;
    int n = snprintf(f->text, sizeof f->text, "%s", before);
    f->detail = n < (int)sizeof f->text ? (size_t)n : sizeof f->text - 1;
    vsnprintf(f->text + f->detail, sizeof f->text - f->detail, fmt, args);
    c->fault_is_news = true;
    clave__log(&c->log, CLAVE_LOG_DEBUG, "%s", f->text);
}

void clave__client_fault(clave_async_client *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    errmsg_set(c, "", fmt, args);
    va_end(args);
    c->fault.err = CLAVE_OK;
}

void clave__client_fault_of(clave_async_client *c, clave_err err, const char *before,
                            const char *fmt, ...)
{
    va_list args;
    assert(err != CLAVE_OK);
    va_start(args, fmt);
    errmsg_set(c, before, fmt, args);
    va_end(args);
    c->fault.err = err;
}

const struct client_fault *clave__client_latest_fault(const clave_async_client *c)
{
    return &c->fault;
}

const char *clave__client_fault_detail(const struct client_fault *f, clave_err err)
{
    return err != CLAVE_OK && f->err == err ? f->text + f->detail : "";
}

const char *clave_async_client_errmsg(const clave_async_client *c)
{
    if (c->fault.text[0])
        return c->fault.text;
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
