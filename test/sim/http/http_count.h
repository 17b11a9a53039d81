/* http_count.h - the counter that programs change over HTTP, by the servers' tree: which request
 * has made which of its changes. Each request adds an amount that no other one adds, or sets the
 * counter from a value that it expects to one that is higher by such an amount; only the latter are
 * repeated.
 *
 * What must hold, however often connections, gates and answers are lost:
 *   - The counter changes by what was asked for, each request once; so its value is the sum of all
 *     that was acknowledged and of a part of what was told as unknown.
 *   - What was acknowledged is made and stays, with the values of the answer. What was refused with
 *     class "retry" or "final" is not made, then or later.
 *   - What a reading says was so at a moment since it was asked. */
#ifndef CLAVE_SIM_HTTP_COUNT_H
#define CLAVE_SIM_HTTP_COUNT_H

#include "http/http_call.h"

enum { COUNT_REQUESTS = 4096, COUNT_CHANGES = 128 };

struct count_request {
    int64_t amount; /* 0: none */
    unsigned tries;
    bool told, refused;
    int64_t
        made; /* 1 + the version that it has made, or one that came with it; 0: it is not made */
};

/* As the tree was seen; of several changes at once the newest. */
struct count_change {
    int64_t czxid, value, at;
    int32_t version; /* -1: there is no node */
};

struct http_count {
    struct http_world *of;
    struct count_request requests[COUNT_REQUESTS]; /* the newest */
    size_t nrequests;                              /* ever */
    struct count_change changes[COUNT_CHANGES];
    size_t nchanges;
    int64_t zxid;
    uint64_t start;
    int64_t went_back_at; /* true time: a server has lost what was not on its disk */
    bool lost_track;      /* too much has happened at once */
    uint64_t counted;
};

#define COUNT_PATH "/group/n"

void http_count_init(struct http_count *t, struct http_world *of);
/* A request for one more change, of this amount: its number. */
uint64_t http_count_new(struct http_count *t, int64_t amount);
/* By so much. */
int64_t http_count_amount(struct http_count *t, uint64_t number);
/* It is sent, for the first time or once more. */
void http_count_asked(struct http_count *t, uint64_t number);
/* After every step in which the server runs. */
void http_count_look(struct http_count *t);
/* A gate has answered a call of this number; 0: a reading. */
void http_count_told(struct http_count *t, const struct http_call *c);

#endif
