/* workload.h - a server and clients that write to it, several requests under way at a time. */
#ifndef CLAVE_TEST_POWER_WORKLOAD_H
#define CLAVE_TEST_POWER_WORKLOAD_H

#include <stdint.h>

/* Serves `data`, has about so many requests made, tells the recorder of each that was acknowledged,
 * and stops the server. */
void workload_run(const char *data, unsigned writes, uint64_t seed);

#endif
