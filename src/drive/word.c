#include "drive/word.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clave/uv.h"

static int wait_for(int fd, short events, int64_t until)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left = until - clave_now();
    int n;
    do
        n = poll(&p, 1, left > 0 ? (int)left : 0);
    while (n < 0 && errno == EINTR);
    return n;
}

/* A connected descriptor, or -1. */
static int dial(const struct sockaddr *addr, socklen_t len, int family, int64_t until)
{
    int fault = 0;
    socklen_t n = sizeof fault;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, addr, len) == 0)
        return fd;
    if (errno == EINPROGRESS && wait_for(fd, POLLOUT, until) == 1 &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &n) == 0 && fault == 0)
        return fd;
    close(fd);
    return -1;
}

static int dial_unix(const char *path, int64_t until)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof addr.sun_path)
        return -1;
    strcpy(addr.sun_path, path);
    return dial((const struct sockaddr *)&addr, sizeof addr, AF_UNIX, until);
}

static int dial_host(const char *host, uint16_t port, int64_t until)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *a;
    char service[8];
    int fd = -1;
    snprintf(service, sizeof service, "%u", (unsigned)port);
    if (getaddrinfo(host, service, &hints, &list) != 0)
        return -1;
    for (a = list; a && fd < 0; a = a->ai_next)
        fd = dial(a->ai_addr, a->ai_addrlen, a->ai_family, until);
    freeaddrinfo(list);
    return fd;
}

/* The server closes behind its answer. */
static clave_err read_all(int fd, char *buf, size_t cap, int64_t until)
{
    char rest[512];
    size_t n = 0;
    for (;;) {
        if (wait_for(fd, POLLIN, until) <= 0)
            return CLAVE_ETIMEDOUT;
        bool full = n + 1 >= cap;
        ssize_t got = full ? read(fd, rest, sizeof rest) : read(fd, buf + n, cap - 1 - n);
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return CLAVE_EIO;
        if (got == 0) {
            buf[n] = '\0';
            return CLAVE_OK;
        }
        if (got > 0 && !full)
            n += (size_t)got;
    }
}

clave_err clave__word_ask(const char *host, uint16_t port, const char *word, char *buf, size_t cap,
                          int timeout_ms)
{
    int64_t until = clave_now() + timeout_ms;
    int fd = port == 0 ? dial_unix(host, until) : dial_host(host, port, until);
    if (fd < 0)
        return CLAVE_EUNREACHABLE;
    clave_err err = CLAVE_EIO;
    if (send(fd, word, strlen(word), MSG_NOSIGNAL) == (ssize_t)strlen(word))
        err = read_all(fd, buf, cap, until);
    close(fd);
    return err;
}
