/* local_start.c - connects to this user's local server, and starts it if nothing listens
 * (local_paths.h). Called by resolve.c, off the loop's thread. The host program sees neither a
 * child nor a signal. */
#include "runtime/client/local_start.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clave/uv.h"
#include "runtime/client/client_settings.h"
#include "runtime/client/local_paths.h"
#include "runtime/client/local_serve.h"

enum {
    DIAL_MS = 10000, /* how long a server may take to answer */
    BACKOFF_MIN_MS = 2,
    BACKOFF_MAX_MS = 100,
    LOG_MAX = 1 << 20, /* serve.log starts over when it is larger */
    MUTE_STARTS =
        3, /* one server may have been killed without a report; this many in a row were not */
    MAX_CLOSED = 1 << 16,
};

static const char *program; /* NULL: $CLAVE_BIN, or "clave" */

void clave__local_set_program(const char *name)
{
    program = name;
}

/* ---- starting ------------------------------------------------------------------------------- */

/* True if this process or the machine is short of something at the moment. */
static bool local_is_short_of(int number)
{
    return number == EMFILE || number == ENFILE || number == ENOMEM || number == ENOBUFS;
}

/* Separates faults that pass from those that do not. */
static enum local_word local_when_again(clave_err err)
{
    return clave__start_error_passes(err) ? LOCAL_SAYS_LATER : LOCAL_SAYS_NEVER;
}

/* Everything that the children need, prepared before the fork: between fork and exec, a program
 * with threads may call only what is async-signal-safe. */
struct launch {
    const char *program;
    char *argv[5];
    int null, log, says[2];
    int held[3], nheld; /* see local_open_null */
    int nfiles;         /* all descriptors are below this */
    off_t log_from;     /* the size of the log before: what is before it is not this server's */
    char excuse[400];
};

static void local_launch_close(struct launch *l)
{
    const int fds[] = {l->null, l->log, l->says[0], l->says[1]};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    while (l->nheld > 0)
        close(l->held[--l->nheld]);
}

/* Keeps descriptors 0 to 2 occupied until the server was started. If the program has closed them,
 * files opened here would get their numbers. They would then be in the way of the server's own; and
 * libuv, which opens a pipe in every fork, breaks if that pipe is among them. */
static void local_open_null(struct launch *l)
{
    while ((l->null = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && l->null <= 2)
        assert(l->nheld < (int)(sizeof l->held / sizeof *l->held));
    l->held[l->nheld++] = l->null;
}

static void local_log_path(const struct local_paths *p, char out[PATH_MAX + 16])
{
    snprintf(out, PATH_MAX + 16, "%s/serve.log", p->dir);
}

static clave_err local_launch_open(struct launch *l, const struct local_paths *p,
                                   const struct fault *f)
{
    char log[PATH_MAX + 16];
    struct stat st;
    const char *env = getenv("CLAVE_BIN");
    static char verb[] = "serve", flag[] = "--local", name[] = "clave";
    struct rlimit files;
    *l = (struct launch){.null = -1, .log = -1, .says = {-1, -1}, .nfiles = MAX_CLOSED};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < MAX_CLOSED)
        l->nfiles = (int)files.rlim_cur;
    l->program = env && *env ? env : "clave";
    if (program)
        l->program = program;
    char *const argv[] = {name, verb, flag, (char *)(uintptr_t)p->dir, NULL};
    _Static_assert(sizeof argv == sizeof l->argv, "all of it fits");
    memcpy(l->argv, argv, sizeof argv);
    snprintf(l->excuse, sizeof l->excuse,
             "cannot run '%.300s': is it installed? (CLAVE_BIN names another)", l->program);
    local_log_path(p, log);
    int truncate = stat(log, &st) == 0 && st.st_size > LOG_MAX ? O_TRUNC : 0;
    local_open_null(l);
    if (l->null >= 0)
        l->log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | truncate, 0600);
    if (l->log < 0 || pipe2(l->says, O_CLOEXEC) != 0) {
        clave_err err = clave__start_error_errno(f, errno, "cannot open", log);
        local_launch_close(l);
        return err;
    }
    l->log_from = lseek(l->log, 0, SEEK_END);
    return CLAVE_OK;
}

/* The program could not be run: reports that in its place. */
static _Noreturn void local_excuse(int fd, const char *text, int error)
{
    bool passes = error == ENOMEM || error == EAGAIN || error == ETXTBSY;
    char word = passes ? LOCAL_SAYS_LATER : LOCAL_SAYS_NEVER;
    ssize_t ignored = write(fd, &word, 1);
    ignored = write(fd, text, strlen(text));
    (void)ignored;
    _exit(127);
}

/* Closes the host program's files, which the server must not keep open. */
static void local_close_others(const struct launch *l)
{
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
        return;
    for (int fd = 3; fd < l->nfiles; fd++) /* Linux before 5.9 */
        close(fd);
}

/* Resets all signals, so that none stays ignored or blocked as in the host program. */
static void local_reset_signals(void)
{
    const struct sigaction fresh = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int sig = 1; sig <= SIGRTMAX; sig++)
        sigaction(sig, &fresh, NULL); /* fails for those that cannot be set */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs in the grandchild, which is neither a child of the host program nor in the session of a
 * terminal. */
static _Noreturn void local_run_server(const struct launch *l)
{
    local_reset_signals();
    if (dup2(l->null, 0) == 0 && dup2(l->says[1], 1) == 1 && dup2(l->log, 2) == 2 &&
        chdir("/") == 0) {
        local_close_others(l);
        execvp(l->program, l->argv);
        local_excuse(1, l->excuse, errno);
    }
    _exit(127);
}

/* Copies the process and does nothing else. fork() waits for locks that other threads of the host
 * program hold, and runs fork handlers of its libraries; either could block a child forever.
 * posix_spawn would do as well, but makes children that the host program itself would have to wait
 * for. */
static pid_t local_bare_fork(void)
{
#if defined CLAVE_HAS__FORK
    return _Fork();
#elif defined SYS_fork
    return (pid_t)syscall(SYS_fork);
#else
    return (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
#endif
}

/* Signals are blocked until they are reset, so no signal handler of the host program runs in the
 * children. */
static pid_t start_detached(const struct launch *l)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = local_bare_fork();
    if (child == 0) {
        setsid();
        pid_t server = local_bare_fork();
        if (server == 0)
            local_run_server(l);
        if (server < 0)
            local_excuse(l->says[1],
                         "the system starts no process for it: a limit of processes or memory",
                         errno);
        _exit(0);
    }
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return child;
}

static clave_err local_spawn(const struct launch *l, const struct fault *f)
{
    pid_t child = start_detached(l);
    if (child < 0)
        return clave__start_error(
            f, CLAVE_ENOMEM, "cannot start a process for the local server: %s", strerror(errno));
    /* the host program may reap all children itself, so ECHILD is just as good */
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    return CLAVE_OK;
}

/* Reads what has arrived until then, up to the end or until the buffer is full. Returns false if
 * more may come. */
static bool local_read_word(int fd, int64_t until, char *buf, size_t cap)
{
    assert(cap > 1);
    size_t n = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = until - clave_now();
        int ready = poll(&p, 1, left > 0 ? (int)left : 0);
        ssize_t got = ready > 0 ? read(fd, buf + n, cap - 1 - n) : -1;
        if (got > 0)
            n += (size_t)got;
        buf[n] = '\0';
        if (got == 0 || n == cap - 1)
            return true;
        if (ready == 0 || (got < 0 && errno != EINTR))
            return n > 0;
    }
}

/* Finds out why a server ended without a report: the last line that it logged. */
static void local_last_line(const struct local_paths *p, off_t from, const struct fault *f)
{
    char path[PATH_MAX + 16], buf[1025] = "";
    local_log_path(p, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    if (size - from > (off_t)sizeof buf - 1)
        from = size - (off_t)sizeof buf + 1;
    ssize_t n = fd >= 0 ? pread(fd, buf, sizeof buf - 1, from) : 0;
    if (fd >= 0)
        close(fd);
    while (n > 0 && buf[n - 1] == '\n')
        n--;
    buf[n > 0 ? n : 0] = '\0';
    const char *line = strrchr(buf, '\n');
    line = line ? line + 1 : buf;
    clave__start_error(f, CLAVE_ELOCAL, "the local server in %s ended at once: %s", p->dir,
                       *line ? line : "it reported nothing");
}

/* Sets the fault, unless the outcome is READY or BUSY. */
static enum local_word local_dial_start(const struct local_paths *p, int64_t until,
                                        const struct fault *f)
{
    struct launch l;
    char said[LOCAL_WORD_CAP];
    clave_err err = clave__local_make_dirs(p, f);
    if (err == CLAVE_OK)
        err = local_launch_open(&l, p, f);
    if (err != CLAVE_OK)
        return local_when_again(err);
    err = local_spawn(&l, f);
    close(l.says[1]);
    l.says[1] = -1;
    bool heard = err == CLAVE_OK && local_read_word(l.says[0], until, said, sizeof said);
    local_launch_close(&l);
    if (err != CLAVE_OK)
        return local_when_again(err);
    if (!heard)
        return LOCAL_SAYS_BUSY; /* it is still recovering; other clients find out how that ends */
    switch (said[0]) {
    case LOCAL_SAYS_READY:
    case LOCAL_SAYS_BUSY:
        break;
    case LOCAL_SAYS_LATER:
    case LOCAL_SAYS_NEVER:
        clave__start_error(f, CLAVE_ELOCAL, "the local server cannot start: %s", said + 1);
        break;
    default: /* the program that was run is not our server */
        said[0] = LOCAL_SAYS_NOTHING;
        local_last_line(p, l.log_from, f);
    }
    return (enum local_word)said[0];
}

/* ---- connecting-------------------------------------------------------------------------- */

/* Returns a descriptor or a negated errno. */
static int local_connect_to(const struct local_paths *p)
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

/* Checks that the other end is ours. A socket in a place where others can write, such as /tmp, or
 * in another user's directory is not trusted, since whatever is sent to it would be disclosed. */
static bool local_dial_is_ours(int fd, const struct local_paths *p, const struct fault *f)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0) {
        clave__start_error_errno(f, errno, "cannot find out who owns the server at", p->socket);
        return false;
    }
    if (peer.uid == geteuid())
        return true;
    clave__start_error(
        f, CLAVE_ELOCAL,
        "the server at %s belongs to user %u, and this process to user %u (CLAVE_LOCAL_DIR "
        "names another directory; unix:%s uses this server)",
        p->socket, (unsigned)peer.uid, (unsigned)geteuid(), p->socket);
    return false;
}

/* Something is wrong with the socket; if its directory is the cause, that explains it better. */
static void local_tell_no_way(const struct local_paths *p, int err, const struct fault *f)
{
    if (clave__local_make_dirs(p, f) == CLAVE_OK)
        clave__start_error_errno(f, err, "cannot connect to the local server at", p->socket);
}

/* True if nothing listens: the server was never started, ended when idle, was killed, or is about
 * to listen. */
static bool local_nobody_there(int err)
{
    return err == ENOENT || err == ECONNREFUSED;
}

static void local_dial_pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

/* Decides from the outcome of starting a server whether to continue trying. */
static bool local_dial_goes_on(enum local_word word, unsigned *mute, bool *for_good)
{
    *mute = word == LOCAL_SAYS_NOTHING ? *mute + 1 : 0;
    *for_good = word == LOCAL_SAYS_NEVER || *mute == MUTE_STARTS;
    return !*for_good && word != LOCAL_SAYS_LATER;
}

/* True if "local:" is forbidden. A user who forbids it must not find out later that others did not
 * see its locks. And a caller with fewer rights must not decide through the environment what is run
 * with ours. */
static bool local_dial_is_ruled_out(const struct fault *f)
{
    struct client_settings s = {.connect = NULL};
    if (getauxval(AT_SECURE)) {
        clave__start_error(f, CLAVE_ELOCAL,
                           "a program that runs with more rights than its caller's (set-user-ID, "
                           "file capabilities) uses no local server: 'connect = HOSTS' in "
                           "/etc/clave/config names another");
        return true;
    }
    clave__client_settings_find_never(&s);
    if (s.local != CLIENT_LOCAL_NEVER)
        return false;
    clave__start_error(f, CLAVE_ELOCAL,
                       "%s, and no other server is named (set CLAVE_CONNECT, or 'connect = HOSTS' "
                       "in ~/.config/clave/config or /etc/clave/config)",
                       s.local_from);
    return true;
}

int clave__local_dial(bool *for_good, char *fault, size_t cap)
{
    const struct fault f = {fault, cap};
    struct local_paths p;
    int64_t until = clave_now() + DIAL_MS, start_at = 0;
    unsigned mute = 0;
    fault[0] = '\0';
    *for_good = local_dial_is_ruled_out(&f) || clave__local_paths(&p, NULL, fault, cap) != CLAVE_OK;
    if (*for_good)
        return -1;
    for (int wait = BACKOFF_MIN_MS; clave_now() < until;) {
        int fd = local_connect_to(&p);
        if (fd >= 0 && local_dial_is_ours(fd, &p, &f)) {
            fault[0] = '\0'; /* from an earlier start */
            return fd;
        }
        if (fd >= 0) {
            close(fd);
            *for_good = true;
            return -1;
        }
        if (!local_nobody_there(-fd) && fd != -EAGAIN) {
            local_tell_no_way(&p, -fd, &f);
            *for_good = !local_is_short_of(-fd);
            return -1;
        }
        if (local_nobody_there(-fd) && clave_now() >= start_at) {
            enum local_word word = local_dial_start(&p, until, &f);
            if (!local_dial_goes_on(word, &mute, for_good))
                return -1;
            if (word == LOCAL_SAYS_READY)
                continue;
            /* Another process holds the directory and does not listen yet, or no longer does: try
             * often, and replace it when it is gone. */
            start_at = clave_now() + BACKOFF_MAX_MS;
        }
        local_dial_pause_ms(wait);
        wait = wait * 2 < BACKOFF_MAX_MS ? wait * 2 : BACKOFF_MAX_MS;
    }
    clave__start_error(&f, CLAVE_EUNREACHABLE, "the local server at %s did not answer within %d s",
                       p.socket, DIAL_MS / 1000);
    return -1;
}
