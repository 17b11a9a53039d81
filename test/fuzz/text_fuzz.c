/* text_fuzz.c - what a lock node says about its owner, paths, the names in certificates, and lists
 * of servers. What is understood of the one can be written and is understood again; a path that is
 * fine can be taken apart and put together; a name that can be written may stand in an access list;
 * of a list without a fault each server has a name and a port. */
#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "client/hosts.h"
#include "fuzz/fuzz.h"
#include "recipe/queue/identity.h"
#include "wire/x509_name.h"

/* A copy of its own size, with a NUL after it. */
static char *copy_of(const uint8_t *p, size_t n)
{
    char *copy = malloc(n + 1);
    must(copy != NULL);
    if (n > 0)
        memcpy(copy, p, n);
    copy[n] = '\0';
    return copy;
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void fuzz_identity(const uint8_t *p, size_t n)
{
    clave_identity id, again;
    char *data = copy_of(p, n);
    clave__identity_parse(data, n, &id);
    if (!id.text) {
        size_t len = clave_identity_format(&id, NULL, 0);
        char *text = malloc(len + 1);
        must(text != NULL);
        must(clave_identity_format(&id, text, len + 1) == len);
        clave__identity_parse(text, len, &again);
        must(!again.text && same(id.host, again.host) && same(id.name, again.name) &&
             same(id.command, again.command) && same(id.owner, again.owner) &&
             same(id.task, again.task) && id.pid == again.pid && id.limit == again.limit &&
             id.yields == again.yields);
        free(text);
    }
    free(data);
}

static void fuzz_path(const uint8_t *p, size_t n)
{
    char *path = copy_of(p, n);
    bool fine = clave__path_fault(path, n, false) == NULL;
    if (fine)
        must(clave__path_fault(path, n, true) == NULL && strlen(path) == n && path[0] == '/');
    if (fine && n > 1) {
        size_t parent = clave__path_parent_len(path, n);
        must(parent >= 1 && parent < n && *clave__path_name(path) != '\0');
        must(clave__path_fault(path, parent, false) == NULL);
    }
    free(path);
}

static void fuzz_name(const uint8_t *p, size_t n)
{
    const struct clave_mem mem = clave__mem_or_default(NULL);
    struct buf text;
    clave__buf_init(&text, &mem, 1 << 20);
    if (n <= INT32_MAX)
        (void)clave__x509_name_valid(clave__jbytes_n(p, n));
    if (clave__x509_name_put(&text, p, n) == CLAVE_OK) {
        const char *id = (const char *)clave__buf_bytes(&text);
        size_t len = clave__buf_len(&text);
        /* A carriage return at an end is written as Java does not read it. */
        must(clave__x509_name_valid(clave__jbytes_n(id, len)) || memchr(id, '\r', len));
    }
    clave__buf_fini(&text);
}

static void fuzz_hosts(const uint8_t *p, size_t n)
{
    const struct clave_mem mem = clave__mem_or_default(NULL);
    char *text = copy_of(p, n);
    struct hosts h;
    bool fine = clave__hosts_fault(text) == NULL;
    must((clave__hosts_init(&h, &mem, text) == CLAVE_OK) == fine);
    for (size_t i = 0; fine && i < h.count; i++)
        must(*h.list[i].name && (h.list[i].port > 0 || h.count == 1));
    must(!fine || (h.count > 0 && strlen(h.chroot) == h.chroot_len));
    must(!fine || h.chroot_len == 0 || clave__path_fault(h.chroot, h.chroot_len, false) == NULL);
    clave__hosts_fini(&h);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    switch (input_byte(&in) % 4) {
    case 0:
        fuzz_path(in.p, in.n);
        break;
    case 1:
        fuzz_identity(in.p, in.n);
        break;
    case 2:
        fuzz_name(in.p, in.n);
        break;
    default:
        fuzz_hosts(in.p, in.n);
    }
    return 0;
}
