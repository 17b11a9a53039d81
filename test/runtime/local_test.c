/* local_test.c - "local:": started by whoever comes first, once, and again after its end. The
 * server is this program itself, run as `local_test serve --local DIR`. */
#include "rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/client/local_paths.h"
#include "runtime/client/local_serve.h"
#include "runtime/client/local_start.h"

enum { PROCESSES = 8 };

/* ---- as the server -------------------------------------------------------------------- */

static void count_start(const char *dir)
{
    char path[512];
    snprintf(path, sizeof path, "%s/starts", getenv("LOCAL_TEST_NOTES"));
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dprintf(fd, "%ld %s\n", (long)getpid(), dir);
    close(fd);
}

static void on_log(void *arg, int level, const char *msg)
{
    (void)arg;
    if (level == CLAVE_LOG_INFO && strstr(msg, "stopping"))
        fprintf(stderr, "%s\n", msg);
}

static int serve(const char *dir)
{
    const char *idle = getenv("LOCAL_TEST_IDLE_MS");
    struct server_run_options o = {.signals = true, .idle_exit_ms = idle ? atoi(idle) : 5000};
    char fault[512];
    o.engine.tick_ms = 100;
    o.engine.max_session_ms = 60000;
    o.engine.log = on_log;
    count_start(dir);
    clave_err err = clave__local_serve(dir, &o, fault, sizeof fault);
    if (err != CLAVE_OK)
        fprintf(stderr, "%s\n", fault);
    return err == CLAVE_OK ? 0 : 1;
}

/* ---- as the test ------------------------------------------------------------------------ */

/* A directory for the server, named to it and to us by the environment. */
static const char *fresh(void)
{
    const char *dir = rig_path(rig_dir(), "state");
    setenv("CLAVE_LOCAL_DIR", dir, 1);
    setenv("LOCAL_TEST_NOTES", rig_dir(), 1);
    unsetenv("LOCAL_TEST_IDLE_MS");
    clave__local_set_program("/proc/self/exe");
    return dir;
}

static pid_t server_pid(const char *dir)
{
    size_t n;
    char *text = rig_read(rig_path(dir, "clave.lock"), &n);
    pid_t pid = text ? (pid_t)atol(text) : 0;
    free(text);
    return pid;
}

/* The server is nobody's child here (and in a container perhaps nobody's to reap): it has
 * ended when its lock is free. */
static void await_end(const char *dir)
{
    int64_t until = clave_now() + RIG_PATIENCE_MS;
    int fd = open(rig_path(dir, "clave.lock"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    while (flock(fd, LOCK_SH | LOCK_NB) != 0) {
        if (clave_now() > until)
            fail_msg("the server of %s does not end", dir);
        sched_yield();
    }
    close(fd);
}

static void end_server(const char *dir)
{
    pid_t pid = server_pid(dir);
    if (pid > 1 && kill(pid, SIGTERM) == 0)
        await_end(dir);
}

/* ---- as a client ------------------------------------------------------------------------ */

/* This program once more, as `local_test PART FD`, with this descriptor: it goes on by exec, since
 * there may be threads here (see rig_fork_alone). */
static pid_t start_client(const char *part, int fd)
{
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    pid_t pid = fork();
    if (pid == 0) {
        fcntl(fd, F_SETFD, 0);
        execl("/proc/self/exe", "local_test", part, number, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

static int come_first(int go)
{
    char byte;
    clave_client *s;
    if (read(go, &byte, 1) < 0)
        return 1;
    clave_create_options seq = {.size = sizeof seq, .mode = CLAVE_PERSISTENT_SEQUENTIAL};
    if (clave_client_open(&s, NULL, "local:", NULL) != CLAVE_OK)
        return 2;
    if (clave_client_wait(s, RIG_PATIENCE_MS) != CLAVE_OK)
        return 3;
    if (clave_create(s, "/c-", "", 0, &seq, 10000, NULL) != CLAVE_OK)
        return 4;
    clave_client_close(s, 1000);
    return 0;
}

static void eight_first_clients_find_one_server(void **state)
{
    (void)state;
    const char *dir = fresh();
    pid_t pids[PROCESSES];
    int go[2];
    clave_reply *r;
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    for (unsigned i = 0; i < PROCESSES; i++)
        pids[i] = start_client("come_first", go[0]);
    close(go[0]);
    close(go[1]); /* all at once */
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    clave_client *s = rig_session("local:");
    assert_int_equal(clave_children(s, "/", 5000, &r), CLAVE_OK);
    assert_safe(r->nnames == PROCESSES + 1, "a lost write, or two servers for one directory");
    clave_reply_free(r);
    clave_client_close(s, 5000);
    end_server(dir);
}

/* Its client is gone without a word. */
static int leave_a_session(int tell)
{
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = 30000};
    clave_create_options eph = {.size = sizeof eph, .mode = CLAVE_EPHEMERAL};
    clave_client *s;
    if (clave_client_open(&s, NULL, NULL, &o) != CLAVE_OK ||
        clave_create(s, "/e", "", 0, &eph, 15000, NULL) != CLAVE_OK)
        return 1;
    int64_t id = clave_client_id(s);
    _exit(write(tell, &id, sizeof id) == (ssize_t)sizeof id ? 0 : 1);
}

static void it_ends_when_idle_and_comes_back_with_the_session(void **state)
{
    (void)state;
    const char *dir = fresh();
    clave_reply *r;
    setenv("LOCAL_TEST_IDLE_MS", "50", 1);
    int tell[2];
    int64_t id = 0;
    assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
    pid_t child = start_client("leave_a_session", tell[1]);
    close(tell[1]); /* or it would be waited for when the child has failed */
    assert_int_equal(read(tell[0], &id, sizeof id), (ssize_t)sizeof id);
    waitpid(child, NULL, 0);
    await_end(dir);
    clave_client *s = rig_session("local:");
    assert_int_equal(clave_exists(s, "/e", 5000, &r), CLAVE_OK);
    assert_true(r->stat.ephemeral_owner == id);
    clave_reply_free(r);
    clave_client_close(s, 5000);
    await_end(dir);
}

/* The client's own session goes on, too, when the server is killed under it. */
static void a_killed_server_is_replaced(void **state)
{
    (void)state;
    const char *dir = fresh();
    clave_client *s = rig_session("local:");
    int64_t id = clave_client_id(s);
    for (unsigned i = 0; i < 3; i++) {
        pid_t pid = server_pid(dir);
        int64_t until = clave_now() + RIG_PATIENCE_MS;
        assert_int_equal(kill(pid, SIGKILL), 0);
        /* The first call may be lost with the connection, and a read is sent again; or it is
         * answered by the one that is about to die. When the lock is free nobody here can see: the
         * next one has it at once. */
        do
            assert_int_equal(clave_exists(s, "/", RIG_PATIENCE_MS, NULL), CLAVE_OK);
        while (server_pid(dir) == pid && clave_now() < until);
        assert_int_not_equal(server_pid(dir), pid);
        assert_true(clave_client_id(s) == id);
    }
    clave_client_close(s, 5000);
    end_server(dir);
}

/* What the server has for it, as the kernel says; "" when it is closed. */
static const char *server_file(pid_t pid, int fd, char *buf, size_t cap)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)pid, fd);
    ssize_t n = readlink(path, buf, cap - 1);
    buf[n > 0 ? n : 0] = '\0';
    return buf;
}

static int lose_the_standard_files(int unused)
{
    const char *dir = getenv("CLAVE_LOCAL_DIR");
    (void)unused;
    clave_client *s;
    if (clave_client_open(&s, NULL, "local:", NULL) != CLAVE_OK ||
        clave_client_wait(s, RIG_PATIENCE_MS) != CLAVE_OK)
        return 1;
    for (int fd = 0; fd <= 2; fd++)
        close(fd);
    if (kill(server_pid(dir), SIGKILL) != 0)
        return 2;
    if (clave_exists(s, "/", RIG_PATIENCE_MS, NULL) != CLAVE_OK)
        return 3;
    clave_client_close(s, 1000);
    return 0;
}

/* A client that has closed its standard files starts a server that has them. */
static void a_client_without_standard_files(void **state)
{
    (void)state;
    const char *dir = fresh();
    char file[256];
    int status;
    pid_t child = start_client("lose_the_standard_files", -1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pid_t pid = server_pid(dir);
    assert_string_equal(server_file(pid, 0, file, sizeof file), "/dev/null");
    assert_string_equal(server_file(pid, 1, file, sizeof file), "/dev/null");
    assert_non_null(strstr(server_file(pid, 2, file, sizeof file), "/serve.log"));
    end_server(dir);
}

static int forks; /* that ran what is to be run around the forks of this program */

static void on_fork(void)
{
    forks++;
}

/* A fork with threads about waits for whoever holds a lock, runs what libraries of the program
 * wish to do around it, and may stop for ever there. The server is started without. */
static void a_start_is_no_fork_of_the_program(void **state)
{
    (void)state;
    const char *dir = fresh();
    assert_int_equal(pthread_atfork(on_fork, on_fork, NULL), 0);
    clave_client *s = rig_session("local:");
    clave_client_close(s, 5000);
    assert_int_equal(forks, 0);
    end_server(dir);
}

/* Counts the warnings that a lock excludes this user alone. */
static void on_client_log(void *arg, int level, const char *msg)
{
    unsigned *warnings = arg;
    if (strstr(msg, "other users and other machines are not excluded")) {
        assert_int_equal(level, CLAVE_LOG_WARN);
        assert_non_null(strstr(msg, getenv("CLAVE_LOCAL_DIR")));
        ++*warnings;
    }
}

/* Once a session, when something is held there. */
static void a_lock_at_a_server_that_nobody_named_is_told_of(void **state)
{
    (void)state;
    static const struct {
        const char *connect, *local;
        unsigned warnings;
    } rows[] = {{NULL, "", 1}, {NULL, "warn", 1}, {NULL, "yes", 0}, {"local:", "", 0}};
    const char *dir = fresh();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned warnings = 0;
        const clave_client_options o = {
            .size = sizeof o, .log = on_client_log, .log_arg = &warnings};
        clave_client *s;
        clave_mutex *m;
        setenv("CLAVE_LOCAL", rows[i].local, 1);
        assert_int_equal(clave_client_open(&s, NULL, rows[i].connect, &o), CLAVE_OK);
        assert_int_equal(clave_exists(s, "/", RIG_PATIENCE_MS, NULL), CLAVE_OK);
        assert_int_equal(warnings, 0);
        assert_int_equal(clave_mutex_new(&m, s, "/told", NULL), CLAVE_OK);
        for (unsigned twice = 0; twice < 2; twice++) {
            assert_int_equal(clave_mutex_acquire(m, RIG_PATIENCE_MS), CLAVE_OK);
            assert_int_equal(clave_mutex_release(m), CLAVE_OK);
        }
        clave_mutex_free(m);
        clave_client_close(s, 5000);
        assert_int_equal(warnings, rows[i].warnings);
    }
    unsetenv("CLAVE_LOCAL");
    end_server(dir);
}

/* At once: it would wait for ever. */
static void assert_cannot(const char *why)
{
    clave_client *s;
    char text[1024];
    assert_int_equal(clave_client_open(&s, NULL, "local:", NULL), CLAVE_OK);
    assert_int_equal(clave_client_wait(s, -1), CLAVE_ELOCAL);
    clave_client_errmsg(s, text, sizeof text);
    if (!strstr(text, why))
        fail_msg("'%s' does not say '%s'", text, why);
    clave_client_close(s, 100);
}

static void why_it_cannot_start_is_said(void **state)
{
    (void)state;
    const char *dir = fresh();
    clave__local_set_program("/nowhere/clave");
    assert_cannot("'/nowhere/clave': is it installed? (CLAVE_BIN");
    clave__local_set_program("/bin/true"); /* nothing that serves */
    assert_cannot("ended at once: it reported nothing");
    clave__local_set_program("/bin/echo");
    assert_cannot("ended at once: it reported nothing");
    clave__local_set_program("/proc/self/exe");
    mkdir(dir, 0700);
    rig_write(rig_path(dir, "photo.jpg"), "x", 1);
    assert_cannot("photo.jpg");
    setenv("CLAVE_LOCAL_DIR", "/proc/nowhere", 1);
    assert_cannot("/proc/nowhere");
}

/* The session has not given up: it is there when the fault is mended. */
static void a_fault_that_is_mended(void **state)
{
    (void)state;
    const char *dir = fresh();
    clave_client *s;
    mkdir(dir, 0700);
    rig_write(rig_path(dir, "photo.jpg"), "x", 1);
    assert_int_equal(clave_client_open(&s, NULL, "local:", NULL), CLAVE_OK);
    assert_int_equal(clave_client_wait(s, -1), CLAVE_ELOCAL);
    assert_int_equal(unlink(rig_path(dir, "photo.jpg")), 0);
    assert_int_equal(clave_exists(s, "/", RIG_PATIENCE_MS, NULL), CLAVE_OK);
    assert_int_equal(clave_client_wait(s, 0), CLAVE_OK);
    clave_client_close(s, 5000);
    end_server(dir);
}

static void a_long_path_has_its_socket_elsewhere(void **state)
{
    (void)state;
    struct local_paths p;
    char dir[200], fault[256];
    snprintf(dir, sizeof dir, "%s/%0100d", rig_dir(), 7);
    setenv("XDG_RUNTIME_DIR", rig_dir(), 1);
    assert_int_equal(clave__local_paths(&p, dir, fault, sizeof fault), CLAVE_OK);
    assert_string_equal(p.dir, dir);
    assert_memory_equal(p.socket, getenv("XDG_RUNTIME_DIR"), strlen(getenv("XDG_RUNTIME_DIR")));
    fresh();
    setenv("CLAVE_LOCAL_DIR", dir, 1);
    clave_client_close(rig_session("local:"), 5000);
    end_server(dir);
    unsetenv("XDG_RUNTIME_DIR");
    assert_int_equal(clave__local_paths(&p, dir, fault, sizeof fault), CLAVE_OK);
    assert_memory_equal(p.socket, "/tmp/clave-", 11);
}

static void where_the_directory_is(void **state)
{
    (void)state;
    struct local_paths p;
    char fault[256];
    unsetenv("CLAVE_LOCAL_DIR");
    setenv("XDG_STATE_HOME", "/x/state", 1);
    setenv("HOME", "/home/me", 1);
    assert_int_equal(clave__local_paths(&p, NULL, fault, sizeof fault), CLAVE_OK);
    assert_string_equal(p.dir, "/x/state/clave");
    assert_string_equal(p.socket, "/x/state/clave/clave.sock");
    setenv("XDG_STATE_HOME", "relative", 1);
    assert_int_equal(clave__local_paths(&p, NULL, fault, sizeof fault), CLAVE_OK);
    assert_string_equal(p.dir, "/home/me/.local/state/clave");
    setenv("CLAVE_LOCAL_DIR", "/own", 1);
    assert_int_equal(clave__local_paths(&p, NULL, fault, sizeof fault), CLAVE_OK);
    assert_string_equal(p.dir, "/own");
}

static void never_is_never(void **state)
{
    (void)state;
    const char *dir = fresh();
    struct stat st;
    clave_client_close(rig_session("local:"), 5000); /* not even one that is there */
    setenv("CLAVE_LOCAL", "never", 1);
    assert_cannot("CLAVE_LOCAL=never");
    end_server(dir);
    dir = fresh();
    assert_cannot("CLAVE_LOCAL=never");
    assert_int_not_equal(stat(dir, &st), 0);
    setenv("CLAVE_LOCAL", "yes", 1);
    clave_client_close(rig_session("local:"), 5000);
    end_server(dir);
    unsetenv("CLAVE_LOCAL");
}

static void root_passes_over_what_is_anothers(void **state)
{
    (void)state;
    struct local_paths p;
    char fault[256];
    const char *home = rig_path(rig_dir(), "another's");
    unsetenv("CLAVE_LOCAL_DIR");
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", home, 1);
    assert_int_equal(mkdir(home, 0755), 0);
    assert_int_equal(clave__local_paths(&p, NULL, fault, sizeof fault), CLAVE_OK);
    assert_null(p.passed_over);
    assert_memory_equal(p.dir, home, strlen(home));
    if (geteuid() != 0 || chown(home, 65534, 65534) != 0) {
        print_message("not root: that is not tested\n");
        skip();
    }
    assert_int_equal(clave__local_paths(&p, NULL, fault, sizeof fault), CLAVE_OK);
    assert_string_equal(p.passed_over, "HOME");
    assert_null(strstr(p.dir, home));
    setenv("XDG_STATE_HOME", rig_path(home, "state"), 1); /* which is not there yet */
    setenv("HOME", "/", 1);
    assert_int_equal(clave__local_paths(&p, NULL, fault, sizeof fault), CLAVE_OK);
    assert_string_equal(p.passed_over, "XDG_STATE_HOME");
    assert_null(strstr(p.dir, home));
}

static int be_client(const char *part, int fd)
{
    clave__local_set_program("/proc/self/exe");
    return strcmp(part, "come_first") == 0        ? come_first(fd)
           : strcmp(part, "leave_a_session") == 0 ? leave_a_session(fd)
                                                  : lose_the_standard_files(fd);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        return serve(argv[3]);
    rig_without_settings();
    if (argc == 3)
        return be_client(argv[1], atoi(argv[2]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_first_clients_find_one_server),
        cmocka_unit_test(it_ends_when_idle_and_comes_back_with_the_session),
        cmocka_unit_test(a_killed_server_is_replaced),
        cmocka_unit_test(a_client_without_standard_files),
        cmocka_unit_test(a_start_is_no_fork_of_the_program),
        cmocka_unit_test(why_it_cannot_start_is_said),
        cmocka_unit_test(a_fault_that_is_mended),
        cmocka_unit_test(a_lock_at_a_server_that_nobody_named_is_told_of),
        cmocka_unit_test(a_long_path_has_its_socket_elsewhere),
        cmocka_unit_test(never_is_never),
        cmocka_unit_test(where_the_directory_is),
        cmocka_unit_test(root_passes_over_what_is_anothers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
