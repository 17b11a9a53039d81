/* auth.h - the identities of a connection: its address, the digest users it has presented, the
 * subject of its certificate, and on a Unix socket the user whose process it is. */
#ifndef CLAVE_SERVER_ACCESS_AUTH_H
#define CLAVE_SERVER_ACCESS_AUTH_H

#include "server/server.h"
#include "wire/jute.h"

/* The longest text of an address, and of a user's number. */
enum { AUTH_IP_TEXT = 40, AUTH_UID_TEXT = 11 };

struct identities {
    struct buf digests; /* jute strings "user:base64(SHA1(user:password))" */
    int32_t count;
    bool is_super;      /* passes every check */
    bool knows_x509;    /* the server has this scheme */
    bool has_subject;   /* the client has shown a certificate */
    struct buf subject; /* as in x509_name.h */
    uint8_t family;     /* as in peer_addr */
    uint8_t ip[16];
    bool has_uid; /* as in peer_addr */
    uint32_t uid;
};

void clave__identities_init(struct identities *who, const struct clave_mem *mem,
                            const struct peer_addr *peer);
void clave__identities_fini(struct identities *who);

/* Takes an auth packet. EAUTHFAILED: no such scheme, or too many users; ENOMEM. */
clave_err clave__identities_add(struct identities *who, struct jbytes scheme, struct jbytes auth);
/* Takes the subject of the client's certificate, a Name in DER. EINVAL: not a Name; ENOMEM. */
clave_err clave__identities_certify(struct identities *who, const void *der, size_t n);
struct jbytes clave__identities_subject(const struct identities *who);
/* Makes a connection with this subject the super user; "": none is. */
void clave__identities_note_x509_super(struct identities *who, struct jbytes subject);
bool clave__identities_has_subject(const struct identities *who, struct jbytes id);
/* Makes a connection of this user of the machine the super user; "": none is. */
void clave__identities_note_super_uid(struct identities *who, struct jbytes uid);
/* Makes a connection that has presented this digest user the super user; "": there is none. */
void clave__identities_note_super(struct identities *who, struct jbytes digest);
bool clave__identities_has_digest(const struct identities *who, struct jbytes id);
struct jvec clave__identities_digests(const struct identities *who);
/* The user of "user:rest". */
struct jbytes clave__identities_user(struct jbytes id);
/* The address of a connection that has one. */
void clave__identities_ip_text(const struct identities *who, char out[AUTH_IP_TEXT]);
/* The answer to whoAmI: a vector of {scheme, user}, digest users without their secret. */
void clave__identities_put(struct jwriter *w, const struct identities *who);

/* Whether the connection has an identity of one of these schemes, "digest,x509". */
bool clave__identities_have_scheme(const struct identities *who, const char *schemes);

/* An id of the ip scheme: an IPv4 or IPv6 address with optional "/bits". */
bool clave__ip_valid(struct jbytes id);
bool clave__ip_matches(struct jbytes id, const struct identities *who);

/* An id of the uid scheme: the number of a user, decimal without leading zeros. */
bool clave__uid_valid(struct jbytes id);
bool clave__uid_matches(struct jbytes id, const struct identities *who);
/* The id of this connection, which has one. */
struct jbytes clave__uid_text(const struct identities *who, char out[AUTH_UID_TEXT]);

#endif
