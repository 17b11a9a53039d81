/* http_roles.h - who may what at a gate, as it has read it. A role of the team on a path is taken
 * away and given back; each gate reads that when it runs, and not at the same time as the other. */
#ifndef CLAVE_SIM_HTTP_ROLES_H
#define CLAVE_SIM_HTTP_ROLES_H

#include "http/http_places.h"
#include "web/http/admission.h"

struct http_role_file {
    struct web_grant grants[HTTP_SITES + 2];
    struct web_user users[4];
    struct web_access access;
};

struct http_roles {
    struct http_role_file files[2]; /* the one that it goes by, and the next */
    unsigned file;
    int64_t took_at[HTTP_SITES]; /* true time; HTTP_NEVER: the team has the role */
};

/* Reads them anew; `may`: what the team may lock. */
const struct web_access *http_roles_read(struct http_roles *r, int64_t now, const bool *may);

#endif
