/* diskfault_test.c - disks that fail, are full, or stand; clocks that step; processes that are
 * stopped; no memory for a connection, in the process or in the kernel. The calls are caught where
 * the program is linked
 * (-Wl,--wrap). */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- what the disk does ------------------------------------------------------------------- */

/* The so many-th call of a kind from now on fails, and every later one would succeed: that is how
 * Linux reports a failed sync, once. */
struct fault_at {
    atomic_int in; /* 0: none */
    atomic_int number;
    atomic_int calls; /* since the fault */
};

static struct fault_at write_fault, sync_fault, dir_fault, rename_fault, room_fault;
static atomic_llong bad_sector = -1; /* its offset in any file; -1: none */
static atomic_bool no_memory;
static atomic_int accept_error; /* 0: none */
static atomic_int accepts_failed;
static atomic_bool stands; /* a sync does not end */
static atomic_int waiting; /* for it to go on */
static atomic_llong wall_step_ms;
static atomic_int left_percent; /* of the disk; 0: as it is; below 0: nobody knows */

static bool fails(struct fault_at *f)
{
    if (atomic_load(&f->in) <= 0) {
        atomic_fetch_add(&f->calls, 1);
        return false;
    }
    if (atomic_fetch_sub(&f->in, 1) > 1)
        return false;
    atomic_store(&f->calls, 0);
    errno = atomic_load(&f->number);
    return true;
}

static void plan(struct fault_at *f, int in, int number)
{
    atomic_store(&f->number, number);
    atomic_store(&f->calls, 0);
    atomic_store(&f->in, in);
}

static void repair(void)
{
    struct fault_at *const all[] = {&write_fault, &sync_fault, &dir_fault, &rename_fault,
                                    &room_fault};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        plan(all[i], 0, 0);
    atomic_store(&bad_sector, -1);
    atomic_store(&stands, false);
}

int __real_accept4(int fd, struct sockaddr *peer, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *peer, socklen_t *len, int flags);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
ssize_t __real_pread(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at);
ssize_t __real_pwrite(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_fallocate(int fd, int mode, off_t at, off_t n);
int __wrap_fallocate(int fd, int mode, off_t at, off_t n);
int __real_fstatvfs(int fd, struct statvfs *v);
int __wrap_fstatvfs(int fd, struct statvfs *v);
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

void *__wrap_calloc(size_t n, size_t size)
{
    return atomic_load(&no_memory) ? NULL : __real_calloc(n, size);
}

int __wrap_accept4(int fd, struct sockaddr *peer, socklen_t *len, int flags)
{
    int error = atomic_load(&accept_error);
    if (error == 0)
        return __real_accept4(fd, peer, len, flags);
    atomic_fetch_add(&accepts_failed, 1);
    errno = error;
    return -1;
}

/* What comes before the bad sector is read. */
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at)
{
    off_t bad = atomic_load(&bad_sector);
    if (bad < 0 || at + (off_t)n <= bad)
        return __real_pread(fd, p, n, at);
    if (at < bad)
        return __real_pread(fd, p, (size_t)(bad - at), at);
    errno = EIO;
    return -1;
}

static bool is_zeros(const char *p, size_t n)
{
    return n > 0 && p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/* A half of it is written before it fails. The zeros ahead of a log's records do not count: without
 * them the server serves on (txn_log_file_test.c). */
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at)
{
    if (!is_zeros(p, n) && fails(&write_fault)) {
        int number = errno;
        ssize_t ignored = __real_pwrite(fd, p, n / 2, at);
        (void)ignored;
        errno = number;
        return -1;
    }
    return __real_pwrite(fd, p, n, at);
}

int __wrap_fdatasync(int fd)
{
    if (atomic_load(&stands)) {
        atomic_fetch_add(&waiting, 1);
        while (atomic_load(&stands))
            usleep(1000);
        atomic_fetch_sub(&waiting, 1);
    }
    return fails(&sync_fault) ? -1 : __real_fdatasync(fd);
}

int __wrap_fsync(int fd)
{
    return fails(&dir_fault) ? -1 : __real_fsync(fd);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    return fails(&rename_fault) ? -1 : __real_renameat(from_dir, from, to_dir, to);
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t n)
{
    return fails(&room_fault) ? -1 : __real_fallocate(fd, mode, at, n);
}

int __wrap_fstatvfs(int fd, struct statvfs *v)
{
    int rc = __real_fstatvfs(fd, v);
    if (atomic_load(&left_percent) < 0) {
        errno = EIO;
        return -1;
    }
    if (atomic_load(&left_percent) > 0) {
        v->f_frsize = 1 << 20;
        v->f_blocks = 1000;
        v->f_bavail = (fsblkcnt_t)atomic_load(&left_percent) * 10;
    }
    return rc;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    int rc = __real_clock_gettime(clock, t);
    if (clock == CLOCK_REALTIME)
        t->tv_sec += (time_t)(atomic_load(&wall_step_ms) / 1000);
    return rc;
}

/* ---- a write or a sync that fails ----------------------------------------------------------- */

/* Creates /0, /1, ... until the fault has struck and one is not answered; how many were. */
static unsigned write_until_it_fails(const char *connect, struct fault_at *f)
{
    char path[16];
    unsigned n = 0;
    clave_client *s;
    assert_int_equal(clave_client_open(&s, NULL, connect, NULL), CLAVE_OK);
    for (;;) {
        snprintf(path, sizeof path, "/%u", n);
        clave_err err = clave_create(s, path, path, strlen(path), NULL, 300, NULL);
        if (err == CLAVE_OK || err == CLAVE_ENODEEXISTS)
            n++;
        else if (atomic_load(&f->in) <= 0)
            break;
    }
    clave_client_close(s, 0);
    return n;
}

static void write_some(const char *connect, unsigned n)
{
    char path[16];
    clave_client *s = rig_session(connect);
    for (unsigned i = 0; i < n; i++) {
        snprintf(path, sizeof path, "/%u", i);
        assert_int_equal(clave_create(s, path, path, strlen(path), NULL, 5000, NULL), CLAVE_OK);
    }
    clave_client_close(s, 5000);
}

static void assert_written(const char *connect, unsigned n)
{
    char path[16];
    clave_client *s = rig_session(connect);
    for (unsigned i = 0; i < n; i++) {
        snprintf(path, sizeof path, "/%u", i);
        assert_int_equal(clave_exists(s, path, 5000, NULL), CLAVE_OK);
    }
    clave_client_close(s, 5000);
}

/* The server stops, says why, has not tried again, and everything it acknowledged is there. */
TEST(it_stops_rather_than_lie)
{
    static const struct {
        const char *name;
        struct fault_at *fault;
        int in;
        int number;
        int snap_count;
        clave_err err;
        const char *says;
    } cases[] = {
        {"a sync of the log", &sync_fault, 9, EIO, 0, CLAVE_EIO, "cannot write the log"},
        {"the first sync", &sync_fault, 1, EIO, 0, CLAVE_EIO, "cannot write the log"},
        {"a sync that finds no room", &sync_fault, 7, ENOSPC, 0, CLAVE_EFULL, "free some space"},
        {"a write", &write_fault, 9, EIO, 0, CLAVE_EIO, "cannot write the log"},
        {"a full disk", &write_fault, 12, ENOSPC, 0, CLAVE_EFULL, "free some space"},
        {"a quota", &write_fault, 5, EDQUOT, 0, CLAVE_EFULL, "free some space"},
        {"the name of a log", &rename_fault, 1, EIO, 0, CLAVE_EIO, "cannot write the log"},
        {"the sync of the name", &dir_fault, 1, EIO, 0, CLAVE_EIO, "cannot write the log"},
        {"a snapshot's name", &rename_fault, 2, EIO, 10, CLAVE_EIO, "cannot write"},
        {"a snapshot's sync", &dir_fault, 2, ENOSPC, 10, CLAVE_EFULL, "cannot write"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *data = rig_dir(), *address = rig_unix();
        struct server_run_options o = rig_options(data, &address);
        char fault[600];
        o.engine.snap_count = cases[i].snap_count;
        struct rig *r = rig_start_with(&o);
        plan(cases[i].fault, cases[i].in, cases[i].number);
        unsigned n = write_until_it_fails(address, cases[i].fault);
        clave_err err = rig_join(r, fault, sizeof fault);
        if (err != cases[i].err || !strstr(fault, cases[i].says) || !strstr(fault, data))
            fail_msg("%s: %s: %s", cases[i].name, clave_err_name(err), fault);
        if (cases[i].snap_count == 0)
            assert_int_equal(atomic_load(&cases[i].fault->calls), 0);
        repair();
        r = rig_start(data, NULL);
        assert_written(r->connect, n);
        assert_int_equal(rig_stop(r), CLAVE_OK);
    }
}

/* The text says where; and the disk may be read once more. */
TEST(a_bad_sector_is_told)
{
    static const struct {
        int offset;
        const char *says[4];
    } cases[] = {
        {16, {"version-2/snapshot.0", "at offset 16", "Input/output error", "restore a backup"}},
        {512, {"version-2/log.1", "at offset 512", "Input/output error", "restore a backup"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *data = rig_dir(), *address = rig_unix();
        struct server_run_options o = rig_options(data, &address);
        struct server_run *run;
        char fault[600];
        struct rig *r = rig_start(data, NULL);
        unsigned n = 20;
        write_some(r->connect, n);
        assert_int_equal(rig_stop(r), CLAVE_OK);
        atomic_store(&bad_sector, cases[i].offset);
        assert_int_equal(clave__server_run_new(&run, &o, fault, sizeof fault), CLAVE_EIO);
        for (size_t k = 0; k < 4; k++)
            if (!strstr(fault, cases[i].says[k]))
                fail_msg("%s: not in: %s", cases[i].says[k], fault);
        repair();
        r = rig_start(data, NULL);
        assert_written(r->connect, n);
        rig_stop(r);
    }
}

/* Without room ahead a log grows as it is written. */
TEST(a_disk_without_room_ahead)
{
    static const int numbers[] = {ENOSPC, EOPNOTSUPP};
    for (size_t i = 0; i < 2; i++) {
        const char *data = rig_dir();
        struct stat st;
        struct rig *r = rig_start(data, NULL);
        plan(&room_fault, 1, numbers[i]);
        clave_client *s = rig_session(r->connect);
        assert_int_equal(clave_create(s, "/0", "", 0, NULL, 5000, NULL), CLAVE_OK);
        assert_int_equal(stat(rig_path(data, "version-2/log.1"), &st), 0);
        assert_in_range(st.st_size, 100, 1000);
        assert_int_equal(atomic_load(&room_fault.calls), 0); /* nor is it asked for again */
        clave_client_close(s, 5000);
        assert_int_equal(rig_stop(r), CLAVE_OK);
        r = rig_start(data, NULL);
        assert_written(r->connect, 1);
        rig_stop(r);
        repair();
    }
}

TEST(a_log_is_longer_than_its_records_while_it_is_written)
{
    const char *data = rig_dir(), *log = rig_path(data, "version-2/log.1");
    struct stat st;
    struct rig *r = rig_start(data, NULL);
    clave_client *s = rig_session(r->connect);
    assert_int_equal(stat(log, &st), 0);
    assert_in_range(st.st_size, 64 * 1024, 80 * 1024);
    clave_client_close(s, 5000);
    assert_int_equal(rig_stop(r), CLAVE_OK);
    assert_int_equal(stat(log, &st), 0);
    assert_in_range(st.st_size, 50, 300);
}

/* ---- a disk that stands ------------------------------------------------------------------------
 */

enum { SHORT_MS = 400 };

static clave_client *short_session(const char *connect)
{
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = SHORT_MS};
    clave_client *s;
    assert_int_equal(clave_client_open(&s, NULL, connect, &o), CLAVE_OK);
    assert_int_equal(clave_client_wait(s, RIG_PATIENCE_MS), CLAVE_OK);
    return s;
}

/* A client that the server knows by its bytes: it says nothing by itself, and gives nothing up. */
struct raw {
    int fd;
};

static void raw_connect(struct raw *w, const char *address)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    w->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(addr.sun_path, address + strlen("unix:"));
    assert_int_equal(connect(w->fd, (struct sockaddr *)&addr, sizeof addr), 0);
}

static void raw_open(struct raw *w, const char *address, unsigned timeout_ms)
{
    unsigned char hello[48] = {[3] = 44, [31] = 16}, answer[64];
    hello[18] = (unsigned char)(timeout_ms >> 8);
    hello[19] = (unsigned char)timeout_ms;
    raw_connect(w, address);
    assert_int_equal(write(w->fd, hello, sizeof hello), (ssize_t)sizeof hello);
    assert_true(read(w->fd, answer, sizeof answer) > 36);
}

static void raw_ping(const struct raw *w)
{
    static const unsigned char ping[12] = {[3] = 8, 0xff, 0xff, 0xff, 0xfe, [11] = 11};
    (void)!send(w->fd, ping, sizeof ping, MSG_NOSIGNAL); /* to nobody: what is heard tells */
}

/* Whether the answers to so many pings come, and not the end of the connection. */
static bool raw_hears(const struct raw *w, unsigned pings)
{
    enum { ANSWER = 20 };
    unsigned char answer[ANSWER];
    for (size_t due = (size_t)pings * ANSWER; due > 0;) {
        ssize_t n = read(w->fd, answer, due < ANSWER ? due : ANSWER);
        if (n <= 0)
            return false;
        due -= (size_t)n;
    }
    return true;
}

/* Pings from `since` on for three times as long as the session lasts: how often, and the longest
 * silence. */
static unsigned keep_pinging(const struct raw *w, int64_t since, int64_t *silence)
{
    unsigned pings = 0;
    *silence = 0;
    for (int64_t last = since; last < since + 3 * SHORT_MS; pings++) {
        raw_ping(w);
        int64_t now = clave_now();
        *silence = now - last > *silence ? now - last : *silence;
        last = now;
        usleep(SHORT_MS * 250);
    }
    return pings;
}

/* A ping and a read of what is durable are answered, and what nobody may see yet is not. */
TEST(only_what_is_not_durable_waits)
{
    const char *address = rig_unix();
    struct server_run_options o = rig_options(rig_dir(), &address);
    struct rig *r = rig_start_with(&o);
    clave_client *writer = rig_session(address), *reader = rig_session(address);
    struct raw w;
    assert_int_equal(clave_create(writer, "/a", "old", 3, NULL, RIG_PATIENCE_MS, NULL), CLAVE_OK);
    raw_open(&w, address, RIG_PATIENCE_MS);
    atomic_store(&stands, true);
    while (atomic_load(&waiting) == 0)
        assert_int_equal(clave_create(writer, "/b", "", 0, NULL, 30, NULL), CLAVE_ETIMEDOUT);
    assert_int_equal(clave_get(reader, "/a", RIG_PATIENCE_MS, NULL), CLAVE_OK);
    raw_ping(&w);
    assert_true(raw_hears(&w, 1));
    assert_int_equal(clave_exists(reader, "/b", 100, NULL), CLAVE_ETIMEDOUT);
    atomic_store(&stands, false);
    assert_int_equal(clave_exists(reader, "/b", RIG_PATIENCE_MS, NULL), CLAVE_OK);
    close(w.fd);
    clave_client_close(reader, 5000);
    clave_client_close(writer, 5000);
    assert_int_equal(rig_stop(r), CLAVE_OK);
}

/* Nobody's session ends, and all that was asked is answered in the end. */
TEST(a_disk_that_stands_for_a_while)
{
    const char *address = rig_unix();
    struct server_run_options o = rig_options(rig_dir(), &address);
    o.engine.tick_ms = 50;
    struct rig *r = rig_start_with(&o);
    clave_client *s = rig_session(address), *impatient = short_session(address);
    struct raw w;
    bool heard = false, fair = false;
    for (int i = 0; i < 10 && !fair; i++) {
        char path[16];
        snprintf(path, sizeof path, "/%d", i);
        raw_open(&w, address, SHORT_MS);
        int64_t spoke = clave_now(), silence;
        raw_ping(&w);
        bool open = raw_hears(&w, 1);
        atomic_store(&stands, true);
        while (atomic_load(&waiting) == 0) /* until its thread has come to it */
            assert_int_equal(clave_create(s, path, "", 0, NULL, 30, NULL), CLAVE_ETIMEDOUT);
        unsigned pings = keep_pinging(&w, spoke, &silence);
        atomic_store(&stands, false);
        heard = open && raw_hears(&w, pings);
        close(w.fd);
        assert_int_equal(clave_exists(s, path, RIG_PATIENCE_MS, NULL), CLAVE_OK);
        /* Where this thread had to wait for the processor, the session may rightly have ended. */
        fair = heard || silence < SHORT_MS / 2;
    }
    assert_true(heard);
    clave_client_close(impatient, 5000);
    clave_client_close(s, 5000);
    assert_int_equal(rig_stop(r), CLAVE_OK);
}

/* ---- a disk that fills ------------------------------------------------------------------------
 */

static atomic_int told_low, told_enough;

static void count_told(void *arg, int level, const char *msg)
{
    (void)arg;
    if (level == CLAVE_LOG_WARN && strstr(msg, "MiB of 1000 MiB left, less than a tenth"))
        atomic_fetch_add(&told_low, 1);
    if (level == CLAVE_LOG_INFO && strstr(msg, "MiB of 1000 MiB left again"))
        atomic_fetch_add(&told_enough, 1);
}

/* Until the figure shows what is left: it is measured with every snapshot. */
static void write_until_it_shows(clave_client *s, const char *address, int percent)
{
    char expected[80];
    snprintf(expected, sizeof expected, "zk_data_dir_free_bytes\t%lld\n",
             10LL * percent * (1 << 20));
    atomic_store(&left_percent, percent);
    for (bool shown = false; !shown;) {
        char answer[8192];
        struct raw w;
        size_t n = 0;
        assert_int_equal(clave_set(s, "/", "", 0, -1, 5000, NULL), CLAVE_OK);
        raw_connect(&w, address);
        assert_int_equal(write(w.fd, "mntr", 4), 4);
        for (ssize_t got; (got = read(w.fd, answer + n, sizeof answer - 1 - n)) > 0;)
            n += (size_t)got;
        close(w.fd);
        answer[n] = '\0';
        bool known = strstr(answer, "zk_data_dir_total_bytes\t") != NULL;
        shown = percent < 0 ? !known : strstr(answer, expected) != NULL;
    }
}

/* Once, and again only after there was more than enough. */
TEST(a_disk_that_fills_is_told_in_time)
{
    static const struct {
        int percent, low, enough;
    } steps[] = {{50, 0, 0}, {10, 0, 0}, {9, 1, 0}, {8, 1, 0},  {11, 1, 0}, {9, 1, 0},
                 {13, 1, 1}, {11, 1, 1}, {9, 2, 1}, {-1, 2, 1}, {9, 2, 1}};
    const char *address = rig_unix();
    struct server_run_options o = rig_options(rig_dir(), &address);
    o.engine.snap_count = 5;
    o.engine.log = count_told;
    o.engine.words = "*";
    atomic_store(&left_percent, 60);
    struct rig *r = rig_start_with(&o);
    clave_client *s = rig_session(address);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        write_until_it_shows(s, address, steps[i].percent);
        assert_int_equal(atomic_load(&told_low), steps[i].low);
        assert_int_equal(atomic_load(&told_enough), steps[i].enough);
    }
    clave_client_close(s, 5000);
    assert_int_equal(rig_stop(r), CLAVE_OK);
    r = rig_start_with(&o); /* at the start, too */
    assert_int_equal(atomic_load(&told_low), 3);
    assert_int_equal(rig_stop(r), CLAVE_OK);
    atomic_store(&left_percent, 0);
}

static bool raw_says_imok(const struct raw *w)
{
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    char answer[4] = "";
    assert_int_equal(write(w->fd, "ruok", 4), 4);
    return poll(&p, 1, RIG_PATIENCE_MS) == 1 && read(w->fd, answer, 4) == 4 &&
           memcmp(answer, "imok", 4) == 0;
}

/* It connects when a write has begun, whichever thread of the server makes it. */
TEST(a_newcomer_while_the_disk_stands)
{
    const char *address = rig_unix();
    struct server_run_options o = rig_options(rig_dir(), &address);
    struct rig *r = rig_start_with(&o);
    clave_client *s = rig_session(address);
    for (int i = 0; i < 4; i++) {
        char path[16];
        struct raw w;
        snprintf(path, sizeof path, "/%d", i);
        atomic_store(&stands, true);
        while (atomic_load(&waiting) == 0)
            assert_int_equal(clave_create(s, path, "", 0, NULL, 30, NULL), CLAVE_ETIMEDOUT);
        raw_connect(&w, address);
        bool served = raw_says_imok(&w);
        assert_int_equal(atomic_load(&waiting), 1);
        close(w.fd);
        atomic_store(&stands, false);
        assert_true(served);
        assert_int_equal(clave_exists(s, path, RIG_PATIENCE_MS, NULL), CLAVE_OK);
    }
    clave_client_close(s, 5000);
    assert_int_equal(rig_stop(r), CLAVE_OK);
}

/* ---- no memory ---------------------------------------------------------------------------- */

/* New clients are turned away, several in one pass of the loop too; the others are served, and so
 * is a new one when there is memory again. */
TEST(no_memory_for_a_connection)
{
    enum { CLIENTS = 20 };
    const char *address = rig_unix();
    struct server_run_options o = rig_options(rig_dir(), &address);
    struct rig *r = rig_start_with(&o);
    clave_client *s = rig_session(address);
    struct raw clients[CLIENTS];
    char byte;
    atomic_store(&no_memory, true);
    for (size_t i = 0; i < CLIENTS; i++)
        raw_connect(&clients[i], address);
    for (size_t i = 0; i < CLIENTS; i++) {
        struct pollfd end = {.fd = clients[i].fd, .events = POLLIN};
        assert_int_equal(poll(&end, 1, RIG_PATIENCE_MS), 1);
        assert_true(read(clients[i].fd, &byte, 1) <= 0);
        close(clients[i].fd);
    }
    atomic_store(&no_memory, false);
    assert_int_equal(clave_exists(s, "/", RIG_PATIENCE_MS, NULL), CLAVE_OK);
    clave_client *later = rig_session(address);
    assert_int_equal(clave_exists(later, "/", RIG_PATIENCE_MS, NULL), CLAVE_OK);
    clave_client_close(later, 5000);
    clave_client_close(s, 5000);
    assert_int_equal(rig_stop(r), CLAVE_OK);
}

/* The kernel keeps the connections that it has no memory for. The server serves the others, asks a
 * few times a second, and takes them when there is memory. */
TEST(accepts_that_fail)
{
    static const int errors[] = {ENOMEM, ENOBUFS, ENFILE, EMFILE};
    const char *address = rig_unix();
    struct server_run_options o = rig_options(rig_dir(), &address);
    struct rig *r = rig_start_with(&o);
    clave_client *s = rig_session(address);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        clave_client *later;
        int64_t since = clave_now();
        atomic_store(&accepts_failed, 0);
        atomic_store(&accept_error, errors[i]);
        assert_int_equal(clave_client_open(&later, NULL, address, NULL), CLAVE_OK);
        while (atomic_load(&accepts_failed) < 2)
            assert_int_equal(clave_exists(s, "/", RIG_PATIENCE_MS, NULL), CLAVE_OK);
        assert_true(atomic_load(&accepts_failed) <= 2 + (clave_now() - since) / 100);
        atomic_store(&accept_error, 0);
        assert_int_equal(clave_client_wait(later, RIG_PATIENCE_MS), CLAVE_OK);
        clave_client_close(later, 5000);
    }
    clave_client_close(s, 5000);
    assert_int_equal(rig_stop(r), CLAVE_OK);
}

static atomic_int accepts_told;

static void count_accepts_told(void *arg, int level, const char *msg)
{
    (void)arg;
    (void)level;
    if (strstr(msg, "cannot accept an HTTP connection"))
        atomic_fetch_add(&accepts_told, 1);
}

/* HTTP asks as rarely, and the log is not filled: a line a second. */
TEST(accepts_of_http_that_fail)
{
    const char *address = rig_unix();
    struct server_run_options o = rig_options(rig_dir(), &address);
    o.admin = "127.0.0.1:0";
    o.engine.log = count_accepts_told;
    struct rig *r = rig_start_with(&o);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)atoi(strchr(clave__server_run_admin(r->run), ':') + 1));
    int64_t since = clave_now();
    atomic_store(&accepts_failed, 0);
    atomic_store(&accept_error, EMFILE);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    while (atomic_load(&accepts_failed) < 8)
        poll(NULL, 0, 10);
    int told = atomic_load(&accepts_told);
    assert_in_range(told, 1, 1 + (clave_now() - since) / 1000);
    atomic_store(&accept_error, 0);
    close(fd);
    assert_int_equal(rig_stop(r), CLAVE_OK);
}

/* ---- a process that stands, clocks that step
 * ----------------------------------------------------- */

/* A session, and its server stopped before it can have ended. false: it may have. */
static bool stop_while_it_lasts(struct raw *w, const struct rig_process *p, const char *address)
{
    raw_open(w, address, SHORT_MS);
    int64_t spoke = clave_now();
    raw_ping(w);
    bool hears = raw_hears(w, 1);
    rig_freeze(p);
    return hears && clave_now() - spoke < SHORT_MS / 2;
}

/* Stopped for longer than a session's timeout: what the client has sent meanwhile is read first. */
TEST_FIRST(a_stopped_server_hears_its_clients_first)
{
    const char *address = rig_unix();
    struct rig_process p;
    struct raw w;
    rig_fork(&p, rig_dir(), address);
    while (!stop_while_it_lasts(&w, &p, address)) {
        assert_int_equal(kill(p.pid, SIGCONT), 0);
        close(w.fd);
    }
    usleep(3 * SHORT_MS * 1000);
    raw_ping(&w);
    assert_int_equal(kill(p.pid, SIGCONT), 0);
    assert_true(raw_hears(&w, 1));
    close(w.fd);
    assert_int_equal(rig_kill(&p, SIGTERM), 0);
}

/* The wall clock is for what is shown: no session ends by it, no id comes again. */
TEST(the_wall_clock_steps)
{
    static const long long steps[] = {3600000, -7200000, -86400000, 0};
    const char *data = rig_dir(), *address = rig_unix();
    struct server_run_options o = rig_options(data, &address);
    struct rig *r = rig_start_with(&o);
    clave_client *first = rig_session(address);
    clave_create_options e = {.size = sizeof e, .mode = CLAVE_EPHEMERAL};
    int64_t ids[4] = {clave_client_id(first)};
    assert_int_equal(clave_create(first, "/e", "", 0, &e, 5000, NULL), CLAVE_OK);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        clave_reply *reply = NULL;
        char path[16];
        atomic_store(&wall_step_ms, steps[i]);
        if (i == 1) { /* also over a restart */
            assert_int_equal(rig_stop(r), CLAVE_OK);
            r = rig_start_with(&o);
        }
        clave_client *s = rig_session(address);
        for (size_t k = 0; k < i; k++)
            assert_true(clave_client_id(s) != ids[k]);
        if (i > 0)
            ids[i] = clave_client_id(s);
        assert_true(clave_client_id(s) != ids[0]);
        snprintf(path, sizeof path, "/%zu", i);
        assert_int_equal(clave_create(s, path, "", 0, NULL, 5000, NULL), CLAVE_OK);
        assert_int_equal(clave_exists(s, path, 5000, &reply), CLAVE_OK);
        int64_t expected = (int64_t)time(NULL) * 1000 + steps[i];
        assert_in_range(reply->stat.ctime, (uint64_t)(expected - 20000),
                        (uint64_t)(expected + 20000));
        clave_reply_free(reply);
        assert_int_equal(clave_exists(s, "/e", 5000, NULL), CLAVE_OK);
        clave_client_close(s, 5000);
    }
    assert_true(clave_client_id(first) == ids[0]);
    clave_client_close(first, 5000);
    assert_int_equal(rig_stop(r), CLAVE_OK);
}
