/* resolve.c - getaddrinfo, and connecting to the local server, as jobs of worker.h (resolve.h). The
 * callback never runs after an abandon. */
#include "runtime/client/resolve.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/client/local_start.h"
#include "runtime/thread_start.h"
#include "runtime/worker.h"

/* RESOLVER_FILES: how many files the C library's resolver may have open at a time. RESOLVER_BYTES:
 * the memory without which it is not called, because it loads libraries, and aborts the program in
 * places where it does not expect to run out of memory. */
enum { RESOLVER_FILES = 3, RESOLVER_BYTES = 4 * 1024 * 1024 };

struct resolve {
    struct job job;
    resolve_cb *cb;
    void *arg;
    unsigned attempt;
    uint16_t port;
    struct addrinfo *names;
    int fd; /* -1, or not handed over yet */
    bool for_good;
    char fault[400];
    char host[]; /* "local:" for the local server */
};

bool clave__resolve_literal(const clave_target *t, struct sockaddr_storage *out)
{
    struct sockaddr_un *path = (struct sockaddr_un *)out;
    if (t->port != 0)
        return uv_ip4_addr(t->host, t->port, (struct sockaddr_in *)out) == 0 ||
               uv_ip6_addr(t->host, t->port, (struct sockaddr_in6 *)out) == 0;
    if (strcmp(t->host, "local:") == 0 || strlen(t->host) >= sizeof path->sun_path)
        return false;
    path->sun_family = AF_UNIX;
    strcpy(path->sun_path, t->host);
    return true;
}

/* ---- on a thread ---------------------------------------------------------------------------- */

/* Returns NULL, or the reason why there is no address. */
static const char *resolve_ask(struct resolve *l)
{
    /* Without AI_ADDRCONFIG, which ignores loopback addresses and would hide localhost on a machine
     * without a network. */
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char service[8];
    int number = clave__memory_check(RESOLVER_BYTES);
    if (number != 0)
        return strerror(number);
    snprintf(service, sizeof service, "%u", (unsigned)l->port);
    int fault = getaddrinfo(l->host, service, &hints, &l->names);
    if (fault == 0)
        return NULL;
    l->names = NULL;
    /* if a file cannot be opened, the C library says that the name is unknown */
    number = fault == EAI_SYSTEM ? errno : clave__files_check(RESOLVER_FILES);
    return number != 0 ? strerror(number) : gai_strerror(fault);
}

static void resolve_run_name(struct job *j)
{
    struct resolve *l = LIST_ENTRY(j, struct resolve, job);
    const char *why = resolve_ask(l);
    if (why)
        snprintf(l->fault, sizeof l->fault, "cannot resolve the host name '%.255s': %s", l->host,
                 why);
}

static void resolve_run_local(struct job *j)
{
    struct resolve *l = LIST_ENTRY(j, struct resolve, job);
    l->fd = clave__local_dial(&l->for_good, l->fault, sizeof l->fault);
}

/* ---- on the loop ---------------------------------------------------------------------------- */

static void resolve_free(struct job *j)
{
    struct resolve *l = LIST_ENTRY(j, struct resolve, job);
    if (l->fd >= 0)
        close(l->fd);
    if (l->names)
        freeaddrinfo(l->names);
    free(l);
}

/* Chooses the next address for each attempt. */
static const struct sockaddr *resolve_choose(const struct resolve *l, unsigned *addresses)
{
    unsigned n = 0;
    for (const struct addrinfo *a = l->names; a; a = a->ai_next)
        n++;
    const struct addrinfo *chosen = l->names;
    for (unsigned skip = n > 0 ? l->attempt % n : 0; skip > 0; skip--)
        chosen = chosen->ai_next;
    *addresses = n > 0 ? n : 1;
    return chosen ? chosen->ai_addr : NULL;
}

static void resolve_finished(struct job *j)
{
    struct resolve *l = LIST_ENTRY(j, struct resolve, job);
    struct resolve_result res = {.fault = l->fault, .for_good = l->for_good, .fd = l->fd};
    res.addr = resolve_choose(l, &res.addresses);
    assert(res.fault[0] || res.fd >= 0 || res.addr);
    l->fd = -1;
    l->cb(l->arg, &res);
}

int clave__resolve_start(struct resolve **out, uv_loop_t *loop, const clave_target *t,
                         resolve_cb *cb, void *arg)
{
    /* not from the client's allocator, since an abandoned lookup outlives the client */
    struct resolve *l = calloc(1, sizeof *l + strlen(t->host) + 1);
    *out = NULL;
    if (!l)
        return ENOMEM;
    strcpy(l->host, t->host);
    l->job.run = t->port != 0 ? resolve_run_name : resolve_run_local;
    l->job.finished = resolve_finished;
    l->job.free = resolve_free;
    l->fd = -1;
    l->attempt = t->attempt;
    l->port = t->port;
    l->cb = cb;
    l->arg = arg;
    int err = clave__job_start(&l->job, loop);
    if (err == 0)
        *out = l;
    else
        free(l);
    return err;
}

void clave__resolve_abandon(struct resolve *l)
{
    clave__job_abandon(&l->job);
}
