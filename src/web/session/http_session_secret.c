/* http_session_secret.c - secrets of HTTP sessions. Called by http_session.c. Invariant: the tag is
 * compared in a time that does not depend on where it differs. */
#include "web/session/http_session_secret.h"

#include <assert.h>
#include <string.h>

#include "base/base64.h"
#include "base/hash/sha1.h"

enum { SHA1_BLOCK = 64, MOST_INPUT = 1 + SEAL_PLAIN + SEAL_AUTHS };

static void http_session_secret_hmac(const uint8_t key[SEAL_KEY], const uint8_t *p, size_t n,
                                     uint8_t out[SHA1_LEN])
{
    uint8_t inner[SHA1_BLOCK + MOST_INPUT], outer[SHA1_BLOCK + SHA1_LEN];
    assert(n <= MOST_INPUT);
    memset(inner, 0x36, SHA1_BLOCK);
    memset(outer, 0x5c, SHA1_BLOCK);
    for (size_t i = 0; i < SEAL_KEY; i++) {
        inner[i] ^= key[i];
        outer[i] ^= key[i];
    }
    memcpy(inner + SHA1_BLOCK, p, n);
    clave__sha1(inner, SHA1_BLOCK + n, outer + SHA1_BLOCK);
    clave__sha1(outer, sizeof outer, out);
}

/* The uses of the key never share an input: the first byte tells them apart. */
static void http_session_secret_tag(const uint8_t key[SEAL_KEY], const uint8_t *plain, size_t n,
                                    uint8_t tag[SEAL_TAG])
{
    assert(n < MOST_INPUT);
    uint8_t in[MOST_INPUT] = {'t'}, mac[SHA1_LEN];
    memcpy(in + 1, plain, n);
    http_session_secret_hmac(key, in, 1 + n, mac);
    memcpy(tag, mac, SEAL_TAG);
}

static void http_session_secret_mix(const uint8_t key[SEAL_KEY], const uint8_t tag[SEAL_TAG],
                                    uint8_t *text, size_t n)
{
    uint8_t in[2 + SEAL_TAG] = {'s'}, mac[SHA1_LEN];
    memcpy(in + 2, tag, SEAL_TAG);
    for (size_t i = 0; i < n; i++) {
        if (i % SHA1_LEN == 0) {
            in[1] = (uint8_t)(i / SHA1_LEN);
            http_session_secret_hmac(key, in, sizeof in, mac);
        }
        text[i] ^= mac[i % SHA1_LEN];
    }
}

static void http_session_secret_put(uint8_t *at, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
}

static uint64_t http_session_secret_get(const uint8_t *at, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | at[i];
    return v;
}

void clave__seal(const uint8_t key[SEAL_KEY], const struct sealed_session *s,
                 char out[SEAL_TEXT + 1])
{
    uint8_t bytes[SEAL_MOST], *plain = bytes + SEAL_TAG;
    size_t n = SEAL_PLAIN + s->nauths;
    assert(s->nauths <= SEAL_AUTHS);
    http_session_secret_put(plain, (uint64_t)s->id, 8);
    memcpy(plain + 8, s->passwd, sizeof s->passwd);
    http_session_secret_put(plain + 24, (uint32_t)s->ttl_ms, 4);
    memcpy(plain + SEAL_PLAIN, s->auths, s->nauths);
    http_session_secret_tag(key, plain, n, bytes);
    http_session_secret_mix(key, bytes, plain, n);
    clave__base64url(bytes, SEAL_TAG + n, out);
}

bool clave__unseal(const uint8_t key[SEAL_KEY], const char *text, struct sealed_session *out)
{
    uint8_t bytes[SEAL_MOST], tag[SEAL_TAG], *plain = bytes + SEAL_TAG, differs = 0;
    size_t n = strlen(text), len = 0;
    if (n > SEAL_TEXT || !clave__base64url_decode(text, n, bytes, &len) ||
        len < SEAL_TAG + SEAL_PLAIN)
        return false;
    len -= SEAL_TAG;
    http_session_secret_mix(key, bytes, plain, len);
    http_session_secret_tag(key, plain, len, tag);
    for (size_t i = 0; i < SEAL_TAG; i++)
        differs |= tag[i] ^ bytes[i];
    if (differs)
        return false;
    out->id = (int64_t)http_session_secret_get(plain, 8);
    memcpy(out->passwd, plain + 8, sizeof out->passwd);
    out->ttl_ms = (int32_t)http_session_secret_get(plain + 24, 4);
    out->nauths = len - SEAL_PLAIN;
    memcpy(out->auths, plain + SEAL_PLAIN, out->nauths);
    return true;
}

void clave__seal_uuid(const uint8_t key[SEAL_KEY], char uuid[CLAVE_UUID_TEXT + 1])
{
    uint8_t in[1 + CLAVE_UUID_TEXT] = {'u'}, mac[SHA1_LEN];
    memcpy(in + 1, uuid, CLAVE_UUID_TEXT);
    http_session_secret_hmac(key, in, sizeof in, mac);
    clave__uuid_mix(uuid, http_session_secret_get(mac, 8), http_session_secret_get(mac + 8, 8));
}
