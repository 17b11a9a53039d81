/* deadline_page.h - until when the lock is certainly held: one page of shared memory. The runner
 * keeps it up to date, the guardian acts on it, and the command may read it.
 *
 * CLAVE_DEADLINE names the page for the command. Its first eight bytes are the deadline, an aligned
 * int64_t in the machine's byte order: milliseconds of CLOCK_BOOTTIME. The token and the session id
 * follow in the same form. Each value changes atomically for every process that maps the page. */
#ifndef CLAVE_CMD_RUN_DEADLINE_PAGE_H
#define CLAVE_CMD_RUN_DEADLINE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct deadline_page {
    _Atomic int64_t deadline;
    _Atomic int64_t token;
    _Atomic int64_t session_id;
    _Atomic int64_t limit; /* for the guardian: the deadline, regardless of the maximum hold */
};

enum {
    DEADLINE_PAGE_LOST = 0,
    DEADLINE_PAGE_FILE_CAP = 64
}; /* DEADLINE_PAGE_LOST: not held, or no longer held */

/* Creates the page, shared with processes forked from now on; no other mapping of it can be written
 * to. *fd stays open for readers. false: see errno. */
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

/* Reads the deadline from the page named `file`; false if the page is not of this token and
 * session. */
bool deadline_page_read(const char *file, int64_t token, int64_t session_id, int64_t *deadline);

#endif
