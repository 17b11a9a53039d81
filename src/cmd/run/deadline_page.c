/* deadline_page.c - see deadline_page.h. The page is a memfd that is sealed against further
 * writable mappings. Only two processes can write to it: the runner, which mapped it before the
 * seal, and the guardian, which inherited that mapping. guardian.c creates the page, child.c writes
 * it, and `clave check` reads it.
 *
 * A mapping does not survive an exec, so a page for a runner that can be replaced in place is not
 * sealed against it: the new program maps it by the descriptor of the old. The file's mode keeps
 * others from opening it to write by mistake; a command of the same user that is out to do so can
 * change the mode. */
#include "cmd/run/deadline_page.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the page read-only for everybody who opens it from now on, the command included, so that
 * nothing the command does can change what the guardian sees. Kernels before 5.1 do not know this
 * seal; the page then works without it. */
static void deadline_page_seal(int fd, bool in_place)
{
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | (in_place ? 0 : F_SEAL_FUTURE_WRITE));
}

struct deadline_page *deadline_page_map(int fd)
{
    void *p = mmap(NULL, sizeof(struct deadline_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool deadline_page_new(struct deadline_page **out, int *fd, bool in_place)
{
    struct deadline_page *p = NULL;
    *fd = memfd_create("clave-deadline", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd >= 0 && ftruncate(*fd, sizeof **out) == 0 && (!in_place || fchmod(*fd, 0444) == 0))
        p = deadline_page_map(*fd);
    if (!p) {
        int err = errno;
        if (*fd >= 0)
            close(*fd);
        errno = err;
        return false;
    }
    deadline_page_seal(*fd, in_place);
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
    /* The name contains a process id, which may belong to a different process by now: hence the
     * comparison of token and session. */
    bool same = atomic_load(&p->token) == token && atomic_load(&p->session_id) == session_id;
    *deadline = deadline_page_get(p);
    munmap(map, sizeof *p);
    return same;
}
