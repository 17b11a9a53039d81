/* failing_disk.c - a library to preload into a program, whose calls to one directory then fail as a
 * test wants: out of room, with an I/O error, or because the file system is read-only. The driver
 * (diskfaults_test.py, and the soak) shares a page with every process that has it loaded: `struct
 * plan`, in $FAILING_DISK_PLAN; the directory is $FAILING_DISK_DIR, with a '/' at its end. Where
 * these are not set, nothing fails. What fails is not done, except half of a short write. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* All of it is int64_t, for a driver in another language. */
struct plan {
    atomic_llong calls;    /* so many that could have failed, since the driver set it to 0 */
    atomic_llong fails_at; /* the so many-th call fails; 0: none */
    atomic_llong number;   /* its errno */
    atomic_llong lasts;    /* 1: every later one too, until fails_at is 0 */
    atomic_llong is_short; /* 1: a write that fails is a short one first */
    atomic_llong struck;   /* so many have failed */
    char call[PATH_MAX];   /* the first of them: its name, and the path below the directory */
};

static struct plan *plan;
static const char *dir;
static size_t dir_len;

__attribute__((constructor)) static void failing_disk_open(void)
{
    const char *name = getenv("FAILING_DISK_PLAN");
    dir = getenv("FAILING_DISK_DIR");
    int fd = name && dir ? open(name, O_RDWR | O_CLOEXEC) : -1;
    void *p =
        fd >= 0 ? mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    if (p == MAP_FAILED)
        return;
    dir_len = strlen(dir);
    plan = p;
}

/* ---- which calls, and whether they fail ------------------------------------------------------ */

enum effect {
    READS,   /* fails with EIO only */
    FREES,   /* works on a disk that stays full */
    CHANGES, /* fails with everything */
};

/* Of an open file; false: it has none. */
static bool path_of(int fd, char out[PATH_MAX])
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool path_at(int at, const char *name, char out[PATH_MAX])
{
    char base[PATH_MAX];
    if (name[0] == '/')
        return snprintf(out, PATH_MAX, "%s", name) > 0;
    if (at == AT_FDCWD ? !getcwd(base, sizeof base) : !path_of(at, base))
        return false;
    return snprintf(out, PATH_MAX, "%s/%s", base, name) > 0;
}

static void note(const char *call, const char *path)
{
    snprintf(plan->call, sizeof plan->call, "%s %s", call, path + dir_len);
}

/* Whether this call is to fail; errno says with what. */
static bool fails_on(const char *call, enum effect effect, const char *path)
{
    int number = (int)atomic_load(&plan->number);
    if (strncmp(path, dir, dir_len) != 0 || (effect == READS && number != EIO))
        return false;
    long long at = atomic_load(&plan->fails_at), n = atomic_fetch_add(&plan->calls, 1) + 1;
    bool first = n == at, later = at > 0 && n > at && atomic_load(&plan->lasts) != 0;
    if (!first && (!later || (effect == FREES && number == ENOSPC)))
        return false;
    if (atomic_fetch_add(&plan->struck, 1) == 0)
        note(call, path);
    errno = number;
    return true;
}

static bool fails_at(const char *call, enum effect effect, int at, const char *name)
{
    char path[PATH_MAX];
    return plan && name && path_at(at, name, path) && fails_on(call, effect, path);
}

static bool fails_fd(const char *call, enum effect effect, int fd)
{
    char path[PATH_MAX];
    return plan && path_of(fd, path) && fails_on(call, effect, path);
}

/* How much of a write is done all the same, when the plan says so. The next one is told why. */
static size_t short_part(size_t n)
{
    return atomic_load(&plan->is_short) != 0 && atomic_load(&plan->struck) == 1 ? n / 2 : 0;
}

/* ---- the calls ------------------------------------------------------------------------------- */

#define NEXT(name) ((__typeof__(&name))next_of(#name))

static void *next_of(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static bool is_there(int at, const char *path)
{
    return faccessat(at, path, F_OK, 0) == 0;
}

/* A file that is there can be opened on a full disk. */
static enum effect effect_of_open(int at, const char *path, int flags)
{
    if ((flags & O_ACCMODE) == O_RDONLY && (flags & O_CREAT) == 0)
        return READS;
    return (flags & O_CREAT) == 0 || is_there(at, path) ? FREES : CHANGES;
}

/* Of one that is there, the kernel says so before anything else. */
static enum effect effect_of_mkdir(int at, const char *path)
{
    return is_there(at, path) ? READS : CHANGES;
}

static mode_t mode_of(int flags, va_list ap)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? (mode_t)va_arg(ap, int) : 0;
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode_t mode = mode_of(flags, ap);                                                          \
        va_end(ap);                                                                                \
        if (fails_at("open", effect_of_open(AT_FDCWD, path, flags), AT_FDCWD, path))               \
            return -1;                                                                             \
        return NEXT(name)(path, flags, mode);                                                      \
    }
OPEN(open)
OPEN(open64)

int __open_2(const char *path, int flags); /* what _FORTIFY_SOURCE makes of it */
int __open_2(const char *path, int flags)
{
    return fails_at("open", effect_of_open(AT_FDCWD, path, flags), AT_FDCWD, path)
               ? -1
               : NEXT(__open_2)(path, flags);
}

#define OPENAT(name)                                                                               \
    int name(int at, const char *path, int flags, ...)                                             \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode_t mode = mode_of(flags, ap);                                                          \
        va_end(ap);                                                                                \
        if (fails_at("open", effect_of_open(at, path, flags), at, path))                           \
            return -1;                                                                             \
        return NEXT(name)(at, path, flags, mode);                                                  \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void *p, size_t n)
{
    if (!fails_fd("write", CHANGES, fd))
        return NEXT(write)(fd, p, n);
    size_t part = short_part(n);
    return part > 0 ? NEXT(write)(fd, p, part) : -1;
}

#define PWRITE(name)                                                                               \
    ssize_t name(int fd, const void *p, size_t n, off_t at)                                        \
    {                                                                                              \
        if (!fails_fd("write", CHANGES, fd))                                                       \
            return NEXT(name)(fd, p, n, at);                                                       \
        size_t part = short_part(n);                                                               \
        return part > 0 ? NEXT(name)(fd, p, part, at) : -1;                                        \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define ON_FILE(name, told, effect, parameters, ...)                                               \
    int name parameters                                                                            \
    {                                                                                              \
        return fails_fd(told, effect, fd) ? -1 : NEXT(name)(__VA_ARGS__);                          \
    }
ON_FILE(fsync, "fsync", CHANGES, (int fd), fd)
ON_FILE(fdatasync, "fdatasync", CHANGES, (int fd), fd)
ON_FILE(ftruncate, "ftruncate", FREES, (int fd, off_t n), fd, n)
ON_FILE(ftruncate64, "ftruncate", FREES, (int fd, off_t n), fd, n)
ON_FILE(fallocate, "fallocate", CHANGES, (int fd, int mode, off_t at, off_t n), fd, mode, at, n)
ON_FILE(fallocate64, "fallocate", CHANGES, (int fd, int mode, off_t at, off_t n), fd, mode, at, n)

#define ON_PATH(name, told, effect, at, path, parameters, ...)                                     \
    int name parameters                                                                            \
    {                                                                                              \
        return fails_at(told, effect, at, path) ? -1 : NEXT(name)(__VA_ARGS__);                    \
    }
ON_PATH(mkdir, "mkdir", effect_of_mkdir(AT_FDCWD, path), AT_FDCWD, path,
        (const char *path, mode_t mode), path, mode)
ON_PATH(mkdirat, "mkdir", effect_of_mkdir(at, path), at, path,
        (int at, const char *path, mode_t mode), at, path, mode)
ON_PATH(rename, "rename", CHANGES, AT_FDCWD, from, (const char *from, const char *to), from, to)
ON_PATH(renameat, "rename", CHANGES, at, from, (int at, const char *from, int b, const char *to),
        at, from, b, to)
ON_PATH(unlink, "unlink", FREES, AT_FDCWD, path, (const char *path), path)
ON_PATH(unlinkat, "unlink", FREES, at, path, (int at, const char *path, int flags), at, path, flags)
ON_PATH(chmod, "chmod", CHANGES, AT_FDCWD, path, (const char *path, mode_t mode), path, mode)

/* A Unix socket is a file, too. */
int bind(int fd, const struct sockaddr *address, socklen_t n)
{
    const struct sockaddr_un *local = (const struct sockaddr_un *)(const void *)address;
    if (address->sa_family == AF_UNIX && fails_at("bind", CHANGES, AT_FDCWD, local->sun_path))
        return -1;
    return NEXT(bind)(fd, address, n);
}
