/* hosts.c - parses a connection string ("a:2181, b/chroot", "tls:...", "unix:...", "local:...") and
 * keeps the order of its hosts; see hosts.h.
 *
 * clave__hosts_init accepts exactly the strings for which clave__hosts_fault returns NULL: those
 * that have one meaning to ZooKeeper's Java client, to kazoo, or to programs that write zk://. A
 * string that would be valid with a meaning other than what its author probably intended, such as a
 * chroot after each host, is refused. */
#include "client/hosts.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "wire/proto.h"

enum { MAX_HOSTS = 256, MAX_PORT_DIGITS = 5, MAX_OCTET = 255 };

static const char blanks[] = " \t\r\n\v\f";

static bool hosts_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool hosts_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool hosts_is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* ---- one host ------------------------------------------------------------------------------- */

/* A "name", "name:port", "address:port" or "[v6]:port", split up; port is 0 if there was none. */
struct entry {
    const char *name;
    size_t name_len;
    uint16_t port;
};

static const char *hosts_parse_port(const char *s, size_t n, uint16_t *out)
{
    unsigned long port = 0;
    if (n == 0)
        return "a port is missing after a colon";
    for (size_t i = 0; i < n; i++) {
        if (!hosts_is_digit(s[i]))
            return "a port must be a number";
        port = port * 10 + (unsigned long)(s[i] - '0');
    }
    if (n > MAX_PORT_DIGITS || port == 0 || port > UINT16_MAX)
        return "a port must be from 1 to 65535";
    *out = (uint16_t)port;
    return NULL;
}

/* Parses what follows a name: nothing, or a port. */
static const char *hosts_parse_tail(const char *s, size_t n, uint16_t *port)
{
    *port = 0;
    if (n == 0)
        return NULL;
    return s[0] == ':' ? hosts_parse_port(s + 1, n - 1, port)
                       : "only a port may follow the closing bracket of an IPv6 address";
}

/* Explains a character that shows what the author took the list for. */
static const char *hosts_stray_fault(char c)
{
    if (hosts_is_one_of(c, ";|"))
        return "hosts are separated by commas: h1:2181,h2:2181";
    if (hosts_is_one_of(c, blanks))
        return "hosts are separated by commas, with or without spaces: h1:2181, h2:2181";
    if (hosts_is_one_of(c, "\"'`"))
        return "a quote is part of the list: write the list without quotes";
    if (c == '@')
        return "a list has no user or password: an identity is given by itself (--auth, "
               "'auth = digest:user:password', clave_client_options.auths)";
    if (hosts_is_one_of(c, "${}"))
        return "a variable was not replaced by its value";
    return NULL;
}

/* Demands four numbers: the system would also take 2181 for an address, namely 0.0.8.133. */
static const char *hosts_ipv4_fault(const char *s, size_t n)
{
    static const char fault[] =
        "an IPv4 address has four numbers from 0 to 255, without leading zeros";
    size_t parts = 0;
    if (!memchr(s, '.', n))
        return "a port without its host: write localhost:2181, for instance";
    for (size_t i = 0; i <= n; i++, parts++) {
        unsigned number = 0;
        size_t first = i;
        for (; i < n && s[i] != '.' && number <= MAX_OCTET; i++)
            number = number * 10 + (unsigned)(s[i] - '0');
        if (i == first || number > MAX_OCTET || (s[first] == '0' && i - first > 1))
            return fault;
    }
    return parts == 4 ? NULL : fault;
}

/* Sets *numbers if there are only digits and dots. */
static const char *hosts_characters_fault(const char *s, size_t n, bool *numbers)
{
    *numbers = true;
    if (n == 0)
        return "a host has no name: write localhost:2181, for instance";
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || hosts_is_one_of(c, "-_");
        const char *fault = hosts_stray_fault(c);
        if (fault)
            return fault;
        if (!letter && !hosts_is_digit(c) && c != '.')
            return "a host's name has only letters, digits, dots, '-' and '_' (ASCII)";
        *numbers = *numbers && !letter;
    }
    return NULL;
}

static const char *hosts_name_fault(const char *s, size_t n)
{
    bool numbers;
    const char *fault = hosts_characters_fault(s, n, &numbers);
    return !fault && numbers ? hosts_ipv4_fault(s, n) : fault;
}

/* A name may be in brackets, too; there it cannot be mistaken for a prefix. */
static const char *hosts_bracket_fault(const char *s, size_t n)
{
    const char *zone = memchr(s, '%', n);
    size_t len = zone ? (size_t)(zone - s) : n, colons = 0;
    bool numbers;
    if (!memchr(s, ':', n))
        return hosts_name_fault(s, n);
    for (size_t i = 0; i < len; i++) {
        if (!hosts_is_digit(s[i]) && !hosts_is_one_of(s[i], "abcdefABCDEF.:"))
            return "only an IPv6 address may be in brackets, followed by its port: [::1]:2181";
        colons += s[i] == ':';
    }
    if (colons < 2)
        return "only an IPv6 address may be in brackets, followed by its port: [::1]:2181";
    return zone ? hosts_characters_fault(zone + 1, n - len - 1, &numbers) : NULL;
}

const char *clave__hosts_name_fault(const char *s, size_t n)
{
    bool bracketed = n >= 2 && s[0] == '[' && s[n - 1] == ']';
    return bracketed ? hosts_bracket_fault(s + 1, n - 2) : hosts_name_fault(s, n);
}

/* True if this looks like "tls:zk1" after another host; if it were a host of that name, a number
 * would follow the colon. */
static bool hosts_is_prefix(const char *s, size_t n)
{
    static const char *const prefixes[] = {"tls:", "unix:", "local:"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t len = strlen(prefixes[i]);
        if (n >= len && hosts_starts_with(s, prefixes[i]) && (n == len || !hosts_is_digit(s[len])))
            return true;
    }
    return false;
}

static const char *hosts_parse_entry(const char *s, size_t n, struct entry *e)
{
    const char *end = s + n;
    for (size_t i = 0; i < n; i++) {
        const char *fault = hosts_stray_fault(s[i]);
        if (fault)
            return fault;
    }
    if (s[0] == '[') {
        const char *close = memchr(s, ']', n);
        if (!close || close == s + 1)
            return "an IPv6 address needs its closing bracket";
        e->name = s + 1;
        e->name_len = (size_t)(close - e->name);
        const char *fault = hosts_bracket_fault(e->name, e->name_len);
        return fault ? fault : hosts_parse_tail(close + 1, (size_t)(end - close - 1), &e->port);
    }
    if (hosts_is_prefix(s, n))
        return "only one of tls:, unix: and local: may be given, at the very beginning";
    const char *colon = memchr(s, ':', n);
    e->name = s;
    e->name_len = colon ? (size_t)(colon - s) : n;
    if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
        return "an IPv6 address must be in brackets: [::1]:2181";
    const char *fault = hosts_name_fault(e->name, e->name_len);
    return fault ? fault : hosts_parse_tail(s + e->name_len, n - e->name_len, &e->port);
}

/* ---- the list ------------------------------------------------------------------------------- */

/* Skips "tls:", or the prefixes that Mesos, Spark and others put before their lists. */
static const char *hosts_skip_prefix(const char *text)
{
    static const char *const prefixes[] = {"tls:", "zk://", "zookeeper://"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (hosts_starts_with(text, prefixes[i]))
            return text + strlen(prefixes[i]);
    return text;
}

/* Sets *s to the next entry without the blanks around it, returns its length and moves *at behind
 * it; returns 0 if there is none. Empty entries are skipped, as the Java client does. */
static size_t hosts_next_entry(const char **at, const char *end, const char **s)
{
    while (*at < end && (**at == ',' || hosts_is_one_of(**at, blanks)))
        ++*at;
    *s = *at;
    while (*at < end && **at != ',')
        ++*at;
    size_t n = (size_t)(*at - *s);
    while (n > 0 && hosts_is_one_of((*s)[n - 1], blanks))
        n--;
    return n;
}

/* The length of the chroot without a trailing '/', which kazoo allows; a chroot of "/" counts as
 * none. */
static size_t hosts_chroot_len(const char *chroot)
{
    size_t n = strlen(chroot);
    return n > 0 && chroot[n - 1] == '/' ? n - 1 : n;
}

/* True if there is something like ":2181" at the end or before another '/'. */
static bool hosts_has_port(const char *s)
{
    while ((s = strchr(s, ':'))) {
        size_t digits = strspn(++s, "0123456789");
        if (digits > 0 && (s[digits] == '\0' || s[digits] == '/'))
            return true;
    }
    return false;
}

/* Refuses even valid paths if another meaning is more likely, since the locks would end up in a
 * different place than those of the author's other programs. */
static const char *hosts_chroot_fault(const char *chroot)
{
    size_t n = hosts_chroot_len(chroot);
    if (n == 0)
        return NULL;
    if (strchr(chroot, ','))
        return "there can be only one chroot, at the end: h1,h2/app";
    if (strpbrk(chroot, ";|") || strpbrk(chroot, blanks))
        return "the chroot has a space, ';' or '|' in it, and nothing may follow it: h1,h2/app";
    if (strpbrk(chroot, "\"'`"))
        return hosts_stray_fault('"');
    if (strchr(chroot, '?'))
        return "a list has no parameters: nothing may follow the chroot";
    if (hosts_has_port(chroot))
        return "the port comes before the chroot: h1:2181,h2:2181/app";
    return n == 1 || clave__path_fault(chroot, n, false) ? "the chroot is not a valid path" : NULL;
}

static const char *hosts_servers_fault(const char *at, const char *end)
{
    struct entry e;
    const char *s;
    size_t count = 0, n;
    if (hosts_starts_with(end, "//") && end > at && end[-1] == ':')
        return "of all prefixes with '//' only zk:// and zookeeper:// are known, once, before the "
               "first host; for TLS write tls:h1,h2";
    while ((n = hosts_next_entry(&at, end, &s)) > 0) {
        const char *fault = hosts_parse_entry(s, n, &e);
        if (fault)
            return fault;
        if (++count > MAX_HOSTS)
            return "too many hosts (at most 256)";
    }
    return count == 0 ? "it names no host" : NULL;
}

const char *clave__hosts_fault(const char *text)
{
    if (!text || text[0] == '\0')
        return "it is empty";
    if (hosts_starts_with(text, "unix:"))
        return text[5] == '\0' ? "unix: needs the path of a socket" : NULL;
    if (hosts_starts_with(text, "local:")) {
        const char *chroot = text + strlen("local:");
        return *chroot && *chroot != '/' ? "only a chroot may follow local:"
                                         : hosts_chroot_fault(chroot);
    }
    text = hosts_skip_prefix(text);
    const char *end = text + strcspn(text, "/"); /* where the chroot begins */
    const char *fault = hosts_servers_fault(text, end);
    return fault ? fault : hosts_chroot_fault(end);
}

static void hosts_set_chroot(struct hosts *h, char *to, const char *chroot)
{
    h->chroot_len = hosts_chroot_len(chroot);
    memcpy(to, chroot, h->chroot_len);
    to[h->chroot_len] = '\0';
    h->chroot = to;
}

/* Copies the names into h->text, one after another, and then the chroot. */
static void hosts_fill(struct hosts *h, const char *text)
{
    const char *at = hosts_skip_prefix(text), *end = at + strcspn(at, "/"), *s;
    char *to = h->text;
    h->tls = hosts_starts_with(text, "tls:");
    uint16_t standard = h->tls ? WIRE_SECURE_PORT : WIRE_DEFAULT_PORT;
    size_t n;
    while ((n = hosts_next_entry(&at, end, &s)) > 0) {
        struct entry e;
        (void)hosts_parse_entry(s, n, &e);
        memcpy(to, e.name, e.name_len);
        to[e.name_len] = '\0';
        h->list[h->count++] = (struct host){.name = to, .port = e.port ? e.port : standard};
        to += e.name_len + 1;
    }
    hosts_set_chroot(h, to, end);
}

/* Everything after "unix:" is the socket's path; "local:" is a name in itself. */
static void hosts_fill_socket(struct hosts *h, const char *text)
{
    bool local = hosts_starts_with(text, "local:");
    const char *name = local ? "local:" : text + strlen("unix:");
    size_t n = strlen(name) + 1;
    memcpy(h->text, name, n);
    h->list[h->count++] = (struct host){.name = h->text};
    hosts_set_chroot(h, h->text + n, local ? text + strlen("local:") : "");
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
    if (hosts_starts_with(text, "unix:") || hosts_starts_with(text, "local:"))
        hosts_fill_socket(h, text);
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
