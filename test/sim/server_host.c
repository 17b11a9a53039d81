#include "server_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector.h"
#include "operator.h"
#include "server/request/session_tracker.h"
#include "server/store/recovery_plan.h"
#include "server/store/restore.h"

#define WALL_AT_BOOT ((int64_t)1700000000 * 1000)
enum { READ_SIZE = 65536, BUSY_US = 20 };

/* One connection of the server's process. */
struct host_conn {
    struct list link;
    struct server_host *host;
    struct net_socket *socket;
    struct server_conn *conn;
    bool readable;
    bool heard; /* something was read from it */
};

static const char *const end_names[] = {"is stopped", "is killed", "loses its power", "is deposed"};

static int64_t clock_now(const struct server_host *h)
{
    return clock_ms(&h->clock, h->w->now);
}

void server_host_wake(struct server_host *h)
{
    if (h->server && !h->paused)
        world_set_earlier(h->w, &h->run, h->w->now + world_between(h->w, 0, BUSY_US));
}

static void on_socket_event(void *owner)
{
    struct host_conn *s = owner;
    s->readable = true;
    server_host_wake(s->host);
}

static void on_dial(void *owner)
{
    server_host_wake(owner);
}

/* ---- connections --------------------------------------------------------------------- */

static void drop_seat(struct host_conn *s)
{
    clave__server_conn_closed(s->conn);
    net_close(s->socket);
    list_remove(&s->link);
    free(s);
}

static void accept_all(struct server_host *h)
{
    struct net_socket *socket;
    struct peer_addr peer = {.family = 4, .ip = {10, 0, 0, 1}, .port = 40000};
    snprintf(peer.text, sizeof peer.text, "10.0.0.1:40000");
    while ((socket = net_accept(h->net, &h->listener, (struct net_callback){NULL, NULL}))) {
        struct host_conn *s = world_alloc(sizeof *s);
        s->host = h;
        s->socket = socket;
        s->readable = true;
        socket->callback = (struct net_callback){on_socket_event, s};
        s->conn = clave__server_accept(h->server, &peer, s);
        world_must(s->conn != NULL);
        list_push_back(&h->conns, &s->link);
    }
}

/* As if it had asked for a new one. */
static void swap_session(struct host_conn *s, uint8_t *p, size_t n)
{
    enum { SESSION_AT = 20, SESSION_LEN = 8 };
    static const uint8_t none[SESSION_LEN];
    struct server_host *h = s->host;
    if (!h->swaps_next || s->heard || n < SESSION_AT + SESSION_LEN ||
        memcmp(p + SESSION_AT, none, sizeof none) == 0)
        return;
    world_log(h->w, "server", "hands out another session than it is asked for");
    memcpy(p + SESSION_AT, none, sizeof none);
    h->swaps_next = false;
}

static void read_from(struct host_conn *s)
{
    const void *p;
    size_t n = clave__server_conn_wants_read(s->conn) ? net_peek(s->socket, &p) : 0;
    if (n > 0) {
        n = n < READ_SIZE ? n : READ_SIZE;
        swap_session(s, clave__buf_bytes(&s->socket->inbox), n);
        s->heard = true;
        clave__server_conn_input(s->conn, p, n);
        net_read(s->socket, n);
    }
    if (net_is_over(s->socket))
        drop_seat(s);
    else
        s->readable = false;
}

static void serve(struct host_conn *s)
{
    const void *p;
    size_t n;
    while ((n = clave__server_conn_output(s->conn, &p)) > 0) {
        net_write(s->socket, p, n);
        clave__server_conn_sent(s->conn, n);
    }
    if (clave__server_conn_wants_close(s->conn))
        drop_seat(s);
    else if (clave__server_conn_wants_read(s->conn) && net_peek(s->socket, &p) > 0)
        s->readable = true;
}

/* ---- the disk ------------------------------------------------------------------------ */

static void post_records(struct server_host *h)
{
    struct log_batch b = clave__server_log_pending(h->server);
    if (b.n == 0 || disk_is_appending(&h->disk) || clave__server_log_waits(h->server))
        return; /* at the end: as good as durable, what is not reported was not answered */
    struct disk_batch batch = {b.p, b.n, b.first_zxid, b.last_zxid, h->new_log};
    disk_append(&h->disk, &batch);
    if (h->proposed)
        h->proposed(h->log_arg, &batch);
    h->new_log = false;
    clave__server_log_taken(h->server);
}

static void end_snapshot(struct server_host *h)
{
    clave__buf_fini(&h->snapshot);
    world_clear(h->w, &h->piece_done);
    h->is_saving = false;
}

static void on_piece_done(struct alarm *a)
{
    server_host_wake(LIST_ENTRY(a, struct server_host, piece_done));
}

/* One piece at a time, as the disk takes them, until the engine waits for the log. */
static void step_snapshot(struct server_host *h)
{
    size_t before = clave__buf_len(&h->snapshot);
    bool done;
    world_must(clave__server_snapshot_step(h->server, &h->snapshot, &done) == CLAVE_OK);
    if (done) {
        disk_save(&h->disk, h->snapshot_zxid, clave__buf_bytes(&h->snapshot),
                  clave__buf_len(&h->snapshot));
        end_snapshot(h);
    } else if (clave__buf_len(&h->snapshot) > before) {
        world_set(h->w, &h->piece_done, h->w->now + world_between(h->w, 0, 10 * MS));
    }
}

static void post_snapshot(struct server_host *h)
{
    if (!h->is_saving && clave__server_wants_snapshot(h->server) && !disk_is_saving(&h->disk) &&
        clave__server_log_pending(h->server).n == 0) {
        clave__buf_init(&h->snapshot, &h->allocator.mem, SIZE_MAX / 4);
        h->snapshot_zxid = clave__server_snapshot_begin(h->server);
        h->is_saving = h->new_log = true;
    }
    if (h->is_saving && !alarm_is_set(&h->piece_done))
        step_snapshot(h);
}

static void on_durable(void *owner, int64_t zxid)
{
    struct server_host *h = owner;
    h->synced_zxid = zxid;
    if (h->committed)
        h->committed(h->log_arg, zxid);
    server_host_wake(h);
}

static void on_disk_failed(void *owner)
{
    struct server_host *h = owner;
    world_log(h->w, "disk", "fails");
    h->disk_failed(h->disk_failed_arg);
}

static void on_saved(void *owner, int64_t zxid)
{
    struct server_host *h = owner;
    world_log(h->w, "server", "snapshot.%llx is written", (unsigned long long)zxid);
}

/* ---- one pass of the loop ------------------------------------------------------------ */

static void arm(struct server_host *h)
{
    int64_t at = clock_when(&h->clock, clave__server_deadline(h->server));
    if (at == INT64_MAX)
        world_clear(h->w, &h->timer);
    else
        world_set(h->w, &h->timer, at);
}

static void pump(struct server_host *h)
{
    struct server_conn *c;
    while ((c = clave__server_next_ready(h->server)))
        serve(clave__server_conn_user(c));
    post_records(h);
    post_snapshot(h);
}

static void pass(struct server_host *h)
{
    if (!h->server || h->paused)
        return;
    int64_t now = clock_now(h);
    clave__server_tick(h->server, now, WALL_AT_BOOT + now + h->wall_shift_ms);
    clave__server_durable(h->server, h->synced_zxid);
    accept_all(h);
    for (struct list *at = h->conns.next, *next; at != &h->conns; at = next) {
        struct host_conn *s = LIST_ENTRY(at, struct host_conn, link);
        next = at->next;
        if (s->readable)
            read_from(s);
    }
    pump(h);
    for (struct list *at = h->conns.next; at != &h->conns; at = at->next)
        if (LIST_ENTRY(at, struct host_conn, link)->readable)
            server_host_wake(h);
    arm(h);
}

static void on_run(struct alarm *a)
{
    pass(LIST_ENTRY(a, struct server_host, run));
}

static void on_timer(struct alarm *a)
{
    pass(LIST_ENTRY(a, struct server_host, timer));
}

/* ---- recovery -------------------------------------------------------------------------------- */

static void recover_file(struct server_host *h, struct recovery *r,
                         const struct recovery_file *file)
{
    struct recovery_finding found;
    struct disk_file *log = disk_log(&h->disk, r->log);
    const struct disk_file *f = file->is_log ? log : disk_newest_snapshot(&h->disk, file->zxid + 1);
    clave__recovery_plan_read(r, clave__buf_bytes(&f->bytes), clave__buf_len(&f->bytes), &found);
    if (found.verdict == RECOVERY_SKIPPED || found.verdict == RECOVERY_REFUSED)
        world_break(h->w, "recovery works", "%s.%llx: %s", file->is_log ? "log" : "snapshot",
                    (unsigned long long)file->zxid, found.fault);
    if (found.verdict == RECOVERY_TORN) {
        h->stats.torn_tails++;
        disk_truncate(log, found.valid_len);
    }
    if (!file->is_log)
        inspector_check_snapshot(h, file->zxid);
}

/* As src/runtime/store/recovery_load.c does it. */
static void recover(struct server_host *h)
{
    int64_t snapshots[DISK_FILES], logs[DISK_FILES], below = INT64_MAX;
    struct recovery_files files = {.snapshots = snapshots + DISK_FILES, .logs = logs};
    struct recovery r;
    struct recovery_file file;
    const struct disk_file *f;
    for (; (f = disk_newest_snapshot(&h->disk, below)); below = f->zxid)
        snapshots[DISK_FILES - ++files.nsnapshots] = f->zxid;
    files.snapshots -= files.nsnapshots;
    for (; (f = disk_log(&h->disk, files.nlogs)); files.nlogs++)
        logs[files.nlogs] = f->zxid;
    clave__recovery_plan_begin(&r, h->server, &files, RECOVER_FROM_NEWEST);
    if (files.nsnapshots == 0)
        r.from = 0; /* of an empty tree, which the driver would have saved */
    while (clave__recovery_plan_next(&r, &file))
        recover_file(h, &r, &file);
}

static void log_line(void *arg, int level, const char *msg)
{
    struct server_host *h = arg;
    if (level <= CLAVE_LOG_INFO)
        world_log(h->w, "server", "%s", msg);
}

static void new_server(struct server_host *h)
{
    struct server_options o = h->options;
    o.mem = &h->allocator.mem;
    o.log = log_line;
    o.log_arg = h;
    o.super_uid = "1"; /* operator.c */
    o.seed = (uint64_t)h->w->now ^ h->w->seed;
    world_must(clave__server_new(&h->server, &o) == CLAVE_OK);
}

/* What its machine's clock says, wherever that was set to before. */
void server_host_restore(struct server_host *h)
{
    struct restored gone;
    struct buf image;
    int64_t zxid;
    world_must(!h->server);
    disk_put_backup(&h->disk);
    new_server(h);
    recover(h);
    struct restore r = {.wall = WALL_AT_BOOT + clock_now(h), .quiet_ms = 1};
    r.zxid = clave__restore_zxid(inspector_zxid(h), 0, r.wall);
    world_must(clave__server_restore(h->server, &r, &gone) == CLAVE_OK);
    clave__buf_init(&image, &h->allocator.mem, SIZE_MAX / 4);
    world_must(clave__server_save_snapshot(h->server, &image, &zxid) == CLAVE_OK);
    disk_put_snapshot(&h->disk, zxid, clave__buf_bytes(&image), clave__buf_len(&image));
    clave__buf_fini(&image);
    clave__server_free(h->server);
    h->server = NULL;
    h->oldest_session = clave__session_id_at(r.wall);
    world_log(h->w, "operator", "restores the server's directory, to go on from zxid 0x%llx",
              (unsigned long long)zxid);
}

void server_host_start(struct server_host *h)
{
    new_server(h);
    if (h->config)
        operator_write_config(h->server, h->config);
    recover(h);
    if (h->recovered)
        h->recovered(h->log_arg, inspector_stats(h).last_zxid);
    int64_t now = clock_now(h);
    clave__server_start(h->server, now, WALL_AT_BOOT + now + h->wall_shift_ms);
    struct server_stats st = inspector_stats(h);
    world_log(h->w, "server", "starts at zxid %lld with %zu sessions and %zu ephemeral nodes",
              (long long)st.last_zxid, st.sessions, st.ephemerals);
    h->new_log = true;
    h->synced_zxid = 0;
    h->listener.open = true;
    h->stats.starts++;
    server_host_wake(h);
}

/* ---- the end ------------------------------------------------------------------------- */

/* A process that is asked to stop lets its disk finish. */
static void finish(struct server_host *h)
{
    int64_t now = clock_now(h);
    clave__server_tick(h->server, now, WALL_AT_BOOT + now + h->wall_shift_ms);
    post_records(h);
}

void server_host_end(struct server_host *h, enum server_end how)
{
    if (!h->server)
        return;
    world_log(h->w, "server", "%s", end_names[how]);
    if (how == SERVER_STOPPED)
        finish(h);
    struct server_stats st = inspector_stats(h);
    for (size_t op = 0; op < sizeof st.requests / sizeof *st.requests; op++)
        h->stats.requests += st.requests[op];
    net_stop_listening(h->net, &h->listener);
    while (!list_empty(&h->conns)) {
        struct host_conn *s = LIST_ENTRY(h->conns.next, struct host_conn, link);
        if (how == SERVER_POWER_LOST && world_chance(h->w, 500))
            net_forget(s->socket); /* nobody is left to say goodbye */
        drop_seat(s);
    }
    end_snapshot(h);
    clave__server_free(h->server);
    h->server = NULL;
    h->paused = false;
    disk_stop(&h->disk, how == SERVER_POWER_LOST || how == SERVER_DEPOSED);
    world_clear(h->w, &h->run);
    world_clear(h->w, &h->timer);
    if (h->allocator.blocks != 0)
        world_break(h->w, "no leak", "the server leaves %zu blocks", h->allocator.blocks);
}

void server_host_pause(struct server_host *h, bool pause)
{
    if (!h->server || h->paused == pause)
        return;
    world_log(h->w, "server", pause ? "is paused" : "goes on");
    h->paused = pause;
    if (pause)
        return;
    server_host_wake(h);
}

/* ---- life ---------------------------------------------------------------------------- */

void server_host_init(struct server_host *h, struct world *w, struct net *n,
                      const struct server_options *o)
{
    memset(h, 0, sizeof *h);
    h->w = w;
    h->net = n;
    h->options = *o;
    allocator_init(&h->allocator);
    list_init(&h->conns);
    h->run.fire = on_run;
    h->timer.fire = on_timer;
    h->piece_done.fire = on_piece_done;
    disk_init(&h->disk, w);
    h->disk.durable = on_durable;
    h->disk.failed = on_disk_failed;
    h->disk.saved = on_saved;
    h->disk.owner = h;
    net_listener_init(&h->listener, (struct net_callback){on_dial, h});
}

void server_host_fini(struct server_host *h)
{
    if (h->server)
        server_host_end(h, SERVER_KILLED);
    disk_fini(&h->disk);
    operator_fini(h);
}
