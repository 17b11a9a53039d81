/* txn_log_file.h - a log being written. Its file is extended ahead of the records with zeros, which
 * readers take for padding: an fdatasync without a new length or new blocks to write does not wait
 * for the file system's journal. _create and _append return 0 or an errno. */
#ifndef CLAVE_RUNTIME_STORE_TXN_LOG_FILE_H
#define CLAVE_RUNTIME_STORE_TXN_LOG_FILE_H

#include <stddef.h>
#include <stdint.h>

struct txn_log_file {
    int fd;         /* -1: none */
    int64_t end;    /* of the records */
    int64_t room;   /* the length of the file; 0: it is not extended ahead */
    int64_t filled; /* so far zeros are written, not only allocated */
};
/* Creates a file (one of that name has no record yet, and is replaced), with its header on disk
 * before it gets its name: ZooKeeper does not start on a log without one. */
int clave__txn_log_file_create(struct txn_log_file *f, int dir, int64_t first_zxid);
/* Durable when it returns 0. What it wrote before an error is cut off at once: read again, what a
 * failed sync left in the page cache would be taken for durable. Then nothing more may be appended.
 */
int clave__txn_log_file_append(struct txn_log_file *f, const void *p, size_t n);
/* Cuts off the extension. */
void clave__txn_log_file_close(struct txn_log_file *f);

/* Its length on disk, the extension included; of a closed one too. */
static inline int64_t clave__txn_log_file_length(const struct txn_log_file *f)
{
    return f->room > f->end ? f->room : f->end;
}

#endif
