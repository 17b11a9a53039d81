/* hosts.h - the servers of one client, in the order in which they are tried, and the chroot: a
 * parsed connection string. */
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
    unsigned tried; /* number of attempts */
    /* The number of the newest attempt that was refused for good, counted from 1 as `tried` is
     * (0: none), and how many addresses the name had then. */
    unsigned refused, addresses;
};

struct hosts {
    const struct clave_mem *mem; /* borrowed */
    struct host *list;
    size_t count;
    size_t at;          /* index of the host to dial, or in use */
    bool tls;           /* for all of them */
    size_t fails;       /* attempts in a row that failed */
    char *text;         /* the names point into it */
    const char *chroot; /* "" or "/x" */
    size_t chroot_len;
};

/* Why a list is refused, or NULL; static text. */
const char *clave__hosts_fault(const char *text);
/* Why these n bytes are no name, IPv4 address or "[IPv6 address]", or NULL; static text. */
const char *clave__hosts_name_fault(const char *s, size_t n);

/* EHOST, ENOMEM. */
clave_err clave__hosts_init(struct hosts *h, const struct clave_mem *mem, const char *text);
void clave__hosts_fini(struct hosts *h);
/* Whether `other` may replace this list: chroot and TLS are the same. */
bool clave__hosts_fit(const struct hosts *h, const struct hosts *other);
/* Makes `current` the current host, if it is in the list; false: it is not. */
bool clave__hosts_resume(struct hosts *h, const struct host *current);
void clave__hosts_shuffle(struct hosts *h, struct rand_state *rand);

const struct host *clave__hosts_current(const struct hosts *h);
/* The current host gave an answer: it does not refuse for good. */
void clave__hosts_answered(struct hosts *h);
/* The attempts that failed in a row have come to an end. */
void clave__hosts_served(struct hosts *h);
/* The attempt on the current host was refused for good: a retry will be refused too. Call it before
 * _next. */
void clave__hosts_refused(struct hosts *h, unsigned addresses);
/* Every host has refused for good, and none of its other addresses did better since. */
bool clave__hosts_all_refuse(const struct hosts *h);
/* Moves on to the next host. true: the current one failed, and all the others failed before it, so
 * it is time to wait. */
bool clave__hosts_next(struct hosts *h, bool failed);

#endif
