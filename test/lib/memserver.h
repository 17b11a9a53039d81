/* memserver.h - the server's engine on a desk: its connections are buffers, its disk is a buffer,
 * and its clock stands until it is moved. */
#ifndef CLAVE_TEST_MEMSERVER_H
#define CLAVE_TEST_MEMSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/server.h"
#include "wire/record.h"

enum { DESK_LINES = 4096 };

struct desk {
    struct clave_mem mem; /* of the desk itself */
    struct server_options o;
    struct server *s;
    struct buf log;   /* the log file: header and all records taken */
    int64_t now;      /* boot-time ms */
    bool disk_stands; /* records are taken, and not durable before desk_flush */
    int64_t taken_zxid;
    char lines[DESK_LINES]; /* what was logged, a line each */
};

struct desk_conn {
    struct desk *d;
    struct server_conn *c; /* NULL: closed */
    struct buf in;         /* what has come from the server and was not looked at */
    int32_t xid;           /* of the newest request */
    int64_t session;
    int32_t timeout_ms;
    uint8_t passwd[WIRE_PASSWORD_LEN];
    bool deaf; /* takes nothing of the output */
};

/* Serving. Options may be NULL; mem, log and seed are as given there. */
void desk_open(struct desk *d, const struct server_options *o);
/* Not yet serving: for recovery. */
clave_err desk_open_bare(struct desk *d, const struct server_options *o);
void desk_start(struct desk *d);
/* Every connection must have been closed with desk_hang_up, or by the server. */
void desk_close(struct desk *d);

/* The wall clock: a fixed distance from the boot clock. */
int64_t desk_wall(const struct desk *d);
void desk_advance(struct desk *d, int64_t ms);
/* Carries records, then output, until there is none. */
void desk_pump(struct desk *d);
/* What was taken is durable now. */
void desk_flush(struct desk *d);
struct server_stats desk_stats(const struct desk *d);

/* A transport to the server, no session yet. */
void desk_dial(struct desk_conn *c, struct desk *d);
/* The transport goes; harmless when the server has closed it. */
void desk_hang_up(struct desk_conn *c);
void desk_send(struct desk_conn *c, const void *p, size_t n);
/* Deaf no more: takes what has waited. */
void desk_hear(struct desk_conn *c);
/* A frame around n bytes. */
void desk_send_frame(struct desk_conn *c, const void *p, size_t n);

/* The handshake. false: closed without an answer. */
bool desk_shake(struct desk_conn *c, const struct wire_connect_request *q,
                struct wire_connect_response *out);
/* Dials and gets a new session; aborts when it does not. */
void desk_connect(struct desk_conn *c, struct desk *d, int32_t timeout_ms);
/* Dials and goes on with the session of `of`. false: refused. */
bool desk_resume(struct desk_conn *c, const struct desk_conn *of);

/* Sends a request and returns its xid. */
int32_t desk_request(struct desk_conn *c, int32_t op, const union wire_body *body);
/* The next message: its header, and a reader over the rest. false: none has come. */
bool desk_next(struct desk_conn *c, struct wire_reply_header *h, struct jreader *rest);
/* Sends a request and takes its reply, which has to be next. A connection that is closed
 * instead gives ECONNLOSS. `out` may be NULL; its slices last until the next call. */
clave_err desk_call(struct desk_conn *c, int32_t op, const union wire_body *body,
                    struct wire_reply *out);

/* The commonest requests. */
clave_err desk_create(struct desk_conn *c, const char *path, const char *data, int32_t mode);
clave_err desk_delete(struct desk_conn *c, const char *path, int32_t version);
clave_err desk_set(struct desk_conn *c, const char *path, const char *data, int32_t version);
clave_err desk_stat(struct desk_conn *c, const char *path, struct wire_stat *out);
clave_err desk_watch(struct desk_conn *c, int32_t op, const char *path);
union wire_body desk_create_body(const char *path, const char *data, int32_t mode);
/* One entry, in static memory. */
struct jvec desk_acl(int32_t perms, const char *scheme, const char *id);

/* The events that have come and were not looked at, in order: "CREATED /a, CHILDREN /".
 * "" when the next message is none. In static memory. */
const char *desk_events(struct desk_conn *c);

#endif
