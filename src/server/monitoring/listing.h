/* listing.h - an answer of any length, made in pieces: no piece takes long, and connections,
 * sessions, nodes and watches may come and go between two of them. Whatever stays meanwhile is in
 * the answer once; what changes may be in it or not. four_letter.c and admin_commands.c say of
 * which parts an answer is made; the parts that are lists are declared at the end.
 *
 * A part puts text (clave__text_put) or JSON (base/json_writer.h). */
#ifndef CLAVE_SERVER_MONITORING_LISTING_H
#define CLAVE_SERVER_MONITORING_LISTING_H

#include "base/buf.h"
#include "base/json_writer.h"
#include "server/server_internal.h"
#include "wire/jute.h"

/* ---- text --------------------------------------------------------------------------------------
 */

struct text {
    struct buf *out;
    clave_err err; /* of the first piece that was dropped: ETOOBIG, ENOMEM */
};

/* At most TEXT_PIECE - 1 bytes at a time. */
enum { TEXT_PIECE = 512 };
__attribute__((format(printf, 2, 3))) void clave__text_put(struct text *t, const char *fmt, ...);
/* A path of any length. */
void clave__text_path(struct text *t, struct jbytes path);

/* ---- an answer ------------------------------------------------------------------------------- */

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

/* ---- lists ----------------------------------------------------------------------------------- */

/* Each as the text of a four-letter word, and as JSON: members of the object that admin_commands.c
 * has opened. */

/* cons, connections. The reset puts nothing. */
bool clave__connections_text(struct listing *l);
bool clave__connections_json(struct listing *l);
bool clave__secure_connections_json(struct listing *l);
bool clave__connections_reset(struct listing *l);

/* dump. Text: three parts, in this order. JSON: the first part collects for the second. */
bool clave__sessions_text(struct listing *l);
bool clave__owners_text(struct listing *l);
bool clave__session_connections_text(struct listing *l);
bool clave__expiries_collect(struct listing *l);
bool clave__expiries_json(struct listing *l);
bool clave__owners_json(struct listing *l);

/* wchs, wchc, wchp. Counting takes two parts, which put nothing and leave l->counts. */
bool clave__watches_count_by_connection(struct listing *l);
bool clave__watches_count_by_path(struct listing *l);
bool clave__watches_text(struct listing *l);
bool clave__watches_json(struct listing *l);
bool clave__watches_by_path_text(struct listing *l);
bool clave__watches_by_path_json(struct listing *l);

/* ---- the commands of Apache's AdminServer, as JSON (admin_commands.c) ------------------------ */

/* Begins the answer to a command, by any of its names: a JSON object with Apache's fields,
 * "command" and "error" among them. EINVAL: there is no such command, and the object says so.
 * `name` outlives the answer. */
clave_err clave__admin_begin(struct listing *l, struct server *s, const char *name);
/* The first name of command number i, in alphabetical order; NULL after the last. */
const char *clave__admin_name(size_t i);

#endif
