/* listen_test.c - the sockets on which a server listens. */
#include "rig.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/listen.h"

static int connections;

static void take_connection(struct listener *l)
{
    int fd = clave__listener_accept(l);
    connections += fd >= 0;
    if (fd >= 0)
        close(fd);
}

/* libuv looks no more at a socket whose poll has failed. */
TEST(a_listener_whose_poll_fails)
{
    char text[300];
    const struct fault f = {text, sizeof text};
    const char *address = rig_unix();
    struct list listeners;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uv_loop_t loop;
    list_init(&listeners);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(clave__listen(&loop, address, take_connection, NULL, &listeners, &f),
                     CLAVE_OK);
    struct listener *l = LIST_ENTRY(listeners.next, struct listener, link);
    uv_poll_stop(&l->poll);
    l->poll.poll_cb(&l->poll, UV_EBADF, 0);
    assert_true(uv_is_active((uv_handle_t *)&l->rest));
    strcpy(to.sun_path, address + strlen("unix:"));
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    while (connections == 0 && uv_run(&loop, UV_RUN_ONCE))
        continue;
    assert_int_equal(connections, 1);
    close(fd);
    clave__listener_close(l);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}
