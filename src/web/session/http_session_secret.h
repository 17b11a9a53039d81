/* http_session_secret.h - what proves an HTTP session: the ZooKeeper session's id, password and
 * timeout, and the identities that its client gave, as a text that only gates with the same key can
 * make or read. So any of them can attach to the session, and none has to store anything.
 *
 * It is a deterministic authenticated encryption (as SIV, RFC 5297: a MAC of the plain text is the
 * tag and starts the key stream) with HMAC-SHA-1 as the pseudo-random function: one session has one
 * secret on every gate. Nobody learns the password from it, and a changed text is no secret. */
#ifndef CLAVE_WEB_SESSION_HTTP_SESSION_SECRET_H
#define CLAVE_WEB_SESSION_HTTP_SESSION_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rand.h"

enum {
    SEAL_KEY = 32,
    SEAL_TAG = 16,
    SEAL_AUTHS = 1024, /* most bytes of identities */
    SEAL_PLAIN = 28,   /* without any */
    SEAL_MOST = SEAL_TAG + SEAL_PLAIN + SEAL_AUTHS,
    SEAL_TEXT = (SEAL_MOST * 8 + 5) / 6, /* most characters, without the NUL */
};

struct sealed_session {
    int64_t id;
    uint8_t passwd[16];
    int32_t ttl_ms;
    size_t nauths;          /* bytes of `auths` */
    char auths[SEAL_AUTHS]; /* "digest:user:password", each with its NUL */
};

/* A session without identities has a text of 59 characters. */
void clave__seal(const uint8_t key[SEAL_KEY], const struct sealed_session *s,
                 char out[SEAL_TEXT + 1]);
/* false: no gate with this key has made it. */
bool clave__unseal(const uint8_t key[SEAL_KEY], const char *text, struct sealed_session *out);

/* Makes of a UUID that was drawn another one, which only who has the key can tell from it. */
void clave__seal_uuid(const uint8_t key[SEAL_KEY], char uuid[CLAVE_UUID_TEXT + 1]);

#endif
