/* secret_file.c - see secret_file.h. */
#include "runtime/gate/secret_file.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/text_file.h"

enum { ADVICE_CAP = 512 };

/* The commands after which this process, and no other user, can read the file. If the file is our
 * own it needs mode 0600. If it is somebody else's, usually root's, it must be readable for the
 * group that this process runs as. */
static const char *secret_file_advice(const char *path, const struct stat *st, char out[ADVICE_CAP])
{
    const struct group *group = st->st_uid == geteuid() ? NULL : getgrgid(getegid());
    if (group)
        snprintf(out, ADVICE_CAP, "chown root:%s %s; chmod 640 %s", group->gr_name, path, path);
    else
        snprintf(out, ADVICE_CAP, "chmod 600 %s", path);
    return out;
}

/* The bits of the mode that let others in. It is fine if the file belongs to somebody else and is
 * readable for this process's group, since the group of a service has no other members, while that
 * of a user may. (systemd's LoadCredential= shows an access list for the service as a right of
 * root's group.) */
static mode_t secret_file_open_to(const struct stat *st)
{
    bool is_ours = st->st_gid == getegid() && st->st_uid != geteuid();
    if (st->st_gid == 0)
        return st->st_mode & 007;
    return st->st_mode & (is_ours ? 037 : 077);
}

clave_err secret_file_read(const char *what, const char *path, char **out, const struct fault *f)
{
    char why[TEXT_FILE_WHY], advice[ADVICE_CAP];
    struct stat st;
    *out = NULL;
    if (stat(path, &st) != 0)
        return clave__start_error(f, CLAVE_EINVAL, "%s %s: %s", what, path, strerror(errno));
    if (secret_file_open_to(&st) != 0)
        return clave__start_error(f, CLAVE_EINVAL, "%s %s is open to others (mode %04o): %s", what,
                                  path, (unsigned)st.st_mode & 07777,
                                  secret_file_advice(path, &st, advice));
    *out = clave__text_file_read(path, why);
    if (*out)
        return CLAVE_OK;
    if (errno == EACCES)
        return clave__start_error(f, CLAVE_EINVAL, "%s %s: %s", what, why,
                                  secret_file_advice(path, &st, advice));
    return clave__start_error(f, errno == ENOMEM ? CLAVE_ENOMEM : CLAVE_EINVAL, "%s %s", what, why);
}
