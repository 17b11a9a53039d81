/* mirror.c - `clave mirror`: keeps a directory equal to a tree of nodes. recipe/mirror.h says what
 * has to be where, on the loop's thread; this file makes it so, on the main thread, which may wait
 * for the disk as long as it takes.
 *
 * Whoever reads a file sees the old content or the new one: a new file, or directory, is made under
 * the name "%tmp" and takes the place of what was there by one rename. The directory is walked from
 * its own descriptor without following symlinks, so a link that somebody puts in there is replaced
 * and leads nowhere. The file "%mirror" says whose the directory is: without it, nothing is changed
 * in a directory that is not empty, because everything that is not of the tree is deleted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/participant.h"
#include "recipe/mirror.h"

#define MARK "%mirror"
#define TEMPORARY "%tmp"

enum {
    MIRROR_EXEC = FLAG_LONG,
    MIRROR_MODE,
    MIRROR_OWNER,
    MIRROR_FSYNC,
    MIRROR_ONCE,
    BATCH = 64,      /* steps taken at a time */
    GATHER_MS = 50,  /* without a change: the burst is over */
    RETRY_MS = 1000, /* after the disk has failed, unless there is news */
    DEPTH_MAX = 512, /* of directories */
};

struct disk_step {
    char *path, *file;
    enum mirror_kind kind;
    void *data;
    size_t len;
    bool has_data;
    const char *fault;
};

struct mirror_run {
    struct options *o;
    const char *path, *dir, *command;
    mode_t mode;
    uid_t uid; /* (uid_t)-1: unchanged, as for gid */
    gid_t gid;
    bool sync, once;

    clave_client *client;
    int wake; /* an eventfd: the loop's thread has news */
    int root; /* the directory */

    /* Used on the loop's thread only. */
    struct mirror *mirror;
    clave_err err;

    struct disk_step steps[BATCH];
    size_t nsteps;
    bool current; /* as of the newest batch, which was all there was */
    char **made;  /* while the directory is swept: the names of all that belongs there, sorted */
    size_t nmade, made_cap;
    bool told; /* that the disk has failed, since the directory was equal to the tree */
};

/* ---- on the loop's thread -------------------------------------------------------------------- */

static void mirror_on_changed(void *arg)
{
    (void)!write(*(int *)arg, &(uint64_t){1}, sizeof(uint64_t));
}

static void mirror_begin(clave_async_client *c, void *arg)
{
    struct mirror_run *r = arg;
    r->err = clave__mirror_new(&r->mirror, c, r->path, mirror_on_changed, &r->wake);
}

static void mirror_finish(clave_async_client *c, void *arg)
{
    struct mirror_run *r = arg;
    (void)c;
    clave__mirror_free(r->mirror);
}

/* false: no memory. */
static bool mirror_copy_step(struct disk_step *to, const struct mirror_step *s)
{
    *to = (struct disk_step){.path = strdup(s->path),
                             .file = strdup(s->file),
                             .kind = s->kind,
                             .data = malloc(s->len + 1),
                             .len = s->len,
                             .has_data = s->has_data,
                             .fault = s->fault};
    if (to->data && s->len > 0)
        memcpy(to->data, s->data, s->len);
    return to->path && to->file && to->data;
}

static void mirror_take(clave_async_client *c, void *arg)
{
    struct mirror_run *r = arg;
    struct mirror_step s;
    (void)c;
    while (r->nsteps < BATCH && clave__mirror_next(r->mirror, &s))
        if (!mirror_copy_step(&r->steps[r->nsteps++], &s))
            r->err = CLAVE_ENOMEM;
    r->current = r->nsteps < BATCH && clave__mirror_is_current(r->mirror);
    if (r->err == CLAVE_OK)
        r->err = clave__mirror_err(r->mirror);
}

static void mirror_take_again(clave_async_client *c, void *arg)
{
    struct mirror_run *r = arg;
    (void)c;
    for (size_t i = 0; i < r->nsteps; i++)
        clave__mirror_again(r->mirror, r->steps[i].path);
}

/* ---- the disk -------------------------------------------------------------------------------- */

static int remove_at(int at, const char *name, int depth);

static int remove_below(int fd, int depth)
{
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return -1;
    }
    int failed = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            failed |= remove_at(dirfd(d), e->d_name, depth + 1);
    closedir(d);
    return failed;
}

/* Deletes whatever is there; a symlink, not what it leads to. 0, also if there was nothing; -1. */
static int remove_at(int at, const char *name, int depth)
{
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    int fd =
        depth < DEPTH_MAX ? openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        return -1;
    (void)remove_below(fd, depth); /* what is left keeps the directory */
    return unlinkat(at, name, AT_REMOVEDIR);
}

/* "%tmp" takes the place of `name`. A file takes that of a file by a rename; where one of the two
 * is a directory they are exchanged, or, on a file system that cannot, one after the other. */
static int put_in_place(const struct mirror_run *r, int at, const char *name, bool is_directory)
{
    struct stat there;
    bool exchanges = fstatat(at, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                     (is_directory || S_ISDIR(there.st_mode));
    if (exchanges && renameat2(at, TEMPORARY, at, name, RENAME_EXCHANGE) == 0) {
        if (remove_at(at, TEMPORARY, 0) != 0)
            return -1;
    } else if ((exchanges && remove_at(at, name, 0) != 0) ||
               renameat(at, TEMPORARY, at, name) != 0) {
        return -1;
    }
    return r->sync ? fsync(at) : 0;
}

static int write_all(int fd, const void *data, size_t len)
{
    for (const char *p = data; len > 0;) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* A regular file with just this content, mode and owner. */
static bool is_as_wanted(const struct mirror_run *r, int at, const char *name, const void *data,
                         size_t len)
{
    struct stat st;
    int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    char *now = malloc(len + 1);
    bool same = now && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size == len &&
                (st.st_mode & 07777) == r->mode && (r->uid == (uid_t)-1 || st.st_uid == r->uid) &&
                (r->gid == (gid_t)-1 || st.st_gid == r->gid) && st.st_nlink == 1;
    same =
        same && read(fd, now, len + 1) == (ssize_t)len && (len == 0 || memcmp(now, data, len) == 0);
    free(now);
    close(fd);
    return same;
}

static int write_file(const struct mirror_run *r, int at, const char *name, const void *data,
                      size_t len)
{
    if (is_as_wanted(r, at, name, data, len))
        return 0;
    if (remove_at(at, TEMPORARY, 0) != 0)
        return -1;
    int fd = openat(at, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    int failed =
        write_all(fd, data, len) != 0 ||
        ((r->uid != (uid_t)-1 || r->gid != (gid_t)-1) && fchown(fd, r->uid, r->gid) != 0) ||
        fchmod(fd, r->mode) != 0 || (r->sync && fsync(fd) != 0);
    int error = errno;
    if (close(fd) != 0 && !failed) {
        failed = 1;
        error = errno;
    }
    if (!failed)
        return put_in_place(r, at, name, false);
    (void)remove_at(at, TEMPORARY, 0);
    errno = error;
    return -1;
}

/* Whoever may read a file may look into its directory. */
static mode_t directory_mode(const struct mirror_run *r)
{
    return r->mode | 0700 | (r->mode & 0444) >> 2;
}

static int dress_directory(const struct mirror_run *r, int fd)
{
    if ((r->uid != (uid_t)-1 || r->gid != (gid_t)-1) && fchown(fd, r->uid, r->gid) != 0)
        return -1;
    return fchmod(fd, directory_mode(r));
}

/* "%data" in a directory is as it has to be. */
static int write_own_data(const struct mirror_run *r, int dir, const struct disk_step *s)
{
    return s->has_data ? write_file(r, dir, MIRROR_DATA, s->data, s->len)
                       : remove_at(dir, MIRROR_DATA, 0);
}

static int make_directory(const struct mirror_run *r, int at, const char *name,
                          const struct disk_step *s)
{
    enum { HOW = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    int fd = openat(at, name, HOW), failed;
    if (fd >= 0) {
        failed = dress_directory(r, fd) != 0 || write_own_data(r, fd, s) != 0;
        close(fd);
        return failed ? -1 : 0;
    }
    if (remove_at(at, TEMPORARY, 0) != 0 || mkdirat(at, TEMPORARY, 0700) != 0 ||
        (fd = openat(at, TEMPORARY, HOW)) < 0)
        return -1;
    failed = dress_directory(r, fd) != 0 || write_own_data(r, fd, s) != 0;
    close(fd);
    return failed ? -1 : put_in_place(r, at, name, true);
}

/* Opens the directory that the file is in. -1: it is not there, or is none. */
static int open_parent(const struct mirror_run *r, const char *file, const char **name)
{
    int at = fcntl(r->root, F_DUPFD_CLOEXEC, 0);
    for (const char *slash; at >= 0 && (slash = strchr(file, '/')); file = slash + 1) {
        char part[NAME_MAX + 1];
        snprintf(part, sizeof part, "%.*s", (int)(slash - file), file);
        int next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(at);
        at = next;
    }
    *name = file;
    return at;
}

/* 0, or -1 and errno. */
static int do_step(const struct mirror_run *r, const struct disk_step *s)
{
    const char *name;
    if (!*s->file)
        return write_own_data(r, r->root, s);
    int at = open_parent(r, s->file, &name), failed;
    if (at < 0) /* what is not there needs no deleting */
        return s->kind == MIRROR_NOTHING && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
                   ? 0
                   : -1;
    if (s->kind == MIRROR_NOTHING && s->fault && strlen(name) > NAME_MAX)
        failed = 0;
    else if (s->kind == MIRROR_NOTHING)
        failed = remove_at(at, name, 0);
    else if (s->kind == MIRROR_FILE)
        failed = write_file(r, at, name, s->data, s->len);
    else
        failed = make_directory(r, at, name, s);
    int error = errno;
    close(at);
    errno = error;
    return failed;
}

/* ---- what does not belong there -------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* false: no memory. */
static bool note_made(struct mirror_run *r, const struct disk_step *s)
{
    const char *slash = *s->file ? "/" : "";
    for (int own = 0; own <= (s->kind == MIRROR_DIRECTORY && s->has_data); own++) {
        if (r->nmade == r->made_cap) {
            size_t cap = r->made_cap ? 2 * r->made_cap : 256;
            char **made = realloc(r->made, cap * sizeof *made);
            if (!made)
                return false;
            r->made = made;
            r->made_cap = cap;
        }
        if (asprintf(&r->made[r->nmade], "%s%s%s", s->file, own ? slash : "",
                     own ? MIRROR_DATA : "") < 0)
            return false;
        r->nmade++;
    }
    return true;
}

static void forget_made(struct mirror_run *r)
{
    for (size_t i = 0; i < r->nmade; i++)
        free(r->made[i]);
    free(r->made);
    r->made = NULL;
    r->nmade = r->made_cap = 0;
}

/* Deletes in the directory at `fd`, whose name is `dir` and which is closed, what no step has made.
 */
static int sweep(struct mirror_run *r, int fd, const char *dir, int depth)
{
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    int failed = d ? 0 : -1;
    for (struct dirent *e; d && (e = readdir(d));) {
        char *name = NULL;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            (!*dir && strcmp(e->d_name, MARK) == 0))
            continue;
        if (asprintf(&name, "%s%s%s", dir, *dir ? "/" : "", e->d_name) < 0) {
            failed = -1;
            break;
        }
        if (r->nmade == 0 || !bsearch(&name, r->made, r->nmade, sizeof *r->made, compare_names))
            failed |= remove_at(dirfd(d), e->d_name, 0);
        else if (depth < DEPTH_MAX) {
            int below =
                openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (below >= 0)
                failed |= sweep(r, below, name, depth + 1);
        }
        free(name);
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    return failed;
}

static int sweep_all(struct mirror_run *r)
{
    if (r->nmade > 0)
        qsort(r->made, r->nmade, sizeof *r->made, compare_names);
    int failed = sweep(r, openat(r->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "", 0);
    forget_made(r);
    return failed;
}

/* ---- the directory itself -------------------------------------------------------------------- */

static bool is_empty(int fd)
{
    DIR *d = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    bool empty = d;
    for (struct dirent *e; d && (e = readdir(d));)
        empty &= strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    if (d)
        closedir(d);
    return empty;
}

/* Opens the directory, or makes it, and sees to its mark. Called when there is a first step, which
 * there always is, so that nothing is touched for a tree that cannot be read. Returns an exit code.
 */
static int open_directory(struct mirror_run *r)
{
    char *mine = NULL, found[4096];
    if (mkdir(r->dir, 0777) != 0 && errno != EEXIST)
        return diag_end(r->o, r->path, EXIT_IO, "cannot make %s: %s", r->dir, strerror(errno));
    r->root = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->root < 0)
        return diag_end(r->o, r->path, EXIT_IO, "cannot open %s: %s", r->dir, strerror(errno));
    if (asprintf(&mine, "clave mirror %s\n", r->path) < 0)
        return diag_err(r->o, r->path, CLAVE_ENOMEM, NULL);
    int fd = openat(r->root, MARK, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), code = EXIT_OK;
    ssize_t n = fd < 0 ? 0 : read(fd, found, sizeof found);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && ((size_t)n != strlen(mine) || memcmp(found, mine, (size_t)n) != 0))
        code = diag_end(r->o, r->path, EXIT_REFUSED,
                        "%s is the mirror of another path: the file %s in it says which", r->dir,
                        MARK);
    else if (fd < 0 && !is_empty(r->root))
        code = diag_end(r->o, r->path, EXIT_REFUSED,
                        "%s is not empty, and what is not of the tree would be deleted: name an "
                        "empty directory, or one that was a mirror of this path before",
                        r->dir);
    else if (fd < 0) {
        const struct mirror_run plain = {.mode = 0644, .uid = (uid_t)-1, .gid = (gid_t)-1};
        if (write_file(&plain, r->root, MARK, mine, strlen(mine)) != 0)
            code =
                diag_end(r->o, r->path, EXIT_IO, "cannot write to %s: %s", r->dir, strerror(errno));
    }
    free(mine);
    return code;
}

/* ---- the work -------------------------------------------------------------------------------- */

static void drop_steps(struct mirror_run *r)
{
    for (size_t i = 0; i < r->nsteps; i++) {
        free(r->steps[i].path);
        free(r->steps[i].file);
        free(r->steps[i].data);
    }
    r->nsteps = 0;
}

/* Does the steps of this batch. false: some have failed, and will come again. */
static bool do_steps(struct mirror_run *r, bool sweeps)
{
    size_t left = 0, all = r->nsteps;
    for (size_t i = 0; i < r->nsteps; i++) {
        struct disk_step *s = &r->steps[i];
        char shown[PARTICIPANT_TEXT_CAP];
        if (s->fault)
            diag(r->o, "%s %s: it is left out",
                 participant_text_printable(s->path, shown, sizeof shown), s->fault);
        bool failed = do_step(r, s) != 0;
        if (failed && !r->told)
            diag(r->o, "%s: cannot write it to %s: %s; trying again",
                 participant_text_printable(s->path, shown, sizeof shown), r->dir, strerror(errno));
        r->told |= failed;
        if (sweeps && s->kind != MIRROR_NOTHING && !note_made(r, s))
            r->err = CLAVE_ENOMEM;
        if (failed) {
            struct disk_step kept = *s; /* to the front */
            *s = r->steps[left];
            r->steps[left++] = kept;
        }
    }
    r->nsteps = left;
    if (left > 0)
        (void)clave_client_run(r->client, mirror_take_again, r);
    r->nsteps = all;
    drop_steps(r);
    return left == 0;
}

static void run_command(struct mirror_run *r)
{
    posix_spawn_file_actions_t files;
    char shell[] = "sh", flag[] = "-c";
    char *text = strdup(r->command), *argv[] = {shell, flag, text, NULL};
    pid_t pid;
    int status = 0;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    int error = text ? posix_spawn(&pid, "/bin/sh", &files, NULL, argv, environ) : ENOMEM;
    posix_spawn_file_actions_destroy(&files);
    free(text);
    while (error == 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            error = errno;
    if (error != 0)
        diag(r->o, "%s: cannot run the command: %s", r->path, strerror(error));
    else if (status != 0)
        diag(r->o, "%s: the command ended with %s %d: %s", r->path,
             WIFSIGNALED(status) ? "signal" : "code",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), r->command);
}

/* Waits for news, or until the time is over (-1: for ever). false: there were none. */
static bool await_news(const struct mirror_run *r, int64_t ms)
{
    struct pollfd p = {.fd = r->wake, .events = POLLIN};
    uint64_t n;
    if (poll(&p, 1, ms > INT_MAX ? INT_MAX : (int)ms) <= 0)
        return false;
    (void)!read(r->wake, &n, sizeof n);
    return true;
}

/* All that there was is done: the directory equals the tree. */
static void at_rest(struct mirror_run *r, bool first)
{
    r->told = false;
    if (first && sweep_all(r) != 0)
        diag(r->o, "%s: something in %s that is not of the tree could not be deleted", r->path,
             r->dir);
}

/* Returns an exit code, when it is over. */
static int mirror_loop(struct mirror_run *r)
{
    bool first = true, news = true; /* since the command has run */
    for (;;) {
        clave_err err = clave_client_run(r->client, mirror_take, r);
        if (err == CLAVE_OK)
            err = r->err;
        if (err == CLAVE_OK && r->nsteps > 0) {
            int code = r->root < 0 ? open_directory(r) : EXIT_OK; /* the tree is known */
            if (code != EXIT_OK)
                return code;
            news = true;
            if (!do_steps(r, first))
                (void)await_news(r, RETRY_MS);
            continue;
        }
        if (err == CLAVE_OK && !r->current) {
            if (!await_news(r, r->once ? r->o->timeout_ms : -1) && r->once)
                err = CLAVE_ETIMEDOUT;
            else
                continue;
        }
        if (err != CLAVE_OK)
            return diag_err(r->o, r->path, err, r->client);
        at_rest(r, first);
        first = false;
        if (!r->once && await_news(r, news ? GATHER_MS : -1))
            continue;
        news = false;
        if (r->command)
            run_command(r);
        if (r->once)
            return EXIT_OK;
    }
}

static int mirror_open(struct mirror_run *r)
{
    r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->wake < 0)
        return diag_end(r->o, r->path, EXIT_INTERNAL, "%s", strerror(errno));
    int code = connect_open(r->o, NULL, &r->client);
    if (code != EXIT_OK)
        return code;
    clave_err err = clave_sync(r->client, "/", r->o->timeout_ms);
    if (err == CLAVE_OK)
        err = clave_exists(r->client, r->path, r->o->timeout_ms, NULL);
    if (err == CLAVE_ENONODE && !r->once) {
        diag(r->o, "%s: there is no such node yet: %s stays empty until there is one", r->path,
             r->dir);
        err = CLAVE_OK;
    }
    if (err == CLAVE_OK)
        err = clave_client_run(r->client, mirror_begin, r);
    if (err == CLAVE_OK)
        err = r->err;
    if (err != CLAVE_OK)
        code = diag_err(r->o, r->path, err, r->client);
    else
        code = mirror_loop(r);
    drop_steps(r);
    forget_made(r);
    (void)clave_client_run(r->client, mirror_finish, r);
    connect_close(r->client);
    return code;
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* A number. false: it is none. */
static bool mirror_number(const char *text, unsigned base, unsigned long max, unsigned long *out)
{
    char *end;
    errno = 0;
    *out = strtoul(text, &end, (int)base);
    return *text >= '0' && *text <= '9' && !*end && errno == 0 && *out <= max;
}

/* "USER", "USER:GROUP" or ":GROUP", by names or numbers. false, after a message. */
static bool mirror_take_owner(struct mirror_run *r)
{
    char user[256], *group;
    unsigned long n;
    snprintf(user, sizeof user, "%s", r->o->value);
    group = strchr(user, ':');
    if (group)
        *group++ = '\0';
    const struct passwd *pw = *user ? getpwnam(user) : NULL;
    const struct group *gr = group && *group ? getgrnam(group) : NULL;
    bool known = *user || (group && *group);
    if (pw)
        r->uid = pw->pw_uid;
    else if (*user && (known = mirror_number(user, 10, UINT32_MAX - 1, &n)))
        r->uid = (uid_t)n;
    if (gr)
        r->gid = gr->gr_gid;
    else if (known && group && *group && (known = mirror_number(group, 10, UINT32_MAX - 1, &n)))
        r->gid = (gid_t)n;
    if (!known)
        diag_usage(r->o, "--owner %s: no such user or group", r->o->value);
    return known;
}

/* false, after a message. */
static bool mirror_take_flag(struct mirror_run *r, int id)
{
    unsigned long mode;
    switch (id) {
    case MIRROR_EXEC:
        r->command = r->o->value;
        return true;
    case MIRROR_MODE:
        if (mirror_number(r->o->value, 8, 0777, &mode)) {
            r->mode = (mode_t)mode;
            return true;
        }
        diag_usage(r->o, "--mode %s: it is an octal number up to 777", r->o->value);
        return false;
    case MIRROR_OWNER:
        return mirror_take_owner(r);
    case MIRROR_FSYNC:
        return r->sync = true;
    default:
        return r->once = true;
    }
}

static int run_mirror(struct options *o, int argc, char **argv)
{
    struct mirror_run r = {
        .o = o, .mode = 0644, .uid = (uid_t)-1, .gid = (gid_t)-1, .wake = -1, .root = -1};
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        if (!mirror_take_flag(&r, id))
            return EXIT_USAGE;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 2, 2))
        return EXIT_USAGE;
    r.path = o->argv[0];
    r.dir = o->argv[1];
    if (!connect_path_ok(o, r.path))
        return EXIT_PATH;
    int code = mirror_open(&r);
    if (r.wake >= 0)
        close(r.wake);
    if (r.root >= 0)
        close(r.root);
    return code;
}

static const struct flag flags[] = {
    {MIRROR_EXEC, "exec", "CMD", "a shell command to run after each burst of changes"},
    {MIRROR_MODE, "mode", "MODE", "the mode of the files, in octal; directories get x for r [644]"},
    {MIRROR_OWNER, "owner", "USER[:GROUP]", "the owner of the files and directories"},
    {MIRROR_FSYNC, "fsync", NULL, "write each change to the disk before making the next"},
    {MIRROR_ONCE, "once", NULL, "end when the directory equals the tree"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_mirror = {
    .name = "mirror",
    .args = "PATH DIR",
    .summary = "Keep a directory equal to a tree of nodes",
    .text =
        "A node is a file with its data; a node with children is a directory, with its own data\n"
        "in the file %data. In names % is written %25. Files are replaced by a rename, so that\n"
        "a reader sees the old or the new content. What is in DIR and not in the tree is\n"
        "deleted: DIR must be empty, or have been a mirror of PATH before. With --once there must\n"
        "be a node at PATH; otherwise DIR is left as it is.\n",
    .flags = flags,
    .max_args = -1,
    .runs_command = true,
    .run = run_mirror,
};
