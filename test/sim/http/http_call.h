/* http_call.h - one request over HTTP and its answer, on their way between a client and a gate: as
 * texts, late by any time, or lost. A call is freed when neither side has it any more. A balancer
 * on its way may send it twice. */
#ifndef CLAVE_SIM_HTTP_CALL_H
#define CLAVE_SIM_HTTP_CALL_H

#include <string.h>

#include "base/list.h"
#include "web/web.h"
#include "world.h"

enum { HTTP_HEADERS = 8, HTTP_ANSWER = 4096 };

struct gate;
struct http_world;
struct http_call;

/* Who asks. It lives as long as the world. */
struct http_sender {
    struct http_world *of;
    const char *name;
    const struct clock *clock;
    const char *token; /* of Authorization; NULL: none is sent */
    int64_t session;   /* that its requests are of; 0: none, or it is not told */
    size_t open;       /* requests that a gate may still begin, or go on with */
    /* The answer, or the end of the connection. */
    void (*hears)(struct http_sender *s, struct http_call *c);
    /* A piece of a stream. */
    void (*reads)(struct http_sender *s, struct http_call *c, const char *text);
    /* A gate has answered, whether that arrives or not. NULL: http_told judges it. */
    void (*told)(struct http_sender *s, struct http_call *c);
};

struct http_call {
    struct world *w;
    struct gate *gate;
    struct http_sender *from;
    char target[160], headers[HTTP_HEADERS][192], body[256];
    struct web_header list[HTTP_HEADERS];
    struct web_request q;
    int64_t session;  /* that it is of, as far as its sender knows */
    int64_t sent_ms;  /* by the sender's clock, read before it was sent */
    int64_t sent_at;  /* true time */
    int64_t begun_at; /* the gate has read it, and then its clock */
    uint64_t number;  /* of what it is to make, which says so in its name; 0: nothing */
    bool twice;       /* it, or another one with the same texts, is sent once more */
    unsigned loss;    /* permille: the answer is lost on its way back */

    struct alarm up, down, fin; /* arrives: the request; the answer or the end; the hang-up */
    struct list in_world;       /* all of them */
    struct list in_gate;        /* that knows of it */
    bool arrived, begun, hung_up;
    bool is_open;  /* counted in from->open */
    unsigned life; /* of the gate that took it */
    struct web_exchange *x;
    bool answered;
    unsigned status; /* 0: the connection ended without an answer */
    char answer[HTTP_ANSWER];
    bool given_up, user_done, gate_done;

    /* Of a stream: pieces on their way, in order. */
    bool streams;
    struct list pieces;
    int64_t newest; /* arrival of the last */
};

/* A request as the caller fills it in: method, target, headers ("Name", "value"), body. */
struct http_call *http_call_new(struct http_sender *from, struct gate *g, const char *method);
/* The same once more, of which nobody waits for the answer. It arrives after so long. */
void http_call_repeat(struct http_call *c, struct gate *g, int64_t us);
void http_call_header(struct http_call *c, const char *name, const char *value);
/* It arrives after so long, or never (-1). */
void http_call_send(struct http_call *c, int64_t us);
/* The gate's side is done with it; the sender is told after so long, or never (-1). */
void http_call_end(struct http_call *c, int64_t us);
/* A piece of a stream; the sender hears them one by one, and then its end. */
void http_call_piece(struct http_call *c, const void *p, size_t n, int64_t us);
/* The sender gives up; the gate hears of it after so long, or never (-1). */
void http_call_give_up(struct http_call *c, int64_t us);
/* The sender is done. */
void http_call_drop(struct http_call *c);

/* Frees all that are on their way when the world ends. */
void http_calls_free(struct list *calls);

static inline bool http_call_is(const struct http_call *c, const char *method, const char *prefix)
{
    return strcmp(c->q.method, method) == 0 && strncmp(c->target, prefix, strlen(prefix)) == 0;
}

/* The session that it is of has ended, or the gate that knew its secret has. */
bool http_call_has_no_session(const struct http_call *c);

/* The text of a member anywhere in it, a number as its digits; false: there is none. */
bool http_json(const char *text, const char *key, char *out, size_t cap);
int64_t http_json_int(const char *text, const char *key);

#endif
