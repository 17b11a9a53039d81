/* server_run_internal.h - one running server, shared by the files of this folder. Everything
 * belongs to the loop's thread, which is either of the two in txn_log_thread.h. */
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
    bool is_saving;          /* the engine is making a snapshot, piece by piece */
    uint64_t saving_since;   /* by the loop's clock */
    bool new_log;            /* the next record starts a file */
    /* The figures for conf, dirs, the admin commands and the metrics, kept up to date so that none
     * of them makes the loop access a file. */
    struct driver_stats stats;
    bool is_low; /* space on the disk is low, and the operator was told */
    uv_timer_t measure_timer;
    struct list listeners;
    clave_tls *tls;     /* NULL: no address uses it */
    struct http *admin; /* NULL: none */
    struct http *metrics;
    char admin_url[ADMIN_URL_CAP]; /* what precedes the names of commands */
    const char *admin_hosts;       /* as in the options */
    struct list conns;
    size_t nconns;
    struct list hung_up; /* connections that their clients have left and that are to be closed */
    unsigned closed;     /* connections closed in this turn */
    struct fair_reading reading;
    uint64_t sent;    /* bytes sent since the start */
    uv_idle_t busy;   /* runs while there is already work for the next turn */
    size_t max_conns; /* the limit of open files, less some for the disk */
    /* TLS connections that wait for their turn to shake hands, oldest first. */
    struct list handshakes;
    uv_idle_t handshake_turn; /* runs while there are some */
    struct address_limit address_limit;
    size_t turned_away;   /* connections turned away since the last message */
    uint64_t may_tell_at; /* when the log may mention that again, by the loop's clock */
    uint64_t idle_exit_ms;
    /* Adds a filter to each new connection; false: out of memory. NULL unless this is a test
     * server. */
    bool (*add_filter)(void *arg, struct channel *ch, struct server_conn *engine);
    void *filter_arg;
    int64_t ahead_ms; /* how much time a test server has skipped */
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
    uv_signal_t hangup; /* on SIGHUP, files are read again */
    enum run_phase phase;
    bool ticked; /* the engine knows the time of this pass */
    clave_err result;
    char fault[512];
    char input[]; /* RUN_INPUT_SIZE bytes for the connection that is being read */
};

/* ---- connections, turns of the loop, the end (server_loop.c) -------------------------------- */

/* `signals`: SIGTERM and SIGINT stop the server, SIGHUP reloads. */
void clave__run_init_loop(struct server_run *r, bool signals);
/* True if the caller is being called by this server's loop; the server may have ended. */
bool clave__run_is_current(const struct server_run *r);
int64_t clave__run_now(const struct server_run *r);
int64_t clave__run_wall(const struct server_run *r);
/* Passes the time to the engine, once per turn. */
void clave__run_tick(struct server_run *r);
/* Call it after anything that may have given the engine's connections output. */
void clave__run_pump(struct server_run *r);
/* The number of connections has changed, or what was read has become durable. */
void clave__run_count(struct server_run *r);
/* A batch of the log, or another job, is done. */
void clave__run_on_log_written(void *run);
void clave__run_on_disk_done(void *run);
/* True if everything that was applied is on the disk. */
bool clave__run_is_durable(const struct server_run *r);
/* Sets how many connections there may be, and when the server ends without any. */
void clave__run_take_limits(struct server_run *r, const struct server_run_options *o);
/* Notes the longest session, for a restore of a backup (datadir.h). */
clave_err clave__run_note_longest_session(const struct server_run *r, const struct fault *f);
/* Ends the loop at once, as if the process were killed. */
void clave__run_halt(struct server_run *r);
void clave__run_close_listeners(struct server_run *r);
/* Ends all pages over HTTP at once, even those being answered. */
void clave__run_stop_http(struct server_run *r);

/* Accepts connections, or turns them away. */
void clave__conn_on_connection(struct listener *l);
/* Writes to, reads from and closes the connection as the engine wants. */
void clave__conn_serve(struct server_conn *c);
/* Closes the connection; its session lives on. */
void clave__conn_drop(struct server_conn *c);
/* Closes the connections that have nothing left to send or, if `all`, every one. */
void clave__conn_close_quiet(struct server_run *r, bool all);

/* ---- figures for conf, admin commands and metrics: `stats` (server_figures.c) ---------------- */

/* Sets port, directory and system, which change only with the settings. */
void clave__run_set_driver_info(struct server_run *r);
/* Notes that a batch of the log was written and synced, or a snapshot. */
void clave__run_take_log(struct server_run *r, const struct txn_log_thread *log);
void clave__run_take_snapshot(struct server_run *r);
/* Begins to measure the space on the disk and the process. */
void clave__run_measure(struct server_run *r);
void clave__run_take_space(struct server_run *r, const struct disk_space *space);
void clave__run_take_process(struct server_run *r, const struct process_files *files);

/* ---- pages over HTTP (admin.c) --------------------------------------------------------------- */

/* How many connections there may be at a time, each of which is an open file; further ones wait in
 * the kernel's queue. */
enum { ADMIN_MAX_CONNECTIONS = 16 };

/* Serves on the addresses in the options, if any. EINUSE, EINVAL, EIO, ENOMEM, ETHREAD, EFILES;
 * after an error, clave__run_stop_http frees what was started. */
clave_err clave__admin_start(struct server_run *r, const struct server_run_options *o,
                             const struct fault *f);

#endif
