/* owner_env.c - makes CLAVE_OWNER: "OUTER/INNER", random numbers in hexadecimal. lock_flags.c calls
 * it.
 */
#include "cmd/run/owner_env.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clave/uv.h"

enum { SELF_CAP = 20 };

void owner_env_make(char out[OWNER_CAP])
{
    const char *whole = getenv("CLAVE_OWNER");
    /* Nested too deep: starts afresh, so deadlocks through this one go undetected. */
    if (!whole || strlen(whole) > OWNER_CAP - SELF_CAP)
        whole = "";
    snprintf(out, OWNER_CAP, "%s%s%016" PRIx64, whole, *whole ? "/" : "", clave_random_seed());
}
