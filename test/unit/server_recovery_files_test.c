/* server_recovery_files_test.c - which files of a directory are read, in which order, and what each
 * is taken for: two snapshots and two logs, whole and damaged in every way that has a verdict. */
#include "base/memory.h"
#include "lib/memserver.h"
#include "lib/unit.h"
#include "server/store/recovery_plan.h"

enum { OLD, NEW, EACH };

/* snapshot.0, log.1 with three transactions, snapshot.3, log.4 with three more. */
struct directory {
    struct memserver d;
    struct buf snapshots[EACH];
    struct buf logs[EACH];
    int64_t snapshot_zxid[EACH];
    int64_t log_zxid[EACH];
    struct recovery_files files;
};

static void save(struct directory *dir, int which)
{
    clave__buf_init(&dir->snapshots[which], &dir->d.mem, SIZE_MAX / 4);
    assert_int_equal(
        clave__server_save_snapshot(dir->d.s, &dir->snapshots[which], &dir->snapshot_zxid[which]),
        CLAVE_OK);
}

/* What was logged from an offset on, as a file. */
static void cut_log(struct directory *dir, int which, size_t from)
{
    struct buf *log = &dir->logs[which];
    clave__buf_init(log, &dir->d.mem, SIZE_MAX / 4);
    clave__buf_append(log, dir->d.log.data, SERVER_LOG_HEADER);
    clave__buf_append(log, dir->d.log.data + from, dir->d.log.tail - from);
}

static void directory_make(struct directory *dir)
{
    struct memserver_conn c;
    memserver_open(&dir->d, NULL);
    save(dir, OLD);
    memserver_connect(&c, &dir->d, 10000);
    memserver_create(&c, "/a", "1", MODE_PERSISTENT);
    memserver_create(&c, "/b", "2", MODE_PERSISTENT);
    save(dir, NEW);
    cut_log(dir, OLD, SERVER_LOG_HEADER);
    size_t end = dir->d.log.tail;
    for (int i = 0; i < 3; i++)
        memserver_set(&c, "/a", "other", -1);
    cut_log(dir, NEW, end);
    memserver_hang_up(&c);
    dir->log_zxid[OLD] = 1;
    dir->log_zxid[NEW] = 4;
    dir->files = (struct recovery_files){dir->snapshot_zxid, EACH, dir->log_zxid, EACH};
}

static void directory_free(struct directory *dir)
{
    for (int i = 0; i < EACH; i++) {
        clave__buf_fini(&dir->snapshots[i]);
        clave__buf_fini(&dir->logs[i]);
    }
    memserver_close(&dir->d);
}

/* ---- the ways they are damaged --------------------------------------------------------------- */

static void damage(struct buf *b)
{
    b->data[b->tail / 2] ^= 1;
}

static void append(struct buf *b, int byte, size_t n)
{
    while (n-- > 0)
        clave__buf_append(b, &(uint8_t){(uint8_t)byte}, 1);
}

static void nothing(struct directory *dir)
{
    (void)dir;
}

static void newest_snapshot(struct directory *dir)
{
    damage(&dir->snapshots[NEW]);
}

static void both_snapshots(struct directory *dir)
{
    damage(&dir->snapshots[OLD]);
    damage(&dir->snapshots[NEW]);
}

static void older_log_purged(struct directory *dir)
{
    dir->files.logs++;
    dir->files.nlogs--;
}

static void newest_log_torn(struct directory *dir)
{
    dir->logs[NEW].tail -= 3;
}

static void newest_log_padded(struct directory *dir)
{
    append(&dir->logs[NEW], 0, 1000);
}

static void newest_log_overwritten(struct directory *dir)
{
    append(&dir->logs[NEW], 0x5a, 40);
}

static void newest_log_empty(struct directory *dir)
{
    dir->logs[NEW].tail = 5;
}

static void older_log_empty(struct directory *dir)
{
    newest_snapshot(dir);
    dir->logs[OLD].tail = 5;
}

/* Its writer found no more, and the next log begins where it ends. */
static void older_log_overwritten(struct directory *dir)
{
    newest_snapshot(dir);
    append(&dir->logs[OLD], 0x5a, 40);
}

static void older_log_torn(struct directory *dir)
{
    newest_snapshot(dir);
    dir->logs[OLD].tail -= 3;
}

/* ---- what is made of them -------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*damage)(struct directory *dir);
    enum recovery_start start;
    const char *read;
    int64_t zxid; /* that is reached */
} cases[] = {
    {"whole", nothing, RECOVER_FROM_NEWEST, "snapshot.3 fine, log.4 fine", 6},
    {"whole, from the oldest", nothing, RECOVER_FROM_OLDEST,
     "snapshot.0 fine, log.1 fine, log.4 fine", 6},
    {"newest snapshot damaged", newest_snapshot, RECOVER_FROM_NEWEST,
     "snapshot.3 skipped, snapshot.0 fine, log.1 fine, log.4 fine", 6},
    {"no snapshot left", both_snapshots, RECOVER_FROM_NEWEST,
     "snapshot.3 skipped, snapshot.0 skipped", 0},
    {"no snapshot left, from the oldest", both_snapshots, RECOVER_FROM_OLDEST,
     "snapshot.0 skipped, snapshot.3 skipped", 0},
    {"the logs do not reach the oldest", older_log_purged, RECOVER_FROM_OLDEST,
     "snapshot.3 fine, log.4 fine", 6},
    {"newest log torn", newest_log_torn, RECOVER_FROM_NEWEST, "snapshot.3 fine, log.4 torn", 5},
    {"newest log padded", newest_log_padded, RECOVER_FROM_NEWEST, "snapshot.3 fine, log.4 fine", 6},
    {"newest log overwritten", newest_log_overwritten, RECOVER_FROM_NEWEST,
     "snapshot.3 fine, log.4 refused with its tail", 6},
    {"newest log empty", newest_log_empty, RECOVER_FROM_NEWEST,
     "snapshot.3 fine, log.4 without a record", 3},
    {"older log empty", older_log_empty, RECOVER_FROM_NEWEST,
     "snapshot.3 skipped, snapshot.0 fine, log.1 refused", 0},
    {"older log overwritten", older_log_overwritten, RECOVER_FROM_NEWEST,
     "snapshot.3 skipped, snapshot.0 fine, log.1 fine, log.4 fine", 6},
    {"older log torn", older_log_torn, RECOVER_FROM_NEWEST,
     "snapshot.3 skipped, snapshot.0 fine, log.1 unfinished, log.4 refused", 2},
};

static const struct buf *content(const struct directory *dir, const struct recovery_file *file)
{
    bool old = file->zxid == (file->is_log ? dir->log_zxid : dir->snapshot_zxid)[OLD];
    return &(file->is_log ? dir->logs : dir->snapshots)[old ? OLD : NEW];
}

/* Reads all files that are asked for, and lists them with what they were taken for. */
static void recover(const struct directory *dir, struct memserver *e, enum recovery_start start,
                    char *told, size_t cap)
{
    static const char *const verdicts[] = {
        [RECOVERY_FINE] = "fine",
        [RECOVERY_SKIPPED] = "skipped",
        [RECOVERY_NO_RECORD] = "without a record",
        [RECOVERY_TORN] = "torn",
        [RECOVERY_UNFINISHED] = "unfinished",
        [RECOVERY_REFUSED] = "refused",
    };
    struct recovery r;
    struct recovery_file file;
    struct recovery_finding found = {.verdict = RECOVERY_FINE};
    size_t n = 0;
    clave__recovery_plan_begin(&r, e->s, &dir->files, start);
    while (found.verdict != RECOVERY_REFUSED && clave__recovery_plan_next(&r, &file)) {
        const struct buf *b = content(dir, &file);
        clave__recovery_plan_read(&r, b->data, b->tail, &found);
        n += (size_t)snprintf(told + n, cap - n, "%s%s.%d %s%s", n > 0 ? ", " : "",
                              file.is_log ? "log" : "snapshot", (int)file.zxid,
                              verdicts[found.verdict], found.lost_tail ? " with its tail" : "");
        if (found.verdict == RECOVERY_REFUSED || found.verdict == RECOVERY_SKIPPED)
            assert_true(found.err == CLAVE_ECORRUPT && found.fault[0] != '\0');
    }
}

TEST(every_case)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(directory_free) struct directory dir;
        CLOSED_BY(memserver_close) struct memserver e;
        char told[300] = "";
        directory_make(&dir);
        cases[i].damage(&dir);
        assert_int_equal(memserver_open_bare(&e, NULL), CLAVE_OK);
        recover(&dir, &e, cases[i].start, told, sizeof told);
        if (strcmp(told, cases[i].read) != 0)
            fail_msg("%s: %s", cases[i].name, told);
        assert_int_equal(memserver_stats(&e).last_zxid, cases[i].zxid);
        assert_int_equal(memserver_stats(&e).digest_mismatches, 0);
    }
}

/* What a restore goes back to: an older snapshot if the newest is later, and no further record. */
TEST(up_to_a_zxid)
{
    for (int64_t until = 0; until <= 7; until++) {
        CLOSED_BY(directory_free) struct directory dir;
        CLOSED_BY(memserver_close) struct memserver e;
        struct recovery r;
        struct recovery_file file;
        struct recovery_finding found;
        directory_make(&dir);
        newest_log_torn(&dir); /* of which nothing is seen before the end */
        assert_int_equal(memserver_open_bare(&e, NULL), CLAVE_OK);
        clave__recovery_plan_begin(&r, e.s, &dir.files, RECOVER_FROM_NEWEST);
        clave__recovery_plan_until(&r, until);
        while (clave__recovery_plan_next(&r, &file)) {
            const struct buf *b = content(&dir, &file);
            clave__recovery_plan_read(&r, b->data, b->tail, &found);
            assert_true(found.verdict == RECOVERY_FINE || until > 5);
        }
        assert_int_equal(r.from, until < 3 ? 0 : 3);
        assert_int_equal(memserver_stats(&e).last_zxid, until < 5 ? until : 5);
    }
}
