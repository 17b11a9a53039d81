/* settings_test.c - a client for which no servers are named takes what the program takes: the
 * environment, the user's file, the machine's, key by key; and says what is wrong in them. */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of these and no other sources. */
static void sources(const char *env, const char *user, const char *machine)
{
    const char *dir = rig_dir();
    const char *files[] = {rig_path(dir, "user"), rig_path(dir, "machine")};
    const char *texts[] = {user, machine};
    for (size_t i = 0; i < 2; i++)
        rig_write(files[i], texts[i] ? texts[i] : "", texts[i] ? strlen(texts[i]) : 0);
    setenv("CLAVE_CONFIG", files[0], 1);
    setenv("CLAVE_SYSTEM_CONFIG", files[1], 1);
    unsetenv("CLAVE_CONNECT");
    if (env)
        setenv("CLAVE_CONNECT", env, 1);
}

static void put_target(clave_async_client *c, void *arg)
{
    clave_target t = clave_async_client_target(c);
    snprintf(arg, 64, "%.50s:%u", t.host, (unsigned)t.port);
}

/* Where a client dials for which `connect` was given. */
static const char *dialled(const char *connect)
{
    static char text[64];
    clave_client *s;
    const clave_client_options o = {.size = sizeof o, .keep_order = true};
    assert_int_equal(clave_client_open(&s, NULL, connect, &o), CLAVE_OK);
    assert_int_equal(clave_client_run(s, put_target, text), CLAVE_OK);
    clave_client_close(s, 0);
    return text;
}

static void the_first_source_that_names_servers_counts(void **state)
{
    (void)state;
    static const struct {
        const char *env, *user, *machine, *is;
    } rows[] = {
        {"127.0.0.1:1", "connect = 127.0.0.1:2\n", "connect = 127.0.0.1:3\n", "127.0.0.1:1"},
        {NULL, "connect = 127.0.0.1:2\n", "connect = 127.0.0.1:3\n", "127.0.0.1:2"},
        {NULL, "session-timeout = 4s\n", "# all\n connect=127.0.0.1:3\r\n", "127.0.0.1:3"},
        {"", "connect = 127.0.0.1:2/app\n", NULL, "127.0.0.1:2"},
        {NULL, "", "local = never\n", "local::0"},
        {"127.0.0.1:1", "", "local = never\n", "127.0.0.1:1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sources(rows[i].env, rows[i].user, rows[i].machine);
        assert_string_equal(dialled(NULL), rows[i].is);
    }
    sources("127.0.0.1:1", "no line of a configuration\n", NULL);
    assert_string_equal(dialled("127.0.0.1:9"), "127.0.0.1:9"); /* they are not read */
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *env, *user, *machine;
        clave_err err;
        const char *says;
    } rows[] = {
        {NULL, "\nconnect = a:b\n", NULL, CLAVE_EHOST,
         "/user:2: invalid server list 'a:b': a port must be a number"},
        {NULL, NULL, "connect = h1/app,h2/app\n", CLAVE_EHOST, "/machine:1: invalid server list"},
        {"h1/app,h2/app", NULL, NULL, CLAVE_EHOST,
         "environment variable CLAVE_CONNECT: invalid server list 'h1/app,h2/app': there can be "
         "only one chroot"},
        {"127.0.0.1:1", "connekt = h\n", NULL, CLAVE_EINVAL, "/user:1: unknown key 'connekt'"},
        {"127.0.0.1:1", NULL, "nonsense\n", CLAVE_EINVAL, "/machine:1: expected 'key = value'"},
        {"127.0.0.1:1", "session-timeout = soon\n", NULL, CLAVE_EINVAL, "/user:1: 'soon'"},
        {"127.0.0.1:1", "auth = joe\n", NULL, CLAVE_EINVAL, "/user:1: an identity is"},
        {"tls:127.0.0.1:1", "tls-ca = /nowhere/ca.pem\n", NULL, CLAVE_EIO, "/nowhere/ca.pem"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clave_client *s = (clave_client *)&s;
        char text[512];
        sources(rows[i].env, rows[i].user, rows[i].machine);
        assert_int_equal(clave_client_open(&s, NULL, NULL, NULL), rows[i].err);
        assert_null(s);
        if (!strstr(clave_client_errmsg(NULL, text, sizeof text), rows[i].says))
            fail_msg("'%s' does not say '%s'", text, rows[i].says);
    }
    setenv("CLAVE_CONFIG", "/nowhere/config", 1);
    clave_client *s;
    char text[16];
    assert_int_equal(clave_client_open(&s, NULL, NULL, NULL), CLAVE_EINVAL);
    assert_string_equal(clave_client_errmsg(NULL, text, sizeof text), "configuration /");
}

/* Also of what the caller itself gave. */
static void why_it_was_not_opened(void **state)
{
    (void)state;
    static const clave_client_options none = {.size = 0},
                                      range = {.size = sizeof range, .session_timeout_ms = -1};
    static const struct {
        const char *connect;
        const clave_client_options *o;
        clave_err err;
        const char *says;
    } rows[] = {
        {"", NULL, CLAVE_EHOST, "invalid server list '': it is empty"},
        {"a,b:c", NULL, CLAVE_EHOST, "invalid server list 'a,b:c': a port must be a number"},
        {"h", &none, CLAVE_EINVAL, "clave_client_options"},
        {"h", &range, CLAVE_EINVAL, "session_timeout_ms"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clave_client *s;
        char text[512];
        assert_int_equal(clave_client_open(&s, NULL, rows[i].connect, rows[i].o), rows[i].err);
        if (!strstr(clave_client_errmsg(NULL, text, sizeof text), rows[i].says))
            fail_msg("'%s' does not say '%s'", text, rows[i].says);
    }
}

static void put_timeout(clave_async_client *c, void *arg)
{
    *(int32_t *)arg = clave_async_client_session_timeout(c);
}

/* What the options leave at 0 or NULL; what they have counts. */
static void the_other_keys_complete_the_options(void **state)
{
    (void)state;
    static const clave_acl mine = {.perms = CLAVE_PERM_ALL, .scheme = "auth", .id = ""};
    static const clave_auth other = {.scheme = "digest", .auth = "c:d", .len = 3};
    const clave_create_options c = {.size = sizeof c, .acls = &mine, .nacls = 1};
    const clave_client_options o = {
        .size = sizeof o, .session_timeout_ms = 1000, .auths = &other, .nauths = 1};
    char user[200];
    snprintf(user, sizeof user, "connect = %s\nsession-timeout = 1500ms\nauth = digest:a:b\n",
             rig->connect);
    sources(NULL, user, NULL);
    for (int given = 0; given < 2; given++) {
        clave_client *s;
        int32_t timeout_ms;
        assert_int_equal(clave_client_open(&s, NULL, NULL, given ? &o : NULL), CLAVE_OK);
        assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_OK);
        assert_int_equal(clave_client_run(s, put_timeout, &timeout_ms), CLAVE_OK);
        assert_int_equal(timeout_ms, given ? 1000 : 1500);
        if (given == 0)
            assert_int_equal(clave_create(s, "/mine", "x", 1, &c, RIG_PATIENCE_MS, NULL), CLAVE_OK);
        else
            assert_int_equal(clave_get(s, "/mine", RIG_PATIENCE_MS, NULL), CLAVE_ENOAUTH);
        clave_client_close(s, 1000);
    }
}

static void never_is_of_the_files_too(void **state)
{
    (void)state;
    static const char *const connects[] = {NULL, "local:", "local:/app"};
    setenv("CLAVE_LOCAL_DIR", rig_path(rig_dir(), "state"), 1);
    sources(NULL, NULL, "\nlocal = never\n");
    for (size_t i = 0; i < sizeof connects / sizeof *connects; i++) {
        clave_client *s;
        char text[512];
        assert_int_equal(clave_client_open(&s, NULL, connects[i], NULL), CLAVE_OK);
        assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_ELOCAL);
        assert_non_null(strstr(clave_client_errmsg(s, text, sizeof text),
                               "/machine:2: local = never, and no other server is named"));
        clave_client_close(s, 0);
    }
    assert_int_not_equal(access(getenv("CLAVE_LOCAL_DIR"), F_OK), 0);
}

/* ---- set-user-ID ---------------------------------------------------------------------------- */

enum { NOBODY = 65534, NOT_SECURE = 77 };

/* As such a program, with sources of its caller. */
static int be_secure(void)
{
    clave_client *s;
    char text[512];
    if (!getauxval(AT_SECURE))
        return NOT_SECURE;
    if (clave_client_open(&s, NULL, NULL, NULL) != CLAVE_OK) {
        clave_client_errmsg(NULL, text, sizeof text);
        return strstr(text, "127.0.0.1") || strstr(text, "/user") ? 1 : 0;
    }
    if (clave_client_run(s, put_target, text) != CLAVE_OK || strstr(text, "127.0.0.1"))
        return 2;
    if (strcmp(text, "local::0") == 0 &&
        (clave_client_wait(s, RIG_PATIENCE_MS) != CLAVE_ELOCAL ||
         !strstr(clave_client_errmsg(s, text, sizeof text), "set-user-ID")))
        return 3;
    clave_client_close(s, 0);
    return 0;
}

static void with_others_rights_the_callers_sources_do_not_count(void **state)
{
    (void)state;
    int status;
    size_t n;
    const char *copy = rig_path(rig_dir(), "copy");
    void *program = rig_read("/proc/self/exe", &n);
    assert_non_null(program);
    rig_write(copy, program, n);
    free(program);
    if (chown(copy, NOBODY, NOBODY) != 0 || chmod(copy, 04755) != 0)
        skip();
    sources("127.0.0.1:1", "connect = 127.0.0.1:2\n", "connect = 127.0.0.1:3\n");
    pid_t pid = rig_fork_alone();
    if (pid == 0) {
        execl(copy, copy, "secure", (char *)NULL);
        _exit(NOT_SECURE);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_SECURE)
        skip(); /* a file system without set-user-ID */
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "secure") == 0)
        _exit(be_secure()); /* no leak check at its end: such a process cannot be traced */
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(with_others_rights_the_callers_sources_do_not_count),
        cmocka_unit_test(the_first_source_that_names_servers_counts),
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(why_it_was_not_opened),
        cmocka_unit_test(never_is_of_the_files_too),
    };
    const struct CMUnitTest with_server[] = {
        cmocka_unit_test(the_other_keys_complete_the_options),
    };
    int failed = cmocka_run_group_tests(alone, NULL, NULL);
    return failed + cmocka_run_group_tests(with_server, rig_start_group, rig_stop_group);
}
