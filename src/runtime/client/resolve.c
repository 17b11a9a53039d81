/* resolve.c - getaddrinfo and the local server's connect on libuv's worker threads (resolve.h);
 * uv_client.c calls it. The callback never runs after an abandon. */
#include "runtime/client/resolve.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/client/local_start.h"

struct resolve {
    union {
        uv_getaddrinfo_t names;
        uv_work_t work;
    } req;
    resolve_cb *cb; /* NULL: abandoned */
    void *arg;
    unsigned attempt, addresses;
    int fd;
    bool for_good;
    char fault[400];
    char host[]; /* for the fault */
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

static struct resolve *resolve_new(const char *host, resolve_cb *cb, void *arg)
{
    /* Not from the client's allocator, since an abandoned lookup outlives the client. */
    struct resolve *l = calloc(1, sizeof *l + strlen(host) + 1);
    if (!l)
        return NULL;
    strcpy(l->host, host);
    l->fd = -1;
    l->addresses = 1;
    l->cb = cb;
    l->arg = arg;
    return l;
}

static void resolve_finish(struct resolve *l, const struct sockaddr *addr)
{
    struct resolve_result res = {.fault = l->fault,
                                 .for_good = l->for_good,
                                 .fd = l->fd,
                                 .addr = addr,
                                 .addresses = l->addresses};
    if (l->cb)
        l->cb(l->arg, &res);
    else if (l->fd >= 0)
        close(l->fd);
    free(l);
}

/* ---- names ---------------------------------------------------------------------------------- */

static void resolve_on_names(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    struct resolve *l = req->data;
    const struct addrinfo *a = list;
    unsigned n = 0;
    if (status < 0) {
        snprintf(l->fault, sizeof l->fault, "cannot resolve the host name '%.255s': %s", l->host,
                 uv_strerror(status));
        resolve_finish(l, NULL);
        return;
    }
    for (; a; a = a->ai_next)
        n++;
    l->addresses = n;
    a = list;
    for (unsigned skip = l->attempt % n; skip > 0; skip--)
        a = a->ai_next;
    resolve_finish(l, a->ai_addr);
    uv_freeaddrinfo(list);
}

struct resolve *clave__resolve_name(uv_loop_t *loop, const clave_target *t, resolve_cb *cb,
                                    void *arg)
{
    /* No AI_ADDRCONFIG: it ignores loopback addresses, and would hide localhost on a machine
     * without a network. */
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char service[8];
    struct resolve *l = resolve_new(t->host, cb, arg);
    if (!l)
        return NULL;
    l->attempt = t->attempt;
    l->req.names.data = l;
    snprintf(service, sizeof service, "%u", (unsigned)t->port);
    if (uv_getaddrinfo(loop, &l->req.names, resolve_on_names, t->host, service, &hints) == 0)
        return l;
    free(l);
    return NULL;
}

/* ---- the local server ----------------------------------------------------------------------- */

static void dial_local(uv_work_t *w)
{
    struct resolve *l = w->data;
    l->fd = clave__local_dial(&l->for_good, l->fault, sizeof l->fault);
}

static void on_local(uv_work_t *w, int status)
{
    struct resolve *l = w->data;
    (void)status; /* cancelled: abandoned before it began; resolve_finish() frees it */
    resolve_finish(l, NULL);
}

struct resolve *clave__resolve_local(uv_loop_t *loop, resolve_cb *cb, void *arg)
{
    struct resolve *l = resolve_new("local:", cb, arg);
    if (!l)
        return NULL;
    l->req.work.data = l;
    if (uv_queue_work(loop, &l->req.work, dial_local, on_local) == 0)
        return l;
    free(l);
    return NULL;
}

void clave__resolve_abandon(struct resolve *l)
{
    l->cb = NULL;
    uv_cancel((uv_req_t *)&l->req); /* if it still waits for a thread */
}
