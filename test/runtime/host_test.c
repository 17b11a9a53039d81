/* host_test.c - the library inside a program that is in need, or that does what programs do: every
 * test in a process of its own, which it may end or leave without descriptors. */
#include "rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clave/testserver.h"
#include "lib/grants.h"

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
        alarm(RIG_PATIENCE_MS / 1000);
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

static void count_call(clave_async_client *c, clave_state state, clave_err why, void *arg)
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
        clave_client *s;
        unsigned calls = 0;
        clave_client_options o = {.size = sizeof o, .state_cb = count_call, .state_arg = &calls};
        CHECK(n < MOST_DESCRIPTORS);
        leave_descriptors(n, &before);
        err = clave_client_open(&s, NULL, "127.0.0.1:1", &o);
        setrlimit(RLIMIT_NOFILE, &before);
        CHECK(err == CLAVE_OK || (err == CLAVE_EFILES && !s && calls == 0));
        clave_client_close(s, 0);
        CHECK(open_descriptors() <= open + OF_LIBUV);
    }
}

/* The program goes on, nothing is left open, and nobody hears of a session that there is not. */
TEST(a_session_is_opened_with_few_descriptors)
{
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
        CHECK(err == CLAVE_OK || (err == CLAVE_EFILES && !t && *why));
        clave_test_server_free(t);
        CHECK(open_descriptors() <= open + OF_LIBUV);
    }
}

TEST(a_server_is_started_with_few_descriptors)
{
    setenv("TMPDIR", rig_dir(), 1); /* without descriptors nothing can be removed there */
    assert_int_equal(in_child(serve_with_few_descriptors), 0);
}

/* ---- calls from a callback ----------------------------------------------------------------- */

/* What would wait for the loop's thread on that thread, and has no error to give. */
enum waiter { CLOSES_THE_SESSION, FREES_THE_LOOP, FREES_THE_SELECTOR, WAITERS };

static struct misuse {
    enum waiter what;
    clave_loop *loop;
    clave_client *session;
    clave_selector *selector;
} misuse;

static void wait_for_myself(clave_async_client *c, void *arg)
{
    (void)c;
    (void)arg;
    if (misuse.what == CLOSES_THE_SESSION)
        clave_client_close(misuse.session, 1000);
    else if (misuse.what == FREES_THE_LOOP)
        clave_loop_free(misuse.loop);
    else
        clave_selector_free(misuse.selector);
}

static void lead(clave_selector *s, void *arg)
{
    (void)arg;
    while (clave_selector_pause(s, 1000))
        continue;
}

static void misuse_a_callback(void)
{
    clave_selector_options o = {.size = sizeof o, .take = lead};
    CHECK(clave_loop_new(&misuse.loop) == CLAVE_OK);
    CHECK(clave_client_open(&misuse.session, misuse.loop, "127.0.0.1:1", NULL) == CLAVE_OK);
    CHECK(clave_selector_new(&misuse.selector, misuse.session, "/e", &o) == CLAVE_OK);
    CHECK(clave_selector_start(misuse.selector) == CLAVE_OK);
    clave_client_run(misuse.session, wait_for_myself, NULL);
}

/* The program ends and says why, in every build: it would hang. */
TEST(a_callback_that_waits_for_itself)
{
    for (misuse.what = 0; misuse.what < WAITERS; misuse.what++) {
        int status = in_child(misuse_a_callback);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
    }
}

/* ---- forks ------------------------------------------------------------------------------------
 */

static struct inherited {
    clave_test_server *server;
    clave_client *session;
    clave_mutex *lock;
    clave_semaphore *permits;
    clave_lease *permit;
    clave_latch *candidate;
    clave_selector *selector;
} had;

static void ask(void)
{
    char text[200];
    CHECK(clave_client_state(had.session) == CLAVE_STATE_CLOSED);
    CHECK(clave_client_id(had.session) == 0);
    clave_client_errmsg(had.session, text, sizeof text);
    CHECK(strstr(text, "fork"));
    CHECK(!held_for(by_mutex(had.lock), 0) && token_held(by_mutex(had.lock)) == 0);
    CHECK(!held_for(by_lease(had.permit), 0) && token_held(by_lease(had.permit)) == 0);
    CHECK(!clave_latch_has_leadership(had.candidate));
    CHECK(token_held(by_latch(had.candidate)) == 0);
    CHECK(!clave_selector_has_leadership(had.selector));
    CHECK(clave_selector_is_interrupted(had.selector));
    CHECK(!clave_selector_pause(had.selector, 1000));
    CHECK(!*clave_mutex_deadlock(had.lock, text, sizeof text));
}

static void wait_for_nobody(clave_async_client *c, void *arg)
{
    (void)c;
    (void)arg;
}

static void call(void)
{
    clave_lease *more;
    clave_mutex *lock;
    CHECK(clave_client_wait(had.session, -1) == CLAVE_ECLOSED);
    CHECK(clave_exists(had.session, "/", -1, NULL) == CLAVE_ECLOSED);
    CHECK(clave_client_run(had.session, wait_for_nobody, NULL) == CLAVE_ECLOSED);
    CHECK(clave_client_post(had.session, wait_for_nobody, NULL) == CLAVE_ECLOSED);
    CHECK(clave_mutex_new(&lock, had.session, "/m", NULL) == CLAVE_ECLOSED && !lock);
    CHECK(clave_mutex_acquire(had.lock, -1) == CLAVE_ECLOSED);
    CHECK(clave_mutex_release(had.lock) == CLAVE_ECLOSED);
    CHECK(clave_mutex_release_confirmed(had.lock, -1) == CLAVE_ECLOSED);
    CHECK(clave_mutex_cancel_as(had.lock, 1) == CLAVE_ECLOSED);
    CHECK(clave_semaphore_acquire(had.permits, 1, -1, &more) == CLAVE_ECLOSED && !more);
    CHECK(clave_latch_await(had.candidate, -1) == CLAVE_ECLOSED);
    CHECK(clave_latch_await_loss(had.candidate, -1) == CLAVE_ECLOSED);
    CHECK(clave_selector_requeue(had.selector) == CLAVE_ECLOSED);
}

static void give_all_back(void)
{
    clave_selector_free(had.selector);
    clave_latch_free(had.candidate);
    clave_semaphore_free(had.permits);
    clave_mutex_free(had.lock);
    clave_client_close(had.session, -1);
}

static void open_its_own(void)
{
    clave_mutex *lock;
    CHECK(clave_client_open(&had.session, NULL, clave_test_server_connect_string(had.server),
                            NULL) == CLAVE_OK);
    CHECK(clave_mutex_new(&lock, had.session, "/l", NULL) == CLAVE_OK);
    CHECK(clave_mutex_acquire(lock, 100) == CLAVE_EBUSY);
    clave_mutex_free(lock);
    clave_client_close(had.session, 1000);
}

static void use_what_was_inherited(void)
{
    ask();
    call();
    give_all_back();
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    /* TSan knows of no threads that begin after a fork. ASan's allocator does not come through the
     * fork of a threaded program, as libc's does: a lock of it that another thread had is held for
     * ever, and the new thread, which has allocated nothing yet, needs them all. */
    (void)open_its_own;
#else
    open_its_own();
#endif
}

/* It knows that it has nothing, hangs nowhere, and takes nothing from the parent. The last test:
 * there are threads from here on. */
TEST(a_fork_has_nothing)
{
    clave_semaphore_options one = {.size = sizeof one, .limit = 1};
    clave_selector_options o = {.size = sizeof o, .take = lead};
    assert_int_equal(clave_test_server_new(&had.server, NULL), CLAVE_OK);
    had.session = rig_session(clave_test_server_connect_string(had.server));
    assert_int_equal(clave_mutex_new(&had.lock, had.session, "/l", NULL), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(had.lock, RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(clave_semaphore_new(&had.permits, had.session, "/p", &one), CLAVE_OK);
    assert_int_equal(clave_semaphore_acquire(had.permits, 1, RIG_PATIENCE_MS, &had.permit),
                     CLAVE_OK);
    assert_int_equal(clave_latch_new(&had.candidate, had.session, "/c", NULL), CLAVE_OK);
    assert_int_equal(clave_latch_start(had.candidate), CLAVE_OK);
    assert_int_equal(clave_latch_await(had.candidate, RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(clave_selector_new(&had.selector, had.session, "/s", &o), CLAVE_OK);
    assert_int_equal(clave_selector_start(had.selector), CLAVE_OK);
    struct inherited before = had;
    assert_int_equal(in_child(use_what_was_inherited), 0);
    assert_true(held_for(by_mutex(before.lock), 0));
    assert_true(held_for(by_lease(before.permit), 0));
    assert_int_equal(clave_mutex_release_confirmed(before.lock, RIG_PATIENCE_MS), CLAVE_OK);
    give_all_back();
    clave_test_server_free(had.server);
}
