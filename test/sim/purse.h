/* purse.h - a process's memory: allocator hooks that count what is out. */
#ifndef CLAVE_SIM_PURSE_H
#define CLAVE_SIM_PURSE_H

#include <stddef.h>

#include "clave/mem.h"

struct purse {
    clave_mem mem;
    size_t blocks;     /* taken and not given back */
    size_t most;       /* at any time */
    unsigned fail_one; /* the next allocation of so many fails; 0: none does */
};

void purse_init(struct purse *p);

#endif
