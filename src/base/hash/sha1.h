/* sha1.h - SHA-1, for ZooKeeper's digest scheme only. It protects nothing by itself. */
#ifndef CLAVE_BASE_HASH_SHA1_H
#define CLAVE_BASE_HASH_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { SHA1_LEN = 20 };

void clave__sha1(const void *p, size_t n, uint8_t out[SHA1_LEN]);

#endif
