/* fake_server.h - one client, and a server played by hand: each request is looked at, and each
 * reply written, by the test. For what no well-behaved server does, and for an ensemble. */
#ifndef CLAVE_TEST_FAKE_SERVER_H
#define CLAVE_TEST_FAKE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "clave/async/client.h"
#include "wire/record.h"

enum { SCRIPT_STATES = 64, SCRIPT_SESSION = 0x77, SCRIPT_TIMEOUT = 10000 };

struct script {
    clave_async_client *c;
    int64_t now;
    int64_t zxid;
    struct clave_mem mem;  /* of the script itself */
    struct buf up;         /* what the client has sent and was not looked at */
    struct buf down;       /* the message that is being written */
    struct wire_request q; /* the newest request looked at; its slices lie in `seen` */
    struct buf seen;
    clave_state states[SCRIPT_STATES];
    clave_err whys[SCRIPT_STATES];
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
void script_outcome(clave_async_client *c, const clave_result *res, void *arg);

/* `o` may be NULL; hosts, callbacks and the session timeout (10 s) are the script's unless
 * given. The client is started, and wants to dial. */
void script_open(struct script *s, const clave_client_options *o);
void script_close(struct script *s);

/* The clock goes on, and the client is ticked. */
void script_at(struct script *s, int64_t now);

/* The dial succeeds; the handshake is looked at. */
struct wire_connect_request script_dial(struct script *s);
/* Answers it. */
void script_shake(struct script *s, int64_t session, int32_t timeout_ms, bool read_only);
/* All of it: dial, a session, and (when asked) the kind of server. */
void script_connect(struct script *s, bool standalone);
/* The question for /zookeeper/config, and its answer. */
void script_config(struct script *s, bool standalone);
/* The transport goes. */
void script_hang_up(struct script *s);

/* The client's output is taken. */
void script_take(struct script *s);
/* The next request has to be this one. */
const struct wire_request *script_expect(struct script *s, int32_t op);
bool script_is_quiet(struct script *s); /* nothing was sent that was not looked at */
/* A reply to the newest request looked at. `m` NULL: no body. */
void script_answer(struct script *s, clave_err err, const struct wire_reply *m);
void script_answer_to(struct script *s, int32_t xid, int32_t op, clave_err err,
                      const struct wire_reply *m);
void script_event(struct script *s, int32_t type, const char *path);
/* To a multi of checks: all fine, or the last of them failed. */
void script_answer_checks(struct script *s, clave_err err);
void script_pong(struct script *s);
/* Raw bytes. */
void script_feed(struct script *s, const void *p, size_t n);

/* The next state told has to be this one. */
void script_state(struct script *s, clave_state state, clave_err why);
bool script_no_state(const struct script *s);

/* Names as a vector, in static memory. */
struct jvec script_names(const char *const *names, size_t n);

#endif
