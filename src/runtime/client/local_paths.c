/* local_paths.c - where this user's local server is (local_paths.h). The directories of the socket
 * and of the data belong to this user alone. */
#include "runtime/client/local_paths.h"
#include "base/hash/fnv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SOCKET_MAX = 100 }; /* sun_path has 108 bytes, on other systems fewer */

static bool local_fits(int n, size_t cap)
{
    return n > 0 && (size_t)n < cap;
}

/* Finds the owner of the part of the path that exists. */
static bool local_find_owner(const char *path, uid_t *owner)
{
    char part[PATH_MAX];
    struct stat st;
    if (!local_fits(snprintf(part, sizeof part, "%s", path), sizeof part) || part[0] != '/')
        return false;
    while (stat(part, &st) != 0) {
        char *slash = strrchr(part, '/');
        if (strcmp(part, "/") == 0)
            return false;
        slash[slash == part] = '\0';
    }
    *owner = st.st_uid;
    return true;
}

/* True if another user owns it. sudo may keep its caller's environment, and that user could not use
 * what root creates there. */
static bool local_is_anothers(const char *path)
{
    uid_t owner;
    return geteuid() == 0 && local_find_owner(path, &owner) && owner != 0;
}

static bool local_default_dir(char *out, size_t cap, const char **passed_over)
{
    const char *own = getenv("CLAVE_LOCAL_DIR"), *xdg = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    struct passwd entry, *found = NULL;
    char buf[1024];
    if (own && *own)
        return local_fits(snprintf(out, cap, "%s", own), cap);
    /* the XDG specification says to ignore relative paths */
    if (xdg && *xdg == '/' && !local_is_anothers(xdg))
        return local_fits(snprintf(out, cap, "%s/clave", xdg), cap);
    if (xdg && *xdg == '/')
        *passed_over = "XDG_STATE_HOME";
    if (home && *home == '/' && local_is_anothers(home)) {
        *passed_over = "HOME";
        home = NULL;
    }
    if (!home || *home != '/') {
        if (getpwuid_r(getuid(), &entry, buf, sizeof buf, &found) != 0 || !found)
            return false;
        home = found->pw_dir;
    }
    return local_fits(snprintf(out, cap, "%s/.local/state/clave", home), cap);
}

/* So that the sockets of different directories do not collide in a shared place. */
static uint64_t local_hash(const char *s)
{
    return clave__fnv1a(FNV1A_BASIS, s, strlen(s));
}

/* Places the socket in the directory, unless the path would be too long for the kernel. */
static bool socket_path(struct local_paths *p)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n = snprintf(p->socket, sizeof p->socket, "%s/clave.sock", p->dir);
    if (local_fits(n, SOCKET_MAX + 1))
        return true;
    if (runtime && *runtime == '/' && !local_is_anothers(runtime)) {
        n = snprintf(p->socket, sizeof p->socket, "%s/clave/%016" PRIx64 ".sock", runtime,
                     local_hash(p->dir));
        if (local_fits(n, SOCKET_MAX + 1))
            return true;
    }
    n = snprintf(p->socket, sizeof p->socket, "/tmp/clave-%u/%016" PRIx64 ".sock",
                 (unsigned)getuid(), local_hash(p->dir));
    return local_fits(n, SOCKET_MAX + 1);
}

clave_err clave__local_paths(struct local_paths *out, const char *dir, char *fault, size_t cap)
{
    const struct fault f = {fault, cap};
    char given[PATH_MAX];
    out->passed_over = NULL;
    bool known = dir ? local_fits(snprintf(given, sizeof given, "%s", dir), sizeof given)
                     : local_default_dir(given, sizeof given, &out->passed_over);
    if (!known)
        return clave__start_error(
            &f, CLAVE_EINVAL, "no directory for the local server: set CLAVE_LOCAL_DIR, or HOME");
    /* The server's working directory is "/", so the path has to be absolute. */
    char cwd[PATH_MAX];
    int n = snprintf(out->dir, sizeof out->dir, "%s", given);
    if (given[0] != '/')
        n = getcwd(cwd, sizeof cwd) ? snprintf(out->dir, sizeof out->dir, "%s/%s", cwd, given) : -1;
    if (!local_fits(n, sizeof out->dir - 16) || !socket_path(out))
        return clave__start_error(&f, CLAVE_EINVAL,
                                  "the path of the local server is too long: %.80s...", given);
    return CLAVE_OK;
}

static clave_err local_refuse_dir(const struct fault *f, const char *dir, const char *why)
{
    return clave__start_error(
        f, CLAVE_EIO,
        "%s cannot be used for the local server: %s (CLAVE_LOCAL_DIR names another "
        "directory)",
        dir, why);
}

static clave_err local_make_dir(const char *dir, const struct fault *f)
{
    struct stat st;
    uid_t owner;
    if (geteuid() == 0 && stat(dir, &st) != 0 && local_find_owner(dir, &owner) && owner != 0)
        return clave__start_error(
            f, CLAVE_EIO,
            "%s would belong to root in a directory of user %u (CLAVE_LOCAL_DIR names "
            "another)",
            dir, (unsigned)owner);
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return clave__start_error_errno(f, errno, "cannot create", dir);
    return CLAVE_OK;
}

/* Makes sure that the directory of the socket is ours alone, which matters most in /tmp. */
static clave_err local_claim_dir(const char *dir, const struct fault *f)
{
    struct stat st;
    char why[80];
    clave_err err = local_make_dir(dir, f);
    if (err != CLAVE_OK)
        return err;
    if (lstat(dir, &st) != 0)
        return clave__start_error_errno(f, errno, "cannot look at", dir);
    if (S_ISLNK(st.st_mode))
        return local_refuse_dir(f, dir, "it is a symbolic link");
    if (!S_ISDIR(st.st_mode))
        return local_refuse_dir(f, dir, "it is no directory");
    if (st.st_uid != geteuid()) {
        snprintf(why, sizeof why, "it belongs to user %u, and this process to user %u",
                 (unsigned)st.st_uid, (unsigned)geteuid());
        return local_refuse_dir(f, dir, why);
    }
    if ((st.st_mode & 022) != 0)
        return clave__start_error(
            f, CLAVE_EIO,
            "%s is not a directory that only this user can write to: 'chmod go-w' "
            "makes it one",
            dir);
    return CLAVE_OK;
}

clave_err clave__local_make_dirs(const struct local_paths *p, const struct fault *f)
{
    char part[PATH_MAX];
    clave_err err = CLAVE_OK;
    for (size_t i = 1; p->dir[i] != '\0' && err == CLAVE_OK; i++) {
        if (p->dir[i] != '/')
            continue;
        memcpy(part, p->dir, i);
        part[i] = '\0';
        err = local_make_dir(part, f);
    }
    if (err == CLAVE_OK)
        err = local_claim_dir(p->dir, f);
    size_t n = (size_t)(strrchr(p->socket, '/') - p->socket);
    memcpy(part, p->socket, n);
    part[n] = '\0';
    return err == CLAVE_OK && strcmp(part, p->dir) != 0 ? local_claim_dir(part, f) : err;
}
