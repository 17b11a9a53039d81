/* four_letter_client.c - a blocking exchange with a server (four_letter_client.h), for `clave
 * ping`. All waits together are bounded by one deadline. */
#include "runtime/client/four_letter_client.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "clave/uv.h"
#include "runtime/tls/tls_filter.h"

static int four_letter_client_wait_for(int fd, short events, int64_t until)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left = until - clave_now();
    int n;
    do
        n = poll(&p, 1, left > 0 ? (int)left : 0);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Returns a connected descriptor, or -1. */
static int four_letter_client_dial(const struct sockaddr *addr, socklen_t len, int family,
                                   int64_t until)
{
    int fault = 0;
    socklen_t n = sizeof fault;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, addr, len) == 0)
        return fd;
    if (errno == EINPROGRESS && four_letter_client_wait_for(fd, POLLOUT, until) == 1 &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &n) == 0 && fault == 0)
        return fd;
    close(fd);
    return -1;
}

static int four_letter_client_dial_unix(const char *path, int64_t until)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof addr.sun_path)
        return -1;
    strcpy(addr.sun_path, path);
    return four_letter_client_dial((const struct sockaddr *)&addr, sizeof addr, AF_UNIX, until);
}

static int four_letter_client_dial_host(const char *host, uint16_t port, int64_t until)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *a;
    char service[8];
    int fd = -1;
    snprintf(service, sizeof service, "%u", (unsigned)port);
    if (getaddrinfo(host, service, &hints, &list) != 0)
        return -1;
    for (a = list; a && fd < 0; a = a->ai_next)
        fd = four_letter_client_dial(a->ai_addr, a->ai_addrlen, a->ai_family, until);
    freeaddrinfo(list);
    return fd;
}

/* ---- the answer ----------------------------------------------------------------------------- */

struct answer {
    char *buf;
    size_t cap, n;
};

static void four_letter_client_take(struct answer *a, const char *p, size_t n)
{
    assert(a->n < a->cap);
    size_t room = a->cap - 1 - a->n;
    n = n < room ? n : room;
    memcpy(a->buf + a->n, p, n);
    a->n += n;
    a->buf[a->n] = '\0';
}

/* Returns the number of bytes; 0 at the end; a clave_err if negative. */
static ssize_t four_letter_client_receive(int fd, char *buf, size_t cap, int64_t until)
{
    for (;;) {
        if (four_letter_client_wait_for(fd, POLLIN, until) <= 0)
            return CLAVE_ETIMEDOUT;
        ssize_t got = read(fd, buf, cap);
        if (got >= 0 || (errno != EINTR && errno != EAGAIN))
            return got >= 0 ? got : CLAVE_EIO;
    }
}

static clave_err four_letter_client_send_all(int fd, const char *p, size_t n, int64_t until)
{
    while (n > 0) {
        ssize_t done = send(fd, p, n, MSG_NOSIGNAL);
        if (done < 0 && errno != EINTR && errno != EAGAIN)
            return CLAVE_EIO;
        if (done < 0 && four_letter_client_wait_for(fd, POLLOUT, until) <= 0)
            return CLAVE_ETIMEDOUT;
        p += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return CLAVE_OK;
}

/* The server closes the connection after its answer. */
static clave_err four_letter_client_talk(int fd, const char *word, struct answer *a, int64_t until)
{
    char bytes[2048];
    ssize_t got;
    clave_err err = four_letter_client_send_all(fd, word, strlen(word), until);
    if (err != CLAVE_OK)
        return err;
    while ((got = four_letter_client_receive(fd, bytes, sizeof bytes, until)) > 0)
        four_letter_client_take(a, bytes, (size_t)got);
    return (clave_err)got;
}

/* ---- through TLS ---------------------------------------------------------------------------- */

static clave_err four_letter_client_flush(int fd, struct tls *t, int64_t until)
{
    const void *p;
    size_t n = clave__tls_output(t, &p);
    clave_err err = four_letter_client_send_all(fd, p, n, until);
    clave__tls_sent(t, n);
    return err;
}

static clave_err four_letter_client_talk_tls(int fd, struct tls *t, const char *word,
                                             struct answer *a, int64_t until)
{
    char sealed[4096], bytes[2048];
    clave_err err = four_letter_client_flush(fd, t, until);
    while (err == CLAVE_OK && clave__tls_state(t) <= TLS_OPEN) {
        size_t n;
        ssize_t got = four_letter_client_receive(fd, sealed, sizeof sealed, until);
        if (got <= 0)
            return (clave_err)got;
        clave__tls_feed(t, sealed, (size_t)got);
        if (clave__tls_shake(t)) {
            err = four_letter_client_flush(
                fd, t,
                until); /* sends our part of the handshake; no data is accepted before that */
            clave__tls_write(t, word, strlen(word));
        }
        while ((n = clave__tls_read(t, bytes, sizeof bytes)) > 0)
            four_letter_client_take(a, bytes, n);
        if (err == CLAVE_OK)
            err = four_letter_client_flush(fd, t, until);
    }
    return err == CLAVE_OK && clave__tls_state(t) == TLS_FAILED ? CLAVE_ETLS : err;
}

static clave_err four_letter_client_ask_tls(int fd, const struct four_letter_server *s,
                                            const char *word, struct answer *a, int64_t until)
{
    const struct clave_mem mem = clave__mem_or_default(NULL);
    struct tls *t = clave__tls_new(s->tls, &mem, s->host);
    clave_err err = t ? four_letter_client_talk_tls(fd, t, word, a, until) : CLAVE_ENOMEM;
    clave__tls_free(t);
    return err;
}

clave_err clave__four_letter_ask(const struct four_letter_server *s, const char *word, char *buf,
                                 size_t cap, int timeout_ms)
{
    int64_t until = clave_now() + timeout_ms;
    struct answer a = {.buf = buf, .cap = cap};
    buf[0] = '\0';
    int fd = s->port == 0 ? four_letter_client_dial_unix(s->host, until)
                          : four_letter_client_dial_host(s->host, s->port, until);
    if (fd < 0)
        return CLAVE_EUNREACHABLE;
    clave_err err = s->tls ? four_letter_client_ask_tls(fd, s, word, &a, until)
                           : four_letter_client_talk(fd, word, &a, until);
    close(fd);
    return err;
}
