/* path.c - znode paths; see path.h. The client checks paths before it sends them, the server when
 * it receives them, by the same rules. */
#include "base/path.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

static const char *path_char_fault(uint32_t c)
{
    if (c == 0)
        return "contains a NUL character";
    if (c <= 0x1f || (c >= 0x7f && c <= 0x9f))
        return "contains a control character";
    /* Apache's Java server sees a character above the BMP as two surrogates and refuses both. */
    if ((c >= 0xd800 && c <= 0xf8ff) || c >= 0xfff0)
        return "contains a character ZooKeeper does not allow";
    return NULL;
}

static const char *path_segment_fault(const char *s, size_t n)
{
    if (n == 0)
        return "contains an empty segment (//)";
    if ((n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
        return "contains a relative segment (. or ..)";
    return NULL;
}

const char *clave__path_fault(const char *path, size_t n, bool sequential)
{
    if (n == 0)
        return "is empty";
    if (path[0] != '/')
        return "does not begin with /";
    if (n == 1)
        return NULL;
    for (size_t i = 0; i < n;) {
        uint32_t c = (unsigned char)path[i];
        size_t len = c < 0x80 ? 1 : clave__utf8_decode(path + i, n - i, &c);
        const char *fault = len ? path_char_fault(c) : "is not valid UTF-8";
        if (fault)
            return fault;
        i += len;
    }
    size_t start = 1;
    for (size_t i = 1; i <= n; i++) {
        if (i < n && path[i] != '/')
            continue;
        if (i == n && start == n)
            return sequential ? NULL : "ends with /";
        /* Digits will follow the last segment of a sequential path. */
        const char *fault =
            i == n && sequential ? NULL : path_segment_fault(path + start, i - start);
        if (fault)
            return fault;
        start = i + 1;
    }
    return NULL;
}

size_t clave__path_parent_len(const char *path, size_t n)
{
    if (n <= 1)
        return 0;
    while (n > 0 && path[n - 1] != '/')
        n--;
    return n > 1 ? n - 1 : n;
}

const char *clave__path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* How much of a directory, or of a chroot, precedes the '/' of what is below it. */
static size_t path_dir_len(const char *dir)
{
    return strcmp(dir, "/") == 0 ? 0 : strlen(dir);
}

size_t clave__path_put_child(char *out, const char *dir, const char *name)
{
    size_t ndir = path_dir_len(dir), nname = strlen(name);
    memcpy(out, dir, ndir);
    out[ndir] = '/';
    memcpy(out + ndir + 1, name, nname + 1);
    return ndir + 1 + nname;
}

char *clave__path_child(const struct clave_mem *mem, const char *dir, const char *name)
{
    const struct clave_mem hooks = clave__mem_or_default(mem);
    char *path = clave__mem_alloc(&hooks, strlen(dir) + strlen(name) + 2);
    if (path)
        clave__path_put_child(path, dir, name);
    return path;
}

bool clave__path_is_child(const char *path, const char *dir, const char *name)
{
    size_t n = path_dir_len(dir);
    return strncmp(path, dir, n) == 0 && path[n] == '/' && strcmp(path + n + 1, name) == 0;
}
