/* server_test.c - the server as a process: kills, full disks, addresses, limits, its end. */
#include "rig.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/store/file_names.h"

/* ---- nothing acknowledged is lost ------------------------------------------------------- */

/* Creates /k0, /k1, ... until told to stop or until one fails. What was not answered in time is
 * asked for again, while there is any hope: it may have been done, and is there then. */
struct writer {
    const char *connect;
    unsigned from;
    bool mortal;              /* the server is going to end: so is this, with the connection */
    atomic_uint acknowledged; /* all below it */
    atomic_bool stop;
    atomic_bool ended;
};

static void *write_on(void *arg)
{
    struct writer *w = arg;
    char path[32];
    clave_client *s;
    if (clave_client_open(&s, NULL, w->connect, NULL) != CLAVE_OK) {
        atomic_store(&w->ended, true);
        return NULL;
    }
    int64_t until = clave_now() + RIG_PATIENCE_MS;
    for (unsigned i = w->from; !atomic_load(&w->stop) && clave_now() < until;) {
        snprintf(path, sizeof path, "/k%u", i);
        clave_err err = clave_create(s, path, path, strlen(path), NULL, 2000, NULL);
        if (err == CLAVE_ETIMEDOUT || (err == CLAVE_ECONNLOSS && !w->mortal))
            continue;
        if (err != CLAVE_OK && err != CLAVE_ENODEEXISTS)
            break;
        atomic_store(&w->acknowledged, ++i);
        until = clave_now() + RIG_PATIENCE_MS;
    }
    clave_client_close(s, 0);
    atomic_store(&w->ended, true);
    return NULL;
}

static void await_written(struct writer *w, unsigned n)
{
    while (atomic_load(&w->acknowledged) < n && !atomic_load(&w->ended))
        sched_yield();
    assert_true(atomic_load(&w->acknowledged) >= n);
}

/* All below n are there; how many there are at all. */
static unsigned assert_written(const char *connect, unsigned n)
{
    char path[32];
    clave_client *s = rig_session(connect);
    for (unsigned i = 0; i < n; i++) {
        snprintf(path, sizeof path, "/k%u", i);
        clave_err err = clave_exists(s, path, 5000, NULL);
        assert_safe(err != CLAVE_ENONODE, "a lost write: it was acknowledged and is not there");
        assert_int_equal(err, CLAVE_OK);
    }
    snprintf(path, sizeof path, "/k%u", n);
    while (clave_exists(s, path, 5000, NULL) == CLAVE_OK)
        snprintf(path, sizeof path, "/k%u", ++n);
    clave_client_close(s, 5000);
    return n;
}

TEST_FIRST(a_killed_server_keeps_its_word)
{
    const char *data = rig_dir();
    unsigned n = 0;
    for (unsigned round = 0; round < 5; round++) {
        struct rig_process p;
        struct writer w = {.mortal = true};
        pthread_t thread;
        rig_fork(&p, data, rig_unix());
        n = assert_written(p.connect, n);
        w.connect = p.connect;
        w.from = n;
        atomic_store(&w.acknowledged, n);
        assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
        await_written(&w, n + 50 + round);
        rig_kill(&p, SIGKILL);
        atomic_store(&w.stop, true);
        pthread_join(thread, NULL);
        n = atomic_load(&w.acknowledged);
    }
    struct rig *r = rig_start(data, NULL);
    assert_written(r->connect, n);
    rig_stop(r);
}

/* Serves with so little room that the log runs into the end; exits 2 for EFULL. */
static pid_t serve_without_room(const char *data, const char *address, rlim_t room)
{
    pid_t pid = rig_fork_alone();
    if (pid != 0)
        return pid;
    struct server_run_options o = rig_options(data, &address);
    struct server_run *run;
    char fault[512];
    o.signals = true; /* SIGXFSZ too */
    if (room > 0)
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){room, room});
    if (clave__server_run_new(&run, &o, fault, sizeof fault) != CLAVE_OK)
        _exit(3);
    clave_err err = clave__server_run_loop(run, fault, sizeof fault);
    clave__server_run_free(run);
    _exit(err == CLAVE_EFULL && strstr(fault, data) ? 2 : 1);
}

TEST(a_full_disk_stops_the_server)
{
    const char *data = rig_dir();
    struct writer w = {.connect = rig_unix(), .mortal = true};
    int status;
    pid_t pid = serve_without_room(data, w.connect, 32 * 1024);
    write_on(&w);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 2 << 8);
    assert_true(w.acknowledged > 10);
    struct rig *r = rig_start(data, NULL);
    assert_written(r->connect, w.acknowledged);
    rig_stop(r);
}

TEST(a_full_file_system_stops_the_server)
{
    const char *data = rig_dir();
    if (mount("tmpfs", data, "tmpfs", 0, "size=64k") != 0)
        skip(); /* only root may, and not everywhere */
    struct writer w = {.connect = rig_unix(), .mortal = true};
    int status;
    pid_t pid = serve_without_room(data, w.connect, 0);
    write_on(&w);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 2 << 8);
    assert_int_equal(mount("tmpfs", data, "tmpfs", MS_REMOUNT, "size=1m"), 0);
    struct rig *r = rig_start(data, NULL);
    assert_written(r->connect, w.acknowledged);
    rig_stop(r);
    assert_int_equal(umount(data), 0);
}

/* ---- snapshots ---------------------------------------------------------------------------- */

static size_t count_files(const char *data, enum file_kind kind)
{
    struct file_list list;
    DIR *d = opendir(rig_path(data, "version-2"));
    assert_non_null(d);
    assert_int_equal(clave__file_list_read(dirfd(d), kind, &list), 0);
    closedir(d);
    size_t n = list.n;
    clave__file_list_free(&list);
    return n;
}

TEST(snapshots_follow_and_old_files_go)
{
    const char *data = rig_dir(), *address = rig_unix();
    unsigned n = 0;
    for (unsigned round = 0; round < 3; round++) {
        struct server_run_options o = rig_options(data, &address);
        o.engine.snap_count = 20;
        struct rig *r = rig_start_with(&o);
        n = assert_written(r->connect, n);
        struct writer w = {.connect = address, .from = n};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
        await_written(&w, n + 200);
        atomic_store(&w.stop, true);
        pthread_join(thread, NULL);
        n = atomic_load(&w.acknowledged);
        assert_int_equal(rig_stop(r), CLAVE_OK);
        assert_in_range(count_files(data, FILE_SNAPSHOT), 2, 4);
        assert_in_range(count_files(data, FILE_LOG), 1, 6);
    }
    assert_int_not_equal(access(rig_path(data, "version-2/snapshot.0"), R_OK), 0);
}

/* ---- addresses --------------------------------------------------------------------------- */

static clave_err listen_fault(const char *address, char *fault, size_t cap)
{
    struct server_run_options o = rig_options(rig_dir(), &address);
    struct server_run *run;
    clave_err err = clave__server_run_new(&run, &o, fault, cap);
    clave__server_run_free(run);
    return err;
}

TEST(an_address_in_use_is_named)
{
    const char *addresses[] = {"127.0.0.1:0", rig_unix()};
    for (size_t i = 0; i < 2; i++) {
        char fault[512] = "";
        struct rig *r = rig_start(rig_dir(), addresses[i]);
        assert_int_equal(listen_fault(r->connect, fault, sizeof fault), CLAVE_EINUSE);
        if (!strstr(fault, r->connect))
            fail_msg("'%s' does not name %s", fault, r->connect);
        rig_stop(r);
    }
}

TEST(addresses_that_make_no_sense)
{
    static const char *const bad[] = {"",
                                      "127.0.0.1:",
                                      "127.0.0.1:x",
                                      "[::1",
                                      "[::1]x:1",
                                      "1:2:3",
                                      "host:70000",
                                      "unix:",
                                      "unix:here",
                                      ":",
                                      "127.0.0.1:1 ",
                                      "a:123456",
                                      "unix:/s?",
                                      "unix:/s?x",
                                      "unix:/s?mode=",
                                      "unix:/s?mode=888",
                                      "unix:/s?mode=1777",
                                      "unix:/s?mode=0x1ff",
                                      "unix:/s?group=",
                                      "unix:/s?group=no-such-group-here",
                                      "unix:/s?mode=0600&x=1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char fault[512] = "";
        clave_err err = listen_fault(bad[i], fault, sizeof fault);
        if (err != CLAVE_EINVAL || !fault[0])
            fail_msg("'%s': %s '%s'", bad[i], clave_err_name(err), fault);
    }
}

TEST(several_addresses)
{
    const char *listen[] = {"127.0.0.1:0", rig_unix(), "*:0"};
    struct server_run_options o = rig_options(rig_dir(), listen);
    o.nlisten = 3;
    struct rig *r = rig_start_with(&o);
    clave_client *a = rig_session(clave__server_run_address(r->run, 0));
    clave_client *b = rig_session(clave__server_run_address(r->run, 1));
    const char *any = clave__server_run_address(r->run, 2);
    char connect[64];
    snprintf(connect, sizeof connect, "127.0.0.1%s", strrchr(any, ':'));
    clave_client *c = rig_session(connect);
    assert_null(clave__server_run_address(r->run, 3));
    assert_int_equal(clave_create(a, "/x", "", 0, NULL, 5000, NULL), CLAVE_OK);
    assert_int_equal(clave_exists(b, "/x", 5000, NULL), CLAVE_OK);
    assert_int_equal(clave_exists(c, "/x", 5000, NULL), CLAVE_OK);
    clave_client_close(a, 5000);
    clave_client_close(b, 5000);
    clave_client_close(c, 5000);
    rig_stop(r);
}

TEST_FIRST(a_unix_socket_is_private_and_goes)
{
    const char *address = rig_unix(), *path = address + strlen("unix:");
    struct stat st;
    struct rig_process p;
    rig_fork(&p, rig_dir(), address);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(rig_kill(&p, SIGTERM), 0);
    assert_int_not_equal(stat(path, &st), 0);
    rig_fork(&p, rig_dir(), address);
    rig_kill(&p, SIGKILL); /* leaves the socket's file */
    assert_int_equal(stat(path, &st), 0);
    rig_stop(rig_start(rig_dir(), address));
}

/* What the file may at most be is what its address says, whatever the umask. */
TEST(a_unix_socket_has_a_mode_and_a_group)
{
    static const struct {
        const char *options;
        mode_t mode;
        bool has_group;
    } cases[] = {{"?mode=0660&group=%u", 0660, true},
                 {"?group=%u&mode=0620", 0620, true},
                 {"?group=%u", 0660, true},
                 {"?mode=666", 0666, false},
                 {"?mode=0600", 0600, false}};
    const gid_t other = getuid() == 0 ? 4711 : getgid();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *plain = rig_unix();
        char address[200], options[64];
        struct stat st;
        mode_t mask = umask(i % 2 ? 077 : 0);
        snprintf(options, sizeof options, cases[i].options, (unsigned)other);
        snprintf(address, sizeof address, "%s%s", plain, options);
        struct rig *r = rig_start(rig_dir(), address);
        umask(mask);
        assert_string_equal(clave__server_run_address(r->run, 0), plain);
        assert_int_equal(stat(plain + strlen("unix:"), &st), 0);
        assert_int_equal(st.st_mode & 07777, cases[i].mode);
        if (cases[i].has_group)
            assert_int_equal(st.st_gid, other);
        rig_stop(r);
        assert_int_not_equal(stat(plain + strlen("unix:"), &st), 0);
    }
}

/* Access by the scheme uid: given to this user on a Unix socket, to nobody over TCP. */
TEST(a_user_of_this_machine_is_an_identity)
{
    const char *listen[] = {"127.0.0.1:0", rig_unix()};
    struct server_run_options o = rig_options(rig_dir(), listen);
    char mine[16], others[16];
    o.nlisten = 2;
    struct rig *r = rig_start_with(&o);
    snprintf(mine, sizeof mine, "%u", (unsigned)getuid());
    snprintf(others, sizeof others, "%u", (unsigned)getuid() + 1);
    clave_client *tcp = rig_session(clave__server_run_address(r->run, 0));
    clave_client *local = rig_session(clave__server_run_address(r->run, 1));
    const clave_acl me = {CLAVE_PERM_ALL, "uid", mine}, other = {CLAVE_PERM_ALL, "uid", others};
    const clave_acl creator = {CLAVE_PERM_ALL, "auth", ""};
    clave_create_options co = {.size = sizeof co, .acls = &me, .nacls = 1};
    assert_int_equal(clave_create(tcp, "/mine", "", 0, &co, 5000, NULL), CLAVE_OK);
    co.acls = &other;
    assert_int_equal(clave_create(tcp, "/others", "", 0, &co, 5000, NULL), CLAVE_OK);
    co.acls = &creator;
    assert_int_equal(clave_create(tcp, "/creator", "", 0, &co, 5000, NULL), CLAVE_EINVALIDACL);
    assert_int_equal(clave_create(local, "/creator", "", 0, &co, 5000, NULL), CLAVE_OK);
    assert_int_equal(clave_get(local, "/mine", 5000, NULL), CLAVE_OK);
    assert_int_equal(clave_get(local, "/creator", 5000, NULL), CLAVE_OK);
    assert_int_equal(clave_get(local, "/others", 5000, NULL), CLAVE_ENOAUTH);
    assert_int_equal(clave_get(tcp, "/mine", 5000, NULL), CLAVE_ENOAUTH);
    assert_int_equal(clave_get(tcp, "/creator", 5000, NULL), CLAVE_ENOAUTH);
    clave_client_close(tcp, 5000);
    clave_client_close(local, 5000);
    rig_stop(r);
}

/* ---- limits ---------------------------------------------------------------------------------- */

TEST(one_address_has_so_many_connections)
{
    const char *listen = "127.0.0.1:0";
    struct server_run_options o = rig_options(rig_dir(), &listen);
    clave_client *s;
    o.max_per_address = 2;
    struct rig *r = rig_start_with(&o);
    clave_client *a = rig_session(r->connect), *b = rig_session(r->connect);
    assert_int_equal(clave_client_open(&s, NULL, r->connect, NULL), CLAVE_OK);
    assert_int_equal(clave_client_wait(s, 200), CLAVE_EUNREACHABLE);
    clave_client_close(a, 5000);
    assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_OK);
    clave_client_close(b, 5000);
    clave_client_close(s, 5000);
    rig_stop(r);
}

/* A client that sends requests and never reads must not make the server keep more than its
 * limit, nor hold up others; then it is gone, and nothing is left of it. */
TEST(a_client_that_never_reads)
{
    const char *address = rig_unix();
    struct server_run_options o = rig_options(rig_dir(), &address);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    /* length 44; protocol 0, zxid 0, timeout 30000, session 0, sixteen bytes of password */
    static const unsigned char hello[48] = {[3] = 44, [18] = 0x75, [19] = 0x30, [31] = 16};
    /* length 18; xid 1, getData, "/long", no watch */
    static const unsigned char get[22] = {[3] = 18,   [7] = 1,    [11] = 4,   [15] = 5,  [16] = '/',
                                          [17] = 'l', [18] = 'o', [19] = 'n', [20] = 'g'};
    static char value[100000];
    o.engine.max_output = 256 * 1024;
    struct rig *r = rig_start_with(&o);
    clave_client *s = rig_session(address);
    assert_int_equal(clave_create(s, "/long", value, sizeof value, NULL, 5000, NULL), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    strcpy(addr.sun_path, address + strlen("unix:"));
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(write(fd, hello, sizeof hello), (ssize_t)sizeof hello);
    while (write(fd, get, sizeof get) == (ssize_t)sizeof get)
        continue; /* until the server reads no more */
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(clave_exists(s, "/long", 5000, NULL), CLAVE_OK);
    close(fd);
    assert_int_equal(clave_exists(s, "/long", 5000, NULL), CLAVE_OK);
    clave_client_close(s, 5000);
    rig_stop(r);
}

/* ---- the end ------------------------------------------------------------------------------------
 */

TEST_FIRST(signals_end_it_well)
{
    static const int signals[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < 2; i++) {
        struct rig_process p;
        rig_fork(&p, rig_dir(), rig_unix());
        clave_client *s = rig_session(p.connect);
        assert_int_equal(rig_kill(&p, signals[i]), 0);
        clave_client_close(s, 0);
    }
}

TEST(nobody_connected_ends_it)
{
    const char *address = rig_unix(), *data = rig_dir();
    struct server_run_options o = rig_options(data, &address);
    o.idle_exit_ms = 100;
    bool came = false;
    for (int i = 0; i < 10 && !came; i++) { /* who comes too late finds that it has ended */
        struct rig *r = rig_start_with(&o);
        clave_client *s;
        assert_int_equal(clave_client_open(&s, NULL, address, NULL), CLAVE_OK);
        came = clave_client_wait(s, 2000) == CLAVE_OK;
        clave_client_close(s, came ? 5000 : 0);
        assert_int_equal(rig_join(r, NULL, 0), CLAVE_OK);
    }
    assert_true(came);
    assert_int_equal(rig_join(rig_start_with(&o), NULL, 0), CLAVE_OK);
}
