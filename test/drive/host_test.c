/* host_test.c - the library inside a program that is in need, or that does what programs do: every
 * test in a process of its own, which it may end or leave without descriptors. */
#include "rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clave/testserver.h"

/* In the child a test says what it found wrong, and ends. */
#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                             \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* How waitpid gives its end. SIGALRM: it would have gone on for ever. */
static int in_child(void (*test)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* not cmocka's */
        signal(SIGABRT, SIG_DFL);
        alarm(3 * RIG_PATIENCE_MS / 1000);
        test();
        _exit(0);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* ---- descriptors ------------------------------------------------------------------------ */

/* libuv keeps two for all loops of a process. */
enum { MOST_DESCRIPTORS = 40, OF_LIBUV = 2 };

static int open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    CHECK(d != NULL);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Of all that are open by then the next ones are the last. */
static void leave_descriptors(rlim_t n, struct rlimit *before)
{
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct rlimit now;
    CHECK(next >= 0 && getrlimit(RLIMIT_NOFILE, before) == 0);
    close(next);
    now = (struct rlimit){.rlim_cur = (rlim_t)next + n, .rlim_max = before->rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &now) == 0);
}

static void count_call(clave_client *c, clave_state state, clave_err why, void *arg)
{
    unsigned *calls = arg;
    (void)c;
    (void)state;
    (void)why;
    ++*calls;
}

static void open_with_few_descriptors(void)
{
    clave_err err = CLAVE_EIO;
    int open = open_descriptors();
    for (rlim_t n = 0; err != CLAVE_OK; n++) {
        struct rlimit before;
        clave_session *s;
        unsigned calls = 0;
        clave_client_options o = {.size = sizeof o, .state_cb = count_call, .state_arg = &calls};
        CHECK(n < MOST_DESCRIPTORS);
        leave_descriptors(n, &before);
        err = clave_session_open(&s, NULL, "127.0.0.1:1", &o);
        setrlimit(RLIMIT_NOFILE, &before);
        CHECK(err == CLAVE_OK || (err == CLAVE_EIO && !s && calls == 0));
        clave_session_close(s, 0);
        CHECK(open_descriptors() <= open + OF_LIBUV);
    }
}

/* The program goes on, nothing is left open, and nobody hears of a session that there is not. */
static void a_session_is_opened_with_few_descriptors(void **state)
{
    (void)state;
    assert_int_equal(in_child(open_with_few_descriptors), 0);
}

static void keep_text(void *arg, int level, const char *text)
{
    char *kept = arg;
    (void)level;
    snprintf(kept, 200, "%s", text);
}

static void serve_with_few_descriptors(void)
{
    clave_err err = CLAVE_EIO;
    int open = open_descriptors();
    for (rlim_t n = 0; err != CLAVE_OK; n++) {
        struct rlimit before;
        char why[200] = "";
        clave_test_server_options o = {.size = sizeof o, .log = keep_text, .log_arg = why};
        clave_test_server *t;
        CHECK(n < MOST_DESCRIPTORS);
        leave_descriptors(n, &before);
        err = clave_test_server_new(&t, &o);
        setrlimit(RLIMIT_NOFILE, &before);
        CHECK(err == CLAVE_OK || (err == CLAVE_EIO && !t && *why));
        clave_test_server_free(t);
        CHECK(open_descriptors() <= open + OF_LIBUV);
    }
}

static void a_server_is_started_with_few_descriptors(void **state)
{
    (void)state;
    setenv("TMPDIR", rig_dir(), 1); /* without descriptors nothing can be removed there */
    assert_int_equal(in_child(serve_with_few_descriptors), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_opened_with_few_descriptors),
        cmocka_unit_test(a_server_is_started_with_few_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
