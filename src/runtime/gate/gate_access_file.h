/* gate_access_file.h - who may use a gate: the file of tokens, the gate's own names, and the
 * proxies in front of it.
 *
 * A line of the file is "WHO ROLE[,ROLE] [PREFIX...] [name=NAME]". WHO is a token of at least 16
 * characters, "uid=NUMBER" for the user of a client on a Unix socket, or "x509=SUBJECT" for a
 * client's certificate. Words that contain spaces are in quotes. ROLE is read, lock, write or
 * admin, each of which includes those before it. Without a prefix the role holds everywhere.
 * Further lines for the same WHO add to its rights. A '#' begins a comment. */
#ifndef CLAVE_RUNTIME_GATE_GATE_ACCESS_FILE_H
#define CLAVE_RUNTIME_GATE_GATE_ACCESS_FILE_H

#include "runtime/start_error.h"
#include "web/http/admission.h"

struct gate_access; /* opaque: a struct web_access with its texts */

/* What a struct gate_access is made from; parts of lists are separated by commas, and each may be
 * NULL. */
struct gate_access_options {
    const char *tokens; /* the file */
    const char *hosts;  /* names of the gate */
    /* How clients behind a proxy see the gate: "https://gate.example:8443/clave". */
    const char *publics;
    const char *prefix;    /* "/clave": may precede every path [the path of `publics`] */
    const char *proxies;   /* proxies that are trusted: addresses, "10.0.0.0/8", "unix" */
    const char *fleetlock; /* the path of FleetLock's slots; NULL: its endpoints are off */
    const char *fleets;    /* addresses whose machines need no token for FleetLock */
};

/* EINVAL: a line or a value is malformed, or others can read the file; EIO, ENOMEM. */
clave_err gate_access_load(struct gate_access **out, const struct gate_access_options *o,
                           const struct fault *f);
void gate_access_free(struct gate_access *a); /* NULL is ignored */
const struct web_access *gate_access_of(const struct gate_access *a);

#endif
