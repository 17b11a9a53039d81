#include "recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FD = 1024, NO_FILE = -1 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool recording;
static atomic_int syncs; /* enum syncs */
static struct recording now;
static char watched[512]; /* the directory */
static struct place {
    dev_t device;
    ino_t inode;
} place;                      /* it is there, when it is */
static struct place above[8]; /* those in which it and the directories above it were made */
static unsigned nabove;
static int file_of[MAX_FD]; /* by descriptor */
static struct known {
    char name[48];
    unsigned file;
} /* by name */ known[256];
static size_t nknown;

/* ---- the list ------------------------------------------------------------------------- */

static struct event *push(enum event_kind kind)
{
    if (now.n == now.cap) {
        now.cap = now.cap ? now.cap * 2 : 256;
        now.events = realloc(now.events, now.cap * sizeof *now.events);
        must(now.events);
    }
    struct event *e = &now.events[now.n++];
    *e = (struct event){.kind = kind};
    return e;
}

static struct known *find(const char *name)
{
    for (size_t i = 0; i < nknown; i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    return NULL;
}

static void forget(const char *name)
{
    struct known *k = find(name);
    if (k)
        *k = known[--nknown];
}

static void learn(const char *name, unsigned file)
{
    forget(name);
    must(nknown < sizeof known / sizeof *known);
    snprintf(known[nknown].name, sizeof known[nknown].name, "%s", name);
    known[nknown++].file = file;
}

static unsigned create(const char *name)
{
    struct event *e = push(EVENT_CREATE);
    snprintf(e->name, sizeof e->name, "%s", name);
    e->file = now.files++;
    learn(name, e->file);
    return e->file;
}

static void push_write(unsigned file, const void *p, size_t n, int64_t at)
{
    struct event *e = push(EVENT_WRITE);
    e->file = file;
    e->at = at;
    e->n = n;
    e->bytes = malloc(n + 1);
    must(e->bytes);
    memcpy(e->bytes, p, n);
}

static struct place place_of(const char *path)
{
    struct stat st;
    must(stat(path, &st) == 0);
    return (struct place){st.st_dev, st.st_ino};
}

static bool is_at(int dir, const struct place *p)
{
    struct stat st;
    return recording && fstat(dir, &st) == 0 && st.st_dev == p->device && st.st_ino == p->inode;
}

static bool is_watched(int dir)
{
    return is_at(dir, &place);
}

/* A directory that was made; the mutex is held. */
static void note_made(const char *path)
{
    char parent[512];
    size_t n = strlen(path);
    if (!recording || strncmp(watched, path, n) != 0)
        return;
    const char *slash = strrchr(path, '/');
    must(slash && nabove < sizeof above / sizeof *above);
    struct event *e = push(EVENT_MKDIR);
    snprintf(e->name, sizeof e->name, "%s", slash + 1);
    e->file = nabove;
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    above[nabove++] = place_of(parent);
    if (watched[n] == '\0')
        place = place_of(path);
}

/* A sync of a directory; the mutex is held. */
static void note_sync_dir(int fd)
{
    if (is_watched(fd))
        push(EVENT_SYNC_DIR);
    for (unsigned i = 0; i < nabove; i++)
        if (is_at(fd, &above[i]))
            push(EVENT_SYNC_ABOVE)->file = i;
}

/* ---- what the server calls ------------------------------------------------------------------ */

int __real_close(int fd);
int __wrap_close(int fd);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __real_openat(int dir, const char *name, int flags, ...);
int __wrap_openat(int dir, const char *name, int flags, ...);
ssize_t __real_pwrite(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at);
int __real_fallocate(int fd, int mode, off_t at, off_t n);
int __wrap_fallocate(int fd, int mode, off_t at, off_t n);
int __real_ftruncate(int fd, off_t n);
int __wrap_ftruncate(int fd, off_t n);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);

int __wrap_openat(int dir, const char *name, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? (mode_t)va_arg(ap, int) : 0;
    va_end(ap);
    int fd = __real_openat(dir, name, flags, mode);
    if (fd < 0 || fd >= MAX_FD)
        return fd;
    pthread_mutex_lock(&mutex);
    file_of[fd] = NO_FILE;
    if (is_watched(dir) && (flags & O_ACCMODE) != O_RDONLY) {
        const struct known *k = find(name);
        must(k || (flags & O_CREAT) != 0);
        file_of[fd] = (int)(k && (flags & O_TRUNC) == 0 ? k->file : create(name));
    }
    pthread_mutex_unlock(&mutex);
    return fd;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    int rc = __real_mkdir(path, mode);
    pthread_mutex_lock(&mutex);
    if (rc == 0)
        note_made(path);
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* The next one to get this descriptor may be a directory, whose syncs are of names. */
int __wrap_close(int fd)
{
    pthread_mutex_lock(&mutex);
    if (fd >= 0 && fd < MAX_FD)
        file_of[fd] = NO_FILE;
    pthread_mutex_unlock(&mutex);
    return __real_close(fd);
}

/* The file behind a descriptor; the mutex is held when there is one. */
static bool take_file(int fd, unsigned *file)
{
    pthread_mutex_lock(&mutex);
    bool ours = recording && fd >= 0 && fd < MAX_FD && file_of[fd] != NO_FILE;
    if (ours)
        *file = (unsigned)file_of[fd];
    else
        pthread_mutex_unlock(&mutex);
    return ours;
}

ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at)
{
    unsigned file;
    ssize_t done = __real_pwrite(fd, p, n, at);
    if (done > 0 && take_file(fd, &file)) {
        push_write(file, p, (size_t)done, at);
        pthread_mutex_unlock(&mutex);
    }
    return done;
}

static void note_length(int fd, int64_t length)
{
    unsigned file;
    if (!take_file(fd, &file))
        return;
    struct event *e = push(EVENT_LENGTH);
    e->file = file;
    e->at = length;
    pthread_mutex_unlock(&mutex);
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t n)
{
    int rc = __real_fallocate(fd, mode, at, n);
    if (rc == 0)
        note_length(fd, at + n);
    return rc;
}

int __wrap_ftruncate(int fd, off_t n)
{
    if (atomic_load(&syncs) == SYNCS_NEVER_COME)
        return 0; /* a killed server truncates nothing */
    int rc = __real_ftruncate(fd, n);
    if (rc == 0)
        note_length(fd, n);
    return rc;
}

static void note_sync(int fd, bool done)
{
    unsigned file;
    if (take_file(fd, &file)) {
        must(!is_watched(fd)); /* a file, as it was recorded, and not the directory */
        push(done ? EVENT_SYNC : EVENT_SYNC_FAILED)->file = file;
        pthread_mutex_unlock(&mutex);
        return;
    }
    pthread_mutex_lock(&mutex);
    note_sync_dir(fd);
    pthread_mutex_unlock(&mutex);
}

int __wrap_fdatasync(int fd)
{
    int how = atomic_load(&syncs);
    if (how == SYNCS_WORK && __real_fdatasync(fd) != 0)
        return -1;
    if (how != SYNCS_NEVER_COME)
        note_sync(fd, how == SYNCS_WORK);
    errno = EIO;
    return how == SYNCS_WORK ? 0 : -1;
}

int __wrap_fsync(int fd)
{
    int rc = __real_fsync(fd);
    if (rc == 0)
        note_sync(fd, true);
    return rc;
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    int rc = __real_renameat(from_dir, from, to_dir, to);
    pthread_mutex_lock(&mutex);
    const struct known *k = rc == 0 && is_watched(from_dir) ? find(from) : NULL;
    if (k) {
        unsigned file = k->file;
        struct event *e = push(EVENT_RENAME);
        e->file = file;
        snprintf(e->name, sizeof e->name, "%s", from);
        snprintf(e->renamed, sizeof e->renamed, "%s", to);
        forget(from);
        learn(to, file);
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

int __wrap_unlinkat(int dir, const char *name, int flags)
{
    int rc = __real_unlinkat(dir, name, flags);
    pthread_mutex_lock(&mutex);
    if (rc == 0 && is_watched(dir)) {
        struct event *e = push(EVENT_UNLINK);
        snprintf(e->name, sizeof e->name, "%s", name);
        forget(name);
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* ---- the recorder ------------------------------------------------------------------------------
 */

static void take_existing(const char *dir, const char *name)
{
    char path[512];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDONLY);
    must(fd >= 0 && fstat(fd, &st) == 0);
    uint8_t *p = malloc((size_t)st.st_size + 1);
    must(p && read(fd, p, (size_t)st.st_size) == st.st_size);
    __real_close(fd);
    unsigned file = create(name);
    push_write(file, p, (size_t)st.st_size, 0);
    push(EVENT_SYNC)->file = file;
    free(p);
}

void recorder_set_syncs(enum syncs how)
{
    atomic_store(&syncs, how);
}

void recorder_begin(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    must(d || errno == ENOENT);
    pthread_mutex_lock(&mutex);
    now = (struct recording){0};
    nknown = 0;
    nabove = 0;
    snprintf(watched, sizeof watched, "%s", dir);
    for (size_t i = 0; i < MAX_FD; i++)
        file_of[i] = NO_FILE;
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            take_existing(dir, e->d_name);
    if (d)
        closedir(d);
    push(EVENT_SYNC_DIR);
    place = d ? place_of(dir) : (struct place){0};
    recording = true;
    pthread_mutex_unlock(&mutex);
}

void recorder_ack(int64_t zxid)
{
    pthread_mutex_lock(&mutex);
    if (recording)
        push(EVENT_ACK)->at = zxid;
    pthread_mutex_unlock(&mutex);
}

struct recording recorder_end(void)
{
    pthread_mutex_lock(&mutex);
    struct recording r = now;
    recording = false;
    now = (struct recording){0};
    pthread_mutex_unlock(&mutex);
    return r;
}

void recording_free(struct recording *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->events[i].bytes);
    free(r->events);
    *r = (struct recording){0};
}
