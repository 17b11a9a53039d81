#include "lib/mirror_disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mirror_entry {
    char *file;
    enum mirror_kind kind;
    void *data;
    size_t len;
};

struct mirror_disk {
    struct mirror_entry *list;
    size_t n;
};

static struct mirror_entry *find(const struct mirror_disk *d, const char *file)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->list[i].file, file) == 0)
            return &d->list[i];
    return NULL;
}

static bool is_below(const char *file, const char *dir)
{
    size_t n = strlen(dir);
    return n == 0 || (strncmp(file, dir, n) == 0 && file[n] == '/');
}

static void forget(struct mirror_entry *e)
{
    free(e->file);
    free(e->data);
}

struct mirror_disk *mirror_disk_new(void)
{
    struct mirror_disk *d = calloc(1, sizeof *d);
    if (!d)
        abort();
    return d;
}

void mirror_disk_free(struct mirror_disk *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n; i++)
        forget(&d->list[i]);
    free(d->list);
    free(d);
}

/* Also what is below it. */
static void remove_all(struct mirror_disk *d, const char *file, bool itself)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->n; i++) {
        struct mirror_entry *e = &d->list[i];
        if (is_below(e->file, file) || (itself && strcmp(e->file, file) == 0))
            forget(e);
        else
            d->list[kept++] = *e;
    }
    d->n = kept;
}

static bool has_parent(const struct mirror_disk *d, const char *file)
{
    char dir[4096];
    const char *slash = strrchr(file, '/');
    if (!slash)
        return true; /* the directory of the mirror */
    snprintf(dir, sizeof dir, "%.*s", (int)(slash - file), file);
    const struct mirror_entry *e = find(d, dir);
    return e && e->kind == MIRROR_DIRECTORY;
}

bool mirror_disk_do(struct mirror_disk *d, const struct mirror_step *s)
{
    if (!has_parent(d, s->file))
        return s->kind == MIRROR_NOTHING;
    if (s->kind != MIRROR_DIRECTORY)
        remove_all(d, s->file, true);
    if (s->kind == MIRROR_NOTHING)
        return true;
    struct mirror_entry *e = find(d, s->file);
    if (!e) {
        d->list = realloc(d->list, (d->n + 1) * sizeof *d->list);
        if (!d->list)
            abort();
        e = &d->list[d->n++];
        *e = (struct mirror_entry){.file = malloc(strlen(s->file) + 1)};
        if (!e->file)
            abort();
        memcpy(e->file, s->file, strlen(s->file) + 1);
    }
    free(e->data);
    e->kind = s->kind;
    e->len = s->kind == MIRROR_DIRECTORY && !s->has_data ? 0 : s->len;
    e->data = malloc(e->len + 1);
    if (!e->data)
        abort();
    if (e->len > 0)
        memcpy(e->data, s->data, e->len);
    return true;
}

/* ---- comparing ------------------------------------------------------------------------------- */

struct comparison {
    const struct mirror_disk *d;
    const char *top;
    char *out;
    size_t cap, nodes;
};

/* '%' is not in the names of these tests' trees but as "%25" would show it. */
static bool compare_node(const clave_cache_node *n, void *arg)
{
    struct comparison *k = arg;
    const char *file = n->path + (k->top[1] ? strlen(k->top) : 0);
    file += *file == '/';
    if (n->unreadable)
        return true;
    const struct mirror_entry *e = find(k->d, file);
    enum mirror_kind kind = !*file || n->stat.num_children > 0 ? MIRROR_DIRECTORY : MIRROR_FILE;
    k->nodes++;
    if (!e)
        snprintf(k->out, k->cap, "%s is not on the disk", n->path);
    else if (e->kind != kind)
        snprintf(k->out, k->cap, "%s has %d children, but is %s", n->path,
                 (int)n->stat.num_children, e->kind == MIRROR_DIRECTORY ? "a directory" : "a file");
    else if (e->len != n->len || (n->len > 0 && memcmp(e->data, n->data, n->len) != 0))
        snprintf(k->out, k->cap, "%s has other data on the disk", n->path);
    return !k->out[0];
}

void mirror_disk_compare(const struct mirror_disk *d, const clave_async_cache *cache,
                         const char *top, char *out, size_t cap)
{
    struct comparison k = {.d = d, .top = top, .out = out, .cap = cap};
    out[0] = '\0';
    (void)clave_async_cache_walk(cache, top, compare_node, &k);
    size_t files = d->n - (d->n > 0 && find(d, "") && k.nodes == 0); /* without a node, too */
    if (!out[0] && files != k.nodes)
        snprintf(out, cap, "%zu files and directories are on the disk, and %zu nodes at %s", files,
                 k.nodes, top);
}
