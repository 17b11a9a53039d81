/* zkmt_keeper.c - the first of a queue by libzookeeper_mt, for takeover_test.py: answers each line
 * "check" with its session and token; "release" ends it.
 *
 *   zkmt_keeper CONNECT PATH SESSION_MS */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zookeeper/zookeeper.h>

static atomic_int state;

static void on_event(zhandle_t *zh, int type, int new_state, const char *path, void *arg)
{
    (void)zh;
    (void)path;
    (void)arg;
    if (type == ZOO_SESSION_EVENT)
        state = new_state;
}

static void pause_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

/* 0, or the code of a connection that does not come back. */
static int look(zhandle_t *zh, const char *path, struct Stat *st)
{
    int rc = ZOPERATIONTIMEOUT;
    for (int tries = 0; tries < 600 && state != ZOO_EXPIRED_SESSION_STATE; tries++) {
        rc = zoo_exists(zh, path, 0, st);
        if (rc != ZCONNECTIONLOSS && rc != ZINVALIDSTATE && rc != ZOPERATIONTIMEOUT)
            return rc;
        pause_a_moment();
    }
    return rc;
}

int main(int argc, char **argv)
{
    char path[512], made[512], line[64] = "check\n";
    struct Stat st = {0};
    if (argc != 4)
        return 64;
    zoo_set_debug_level(0);
    zhandle_t *zh = zookeeper_init(argv[1], on_event, atoi(argv[3]), NULL, NULL, 0);
    if (!zh || look(zh, "/", &st) != ZOK)
        return 1;
    zoo_create(zh, argv[2], NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    snprintf(path, sizeof path, "%s/zkmt-lock-", argv[2]);
    if (zoo_create(zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, made,
                   sizeof made) != ZOK)
        return 1;
    do {
        memset(&st, 0, sizeof st);
        int rc = look(zh, made, &st);
        int64_t session = zoo_client_id(zh)->client_id;
        printf("%s %" PRId64 " %" PRId64 "\n",
               rc == ZOK && st.ephemeralOwner == session ? "held" : "lost", session, st.czxid);
        fflush(stdout);
    } while (fgets(line, sizeof line, stdin) && strcmp(line, "check\n") == 0);
    return zookeeper_close(zh) == ZOK ? 0 : 1;
}
