/* access.c - see access.h. Called by web.c, and by the driver that reads a configuration. */
#include "web/http/access.h"

#include <string.h>

static const char *const role_names[] = {
    [WEB_NONE] = "none",   [WEB_READ] = "read",   [WEB_LOCK] = "lock",
    [WEB_WRITE] = "write", [WEB_ADMIN] = "admin",
};

const char *clave__web_role_name(enum web_role role)
{
    return role_names[role];
}

bool clave__web_role_parse(const char *name, enum web_role *out)
{
    for (int role = WEB_READ; role <= WEB_ADMIN; role++) {
        if (strcmp(name, role_names[role]) == 0) {
            *out = (enum web_role)role;
            return true;
        }
    }
    return false;
}
