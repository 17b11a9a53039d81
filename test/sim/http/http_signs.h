/* http_signs.h - signs of life of the work under claims with depend_ms: those that were asked for,
 * and those that the servers have noted, by their tree. So an answer can be held against how long
 * the work was silent, and nothing else than a sign is taken for one. */
#ifndef CLAVE_SIM_HTTP_SIGNS_H
#define CLAVE_SIM_HTTP_SIGNS_H

#include "http/http_call.h"
#include "http/http_places.h"

enum { HTTP_SIGNS = 64 };

struct http_signs {
    struct {
        char claim[40];
        uint64_t asked, noted;
    } list[HTTP_SIGNS]; /* the newest claims */
    size_t n;
    int64_t seen_zxid;
    uint64_t seen_start;
    uint64_t noted; /* of all claims */
};

/* The id in the target of a sign of life; false: it is none. */
bool http_sign_claim(const struct http_call *c, char out[40]);
/* A request was sent. */
void http_signs_sent(struct http_call *c);
/* After the places: what the servers have noted. */
void http_signs_look(struct http_world *h);
/* A gate tells that this place is held, for so long. */
void http_signs_told(struct http_call *c, const struct http_place *p, int64_t valid_ms);

#endif
