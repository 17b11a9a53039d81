/* session_file.h - the file through which a session passes from one process to another
 * (clave_client_hand_over). It is a secret that is good for one use: it is made for its owner
 * alone, refused if anybody else can read it, and removed before the session is used. */
#ifndef CLAVE_RUNTIME_CLIENT_SESSION_FILE_H
#define CLAVE_RUNTIME_CLIENT_SESSION_FILE_H

#include "runtime/start_error.h"

/* Reads the session, to be freed by the caller even after an error. EINVAL: the file is not fit for
 * that, or holds no session; other errors according to errno. */
clave_err clave__session_file_read(const char *file, char **text, const struct fault *f);
/* Removes the file once nothing but the servers can refuse the session, and before it is used. If
 * two processes have read the file, one of them gets EINVAL, and must not use the session. */
clave_err clave__session_file_remove(const char *file, const struct fault *f);

struct session_file {
    const char *file;
    char *temporary;
    int fd; /* -1: none */
};
/* Begins the file under another name, with room for a session, so that whatever can fail fails
 * before anything is handed over. EIO, ENOMEM. In every case, _end follows. */
clave_err clave__session_file_begin(struct session_file *o, const char *file,
                                    const struct fault *f);
/* Writes the session and gives the file its name; `text` NULL: there is none to write. EIO. */
clave_err clave__session_file_end(struct session_file *o, const char *text, const struct fault *f);

#endif
