/* memserver.h - the server's engine in memory: its connections and its disk are buffers, and its
 * clock stands until the test moves it. For tests of the server alone. */
#ifndef CLAVE_TEST_MEMSERVER_H
#define CLAVE_TEST_MEMSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/server.h"
#include "wire/record.h"

enum { MEMSERVER_LINES = 4096 };

struct memserver {
    struct clave_mem mem; /* of this struct itself */
    struct server_options o;
    struct server *s;
    struct buf log;   /* the log file: header and all records taken */
    int64_t now;      /* boot-time ms */
    bool disk_stands; /* records are taken, and not durable before memserver_flush */
    int64_t taken_zxid;
    char lines[MEMSERVER_LINES]; /* what was logged, a line each */
};

struct memserver_conn {
    struct memserver *d;
    struct server_conn *c; /* NULL: closed */
    struct buf in;         /* what the server sent and the test has not read */
    int32_t xid;           /* of the newest request */
    int64_t session;
    int32_t timeout_ms;
    uint8_t passwd[WIRE_PASSWORD_LEN];
    bool deaf; /* takes nothing of the output */
};

/* Serving. Options may be NULL; mem, log and seed are as given there. */
void memserver_open(struct memserver *d, const struct server_options *o);
/* Not yet serving: for recovery. */
clave_err memserver_open_bare(struct memserver *d, const struct server_options *o);
void memserver_start(struct memserver *d);
/* A test (unit.h) with `d`, which serves; and with `c`, connected to it with a session of its own.
 */
#define TEST_SERVER(name)                                                                          \
    static void name##_on(struct memserver *d);                                                    \
    TEST(name)                                                                                     \
    {                                                                                              \
        CLOSED_BY(memserver_close) struct memserver d;                                             \
        memserver_open(&d, NULL);                                                                  \
        name##_on(&d);                                                                             \
    }                                                                                              \
    static void name##_on(struct memserver *d)
#define TEST_SESSION(name, timeout_ms)                                                             \
    static void name##_in(struct memserver *d, struct memserver_conn *c);                          \
    TEST_SERVER(name)                                                                              \
    {                                                                                              \
        CLOSED_BY(memserver_hang_up) struct memserver_conn c;                                      \
        memserver_connect(&c, d, timeout_ms);                                                      \
        name##_in(d, &c);                                                                          \
    }                                                                                              \
    static void name##_in(__attribute__((unused)) struct memserver *d, struct memserver_conn *c)
/* Every connection must have been closed with memserver_hang_up, or by the server. */
void memserver_close(struct memserver *d);

/* The wall clock: a fixed distance from the boot clock. */
int64_t memserver_wall(const struct memserver *d);
void memserver_advance(struct memserver *d, int64_t ms);
/* Carries records, then output, until there is none. */
void memserver_settle(struct memserver *d);
/* What was taken is durable now. */
void memserver_flush(struct memserver *d);
struct server_stats memserver_stats(const struct memserver *d);

/* A transport to the server, no session yet; from 127.0.0.1, from this address there, or from any.
 */
void memserver_dial(struct memserver_conn *c, struct memserver *d);
void memserver_dial_peer(struct memserver_conn *c, struct memserver *d,
                         const struct peer_addr *peer);
void memserver_dial_from(struct memserver_conn *c, struct memserver *d, uint8_t last_of_ip);
/* The transport goes; harmless when the server has closed it. */
void memserver_hang_up(struct memserver_conn *c);
void memserver_send(struct memserver_conn *c, const void *p, size_t n);
/* Deaf no more: takes what has waited. */
void memserver_take_output(struct memserver_conn *c);
/* A frame around n bytes. */
void memserver_send_frame(struct memserver_conn *c, const void *p, size_t n);

/* The handshake. false: closed without an answer. */
bool memserver_handshake(struct memserver_conn *c, const struct wire_connect_request *q,
                         struct wire_connect_response *out);
/* Dials and gets a new session; aborts when it does not. */
void memserver_connect(struct memserver_conn *c, struct memserver *d, int32_t timeout_ms);
/* The same as this user, over a Unix socket. */
void memserver_connect_local(struct memserver_conn *c, struct memserver *d, uint32_t uid);
/* Dials and goes on with the session of `of`. false: refused. */
bool memserver_resume(struct memserver_conn *c, const struct memserver_conn *of);

/* Sends a request and returns its xid. */
int32_t memserver_request(struct memserver_conn *c, int32_t op, const union wire_body *body);
/* The next message: its header, and a reader over the rest. false: none has come. */
bool memserver_next(struct memserver_conn *c, struct wire_reply_header *h, struct jreader *rest);
/* Sends a request and takes its reply, which has to be next. A connection that is closed
 * instead gives ECONNLOSS. `out` may be NULL; its slices last until the next call. */
clave_err memserver_call(struct memserver_conn *c, int32_t op, const union wire_body *body,
                         struct wire_reply *out);

/* The commonest requests. */
clave_err memserver_create(struct memserver_conn *c, const char *path, const char *data,
                           int32_t mode);
clave_err memserver_delete(struct memserver_conn *c, const char *path, int32_t version);
clave_err memserver_set(struct memserver_conn *c, const char *path, const char *data,
                        int32_t version);
clave_err memserver_stat(struct memserver_conn *c, const char *path, struct wire_stat *out);
clave_err memserver_watch(struct memserver_conn *c, int32_t op, const char *path);
union wire_body memserver_create_body(const char *path, const char *data, int32_t mode);
/* One entry, in static memory. */
struct jvec memserver_acl(int32_t perms, const char *scheme, const char *id);

/* The events that have come and were not looked at, in order: "CREATED /a, CHILDREN /".
 * "" when the next message is none. In static memory. */
const char *memserver_events(struct memserver_conn *c);

#endif
