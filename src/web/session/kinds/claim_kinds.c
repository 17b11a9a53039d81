/* claim_kinds.c - see claim_kinds.h. */
#include "web/session/kinds/claim_kinds.h"

#include <string.h>

static const struct claim_kind *const kinds[] = {&clave__lock_claim, &clave__read_claim,
                                                 &clave__write_claim, &clave__semaphore_claim,
                                                 &clave__election_claim};

const struct claim_kind *clave__claim_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}
