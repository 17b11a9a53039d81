/* handed_session.h - a session that one process hands over to another, as text, and what becomes of
 * its holds in the client that resumes it.
 *
 *     clave-session 1
 *     id 100a3c5d0000001
 *     passwd 7f0c...                32 hexadecimal digits
 *     timeout 10000
 *     ticket 5b0e...                16 hexadecimal digits; different each time
 *     chroot /app                   "/" if there is none
 *     held 4711 0 never 0 /l/_c_... czxid and data version of a held node; when its maximum hold is
 *                                   over, by CLOCK_BOOTTIME of the machine; a hash of the mark in
 *                                   it, in hexadecimal digits, or 0; its path
 *     end
 *
 * The text is all that is needed to act as the session's owner, so it is a secret like a key.
 *
 * The process that takes a hold up writes to its node before it counts on the hold. If there is
 * room, it leaves a mark there, "resumed=<ticket>:<uuid>", by which a second process with the same
 * text learns that it came too late: on every connection, before anything else, it reads the nodes
 * until it has claimed one of them. If none of them is left, the other process may have released
 * what it claimed and have gone on in the session, so that is given up for a new one. It pauses
 * after a connection that ended before it had claimed a hold, because two processes that attach to
 * one session drive each other out.
 *
 * What must stay true: at most one process takes a hold up, and only in the session that was handed
 * over. A hold that is not taken up within a session timeout is released, since otherwise it would
 * exclude everybody else for as long as this process lives. */
#ifndef CLAVE_CLIENT_HANDED_SESSION_H
#define CLAVE_CLIENT_HANDED_SESSION_H

#include "base/buf.h"
#include "base/rand.h"
#include "client/client_base.h"

struct handed_hold {
    const char *path; /* of its node, relative to the chroot */
    int64_t czxid;
    int32_t version; /* of the node's data: when it was handed over, or as the claim wrote it */
    uint64_t mark;   /* clave__handed_mark_of those data */
    int64_t ends;    /* CLAVE_NEVER: it has no maximum */
    bool taken;      /* by a recipe, or given back */
    bool claimed;    /* the recipe has written to the node, or it was given back */
    bool gone; /* somebody has deleted the node on the present connection, or an earlier one */
    bool deleting;
};

/* "<ticket>:<uuid>" */
enum { HANDED_TICKET = 16, HANDED_MARK = HANDED_TICKET + 1 + CLAVE_UUID_TEXT };
#define HANDED_MARK_KEY "resumed"

struct handed_session {
    int64_t id; /* 0: nothing was handed over, or that session has ended */
    uint8_t passwd[16];
    int32_t timeout_ms;
    uint64_t ticket;
    const char *chroot; /* "" or "/x" */
    struct handed_hold *holds;
    size_t nholds;
    char *text;                 /* what the texts point into */
    struct timer leftover;      /* until the holds must have been taken up */
    struct timer unconfirmed;   /* until one of the reads must have been answered */
    unsigned checking;          /* reads under way */
    bool stands;                /* one of them has found its node, or has failed */
    char mark[HANDED_MARK + 1]; /* of this client */
};

/* Why the text cannot be resumed, as a static text; NULL: it can. */
const char *clave__handed_fault(const char *text);
/* Sets everything but the timer. ENOMEM. */
clave_err clave__handed_parse(struct handed_session *h, const struct clave_mem *mem,
                              const char *text);
void clave__handed_fini(struct handed_session *h, const struct clave_mem *mem);
/* Writes the text, with a NUL. ENOMEM, ETOOBIG. */
clave_err clave__handed_format(const struct handed_session *h, struct buf *out);

/* ---- in the client that resumes it ----------------------------------------------------------- */

/* Takes up a hold whose node has the protected form of `stem`: its parent and, behind "_c_<uuid>-",
 * the beginning of its name. NULL: there is none. */
struct handed_hold *clave__client_take_handed(clave_async_client *c, const char *stem);
/* Another recipe may take the hold up, because this one was given up before it held. */
void clave__client_untake_handed(clave_async_client *c, struct handed_hold *h);
/* The next one that nobody has taken up; `after` NULL: the first. NULL: there is none. */
const struct handed_hold *clave__client_next_untaken(const clave_async_client *c,
                                                     const struct handed_hold *after);
/* The mark that this client leaves: "<ticket>:<uuid>". */
const char *clave__client_handed_mark(const clave_async_client *c);
/* A hash of the newest mark in a node's data; 0: there is none. */
uint64_t clave__handed_mark_of(const void *data, size_t n);
/* Tells from a node's data which process has the hold. If the mark is not the one that was handed
 * over, another process has taken the hold up, with this text or a later one. If the mark is the
 * same but the version of data in clave's form is not, somebody has asked for a release, because a
 * process that takes a hold up always marks such data. */
enum handed_whose { HANDED_NOBODYS, HANDED_OURS, HANDED_OTHERS };
enum handed_whose clave__client_handed_whose(const clave_async_client *c,
                                             const struct handed_hold *h, const clave_result *res);
/* The node of the hold is gone, though it was there when the connection began: logs that, unless
 * the end of the session has been logged already. */
void clave__client_handed_gone(const clave_async_client *c, struct handed_hold *h);
/* Another process has the hold, and with it the session: ends the client. */
void clave__client_handed_lost(clave_async_client *c, const struct handed_hold *h);
/* Fills in what the present session needs to be resumed, except the holds. The chroot is the
 * client's. */
void clave__client_hand_over_session(const clave_async_client *c, struct handed_session *h);

#endif
