/* secret_file.c - see secret_file.h; gate_key.c and gate_access_file.c call it. */
#include "runtime/gate/secret_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

clave_err secret_file_check(const char *what, const char *path, const struct fault *f)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return clave__start_error(f, CLAVE_EINVAL, "%s %s: %s", what, path, strerror(errno));
    /* systemd's LoadCredential= shows an access list for the service as a right of root's group. */
    mode_t open_to = st.st_gid == 0 ? 007 : 077;
    if (st.st_mode & open_to)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "%s %s is open to others (mode %04o): chmod 600 %s", what, path,
                                  (unsigned)st.st_mode & 07777, path);
    return CLAVE_OK;
}
