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
 * The process that resumes the session claims it before anything else. It reads the nodes and
 * writes to all of them in one transaction, under the versions that it has read. If there is room,
 * it leaves a mark there, "resumed=<ticket>:<uuid>". A second process with the same text finds
 * other marks, or other versions, and gives the session up. When the answer to the transaction is
 * lost, the nodes are read again, and the mark tells whose write it was. If none of the nodes is
 * left, the other process may have released what it claimed and have gone on in the session, so
 * that is given up for a new one.
 *
 *     read ──> (another's: CLOSED; nothing left: LOST) ──> write ──> claimed
 *      ^                                                     │
 *      └────── another version, no answer, next connection ──┘
 *
 * Until then no other request leaves, and closing sends no closeSession. So a process that gives a
 * session up leaves nothing in it, and takes nothing from the process that goes on with it. The
 * client pauses after a connection that ended before the claim, because two processes that attach
 * to one session drive each other out.
 *
 * Invariant: at most one process claims the session. Each transaction names every remaining node
 * that this process has not written to yet, so a later transaction of another process finds a node
 * that has changed. (More than CLAIM_MOST nodes are claimed in several transactions, always
 * in the order of the text.) A hold that is not taken up within a session timeout is released,
 * since otherwise it would exclude everybody else for as long as this process lives. */
#ifndef CLAVE_CLIENT_HANDED_SESSION_H
#define CLAVE_CLIENT_HANDED_SESSION_H

#include "base/buf.h"
#include "base/rand.h"
#include "client/client_base.h"

struct handed_hold {
    const char *path; /* of its node, relative to the chroot */
    int64_t czxid;
    int32_t version; /* of the node's data: when it was handed over, or since this process wrote */
    uint64_t mark;   /* clave__handed_mark_of those data */
    int64_t ends;    /* CLAVE_NEVER: it has no maximum */
    bool taken;      /* by a recipe, or given back */
    bool gone;       /* somebody has deleted the node */
    bool claimed;    /* this process has written to the node */
    bool asked;      /* somebody has asked for it since it was handed over */
    bool writing;    /* the transaction under way names it */
    char *data;      /* what the transaction writes; NULL before the node was read */
    size_t ndata;
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
    char *text; /* what the texts point into */
    bool claimed;
    unsigned asking;            /* requests of the claim that are under way */
    clave_err trouble;          /* why one of them has failed; CLAVE_OK: none has */
    struct timer pause;         /* before they are made again */
    struct timer leftover;      /* until the holds must have been taken up */
    struct timer unconfirmed;   /* until the claim must have been made */
    char mark[HANDED_MARK + 1]; /* of this client */
};

/* Why the text cannot be resumed, as a static text; NULL: it can. */
const char *clave__handed_fault(const char *text);
/* Sets everything but the timers. ENOMEM. */
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
/* A hash of the newest mark in a node's data; 0: there is none. */
uint64_t clave__handed_mark_of(const void *data, size_t n);
/* A copy of what a node is to say, with the mark of this client in the place of an older one, or at
 * the end; unchanged if it is not in clave's form. To be freed by the caller; NULL: no memory. */
char *clave__client_handed_put_mark(const clave_async_client *c, const void *data, size_t n,
                                    size_t *out);
/* The node of a hold that a recipe has taken up is gone: logs that, unless the end of the session
 * has been logged already. */
void clave__client_handed_gone(const clave_async_client *c, struct handed_hold *h);
/* Fills in what the present session needs to be resumed, except the holds. The chroot is the
 * client's. */
void clave__client_hand_over_session(const clave_async_client *c, struct handed_session *h);

#endif
