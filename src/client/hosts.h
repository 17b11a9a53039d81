/* hosts.h - the servers of one client, in the order they are tried, and the chroot. */
#ifndef CLAVE_CLIENT_HOSTS_H
#define CLAVE_CLIENT_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rand.h"
#include "clave/async/client.h"

struct host {
    const char *name;
    uint16_t port;  /* 0: `name` is a Unix socket's path, or "local:" */
    unsigned tried; /* how often */
    /* The newest attempt that was refused for good, counted as `tried` is from 1 (0: none), and how
     * many addresses the name had then. */
    unsigned refused, addresses;
};

struct hosts {
    const struct clave_mem *mem; /* borrowed */
    struct host *list;
    size_t count;
    size_t at;          /* the one to dial, or in use */
    bool tls;           /* of all of them */
    size_t fails;       /* attempts in a row that came to nothing */
    char *text;         /* what the names point into */
    const char *chroot; /* "" or "/x" */
    size_t chroot_len;
};

/* Why a list is refused, or NULL; static text. */
const char *clave__hosts_fault(const char *text);

/* EHOST, ENOMEM. */
clave_err clave__hosts_init(struct hosts *h, const struct clave_mem *mem, const char *text);
void clave__hosts_fini(struct hosts *h);
/* Another list for the same servers' data: chroot and TLS are alike. */
bool clave__hosts_fit(const struct hosts *h, const struct hosts *other);
/* Goes on with this one, if it is in the list. */
bool clave__hosts_resume(struct hosts *h, const struct host *current);
void clave__hosts_shuffle(struct hosts *h, struct rand_state *rand);

const struct host *clave__hosts_current(const struct hosts *h);
/* The current one gave an answer. */
void clave__hosts_answered(struct hosts *h);
/* The attempt on the current one, that _next is to follow, was refused for good: what refused it
 * will do so again. */
void clave__hosts_refused(struct hosts *h, unsigned addresses);
/* Every one of them has refused for good, and none of its other addresses did better since. */
bool clave__hosts_all_refuse(const struct hosts *h);
/* On to the next. true: the current one came to nothing, and so did all the others before:
 * time to wait. */
bool clave__hosts_next(struct hosts *h, bool failed);

#endif
