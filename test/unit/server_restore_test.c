/* server_restore_test.c - a server that goes on from a backup: its zxid, what it has no more, and
 * the time for which it grants nothing; and recovery up to a zxid. */
#include "base/memory.h"
#include "lib/memserver.h"
#include "lib/unit.h"
#include "server/request/session_tracker.h"
#include "server/store/recovery_plan.h"
#include "server/store/restore.h"
#include "wire/proto.h"

#define YEAR_2026 ((int64_t)1795413600 * 1000)

enum { TIMEOUT_MS = 4000, QUIET_MS = 60000 };

/* ---- where it goes on ------------------------------------------------------------------------ */

TEST(the_zxid_grows_with_the_clock)
{
    int64_t last = 0x500, before = 0;
    for (int64_t ms = 0; ms < 3600 * 1000; ms += 997) {
        int64_t zxid = clave__restore_zxid(last, 0, YEAR_2026 + ms);
        assert_true(zxid > before && zxid > last);
        assert_true(zxid >> 32 >= 1 && zxid < (int64_t)1 << 53);
        before = zxid;
    }
    /* A backup of what was restored a moment ago. */
    assert_true(clave__restore_zxid(before, 0, YEAR_2026 + 3600 * 1000) > before);
}

TEST(an_epoch_ahead_of_the_clock_is_passed)
{
    int64_t ahead = (int64_t)0x7000000 << 32;
    assert_int_equal(clave__restore_zxid(ahead | 9, 0, YEAR_2026) >> 32, 0x7000001);
    assert_int_equal(clave__restore_zxid(9, 0x7000005, YEAR_2026) >> 32, 0x7000006);
    int64_t now = clave__restore_zxid(9, 0, YEAR_2026) >> 32;
    assert_int_equal(clave__restore_zxid(9, now, YEAR_2026) >> 32, now + 1);
    assert_false(clave__restore_knows_time(1000));
    assert_true(clave__restore_knows_time(YEAR_2026));
}

/* ---- what it has ----------------------------------------------------------------------------- */

/* A backup: a tree with a session and its nodes, as one snapshot. */
struct backup {
    struct clave_mem mem;
    struct buf image;
    int64_t zxid;
    struct memserver_conn holder; /* its id and password */
};

static void backup_make(struct backup *b)
{
    CLOSED_BY(memserver_close) struct memserver d;
    b->mem = clave__mem_or_default(NULL);
    memserver_open(&d, NULL);
    memserver_connect(&b->holder, &d, TIMEOUT_MS);
    assert_int_equal(memserver_create(&b->holder, "/queue", "x", MODE_PERSISTENT), CLAVE_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            memserver_create(&b->holder, "/queue/lock-", "x", MODE_EPHEMERAL_SEQUENTIAL), CLAVE_OK);
    clave__buf_init(&b->image, &b->mem, 1 << 20);
    assert_int_equal(clave__server_save_snapshot(d.s, &b->image, &b->zxid), CLAVE_OK);
    memserver_hang_up(&b->holder);
}

static void load(struct memserver *d, const struct buf *image, const struct server_options *o)
{
    char fault[200];
    assert_int_equal(memserver_open_bare(d, o), CLAVE_OK);
    assert_int_equal(clave__server_load_snapshot(d->s, clave__buf_bytes(image),
                                                 clave__buf_len(image), fault, sizeof fault),
                     CLAVE_OK);
}

/* Restores the backup in place of its image, as into a new directory. */
static struct restored backup_restore(struct backup *b, int64_t wall)
{
    struct memserver d;
    struct restored gone;
    load(&d, &b->image, NULL);
    const struct restore r = {clave__restore_zxid(b->zxid, 0, wall), wall, QUIET_MS};
    assert_int_equal(clave__server_restore(d.s, &r, &gone), CLAVE_OK);
    clave__buf_clear(&b->image);
    assert_int_equal(clave__server_save_snapshot(d.s, &b->image, &b->zxid), CLAVE_OK);
    assert_true(b->zxid >= r.zxid);
    memserver_close(&d);
    return gone;
}

static void backup_free(struct backup *b)
{
    clave__buf_fini(&b->image);
}

static clave_err take_place(struct memserver_conn *c, struct wire_reply *reply)
{
    union wire_body body = memserver_create_body("/queue/lock-", "x", MODE_EPHEMERAL_SEQUENTIAL);
    return memserver_call(c, OP_CREATE2, &body, reply);
}

TEST(sessions_and_their_nodes_are_gone)
{
    CLOSED_BY(backup_free) struct backup b;
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn c;
    struct wire_stat stat;
    backup_make(&b);
    struct restored gone = backup_restore(&b, YEAR_2026);
    assert_int_equal(gone.sessions, 1);
    assert_int_equal(gone.ephemerals, 3);
    load(&d, &b.image, NULL);
    memserver_start(&d);
    assert_int_equal(memserver_stats(&d).ephemerals, 0);
    assert_int_equal(memserver_stats(&d).digest_mismatches, 0);
    b.holder.d = &d;
    assert_false(memserver_resume(&c, &b.holder));
    memserver_hang_up(&c);
    memserver_connect(&c, &d, TIMEOUT_MS);
    assert_int_equal(memserver_stat(&c, "/queue", &stat), CLAVE_OK);
    assert_int_equal(stat.num_children, 0);
    assert_int_equal(stat.cversion, 6); /* three came, and three went */
    memserver_hang_up(&c);
}

/* ---- what it does not grant ------------------------------------------------------------------ */

static int64_t quiet_ms(const struct memserver *d)
{
    struct server_health health;
    clave__server_health(d->s, &health);
    return health.quiet_ms;
}

TEST(no_ephemeral_node_is_created_for_a_while)
{
    const struct server_options o = {.max_session_ms = QUIET_MS};
    CLOSED_BY(backup_free) struct backup b;
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    struct wire_reply reply;
    backup_make(&b);
    int64_t last = b.zxid;
    backup_restore(&b, YEAR_2026);
    load(&d, &b.image, &o);
    memserver_start(&d);
    assert_non_null(strstr(d.lines, "this directory was restored"));
    memserver_connect(&c, &d, QUIET_MS);
    memserver_advance(&d, QUIET_MS / 2);
    assert_int_equal(quiet_ms(&d), QUIET_MS / 2);
    assert_int_equal(take_place(&c, NULL), CLAVE_EOPTIMEOUT);
    assert_int_equal(memserver_create(&c, "/plain", "x", MODE_PERSISTENT), CLAVE_OK);
    assert_int_equal(memserver_create(&c, "/plain", "x", MODE_EPHEMERAL), CLAVE_ENODEEXISTS);
    memserver_advance(&d, QUIET_MS / 2 - 1000);
    assert_int_equal(take_place(&c, NULL), CLAVE_EOPTIMEOUT);
    memserver_advance(&d, 3000); /* the end of the tick */
    assert_int_equal(quiet_ms(&d), 0);
    assert_int_equal(take_place(&c, &reply), CLAVE_OK);
    assert_true(reply.stat.czxid > last && reply.stat.czxid >> 32 > 0);
    assert_true(strncmp(reply.path.p, "/queue/lock-0000000003", (size_t)reply.path.n) == 0);
    assert_non_null(strstr(d.lines, "ephemeral nodes are created again"));
}

/* Also if the restore was told less than the server allows, and from the start of a server that is
 * killed meanwhile. */
TEST(the_time_begins_anew_with_each_start)
{
    const struct server_options o = {.max_session_ms = 2 * QUIET_MS};
    CLOSED_BY(backup_free) struct backup b;
    struct memserver d;
    struct memserver_conn c;
    backup_make(&b);
    backup_restore(&b, YEAR_2026);
    for (int starts = 0; starts < 2; starts++) {
        load(&d, &b.image, &o);
        memserver_start(&d);
        memserver_connect(&c, &d, 2 * QUIET_MS);
        memserver_advance(&d, 2 * QUIET_MS - 1000);
        assert_int_equal(take_place(&c, NULL), CLAVE_EOPTIMEOUT);
        clave__buf_clear(&b.image);
        assert_int_equal(clave__server_save_snapshot(d.s, &b.image, &b.zxid), CLAVE_OK);
        memserver_hang_up(&c);
        memserver_close(&d);
    }
}

TEST(its_session_is_nobodys)
{
    CLOSED_BY(backup_free) struct backup b;
    CLOSED_BY(memserver_close) struct memserver d;
    struct memserver_conn c,
        of = {.d = &d, .session = SESSION_OF_RESTORE, .timeout_ms = TIMEOUT_MS};
    backup_make(&b);
    backup_restore(&b, YEAR_2026);
    load(&d, &b.image, NULL);
    memserver_start(&d);
    clave__session_password(SESSION_OF_RESTORE, of.passwd);
    assert_false(memserver_resume(&c, &of));
    memserver_hang_up(&c);
    memserver_connect(&c, &d, TIMEOUT_MS);
    assert_true(c.session > clave__session_id_at(YEAR_2026));
    memserver_hang_up(&c);
}

/* ---- who knows more -------------------------------------------------------------------------- */

static size_t count(const char *lines, const char *what)
{
    size_t n = 0;
    for (const char *at = lines; (at = strstr(at, what)); at++)
        n++;
    return n;
}

TEST(a_client_that_knows_more_is_refused)
{
    CLOSED_BY(memserver_close) struct memserver d;
    struct wire_connect_response answer;
    const struct wire_connect_request q = {
        .last_zxid_seen = 0x1000, .timeout_ms = TIMEOUT_MS, .passwd = clave__jbytes("")};
    memserver_open(&d, NULL);
    for (int i = 0; i < 20; i++) {
        struct memserver_conn c;
        memserver_dial(&c, &d);
        assert_false(memserver_handshake(&c, &q, &answer));
        memserver_hang_up(&c);
        memserver_advance(&d, 1000);
    }
    assert_int_equal(count(d.lines, "it has seen zxid 0x1000, the newest here is 0x0"), 2);
    assert_int_equal(count(d.lines, "clave data restore"), 2);
    assert_non_null(strstr(d.lines, "and 10 before it"));
}
