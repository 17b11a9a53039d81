/* zkmt_soak.c - what the driver is told, sessions, and requests whose answer may be lost. */
#include "zkmt_soak.h"
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const op_names[OPS] = {"session",  "create", "exists", "get",    "set",  "delete",
                                   "children", "multi",  "setACL", "getACL", "auth", "burst"};

struct soak soak;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

/* ---- what the driver is told ----------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void fault(const char *format, ...)
{
    char text[512];
    va_list more;
    va_start(more, format);
    vsnprintf(text, sizeof text, format, more);
    va_end(more);
    printf("fault %.3f %s %s\n", now(), op_names[soak.op], text);
    fflush(stdout);
    _exit(1);
}

static void lose(const char *operation, const char *kind)
{
    printf("lost %.3f %s %s\n", now(), operation, kind);
    fflush(stdout);
}

/* ---- sessions -------------------------------------------------------------------------------- */

struct client mine, others;

static void on_session(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct client *c = context;
    (void)zh;
    (void)path;
    if (type != ZOO_SESSION_EVENT)
        return;
    if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE)
        fault("the session of %s is lost: state %d", c->name, state);
    pthread_mutex_lock(&mutex);
    if (c->connected && state != ZOO_CONNECTED_STATE)
        lose("connection", "SUSPENDED");
    c->connected = state == ZOO_CONNECTED_STATE;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
}

struct timespec deadline(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += PATIENCE_S;
    return t;
}

void wait_connected(struct client *c)
{
    struct timespec until = deadline();
    pthread_mutex_lock(&mutex);
    while (!c->connected)
        if (pthread_cond_timedwait(&cond, &mutex, &until) != 0)
            fault("no connection in %d s", PATIENCE_S);
    pthread_mutex_unlock(&mutex);
}

void open_client(struct client *c, const char *name, int session_ms)
{
    *c = (struct client){.name = name};
    soak.counts[soak.op = SESSION]++;
    c->zh = zookeeper_init(soak.connect, on_session, session_ms, NULL, c, 0);
    CHECK(c->zh);
    wait_connected(c);
    c->id = zoo_client_id(c->zh)->client_id;
}

void close_client(struct client *c)
{
    int rc = zookeeper_close(c->zh);
    CHECK(rc == ZOK || rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZCLOSING);
}

/* ---- operations ------------------------------------------------------------------------------ */

bool stopping(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    return poll(&in, 1, 0) > 0;
}

void begin(enum op op)
{
    static double told;
    struct pollfd in = {.fd = 0, .events = POLLIN};
    poll(&in, 1, soak.pause_ms);
    soak.counts[soak.op = op]++;
    if (now() - told > 1) {
        long all = 0;
        for (int i = 0; i < OPS; i++)
            all += soak.counts[i];
        told = now();
        printf("ops %ld\n", all);
        fflush(stdout);
    }
}

bool lost(struct client *c, int rc)
{
    if (rc != ZCONNECTIONLOSS && rc != ZOPERATIONTIMEOUT)
        return false;
    lose(op_names[soak.op], rc == ZCONNECTIONLOSS ? "CONNECTIONLOSS" : "OPERATIONTIMEOUT");
    wait_connected(c);
    return true;
}

int stat_of(struct client *c, const char *path, struct Stat *stat)
{
    int rc;
    memset(stat, 0, sizeof *stat);
    SURELY(rc, c, EXISTS, zoo_exists(c->zh, path, 0, stat));
    CHECK(rc == ZOK || rc == ZNONODE);
    return rc;
}

bool is_there(const char *path)
{
    struct Stat stat;
    return stat_of(&mine, path, &stat) == ZOK;
}

void make(struct client *c, const char *path, const char *data, int mode)
{
    char made[PATH_MAX_LEN] = "";
    int rc;
    do {
        begin(CREATE);
        rc = zoo_create(c->zh, path, data, (int)strlen(data), &ZOO_OPEN_ACL_UNSAFE, mode, made,
                        sizeof made);
        if (rc == ZOK && strcmp(made, path) != 0)
            fault("%s was created, not %s", made, path);
    } while (lost(c, rc) && !is_there(path));
    if (rc != ZOK && rc != ZCONNECTIONLOSS && rc != ZOPERATIONTIMEOUT)
        fault("create of %s: %s", path, zerror(rc));
}

void change(const char *path, const char *data, int version)
{
    struct Stat stat = {0};
    int rc;
    do {
        begin(SET);
        rc = zoo_set2(mine.zh, path, data, (int)strlen(data), version, &stat);
    } while (lost(&mine, rc) && (stat_of(&mine, path, &stat), stat.version == version));
    if (stat.version != version + 1)
        fault("set of %s: %s, version %d, not %d", path, zerror(rc), stat.version, version + 1);
}

void drop(const char *path, int version)
{
    int rc;
    do {
        begin(DELETE);
        rc = zoo_delete(mine.zh, path, version);
    } while (lost(&mine, rc) && is_there(path));
    if (rc != ZOK && rc != ZCONNECTIONLOSS && rc != ZOPERATIONTIMEOUT)
        fault("delete of %s: %s", path, zerror(rc));
}

void clear(const char *path)
{
    if (is_there(path))
        drop(path, -1);
}
