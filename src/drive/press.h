/* press.h - the texts of an answer, one behind the other in one block: measured first, then copied.
 */
#ifndef CLAVE_DRIVE_PRESS_H
#define CLAVE_DRIVE_PRESS_H

#include "clave/mutex.h"

struct press {
    char *at; /* NULL: they are only measured */
    size_t n; /* so many bytes so far */
};

/* The copy; while measuring the text itself. NULL stays NULL. */
const char *clave__press_text(struct press *p, const char *text);
/* All texts of the identity, which points to the copies then. */
void clave__press_identity(struct press *p, clave_identity *id);

#endif
