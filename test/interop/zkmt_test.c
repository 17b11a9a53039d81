/* zkmt_test.c - a program on libzookeeper_mt, the C client of Apache ZooKeeper: create,
 * watch, multi, ephemeral nodes, and a session that goes on in another process and beyond a
 * restart of the server.
 *
 *   zkmt_test CONNECT      it says "restart" and goes on when it reads a line */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

enum { SESSION_MS = 20000, PATIENCE_S = 30 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* ---- events, as the client's thread brings them -------------------------------------------- */

struct events {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int connected; /* how often */
    int type;      /* of the newest event of a node; 0: none since it was asked for */
    char path[128];
};

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct events *e = context;
    (void)zh;
    pthread_mutex_lock(&e->mutex);
    if (type == ZOO_SESSION_EVENT) {
        e->connected += state == ZOO_CONNECTED_STATE;
    } else {
        e->type = type;
        snprintf(e->path, sizeof e->path, "%s", path);
    }
    pthread_cond_broadcast(&e->cond);
    pthread_mutex_unlock(&e->mutex);
}

static void wait_once(struct events *e)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    CHECK(pthread_cond_timedwait(&e->cond, &e->mutex, &until) == 0);
}

static void wait_connected(struct events *e, int times)
{
    pthread_mutex_lock(&e->mutex);
    while (e->connected < times)
        wait_once(e);
    pthread_mutex_unlock(&e->mutex);
}

static void wait_event(struct events *e, int type, const char *path)
{
    pthread_mutex_lock(&e->mutex);
    while (e->type == 0)
        wait_once(e);
    CHECK(e->type == type);
    CHECK(strcmp(e->path, path) == 0);
    e->type = 0;
    pthread_mutex_unlock(&e->mutex);
}

static void events_init(struct events *e)
{
    memset(e, 0, sizeof *e);
    pthread_mutex_init(&e->mutex, NULL);
    pthread_cond_init(&e->cond, NULL);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_nodes(zhandle_t *zh)
{
    char buf[64];
    int n = sizeof buf;
    struct Stat stat;
    CHECK(zoo_create(zh, "/c", "one", 3, &ZOO_OPEN_ACL_UNSAFE, 0, buf, sizeof buf) == ZOK);
    CHECK(zoo_create(zh, "/c", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) == ZNODEEXISTS);
    CHECK(zoo_create2(zh, "/c/s-", "", -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL, buf,
                      sizeof buf, &stat) == ZOK);
    CHECK(strcmp(buf, "/c/s-0000000000") == 0);
    CHECK(zoo_get(zh, "/c", 0, buf, &n, &stat) == ZOK);
    CHECK(n == 3 && memcmp(buf, "one", 3) == 0 && stat.numChildren == 1);
    CHECK(zoo_set2(zh, "/c", "two", 3, 0, &stat) == ZOK && stat.version == 1);
    CHECK(zoo_set(zh, "/c", "x", 1, 0) == ZBADVERSION);
    CHECK(zoo_delete(zh, "/c", -1) == ZNOTEMPTY);
    CHECK(zoo_create(zh, "/no/parent", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) == ZNONODE);
}

static void test_watches(zhandle_t *zh, zhandle_t *other, struct events *e)
{
    struct Stat stat;
    struct String_vector names;
    char buf[64];
    int n = sizeof buf;
    CHECK(zoo_wexists(zh, "/w", on_event, e, &stat) == ZNONODE);
    CHECK(zoo_create(other, "/w", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) == ZOK);
    wait_event(e, ZOO_CREATED_EVENT, "/w");
    CHECK(zoo_wget(zh, "/w", on_event, e, buf, &n, &stat) == ZOK);
    CHECK(zoo_set(other, "/w", "x", 1, -1) == ZOK);
    wait_event(e, ZOO_CHANGED_EVENT, "/w");
    CHECK(zoo_wget_children(zh, "/w", on_event, e, &names) == ZOK);
    deallocate_String_vector(&names);
    CHECK(zoo_create(other, "/w/c", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) == ZOK);
    wait_event(e, ZOO_CHILD_EVENT, "/w");
}

static void test_multi(zhandle_t *zh)
{
    zoo_op_t ops[4];
    zoo_op_result_t results[4];
    char path[64];
    struct Stat stat;
    zoo_create_op_init(&ops[0], "/m", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path);
    zoo_check_op_init(&ops[1], "/m", 0);
    zoo_set_op_init(&ops[2], "/m", "y", 1, 0, &stat);
    CHECK(zoo_multi(zh, 3, ops, results) == ZOK);
    CHECK(strcmp(path, "/m") == 0 && stat.version == 1);
    zoo_create_op_init(&ops[0], "/m/a", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path);
    zoo_check_op_init(&ops[1], "/m", 7);
    zoo_delete_op_init(&ops[2], "/m", -1);
    CHECK(zoo_multi(zh, 3, ops, results) == ZBADVERSION);
    CHECK(results[0].err == ZOK && results[1].err == ZBADVERSION);
    CHECK(results[2].err == ZRUNTIMEINCONSISTENCY);
    CHECK(zoo_exists(zh, "/m/a", 0, &stat) == ZNONODE);
}

/* A process that makes a session with an ephemeral node, tells its id and stays: its client,
 * were it in this process, would fight for the session for as long as it lived. */
struct ancestor {
    pid_t pid;
    int from;
};

static struct ancestor start_ancestor(const char *connect)
{
    int ends[2];
    struct ancestor a;
    CHECK(pipe(ends) == 0);
    a.pid = fork();
    CHECK(a.pid >= 0);
    a.from = ends[0];
    if (a.pid > 0) {
        close(ends[1]);
        return a;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct events e;
    events_init(&e);
    zhandle_t *zh = zookeeper_init(connect, on_event, SESSION_MS, NULL, &e, 0);
    CHECK(zh);
    wait_connected(&e, 1);
    CHECK(zoo_create(zh, "/e", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0) == ZOK);
    CHECK(write(ends[1], zoo_client_id(zh), sizeof(clientid_t)) == sizeof(clientid_t));
    for (;;)
        pause();
}

static zhandle_t *inherit(const struct ancestor *a, const clientid_t *id, const char *connect,
                          struct events *e)
{
    CHECK(kill(a->pid, SIGKILL) == 0 && waitpid(a->pid, NULL, 0) == a->pid);
    zhandle_t *zh = zookeeper_init(connect, on_event, SESSION_MS, id, e, 0);
    CHECK(zh);
    wait_connected(e, 1);
    CHECK(zoo_client_id(zh)->client_id == id->client_id);
    return zh;
}

static void test_ephemerals(const struct ancestor *a, zhandle_t *other, struct events *e,
                            const char *connect)
{
    struct Stat stat;
    struct events heir;
    clientid_t id;
    events_init(&heir);
    CHECK(read(a->from, &id, sizeof id) == sizeof id);
    CHECK(zoo_wexists(other, "/e", on_event, e, &stat) == ZOK);
    CHECK(stat.ephemeralOwner == id.client_id);

    zhandle_t *second = inherit(a, &id, connect, &heir);
    CHECK(zoo_exists(second, "/e", 0, &stat) == ZOK);
    puts("restart");
    fflush(stdout);
    char line[16];
    CHECK(fgets(line, sizeof line, stdin));
    int rc = ZCONNECTIONLOSS;
    for (int i = 0; i < PATIENCE_S * 10 && (rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT);
         i++) {
        struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
        rc = zoo_exists(second, "/e", 0, &stat);
        if (rc != ZOK)
            nanosleep(&pause, NULL);
    }
    CHECK(rc == ZOK && stat.ephemeralOwner == id.client_id);
    CHECK(zookeeper_close(second) == ZOK);
    wait_event(e, ZOO_DELETED_EVENT, "/e");
}

int main(int argc, char **argv)
{
    struct events mine, others;
    CHECK(argc == 2);
    struct ancestor ancestor = start_ancestor(argv[1]);
    zoo_set_debug_level(0);
    events_init(&mine);
    events_init(&others);
    zhandle_t *zh = zookeeper_init(argv[1], on_event, SESSION_MS, NULL, &mine, 0);
    zhandle_t *other = zookeeper_init(argv[1], on_event, SESSION_MS, NULL, &others, 0);
    CHECK(zh && other);
    wait_connected(&mine, 1);
    wait_connected(&others, 1);
    test_nodes(zh);
    test_watches(zh, other, &mine);
    test_multi(zh);
    test_ephemerals(&ancestor, other, &others, argv[1]);
    CHECK(zookeeper_close(zh) == ZOK);
    CHECK(zookeeper_close(other) == ZOK);
    puts("fine");
    return 0;
}
