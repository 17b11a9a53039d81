/* recorder.h - everything that a server does to the files of version-2, in order, how it made the
 * directory and those above, and between it what it acknowledged. The calls are caught where the
 * program is linked (-Wl,--wrap), so that it is the server's own code that runs, on a real disk. */
#ifndef CLAVE_TEST_POWER_RECORDER_H
#define CLAVE_TEST_POWER_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Of the test itself, in every build. */
static inline void must(bool fine)
{
    if (!fine)
        abort();
}

enum event_kind {
    EVENT_CREATE, /* a file of that name, empty */
    EVENT_WRITE,
    EVENT_LENGTH,      /* made so long, or cut */
    EVENT_SYNC,        /* of a file */
    EVENT_SYNC_FAILED, /* what was written before it is dropped from the disk's queue, and stays in
                          the page cache: only what is written again is synced by a later one */
    EVENT_SYNC_DIR,
    EVENT_MKDIR,      /* of version-2, or a directory above it; `file` tells them apart */
    EVENT_SYNC_ABOVE, /* of the directory above that one, and so of its name */
    EVENT_RENAME,
    EVENT_UNLINK,
    EVENT_ACK, /* a client was told that a zxid is done */
};

struct event {
    enum event_kind kind;
    unsigned file; /* which one, counted from 0 */
    char name[48]; /* CREATE, UNLINK, MKDIR; RENAME: the old one */
    char renamed[48];
    int64_t at;     /* WRITE: the offset; LENGTH: the length; ACK: the zxid */
    uint8_t *bytes; /* WRITE */
    size_t n;
};

struct recording {
    struct event *events;
    size_t n;
    size_t cap;
    unsigned files;
};

/* Begins with the files that are in a directory (version-2), which are taken for synced; it may not
 * be there yet. Nothing is recorded before, nor after _end. */
void recorder_begin(const char *dir);
void recorder_ack(int64_t zxid); /* any thread */
/* From now on no sync of a file is done, and the server ends with a batch written and not synced:
 * because the disk refuses it, or, not recorded, because the process was killed before it. */
enum syncs { SYNCS_WORK, SYNCS_FAIL, SYNCS_NEVER_COME };
void recorder_set_syncs(enum syncs how);
/* The recording is the caller's. */
struct recording recorder_end(void);
void recording_free(struct recording *r);

#endif
