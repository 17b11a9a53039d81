#include "server/auth.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/sha1.h"

/* Users of one connection: more would only make each check slow. */
enum { MAX_DIGESTS = 64, MAX_DIGESTS_BYTES = 1 << 20 };

void clave__identities_init(struct identities *who, const struct clave_mem *mem,
                            const struct peer_addr *peer)
{
    *who = (struct identities){.family = peer->family};
    memcpy(who->ip, peer->ip, sizeof who->ip);
    clave__buf_init(&who->digests, mem, MAX_DIGESTS_BYTES);
}

void clave__identities_fini(struct identities *who)
{
    clave__buf_fini(&who->digests);
}

struct jvec clave__identities_digests(const struct identities *who)
{
    return (struct jvec){who->count, clave__buf_bytes(&who->digests),
                         clave__buf_len(&who->digests)};
}

bool clave__identities_has_digest(const struct identities *who, struct jbytes id)
{
    struct jreader r = clave__jvec_reader(clave__identities_digests(who));
    for (int32_t i = 0; i < who->count; i++)
        if (clave__jbytes_eq(clave__jget_bytes(&r), id))
            return true;
    return false;
}

static bool is(struct jbytes s, const char *text)
{
    return clave__jbytes_eq(s, clave__jbytes(text));
}

/* The user of "user:rest". */
static struct jbytes user_of(struct jbytes id)
{
    const char *colon = id.n > 0 ? memchr(id.p, ':', (size_t)id.n) : NULL;
    return colon ? clave__jbytes_n(id.p, (size_t)(colon - id.p)) : id;
}

static clave_err add_digest(struct identities *who, struct jbytes auth)
{
    uint8_t sha[SHA1_LEN];
    char secret[BASE64_LEN(SHA1_LEN) + 1];
    struct jbytes user = user_of(auth);
    struct jwriter w = clave__jwriter(&who->digests);
    size_t begin = clave__buf_len(&who->digests);
    int32_t len = user.n + 1 + (int32_t)sizeof secret - 1;
    clave__sha1(auth.p, (size_t)auth.n, sha);
    clave__base64(sha, sizeof sha, secret);
    clave_err err = clave__buf_reserve(&who->digests, 4 + (size_t)len);
    if (err == CLAVE_ETOOBIG)
        return CLAVE_EAUTHFAILED;
    if (err != CLAVE_OK)
        return err;
    clave__jput_int(&w, len);
    clave__buf_append(&who->digests, user.p, (size_t)user.n);
    clave__buf_append(&who->digests, ":", 1);
    clave__buf_append(&who->digests, secret, sizeof secret - 1);
    struct jbytes id = clave__jbytes_n(clave__buf_bytes(&who->digests) + begin + 4, (size_t)len);
    bool known = clave__identities_has_digest(who, id);
    if (known || who->count == MAX_DIGESTS) {
        who->digests.tail -= 4 + (size_t)len;
        return known ? CLAVE_OK : CLAVE_EAUTHFAILED;
    }
    who->count++;
    return CLAVE_OK;
}

clave_err clave__identities_add(struct identities *who, struct jbytes scheme, struct jbytes auth)
{
    if (is(scheme, "ip"))
        return CLAVE_OK; /* every connection has it already */
    if (is(scheme, "digest") && auth.n >= 0)
        return add_digest(who, auth);
    return CLAVE_EAUTHFAILED;
}

void clave__identities_note_super(struct identities *who, struct jbytes digest)
{
    if (digest.n > 0 && clave__identities_has_digest(who, digest))
        who->is_super = true;
}

/* ---- addresses ------------------------------------------------------------------------ */

/* A decimal number up to `max` at *p, before `end`. */
static bool read_number(const char **p, const char *end, unsigned max, unsigned *out)
{
    const char *from = *p;
    unsigned v = 0;
    while (*p < end && **p >= '0' && **p <= '9' && *p - from < 4)
        v = v * 10 + (unsigned)(*(*p)++ - '0');
    *out = v;
    return *p > from && v <= max;
}

static bool parse_v4(struct jbytes id, uint32_t *ip, unsigned *bits)
{
    const char *p = id.p, *end = id.p + (id.n > 0 ? id.n : 0);
    unsigned v;
    *ip = 0;
    *bits = 32;
    for (int i = 0; i < 4; i++) {
        if (i > 0 && (p == end || *p++ != '.'))
            return false;
        if (!read_number(&p, end, 255, &v))
            return false;
        *ip = *ip << 8 | v;
    }
    if (p == end)
        return true;
    return *p++ == '/' && read_number(&p, end, 32, bits) && p == end;
}

bool clave__ip_valid(struct jbytes id)
{
    uint32_t ip;
    unsigned bits;
    return parse_v4(id, &ip, &bits);
}

bool clave__ip_matches(struct jbytes id, const struct identities *who)
{
    uint32_t ip;
    unsigned bits;
    if (who->family != 4 || !parse_v4(id, &ip, &bits))
        return false;
    const uint8_t *b = who->ip;
    uint32_t own = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    return bits == 0 || (own ^ ip) >> (32 - bits) == 0;
}

static void ip_text(const struct identities *who, char out[AUTH_IP_TEXT])
{
    const uint8_t *b = who->ip;
    size_t at = 0;
    if (who->family == 4) {
        snprintf(out, AUTH_IP_TEXT, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
        return;
    }
    for (size_t i = 0; i < 16; i += 2)
        at += (size_t)snprintf(out + at, AUTH_IP_TEXT - at, i ? ":%x" : "%x",
                               (unsigned)(b[i] << 8 | b[i + 1]));
}

void clave__identities_put(struct jwriter *w, const struct identities *who)
{
    char text[AUTH_IP_TEXT];
    struct jreader r = clave__jvec_reader(clave__identities_digests(who));
    bool has_ip = who->family != 0;
    clave__jput_int(w, who->count + (has_ip ? 1 : 0) + (who->is_super ? 1 : 0));
    if (has_ip) {
        ip_text(who, text);
        clave__jput_str(w, "ip");
        clave__jput_str(w, text);
    }
    if (who->is_super) {
        clave__jput_str(w, "super");
        clave__jput_str(w, "");
    }
    for (int32_t i = 0; i < who->count; i++) {
        clave__jput_str(w, "digest");
        clave__jput_bytes(w, user_of(clave__jget_bytes(&r)));
    }
}
