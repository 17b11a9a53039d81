/* hosts.c - parses a connection string ("a:2181,b/chroot", "tls:...", "unix:...", "local:...") and
 * keeps the order of its hosts; see hosts.h. clave__hosts_init accepts exactly the texts for which
 * clave__hosts_fault returns NULL. */
#include "client/hosts.h"

#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "wire/proto.h"

enum { MAX_HOSTS = 256, MAX_PORT_DIGITS = 5 };

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* One "name", "name:port", "address:port" or "[v6]:port", taken apart; port 0: none was given. */
struct entry {
    const char *name;
    size_t name_len;
    uint16_t port;
};

static const char *parse_port(const char *s, size_t n, uint16_t *out)
{
    unsigned long port = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return "a port must be a number";
        port = port * 10 + (unsigned long)(s[i] - '0');
    }
    if (n == 0 || n > MAX_PORT_DIGITS || port == 0 || port > UINT16_MAX)
        return "a port must be from 1 to 65535";
    *out = (uint16_t)port;
    return NULL;
}

/* The text after a name: nothing, or a port. */
static const char *parse_tail(const char *s, size_t n, uint16_t *port)
{
    *port = 0;
    if (n == 0)
        return NULL;
    return s[0] == ':' ? parse_port(s + 1, n - 1, port)
                       : "only a port may follow the closing bracket of an IPv6 address";
}

static const char *hosts_parse_entry(const char *s, size_t n, struct entry *e)
{
    const char *end = s + n;
    if (n > 0 && s[0] == '[') {
        const char *close = memchr(s, ']', n);
        if (!close || close == s + 1)
            return "an IPv6 address needs its closing bracket";
        e->name = s + 1;
        e->name_len = (size_t)(close - e->name);
        return parse_tail(close + 1, (size_t)(end - close - 1), &e->port);
    }
    const char *colon = n ? memchr(s, ':', n) : NULL;
    e->name = s;
    e->name_len = colon ? (size_t)(colon - s) : n;
    if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
        return "an IPv6 address must be in brackets: [::1]:2181";
    if (e->name_len == 0)
        return "a host has no name";
    for (size_t i = 0; i < e->name_len; i++)
        if ((unsigned char)s[i] <= ' ' || s[i] == ']')
            return "a host's name has a character that is not allowed in one";
    return parse_tail(s + e->name_len, n - e->name_len, &e->port);
}

/* Skips "tls:", if the text begins with it. */
static const char *skip_tls(const char *text)
{
    return starts_with(text, "tls:") ? text + strlen("tls:") : text;
}

/* Where the chroot begins: the first '/', or the end. */
static const char *servers_end(const char *text)
{
    const char *slash = strchr(text, '/');
    return slash ? slash : text + strlen(text);
}

/* The length of the first entry of "a,b,c". */
static size_t entry_len(const char *s, const char *end)
{
    const char *comma = memchr(s, ',', (size_t)(end - s));
    return (size_t)((comma ? comma : end) - s);
}

static const char *chroot_fault(const char *chroot)
{
    if (chroot[0] == '\0' || strcmp(chroot, "/") == 0)
        return NULL;
    return clave__path_fault(chroot, strlen(chroot), false) ? "the chroot is not a valid path"
                                                            : NULL;
}

static const char *servers_fault(const char *s, const char *end)
{
    struct entry e;
    size_t count = 0;
    for (;; s++) {
        size_t n = entry_len(s, end);
        const char *fault = hosts_parse_entry(s, n, &e);
        if (fault)
            return fault;
        if (++count > MAX_HOSTS)
            return "too many hosts (at most 256)";
        s += n;
        if (s == end)
            return NULL;
    }
}

const char *clave__hosts_fault(const char *text)
{
    if (!text || text[0] == '\0')
        return "it is empty";
    if (starts_with(text, "unix:"))
        return text[5] == '\0' ? "unix: needs the path of a socket" : NULL;
    if (starts_with(text, "local:")) {
        const char *chroot = text + strlen("local:");
        return *chroot && *chroot != '/' ? "only a chroot may follow local:" : chroot_fault(chroot);
    }
    text = skip_tls(text);
    const char *end = servers_end(text);
    const char *fault = servers_fault(text, end);
    return fault ? fault : chroot_fault(end);
}

/* A chroot of "/" counts as none. */
static void set_chroot(struct hosts *h, char *to, const char *chroot)
{
    h->chroot_len = strcmp(chroot, "/") == 0 ? 0 : strlen(chroot);
    memcpy(to, chroot, h->chroot_len);
    to[h->chroot_len] = '\0';
    h->chroot = to;
}

/* Copies the names one after another into h->text, then the chroot. */
static void hosts_fill(struct hosts *h, const char *text)
{
    const char *hosts = skip_tls(text), *end = servers_end(hosts);
    char *to = h->text;
    h->tls = hosts > text;
    uint16_t standard = h->tls ? WIRE_SECURE_PORT : WIRE_DEFAULT_PORT;
    for (const char *s = hosts;; s++) {
        struct entry e;
        size_t n = entry_len(s, end);
        (void)hosts_parse_entry(s, n, &e);
        memcpy(to, e.name, e.name_len);
        to[e.name_len] = '\0';
        h->list[h->count++] = (struct host){.name = to, .port = e.port ? e.port : standard};
        to += e.name_len + 1;
        s += n;
        if (s == end)
            break;
    }
    set_chroot(h, to, end);
}

/* Everything after "unix:" is the path; "local:" is a name by itself. */
static void fill_socket(struct hosts *h, const char *text)
{
    bool local = starts_with(text, "local:");
    const char *name = local ? "local:" : text + strlen("unix:");
    size_t n = strlen(name) + 1;
    memcpy(h->text, name, n);
    h->list[h->count++] = (struct host){.name = h->text};
    set_chroot(h, h->text + n, local ? text + strlen("local:") : "");
}

clave_err clave__hosts_init(struct hosts *h, const struct clave_mem *mem, const char *text)
{
    *h = (struct hosts){.mem = mem};
    if (clave__hosts_fault(text))
        return CLAVE_EHOST;
    size_t count = 1;
    for (const char *s = text; *s; s++)
        count += *s == ',';
    h->text = clave__mem_alloc(mem, strlen(text) + 3);
    h->list = clave__mem_zalloc(mem, count * sizeof *h->list);
    if (!h->text || !h->list) {
        clave__hosts_fini(h);
        return CLAVE_ENOMEM;
    }
    if (starts_with(text, "unix:") || starts_with(text, "local:"))
        fill_socket(h, text);
    else
        hosts_fill(h, text);
    return CLAVE_OK;
}

void clave__hosts_fini(struct hosts *h)
{
    clave__mem_free(h->mem, h->list);
    clave__mem_free(h->mem, h->text);
    h->list = NULL;
    h->text = NULL;
}

bool clave__hosts_fit(const struct hosts *h, const struct hosts *other)
{
    return h->tls == other->tls && strcmp(h->chroot, other->chroot) == 0;
}

bool clave__hosts_resume(struct hosts *h, const struct host *current)
{
    for (size_t i = 0; i < h->count; i++) {
        if (h->list[i].port != current->port || strcmp(h->list[i].name, current->name) != 0)
            continue;
        h->at = i;
        h->list[i].tried = current->tried;
        return true;
    }
    return false;
}

void clave__hosts_shuffle(struct hosts *h, struct rand_state *rand)
{
    for (size_t i = h->count; i > 1; i--) {
        size_t j = (size_t)clave__rand_below(rand, i);
        struct host t = h->list[i - 1];
        h->list[i - 1] = h->list[j];
        h->list[j] = t;
    }
}

const struct host *clave__hosts_current(const struct hosts *h)
{
    return &h->list[h->at];
}

void clave__hosts_answered(struct hosts *h)
{
    h->list[h->at].refused = 0;
}

void clave__hosts_served(struct hosts *h)
{
    h->fails = 0;
}

void clave__hosts_refused(struct hosts *h, unsigned addresses)
{
    h->list[h->at].refused = h->list[h->at].tried + 1;
    h->list[h->at].addresses = addresses;
}

bool clave__hosts_all_refuse(const struct hosts *h)
{
    for (size_t i = 0; i < h->count; i++) {
        const struct host *at = &h->list[i];
        if (at->refused == 0 || at->tried < at->addresses ||
            at->tried - at->refused >= at->addresses)
            return false;
    }
    return true;
}

bool clave__hosts_next(struct hosts *h, bool failed)
{
    h->list[h->at].tried++;
    h->at = (h->at + 1) % h->count;
    if (!failed)
        return false;
    h->fails++;
    return h->fails % h->count == 0;
}
