/* gate_access_file.c - see gate_access_file.h. Used by `clave gate` and `clave serve` when they
 * start and at SIGHUP. A secret never appears in a message: faults name the line instead. */
#include "runtime/gate/gate_access_file.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ip_range.h"
#include "base/path.h"
#include "runtime/gate/secret_file.h"

enum {
    MAX_USERS = 10000,
    MAX_GRANTS = 64,
    MAX_HOSTS = 64,
    MAX_PROXIES = 64,
    MAX_FLEETS = 64,
    MAX_WORDS = 64,
    LEAST_TOKEN = 16
};

struct gate_access {
    struct web_access access;
    struct web_user *users; /* each has its own `grants` */
    const char *hosts[MAX_HOSTS], *origins[MAX_HOSTS];
    struct ip_range proxies[MAX_PROXIES], fleets[MAX_FLEETS];
    char *file_text, *hosts_text, *publics_text, *prefix,
        *fleetlock; /* which the rest points into */
};

/* A line of the file, split into words. */
struct access_line {
    const char *file;
    unsigned number;
    char *words[MAX_WORDS];
    size_t nwords;
    const struct fault *f;
};

static clave_err access_bad(const struct access_line *l, const char *why)
{
    return clave__start_error(l->f, CLAVE_EINVAL, "%s:%u: %s", l->file, l->number, why);
}

/* ---- words ---------------------------------------------------------------------------------- */

/* Cuts off the next word. Quotes protect spaces in a word, even in its middle: name="a b". */
static char *access_cut_word(char **at)
{
    char *from = *at + strspn(*at, " \t\r"), *to = from, *p = from;
    bool quoted = false;
    if (*from == '\0' || *from == '#')
        return NULL;
    for (; *p && (quoted || !strchr(" \t\r", *p)); p++)
        if (*p == '"')
            quoted = !quoted;
        else
            *to++ = *p;
    *at = *p ? p + 1 : p;
    *to = '\0';
    return from;
}

static clave_err access_cut_line(struct access_line *l, char *text)
{
    char *word;
    l->nwords = 0;
    while ((word = access_cut_word(&text))) {
        if (l->nwords == MAX_WORDS)
            return access_bad(l, "more words than a line may have");
        l->words[l->nwords++] = word;
    }
    return CLAVE_OK;
}

/* ---- users ---------------------------------------------------------------------------------- */

static clave_err access_read_who(const struct access_line *l, struct web_user *who)
{
    const char *word = l->words[0];
    *who = (struct web_user){.name = word, .uid = -1};
    if (strncmp(word, "uid=", 4) == 0) {
        char *end;
        unsigned long long uid = strtoull(word + 4, &end, 10);
        if (end == word + 4 || *end || uid >= UINT32_MAX)
            return access_bad(l, "uid= is followed by the number of a user: 'id -u'");
        who->uid = (int64_t)uid;
    } else if (strncmp(word, "x509=", 5) == 0) {
        if (!word[5])
            return access_bad(l, "x509= is followed by the subject of a certificate: CN=a,O=b");
        who->tls_subject = word + 5;
    } else if (strlen(word) < LEAST_TOKEN) {
        return access_bad(l,
                          "a token has at least 16 characters: 'openssl rand -hex 16' makes one");
    } else {
        who->token = word;
        who->name = "token"; /* never the token itself */
    }
    return CLAVE_OK;
}

static bool access_same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* The user that this line is about, who may already have appeared on an earlier one. */
static clave_err access_find_user(struct gate_access *a, const struct access_line *l,
                                  struct web_user **out)
{
    struct web_user who, *more;
    clave_err err = access_read_who(l, &who);
    size_t n = a->access.nusers;
    if (err != CLAVE_OK)
        return err;
    for (size_t i = 0; i < n; i++) {
        struct web_user *u = *out = &a->users[i];
        if (access_same_text(u->token, who.token) || (who.uid >= 0 && u->uid == who.uid) ||
            access_same_text(u->tls_subject, who.tls_subject))
            return CLAVE_OK;
    }
    if (n == MAX_USERS)
        return access_bad(l, "at most 10000 users");
    more = realloc(a->users, (n + 1) * sizeof *more);
    if (!more)
        return CLAVE_ENOMEM;
    a->users = more;
    a->access.users = more;
    a->access.nusers = n + 1;
    more[n] = who;
    *out = &more[n];
    return CLAVE_OK;
}

static clave_err access_grant(const struct access_line *l, struct web_user *u, enum web_role role,
                              const char *prefix)
{
    if (*prefix != '/')
        return access_bad(l, "a prefix is a path: /jobs");
    if (u->ngrants == MAX_GRANTS)
        return access_bad(l, "at most 64 prefixes for one user");
    struct web_grant *more =
        realloc((struct web_grant *)(uintptr_t)u->grants, (u->ngrants + 1) * sizeof *more);
    if (!more)
        return CLAVE_ENOMEM;
    more[u->ngrants++] = (struct web_grant){role, prefix};
    u->grants = more;
    return CLAVE_OK;
}

/* Reads the roles and returns the highest, since each includes those below it. */
static clave_err access_read_roles(const struct access_line *l, enum web_role *out)
{
    assert(l->nwords >= 2);
    char *rest = NULL;
    *out = WEB_NONE;
    for (char *r = strtok_r(l->words[1], ",", &rest); r; r = strtok_r(NULL, ",", &rest)) {
        enum web_role role;
        if (!clave__web_role_parse(r, &role))
            return access_bad(l, "the roles are read, lock, write and admin");
        *out = role > *out ? role : *out;
    }
    return *out == WEB_NONE ? access_bad(l, "a role is missing") : CLAVE_OK;
}

static clave_err access_take_line(struct gate_access *a, const struct access_line *l)
{
    struct web_user *u;
    enum web_role role;
    bool everywhere = true;
    if (l->nwords < 2)
        return access_bad(l, "expected TOKEN ROLE[,ROLE] [PREFIX...] [name=NAME]");
    clave_err err = access_find_user(a, l, &u);
    if (err == CLAVE_OK)
        err = access_read_roles(l, &role);
    for (size_t i = 2; i < l->nwords && err == CLAVE_OK; i++) {
        if (strncmp(l->words[i], "name=", 5) == 0) {
            u->name = l->words[i] + 5;
            continue;
        }
        everywhere = false;
        err = access_grant(l, u, role, l->words[i]);
    }
    return err == CLAVE_OK && everywhere ? access_grant(l, u, role, "/") : err;
}

/* ---- the file ------------------------------------------------------------------------------- */

static clave_err access_read_file(struct gate_access *a, const char *path, const struct fault *f)
{
    struct access_line l = {.file = path, .f = f};
    clave_err err = secret_file_read("the file of tokens", path, &a->file_text, f);
    if (err != CLAVE_OK)
        return err;
    for (char *at = a->file_text, *next; at && err == CLAVE_OK; at = next) {
        next = strchr(at, '\n');
        if (next)
            *next++ = '\0';
        l.number++;
        err = access_cut_line(&l, at);
        if (err == CLAVE_OK && l.nwords > 0)
            err = access_take_line(a, &l);
    }
    if (err == CLAVE_OK && a->access.nusers == 0)
        err = clave__start_error(f, CLAVE_EINVAL, "the token file %s names nobody", path);
    return err;
}

/* ---- names of the gate ---------------------------------------------------------------------- */

static clave_err access_read_hosts(struct gate_access *a, const char *hosts, const struct fault *f)
{
    char *rest = NULL;
    a->hosts_text = strdup(hosts);
    if (!a->hosts_text)
        return CLAVE_ENOMEM;
    for (char *h = strtok_r(a->hosts_text, ", ", &rest); h; h = strtok_r(NULL, ", ", &rest)) {
        if (a->access.nhosts == MAX_HOSTS)
            return clave__start_error(f, CLAVE_EINVAL, "at most %d names of hosts", MAX_HOSTS);
        if (strpbrk(h, ":/"))
            return clave__start_error(
                f, CLAVE_EINVAL, "'%s': a name of this gate, without scheme and port: gate.example",
                h);
        a->hosts[a->access.nhosts++] = h;
    }
    a->access.hosts = a->hosts;
    return CLAVE_OK;
}

/* ---- behind a proxy -------------------------------------------------------------------------- */

static clave_err access_set_prefix(struct gate_access *a, const char *prefix, const struct fault *f)
{
    size_t n = strlen(prefix);
    while (n > 0 && prefix[n - 1] == '/')
        n--;
    if (n == 0 && prefix[0] == '/')
        return CLAVE_OK;
    if (prefix[0] != '/' || strpbrk(prefix, "?#% "))
        return clave__start_error(f, CLAVE_EINVAL,
                                  "'%s': what a proxy puts before every path: /clave", prefix);
    if (a->prefix && (strncmp(a->prefix, prefix, n) != 0 || a->prefix[n] != '\0'))
        return clave__start_error(
            f, CLAVE_EINVAL, "two prefixes, %s and %s: a gate has at most one", a->prefix, prefix);
    if (!a->prefix)
        a->prefix = strndup(prefix, n);
    a->access.prefix = a->prefix;
    return a->prefix ? CLAVE_OK : CLAVE_ENOMEM;
}

/* Splits "https://gate.example:8443/clave": the part before the path is an origin of pages, the
 * path is the prefix. */
static clave_err access_take_public(struct gate_access *a, char *url, const struct fault *f)
{
    char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    bool http = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    if (!http || host[3] == '\0' || host + 3 == path || strpbrk(url, "?#@ "))
        return clave__start_error(
            f, CLAVE_EINVAL, "'%s': the URL by which clients reach it: https://gate.example/clave",
            url);
    clave_err err = path ? access_set_prefix(a, path, f) : CLAVE_OK;
    if (err == CLAVE_OK && a->access.norigins == MAX_HOSTS)
        err = clave__start_error(f, CLAVE_EINVAL, "at most %d public URLs", MAX_HOSTS);
    if (err != CLAVE_OK)
        return err;
    if (path)
        *path = '\0';
    a->origins[a->access.norigins++] = url;
    a->access.origins = a->origins;
    return CLAVE_OK;
}

static clave_err access_read_publics(struct gate_access *a, const char *publics,
                                     const struct fault *f)
{
    clave_err err = CLAVE_OK;
    char *rest = NULL;
    a->publics_text = strdup(publics);
    if (!a->publics_text)
        return CLAVE_ENOMEM;
    for (char *u = strtok_r(a->publics_text, ", ", &rest); u && err == CLAVE_OK;
         u = strtok_r(NULL, ", ", &rest))
        err = access_take_public(a, u, f);
    return err;
}

static clave_err access_read_proxies(struct gate_access *a, const char *proxies,
                                     const struct fault *f)
{
    for (size_t n; *proxies; proxies += n) {
        struct ip_range *r = &a->proxies[a->access.nproxies];
        proxies += strspn(proxies, ", ");
        n = strcspn(proxies, ", ");
        if (n == 0)
            break;
        if (n == strlen("unix") && strncmp(proxies, "unix", n) == 0) {
            a->access.unix_proxies = true;
            continue;
        }
        if (a->access.nproxies == MAX_PROXIES)
            return clave__start_error(f, CLAVE_EINVAL, "at most %d proxies", MAX_PROXIES);
        if (!clave__ip_range_parse(r, proxies, n))
            return clave__start_error(f, CLAVE_EINVAL,
                                      "'%.*s': the address of a proxy: 10.0.0.7, 10.0.0.0/8, "
                                      "fd00::/8 or unix",
                                      (int)n, proxies);
        a->access.nproxies++;
    }
    a->access.proxies = a->proxies;
    return CLAVE_OK;
}

static clave_err access_read_fleets(struct gate_access *a, const char *fleets,
                                    const struct fault *f)
{
    for (size_t n; *fleets; fleets += n) {
        fleets += strspn(fleets, ", ");
        n = strcspn(fleets, ", ");
        if (n == 0)
            break;
        if (a->access.nfleets == MAX_FLEETS)
            return clave__start_error(f, CLAVE_EINVAL, "at most %d addresses of fleets",
                                      MAX_FLEETS);
        if (!clave__ip_range_parse(&a->fleets[a->access.nfleets], fleets, n))
            return clave__start_error(f, CLAVE_EINVAL,
                                      "'%.*s': the address of a fleet: 10.0.0.7, 10.0.0.0/8 or "
                                      "fd00::/8",
                                      (int)n, fleets);
        a->access.nfleets++;
    }
    a->access.fleets = a->fleets;
    return CLAVE_OK;
}

static clave_err access_read_fleetlock(struct gate_access *a, const struct gate_access_options *o,
                                       const struct fault *f)
{
    if (!o->fleetlock)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "the addresses of a fleet are of use with --fleetlock PATH only");
    const char *fault = clave__path_fault(o->fleetlock, strlen(o->fleetlock), false);
    if (fault)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "--fleetlock %s is not the path of a znode: it %s", o->fleetlock,
                                  fault);
    a->access.fleetlock = a->fleetlock = strdup(o->fleetlock);
    if (!a->fleetlock)
        return CLAVE_ENOMEM;
    return o->fleets ? access_read_fleets(a, o->fleets, f) : CLAVE_OK;
}

clave_err gate_access_load(struct gate_access **out, const struct gate_access_options *o,
                           const struct fault *f)
{
    struct gate_access *a = calloc(1, sizeof *a);
    *out = NULL;
    if (!a)
        return CLAVE_ENOMEM;
    a->access.owner_uid = (int64_t)geteuid();
    clave_err err = o->tokens ? access_read_file(a, o->tokens, f) : CLAVE_OK;
    if (err == CLAVE_OK && o->hosts)
        err = access_read_hosts(a, o->hosts, f);
    if (err == CLAVE_OK && o->prefix)
        err = access_set_prefix(a, o->prefix, f);
    if (err == CLAVE_OK && o->publics)
        err = access_read_publics(a, o->publics, f);
    if (err == CLAVE_OK && o->proxies)
        err = access_read_proxies(a, o->proxies, f);
    if (err == CLAVE_OK && (o->fleetlock || o->fleets))
        err = access_read_fleetlock(a, o, f);
    if (err == CLAVE_OK)
        *out = a;
    else
        gate_access_free(a);
    return err;
}

void gate_access_free(struct gate_access *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->access.nusers; i++)
        free((struct web_grant *)(uintptr_t)a->users[i].grants);
    free(a->users);
    free(a->file_text);
    free(a->hosts_text);
    free(a->publics_text);
    free(a->prefix);
    free(a->fleetlock);
    free(a);
}

const struct web_access *gate_access_of(const struct gate_access *a)
{
    return &a->access;
}
