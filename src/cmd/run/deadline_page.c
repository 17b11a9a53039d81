/* deadline_page.c - the memory behind deadline_page.h: a sealed memfd. guardian.c creates it,
 * child.c writes it, `clave check` reads it. Only this process and the guardian can write to it. */
#include "cmd/run/deadline_page.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The command may read the page, not write it: whatever it does, the guardian's view is its own.
 * Kernels before 5.1 do not know this seal. */
static void deadline_page_seal(int fd)
{
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
}

bool deadline_page_new(struct deadline_page **out, int *fd)
{
    void *p = MAP_FAILED;
    *fd = memfd_create("clave-deadline", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd >= 0 && ftruncate(*fd, sizeof **out) == 0)
        p = mmap(NULL, sizeof **out, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (p == MAP_FAILED) {
        int err = errno;
        if (*fd >= 0)
            close(*fd);
        errno = err;
        return false;
    }
    deadline_page_seal(*fd);
    *out = p;
    return true;
}

bool deadline_page_read(const char *file, int64_t token, int64_t session_id, int64_t *deadline)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *map = MAP_FAILED;
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_size == (off_t)sizeof(struct deadline_page))
        map = mmap(NULL, sizeof(struct deadline_page), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return false;
    const struct deadline_page *p = map;
    /* The name contains a process id, which may belong to another process by now. */
    bool same = atomic_load(&p->token) == token && atomic_load(&p->session_id) == session_id;
    *deadline = deadline_page_get(p);
    munmap(map, sizeof *p);
    return same;
}
