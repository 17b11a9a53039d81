/* gate_key.h - the key that seals the secrets of HTTP sessions. Gates that share it recognise each
 * other's sessions, and a gate recognises its own after a restart. */
#ifndef CLAVE_RUNTIME_GATE_GATE_KEY_H
#define CLAVE_RUNTIME_GATE_GATE_KEY_H

#include <stdint.h>

#include "runtime/start_error.h"

enum { GATE_KEY_LEN = 32 };

/* Reads a key from a file, which has 64 hexadecimal digits. EINVAL: it does not have them, or
 * others can read it. */
clave_err gate_key_read(const char *path, uint8_t key[GATE_KEY_LEN], const struct fault *f);
/* Draws a new key. It alone keeps strangers from sessions, because the passwords of sessions derive
 * from their public ids, as Apache's do. So it comes from the kernel, not from a generator whose
 * numbers others get to see. EIO: the kernel has none. */
clave_err gate_key_draw(uint8_t key[GATE_KEY_LEN], const struct fault *f);
/* The key of this data directory, in its file http.key, which backups leave out; drawn if there is
 * none yet. So restarting the server ends no session. Errors as both functions above; EIO: the key
 * cannot be written. */
clave_err gate_key_keep(const char *dir, uint8_t key[GATE_KEY_LEN], const struct fault *f);

#endif
