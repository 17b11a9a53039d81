/* datadir_test.c - what recovery makes of directories as crashes, disks and people leave them. */
#include "rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/store/datadir.h"
#include "runtime/store/file_names.h"
#include "server/store/adler32.h"

/* ---- directories with something in them ------------------------------------------------- */

enum { RUNS = 3, EACH = 5 };

static void create_nodes(const char *connect, unsigned from, unsigned n)
{
    char path[32];
    clave_client *s = rig_session(connect);
    for (unsigned i = from; i < from + n; i++) {
        snprintf(path, sizeof path, "/n%u", i);
        assert_int_equal(clave_create(s, path, "data", 4, NULL, 5000, NULL), CLAVE_OK);
    }
    clave_client_close(s, 5000);
}

static void assert_nodes(const char *connect, unsigned n)
{
    char path[32];
    clave_client *s = rig_session(connect);
    for (unsigned i = 0; i < n; i++) {
        snprintf(path, sizeof path, "/n%u", i);
        assert_int_equal(clave_exists(s, path, 5000, NULL), CLAVE_OK);
    }
    clave_client_close(s, 5000);
}

/* Three runs, so three logs; in each a session is created, five nodes, and it is closed. */
static const char *used_directory(void)
{
    const char *data = rig_dir();
    for (unsigned i = 0; i < RUNS; i++) {
        struct rig *r = rig_start(data, NULL);
        create_nodes(r->connect, i * EACH, EACH);
        assert_int_equal(rig_stop(r), CLAVE_OK);
    }
    return data;
}

/* Number i of the logs or snapshots, oldest first; -1: the newest. */
static const char *file_of(const char *data, enum file_kind kind, int i)
{
    char name[FILE_NAME_SIZE];
    struct file_list list;
    const char *v2 = rig_path(data, "version-2");
    DIR *d = opendir(v2);
    assert_non_null(d);
    assert_int_equal(clave__file_list_read(dirfd(d), kind, &list), 0);
    closedir(d);
    assert_true(list.n > (size_t)(i < 0 ? 0 : i));
    clave__file_name(name, kind, list.zxid[i < 0 ? list.n - 1 : (size_t)i]);
    clave__file_list_free(&list);
    return rig_path(v2, name);
}

static size_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (size_t)st.st_size;
}

static void flip(const char *path, size_t at)
{
    size_t n;
    char *p = rig_read(path, &n);
    assert_true(at < n);
    p[at] ^= 1;
    rig_write(path, p, n);
    free(p);
}

static int32_t int_at(const uint8_t *p)
{
    return (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

/* Of whole records of its own: how many bytes the log has in front of its last one. */
static size_t last_record(const char *log)
{
    size_t n, last = 0;
    uint8_t *p = rig_read(log, &n);
    for (size_t at = 16; at + 12 < n && int_at(p + at + 8) > 0;
         at += 12 + (size_t)int_at(p + at + 8) + 1)
        last = at;
    free(p);
    return last;
}

/* The newest log, as if a later leader of an ensemble had written it: its zxids begin with 0x1
 * 00000001. */
static void later_leader(const char *data)
{
    size_t n, counter = 1;
    const char *log = file_of(data, FILE_LOG, -1);
    uint8_t *p = rig_read(log, &n);
    for (size_t at = 16; at + 12 < n && int_at(p + at + 8) > 0; counter++) {
        size_t len = (size_t)int_at(p + at + 8);
        const uint8_t zxid[8] = {0, 0, 0, 1, 0, 0, 0, (uint8_t)counter};
        memcpy(p + at + 12 + 12, zxid, sizeof zxid);
        uint32_t sum = clave__checksum(CHECKSUM_START, p + at + 12, len);
        for (size_t i = 0; i < 4; i++)
            p[at + 4 + i] = (uint8_t)(sum >> (24 - 8 * i));
        at += 12 + len + 1;
    }
    rig_write(rig_path(rig_path(data, "version-2"), "log.100000001"), p, n);
    unlink(log);
    free(p);
}

/* ---- what is refused --------------------------------------------------------------------- */

static void foreign(const char *data)
{
    rig_write(rig_path(data, "photo.jpg"), "x", 1);
    rename(rig_path(data, "version-2"), rig_path(data, "holiday"));
}

static void no_snapshot(const char *data)
{
    unlink(file_of(data, FILE_SNAPSHOT, 0));
}

static void damaged_snapshot(const char *data)
{
    flip(file_of(data, FILE_SNAPSHOT, 0), 60);
}

static void compressed_snapshot(const char *data)
{
    const char *v2 = rig_path(data, "version-2");
    rename(file_of(data, FILE_SNAPSHOT, 0), rig_path(v2, "snapshot.0.gz"));
}

static void compressed_newest_snapshot(const char *data)
{
    rig_write(rig_path(rig_path(data, "version-2"), "snapshot.ffff.snappy"), "garbage", 7);
}

/* The logs before it are gone, as they may be when it is whole. */
static void compressed_snapshot_in_a_gap(const char *data)
{
    unlink(file_of(data, FILE_LOG, 0));
    rig_write(rig_path(rig_path(data, "version-2"), "snapshot.7.gz"), "garbage", 7);
}

static void damage_behind_a_compressed_snapshot(const char *data)
{
    flip(file_of(data, FILE_LOG, -1), 40);
    rig_write(rig_path(rig_path(data, "version-2"), "snapshot.2.gz"), "garbage", 7);
}

static void damaged_header(const char *data)
{
    flip(file_of(data, FILE_LOG, 0), 0);
}

static void flipped_bit(const char *data)
{
    flip(file_of(data, FILE_LOG, 1), 40);
}

static void flipped_bit_at_the_end(const char *data)
{
    const char *log = file_of(data, FILE_LOG, -1);
    flip(log, size_of(log) - 10); /* its end mark is there: it was finished once */
}

/* What was acknowledged came after it; that a later leader went on does not say that he had not
 * had it. */
static void flipped_bit_before_a_later_leader(const char *data)
{
    later_leader(data);
    flipped_bit(data);
}

static void flipped_last_record_before_a_later_leader(const char *data)
{
    const char *log = file_of(data, FILE_LOG, 1);
    later_leader(data);
    flip(log, last_record(log) + 40);
}

static void missing_log(const char *data)
{
    unlink(file_of(data, FILE_LOG, 1));
}

static void short_log_in_the_middle(const char *data)
{
    assert_int_equal(truncate(file_of(data, FILE_LOG, 1), 10), 0);
}

static void cut_log_in_the_middle(const char *data)
{
    const char *log = file_of(data, FILE_LOG, 1);
    assert_int_equal(truncate(log, (off_t)size_of(log) - 3), 0);
}

static void hole(const char *data)
{
    static const char zeros[64];
    const char *log = file_of(data, FILE_LOG, -1);
    FILE *f = fopen(log, "r+");
    fseek(f, 16, SEEK_SET);
    fwrite(zeros, 1, sizeof zeros, f);
    fclose(f);
}

/* A newer snapshot that is no good, and no logs that lead there. */
static void unreadable_newest_snapshot(const char *data)
{
    const char *v2 = rig_path(data, "version-2");
    rig_write(rig_path(v2, "snapshot.ffff"), "garbage", 7);
}

/* What Apache's scripts and common layouts put beside version-2. */
TEST(files_of_apache_are_left_alone)
{
    static const char *const names[] = {"zoo.cfg",
                                        "zoo.cfg.bak",
                                        "zoo.cfg.dynamic",
                                        "zoo.cfg.dynamic.100000000",
                                        "zookeeper_server.pid",
                                        "zookeeper.out",
                                        "zookeeper.log",
                                        "zookeeper-joe-server-host.example.out",
                                        "zookeeper-joe-server-host.example.log",
                                        "zookeeper--server-host.out",
                                        "zookeeper.log.1",
                                        "zookeeper_audit.log",
                                        "zookeeper_trace.log",
                                        "java_pid4711.hprof",
                                        "hs_err_pid4711.log",
                                        "myid"};
    enum { NAMES = sizeof names / sizeof *names };
    const char *data = rig_dir();
    for (size_t i = 0; i < NAMES; i++)
        rig_write(rig_path(data, names[i]), names[i], strlen(names[i]));
    assert_int_equal(rig_stop(rig_start(data, NULL)), CLAVE_OK);
    for (size_t i = 0; i < NAMES; i++) {
        size_t n;
        unsigned char *p = rig_read(rig_path(data, names[i]), &n);
        assert_int_equal(n, strlen(names[i]));
        assert_memory_equal(p, names[i], n);
        free(p);
    }
}

static void version_2_is_a_file(const char *data)
{
    rename(rig_path(data, "version-2"), rig_path(rig_dir(), "aside"));
    rig_write(rig_path(data, "version-2"), "", 0);
}

static const struct damage {
    const char *name;
    void (*apply)(const char *data);
    clave_err err;
    const char *says[2];
} damages[] = {
    {"foreign", foreign, CLAVE_ECORRUPT, {"no version-2", "'"}},
    {"no snapshot", no_snapshot, CLAVE_ECORRUPT, {"no snapshot", "restore"}},
    {"damaged snapshot", damaged_snapshot, CLAVE_ECORRUPT, {"snapshot.0", "restore"}},
    {"compressed", compressed_snapshot, CLAVE_ECORRUPT, {"snapshot.0.gz", "ZooKeeper"}},
    {"compressed newest",
     compressed_newest_snapshot,
     CLAVE_ECORRUPT,
     {"snapshot.ffff.snappy", "ZooKeeper"}},
    {"compressed in a gap",
     compressed_snapshot_in_a_gap,
     CLAVE_ECORRUPT,
     {"snapshot.7.gz", "ZooKeeper"}},
    {"damage behind a compressed one",
     damage_behind_a_compressed_snapshot,
     CLAVE_ECORRUPT,
     {"/log.", "restore"}},
    {"damaged header", damaged_header, CLAVE_ECORRUPT, {"log.1", "restore"}},
    {"flipped bit", flipped_bit, CLAVE_ECORRUPT, {"/log.", "restore"}},
    {"flipped bit at the end", flipped_bit_at_the_end, CLAVE_ECORRUPT, {"/log.", "restore"}},
    {"flipped bit, later leader",
     flipped_bit_before_a_later_leader,
     CLAVE_ECORRUPT,
     {"wrong checksum", "--until"}},
    {"flipped last record, later leader",
     flipped_last_record_before_a_later_leader,
     CLAVE_ECORRUPT,
     {"wrong checksum", "--until"}},
    {"missing log", missing_log, CLAVE_ECORRUPT, {"/log.", "restore"}},
    {"short log", short_log_in_the_middle, CLAVE_ECORRUPT, {"10 bytes", "restore"}},
    {"cut log", cut_log_in_the_middle, CLAVE_ECORRUPT, {"/log.", "restore"}},
    {"hole", hole, CLAVE_ECORRUPT, {"/log.", "restore"}},
    {"newest snapshot", unreadable_newest_snapshot, CLAVE_ECORRUPT, {"snapshot.ffff", "restore"}},
    {"version-2 is a file", version_2_is_a_file, CLAVE_EIO, {"version-2", "ot a directory"}},
};

/* Names and contents of version-2: a refused start must not change them. */
static uint64_t fingerprint(const char *data)
{
    uint64_t sum = 0;
    const char *v2 = rig_path(data, "version-2");
    DIR *d = opendir(v2);
    const struct dirent *e;
    while (d && (e = readdir(d))) {
        char path[512];
        size_t n = 0;
        snprintf(path, sizeof path, "%s/%s", v2, e->d_name);
        unsigned char *p = e->d_name[0] == '.' ? NULL : rig_read(path, &n);
        uint64_t h = 0xcbf29ce484222325u;
        for (const char *c = e->d_name; *c; c++)
            h = (h ^ (unsigned char)*c) * 0x100000001b3u;
        for (size_t i = 0; i < n; i++)
            h = (h ^ p[i]) * 0x100000001b3u;
        sum += h;
        free(p);
    }
    if (d)
        closedir(d);
    return sum;
}

static void assert_refused(const char *data, const struct damage *d)
{
    const char *listen = "127.0.0.1:0";
    struct server_run_options o = rig_options(data, &listen);
    struct server_run *run;
    char fault[1024];
    uint64_t before = fingerprint(data);
    clave_err err = clave__server_run_new(&run, &o, fault, sizeof fault);
    if (err != d->err)
        fail_msg("%s: %s, not %s: %s", d->name, clave_err_name(err), clave_err_name(d->err), fault);
    assert_null(run);
    for (size_t i = 0; i < 2; i++)
        if (!strstr(fault, d->says[i]))
            fail_msg("%s: '%s' does not say '%s'", d->name, fault, d->says[i]);
    if (!strstr(fault, data))
        fail_msg("%s: '%s' does not name %s", d->name, fault, data);
    assert_true(fingerprint(data) == before);
}

TEST(damage_is_refused)
{
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const char *data = used_directory();
        damages[i].apply(data);
        assert_refused(data, &damages[i]);
        assert_refused(data, &damages[i]); /* and again */
    }
}

TEST(a_path_that_is_a_file)
{
    const char *data = rig_path(rig_dir(), "file");
    rig_write(data, "x", 1);
    assert_refused(data, &(struct damage){"file", NULL, CLAVE_EIO, {"cannot open", "irectory"}});
}

TEST(no_permission)
{
    if (geteuid() == 0)
        skip();
    const char *data = used_directory();
    chmod(rig_path(data, "version-2"), 0500);
    assert_refused(data, &(struct damage){"mode", NULL, CLAVE_EIO, {"ermission", "version-2"}});
    chmod(rig_path(data, "version-2"), 0700);
}

/* ---- what is put right --------------------------------------------------------------------- */

static void torn_to_nothing(const char *data)
{
    assert_int_equal(truncate(file_of(data, FILE_LOG, -1), 0), 0);
}

static void torn_in_the_header(const char *data)
{
    assert_int_equal(truncate(file_of(data, FILE_LOG, -1), 7), 0);
}

static void torn_behind_the_header(const char *data)
{
    assert_int_equal(truncate(file_of(data, FILE_LOG, -1), 16), 0);
}

static void padded(const char *data)
{
    const char *log = file_of(data, FILE_LOG, -1);
    assert_int_equal(truncate(log, (off_t)size_of(log) + 70000), 0);
}

static void padded_in_the_middle(const char *data)
{
    const char *log = file_of(data, FILE_LOG, 1);
    assert_int_equal(truncate(log, (off_t)size_of(log) + 70000), 0);
}

static void strays(const char *data)
{
    const char *v2 = rig_path(data, "version-2");
    rig_write(rig_path(v2, "currentEpoch"), "0", 1);
    rig_write(rig_path(v2, "acceptedEpoch"), "0", 1);
    rig_write(rig_path(v2, "notes.txt"), "mine", 4);
    rig_write(rig_path(v2, "unfinished.snapshot"), "ZKSN", 4);
}

/* The newest is damaged, but the logs reach from the one before it. */
static void damaged_newest_snapshot(const char *data)
{
    size_t n;
    const char *v2 = rig_path(data, "version-2");
    char *p = rig_read(file_of(data, FILE_SNAPSHOT, 0), &n);
    p[n / 2] ^= 1;
    rig_write(rig_path(v2, "snapshot.3"), p, n);
    free(p);
}

/* ZooKeeper stopped reading at a hole that a power cut had left in a batch, and went on in a new
 * file: what it passed over was never acknowledged. */
static void passed_over(const char *data)
{
    size_t n, newer;
    const char *log = file_of(data, FILE_LOG, 1);
    char *p = rig_read(log, &n), *q = rig_read(file_of(data, FILE_LOG, 2), &newer);
    char *whole = calloc(1, n + 700 + newer);
    assert_non_null(whole);
    memcpy(whole, p, n);
    memcpy(whole + n + 700, q + 16, newer - 16);
    rig_write(log, whole, n + 700 + newer - 16);
    free(whole);
    free(p);
    free(q);
}

static const struct mend {
    const char *name;
    void (*apply)(const char *data);
    unsigned nodes; /* that are left */
} mends[] = {
    {"torn to nothing", torn_to_nothing, (RUNS - 1) * EACH},
    {"torn in the header", torn_in_the_header, (RUNS - 1) * EACH},
    {"torn behind the header", torn_behind_the_header, (RUNS - 1) * EACH},
    {"padded", padded, RUNS *EACH},
    {"padded in the middle", padded_in_the_middle, RUNS *EACH},
    {"passed over", passed_over, RUNS *EACH},
    {"later leader", later_leader, RUNS *EACH},
    {"strays", strays, RUNS *EACH},
    {"damaged newest snapshot", damaged_newest_snapshot, RUNS *EACH},
};

TEST(leftovers_are_put_right)
{
    for (size_t i = 0; i < sizeof mends / sizeof *mends; i++) {
        const char *data = used_directory();
        mends[i].apply(data);
        for (unsigned again = 0; again < 2; again++) {
            struct rig *r = rig_start(data, NULL);
            assert_nodes(r->connect, mends[i].nodes);
            create_nodes(r->connect, 100 + again, 1);
            assert_int_equal(rig_stop(r), CLAVE_OK);
        }
    }
}

struct lines {
    char text[4096];
};

static void keep_line(void *arg, int level, const char *msg)
{
    struct lines *l = arg;
    size_t n = strlen(l->text);
    (void)level;
    snprintf(l->text + n, sizeof l->text - n, "%s\n", msg);
}

static bool is_padding(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

/* An old log that somebody may have cut off: the start is not refused, and not silent. */
TEST(a_record_cut_off_before_a_later_leader)
{
    const char *listen = "127.0.0.1:0", *data = used_directory();
    struct server_run_options o = rig_options(data, &listen);
    struct lines lines = {""};
    struct server_run *run;
    char fault[512] = "", at[64];
    const char *log = file_of(data, FILE_LOG, 1);
    size_t last = last_record(log);
    later_leader(data);
    assert_int_equal(truncate(log, (off_t)size_of(log) - 3), 0);
    o.engine.log = keep_line;
    o.engine.log_arg = &lines;
    assert_int_equal(clave__server_run_new(&run, &o, fault, sizeof fault), CLAVE_OK);
    clave__server_run_free(run);
    snprintf(at, sizeof at, "offset %zu was never finished", last);
    assert_non_null(strstr(lines.text, at));
}

/* The newest record, torn at every byte: everything before it is there, the rest is cut off
 * and said to be. */
TEST(a_torn_tail_is_cut_off)
{
    const char *data = used_directory(), *log = file_of(data, FILE_LOG, -1);
    size_t n, record = 0;
    char *whole = rig_read(log, &n);
    /* The last record is the closing of a session: find where it begins. */
    for (size_t at = 16; at < n;) {
        record = at;
        const unsigned char *len = (const unsigned char *)whole + at + 8;
        at += 12 + ((size_t)len[0] << 24 | (size_t)len[1] << 16 | (size_t)len[2] << 8 | len[3]) + 1;
    }
    for (size_t keep = record + 1; keep < n; keep += keep + 3 < n ? 3 : 1) {
        struct lines lines = {""};
        const char *listen = "127.0.0.1:0";
        struct server_run_options o = rig_options(data, &listen);
        struct server_run *run;
        char fault[512], says[64];
        if (is_padding(whole + record, keep - record))
            continue; /* as Apache puts behind its records: nothing to say */
        rig_write(log, whole, keep);
        o.engine.log = keep_line;
        o.engine.log_arg = &lines;
        clave_err err = clave__server_run_new(&run, &o, fault, sizeof fault);
        if (err != CLAVE_OK)
            fail_msg("cut at %zu of %zu: %s", keep, n, fault);
        clave__server_run_free(run);
        assert_int_equal(size_of(log), record);
        snprintf(says, sizeof says, "cut off the last %zu bytes", keep - record);
        assert_non_null(strstr(lines.text, says));
    }
    free(whole);
    struct rig *r = rig_start(data, NULL);
    assert_nodes(r->connect, RUNS * EACH);
    rig_stop(r);
}

/* ---- one at a time ------------------------------------------------------------------------ */

TEST(a_locked_directory_names_its_holder)
{
    const char *data = rig_dir(), *listen = "127.0.0.1:0";
    struct rig *r = rig_start(data, NULL);
    struct server_run_options o = rig_options(data, &listen);
    struct server_run *run;
    char fault[512], pid[32];
    assert_int_equal(clave__server_run_new(&run, &o, fault, sizeof fault), CLAVE_EINUSE);
    snprintf(pid, sizeof pid, "process %d", (int)getpid());
    assert_non_null(strstr(fault, pid));
    assert_non_null(strstr(fault, data));
    rig_stop(r);
    rig_stop(rig_start(data, NULL));
}

TEST(a_new_directory_has_a_snapshot_first)
{
    const char *data = rig_path(rig_path(rig_dir(), "made"), "up");
    struct rig *r = rig_start(data, NULL);
    assert_int_equal(access(rig_path(data, "version-2/snapshot.0"), R_OK), 0);
    assert_int_not_equal(access(rig_path(data, "version-2/log.1"), R_OK), 0);
    create_nodes(r->connect, 0, 1);
    assert_int_equal(access(rig_path(data, "version-2/log.1"), R_OK), 0);
    rig_stop(r);
}

/* ---- names that cannot be read ---------------------------------------------------------- */

struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);

/* The so many-th call of readdir() from now on fails; 0: none. */
static int names_until_fault;

struct dirent *__wrap_readdir(DIR *dir)
{
    if (names_until_fault == 0 || --names_until_fault > 0)
        return __real_readdir(dir);
    errno = EIO;
    return NULL;
}

/* A name that is not shown may be that of the newest snapshot, or of a file that is not ours. Only
 * the sizes of the files, which are measured last, may be wrong. */
TEST(names_that_cannot_be_read)
{
    const char *data = rig_dir(), *address = rig_unix();
    struct server_run_options o = rig_options(data, &address);
    struct server_run *run;
    char fault[600];
    int passes = 0, n = 0;
    struct rig *r = rig_start(data, NULL);
    create_nodes(r->connect, 0, 5);
    assert_int_equal(rig_stop(r), CLAVE_OK);
    DIR *d = opendir(rig_path(data, "version-2"));
    assert_non_null(d);
    for (n = 1; __real_readdir(d); n++)
        continue;
    closedir(d);
    for (clave_err err = CLAVE_EIO; err == CLAVE_EIO; passes++) {
        names_until_fault = passes * n + 1;
        err = clave__server_run_new(&run, &o, fault, sizeof fault);
        if (err == CLAVE_OK)
            clave__server_run_free(run);
        else
            assert_non_null(strstr(fault, "cannot read"));
    }
    assert_int_equal(passes - 1, 3); /* snapshots, logs, the others; then they are measured */
    const char *foreign = rig_dir();
    close(open(rig_path(foreign, "letter"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    o = rig_options(foreign, &address);
    names_until_fault = 1;
    assert_int_equal(clave__server_run_new(&run, &o, fault, sizeof fault), CLAVE_EIO);
    assert_non_null(strstr(fault, "cannot read the data directory"));
    names_until_fault = 0;
}

/* ---- the longest session ------------------------------------------------------------------ */

TEST(a_damaged_note_of_the_longest_session)
{
    static const struct {
        const char *bytes;
        size_t n;
        clave_err err;
        int32_t ms;
    } cases[] = {
        {"40000\n", 6, CLAVE_OK, 40000},
        {"2147483647\n", 11, CLAVE_OK, INT32_MAX},
        {"", 0, CLAVE_ECORRUPT, 0},
        {"\n", 1, CLAVE_ECORRUPT, 0},
        {"0\n", 2, CLAVE_ECORRUPT, 0},
        {"40000", 5, CLAVE_ECORRUPT, 0},
        {"40000\n\n", 7, CLAVE_ECORRUPT, 0},
        {"-40000\n", 7, CLAVE_ECORRUPT, 0},
        {"40 s\n", 5, CLAVE_ECORRUPT, 0},
        {"\0\0\0\0\0\0", 6, CLAVE_ECORRUPT, 0},
        {"2147483648\n", 11, CLAVE_ECORRUPT, 0},
        {"99999999999999999999999\n", 24, CLAVE_ECORRUPT, 0},
    };
    const char *data = rig_dir();
    char text[1024];
    const struct fault fault = {text, sizeof text};
    assert_int_equal(rig_stop(rig_start(data, NULL)), CLAVE_OK);
    const char *note = rig_path(rig_path(data, "version-2"), FILE_LONGEST_SESSION);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lines lines = {0};
        CLOSED_BY(clave__datadir_close) struct datadir d;
        int32_t ms = -1;
        rig_write(note, cases[i].bytes, cases[i].n);
        assert_int_equal(
            clave__datadir_open(&d, data, &(struct log){.cb = keep_line, .arg = &lines}, &fault),
            CLAVE_OK);
        text[0] = '\0';
        assert_int_equal(clave__datadir_longest_session(&d, &ms, &fault), cases[i].err);
        assert_int_equal(ms, cases[i].ms);
        assert_int_equal(strstr(text, note) != NULL, cases[i].err != CLAVE_OK);
        assert_int_equal(clave__datadir_note_longest_session(&d, 70000, &fault), CLAVE_OK);
        assert_int_equal(strstr(lines.text, "is damaged") && strstr(lines.text, note),
                         cases[i].err != CLAVE_OK);
        assert_int_equal(clave__datadir_longest_session(&d, &ms, &fault), CLAVE_OK);
        assert_int_equal(ms, 70000);
    }
}

/* In its place a link to itself, which can be replaced, and a directory, which cannot. */
TEST(an_unreadable_note_of_the_longest_session)
{
    const char *data = rig_dir();
    char text[1024];
    const struct fault fault = {text, sizeof text};
    assert_int_equal(rig_stop(rig_start(data, NULL)), CLAVE_OK);
    const char *note = rig_path(rig_path(data, "version-2"), FILE_LONGEST_SESSION);
    for (int replaceable = 1; replaceable >= 0; replaceable--) {
        struct lines lines = {0};
        CLOSED_BY(clave__datadir_close) struct datadir d;
        int32_t ms;
        assert_int_equal(unlink(note), 0);
        assert_int_equal(replaceable ? symlink(FILE_LONGEST_SESSION, note) : mkdir(note, 0700), 0);
        assert_int_equal(
            clave__datadir_open(&d, data, &(struct log){.cb = keep_line, .arg = &lines}, &fault),
            CLAVE_OK);
        assert_int_equal(clave__datadir_longest_session(&d, &ms, &fault), CLAVE_EIO);
        text[0] = '\0';
        clave_err err = clave__datadir_note_longest_session(&d, 70000, &fault);
        assert_int_equal(err, replaceable ? CLAVE_OK : CLAVE_EIO);
        assert_non_null(strstr(lines.text, "cannot read "));
        assert_non_null(strstr(lines.text, note));
        assert_int_equal(strstr(lines.text, "it is 70000 again") != NULL, replaceable);
        assert_int_equal(strstr(text, "cannot write ") && strstr(text, note), !replaceable);
        err = clave__datadir_longest_session(&d, &ms, &fault);
        assert_int_equal(err, replaceable ? CLAVE_OK : CLAVE_EIO);
        assert_int_equal(ms, replaceable ? 70000 : 0);
    }
}
