/* sha1.h - SHA-1, for ZooKeeper's digest scheme, and HMAC with it. SHA-1 protects nothing by
 * itself. */
#ifndef CLAVE_BASE_HASH_SHA1_H
#define CLAVE_BASE_HASH_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { SHA1_LEN = 20 };

void clave__sha1(const void *p, size_t n, uint8_t out[SHA1_LEN]);

/* HMAC-SHA-1 (RFC 2104) with a key of at most 64 bytes, which is hashed once, when it is taken. */
struct hmac_key {
    uint32_t inner[5], outer[5];
};
void clave__hmac_take_key(struct hmac_key *k, const void *key, size_t n);
void clave__hmac(const struct hmac_key *k, const void *p, size_t n, uint8_t out[SHA1_LEN]);

#endif
