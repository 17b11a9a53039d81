/* owner.h - whose a lock is, where a command under one takes another: the inner `clave lock` is
 * told by its environment what it is a part of, so who looks for deadlocks sees that the outer
 * one waits for it (clave_identity.owner). */
#ifndef CLAVE_CMD_RUN_OWNER_H
#define CLAVE_CMD_RUN_OWNER_H

enum { OWNER_CAP = 512 };

/* A new one, a part of that in the environment. */
void owner_make(char out[OWNER_CAP]);

#endif
