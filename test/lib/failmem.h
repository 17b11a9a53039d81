/* failmem.h - an allocator that fails where it is told to, and counts what is out. */
#ifndef CLAVE_TEST_FAILMEM_H
#define CLAVE_TEST_FAILMEM_H

#include <stdbool.h>
#include <stddef.h>

#include "clave/mem.h"

enum { FAILMEM_FILL = 0x5a };

struct failmem {
    struct clave_mem mem; /* the hooks; the struct must stay where it is */
    size_t live;          /* blocks out */
    size_t asked;         /* allocations since _init or _arm */
    size_t first;         /* the number of the first one to fail, from 1; 0: none */
    size_t fails;         /* so many in a row do */
    bool failed;          /* one has failed since */
    bool fills;           /* new memory has FAILMEM_FILL in every byte */
};

void failmem_init(struct failmem *f);
/* Of the allocations from now on, `fails` in a row fail, beginning with number `first`. With
 * first 0 all succeed. */
void failmem_arm(struct failmem *f, size_t first, size_t fails);
/* From now on all succeed; `failed` stays. */
void failmem_disarm(struct failmem *f);

#endif
