/* zkmt_lock.c - the lock by hand on Apache's C client (libzookeeper_mt), as its users
 * write it: create, list, delete, one round trip after another.
 *
 *   zkmt_lock CONNECT CYCLES   prints {"p50_us": ..., "p99_us": ...} of a whole cycle */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

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

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: zkmt_lock CONNECT CYCLES\n");
        return 64;
    }
    int cycles = atoi(argv[2]);
    double *us = malloc((size_t)cycles * sizeof *us);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zhandle_t *zh = zookeeper_init(argv[1], NULL, 10000, NULL, NULL, 0);
    if (!zh || !us)
        return 1;
    while (zoo_state(zh) != ZOO_CONNECTED_STATE)
        usleep(1000);
    zoo_create(zh, "/bench", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    zoo_create(zh, "/bench/zkmt", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    for (int i = 0; i < cycles / 10; i++)
        cycle(zh);
    for (int i = 0; i < cycles; i++) {
        double start = now_us();
        cycle(zh);
        us[i] = now_us() - start;
    }
    qsort(us, (size_t)cycles, sizeof *us, compare);
    printf("{\"p50_us\": %.1f, \"p99_us\": %.1f}\n", us[cycles / 2], us[cycles * 99 / 100]);
    zookeeper_close(zh);
    free(us);
    return 0;
}
