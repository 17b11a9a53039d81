/* listing.h - an answer of any length, made in pieces: no piece takes long, and sessions, nodes and
 * watches may come and go between two of them. What changes meanwhile may be in it or not;
 * what stays is in it once. four_letter.c and admin_commands.c say of which parts an answer is
 * made, list_*.c have those that are lists. */
#ifndef CLAVE_SERVER_MONITORING_LISTING_H
#define CLAVE_SERVER_MONITORING_LISTING_H

#include "base/json_writer.h"
#include "server/monitoring/text.h"
#include "server/server_internal.h"

struct listing;
/* Puts the next item, as text or as JSON, or looks in vain at one place where one could be.
 * false: the part has ended. */
typedef bool listing_part(struct listing *l);
enum { LISTING_PARTS = 3 };

struct watch_counts {
    size_t conns; /* that watch something */
    size_t paths;
    size_t watches;
};

struct listing {
    struct server *s;
    listing_part *parts[LISTING_PARTS + 3]; /* NULL: the end */
    size_t at;                              /* the present one */
    struct text text;                       /* a part uses this or */
    struct json json;
    const void *what;  /* of the table of answers */
    const char *asked; /* the name by which */

    /* Where the present part is; cleared for each. */
    bool begun;     /* it has been called */
    bool has_group; /* the heading above the present items has been put */
    struct map_walk walk;
    struct list_cursor outer;
    struct list_cursor inner;
    int64_t group; /* which one that is */

    /* What one part leaves to the next. */
    bool brief; /* connections without their sessions */
    struct watch_counts counts;
    struct buf heap;
};

/* An answer of these parts; the end is a NULL, or LISTING_PARTS. */
void clave__listing_begin(struct listing *l, struct server *s, listing_part *const *parts);
/* A part before all others, and one after them. */
void clave__listing_enclose(struct listing *l, listing_part *before, listing_part *after);
void clave__listing_end(struct listing *l);

/* Appends the next piece: LISTING_LOOKS calls of parts, or about LISTING_BYTES. ETOOBIG, ENOMEM:
 * the answer has a gap; there is no use in going on. */
enum { LISTING_LOOKS = 1000, LISTING_BYTES = 32 * 1024 };
clave_err clave__listing_step(struct listing *l, struct buf *out);

static inline bool clave__listing_is_over(const struct listing *l)
{
    return !l->parts[l->at];
}

/* The next connection, in the order in which they came. NULL: there is none left. */
struct server_conn *clave__listing_next_conn(struct listing *l);

#endif
