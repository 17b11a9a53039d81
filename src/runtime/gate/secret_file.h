/* secret_file.h - a file with secrets: the key, the tokens. */
#ifndef CLAVE_RUNTIME_GATE_SECRET_FILE_H
#define CLAVE_RUNTIME_GATE_SECRET_FILE_H

#include "runtime/start_error.h"

/* Whether others can read a file with secrets: EINVAL. `what` names it in the fault. */
clave_err secret_file_check(const char *what, const char *path, const struct fault *f);

#endif
