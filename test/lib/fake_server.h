/* fake_server.h - one client, and a server that the test plays: the test expects each request and
 * writes each reply. For what no well-behaved server does, and for an ensemble. */
#ifndef CLAVE_TEST_FAKE_SERVER_H
#define CLAVE_TEST_FAKE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "clave/async/client.h"
#include "wire/record.h"

enum { FAKE_STATES = 64, FAKE_SESSION = 0x77, FAKE_TIMEOUT = 10000 };

struct fake_server {
    clave_async_client *c;
    int64_t now;
    int64_t zxid;
    struct clave_mem mem;  /* of this struct itself */
    struct buf up;         /* what the client has sent and was not looked at */
    struct buf down;       /* the message that is being written */
    struct wire_request q; /* the newest request looked at; its slices lie in `seen` */
    struct buf seen;
    clave_state states[FAKE_STATES];
    clave_err whys[FAKE_STATES];
    size_t nstates, told; /* told: those looked at */
    size_t piece;         /* a message comes in pieces of so many bytes; 0: whole */
};

/* A result, as a callback saw it. */
struct outcome {
    unsigned times;
    clave_err err;
    char path[256];
    bool has_stat, has_names;
    clave_stat stat;
    size_t nnames;
    char first_name[128];
    size_t len, nops, nacls;
};
void outcome_cb(clave_async_client *c, const clave_result *res, void *arg);

/* `o` may be NULL; hosts, callbacks and the session timeout (10 s) are set here unless
 * given. The client is started, and wants to dial. */
void fake_open(struct fake_server *s, const clave_client_options *o);
void fake_close(struct fake_server *s);

/* The clock goes on, and the client is ticked. */
void fake_advance_to(struct fake_server *s, int64_t now);

/* The dial succeeds; the handshake is looked at. */
struct wire_connect_request fake_dial(struct fake_server *s);
/* Answers it. */
void fake_answer_handshake(struct fake_server *s, int64_t session, int32_t timeout_ms,
                           bool read_only);
/* All of it: dial, a session, and (when asked) the kind of server. */
void fake_connect(struct fake_server *s, bool standalone);
/* A test (unit.h) with `s`, whose client is connected to a standalone server. */
/* The client is closed after the body: what its callbacks write to then is static. */
#define TEST_CONNECTED(name)                                                                       \
    static void name##_to(struct fake_server *s);                                                  \
    TEST(name)                                                                                     \
    {                                                                                              \
        CLOSED_BY(fake_close) struct fake_server s;                                                \
        fake_open(&s, NULL);                                                                       \
        fake_connect(&s, true);                                                                    \
        name##_to(&s);                                                                             \
    }                                                                                              \
    static void name##_to(struct fake_server *s)
/* The question for /zookeeper/config, and its answer. */
void fake_config(struct fake_server *s, bool standalone);
/* The request under way is put off three times, and comes again after 100, 200 and 400 ms. */
void fake_put_off(struct fake_server *s, int32_t op);
/* The transport goes. */
void fake_hang_up(struct fake_server *s);

/* The client's output is taken. */
void fake_take_output(struct fake_server *s);
/* The next request has to be this one. */
const struct wire_request *fake_expect(struct fake_server *s, int32_t op);
bool fake_is_quiet(struct fake_server *s); /* nothing was sent that was not looked at */
/* A reply to the newest request looked at. `m` NULL: no body. */
void fake_answer(struct fake_server *s, clave_err err, const struct wire_reply *m);
void fake_answer_to(struct fake_server *s, int32_t xid, int32_t op, clave_err err,
                    const struct wire_reply *m);
void fake_event(struct fake_server *s, int32_t type, const char *path);
/* To a multi of checks: all fine, or the last of them failed. */
void fake_answer_checks(struct fake_server *s, clave_err err);
void fake_answer_ping(struct fake_server *s);
/* Raw bytes. */
void fake_feed(struct fake_server *s, const void *p, size_t n);

/* The next state told has to be this one. */
void fake_expect_state(struct fake_server *s, clave_state state, clave_err why);
bool fake_expects_no_state(const struct fake_server *s);

/* Names as a vector, in static memory. */
struct jvec fake_names(const char *const *names, size_t n);

#endif
