/* local.c - the server of this user, on demand. */
#include "drive/local.h"

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
#include "drive/fault.h"

enum {
    SOCKET_MAX = 100, /* sun_path has 108, and other systems less */
    DIAL_MS = 10000,  /* until a server that keeps us waiting is given up */
    BACKOFF_MIN_MS = 2,
    BACKOFF_MAX_MS = 100,
    IDLE_EXIT_MS = 60000,
    LOG_MAX = 1 << 20, /* serve.log begins anew when it is larger */
};

/* What the server says on its descriptor 1. Nothing at all: it failed. */
enum { SAYS_READY = 'r', SAYS_BUSY = 'b' };

static const char *program; /* NULL: $CLAVE_BIN, or "clave" */

void clave__local_set_program(const char *name)
{
    program = name;
}

/* ---- paths ----------------------------------------------------------------------------- */

static bool fits(int n, size_t cap)
{
    return n > 0 && (size_t)n < cap;
}

static bool default_dir(char *out, size_t cap)
{
    const char *own = getenv("CLAVE_LOCAL_DIR"), *xdg = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    struct passwd entry, *found = NULL;
    char buf[1024];
    if (own && *own)
        return fits(snprintf(out, cap, "%s", own), cap);
    if (xdg && *xdg == '/') /* the XDG specification: relative paths are to be ignored */
        return fits(snprintf(out, cap, "%s/clave", xdg), cap);
    if (!home || *home != '/') {
        if (getpwuid_r(getuid(), &entry, buf, sizeof buf, &found) != 0 || !found)
            return false;
        home = found->pw_dir;
    }
    return fits(snprintf(out, cap, "%s/.local/state/clave", home), cap);
}

/* FNV-1a: directories with sockets in one place must not meet. */
static uint64_t hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3u;
    return h;
}

/* In the directory, unless the kernel could not take so long a path. */
static bool socket_path(struct local_paths *p)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n = snprintf(p->socket, sizeof p->socket, "%s/clave.sock", p->dir);
    if (fits(n, SOCKET_MAX + 1))
        return true;
    if (runtime && *runtime == '/') {
        n = snprintf(p->socket, sizeof p->socket, "%s/clave/%016" PRIx64 ".sock", runtime,
                     hash(p->dir));
        if (fits(n, SOCKET_MAX + 1))
            return true;
    }
    n = snprintf(p->socket, sizeof p->socket, "/tmp/clave-%u/%016" PRIx64 ".sock",
                 (unsigned)getuid(), hash(p->dir));
    return fits(n, SOCKET_MAX + 1);
}

clave_err clave__local_paths(struct local_paths *out, const char *dir, char *fault, size_t cap)
{
    const struct fault f = {fault, cap};
    char given[PATH_MAX];
    bool known = dir ? fits(snprintf(given, sizeof given, "%s", dir), sizeof given)
                     : default_dir(given, sizeof given);
    if (!known)
        return clave__fault(&f, CLAVE_EINVAL,
                            "no directory for the local server: set CLAVE_LOCAL_DIR, or HOME");
    /* The server's own directory is "/", so the path has to be absolute. */
    char cwd[PATH_MAX];
    int n = snprintf(out->dir, sizeof out->dir, "%s", given);
    if (given[0] != '/')
        n = getcwd(cwd, sizeof cwd) ? snprintf(out->dir, sizeof out->dir, "%s/%s", cwd, given) : -1;
    if (!fits(n, sizeof out->dir - 16) || !socket_path(out))
        return clave__fault(&f, CLAVE_EINVAL, "the path of the local server is too long: %.80s...",
                            given);
    return CLAVE_OK;
}

/* The directory of the socket must be ours alone, above all in /tmp. */
static clave_err claim_dir(const char *dir, const struct fault *f)
{
    struct stat st;
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return clave__fault_errno(f, errno, "cannot create", dir);
    if (lstat(dir, &st) != 0)
        return clave__fault_errno(f, errno, "cannot look at", dir);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
        return clave__fault(f, CLAVE_EIO, "%s is not a directory that only this user can write to",
                            dir);
    return CLAVE_OK;
}

static clave_err make_dirs(const struct local_paths *p, const struct fault *f)
{
    char part[PATH_MAX];
    for (size_t i = 1; p->dir[i] != '\0'; i++) {
        if (p->dir[i] != '/')
            continue;
        memcpy(part, p->dir, i);
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return clave__fault_errno(f, errno, "cannot create", part);
    }
    clave_err err = claim_dir(p->dir, f);
    size_t n = (size_t)(strrchr(p->socket, '/') - p->socket);
    memcpy(part, p->socket, n);
    part[n] = '\0';
    return err == CLAVE_OK && strcmp(part, p->dir) != 0 ? claim_dir(part, f) : err;
}

/* ---- the client's side: starting -------------------------------------------------------- */

/* Everything the children need, made before the fork: between fork and exec of a program with
 * threads only system calls are safe. */
struct launch {
    const char *program;
    char *argv[5];
    int null, log, says[2];
    char excuse[400];
};

static void launch_close(struct launch *l)
{
    const int fds[] = {l->null, l->log, l->says[0], l->says[1]};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static clave_err launch_open(struct launch *l, const struct local_paths *p, const struct fault *f)
{
    char log[PATH_MAX + 16];
    struct stat st;
    const char *env = getenv("CLAVE_BIN");
    static char verb[] = "serve", flag[] = "--local", name[] = "clave";
    *l = (struct launch){.null = -1, .log = -1, .says = {-1, -1}};
    l->program = program ? program : env && *env ? env : "clave";
    char *const argv[] = {name, verb, flag, (char *)(uintptr_t)p->dir, NULL};
    memcpy(l->argv, argv, sizeof argv);
    snprintf(l->excuse, sizeof l->excuse,
             "clave: cannot run '%.300s': is it installed? (CLAVE_BIN names another)\n",
             l->program);
    snprintf(log, sizeof log, "%s/serve.log", p->dir);
    int truncate = stat(log, &st) == 0 && st.st_size > LOG_MAX ? O_TRUNC : 0;
    l->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    l->log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | truncate, 0600);
    if (l->null < 0 || l->log < 0 || pipe2(l->says, O_CLOEXEC) != 0) {
        clave_err err = clave__fault_errno(f, errno, "cannot open", log);
        launch_close(l);
        return err;
    }
    return CLAVE_OK;
}

/* In the grandchild, which is nobody's child and in no terminal's session. */
static _Noreturn void run_server(const struct launch *l)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(l->null, 0) == 0 && dup2(l->says[1], 1) == 1 && dup2(l->log, 2) == 2 &&
        chdir("/") == 0) {
        syscall(SYS_close_range, 3u, ~0u, 0u); /* files of the host program: not ours to hold */
        execvp(l->program, l->argv);
    }
    ssize_t ignored = write(2, l->excuse, strlen(l->excuse));
    (void)ignored;
    _exit(127);
}

static void spawn(const struct launch *l)
{
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0)
            run_server(l);
        _exit(0);
    }
    /* The host may reap all children by itself: ECHILD is as good. */
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* The server's word: READY, BUSY, or 0 when it ended without one. */
static char listen_to(int fd, int64_t until)
{
    char word = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = until - clave_now();
        int n = poll(&p, 1, left > 0 ? (int)left : 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            return SAYS_BUSY; /* it still recovers: others find out how that ends */
        ssize_t got = read(fd, &word, 1);
        if (got < 0 && errno == EINTR)
            continue;
        return got == 1 ? word : 0;
    }
}

/* Why it failed: the last line it wrote. */
static void last_line(const struct local_paths *p, char *out, size_t cap)
{
    char path[PATH_MAX + 16], buf[1025] = "";
    snprintf(path, sizeof path, "%s/serve.log", p->dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    off_t from = size > (off_t)sizeof buf - 1 ? size - (off_t)sizeof buf + 1 : 0;
    ssize_t n = fd >= 0 ? pread(fd, buf, sizeof buf - 1, from) : 0;
    if (fd >= 0)
        close(fd);
    while (n > 0 && buf[n - 1] == '\n')
        n--;
    buf[n > 0 ? n : 0] = '\0';
    const char *line = strrchr(buf, '\n');
    line = line ? line + 1 : buf;
    snprintf(out, cap, "the local server could not be started: %s (%s)",
             *line ? line : "it said nothing", path);
}

/* SAYS_READY, SAYS_BUSY, or 0 and the fault. */
static char start(const struct local_paths *p, int64_t until, const struct fault *f)
{
    struct launch l;
    if (make_dirs(p, f) != CLAVE_OK || launch_open(&l, p, f) != CLAVE_OK)
        return 0;
    spawn(&l);
    close(l.says[1]);
    l.says[1] = -1;
    char word = listen_to(l.says[0], until);
    launch_close(&l);
    if (word == 0)
        last_line(p, f->text, f->cap);
    return word;
}

/* ---- the client's side: dialling ------------------------------------------------------------ */

/* A descriptor, or a negated errno. */
static int connect_to(const struct local_paths *p)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    strcpy(addr.sun_path, p->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&addr, sizeof addr) == 0)
        return fd;
    int err = errno;
    close(fd);
    return -err;
}

/* Nobody listens: never started, ended when idle, killed, or about to begin. */
static bool nobody_there(int err)
{
    return err == ENOENT || err == ECONNREFUSED;
}

static void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

int clave__local_dial(char *fault, size_t cap)
{
    const struct fault f = {fault, cap};
    struct local_paths p;
    int64_t until = clave_now() + DIAL_MS, start_at = 0;
    fault[0] = '\0';
    if (clave__local_paths(&p, NULL, fault, cap) != CLAVE_OK)
        return -1;
    for (int wait = BACKOFF_MIN_MS; clave_now() < until;) {
        int fd = connect_to(&p);
        if (fd >= 0)
            return fd;
        if (!nobody_there(-fd) && fd != -EAGAIN) {
            clave__fault_errno(&f, -fd, "cannot connect to the local server at", p.socket);
            return -1;
        }
        if (nobody_there(-fd) && clave_now() >= start_at) {
            char word = start(&p, until, &f);
            if (word == 0)
                return -1;
            if (word == SAYS_READY)
                continue;
            /* Somebody holds the directory and does not listen yet, or no more: it is looked
             * for often, and replaced when it is gone. */
            start_at = clave_now() + BACKOFF_MAX_MS;
        }
        pause_ms(wait);
        wait = wait * 2 < BACKOFF_MAX_MS ? wait * 2 : BACKOFF_MAX_MS;
    }
    clave__fault(&f, CLAVE_EUNREACHABLE, "the local server at %s did not answer within %d s",
                 p.socket, DIAL_MS / 1000);
    return -1;
}

/* ---- the server's side --------------------------------------------------------------------------
 */

/* To the client that waits at the other end of a pipe; then descriptor 1 is nobody's. */
static void say(char word)
{
    struct stat st;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    if (fstat(1, &st) != 0 || !S_ISFIFO(st.st_mode))
        return;                           /* started by hand */
    sigaction(SIGPIPE, &ignore, &before); /* it may not have waited */
    ssize_t ignored = write(1, &word, 1);
    (void)ignored;
    sigaction(SIGPIPE, &before, NULL);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, 1);
        close(null);
    }
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
        err = make_dirs(&p, &f);
    if (err != CLAVE_OK)
        return err;
    snprintf(address, sizeof address, "unix:%s", p.socket);
    own.data_dir = p.dir;
    own.listen = &listen;
    own.nlisten = 1;
    if (own.idle_exit_ms == 0)
        own.idle_exit_ms = IDLE_EXIT_MS;
    err = clave__server_run_new(&r, &own, fault, cap);
    if (err == CLAVE_EINUSE) { /* the other one of two that were started at once is first */
        say(SAYS_BUSY);
        return CLAVE_OK;
    }
    if (err != CLAVE_OK)
        return err;
    say(SAYS_READY);
    err = clave__server_run_loop(r, fault, cap);
    clave__server_run_free(r);
    return err;
}
