/* http_head.h - the head of a request as text, collected in pieces as they arrive, in memory of a
 * bounded size: target, names and values, each with a NUL behind it. */
#ifndef CLAVE_RUNTIME_HTTP_HTTP_HEAD_H
#define CLAVE_RUNTIME_HTTP_HTTP_HEAD_H

#include <stdbool.h>

#include "base/buf.h"
#include "web/web.h"

enum { HTTP_MAX_FIELDS = 100 };

enum http_head_part { HTTP_HEAD_TARGET, HTTP_HEAD_NAME, HTTP_HEAD_VALUE };

struct http_head {
    struct buf text;
    enum http_head_part part; /* that grows */
    size_t nfields;
    /* After _finish, and as long as the head: */
    const char *target, *path; /* the path is decoded, without the query */
    struct web_header *fields;
};

void clave__http_head_init(struct http_head *head, const struct clave_mem *mem, size_t most);
void clave__http_head_fini(struct http_head *head);
/* More of this part, which the former part has ended. 0, or the status to refuse the request
 * with: 414 or 431, it is too long; 503, there is no memory. */
unsigned clave__http_head_put(struct http_head *head, enum http_head_part part, const char *p,
                              size_t n);
/* It is complete: 0, or as _put; 400: a name has a blank in it. */
unsigned clave__http_head_finish(struct http_head *head);
/* NULL: there is no field of this name. */
const char *clave__http_head_find(const struct http_head *head, const char *name);

#endif
