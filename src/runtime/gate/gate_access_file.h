/* gate_access_file.h - who may use a gate: the file of tokens, the gate's names, and the proxies
 * before it.
 *
 * A line of the file is "WHO ROLE[,ROLE] [PREFIX...] [name=NAME]": WHO is a token of at least 16
 * characters, "uid=NUMBER" of a Unix socket's client, or "x509=SUBJECT" of a client's certificate;
 * words are in quotes when they have spaces; ROLE is read, lock, write or admin, each of which
 * includes those before it; without a prefix it holds everywhere. Further lines for the same WHO
 * add to what it may. A '#' begins a comment. */
#ifndef CLAVE_RUNTIME_GATE_GATE_ACCESS_FILE_H
#define CLAVE_RUNTIME_GATE_GATE_ACCESS_FILE_H

#include "runtime/start_error.h"
#include "web/http/authorization.h"

struct gate_access; /* opaque: a struct web_access and its texts */

/* What it is made of; lists have commas between their parts, and each may be NULL. */
struct gate_access_options {
    const char *tokens;    /* the file */
    const char *hosts;     /* names of the gate */
    const char *publics;   /* as clients behind a proxy see it: "https://gate.example:8443/clave" */
    const char *prefix;    /* "/clave": may stand before every path [that of `publics`] */
    const char *proxies;   /* that are believed: addresses, "10.0.0.0/8", "unix" */
    const char *fleetlock; /* the path of FleetLock's slots; NULL: its endpoints are off */
    const char *fleets;    /* addresses whose machines need no token there */
};

/* EINVAL: a line or value is malformed, or others may read the file; EIO, ENOMEM. */
clave_err gate_access_load(struct gate_access **out, const struct gate_access_options *o,
                           const struct fault *f);
void gate_access_free(struct gate_access *a); /* NULL is ignored */
const struct web_access *gate_access_of(const struct gate_access *a);

#endif
