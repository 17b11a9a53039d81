/* gate_key.h - the key that seals the secrets of HTTP sessions: gates that share it know each
 * other's sessions, and a gate knows its own after a restart. */
#ifndef CLAVE_RUNTIME_GATE_GATE_KEY_H
#define CLAVE_RUNTIME_GATE_GATE_KEY_H

#include <stdint.h>

#include "runtime/start_error.h"

enum { GATE_KEY_LEN = 32 };

/* The file has 64 hexadecimal digits. EINVAL: it has not, or others can read it. */
clave_err gate_key_read(const char *path, uint8_t key[GATE_KEY_LEN], const struct fault *f);
/* Another one each time. It is all that keeps strangers from sessions, whose passwords are made of
 * their public ids as Apache's are: so it is drawn by the kernel, and by no generator from which
 * others are told numbers. EIO: the kernel has none. */
clave_err gate_key_draw(uint8_t key[GATE_KEY_LEN], const struct fault *f);
/* That of this data directory, in its file http.key, which backups leave out: drawn if there is
 * none yet. So a restart of the server ends no session. The faults of both; EIO: it cannot be
 * written. */
clave_err gate_key_keep(const char *dir, uint8_t key[GATE_KEY_LEN], const struct fault *f);

#endif
