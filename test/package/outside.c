/* outside.c - a program outside the tree: holds a lock at a server of its own, and calls libuv for
 * itself. Prints the version of the library, "held", and "tls" or why there is no TLS. */
#include <clave/clave.h>
#include <clave/testserver.h>
#include <clave/uv.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "outside: %s failed\n", what);
    exit(EXIT_FAILURE);
}

static void hold(clave_client *s)
{
    clave_mutex *lock;
    clave_grant *grant;
    check(clave_mutex_new(&lock, s, "/outside", NULL) == CLAVE_OK, "clave_mutex_new");
    check(clave_mutex_acquire(lock, 30000) == CLAVE_OK, "clave_mutex_acquire");
    check(clave_mutex_grant(lock, &grant) == CLAVE_OK, "clave_mutex_grant");
    check(clave_grant_valid_for(grant, 1), "clave_grant_valid_for");
    clave_grant_free(grant);
    puts("held");
    clave_mutex_free(lock);
}

int main(void)
{
    uv_loop_t loop;
    check(uv_loop_init(&loop) == 0 && uv_loop_close(&loop) == 0, "libuv");
    check(clave_now() > 0, "clave_now");
    printf("clave %s\n", clave_version());

    clave_test_server *server;
    clave_client *s;
    check(clave_test_server_new(&server, NULL) == CLAVE_OK, "clave_test_server_new");
    check(clave_client_open(&s, NULL, clave_test_server_connect_string(server), NULL) == CLAVE_OK,
          "clave_client_open");
    hold(s);
    clave_client_close(s, 30000);
    clave_test_server_free(server);

    clave_tls *tls;
    char why[256] = "tls";
    clave_tls_new(&tls, NULL, why, sizeof why);
    puts(tls ? "tls" : why);
    clave_tls_free(tls);
    return 0;
}
