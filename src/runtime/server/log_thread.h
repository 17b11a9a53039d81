/* log_thread.h - the thread that writes the log: a batch of records at a time, durable before it is
 * reported. */
#ifndef CLAVE_RUNTIME_SERVER_LOG_THREAD_H
#define CLAVE_RUNTIME_SERVER_LOG_THREAD_H

#include <stdbool.h>

#include "runtime/server/disk_thread.h"
#include "runtime/server/log_file.h"

struct log_thread {
    struct disk_thread thread;
    int dir;
    struct log_file file;
    /* Of the batch in thread.bytes. */
    int64_t first_zxid;
    int64_t last_zxid;
    bool new_file; /* start a file named by first_zxid */
    /* When DONE. */
    int64_t grown;    /* bytes by which the logs became longer */
    uint64_t took_ns; /* its write and its sync */
};

/* EIO: as clave__disk_thread_start. */
clave_err clave__log_thread_start(struct log_thread *t, int dir, const struct clave_mem *mem,
                                  uv_async_t *done);
/* Lets the current batch finish, and closes the file. */
void clave__log_thread_stop(struct log_thread *t);

#endif
