/* http_host.h - what the Host of a request says about how its sender found the server.
 *
 * A page from elsewhere can have its own name resolved to this machine's address (DNS rebinding):
 * the browser takes the server for the page's own, and lets the page read the answers. Such a
 * request has the page's name as its Host, so that only names of the server may be accepted. */
#ifndef CLAVE_BASE_HTTP_HOST_H
#define CLAVE_BASE_HTTP_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* The n bytes at `text` are this name, whatever the case of its letters, as names in HTTP are. */
bool clave__http_name_is(const char *text, size_t n, const char *name);
/* `text` begins with the n bytes at `s`, whatever their case. */
bool clave__http_begins(const char *text, const char *s, size_t n);
/* The length of its name or address, without a port; 0: it is malformed. */
size_t clave__http_host_len(const char *host);
/* It is an address, which no name server gives out, or localhost; or one of `names`, which has
 * commas or spaces between its parts and may be NULL. A port may follow, and nothing else. */
bool clave__http_host_is_ours(const char *host, const char *names);

#endif
