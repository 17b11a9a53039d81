/* seeds.h - the first inputs of the fuzz targets. */
#ifndef CLAVE_TEST_FUZZ_SEEDS_H
#define CLAVE_TEST_FUZZ_SEEDS_H

#include "fuzz/fuzz.h"

/* A file of one target: a first part, then the bytes. */
void keep(const char *target, const void *head, size_t head_len, const void *p, size_t n);

void keep_texts(void); /* seeds_texts.c */
void keep_plays(void); /* seeds_sessions.c */
void keep_http(void);  /* seeds_web.c */

#endif
