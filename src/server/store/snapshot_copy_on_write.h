/* snapshot_copy_on_write.h - what keeps a snapshot under way as it was when it began: a session, an
 * access list or a node that is about to change or to go, and is not in the file yet, is written
 * first, into snapshot_save.ahead. */
#ifndef CLAVE_SERVER_STORE_SNAPSHOT_COPY_ON_WRITE_H
#define CLAVE_SERVER_STORE_SNAPSHOT_COPY_ON_WRITE_H

#include <stdbool.h>

#include "wire/jute.h"

struct server;
struct snapshot_save;

/* Begins with the snapshot, and ends with it. */
void clave__snapshot_copy_on_write(struct server *s, bool begin);
/* Once memory has run out it writes nothing; but everything is still marked as written. */
struct jwriter clave__snapshot_writer(const struct snapshot_save *v, struct buf *b);

#endif
