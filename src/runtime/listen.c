/* listen.c - parses and binds the addresses of a server (listen.h). A Unix socket is never open to
 * more users than its address says, not even for a moment. */
#include "runtime/listen.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/tcp_address.h"
#include "wire/proto.h"

/* The kernel takes at most net.core.somaxconn. */
enum { BACKLOG = 65535 };
enum { REST_MS = 100 };

struct request {
    uv_loop_t *loop;
    const char *spec;
    bool tls;
    listener_cb *ready;
    void *data;
    struct list *out;
    const struct fault *f;
};

/* ---- accepting ------------------------------------------------------------------------------ */

static void listener_rest(struct listener *l);

static void listener_on_readable(uv_poll_t *poll, int status, int events)
{
    struct listener *l = poll->data;
    (void)events;
    if (status < 0)
        listener_rest(l); /* libuv has stopped polling it */
    else
        l->ready(l);
}

void clave__listener_watch(struct listener *l, bool wanted)
{
    if (uv_is_closing((uv_handle_t *)&l->poll) || uv_is_active((uv_handle_t *)&l->rest))
        return;
    if (wanted)
        uv_poll_start(&l->poll, UV_READABLE, listener_on_readable);
    else
        uv_poll_stop(&l->poll);
}

static void listener_on_rested(uv_timer_t *rest)
{
    clave__listener_watch(rest->data, true);
}

/* Polls again a little later. */
static void listener_rest(struct listener *l)
{
    clave__listener_watch(l, false);
    uv_timer_start(&l->rest, listener_on_rested, REST_MS, 0);
}

int clave__listener_accept(struct listener *l)
{
    if (uv_is_closing((uv_handle_t *)&l->poll))
        return -EAGAIN;
    int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        return fd;
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
        return -EAGAIN; /* still readable if another connection is waiting */
    int err = errno;
    listener_rest(l);
    return -err;
}

/* ---- the peer -------------------------------------------------------------------------------- */

/* Sets the user at the other end. Users that do not exist in the server's namespace all appear as
 * "nobody", which is not an identity. */
static void listen_name_user(int fd, struct peer_addr *out)
{
    enum { NOBODY = 65534 };
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
        return;
    out->has_uid = peer.uid != NOBODY && peer.uid != (uid_t)-1;
    out->uid = peer.uid;
}

void clave__listen_name_peer(int fd, bool is_unix, struct peer_addr *out)
{
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;
    char ip[INET6_ADDRSTRLEN];
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    memset(out, 0, sizeof *out);
    strcpy(out->text, "local");
    if (is_unix)
        listen_name_user(fd, out);
    if (is_unix || getpeername(fd, (struct sockaddr *)&ss, &len) != 0)
        return;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&ss;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&ss;
    out->port = ntohs(v4->sin_port); /* sin6_port has the same offset */
    if (ss.ss_family == AF_INET) {
        out->family = 4;
        memcpy(out->ip, &v4->sin_addr, 4);
    } else if (memcmp(&v6->sin6_addr, mapped, sizeof mapped) == 0) {
        out->family = 4;
        memcpy(out->ip, (const uint8_t *)&v6->sin6_addr + 12, 4);
    } else {
        out->family = 6;
        memcpy(out->ip, &v6->sin6_addr, 16);
    }
    uv_inet_ntop(out->family == 4 ? AF_INET : AF_INET6, out->ip, ip, sizeof ip);
    snprintf(out->text, sizeof out->text, out->family == 4 ? "%s:%u" : "[%s]:%u", ip,
             (unsigned)out->port);
}

/* ---- listening ------------------------------------------------------------------------------- */

static void listener_on_closed(uv_handle_t *h)
{
    struct listener *l = h->data;
    assert(l->handles > 0);
    if (--l->handles == 0)
        free(l);
}

void clave__listener_close(struct listener *l)
{
    assert(!uv_is_closing((uv_handle_t *)&l->poll));
    list_remove(&l->link);
    if (l->path[0])
        unlink(l->path);
    uv_close((uv_handle_t *)&l->poll, listener_on_closed);
    uv_close((uv_handle_t *)&l->rest, listener_on_closed);
    close(l->fd);
}

static clave_err listen_refused(const struct request *r, const char *text, int uv_error)
{
    if (uv_error == UV_EADDRINUSE)
        return clave__start_error(r->f, CLAVE_EINUSE,
                                  "the address %s is in use by another process, or named twice",
                                  text);
    return clave__start_error(r->f, clave__err_of_errno(-uv_error), "cannot listen on %s: %s%s",
                              text, uv_strerror(uv_error),
                              uv_error == UV_EACCES ? " (a port below 1024 needs a privilege)"
                                                    : "");
}

/* Listens on a bound socket; if that fails, frees the socket and the listener. */
static clave_err listen_begin(const struct request *r, struct listener *l, int fd)
{
    l->fd = fd;
    l->ready = r->ready;
    l->data = r->data;
    int err = listen(fd, BACKLOG) == 0 ? uv_poll_init(r->loop, &l->poll, fd) : -errno;
    if (err != 0) {
        close(fd);
        if (l->path[0])
            unlink(l->path);
        clave_err fault = listen_refused(r, l->text, err);
        free(l);
        return fault;
    }
    uv_timer_init(r->loop, &l->rest);
    l->handles = 2;
    l->poll.data = l->rest.data = l;
    list_push_back(r->out, &l->link);
    clave__listener_watch(l, true);
    return CLAVE_OK;
}

/* ---- TCP ------------------------------------------------------------------------------------ */

static void listen_describe(struct listener *l, int fd, const struct addrinfo *wanted)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    char host[INET6_ADDRSTRLEN] = "?", port[NI_MAXSERV] = "0";
    const struct sockaddr *a = (const struct sockaddr *)&bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &len) != 0 ||
        ((const struct sockaddr_in *)&bound)->sin_port == 0) { /* sin6_port has the same offset */
        a = wanted->ai_addr;                                   /* it is not bound yet */
        len = wanted->ai_addrlen;
    }
    getnameinfo(a, len, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(l->text, sizeof l->text, a->sa_family == AF_INET6 ? "%s[%s]:%s" : "%s%s:%s",
             l->tls ? "tls:" : "", host, port);
}

/* Binds; an IPv6 socket for every address takes IPv4 as well. */
static int listen_bind_tcp(int fd, const struct addrinfo *a)
{
    const int yes = 1, no = 0;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        (a->ai_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) != 0) ||
        bind(fd, a->ai_addr, a->ai_addrlen) != 0)
        return -errno;
    return 0;
}

static clave_err listen_address(const struct request *r, const struct addrinfo *a)
{
    struct listener *l = calloc(1, sizeof *l);
    if (!l)
        return CLAVE_ENOMEM;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int err = listen_bind_tcp(fd, a);
    l->tls = r->tls;
    listen_describe(l, fd, a);
    if (err == 0)
        return listen_begin(r, l, fd);
    clave_err fault = listen_refused(r, l->text, err);
    if (fd >= 0)
        close(fd);
    free(l);
    return fault;
}

static bool listen_has_ipv6(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Resolves the address; *any: it means every address of the machine. */
static clave_err listen_resolve(const struct request *r, bool *any, struct addrinfo **out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct tcp_address a;
    clave_err err =
        clave__tcp_address_parse(r->spec, r->tls ? WIRE_SECURE_PORT : WIRE_DEFAULT_PORT, &a, r->f);
    if (err != CLAVE_OK)
        return err;
    *any = a.host[0] == '\0' || strcmp(a.host, "*") == 0;
    int fault = getaddrinfo(*any ? NULL : a.host, a.port, &hints, out);
    if (fault != 0)
        return clave__start_error(r->f, CLAVE_EINVAL, "cannot resolve the address %s: %s", r->spec,
                                  gai_strerror(fault));
    return CLAVE_OK;
}

static clave_err listen_tcp(const struct request *r)
{
    struct addrinfo *list;
    bool any;
    clave_err err = listen_resolve(r, &any, &list);
    if (err != CLAVE_OK)
        return err;
    if (any) { /* a single socket for both families */
        int family = listen_has_ipv6() ? AF_INET6 : AF_INET;
        const struct addrinfo *a = list;
        while (a->ai_family != family && a->ai_next)
            a = a->ai_next;
        err = listen_address(r, a);
    }
    for (const struct addrinfo *a = list; a && !any && err == CLAVE_OK; a = a->ai_next)
        err = listen_address(r, a);
    freeaddrinfo(list);
    return err;
}

/* ---- Unix ----------------------------------------------------------------------------------- */

/* "/path?mode=0660&group=clave". */
struct unix_address {
    struct sockaddr_un socket;
    mode_t mode;
    gid_t group; /* GROUP_OWN: whichever the system assigns */
};

#define GROUP_OWN ((gid_t)-1)

static bool listen_parse_mode(const char *value, mode_t *out)
{
    char *end;
    unsigned long mode = strtoul(value, &end, 8);
    *out = (mode_t)mode;
    return strspn(value, "01234567") == strlen(value) && *value && mode <= 0777;
}

/* Looks a group up by its name or number. */
static bool listen_find_group(const char *value, gid_t *out)
{
    enum { ENTRY_CAP = 256 * 1024 }; /* including the names of all members */
    struct group entry, *found = NULL;
    size_t digits = strspn(value, "0123456789");
    char *room = malloc(ENTRY_CAP);
    if (room && getgrnam_r(value, &entry, room, ENTRY_CAP, &found) == 0 && found)
        *out = entry.gr_gid;
    free(room);
    if (!found && digits > 0 && digits < 10 && value[digits] == '\0') {
        *out = (gid_t)strtoul(value, NULL, 10);
        return true;
    }
    return found != NULL;
}

static clave_err listen_take_unix_option(struct unix_address *a, const char *spec,
                                         const char *option, const struct fault *f)
{
    static const char mode[] = "mode=", group[] = "group=";
    bool is_mode = strncmp(option, mode, sizeof mode - 1) == 0;
    bool is_group = strncmp(option, group, sizeof group - 1) == 0;
    if (is_mode && !listen_parse_mode(option + sizeof mode - 1, &a->mode))
        return clave__start_error(
            f, CLAVE_EINVAL, "%s: '%s': a mode is octal, from 0 to 0777: mode=0660", spec, option);
    if (is_group && !listen_find_group(option + sizeof group - 1, &a->group))
        return clave__start_error(f, CLAVE_EINVAL, "%s: there is no group '%s'", spec,
                                  option + sizeof group - 1);
    if (!is_mode && !is_group)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "%s: '%s': only mode=MODE and group=GROUP may follow the '?', "
                                  "with '&' between them",
                                  spec, option);
    return CLAVE_OK;
}

/* Parses `spec`, which includes the "unix:". If only a group is given, the group may connect. */
static clave_err listen_parse_unix(const char *spec, struct unix_address *out,
                                   const struct fault *f)
{
    enum { MOST = 300 };
    char text[MOST], *options, *rest = NULL;
    clave_err err = CLAVE_OK;
    *out =
        (struct unix_address){.socket.sun_family = AF_UNIX, .mode = (mode_t)-1, .group = GROUP_OWN};
    snprintf(text, sizeof text, "%s", spec + strlen("unix:"));
    options = strchr(text, '?');
    if (options)
        *options++ = '\0';
    if (text[0] != '/' || strlen(text) >= sizeof out->socket.sun_path || strlen(spec) >= MOST)
        return clave__start_error(f, CLAVE_EINVAL, "%s: an absolute path of at most %zu bytes",
                                  spec, sizeof out->socket.sun_path - 1);
    strcpy(out->socket.sun_path, text);
    if (options && !*options)
        err = listen_take_unix_option(out, spec, "", f);
    for (char *o = options ? strtok_r(options, "&", &rest) : NULL; o && err == CLAVE_OK;
         o = strtok_r(NULL, "&", &rest))
        err = listen_take_unix_option(out, spec, o, f);
    if (out->mode == (mode_t)-1)
        out->mode = out->group == GROUP_OWN ? 0600 : 0660;
    return err;
}

/* True if the file was left behind by a server that was killed: nothing answers on it. */
static bool listen_is_stale(const struct sockaddr_un *addr)
{
    struct stat st;
    if (lstat(addr->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool stale = fd >= 0 && connect(fd, (const struct sockaddr *)addr, sizeof *addr) != 0 &&
                 errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return stale;
}

static bool listen_is_no_socket(const struct sockaddr_un *addr)
{
    struct stat st;
    return lstat(addr->sun_path, &st) == 0 && !S_ISSOCK(st.st_mode);
}

/* Creates the socket with mode 0600, which bind() takes from the socket's inode. It gets its group
 * before it is opened to the group. */
static int listen_bind_unix(const struct unix_address *a)
{
    const struct sockaddr_un *addr = &a->socket;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (listen_is_stale(addr))
        unlink(addr->sun_path);
    bool bound =
        fchmod(fd, 0600) == 0 && bind(fd, (const struct sockaddr *)addr, sizeof *addr) == 0;
    if (bound && (a->group == GROUP_OWN || lchown(addr->sun_path, (uid_t)-1, a->group) == 0) &&
        (a->mode == 0600 || chmod(addr->sun_path, a->mode) == 0))
        return fd;
    int err = errno;
    close(fd);
    if (bound)
        unlink(addr->sun_path);
    return -err;
}

/* Makes the socket's directory. Other users can enter it only if the socket is for them too. */
static clave_err listen_make_dir_of(const struct unix_address *a, const struct fault *f)
{
    char dir[sizeof a->socket.sun_path];
    strcpy(dir, a->socket.sun_path);
    *strrchr(dir, '/') = '\0';
    if (dir[0] && mkdir(dir, a->mode & 077 ? 0755 : 0700) != 0 && errno != EEXIST)
        return clave__start_error_errno(f, errno, "cannot create", dir);
    return CLAVE_OK;
}

static clave_err listen_bind_refused(const struct request *r, const struct unix_address *a,
                                     int error)
{
    if (listen_is_no_socket(&a->socket))
        return clave__start_error(r->f, CLAVE_EIO, "%s exists and is not a socket",
                                  a->socket.sun_path);
    if (error == UV_EPERM && a->group != GROUP_OWN)
        return clave__start_error(r->f, CLAVE_EIO,
                                  "%s: this user cannot give the socket to the group: only a "
                                  "member of the group can, or root",
                                  r->spec);
    return listen_refused(r, r->spec, error); /* libuv's codes are negated errnos */
}

static clave_err listen_unix(const struct request *r)
{
    struct unix_address a;
    clave_err err = listen_parse_unix(r->spec, &a, r->f);
    if (err == CLAVE_OK)
        err = listen_make_dir_of(&a, r->f);
    if (err != CLAVE_OK)
        return err;
    struct listener *l = calloc(1, sizeof *l);
    if (!l)
        return CLAVE_ENOMEM;
    snprintf(l->text, sizeof l->text, "unix:%s", a.socket.sun_path);
    int fd = listen_bind_unix(&a);
    if (fd < 0) {
        free(l);
        return listen_bind_refused(r, &a, fd);
    }
    strcpy(l->path, a.socket.sun_path);
    l->is_unix = true;
    return listen_begin(r, l, fd);
}

clave_err clave__listen_check(const char *spec, const struct fault *f)
{
    bool tls = strncmp(spec, "tls:", 4) == 0;
    struct request r = {.spec = tls ? spec + 4 : spec, .tls = tls, .f = f};
    struct unix_address a;
    struct addrinfo *list;
    bool any;
    if (!tls && strncmp(spec, "unix:", 5) == 0)
        return listen_parse_unix(spec, &a, f);
    clave_err err = listen_resolve(&r, &any, &list);
    if (err == CLAVE_OK)
        freeaddrinfo(list);
    return err;
}

clave_err clave__listen(uv_loop_t *loop, const char *spec, listener_cb *ready, void *data,
                        struct list *out, const struct fault *f)
{
    bool tls = strncmp(spec, "tls:", 4) == 0;
    struct request r = {loop, tls ? spec + 4 : spec, tls, ready, data, out, f};
    if (tls)
        return listen_tcp(&r);
    return strncmp(spec, "unix:", 5) == 0 ? listen_unix(&r) : listen_tcp(&r);
}
