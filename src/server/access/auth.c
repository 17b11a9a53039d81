/* auth.c - the identities of a connection: digest users, certificate subject, address and uid, and
 * whether they match the id in an access list. request.c adds digest users, conn.c the certificate;
 * acl.c asks. An identity is never removed while the connection lives. */
#include "server/access/auth.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/hash/sha1.h"
#include "base/ip_range.h"
#include "wire/x509_name.h"

/* The number of digest users per connection is bounded, because each makes every check slower. */
enum { MAX_DIGESTS = 64, MAX_DIGESTS_BYTES = 1 << 20, MAX_SUBJECT = 64 * 1024 };

void clave__identities_init(struct identities *who, const struct clave_mem *mem,
                            const struct peer_addr *peer)
{
    *who = (struct identities){.family = peer->family, .has_uid = peer->has_uid, .uid = peer->uid};
    memcpy(who->ip, peer->ip, sizeof who->ip);
    clave__buf_init(&who->digests, mem, MAX_DIGESTS_BYTES);
    clave__buf_init(&who->subject, mem, MAX_SUBJECT);
}

void clave__identities_fini(struct identities *who)
{
    clave__buf_fini(&who->digests);
    clave__buf_fini(&who->subject);
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

static bool server_auth_is(struct jbytes s, const char *text)
{
    return clave__jbytes_eq(s, clave__jbytes(text));
}

struct jbytes clave__identities_user(struct jbytes id)
{
    const char *colon = id.n > 0 ? memchr(id.p, ':', (size_t)id.n) : NULL;
    return colon ? clave__jbytes_n(id.p, (size_t)(colon - id.p)) : id;
}

static clave_err auth_add_digest(struct identities *who, struct jbytes auth)
{
    uint8_t sha[SHA1_LEN];
    char secret[BASE64_LEN(SHA1_LEN) + 1];
    struct jbytes user = clave__identities_user(auth);
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
    if (server_auth_is(scheme, "ip"))
        return CLAVE_OK; /* the address is already an identity of every connection */
    if (server_auth_is(scheme, "digest") && auth.n >= 0)
        return auth_add_digest(who, auth);
    if (server_auth_is(scheme, "x509") && who->has_subject)
        return CLAVE_OK; /* so is the subject of its certificate */
    if (server_auth_is(scheme, "uid") && who->has_uid)
        return CLAVE_OK;
    return CLAVE_EAUTHFAILED;
}

void clave__identities_note_super(struct identities *who, struct jbytes digest)
{
    if (digest.n > 0 && clave__identities_has_digest(who, digest))
        who->is_super = true;
}

/* ---- certificates ---------------------------------------------------------------------------- */

clave_err clave__identities_certify(struct identities *who, const void *der, size_t n)
{
    clave_err err = clave__x509_name_put(&who->subject, der, n);
    who->has_subject = err == CLAVE_OK;
    return err == CLAVE_ETOOBIG ? CLAVE_EINVAL : err;
}

struct jbytes clave__identities_subject(const struct identities *who)
{
    return clave__jbytes_n(clave__buf_bytes(&who->subject), clave__buf_len(&who->subject));
}

bool clave__identities_has_subject(const struct identities *who, struct jbytes id)
{
    return who->has_subject && clave__jbytes_eq(clave__identities_subject(who), id);
}

void clave__identities_note_x509_super(struct identities *who, struct jbytes subject)
{
    if (subject.n > 0 && clave__identities_has_subject(who, subject))
        who->is_super = true;
}

/* ---- addresses ------------------------------------------------------------------------------- */

bool clave__ip_valid(struct jbytes id)
{
    struct ip_range r;
    return id.n > 0 && clave__ip_range_parse(&r, id.p, (size_t)id.n);
}

bool clave__ip_matches(struct jbytes id, const struct identities *who)
{
    struct ip_range r, own = {.family = who->family, .bits = who->family == 6 ? 128 : 32};
    memcpy(own.ip, who->ip, sizeof own.ip);
    return id.n > 0 && clave__ip_range_parse(&r, id.p, (size_t)id.n) &&
           clave__ip_range_has(&r, &own);
}

/* ---- users of this machine ------------------------------------------------------------------- */

static bool auth_parse_uid(struct jbytes id, uint32_t *out)
{
    uint64_t v = 0;
    if (id.n <= 0 || id.n >= AUTH_UID_TEXT || (id.p[0] == '0' && id.n > 1))
        return false;
    for (int32_t i = 0; i < id.n; i++) {
        if (id.p[i] < '0' || id.p[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(id.p[i] - '0');
    }
    *out = (uint32_t)v;
    return v < UINT32_MAX; /* UINT32_MAX is not a user: system calls take it to mean none */
}

bool clave__uid_valid(struct jbytes id)
{
    uint32_t uid;
    return auth_parse_uid(id, &uid);
}

bool clave__uid_matches(struct jbytes id, const struct identities *who)
{
    uint32_t uid;
    return who->has_uid && auth_parse_uid(id, &uid) && uid == who->uid;
}

void clave__identities_note_super_uid(struct identities *who, struct jbytes uid)
{
    if (clave__uid_matches(uid, who))
        who->is_super = true;
}

struct jbytes clave__uid_text(const struct identities *who, char out[AUTH_UID_TEXT])
{
    assert(who->has_uid);
    snprintf(out, AUTH_UID_TEXT, "%u", (unsigned)who->uid);
    return clave__jbytes(out);
}

/* ---- who has to authenticate ----------------------------------------------------------------- */

bool clave__identities_have_scheme(const struct identities *who, const char *schemes)
{
    const struct {
        const char *name;
        bool has;
    } known[] = {{"digest", who->count > 0},
                 {"ip", who->family != 0},
                 {"uid", who->has_uid},
                 {"x509", who->has_subject}};
    size_t n;
    for (const char *at = schemes; *at; at += n + (at[n] == ',')) {
        n = strcspn(at, ",");
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (known[i].has && strlen(known[i].name) == n && strncmp(at, known[i].name, n) == 0)
                return true;
    }
    return false;
}

/* ---- whoAmI ---------------------------------------------------------------------------------- */

void clave__identities_ip_text(const struct identities *who, char out[AUTH_IP_TEXT])
{
    const uint8_t *b = who->ip;
    size_t at = 0;
    assert(who->family == 4 || who->family == 6);
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
    char text[AUTH_IP_TEXT], uid[AUTH_UID_TEXT];
    struct jreader r = clave__jvec_reader(clave__identities_digests(who));
    bool has_ip = who->family != 0;
    clave__jput_int(w, who->count + (has_ip ? 1 : 0) + (who->is_super ? 1 : 0) +
                           (who->has_subject ? 1 : 0) + (who->has_uid ? 1 : 0));
    if (has_ip) {
        clave__identities_ip_text(who, text);
        clave__jput_str(w, "ip");
        clave__jput_str(w, text);
    }
    if (who->is_super) {
        clave__jput_str(w, "super");
        clave__jput_str(w, "");
    }
    for (int32_t i = 0; i < who->count; i++) {
        clave__jput_str(w, "digest");
        clave__jput_bytes(w, clave__identities_user(clave__jget_bytes(&r)));
    }
    if (who->has_subject) {
        clave__jput_str(w, "x509");
        clave__jput_bytes(w, clave__identities_subject(who));
    }
    if (who->has_uid) {
        clave__jput_str(w, "uid");
        clave__jput_bytes(w, clave__uid_text(who, uid));
    }
}
