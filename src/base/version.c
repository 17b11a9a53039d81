/* version.c - the version of the library in use. What the server tells of itself is in
 * server/version.c. */
#include "clave/version.h"

const char *clave_version(void)
{
    return CLAVE_VERSION_STRING;
}
