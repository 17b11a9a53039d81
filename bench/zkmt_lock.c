/* zkmt_lock.c - the lock by hand on Apache's C client (libzookeeper_mt), as its users
 * write it: create, list, delete, one round trip after another.
 *
 *   zkmt_lock cycle CONNECT CYCLES PAUSE_US    {"p50_us": ..., "p99_us": ...} of a cycle
 *   zkmt_lock sessions CONNECT N               what sessions cost, as clave_sessions.c says it */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#include "measure.h"

static void check(int rc, const char *what)
{
    if (rc == ZOK)
        return;
    fprintf(stderr, "zkmt_lock: %s: %s\n", what, zerror(rc));
    exit(1);
}

static void cycle(zhandle_t *zh)
{
    char path[256];
    struct String_vector names;
    check(zoo_create(zh, "/bench/zkmt/x-lock-", "", 0, &ZOO_OPEN_ACL_UNSAFE,
                     ZOO_EPHEMERAL | ZOO_SEQUENCE, path, sizeof path),
          "create");
    check(zoo_get_children(zh, "/bench/zkmt", 0, &names), "list");
    if (names.count != 1 || strcmp(names.data[0], strrchr(path, '/') + 1) != 0) {
        fprintf(stderr, "zkmt_lock: not alone in the queue\n");
        exit(1);
    }
    deallocate_String_vector(&names);
    check(zoo_delete(zh, path, -1), "delete");
}

static zhandle_t *open_session(const char *connect)
{
    zhandle_t *zh = zookeeper_init(connect, NULL, 10000, NULL, NULL, 0);
    if (!zh)
        exit(1);
    while (zoo_state(zh) != ZOO_CONNECTED_STATE)
        usleep(1000);
    zoo_create(zh, "/bench", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    zoo_create(zh, "/bench/zkmt", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    return zh;
}

static void run_cycles(zhandle_t *zh, int cycles, int pause_us)
{
    double *us = malloc((size_t)cycles * sizeof *us);
    if (!us)
        exit(1);
    for (int i = -cycles / 10; i < cycles; i++) {
        double start = now_us();
        cycle(zh);
        if (i >= 0)
            us[i] = now_us() - start;
        if (pause_us > 0)
            usleep((useconds_t)pause_us);
    }
    times_sort(us, (size_t)cycles);
    printf("{\"p50_us\": %.1f, \"p99_us\": %.1f}\n", times_p50(us, (size_t)cycles),
           times_p99(us, (size_t)cycles));
    free(us);
}

static void take(zhandle_t *zh)
{
    char path[256];
    check(zoo_create(zh, "/bench/zkmt/x-lock-", "", 0, &ZOO_OPEN_ACL_UNSAFE,
                     ZOO_EPHEMERAL | ZOO_SEQUENCE, path, sizeof path),
          "create");
}

static void run_sessions(zhandle_t *first, const char *connect, int n)
{
    zhandle_t **zh = calloc((size_t)n, sizeof(zhandle_t *));
    if (!zh || n < 2)
        exit(1);
    zh[0] = first;
    take(first);
    long one = own_status("VmRSS:");
    for (int i = 1; i < n; i++)
        take(zh[i] = open_session(connect));
    printf("{\"one_kb\": %ld, \"each_kb\": %.1f, \"threads\": %ld}\n", one,
           (double)(own_status("VmRSS:") - one) / (n - 1), own_status("Threads:") - 1);
    for (int i = 1; i < n; i++)
        zookeeper_close(zh[i]);
    free(zh);
}

int main(int argc, char **argv)
{
    bool sessions = argc == 4 && strcmp(argv[1], "sessions") == 0;
    if (!sessions && !(argc == 5 && strcmp(argv[1], "cycle") == 0)) {
        fprintf(stderr, "usage: zkmt_lock cycle CONNECT CYCLES PAUSE_US | sessions CONNECT N\n");
        return 64;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zhandle_t *zh = open_session(argv[2]);
    if (sessions)
        run_sessions(zh, argv[2], atoi(argv[3]));
    else
        run_cycles(zh, atoi(argv[3]), atoi(argv[4]));
    zookeeper_close(zh);
    return 0;
}
