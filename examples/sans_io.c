/* sans_io.c - the client on an event loop that clave does not know: here poll(2). Any other loop
 * works the same way; docs/guide/event-loop.md describes it.
 *
 *   cc sans_io.c $(pkg-config --cflags --libs clave) && CLAVE_CONNECT=host:port ./a.out
 *
 * The engine does no I/O: it says what it wants, and obey() does that. */
#include <clave/async/client.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct driver {
    clave_async_client *client;
    int fd; /* -1: none */
    int dialling;
};

/* Milliseconds of a clock that runs while the machine sleeps: no other will do. */
static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- dialling ------------------------------------------------------------------------ */

static int begin_connect(int family, const struct sockaddr *addr, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, addr, len) != 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

/* getaddrinfo() blocks; a program that cannot afford that asks a thread or c-ares. */
static int dial(const clave_target *t)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    char service[8];
    if (t->tls) /* this example has no TLS: refuse, rather than send in the clear */
        return -1;
    if (t->port == 0) {
        if (strlen(t->host) >= sizeof un.sun_path)
            return -1;
        strcpy(un.sun_path, t->host);
        return begin_connect(AF_UNIX, (struct sockaddr *)&un, sizeof un);
    }
    snprintf(service, sizeof service, "%u", (unsigned)t->port);
    if (getaddrinfo(t->host, service, &hints, &list) != 0)
        return -1;
    unsigned n = 0;
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        n++;
    const struct addrinfo *a = list;
    for (unsigned i = t->attempt % n; i > 0; i--)
        a = a->ai_next; /* another address of the name at every attempt */
    int fd = begin_connect(a->ai_family, a->ai_addr, a->ai_addrlen);
    freeaddrinfo(list);
    return fd;
}

static void hang_up(struct driver *d)
{
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
    d->dialling = 0;
    clave_async_client_disconnected(d->client, now_ms());
}

/* ---- obeying ------------------------------------------------------------------------------ */

/* Returns false if the socket takes no more for now. */
static int write_some(struct driver *d)
{
    const void *p;
    size_t n = clave_async_client_output(d->client, &p);
    ssize_t sent = send(d->fd, p, n, MSG_NOSIGNAL);
    if (sent >= 0)
        clave_async_client_sent(d->client, now_ms(), (size_t)sent);
    else if (errno == EAGAIN)
        return 0;
    else
        hang_up(d);
    return 1;
}

/* After every call into the engine: does what can be done now. Returns poll's events. */
static short obey(struct driver *d)
{
    for (;;) {
        unsigned wants = clave_async_client_wants(d->client);
        if (wants & CLAVE_WANT_HANGUP) {
            hang_up(d);
        } else if (d->fd < 0 && (wants & CLAVE_WANT_DIAL)) {
            clave_target t = clave_async_client_target(d->client);
            d->fd = dial(&t);
            d->dialling = d->fd >= 0;
            if (d->fd < 0)
                clave_async_client_disconnected(d->client, now_ms());
        } else if (d->fd < 0) {
            return 0;
        } else if (d->dialling) {
            return POLLOUT;
        } else if (!(wants & CLAVE_WANT_WRITE)) {
            return wants & CLAVE_WANT_READ ? POLLIN : 0;
        } else if (!write_some(d)) {
            return POLLOUT | (wants & CLAVE_WANT_READ ? POLLIN : 0);
        }
    }
}

static void on_ready(struct driver *d, short events)
{
    char buf[8192];
    int fault = 0;
    socklen_t len = sizeof fault;
    if (d->dialling) {
        d->dialling = 0;
        if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &fault, &len) != 0 || fault != 0)
            hang_up(d);
        else
            clave_async_client_connected(d->client, now_ms());
    } else if (events & (POLLIN | POLLHUP | POLLERR)) {
        ssize_t n = recv(d->fd, buf, sizeof buf, 0);
        if (n > 0)
            clave_async_client_input(d->client, now_ms(), buf, (size_t)n);
        else if (n == 0 || errno != EAGAIN)
            hang_up(d);
    }
}

static void run(struct driver *d)
{
    clave_async_client_start(d->client, now_ms());
    while (clave_async_client_state(d->client) != CLAVE_STATE_CLOSED) {
        struct pollfd p = {.events = obey(d)};
        int64_t at = clave_async_client_deadline(d->client), left = at - now_ms();
        int timeout = at == CLAVE_NEVER ? -1 : left < 0 ? 0 : left < 60000 ? (int)left : 60000;
        p.fd = d->fd;
        if (poll(&p, 1, timeout) > 0)
            on_ready(d, p.revents);
        clave_async_client_tick(d->client, now_ms());
    }
    if (d->fd >= 0)
        close(d->fd);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void on_names(clave_async_client *c, const clave_result *res, void *arg)
{
    printf("/: %s\n", clave_strerror(res->err));
    for (size_t i = 0; i < res->nnames; i++)
        printf("  %s\n", res->names[i]);
    *(clave_err *)arg = res->err;
    clave_async_client_close(c, now_ms());
}

int main(void)
{
    struct driver d = {.fd = -1};
    clave_err err = CLAVE_ECLOSED;
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.hosts = getenv("CLAVE_CONNECT");
    if (!o.hosts || getrandom(&o.seed, sizeof o.seed, 0) < 0) {
        fputs("CLAVE_CONNECT names the servers, such as 127.0.0.1:2181\n", stderr);
        return EXIT_FAILURE;
    }
    if (clave_async_client_new(&d.client, &o) != CLAVE_OK)
        return EXIT_FAILURE;
    if (clave_async_children(d.client, "/", NULL, on_names, &err) == CLAVE_OK)
        run(&d);
    clave_async_client_free(d.client);
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
