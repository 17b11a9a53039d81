/* listing.h - answers of any length, made in pieces. No piece takes long, and connections,
 * sessions, nodes and watches may come and go in between. Whatever exists throughout is in the
 * answer exactly once; what comes or goes may be in it or not. four_letter.c and admin_commands.c
 * say which parts an answer has; the parts that are lists are declared at the end of this file.
 *
 * A part writes text (clave__text_put) or JSON (base/json_writer.h). */
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
    clave_err err; /* why the first piece that was dropped did not fit: ETOOBIG, ENOMEM */
};

/* The longest text that one call puts is TEXT_PIECE - 1 bytes. */
enum { TEXT_PIECE = 512 };
__attribute__((format(printf, 2, 3))) void clave__text_put(struct text *t, const char *fmt, ...);
/* Puts a path, of any length. */
void clave__text_path(struct text *t, struct jbytes path);

/* ---- an answer ------------------------------------------------------------------------------- */

struct listing;
/* Writes the next item of its part, or looks at one place where there could have been an item.
 * Returns false if the part is complete. */
typedef bool listing_part(struct listing *l);
enum { LISTING_PARTS = 3 };

struct watch_counts {
    size_t conns; /* connections that watch something */
    size_t paths;
    size_t watches;
};

struct listing {
    struct server *s;
    listing_part *parts[LISTING_PARTS + 3]; /* ends with a NULL */
    size_t at;                              /* index of the present part */
    struct text text;                       /* a part writes either to this or to `json` */
    struct json json;
    const void *what;  /* the command, in the table of admin commands */
    const char *asked; /* the name by which it was requested */

    /* The place of the present part; cleared when a part begins. */
    bool begun;     /* the part has been called before */
    bool has_group; /* the heading of the present group has been written */
    struct map_walk walk;
    struct list_cursor outer;
    struct list_cursor inner;
    int64_t group; /* which group that is */

    /* Results that one part leaves for the next. */
    bool brief; /* list connections without their sessions */
    struct watch_counts counts;
    struct buf heap;
};

/* Begins an answer with these parts, ended by a NULL or by reaching LISTING_PARTS. */
void clave__listing_begin(struct listing *l, struct server *s, listing_part *const *parts);
/* Puts one part before all others and one after them. */
void clave__listing_enclose(struct listing *l, listing_part *before, listing_part *after);
void clave__listing_end(struct listing *l);

/* Appends the next piece: LISTING_LOOKS calls of parts, or about LISTING_BYTES. ETOOBIG, ENOMEM:
 * the answer has a gap, so give it up. */
enum { LISTING_LOOKS = 1000, LISTING_BYTES = 32 * 1024 };
clave_err clave__listing_step(struct listing *l, struct buf *out);

static inline bool clave__listing_is_over(const struct listing *l)
{
    return !l->parts[l->at];
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Each list exists as the text of a four-letter word and as JSON, as members of the object that
 * admin_commands.c has opened. */

/* For cons and connections. The reset writes nothing. */
bool clave__connections_text(struct listing *l);
bool clave__connections_json(struct listing *l);
bool clave__secure_connections_json(struct listing *l);
bool clave__connections_reset(struct listing *l);

/* For dump. As text it has three parts, in this order. As JSON, the first part collects for the
 * second. */
bool clave__sessions_text(struct listing *l);
bool clave__owners_text(struct listing *l);
bool clave__session_connections_text(struct listing *l);
bool clave__expiries_collect(struct listing *l);
bool clave__expiries_json(struct listing *l);
bool clave__owners_json(struct listing *l);

/* For wchs, wchc and wchp. Counting takes two parts, which write nothing and leave l->counts. */
bool clave__watches_count_by_connection(struct listing *l);
bool clave__watches_count_by_path(struct listing *l);
bool clave__watches_text(struct listing *l);
bool clave__watches_json(struct listing *l);
bool clave__watches_by_path_text(struct listing *l);
bool clave__watches_by_path_json(struct listing *l);

/* ---- the commands of Apache's AdminServer, as JSON (admin_commands.c) ------------------------ */

/* Begins the answer to a command, given by any of its names: a JSON object with Apache's fields,
 * including "command" and "error". EINVAL: there is no such command, and the object says so. `name`
 * must outlive the answer. */
clave_err clave__admin_begin(struct listing *l, struct server *s, const char *name);
/* Whether a command changes something, such as the figures that it resets. */
bool clave__admin_changes(const char *name);
/* The first name of the i-th command in alphabetical order; NULL after the last. */
const char *clave__admin_name(size_t i);

#endif
