/* txn_log_file_test.c - a log by itself, on a disk whose writes and syncs can fail. The calls are
 * caught where the program is linked (-Wl,--wrap). */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/store/txn_log_thread.h"
#include "server/server.h"

/* Of each kind of call: so many were made; the errno of the next one, 0: it works. */
static struct calls {
    int made;
    int fails;
} writes, fills, syncs;

static bool fails(struct calls *c)
{
    c->made++;
    errno = c->fails;
    c->fails = 0;
    return errno != 0;
}

ssize_t __real_pwrite(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at);
int __wrap_fdatasync(int fd);

static bool is_zeros(const char *p, size_t n)
{
    return n > 0 && p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/* A half of it is written before it fails. */
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at)
{
    if (!fails(is_zeros(p, n) ? &fills : &writes))
        return __real_pwrite(fd, p, n, at);
    int number = errno;
    ssize_t ignored = __real_pwrite(fd, p, n / 2, at);
    (void)ignored;
    errno = number;
    return -1;
}

/* Nothing here is to outlive the machine. */
int __wrap_fdatasync(int fd)
{
    (void)fd;
    return fails(&syncs) ? -1 : 0;
}

static struct txn_log_file create(const char *dir)
{
    struct txn_log_file f;
    int at = open(dir, O_RDONLY | O_DIRECTORY);
    assert_true(at >= 0);
    assert_int_equal(clave__txn_log_file_create(&f, at, 1), 0);
    close(at);
    return f;
}

static int append(struct txn_log_file *f, size_t n)
{
    static char batch[64 * 1024];
    memset(batch, 'x', sizeof batch);
    return clave__txn_log_file_append(f, batch, n);
}

static long long length(const char *dir)
{
    struct stat st;
    assert_int_equal(stat(rig_path(dir, "log.1"), &st), 0);
    return st.st_size;
}

/* The process may be killed before it closes the log: nothing of the batch may be there for the
 * next start to read. */
TEST(a_failed_append_is_cut_off_at_once)
{
    static const struct {
        struct calls *calls;
        int number;
    } cases[] = {{&syncs, EIO}, {&writes, EIO}, {&writes, ENOSPC}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *dir = rig_dir();
        CLOSED_BY(clave__txn_log_file_close) struct txn_log_file f = create(dir);
        assert_int_equal(append(&f, 8), 0);
        cases[i].calls->fails = cases[i].number;
        assert_int_equal(append(&f, 8), cases[i].number);
        assert_int_equal(length(dir), SERVER_LOG_HEADER + 8);
    }
}

/* How many writes of zeros an append takes. */
static int fills_of(struct txn_log_file *f, size_t n)
{
    int before = fills.made;
    assert_int_equal(append(f, n), 0);
    return fills.made - before;
}

/* The first sync of a block that was only allocated waits for the file system's journal. */
TEST(short_batches_have_zeros_ahead)
{
    CLOSED_BY(clave__txn_log_file_close) struct txn_log_file f = create(rig_dir());
    assert_in_range(fills_of(&f, 200), 4, 5); /* 64 KiB: the whole room at first */
    assert_int_equal(fills_of(&f, 200), 0);
    for (int i = 0; i < 8; i++) /* long ones have none, since they would use them up at once */
        assert_int_equal(fills_of(&f, 64 * 1024), 0);
    assert_in_range(fills_of(&f, 200), 16, 17);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(fills_of(&f, 200), 0);
}

/* Such a log is slower, and nothing else. */
TEST(zeros_that_cannot_be_written_are_done_without)
{
    static const int numbers[] = {ENOSPC, EIO};
    for (size_t i = 0; i < 2; i++) {
        const char *dir = rig_dir();
        struct txn_log_file f = create(dir);
        fills.fails = numbers[i];
        assert_int_equal(fills_of(&f, 200), 1);
        for (int k = 0; k < 1000; k++)
            assert_int_equal(append(&f, 200), 0);
        clave__txn_log_file_close(&f);
        assert_int_equal(length(dir), SERVER_LOG_HEADER + 1001 * 200);
    }
}
