/* file_names.c - the names of the files in version-2, and what is there by them (file_names.h).
 * Everything that reads, writes or removes these files finds them through here. */
#include "runtime/store/file_names.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- names ---------------------------------------------------------------------------------- */

/* The zxid after "log." or "snapshot.", in lower-case hexadecimal without leading zeros as Apache
 * writes it; *rest is what follows. */
static bool file_name_zxid(const char *s, int64_t *zxid, const char **rest)
{
    uint64_t v = 0;
    size_t n = strspn(s, "0123456789abcdef");
    if (n == 0 || n > 16 || (n > 1 && *s == '0'))
        return false;
    for (size_t i = 0; i < n; i++)
        v = v << 4 | (uint64_t)(s[i] <= '9' ? s[i] - '0' : s[i] - 'a' + 10);
    *zxid = (int64_t)v;
    *rest = s + n;
    return *zxid >= 0 && *zxid < INT64_MAX;
}

enum file_kind clave__file_kind(const char *name, int64_t *zxid)
{
    const char *rest;
    *zxid = -1;
    if (strncmp(name, "log.", 4) == 0 && file_name_zxid(name + 4, zxid, &rest) && *rest == '\0')
        return FILE_LOG;
    if (strncmp(name, "snapshot.", 9) == 0 && file_name_zxid(name + 9, zxid, &rest)) {
        if (*rest == '\0')
            return FILE_SNAPSHOT;
        if (strcmp(rest, ".gz") == 0 || strcmp(rest, ".snappy") == 0)
            return FILE_COMPRESSED;
    }
    if (strncmp(name, FILE_UNFINISHED_PREFIX, strlen(FILE_UNFINISHED_PREFIX)) == 0)
        return FILE_UNFINISHED;
    if (strcmp(name, "currentEpoch") == 0 || strcmp(name, "acceptedEpoch") == 0 ||
        strcmp(name, FILE_LONGEST_SESSION) == 0)
        return FILE_KNOWN;
    return FILE_UNKNOWN;
}

void clave__file_name(char out[FILE_NAME_SIZE], enum file_kind kind, int64_t zxid)
{
    assert(kind == FILE_LOG || kind == FILE_SNAPSHOT);
    snprintf(out, FILE_NAME_SIZE, "%s.%" PRIx64, kind == FILE_LOG ? "log" : "snapshot",
             (uint64_t)zxid);
}

/* ---- lists ---------------------------------------------------------------------------------- */

static int file_list_by_zxid(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int file_list_append(struct file_list *l, size_t *cap, int64_t zxid)
{
    if (l->n == *cap) {
        size_t grown = *cap ? *cap * 2 : 16;
        int64_t *p = realloc(l->zxid, grown * sizeof *p);
        if (!p)
            return ENOMEM;
        l->zxid = p;
        *cap = grown;
    }
    l->zxid[l->n++] = zxid;
    return 0;
}

int clave__file_list_read(int dir, enum file_kind kind, struct file_list *out)
{
    size_t cap = 0;
    int err = 0;
    *out = (struct file_list){NULL, 0};
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* its own position */
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        err = errno;
        if (fd >= 0)
            close(fd);
        return err;
    }
    const struct dirent *e;
    int64_t zxid;
    errno = 0;
    while (err == 0 && (e = readdir(d)))
        if (clave__file_kind(e->d_name, &zxid) == kind)
            err = file_list_append(out, &cap, zxid);
    if (err == 0)
        err = errno;
    closedir(d);
    if (err != 0)
        clave__file_list_free(out);
    else if (out->n > 0)
        qsort(out->zxid, out->n, sizeof *out->zxid, file_list_by_zxid);
    return err;
}

void clave__file_list_free(struct file_list *l)
{
    free(l->zxid);
    *l = (struct file_list){NULL, 0};
}
