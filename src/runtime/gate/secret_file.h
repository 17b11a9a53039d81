/* secret_file.h - a file with secrets: the key, the tokens. */
#ifndef CLAVE_RUNTIME_GATE_SECRET_FILE_H
#define CLAVE_RUNTIME_GATE_SECRET_FILE_H

#include "runtime/start_error.h"

/* Reads the file into a text that the caller must free. EINVAL: it cannot be read, or others can
 * read it too, in which case the fault has the commands that correct that; ENOMEM. `what` is what
 * the fault calls the file. */
clave_err secret_file_read(const char *what, const char *path, char **out, const struct fault *f);

#endif
