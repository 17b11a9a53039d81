/* auth.h - the identities of a connection: its address, the digest users that it has presented, the
 * subject of its certificate and, on a Unix socket, the user that owns the client's process. */
#ifndef CLAVE_SERVER_ACCESS_AUTH_H
#define CLAVE_SERVER_ACCESS_AUTH_H

#include "server/server.h"
#include "wire/jute.h"

/* The longest text of an IP address, and of a uid. */
enum { AUTH_IP_TEXT = 40, AUTH_UID_TEXT = 11 };

struct identities {
    struct buf digests; /* jute strings "user:base64(SHA1(user:password))" */
    int32_t count;
    bool is_super;      /* it passes every check */
    bool knows_x509;    /* the server supports the x509 scheme */
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

/* Adds the identity in an auth packet. EAUTHFAILED: a scheme that is unknown or that this
 * connection cannot use, or too many users. ENOMEM. */
clave_err clave__identities_add(struct identities *who, struct jbytes scheme, struct jbytes auth);
/* Adds the subject of the client's certificate, a Name in DER. EINVAL: not a Name. ENOMEM. */
clave_err clave__identities_certify(struct identities *who, const void *der, size_t n);
struct jbytes clave__identities_subject(const struct identities *who);
/* Makes the connection a super user if it has this certificate subject; "" matches nothing. */
void clave__identities_note_x509_super(struct identities *who, struct jbytes subject);
bool clave__identities_has_subject(const struct identities *who, struct jbytes id);
/* Makes the connection a super user if it belongs to this user of the machine; "" matches
 * nothing. */
void clave__identities_note_super_uid(struct identities *who, struct jbytes uid);
/* Makes the connection a super user if it has presented this digest user; "" matches nothing. */
void clave__identities_note_super(struct identities *who, struct jbytes digest);
bool clave__identities_has_digest(const struct identities *who, struct jbytes id);
struct jvec clave__identities_digests(const struct identities *who);
/* The user in "user:rest". */
struct jbytes clave__identities_user(struct jbytes id);
/* The text of the connection's address, which must be an IP address. */
void clave__identities_ip_text(const struct identities *who, char out[AUTH_IP_TEXT]);
/* Writes the answer to whoAmI: a vector of {scheme, user}, where digest users come without their
 * secret. */
void clave__identities_put(struct jwriter *w, const struct identities *who);

/* True if the connection has an identity of one of these schemes, such as "digest,x509". */
bool clave__identities_have_scheme(const struct identities *who, const char *schemes);

/* True if this is an id of the ip scheme: an IPv4 or IPv6 address, optionally followed by
 * "/bits". */
bool clave__ip_valid(struct jbytes id);
bool clave__ip_matches(struct jbytes id, const struct identities *who);

/* True if this is an id of the uid scheme: a uid in decimal, without leading zeros. */
bool clave__uid_valid(struct jbytes id);
bool clave__uid_matches(struct jbytes id, const struct identities *who);
/* The uid of the connection, which must have one. */
struct jbytes clave__uid_text(const struct identities *who, char out[AUTH_UID_TEXT]);

#endif
