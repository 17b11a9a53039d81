/* access.h - who may do what: tokens, uids of Unix sockets, client certificates, each with a role
 * below a path; which hosts and origins a request may name. The driver makes a struct web_access
 * from its configuration and hands it to the engine, which decides. Pure. */
#ifndef CLAVE_WEB_HTTP_ACCESS_H
#define CLAVE_WEB_HTTP_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each includes those before it. NONE: anybody, without proof. */
enum web_role { WEB_NONE, WEB_READ, WEB_LOCK, WEB_WRITE, WEB_ADMIN };

/* "none", "read", "lock", "write", "admin". A static string. */
const char *clave__web_role_name(enum web_role role);
/* The role of this name, NONE excepted; false: there is none. */
bool clave__web_role_parse(const char *name, enum web_role *out);

/* `role` on `prefix` and everything below it; "/" is everything. */
struct web_grant {
    enum web_role role;
    const char *prefix;
};

/* Somebody, known by any of token, uid and certificate. */
struct web_user {
    const char *name;
    const char *token;       /* NULL: none */
    int64_t uid;             /* of a Unix socket's client; -1: none */
    const char *tls_subject; /* NULL: none */
    const struct web_grant *grants;
    size_t ngrants;
};

/* Without users a Unix socket's own uid (`owner_uid`) is admin, a loopback address may read and
 * lock, and nobody else may anything. */
struct web_access {
    const struct web_user *users;
    size_t nusers;
    int64_t owner_uid;        /* of the gate's process: always admin; -1: not known */
    const char *const *hosts; /* further names of this gate, without ports: "gate.example.com" */
    size_t nhosts;
};

#endif
