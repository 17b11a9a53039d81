/* txn_log_file.c - writes one log (txn_log_file.h); the disk's thread calls it. The file gets its
 * name when its header is on the disk, and a batch is durable when _append has returned. */
#include "runtime/store/txn_log_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/store/file_io.h"
#include "runtime/store/file_names.h"
#include "server/server.h"

/* How far a log is extended: as much again as it has, within these bounds. */
enum { LEAST_ROOM = 64 * 1024, MOST_ROOM = 8 * 1024 * 1024 };
/* How much of it is filled with zeros after a batch, how long the batch may be, and the length of
 * one write: an append into a page of the cache that came of a longer one takes longer. Behind a
 * longer batch zeros would cost more than they save. */
enum { FILL = 256 * 1024, FILL_BATCH = 32 * 1024, FILL_PIECE = 16 * 1024 };

int clave__txn_log_file_create(struct txn_log_file *f, int dir, int64_t first_zxid)
{
    char name[FILE_NAME_SIZE];
    uint8_t header[SERVER_LOG_HEADER];
    clave__file_name(name, FILE_LOG, first_zxid);
    clave__server_log_header(header);
    f->fd = openat(dir, FILE_UNFINISHED_LOG, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (f->fd < 0)
        return errno;
    f->end = f->room = f->filled = sizeof header;
    int err = clave__file_write(f->fd, header, sizeof header, 0);
    if (err == 0 && (fdatasync(f->fd) != 0 || renameat(dir, FILE_UNFINISHED_LOG, dir, name) != 0 ||
                     fsync(dir) != 0))
        err = errno;
    if (err != 0) {
        close(f->fd);
        f->fd = -1;
    }
    return err;
}

/* Makes room for n bytes and some more. Where that is impossible, on a full disk or a file system
 * without fallocate, the file grows as it is written. */
static void log_file_make_room(struct txn_log_file *f, size_t n)
{
    int64_t need = f->end + (int64_t)n;
    if (f->room == 0 || need <= f->room)
        return;
    int64_t more = need < LEAST_ROOM ? LEAST_ROOM : need > MOST_ROOM ? MOST_ROOM : need;
    if (fallocate(f->fd, 0, (off_t)f->room, (off_t)(need + more - f->room)) == 0)
        f->room = need + more;
    else
        f->room = 0;
}

/* Writes zeros into the room behind a batch of n bytes that ends there. The first sync of a block
 * that only fallocate made waits for the file system's journal. If it fails, the sync of the batch
 * says so, or nothing is lost but time. */
static void log_file_fill(struct txn_log_file *f, size_t n, int64_t end)
{
    static uint8_t zeros[FILL_PIECE];
    if (n > FILL_BATCH || end <= f->filled)
        return;
    f->filled = end + FILL < f->room ? end + FILL : f->room;
    for (int64_t at = end, piece; at < f->filled; at += piece) {
        piece = FILL_PIECE - at % FILL_PIECE;
        piece = piece < f->filled - at ? piece : f->filled - at;
        if (clave__file_write(f->fd, zeros, (size_t)piece, at) != 0)
            return;
    }
}

/* Cuts the file off after its records: the room ahead of them, and what a failed append left. A
 * failure is not reported: readers skip the zeros. */
static void log_file_cut(struct txn_log_file *f)
{
    if (f->room != f->end && ftruncate(f->fd, (off_t)f->end) == 0)
        f->room = f->end;
}

int clave__txn_log_file_append(struct txn_log_file *f, const void *p, size_t n)
{
    assert(f->fd >= 0 && f->room != INT64_MAX);
    log_file_make_room(f, n);
    int err = clave__file_write(f->fd, p, n, f->end);
    if (err == 0)
        log_file_fill(f, n, f->end + (int64_t)n);
    if (err == 0 && fdatasync(f->fd) != 0)
        err = errno;
    if (err == 0) {
        f->end += (int64_t)n;
    } else { /* it may be in the page cache and never reach the disk */
        f->room = INT64_MAX;
        log_file_cut(f);
    }
    return err;
}

void clave__txn_log_file_close(struct txn_log_file *f)
{
    if (f->fd < 0)
        return;
    log_file_cut(f);
    close(f->fd);
    f->fd = -1;
}
