/* text.h - formatted text at the end of a buffer: what the four-letter words and the page of
 * metrics are made of. A JSON answer uses base/json_writer.h instead. */
#ifndef CLAVE_SERVER_MONITORING_TEXT_H
#define CLAVE_SERVER_MONITORING_TEXT_H

#include "base/buf.h"
#include "wire/jute.h"

struct text {
    struct buf *out;
    clave_err err; /* of the first piece that was dropped: ETOOBIG, ENOMEM */
};

/* At most TEXT_PIECE - 1 bytes at a time. */
enum { TEXT_PIECE = 512 };
__attribute__((format(printf, 2, 3))) void clave__text_put(struct text *t, const char *fmt, ...);
/* A path of any length. */
void clave__text_path(struct text *t, struct jbytes path);

#endif
