/* deadline_page.h - one page of shared memory that says until when the lock is certainly held. The
 * runner keeps it up to date, the guardian acts on it, and the command may read it.
 *
 * The environment variable CLAVE_DEADLINE gives the command the name of the page. Its first eight
 * bytes are the deadline: an aligned int64_t in the machine's byte order, in milliseconds of
 * CLOCK_BOOTTIME. The token and the session id follow in the same form. Every process that maps the
 * page sees each value change atomically. */
#ifndef CLAVE_CMD_RUN_DEADLINE_PAGE_H
#define CLAVE_CMD_RUN_DEADLINE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct deadline_page {
    _Atomic int64_t deadline;
    _Atomic int64_t token;
    _Atomic int64_t session_id;
    /* what the guardian acts on: the hold deadline without --max-hold, which it applies itself */
    _Atomic int64_t limit;
};

enum {
    DEADLINE_PAGE_LOST = 0,
    DEADLINE_PAGE_FILE_CAP = 64
}; /* DEADLINE_PAGE_LOST as a deadline: the lock is not held yet, or is lost */

/* Creates the page. It is shared with the processes forked from now on; every mapping made later is
 * read-only, unless this program may be replaced in place: then only those who have *fd can map it
 * to write. *fd stays open for readers. On false errno says why. */
bool deadline_page_new(struct deadline_page **out, int *fd, bool in_place);
/* Maps the page that the program before this one has created. NULL: errno says why. */
struct deadline_page *deadline_page_map(int fd);

static inline void deadline_page_set(struct deadline_page *p, int64_t deadline, int64_t limit)
{
    atomic_store_explicit(&p->limit, limit, memory_order_release);
    atomic_store_explicit(&p->deadline, deadline, memory_order_release);
}

static inline int64_t deadline_page_limit(const struct deadline_page *p)
{
    return atomic_load_explicit(&p->limit, memory_order_acquire);
}

static inline int64_t deadline_page_get(const struct deadline_page *p)
{
    return atomic_load_explicit(&p->deadline, memory_order_acquire);
}

/* Reads the deadline from the page named `file`. false: it cannot be read, or it belongs to another
 * token or session. */
bool deadline_page_read(const char *file, int64_t token, int64_t session_id, int64_t *deadline);

#endif
