/* secret_file.h - a file with secrets: the key, the tokens. */
#ifndef CLAVE_RUNTIME_GATE_SECRET_FILE_H
#define CLAVE_RUNTIME_GATE_SECRET_FILE_H

#include "runtime/start_error.h"

/* Reads it into a text that the caller frees. EINVAL: it cannot be read, or others can read it, and
 * the fault has the commands that mend it; ENOMEM. `what` names the file in the fault. */
clave_err secret_file_read(const char *what, const char *path, char **out, const struct fault *f);

#endif
