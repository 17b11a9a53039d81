/* purge_test.c - what is removed after a snapshot, and how: large files piece by piece, but never
 * under somebody who still has them. */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/store/file_names.h"

enum { SIZE = 10 << 20, PIECES = 2 }; /* all but the last 4 MiB and less */

static int shrunk, synced;
static bool opened_meanwhile; /* by somebody who has resolved the name before */

int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_fsync(int fd);

static void open_in_another_process(int fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), fd);
    pid_t child = fork();
    if (child == 0)
        _exit(open(path, O_RDONLY | O_NONBLOCK) >= 0 || errno != EWOULDBLOCK);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int __wrap_ftruncate(int fd, off_t size)
{
    if (opened_meanwhile && shrunk == 0)
        open_in_another_process(fd);
    shrunk++;
    return __real_ftruncate(fd, size);
}

int __wrap_fsync(int fd)
{
    (void)fd;
    synced++;
    return 0;
}

static void put(const char *dir, const char *name)
{
    int fd = open(rig_path(dir, name), O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(__real_ftruncate(fd, SIZE), 0);
    close(fd);
}

/* Four snapshots: the oldest is not needed, nor the log before the next. */
static const char *furnish(void)
{
    static const char *const names[] = {"snapshot.1", "snapshot.11", "snapshot.21", "snapshot.31",
                                        "log.1",      "log.11",      "log.21"};
    const char *dir = rig_dir();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(dir, names[i]);
    shrunk = synced = 0;
    opened_meanwhile = false;
    return dir;
}

static void purge(const char *dir)
{
    struct purged purged;
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(clave__purge(fd, &purged), 0);
    assert_int_equal(purged.snapshots, SIZE);
    assert_int_equal(purged.logs, SIZE);
    close(fd);
}

static bool exists(const char *dir, const char *name)
{
    return access(rig_path(dir, name), F_OK) == 0;
}

static long long length_of(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return st.st_size;
}

static void large_files_go_piece_by_piece(void **state)
{
    (void)state;
    const char *dir = furnish();
    purge(dir);
    assert_int_equal(shrunk, 2 * PIECES);
    assert_int_equal(synced, 2 * (1 + PIECES)); /* the names first */
    assert_false(exists(dir, "snapshot.1"));
    assert_false(exists(dir, "log.1"));
    assert_true(exists(dir, "snapshot.11"));
    assert_true(exists(dir, "log.11"));
}

/* As a backup does that began before. */
static void who_reads_a_file_can_read_all_of_it(void **state)
{
    (void)state;
    const char *dir = furnish();
    int log = open(rig_path(dir, "log.1"), O_RDONLY);
    purge(dir);
    assert_int_equal(shrunk, PIECES); /* the snapshot */
    assert_false(exists(dir, "log.1"));
    assert_int_equal(length_of(log), SIZE);
    close(log);
}

/* As `cp -l` makes it. */
static void a_file_with_another_name_stays_whole(void **state)
{
    (void)state;
    const char *dir = furnish();
    char old[4096];
    snprintf(old, sizeof old, "%s", rig_path(dir, "snapshot.1"));
    assert_int_equal(link(old, rig_path(dir, "copy")), 0);
    purge(dir);
    assert_int_equal(shrunk, PIECES); /* the log */
    int copy = open(rig_path(dir, "copy"), O_RDONLY);
    assert_int_equal(length_of(copy), SIZE);
    close(copy);
}

/* The kernel tells with a signal, which by default would end the server. */
static void who_comes_late_stops_it(void **state)
{
    (void)state;
    const char *dir = furnish();
    opened_meanwhile = true;
    purge(dir);
    assert_int_equal(shrunk, 1 + PIECES); /* of the snapshot, and the log */
    assert_false(exists(dir, "snapshot.1"));
}

static void skip_without_leases(void)
{
    int fd = open(rig_path(rig_dir(), "file"), O_WRONLY | O_CREAT, 0600);
    bool granted = fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
    close(fd);
    if (!granted) {
        printf("this file system grants no leases\n");
        exit(77);
    }
}

int main(void)
{
    skip_without_leases();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_files_go_piece_by_piece),
        cmocka_unit_test(who_reads_a_file_can_read_all_of_it),
        cmocka_unit_test(a_file_with_another_name_stays_whole),
        cmocka_unit_test(who_comes_late_stops_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
