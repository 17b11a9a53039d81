/* zkmt_soak.h - what the soak of libzookeeper_mt stands on: what the driver is told (see
 * worker.py), sessions, and requests whose answer may be lost. A fault ends the process. */
#ifndef ZKMT_SOAK_H
#define ZKMT_SOAK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <zookeeper/zookeeper.h>

enum { PATIENCE_S = 90, DATA_MAX = 128, PATH_MAX_LEN = 256 };

enum op {
    SESSION,
    CREATE,
    EXISTS,
    GET,
    SET,
    DELETE,
    CHILDREN,
    MULTI,
    SETACL,
    GETACL,
    AUTH,
    BURSTS,
    OPS
};
extern const char *const op_names[OPS];

struct soak {
    const char *connect, *root;
    int pause_ms, session_ms;
    long counts[OPS];
    enum op op; /* the newest */
};
extern struct soak soak;

extern pthread_mutex_t mutex; /* of everything that events change */
extern pthread_cond_t cond;

struct client {
    zhandle_t *zh;
    const char *name;
    bool connected;
    int64_t id;
};

extern struct client mine, others;

__attribute__((format(printf, 1, 2), noreturn)) void fault(const char *format, ...);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fault("%s, line %d: not so: %s", __func__, __LINE__, #condition);                      \
    } while (0)

struct timespec deadline(void);
void wait_connected(struct client *c);
void open_client(struct client *c, const char *name, int session_ms);
/* Without a connection the server does not hear of it: the session ends in its time. */
void close_client(struct client *c);

bool stopping(void);

/* Counts an operation, at the pace that is asked for. */
void begin(enum op op);

/* Whether this is no answer; it returns when there is a connection again. */
bool lost(struct client *c, int rc);

/* A request that may be made twice, until it is answered. */
#define SURELY(rc, client, op, call)                                                               \
    do {                                                                                           \
        begin(op);                                                                                 \
        (rc) = (call);                                                                             \
    } while (lost(client, rc))

int stat_of(struct client *c, const char *path, struct Stat *stat);
bool is_there(const char *path);

/* These are done once: without an answer they look whether they were. */
void make(struct client *c, const char *path, const char *data, int mode);
void change(const char *path, const char *data, int version);
void drop(const char *path, int version);
void clear(const char *path); /* what an earlier round may have left */

#endif
