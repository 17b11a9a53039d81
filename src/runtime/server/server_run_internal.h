/* server_run_internal.h - one running server, shared by the files of this folder. Everything
 * belongs to the loop's thread, which is one or the other of txn_log_thread.h. */
#ifndef CLAVE_RUNTIME_SERVER_SERVER_RUN_INTERNAL_H
#define CLAVE_RUNTIME_SERVER_SERVER_RUN_INTERNAL_H

#include <uv.h>

#include "base/list.h"
#include "base/memory.h"
#include "runtime/channel.h"
#include "runtime/listen.h"
#include "runtime/server/address_limit.h"
#include "runtime/server/audit_log.h"
#include "runtime/server/fair_reading.h"
#include "runtime/server/server_run.h"
#include "runtime/store/datadir.h"
#include "runtime/store/disk_thread.h"
#include "runtime/store/snapshot_thread.h"
#include "runtime/store/txn_log_thread.h"

enum { RUN_INPUT_SIZE = 64 * 1024 };

/*   READY ──▶ SERVING ──▶ STOPPING ──▶ STOPPED
 *                │           (accepts nothing; what was read is still made durable and answered)
 *                └───────────────────────▲  (the disk failed: not another byte) */
enum run_phase { RUN_READY, RUN_SERVING, RUN_STOPPING, RUN_STOPPED };

struct server_run {
    uv_loop_t loop;
    struct clave_mem mem;
    struct log log;
    struct server *server;
    struct datadir dir;
    char version_2[PATH_MAX + 16];
    uv_utsname_t system;
    char host_name[UV_MAXHOSTNAMESIZE];
    struct txn_log_thread log_thread;
    struct snapshot_thread snapshot_thread;
    struct audit_log *audit; /* NULL: none */
    bool is_saving;          /* the engine makes a snapshot, a piece at a time */
    uint64_t saving_since;   /* by the loop's clock */
    bool new_log;            /* the next record starts a file */
    /* What conf, dirs, the admin commands and the metrics show: kept as it changes, so that none of
     * them makes the loop look at a file. */
    struct driver_stats stats;
    bool is_low; /* the room on the disk; the operator was told */
    uv_timer_t measure_timer;
    struct list listeners;
    clave_tls *tls;     /* NULL: none of them is for it */
    struct http *admin; /* NULL: none; likewise */
    struct http *metrics;
    char admin_url[ADMIN_URL_CAP]; /* before the names of commands */
    const char *admin_hosts;       /* as of the options */
    struct list conns;
    size_t nconns;
    struct list hung_up; /* connections that their clients have left, to be closed */
    unsigned closed;     /* connections in this turn */
    struct fair_reading reading;
    uint64_t sent;            /* bytes, since the start */
    uv_idle_t busy;           /* runs while the next turn has work already */
    size_t max_conns;         /* the limit of open files, less some for the disk */
    struct list handshakes;   /* TLS connections that wait for their turn, the oldest first */
    uv_idle_t handshake_turn; /* runs while there are some */
    struct address_limit address_limit;
    size_t turned_away;   /* connections turned away since the last message */
    uint64_t may_tell_at; /* when to log again, by the loop's clock */
    uint64_t idle_exit_ms;
    /* Adds a filter to each new connection; false: out of memory. NULL: not a test server. */
    bool (*add_filter)(void *arg, struct channel *ch, struct server_conn *engine);
    void *filter_arg;
    int64_t ahead_ms; /* the time that a test server has skipped */
    struct notifier disk_done;
    uv_async_t stop;
    uv_timer_t timer;
    int64_t armed_at;
    uv_timer_t idle;  /* runs while nothing is connected */
    uv_timer_t grace; /* limits how long the last replies may take */
    uv_timer_t notify_timer;
    void (*notify)(void *arg, bool stopping); /* may be NULL */
    void *notify_arg;
    void (*measured)(void *arg, const struct server_health *health); /* may be NULL */
    void *measured_arg;
    void (*on_hangup)(void *arg, bool tls_renewed); /* may be NULL */
    void *hangup_arg;
    uv_check_t check;
    uv_signal_t signals[2];
    uv_signal_t hangup; /* files are read again */
    enum run_phase phase;
    bool ticked; /* the engine knows the time of this pass */
    clave_err result;
    char fault[512];
    char input[]; /* RUN_INPUT_SIZE bytes: of the connection that is being read */
};

/* ---- the loop, its disk, changes, the end (server_loop.c) --------------------------------------
 */

/* `signals`: SIGTERM and SIGINT stop it, SIGHUP reloads. */
void clave__run_init_loop(struct server_run *r, bool signals);
/* Whether the caller is called by this server's loop. It may have ended. */
bool clave__run_is_current(const struct server_run *r);
int64_t clave__run_now(const struct server_run *r);
int64_t clave__run_wall(const struct server_run *r);
/* Passes the time to the engine, once a turn. */
void clave__run_tick(struct server_run *r);
/* Call it after anything that may have given the engine's connections output. */
void clave__run_pump(struct server_run *r);
/* The number of connections has changed, or what was read has become durable. */
void clave__run_count(struct server_run *r);
/* A batch of the log, another job is done. */
void clave__run_on_log_written(void *run);
void clave__run_on_disk_done(void *run);
/* Everything that was applied is on the disk. */
bool clave__run_is_durable(const struct server_run *r);
/* How many connections there may be, and when it ends without one. */
void clave__run_take_limits(struct server_run *r, const struct server_run_options *o);
/* For a restore of a backup (datadir.h). */
clave_err clave__run_note_longest_session(const struct server_run *r, const struct fault *f);
/* Ends the loop at once, like a process that is killed. */
void clave__run_halt(struct server_run *r);
void clave__run_close_listeners(struct server_run *r);
/* The pages over HTTP end at once, whatever is being answered. */
void clave__run_stop_http(struct server_run *r);

/* ---- figures for conf, admin commands and metrics: `stats` (server_figures.c) ---------------- */

/* Port, directory and system, which change with the settings only. */
void clave__run_set_driver_info(struct server_run *r);
/* A batch of the log was written, with its fsync; a snapshot was. */
void clave__run_take_log(struct server_run *r, const struct txn_log_thread *log);
void clave__run_take_snapshot(struct server_run *r);
/* Measures the room on the disk and the process from now on. */
void clave__run_measure(struct server_run *r);
void clave__run_take_space(struct server_run *r, const struct disk_space *space);
void clave__run_take_process(struct server_run *r, const struct process_files *files);

/* ---- connections (server_conn.c) ------------------------------------------------------------- */

void clave__conn_on_connection(struct listener *l);
void clave__run_init_handshakes(struct server_run *r);
/* A turn of the loop ends: what it left undone goes on. true: there is some left. */
bool clave__conns_go_on(struct server_run *r);
/* Writes, reads and closes as the engine wants. */
void clave__conn_serve(struct server_conn *c);
/* Closes one; its session lives on. */
void clave__conn_drop(struct server_conn *c);
/* Closes those that have nothing left to send, or (`all`) every one. */
void clave__conn_close_quiet(struct server_run *r, bool all);

/* ---- pages over HTTP (admin.c) --------------------------------------------------------------- */

/* The number of connections at a time; further ones wait in the kernel's queue. An open file each.
 */
enum { ADMIN_MAX_CONNECTIONS = 16 };

/* Serves on the addresses of the options, if any. EINUSE, EINVAL, EIO, ENOMEM, ETHREAD, EFILES;
 * after an error clave__run_stop_http frees what was started. */
clave_err clave__admin_start(struct server_run *r, const struct server_run_options *o,
                             const struct fault *f);

#endif
