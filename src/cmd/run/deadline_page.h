/* deadline_page.h - until when the lock is certainly held: one page of memory that the wrapper
 * keeps up to date, that the guardian judges by, and that the command may look at.
 *
 * CLAVE_DEADLINE names it for the command. Its first eight bytes are the deadline, an aligned
 * int64_t in the machine's byte order: milliseconds of CLOCK_BOOTTIME. Then come the token and
 * the session id in the same form. Whoever maps it sees each change whole. */
#ifndef CLAVE_CMD_RUN_DEADLINE_PAGE_H
#define CLAVE_CMD_RUN_DEADLINE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct deadline_page {
    _Atomic int64_t deadline;
    _Atomic int64_t token;
    _Atomic int64_t session_id;
    _Atomic int64_t limit; /* the guardian's: as the deadline, but for the maximum hold */
};

enum {
    DEADLINE_PAGE_LOST = 0,
    DEADLINE_PAGE_FILE_CAP = 64
}; /* DEADLINE_PAGE_LOST: not held, or not any more */

/* Shared with processes forked from now on; no other mapping of it can be written to. *fd stays
 * open for those who look. false: errno. */
bool deadline_page_new(struct deadline_page **out, int *fd);

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

/* What stands in the page of that name, if it is of this token and session. */
bool deadline_page_read(const char *file, int64_t token, int64_t session_id, int64_t *deadline);

#endif
