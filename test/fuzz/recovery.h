/* recovery.h - what a server has logged is what it has. */
#ifndef CLAVE_TEST_FUZZ_RECOVERY_H
#define CLAVE_TEST_FUZZ_RECOVERY_H

#include "lib/memserver.h"

/* The log, replayed, gives the same tree and sessions. */
void recovery_check(const struct memserver *d);

#endif
