/* http_call.h - one request over HTTP and its answer, on their way between a client and a gate: as
 * texts, late by any time, or lost. A call is freed when neither side has it any more. */
#ifndef CLAVE_SIM_HTTP_CALL_H
#define CLAVE_SIM_HTTP_CALL_H

#include "base/list.h"
#include "web/web.h"
#include "world.h"

enum { HTTP_HEADERS = 6, HTTP_ANSWER = 4096 };

struct gate;
struct http_user;

struct http_call {
    struct world *w;
    struct gate *gate;
    struct http_user *user; /* NULL: it has given up */
    char target[128], headers[HTTP_HEADERS][192], body[160];
    struct web_header list[HTTP_HEADERS];
    struct web_request q;
    int64_t sent_ms; /* by the user's clock, read before it was sent */

    struct alarm up, down, fin; /* arrives: the request; the answer or the end; the hang-up */
    struct list in_world;       /* all of them */
    struct list in_gate;        /* that knows of it */
    bool arrived, begun, hung_up;
    unsigned life; /* of the gate that took it */
    struct web_exchange *x;
    bool answered;
    unsigned status; /* 0: the connection ended without an answer */
    char answer[HTTP_ANSWER];
    bool user_done, gate_done;

    /* Of a stream: pieces on their way, in order. */
    bool streams;
    struct list pieces;
    int64_t newest; /* arrival of the last */
};

/* A request as the caller fills it in: method, target, headers ("Name", "value"), body. */
struct http_call *http_call_new(struct http_user *u, struct gate *g, const char *method);
void http_call_header(struct http_call *c, const char *name, const char *value);
/* It arrives after so long, or never (-1). */
void http_call_send(struct http_call *c, int64_t us);
/* The gate's side is done with it; the user is told after so long, or never (-1). */
void http_call_end(struct http_call *c, int64_t us);
/* A piece of a stream; the user hears them one by one, and then its end. */
void http_call_piece(struct http_call *c, const void *p, size_t n, int64_t us);
/* The user gives up; the gate hears of it after so long, or never (-1). */
void http_call_give_up(struct http_call *c, int64_t us);
/* The user is done. */
void http_call_drop(struct http_call *c);

/* Frees all that are on their way when the world ends. */
void http_calls_free(struct list *calls);

/* The text of a member anywhere in it, a number as its digits; false: there is none. */
bool http_json(const char *text, const char *key, char *out, size_t cap);
int64_t http_json_int(const char *text, const char *key);

#endif
