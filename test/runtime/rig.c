#include "rig.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- directories --------------------------------------------------------------------- */

static char scratch[] = "/tmp/clave-drive-XXXXXX";
static pid_t scratch_owner;

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void rig_remove(const char *dir)
{
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_scratch(void)
{
    if (getpid() == scratch_owner)
        rig_remove(scratch);
}

const char *rig_path(const char *dir, const char *name)
{
    static char paths[512][256];
    static size_t n;
    assert_true(n < sizeof paths / sizeof *paths);
    snprintf(paths[n], sizeof paths[n], "%s/%s", dir, name);
    return paths[n++];
}

const char *rig_dir(void)
{
    static unsigned n;
    char name[32];
    if (scratch_owner == 0) {
        assert_non_null(mkdtemp(scratch));
        scratch_owner = getpid();
        atexit(remove_scratch);
    }
    snprintf(name, sizeof name, "%u", n++);
    const char *dir = rig_path(scratch, name);
    assert_int_equal(mkdir(dir, 0700), 0);
    return dir;
}

const char *rig_unix(void)
{
    static char addresses[64][128];
    static size_t n;
    assert_true(n < 64);
    snprintf(addresses[n], sizeof addresses[n], "unix:%s/sock", rig_dir());
    return addresses[n++];
}

void *rig_read(const char *path, size_t *n)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return NULL;
    assert_int_equal(fstat(fd, &st), 0);
    *n = (size_t)st.st_size;
    void *p = malloc(*n + 1);
    assert_int_equal(read(fd, p, *n), st.st_size);
    ((char *)p)[*n] = '\0';
    close(fd);
    return p;
}

void rig_write(const char *path, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), (ssize_t)n);
    close(fd);
}

void rig_without_settings(void)
{
    unsetenv("CLAVE_CONNECT");
    setenv("CLAVE_CONFIG", "/dev/null", 1);
    setenv("CLAVE_SYSTEM_CONFIG", "/dev/null", 1);
}

/* ---- servers ------------------------------------------------------------------------------ */

struct server_run_options rig_options(const char *data, const char *const *listen)
{
    return (struct server_run_options){.data_dir = data,
                                       .listen = listen,
                                       .nlisten = 1,
                                       .engine = {.tick_ms = 100, .max_session_ms = 600000},
                                       .max_per_address = -1};
}

static void *serve(void *arg)
{
    struct rig *r = arg;
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, NULL); /* as the program ignores it */
    r->err = clave__server_run_loop(r->run, r->fault, sizeof r->fault);
    return NULL;
}

struct rig *rig_start_with(const struct server_run_options *o)
{
    struct rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    clave_err err = clave__server_run_new(&r->run, o, r->fault, sizeof r->fault);
    if (err != CLAVE_OK)
        fail_msg("%s: %s", clave_err_name(err), r->fault);
    r->connect = clave__server_run_address(r->run, 0);
    assert_int_equal(pthread_create(&r->thread, NULL, serve, r), 0);
    return r;
}

struct rig *rig_start(const char *data, const char *address)
{
    const char *listen = address ? address : "127.0.0.1:0";
    struct server_run_options o = rig_options(data, &listen);
    return rig_start_with(&o);
}

struct rig *rig;

int rig_start_group(void **state)
{
    (void)state;
    rig = rig_start(rig_dir(), NULL);
    return 0;
}

int rig_stop_group(void **state)
{
    (void)state;
    return rig_stop(rig) == CLAVE_OK ? 0 : -1;
}

clave_err rig_join(struct rig *r, char *fault, size_t cap)
{
    pthread_join(r->thread, NULL);
    clave_err err = r->err;
    if (fault)
        snprintf(fault, cap, "%s", r->fault);
    clave__server_run_free(r->run);
    free(r);
    return err;
}

clave_err rig_stop(struct rig *r)
{
    clave__server_run_stop(r->run);
    return rig_join(r, NULL, 0);
}

/* ---- in a process --------------------------------------------------------------------------- */

static _Noreturn void serve_in_child(const char *data, const char *address, int tell)
{
    const char *listen = address ? address : "127.0.0.1:0";
    struct server_run_options o = rig_options(data, &listen);
    struct server_run *run;
    char fault[1024];
    o.signals = true;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (clave__server_run_new(&run, &o, fault, sizeof fault) != CLAVE_OK) {
        fprintf(stderr, "server: %s\n", fault);
        _exit(1);
    }
    const char *text = clave__server_run_address(run, 0);
    if (write(tell, text, strlen(text)) < 0)
        _exit(1);
    close(tell);
    clave_err err = clave__server_run_loop(run, fault, sizeof fault);
    clave__server_run_free(run);
    _exit(err == CLAVE_OK ? 0 : 2);
}

int rig_unsafe(const char *what)
{
    fprintf(stderr, "SAFETY VIOLATED: %s\n", what);
    return 1;
}

static unsigned count_threads(void)
{
    DIR *d = opendir("/proc/self/task");
    unsigned n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

pid_t rig_fork_alone(void)
{
#ifndef __SANITIZE_THREAD__ /* which has a thread of its own */
    assert_int_equal(count_threads(), 1);
#else
    (void)count_threads;
#endif
    return fork();
}

void rig_fork(struct rig_process *p, const char *data, const char *address)
{
    int tell[2];
    memset(p, 0, sizeof *p);
    assert_int_equal(pipe(tell), 0);
    p->pid = rig_fork_alone();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        close(tell[0]);
        serve_in_child(data, address, tell[1]);
    }
    close(tell[1]);
    ssize_t n = read(tell[0], p->connect, sizeof p->connect - 1);
    close(tell[0]);
    assert_true(n > 0);
}

int rig_kill(struct rig_process *p, int signal)
{
    int status = 0;
    kill(p->pid, signal);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    p->pid = 0;
    return status;
}

void rig_freeze(const struct rig_process *p)
{
    assert_int_equal(kill(p->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(p->pid, NULL, WUNTRACED), p->pid);
}

/* ---- clients ----------------------------------------------------------------------------------
 */

clave_client *rig_session(const char *connect)
{
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = 10000};
    clave_client *s;
    char text[512];
    assert_int_equal(clave_client_open(&s, NULL, connect, &o), CLAVE_OK);
    clave_err err = clave_client_wait(s, RIG_PATIENCE_MS);
    if (err != CLAVE_OK)
        fail_msg("%s: %s: %s", connect, clave_err_name(err),
                 clave_client_errmsg(s, text, sizeof text));
    return s;
}

/* ---- without a server -------------------------------------------------------------------- */

static void rig_on_tick(uv_timer_t *t)
{
    (void)t;
}

void rig_loop_open(uv_loop_t *loop, uv_timer_t *tick)
{
    uv_loop_init(loop);
    uv_timer_init(loop, tick);
    uv_timer_start(tick, rig_on_tick, 10, 10);
}

void rig_loop_close(uv_loop_t *loop, uv_timer_t *tick)
{
    uv_close((uv_handle_t *)tick, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

int rig_dial(int port, int room)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (room > 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}
