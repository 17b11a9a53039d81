/* gate_internal.h - a gate, shared by the files of this folder. */
#ifndef CLAVE_RUNTIME_GATE_GATE_INTERNAL_H
#define CLAVE_RUNTIME_GATE_GATE_INTERNAL_H

#include <pthread.h>

#include "runtime/gate/gate_audit.h"
#include "runtime/gate/gate_clients.h"
#include "runtime/gate/gate_end_cause.h"
#include "runtime/gate/gate_replay.h"
#include "runtime/gate/gate_run.h"
#include "runtime/gate/gate_server_stats.h"
#include "runtime/http/http_server.h"

enum { MAX_METRIC_PATHS = 64 };

/*   SERVING ──_stop──▶ CLOSING ──sessions ended, or grace──▶ DRAINING ──no clients──▶ STOPPED */
enum gate_phase { GATE_SERVING, GATE_CLOSING, GATE_DRAINING, GATE_STOPPED };

struct gate {
    uv_loop_t loop;
    struct clave_mem mem;
    struct log log;
    struct gate_clients clients;
    struct web_env env;
    struct web *web;
    struct http *http;
    clave_tls *http_tls; /* NULL: no address uses it */
    enum gate_phase phase;
    uv_timer_t timer; /* for the engine's deadlines and the grace */
    uv_prepare_t prepare;
    uv_async_t stop;
    uv_async_t changed; /* wakes the loop when there are new settings */
    struct gate_access *access;
    pthread_mutex_t mutex;
    struct gate_access *next_access; /* under the mutex; NULL: no change */
    struct gate_limits next_limits;  /* under the mutex: those that go with next_access */
    size_t file_connections;         /* how many the limit of open files allows */
    size_t sender_sessions;          /* of one sender, unless set; 0: four fifths of all */
    char *metric_text;               /* what metric_paths point into */
    const char *metric_paths[MAX_METRIC_PATHS];
    size_t nmetric_paths;
    struct gate_audit *audit; /* NULL: none */
    struct notifier audit_done;
    bool reopens;               /* under the mutex: the audit log has to be opened again */
    struct gate_replay *replay; /* NULL: none */
    uv_async_t replayed;
    struct gate_end_causes *ends; /* NULL: not in a server */
    uv_async_t ended;
    struct gate_server_stats *figures; /* NULL: not in a server */
    uv_async_t measured;
    int64_t grace_ms;
    int64_t closed_by; /* for CLOSING: until when */
};

/* In gate_limits.c: HTTP's share of the files that may be open; if the gate is in a server, the
 * server's clients have the rest. */
size_t gate_files(const struct gate_options *o, size_t part, size_t most);
/* How many connections the limit of open files allows. */
size_t gate_file_connections(const struct gate_options *o);
unsigned gate_max_connections(const struct gate *g, const struct gate_limits *limits);
size_t gate_default_sender_sessions(const struct gate *g, const struct gate_options *o);
size_t gate_max_sender_sessions(const struct gate *g, const struct gate_limits *limits);
size_t gate_max_waiting(const struct gate *g, const struct gate_limits *limits);

/* In gate_reload.c, on the loop: takes over what gate_change and gate_reopen have left. */
void gate_on_changed(uv_async_t *a);

/* In gate_http.c: binds the addresses. */
clave_err gate_listen(struct gate *g, const struct gate_options *o, const struct fault *f);
/* *out is NULL if no address needs it. */
clave_err gate_make_tls(clave_tls **out, const struct gate_options *o, const struct fault *f);

/* In gate_engine.c: makes the engine, and what it needs of this process. */
clave_err gate_make_engine(struct gate *g, const struct gate_options *o, const struct fault *f);
void gate_set_wall(struct gate *g);
/* On the loop: take over what other threads have left for the engine. */
void gate_on_replayed(uv_async_t *a);
void gate_on_ended_nodes(uv_async_t *a);
void gate_on_measured(uv_async_t *a);
void gate_on_audited(void *arg);

#endif
