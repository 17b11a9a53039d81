/* local.c - where this user's local server is, and how it serves (local.h); the clients' side is
 * local_dial.c. The directories of the socket and the data belong to this user alone. */
#include "runtime/client/local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clave/uv.h"
#include "runtime/start_error.h"

enum {
    SOCKET_MAX = 100, /* sun_path has 108 bytes, fewer on other systems */
    IDLE_EXIT_MS = 60000,
};

/* ---- paths ---------------------------------------------------------------------------------- */

static bool local_fits(int n, size_t cap)
{
    return n > 0 && (size_t)n < cap;
}

/* The owner of the part of the path that exists. */
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

/* sudo may keep its caller's environment: what root created there, that user could not use. */
static bool is_anothers(const char *path)
{
    uid_t owner;
    return geteuid() == 0 && local_find_owner(path, &owner) && owner != 0;
}

static bool default_dir(char *out, size_t cap, const char **passed_over)
{
    const char *own = getenv("CLAVE_LOCAL_DIR"), *xdg = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    struct passwd entry, *found = NULL;
    char buf[1024];
    if (own && *own)
        return local_fits(snprintf(out, cap, "%s", own), cap);
    /* The XDG specification: ignore relative paths. */
    if (xdg && *xdg == '/' && !is_anothers(xdg))
        return local_fits(snprintf(out, cap, "%s/clave", xdg), cap);
    if (xdg && *xdg == '/')
        *passed_over = "XDG_STATE_HOME";
    if (home && *home == '/' && is_anothers(home)) {
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

/* FNV-1a: sockets of different directories must not collide in one place. */
static uint64_t local_hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3u;
    return h;
}

/* In the directory, unless the path would be too long for the kernel. */
static bool socket_path(struct local_paths *p)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n = snprintf(p->socket, sizeof p->socket, "%s/clave.sock", p->dir);
    if (local_fits(n, SOCKET_MAX + 1))
        return true;
    if (runtime && *runtime == '/' && !is_anothers(runtime)) {
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
                     : default_dir(given, sizeof given, &out->passed_over);
    if (!known)
        return clave__start_error(
            &f, CLAVE_EINVAL, "no directory for the local server: set CLAVE_LOCAL_DIR, or HOME");
    /* The server's own directory is "/", so the path has to be absolute. */
    char cwd[PATH_MAX];
    int n = snprintf(out->dir, sizeof out->dir, "%s", given);
    if (given[0] != '/')
        n = getcwd(cwd, sizeof cwd) ? snprintf(out->dir, sizeof out->dir, "%s/%s", cwd, given) : -1;
    if (!local_fits(n, sizeof out->dir - 16) || !socket_path(out))
        return clave__start_error(&f, CLAVE_EINVAL,
                                  "the path of the local server is too long: %.80s...", given);
    return CLAVE_OK;
}

static clave_err refuse_dir(const struct fault *f, const char *dir, const char *why)
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

/* The directory of the socket must be ours alone, especially in /tmp. */
static clave_err claim_dir(const char *dir, const struct fault *f)
{
    struct stat st;
    char why[80];
    clave_err err = local_make_dir(dir, f);
    if (err != CLAVE_OK)
        return err;
    if (lstat(dir, &st) != 0)
        return clave__start_error_errno(f, errno, "cannot look at", dir);
    if (S_ISLNK(st.st_mode))
        return refuse_dir(f, dir, "it is a symbolic link");
    if (!S_ISDIR(st.st_mode))
        return refuse_dir(f, dir, "it is no directory");
    if (st.st_uid != geteuid()) {
        snprintf(why, sizeof why, "it belongs to user %u, and this process to user %u",
                 (unsigned)st.st_uid, (unsigned)geteuid());
        return refuse_dir(f, dir, why);
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
        err = claim_dir(p->dir, f);
    size_t n = (size_t)(strrchr(p->socket, '/') - p->socket);
    memcpy(part, p->socket, n);
    part[n] = '\0';
    return err == CLAVE_OK && strcmp(part, p->dir) != 0 ? claim_dir(part, f) : err;
}

/* ---- serving -------------------------------------------------------------------------------- */

/* Reports to the client that waits at the other end of a pipe; then closes descriptor 1. */
static void local_say(char word, const char *fault)
{
    struct stat st;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    char text[LOCAL_WORD_CAP];
    if (fstat(1, &st) != 0 || !S_ISFIFO(st.st_mode))
        return; /* started by hand */
    int n = snprintf(text, sizeof text, "%c%s", word, fault);
    sigaction(SIGPIPE, &ignore, &before); /* the client may not have waited */
    ssize_t ignored = write(1, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    (void)ignored;
    sigaction(SIGPIPE, &before, NULL);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, 1);
        close(null);
    }
}

/* A lack of memory passes by itself. Every other fault has to be fixed by the user. */
static clave_err say_fault(clave_err err, const char *fault)
{
    local_say(err == CLAVE_ENOMEM ? LOCAL_SAYS_LATER : LOCAL_SAYS_NEVER,
              *fault ? fault : clave_strerror(err));
    return err;
}

void clave__local_refuse(const char *fault)
{
    local_say(LOCAL_SAYS_NEVER, fault);
}

clave_err clave__local_serve(const char *dir, const struct server_run_options *o, char *fault,
                             size_t cap)
{
    const struct fault f = {fault, cap};
    struct server_run_options own = *o;
    struct local_paths p;
    struct server_run *r;
    char address[sizeof p.socket + 8];
    const char *listen = address;
    fault[0] = '\0';
    clave_err err = clave__local_paths(&p, dir, fault, cap);
    if (err == CLAVE_OK)
        err = clave__local_make_dirs(&p, &f);
    if (err != CLAVE_OK)
        return say_fault(err, fault);
    snprintf(address, sizeof address, "unix:%s", p.socket);
    own.data_dir = p.dir;
    own.listen = &listen;
    own.nlisten = 1;
    if (own.idle_exit_ms == 0)
        own.idle_exit_ms = IDLE_EXIT_MS;
    err = clave__server_run_new(&r, &own, fault, cap);
    if (err == CLAVE_EINUSE) { /* the other of two servers started at once was first */
        local_say(LOCAL_SAYS_BUSY, "");
        return CLAVE_OK;
    }
    if (err != CLAVE_OK)
        return say_fault(err, fault);
    local_say(LOCAL_SAYS_READY, "");
    err = clave__server_run_loop(r, fault, cap);
    clave__server_run_free(r);
    return err;
}
