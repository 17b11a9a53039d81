/* http_told.h - what the gates have told anybody, held against the places that stood at the
 * servers: each answer of each route when it leaves the gate, whether it arrives or not; and later,
 * for as long as somebody may rely on it. */
#ifndef CLAVE_SIM_HTTP_TOLD_H
#define CLAVE_SIM_HTTP_TOLD_H

#include "http/http_call.h"
#include "http/http_places.h"

enum { HTTP_OVER = 128, HTTP_DEEDS = 256, HTTP_REFUSED = 128, HTTP_WRITES = 128 };

/* Somebody asked for the end of a claim, or of all of its session. */
struct http_deed {
    int64_t session;
    char claim[40]; /* "": all */
};

/* It was told that a claim is over. */
struct http_over {
    int64_t session, at;
    char claim[40];
    bool spent; /* since its max_hold_ms was over, or its work was silent for its depend_ms */
};

/* A guarded write: of a node of its own. */
struct http_write {
    uint64_t number;
    unsigned site;
    int64_t guard, sent_at;
    bool refused, stopped, made;
};

struct http_told {
    struct http_deed deeds[HTTP_DEEDS]; /* the newest, as of the others */
    size_t ndeeds;
    struct http_over over[HTTP_OVER];
    size_t nover;
    uint64_t refused[HTTP_REFUSED]; /* numbers of requests for a place */
    bool stopped[HTTP_REFUSED];     /* by a gate that stops */
    size_t nrefused;
    struct http_write writes[HTTP_WRITES];
    size_t nwrites;
    int64_t writes_pzxid;
    uint64_t requests; /* that were numbered */
    uint64_t held, tokens, guarded, copies, leads;
};

/* Where guarded writes go. */
#define HTTP_WRITES_PATH "/writes"

void http_told_sent(struct http_call *c);
/* The answer is on its way. */
void http_told_answer(struct http_call *c);
/* A piece of a stream is. */
void http_told_piece(struct http_call *c, const void *bytes, size_t n);
/* A place stands there, for the first time; it is gone. */
void http_told_place(struct http_world *h, const struct http_place *p);
void http_told_gone(struct http_world *h, const struct http_place *p);
/* A request for a guarded write: its number. */
uint64_t http_told_write(struct http_world *h, unsigned site, int64_t guard);
/* After the places. */
void http_told_look(struct http_world *h);

#endif
