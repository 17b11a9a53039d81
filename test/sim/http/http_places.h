/* http_places.h - every place that stood in the queues of HTTP, by the servers' tree: from when it
 * was its turn, and until when. So an answer can be held against what was
 * so between its request and itself. */
#ifndef CLAVE_SIM_HTTP_PLACES_H
#define CLAVE_SIM_HTTP_PLACES_H

#include "lock_layout.h"

enum { HTTP_SITES = 2, HTTP_PLACES = 512, HTTP_STANDING = 64 };

#define HTTP_NEVER INT64_MAX

struct http_world;

struct http_place {
    char node[PATH_SIZE];
    unsigned site;
    int64_t session, token;
    int64_t turn, gone;        /* true times; HTTP_NEVER: not yet */
    int64_t holds;             /* it is its turn since then; HTTP_NEVER: it is not, perhaps not any
                                * more: after a crash somebody is back before it */
    uint64_t request;          /* that it was made for, as its data say; 0: they do not */
    int64_t relied_to;         /* true time: until then somebody was told that it is held */
    int64_t told_at, named_at; /* that it is held: the first time, the last one; 0: never */
    int64_t told_to;           /* the same, counted from when the gate had read the request */
    int64_t signed_at;         /* of http_signs.c: the newest sign of life of its work */
    int64_t note_mzxid;        /* likewise: of the node that says so, as it was seen last */
    int64_t note_ctime, note_mtime; /* likewise: a server that lost it in a crash gives zxids
                                     * again */
    bool seen;
};

struct http_queue_seen {
    int64_t czxid, pzxid;
    uint64_t start;
};

struct http_places {
    struct http_place list[HTTP_PLACES]; /* the newest */
    size_t n;                            /* ever */
    struct http_place *standing[HTTP_STANDING];
    size_t nstanding;
    int64_t newest; /* token */
    struct http_queue_seen queues[HTTP_SITES];
    struct http_queue_seen waits[HTTP_SITES]; /* of a semaphore: where sessions queue for leases */
};

/* Looks at what stands there now. */
void http_places_look(struct http_world *h);
/* The newest with this token: a server that lost what was not on its disk gives numbers again.
 * NULL: no such place has stood there lately. */
struct http_place *http_place_find(struct http_world *h, unsigned site, int64_t token);
/* It was its turn at a moment from then on. */
static inline bool http_place_held_since(const struct http_place *p, int64_t at)
{
    return p->turn != HTTP_NEVER && p->gone >= at;
}

#endif
