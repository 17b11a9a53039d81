/* process_usage.h - what this process has open, and the memory it uses: the listing of its open
 * files takes longer with fifty thousand connections than a turn of the loop may. */
#ifndef CLAVE_RUNTIME_PROCESS_USAGE_H
#define CLAVE_RUNTIME_PROCESS_USAGE_H

#include <stdint.h>

/* Below 0: not known. */
struct process_files {
    int64_t open_files;
    int64_t max_files;
    int64_t resident_bytes;
};
/* On any thread. */
struct process_files clave__process_measure(void);

#endif
