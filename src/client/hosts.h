/* hosts.h - a parsed connection string: the servers of a client, in the order in which they are
 * tried, and the chroot. */
#ifndef CLAVE_CLIENT_HOSTS_H
#define CLAVE_CLIENT_HOSTS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rand.h"
#include "clave/async/client.h"

struct host {
    const char *name;
    uint16_t port;  /* 0: `name` is the path of a Unix socket, or "local:" */
    unsigned tried; /* how many attempts there were */
    /* `refused` is the newest attempt that was refused for good, counted like `tried` (0: none);
     * `addresses` is how many addresses the name had then. */
    unsigned refused, addresses;
};

struct hosts {
    const struct clave_mem *mem; /* borrowed */
    struct host *list;
    size_t count;
    size_t at;          /* index of the host to dial, or in use */
    bool tls;           /* for all hosts */
    size_t fails;       /* attempts in a row that failed */
    char *text;         /* what the names point into */
    const char *chroot; /* "" or "/x" */
    size_t chroot_len;
};

/* Why a list is refused, as a static text; NULL: it is fine. */
const char *clave__hosts_fault(const char *text);
/* Why these n bytes are not a name, an IPv4 address or "[IPv6 address]", as a static text; NULL:
 * they are. */
const char *clave__hosts_name_fault(const char *s, size_t n);

/* EHOST, ENOMEM. */
clave_err clave__hosts_init(struct hosts *h, const struct clave_mem *mem, const char *text);
void clave__hosts_fini(struct hosts *h);
/* True if `other` may replace this list: its chroot and TLS are the same. */
bool clave__hosts_fit(const struct hosts *h, const struct hosts *other);
/* Makes `current` the current host. Returns false if it is not in the list. */
bool clave__hosts_resume(struct hosts *h, const struct host *current);
void clave__hosts_shuffle(struct hosts *h, struct rand_state *rand);

static inline const struct host *clave__hosts_current(const struct hosts *h)
{
    assert(h->at < h->count);
    return &h->list[h->at];
}

/* The current host gave an answer, so it does not refuse for good. */
static inline void clave__hosts_answered(struct hosts *h)
{
    h->list[h->at].refused = 0;
}

/* Ends the row of failed attempts. */
static inline void clave__hosts_served(struct hosts *h)
{
    h->fails = 0;
}

/* The attempt on the current host was refused for good: a retry would be refused too. Call it
 * before _next. */
void clave__hosts_refused(struct hosts *h, unsigned addresses);
/* True if every host has refused for good, and none of its other addresses has done better
 * since. */
bool clave__hosts_all_refuse(const struct hosts *h);
/* Moves on to the next host. Returns true if it is time to wait: the current host failed, and all
 * others failed before it. */
bool clave__hosts_next(struct hosts *h, bool failed);

#endif
