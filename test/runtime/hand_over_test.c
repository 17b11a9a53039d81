/* hand_over_test.c - a session passes from one process to another through a file: which files are
 * refused, that one is good for one use, and what is left when either process is killed at any
 * moment. */
#include "rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clave/clave.h"
#include "clave/uv.h"

enum { PATIENCE = 20000 };

static const char *connect_to; /* in a child; NULL: the test's own server */

/* A client and what it holds at /l. */
struct holder {
    clave_client *client;
    clave_mutex *mutex;
    clave_grant *grant;
};

static clave_err holder_open(struct holder *h, const char *file, int64_t within_ms)
{
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.session_timeout_ms = 2000;
    o.resume_file = file;
    *h = (struct holder){.client = NULL};
    clave_err err = clave_client_open(&h->client, NULL, connect_to ? connect_to : rig->connect, &o);
    if (err == CLAVE_OK)
        err = clave_client_wait(h->client, PATIENCE);
    if (err == CLAVE_OK)
        err = clave_mutex_new(&h->mutex, h->client, "/l", NULL);
    if (err == CLAVE_OK)
        err = clave_mutex_acquire(h->mutex, within_ms);
    return err == CLAVE_OK ? clave_mutex_grant(h->mutex, &h->grant) : err;
}

static void holder_close(struct holder *h)
{
    clave_grant_free(h->grant);
    clave_mutex_free(h->mutex);
    clave_client_close(h->client, PATIENCE);
}

static const char *errmsg(clave_client *c)
{
    static char text[512];
    return clave_client_errmsg(c, text, sizeof text);
}

static bool exists(const char *file)
{
    return access(file, F_OK) == 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

TEST(the_hold_passes_through_a_file)
{
    const char *file = rig_path(rig_dir(), "session");
    struct stat st;
    struct holder old, new;
    assert_int_equal(holder_open(&old, NULL, PATIENCE), CLAVE_OK);
    assert_false(clave_grant_is_resumed(old.grant));
    int64_t token = clave_grant_token(old.grant);
    assert_int_equal(clave_client_hand_over(old.client, file, PATIENCE), CLAVE_OK);
    assert_false(clave_grant_valid_for(old.grant, 0));
    assert_int_equal(clave_client_state(old.client), CLAVE_STATE_CLOSED);
    assert_int_equal(clave_client_hand_over(old.client, file, PATIENCE), CLAVE_ECLOSED);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_false(exists(rig_path(rig_dir(), "session.tmp")));
    assert_int_equal(holder_open(&new, file, PATIENCE), CLAVE_OK);
    assert_false(exists(file));
    assert_true(clave_grant_is_resumed(new.grant));
    assert_true(clave_grant_token(new.grant) == token);
    assert_true(clave_grant_valid_for(new.grant, 1));
    holder_close(&old); /* takes nothing from the new one */
    assert_true(clave_grant_valid_for(new.grant, 1));
    holder_close(&new);
}

static void assert_refused(const char *file, const char *why)
{
    clave_client *c;
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.resume_file = file;
    assert_int_not_equal(clave_client_open(&c, NULL, rig->connect, &o), CLAVE_OK);
    assert_null(c);
    if (!strstr(errmsg(NULL), why))
        fail_msg("'%s' does not say '%s'", errmsg(NULL), why);
}

TEST(a_file_that_others_may_read_is_refused)
{
    const char *file = rig_path(rig_dir(), "session");
    struct holder old, new;
    assert_int_equal(holder_open(&old, NULL, PATIENCE), CLAVE_OK);
    assert_int_equal(clave_client_hand_over(old.client, file, PATIENCE), CLAVE_OK);
    holder_close(&old);
    assert_int_equal(chmod(file, 0640), 0);
    assert_refused(file, "has mode 0640");
    assert_int_equal(chmod(file, 0600), 0);
    const char *link = rig_path(rig_dir(), "link");
    assert_int_equal(symlink(file, link), 0);
    assert_refused(link, link);
    /* A refusal costs nothing, nor does an option that is wrong. */
    clave_client *c;
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.resume_file = file;
    o.margin_ms = -1;
    assert_int_equal(clave_client_open(&c, NULL, rig->connect, &o), CLAVE_EINVAL);
    assert_true(exists(file));
    char below[256];
    snprintf(below, sizeof below, "%s/elsewhere", rig->connect);
    o.margin_ms = 0;
    assert_int_equal(clave_client_open(&c, NULL, below, &o), CLAVE_EINVAL);
    assert_non_null(strstr(errmsg(NULL), "another chroot"));
    assert_true(exists(file));
    assert_int_equal(holder_open(&new, file, PATIENCE), CLAVE_OK);
    assert_true(clave_grant_is_resumed(new.grant));
    assert_refused(file, file); /* it is gone */
    holder_close(&new);
}

TEST(what_is_no_session_is_refused)
{
    const char *file = rig_path(rig_dir(), "session");
    rig_write(file, "hello\n", 6);
    assert_int_equal(chmod(file, 0600), 0);
    assert_refused(file, "does not begin with");
    assert_true(exists(file)); /* it may be something that is needed */
    const char *link = rig_path(rig_dir(), "alias");
    assert_int_equal(symlink(file, link), 0);
    assert_refused(link, "is a symbolic link");
    assert_refused(rig_dir(), "is not a file");
}

TEST(a_file_that_cannot_be_written_costs_nothing)
{
    struct holder old;
    assert_int_equal(holder_open(&old, NULL, PATIENCE), CLAVE_OK);
    assert_int_equal(clave_client_hand_over(old.client, "/nowhere/at/all", PATIENCE), CLAVE_EIO);
    assert_non_null(strstr(errmsg(old.client), "/nowhere/at/all"));
    assert_int_equal(clave_client_hand_over(old.client, rig_dir(), PATIENCE), CLAVE_EIO);
    assert_true(clave_grant_valid_for(old.grant, 1));
    assert_int_equal(clave_mutex_release(old.mutex), CLAVE_OK);
    const char *file = rig_path(rig_dir(), "session");
    assert_int_equal(clave_client_hand_over(old.client, file, PATIENCE), CLAVE_ENOTHELD);
    assert_false(exists(file));
    assert_false(exists(rig_path(rig_dir(), "session.tmp")));
    holder_close(&old);
}

/* ---- processes that are killed --------------------------------------------------------------- */

static bool child_says(int told)
{
    return write(told, "x", 1) == 1;
}

/* What a child does instead of the tests: --child CONNECT FILE RESUMES FD. It holds, says so, hands
 * over, says so. */
__attribute__((constructor)) static void child_run(int argc, char **argv)
{
    struct holder h;
    if (argc != 6 || strcmp(argv[1], "--child") != 0)
        return;
    const char *file = argv[3];
    int told = atoi(argv[5]);
    connect_to = argv[2];
    bool fine = holder_open(&h, strcmp(argv[4], "1") == 0 ? file : NULL, PATIENCE) == CLAVE_OK &&
                child_says(told) && clave_client_hand_over(h.client, file, PATIENCE) == CLAVE_OK &&
                child_says(told);
    if (fine)
        pause();
    _exit(1);
}

/* Starts a child and kills it some time after the last of `steps` things that it says. */
static void child_killed(const char *file, bool resumes, int steps, useconds_t after_us)
{
    int ends[2], status;
    char fd[16], said;
    assert_int_equal(pipe(ends), 0);
    snprintf(fd, sizeof fd, "%d", ends[1]);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "hand_over_test", "--child", rig->connect, file,
              resumes ? "1" : "0", fd, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    close(ends[1]);
    for (int i = 0; i < steps; i++)
        assert_int_equal(read(ends[0], &said, 1), 1);
    usleep(after_us);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(ends[0]);
}

/* The old process is killed at some moment of its hand-over. A file that is there is whole, and by
 * then its writer counted on nothing; without a file the session expires. */
TEST(the_old_process_is_killed_while_it_hands_over)
{
    const char *file = rig_path(rig_dir(), "session");
    for (useconds_t us = 0; us < 4000; us += 400) {
        struct holder new;
        child_killed(file, false, 1, us);
        bool written = exists(file);
        assert_int_equal(holder_open(&new, written ? file : NULL, PATIENCE), CLAVE_OK);
        assert_int_equal(clave_grant_is_resumed(new.grant), written);
        holder_close(&new);
    }
}

TEST(the_old_process_is_killed_when_it_has_handed_over)
{
    const char *file = rig_path(rig_dir(), "session");
    struct holder new;
    child_killed(file, false, 2, 0);
    assert_int_equal(holder_open(&new, file, PATIENCE), CLAVE_OK);
    assert_true(clave_grant_is_resumed(new.grant));
    holder_close(&new);
}

/* The new process is killed at some moment of taking it up, or when it has. The next one, which
 * finds the file or not, holds in any case, and not before the session of the dead has ended unless
 * it has that session. */
TEST(the_new_process_is_killed)
{
    const char *file = rig_path(rig_dir(), "session");
    for (useconds_t us = 0; us < 6000; us += 1000) {
        struct holder next;
        child_killed(file, false, 2, 0);
        child_killed(file, true, us > 0 ? 0 : 1, 5000 + us);
        bool left = exists(file);
        assert_int_equal(holder_open(&next, left ? file : NULL, PATIENCE), CLAVE_OK);
        assert_true(left || !clave_grant_is_resumed(next.grant));
        holder_close(&next);
    }
}

/* A file that lay for too long names a session that has ended. */
TEST(what_nobody_came_for_is_free)
{
    const char *file = rig_path(rig_dir(), "session");
    struct holder other, late;
    child_killed(file, false, 2, 0);
    assert_int_equal(holder_open(&other, NULL, PATIENCE), CLAVE_OK);
    assert_int_equal(holder_open(&late, file, 300), CLAVE_EBUSY);
    assert_int_equal(clave_mutex_release(other.mutex), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(late.mutex, PATIENCE), CLAVE_OK);
    assert_int_equal(clave_mutex_grant(late.mutex, &late.grant), CLAVE_OK);
    assert_false(clave_grant_is_resumed(late.grant));
    holder_close(&late);
    holder_close(&other);
}

TEST_GROUP(rig_start_group, rig_stop_group)
