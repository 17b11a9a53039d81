/* ledger.c - what the demo runs under the lock: appends entries to a ledger in the way that
 * corrupts it unless one process at a time does it.
 *
 *     ledger FILE LOG ENTRIES THINK_MS
 *
 * Each entry is a read of the whole ledger, a while of thinking, and a write of the whole
 * ledger: what another process wrote in the meantime is overwritten. The "store" below does only
 * what a store should do for every holder of a lock: it remembers the highest token
 * it has seen, and refuses a write with a lower one. LOG gets a line for everything that
 * happens. Exit codes: 0; 1 trouble; 3 a write was refused. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { LEDGER_MAX = 1 << 20, EXIT_REFUSED = 3 };

static int64_t token;

static void fail(const char *what)
{
    fprintf(stderr, "ledger: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- the log ------------------------------------------------------------------------------ */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

__attribute__((format(printf, 3, 4))) static void note(const char *log, const char *what,
                                                       const char *format, ...)
{
    char line[256], rest[128];
    va_list ap;
    va_start(ap, format);
    vsnprintf(rest, sizeof rest, format, ap);
    va_end(ap);
    int n =
        snprintf(line, sizeof line, "%s %" PRId64 " %" PRId64 " %s\n", what, now_ns(), token, rest);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || n < 0 || write(fd, line, (size_t)n) != n) /* one piece, so lines do not mix */
        fail(log);
    close(fd);
}

/* ---- the store: one file, and beside it the highest token seen ------------------------------ */

static size_t load(const char *file, char *text, size_t cap)
{
    FILE *f = fopen(file, "re");
    size_t n = f ? fread(text, 1, cap - 1, f) : 0;
    if (!f && errno != ENOENT)
        fail(file);
    if (f)
        fclose(f);
    text[n] = '\0';
    return n;
}

/* As a whole or not at all, whenever we are killed. */
static void save(const char *file, const char *text, size_t n)
{
    char fresh[4096];
    snprintf(fresh, sizeof fresh, "%s.%d", file, (int)getpid());
    FILE *f = fopen(fresh, "we");
    if (!f || fwrite(text, 1, n, f) != n || fclose(f) != 0 || rename(fresh, file) != 0)
        fail(fresh);
}

/* 0, or the highest token seen when that is above ours: nothing was written then. The file
 * lock makes this one step; it is held for no longer, so it excludes nobody from overwriting
 * what somebody else has written since we read. */
static int64_t store_write(const char *file, const char *text, size_t n)
{
    char beside[4096], seen[32];
    snprintf(beside, sizeof beside, "%s.token", file);
    int fd = open(beside, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        fail(beside);
    ssize_t got = pread(fd, seen, sizeof seen - 1, 0);
    seen[got > 0 ? got : 0] = '\0';
    int64_t highest = strtoll(seen, NULL, 10);
    if (highest <= token) {
        int digits = snprintf(seen, sizeof seen, "%020" PRId64, token);
        if (pwrite(fd, seen, (size_t)digits, 0) != digits)
            fail(beside);
        save(file, text, n);
    }
    close(fd);
    return highest > token ? highest : 0;
}

/* ---- the work ---------------------------------------------------------------------------------
 */

static int count_lines(const char *text)
{
    int n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

static bool append_entry(const char *file, const char *log, int think_ms)
{
    static char text[LEDGER_MAX];
    size_t n = load(file, text, sizeof text - 128);
    int number = count_lines(text) + 1;
    n += (size_t)snprintf(text + n, sizeof text - n, "entry %d token %" PRId64 " by %d\n", number,
                          token, (int)getpid());
    usleep((useconds_t)think_ms * 1000);
    int64_t highest = store_write(file, text, n);
    if (highest != 0)
        note(log, "refused", "%" PRId64, highest);
    else
        note(log, "write", "%d", number);
    return highest == 0;
}

int main(int argc, char **argv)
{
    const char *text = getenv("CLAVE_TOKEN"), *worker = getenv("DEMO_WORKER");
    if (argc != 5 || !text) {
        fputs("usage: clave lock PATH -- ledger FILE LOG ENTRIES THINK_MS\n", stderr);
        return 1;
    }
    token = strtoll(text, NULL, 10);
    note(argv[2], "begin", "%s %d", worker ? worker : "-", (int)getpid());
    for (int i = atoi(argv[3]); i > 0; i--)
        if (!append_entry(argv[1], argv[2], atoi(argv[4])))
            return EXIT_REFUSED;
    note(argv[2], "end", "-");
    return 0;
}
