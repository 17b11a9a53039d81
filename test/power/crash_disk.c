#include "crash_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR = 512, PAGE = 4096 };

/* ---- contents -------------------------------------------------------------------------- */

static void set_length(struct content *c, size_t n)
{
    if (n > c->cap) {
        c->cap = n * 2 + SECTOR;
        c->p = realloc(c->p, c->cap);
        must(c->p);
    }
    if (n > c->n)
        memset(c->p + c->n, 0, n - c->n);
    c->n = n;
}

static void write_into(struct content *c, const struct event *e)
{
    if (e->n == 0)
        return;
    if (c->n < (size_t)e->at + e->n)
        set_length(c, (size_t)e->at + e->n);
    memcpy(c->p + e->at, e->bytes, e->n);
}

static void copy(struct content *to, const struct content *from)
{
    to->n = 0;
    set_length(to, from->n);
    if (from->n > 0)
        memcpy(to->p, from->p, from->n);
}

static uint8_t byte_of(const struct content *c, size_t i)
{
    return i < c->n ? c->p[i] : 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void drop_name(struct crash_disk_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->of[i].name, name) == 0)
            names->of[i--] = names->of[--names->n];
}

static void add_name(struct crash_disk_names *names, const char *name, unsigned file)
{
    drop_name(names, name);
    must(names->n < CRASH_DISK_NAMES);
    snprintf(names->of[names->n].name, sizeof names->of->name, "%s", name);
    names->of[names->n++].file = file;
}

static void change_names(struct crash_disk_names *names, const struct event *e)
{
    drop_name(names, e->name);
    if (e->kind == EVENT_CREATE)
        add_name(names, e->name, e->file);
    if (e->kind == EVENT_RENAME)
        add_name(names, e->renamed, e->file);
}

static void sync_names(struct crash_disk *p)
{
    for (size_t i = 0; i < p->npending; i++)
        change_names(&p->synced, p->pending[i]);
    p->npending = 0;
}

/* ---- what happens ------------------------------------------------------------------------------
 */

void crash_disk_init(struct crash_disk *p)
{
    memset(p, 0, sizeof *p);
}

void crash_disk_fini(struct crash_disk *p)
{
    for (size_t i = 0; i < CRASH_DISK_FILES && p->files[i]; i++) {
        free(p->files[i]->now.p);
        free(p->files[i]->queued.p);
        free(p->files[i]->synced.p);
        free(p->files[i]);
    }
}

void crash_disk_apply(struct crash_disk *p, const struct event *e)
{
    struct crash_disk_file *f = NULL;
    must(e->file < CRASH_DISK_FILES);
    if (e->kind == EVENT_CREATE) {
        p->files[e->file] = calloc(1, sizeof *f);
        must(p->files[e->file]);
    }
    f = p->files[e->file];
    switch (e->kind) {
    case EVENT_WRITE:
        write_into(&f->now, e);
        write_into(&f->queued, e);
        break;
    case EVENT_LENGTH:
        set_length(&f->now, (size_t)e->at);
        set_length(&f->queued, (size_t)e->at);
        break;
    case EVENT_SYNC:
        if (!p->lies_about_files)
            copy(&f->synced, &f->queued);
        break;
    case EVENT_SYNC_FAILED:
        copy(&f->queued, &f->synced);
        set_length(&f->queued, f->now.n);
        break;
    case EVENT_SYNC_DIR:
        if (!p->lies_about_names)
            sync_names(p);
        break;
    case EVENT_CREATE:
    case EVENT_RENAME:
    case EVENT_UNLINK:
        if (p->npending == CRASH_DISK_NAMES)
            sync_names(p);
        p->pending[p->npending++] = e;
        break;
    case EVENT_MKDIR:
        p->unsynced_dirs[e->file] = true;
        break;
    case EVENT_SYNC_ABOVE:
        p->unsynced_dirs[e->file] = p->lies_about_names;
        break;
    case EVENT_ACK:
        break;
    }
}

/* ---- what is left -------------------------------------------------------------------------- */

static bool may_lose_directory(const struct crash_disk *p)
{
    for (size_t i = 0; i < sizeof p->unsynced_dirs / sizeof *p->unsynced_dirs; i++)
        if (p->unsynced_dirs[i])
            return true;
    return false;
}

bool crash_disk_has_pending_names(const struct crash_disk *p)
{
    return p->npending > 0 || may_lose_directory(p);
}

/* The bytes in which the two differ: [*from, *to). */
static bool unsynced(const struct crash_disk_file *f, size_t *from, size_t *to)
{
    size_t n = f->now.n > f->synced.n ? f->now.n : f->synced.n;
    *from = 0;
    *to = n;
    while (*from < n && byte_of(&f->now, *from) == byte_of(&f->synced, *from))
        ++*from;
    while (*to > *from && byte_of(&f->now, *to - 1) == byte_of(&f->synced, *to - 1))
        --*to;
    return *from < *to || f->now.n != f->synced.n;
}

size_t crash_disk_unsynced(const struct crash_disk *p)
{
    size_t most = 0, from, to;
    for (size_t i = 0; i < CRASH_DISK_FILES && p->files[i]; i++)
        if (unsynced(p->files[i], &from, &to) && to - from > most)
            most = to - from;
    return most;
}

static bool chance(const struct cut *how)
{
    return clave__rand_below(how->rand, 2) == 0;
}

/* Blocks of a size, each as it is now or as it was; `one`: exactly one is (or is not). */
static void mix(struct content *out, const struct crash_disk_file *f, const struct cut *how,
                size_t from, size_t to)
{
    size_t size = how->loss == LOSS_PAGES ? PAGE : SECTOR, first = from / size;
    size_t count = to > from ? (to - 1) / size + 1 - first : 0;
    size_t one = first + (size_t)clave__rand_below(how->rand, count);
    for (size_t block = first; block < first + count; block++) {
        bool lost = chance(how);
        if (how->loss == LOSS_ONE_SECTOR)
            lost = block == one;
        if (how->loss == LOSS_BUT_ONE_SECTOR)
            lost = block != one;
        for (size_t i = block * size; lost && i < (block + 1) * size && i < out->n; i++)
            out->p[i] = byte_of(&f->synced, i);
    }
}

/* Of the differing bytes the first so many are as they are now. */
static void tear(struct content *out, const struct crash_disk_file *f, const struct cut *how,
                 size_t from, size_t to)
{
    size_t kept = how->byte < to - from
                      ? how->byte
                      : (size_t)clave__rand_below(how->rand, (uint64_t)(to - from) + 1);
    for (size_t i = from + kept; i < out->n; i++)
        out->p[i] = byte_of(&f->synced, i);
    size_t least = f->synced.n < f->now.n ? f->synced.n : f->now.n;
    if (how->loss == LOSS_TAIL && from + kept < out->n)
        set_length(out, from + kept > least ? from + kept : least);
}

static void left_of(const struct crash_disk_file *f, const struct cut *how, struct content *out)
{
    size_t from, to;
    copy(out, &f->now);
    if (!unsynced(f, &from, &to))
        return;
    switch (how->loss) {
    case LOSS_ALL:
        copy(out, &f->synced);
        break;
    case LOSS_BYTES:
        for (size_t i = from; i < out->n; i++)
            out->p[i] = byte_of(&f->synced, i);
        break;
    case LOSS_TAIL:
    case LOSS_TAIL_ZEROS:
        tear(out, f, how, from, to);
        break;
    case LOSS_SECTORS:
    case LOSS_PAGES:
    case LOSS_ONE_SECTOR:
    case LOSS_BUT_ONE_SECTOR:
        mix(out, f, how, from, to);
        break;
    case LOSS_NONE:
    case LOSS_KINDS:
        break;
    }
}

static void empty(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    must(d);
    while ((e = readdir(d)))
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

void crash_disk_write(const struct crash_disk *p, const struct cut *how, const char *dir)
{
    struct crash_disk_names names = p->synced;
    struct content c = {0};
    bool is_lost = may_lose_directory(p) &&
                   (how->names == NAMES_OLD || (how->names == NAMES_ANY && chance(how)));
    for (size_t i = 0; i < p->npending; i++)
        if (how->names == NAMES_NEW || (how->names == NAMES_ANY && chance(how)))
            change_names(&names, p->pending[i]);
    empty(dir);
    int at = open(dir, O_RDONLY | O_DIRECTORY);
    must(at >= 0);
    for (size_t i = 0; i < names.n && !is_lost; i++) {
        left_of(p->files[names.of[i].file], how, &c);
        int fd = openat(at, names.of[i].name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        must(fd >= 0);
        must(write(fd, c.p, c.n) == (ssize_t)c.n);
        close(fd);
    }
    close(at);
    free(c.p);
}
