/* crash_disk.h - a directory as a disk may hold it when the power goes: what was synced, and any
 * blocks, lengths and names of what was not.
 *
 * What is assumed of disks and file systems: a sector of 512 bytes is written whole or not at all,
 * and what was never written in a file reads as zeros (or the file is shorter). The last write may
 * nevertheless end at any byte. A name appears when its directory is synced, or before. */
#ifndef CLAVE_TEST_POWER_CRASH_DISK_H
#define CLAVE_TEST_POWER_CRASH_DISK_H

#include "base/rand.h"
#include "recorder.h"

enum { CRASH_DISK_FILES = 4096, CRASH_DISK_NAMES = 128 };

struct content {
    uint8_t *p;
    size_t n;
    size_t cap;
};

struct crash_disk_file {
    struct content now; /* as the programs see it */
    struct content
        queued; /* as the next sync makes it: what one that failed dropped is not in it */
    struct content synced; /* as it is certain to be */
};

struct crash_disk_name {
    char name[48];
    unsigned file;
};

struct crash_disk_names {
    struct crash_disk_name of[CRASH_DISK_NAMES];
    size_t n;
};

struct crash_disk {
    struct crash_disk_file *files[CRASH_DISK_FILES];
    struct crash_disk_names synced;
    const struct event *pending[CRASH_DISK_NAMES]; /* changes of names since */
    size_t npending;
    bool unsynced_dirs[8]; /* made, and their names are not synced: version-2 goes with any of them
                            */
    bool lies_about_files; /* syncs do nothing: what the test has to find */
    bool lies_about_names;
};

void crash_disk_init(struct crash_disk *p);
void crash_disk_fini(struct crash_disk *p);
void crash_disk_apply(struct crash_disk *p, const struct event *e);

/* What has become of what was not synced. */
enum loss {
    LOSS_ALL,
    LOSS_NONE,
    LOSS_BYTES,      /* all of it: zeros in its place */
    LOSS_TAIL,       /* from a byte on, and the file is as short */
    LOSS_TAIL_ZEROS, /* from a byte on: zeros */
    LOSS_SECTORS,    /* any, of 512 bytes */
    LOSS_PAGES,      /* any, of 4096 */
    LOSS_ONE_SECTOR,
    LOSS_BUT_ONE_SECTOR,
    LOSS_KINDS
};
enum names { NAMES_OLD, NAMES_NEW, NAMES_ANY, NAMES_KINDS };
struct cut {
    enum loss loss;
    enum names names;
    size_t byte; /* TAIL: so many of the unsynced bytes are kept; SIZE_MAX: any number */
    struct rand_state *rand;
};
/* Whether any change of names is not synced. */
bool crash_disk_has_pending_names(const struct crash_disk *p);
/* Bytes that are not synced, of the file that has most. */
size_t crash_disk_unsynced(const struct crash_disk *p);
/* Writes the files into `dir`, which is emptied first. */
void crash_disk_write(const struct crash_disk *p, const struct cut *how, const char *dir);

#endif
