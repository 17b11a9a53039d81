/* allocator.h - a process's memory: the hooks of an allocator that counts its blocks, and fails
 * where it is told to. */
#ifndef CLAVE_SIM_ALLOCATOR_H
#define CLAVE_SIM_ALLOCATOR_H

#include <stddef.h>

#include "clave/mem.h"

struct allocator {
    clave_mem mem;
    size_t blocks;    /* taken and not given back */
    unsigned fail_in; /* the so many-th allocation from now on fails; 0: none does */
    size_t refused;   /* in this life of the process */
    size_t refused_ever;
};

void allocator_init(struct allocator *p);

#endif
