/* http_get.h - one GET from a gate, with libcurl, which is loaded when it is first needed. */
#ifndef CLAVE_CMD_CLI_HTTP_GET_H
#define CLAVE_CMD_CLI_HTTP_GET_H

#include "base/buf.h"
#include "cmd/cli/cmd_options.h"

struct http_get {
    /* "http://HOST:PORT", "https://...", with a prefix of paths or without; "unix:/PATH" */
    const char *gate;
    const char *token; /* NULL: no token */
    const char *ca;    /* PEM file with authorities for https; NULL: the system's */
    int64_t timeout_ms;
};

/* Sends GET `target` ("/v1/...") and appends the body of the answer to `body`. Returns EXIT_OK if
 * the status is 200, otherwise an exit code after a message. */
int http_get(const struct options *o, const struct http_get *g, const char *target,
             struct buf *body);

#endif
