/* clave_slots.c - a slot taken and given back, beside a lease of a semaphore, in one run.
 *
 *   clave_slots CONNECT TAKERS LIMIT TURNS
 *
 * TAKERS threads, a session each, make TURNS turns together: slots first, then leases, with the
 * same limit. Prints a line for each: turns a second, the time of a turn, and the transactions of a
 * turn, which are the growth of the zxid. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "clave/clave.h"
#include "measure.h"

enum { TAKERS_MAX = 200, WAIT_MS = 60000 };

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "clave_slots: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

struct taker {
    uint32_t limit;
    int number, turns;
    double *us; /* of its turns */
    clave_client *client;
    pthread_t thread;
};

static void *take_slots(void *arg)
{
    struct taker *t = arg;
    char id[16];
    clave_slots *slots;
    snprintf(id, sizeof id, "t%d", t->number);
    check(clave_slots_new(&slots, t->client, "/bench/slots", NULL), "slots");
    for (int i = 0; i < t->turns; i++) {
        clave_slot *slot;
        double start = now_us();
        check(clave_slots_take(slots, &(clave_slot){.id = id}, WAIT_MS, &slot, NULL), "take");
        check(clave_slots_give(slots, id, slot->token, WAIT_MS, NULL), "give");
        t->us[i] = now_us() - start;
        clave_slot_free(slot);
    }
    clave_slots_free(slots);
    return NULL;
}

static void *take_leases(void *arg)
{
    struct taker *t = arg;
    clave_semaphore *semaphore;
    const clave_semaphore_options o = {.size = sizeof o, .limit = t->limit};
    check(clave_semaphore_new(&semaphore, t->client, "/bench/semaphore", &o), "semaphore");
    for (int i = 0; i < t->turns; i++) {
        clave_lease *lease;
        double start = now_us();
        check(clave_semaphore_acquire(semaphore, 1, WAIT_MS, &lease), "acquire");
        check(clave_lease_release_confirmed(lease, WAIT_MS), "release");
        t->us[i] = now_us() - start;
    }
    clave_semaphore_free(semaphore);
    return NULL;
}

/* Of a write of ours, which is one transaction itself. */
static int64_t zxid_now(clave_client *c)
{
    const clave_create_options o = {
        .size = sizeof o, .mode = CLAVE_PERSISTENT_SEQUENTIAL, .flags = CLAVE_CREATE_PARENTS};
    clave_reply *made, *read;
    check(clave_create(c, "/bench/mark-", "", 0, &o, WAIT_MS, &made), "mark");
    check(clave_get(c, made->path, WAIT_MS, &read), "read the mark");
    int64_t zxid = read->stat.czxid;
    clave_reply_free(made);
    clave_reply_free(read);
    return zxid;
}

static void run(const char *what, struct taker *t, int n, void *(*turns)(void *))
{
    double *us = t[0].us;
    size_t all = (size_t)n * (size_t)t[0].turns;
    int64_t before = zxid_now(t[0].client);
    double start = now_s();
    for (int i = 0; i < n; i++)
        pthread_create(&t[i].thread, NULL, turns, &t[i]);
    for (int i = 0; i < n; i++)
        pthread_join(t[i].thread, NULL);
    double took = now_s() - start;
    int64_t commits = zxid_now(t[0].client) - before - 1;
    times_sort(us, all);
    printf("{\"what\": \"%s\", \"takers\": %d, \"limit\": %u, \"turns_a_second\": %.0f, "
           "\"p50_us\": %.0f, \"p99_us\": %.0f, \"commits_a_turn\": %.3f}\n",
           what, n, (unsigned)t[0].limit, (double)all / took, times_p50(us, all),
           times_p99(us, all), (double)commits / (double)all);
}

int main(int argc, char **argv)
{
    static struct taker t[TAKERS_MAX];
    int n = argc > 4 ? atoi(argv[2]) : 0;
    uint32_t limit = argc > 4 ? (uint32_t)atoi(argv[3]) : 0;
    int turns = n > 0 ? atoi(argv[4]) / n : 0;
    if (n < 1 || n > TAKERS_MAX || limit < 1 || turns < 1) {
        fputs("usage: clave_slots CONNECT TAKERS LIMIT TURNS\n", stderr);
        return 64;
    }
    double *us = malloc((size_t)n * (size_t)turns * sizeof *us);
    if (!us)
        return 1;
    for (int i = 0; i < n; i++) {
        t[i] = (struct taker){.limit = limit, .number = i, .turns = turns, .us = us + i * turns};
        check(clave_client_open(&t[i].client, NULL, argv[1], NULL), "open");
        check(clave_client_wait(t[i].client, WAIT_MS), "connect");
    }
    clave_slots *slots;
    check(clave_slots_new(&slots, t[0].client, "/bench/slots", NULL), "slots");
    check(clave_slots_set_limit(slots, limit, WAIT_MS), "limit");
    clave_slots_free(slots);
    for (int round = 0; round < 2;
         round++) { /* the first makes the nodes, and is not representative */
        run(round ? "slot" : "slot, first", t, n, take_slots);
        run(round ? "semaphore" : "semaphore, first", t, n, take_leases);
    }
    for (int i = 0; i < n; i++)
        clave_client_close(t[i].client, 1000);
    free(us);
    return 0;
}
