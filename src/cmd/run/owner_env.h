/* owner_env.h - the owner of a lock, for locks taken by a command under another lock: the inner
 * `clave lock` learns from its environment what it is part of, so that a search for deadlocks sees
 * that the outer one waits for it (clave_identity.owner). */
#ifndef CLAVE_CMD_RUN_OWNER_ENV_H
#define CLAVE_CMD_RUN_OWNER_ENV_H

enum { OWNER_CAP = 512 };

/* Makes a new owner, part of the one in the environment if there is one. */
void owner_env_make(char out[OWNER_CAP]);

#endif
