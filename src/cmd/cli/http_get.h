/* http_get.h - one GET of a gate, by libcurl, which is loaded when it is first needed. */
#ifndef CLAVE_CMD_CLI_HTTP_GET_H
#define CLAVE_CMD_CLI_HTTP_GET_H

#include "base/buf.h"
#include "cmd/cli/cmd_options.h"

struct http_get {
    const char *gate;  /* "http://HOST:PORT", "https://...", a prefix after it; "unix:/PATH" */
    const char *token; /* NULL: none */
    const char *ca;    /* PEM, of https; NULL: the system's */
    int64_t timeout_ms;
};

/* The body of the answer to GET `target`, "/v1/...", when it is 200. Otherwise reports it, and
 * returns the exit code. */
int http_get(const struct options *o, const struct http_get *g, const char *target,
             struct buf *body);

#endif
