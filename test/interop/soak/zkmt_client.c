/* zkmt_client.c - libzookeeper_mt, the C client of Apache ZooKeeper, at its usual work: nodes, many
 * requests at once, transactions, sequences, access lists, watches and sessions. What it says, and
 * what it counts as a fault, is that of worker.py.
 *
 *   zkmt_client CONNECT ROOT PAUSE_MS SESSION_MS */
#include "zkmt_soak.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEYS = 6, BURST = 16, KEPT = 4 };

/* ---- its own nodes, and the model of them ---------------------------------------------------- */

struct node {
    char path[PATH_MAX_LEN];
    char data[DATA_MAX];
    int version; /* -1: it is not there */
};

static struct node keys[KEYS], multi, parent, sequence[KEPT];
static long made; /* sequential nodes, ever */

static void name(struct node *n, const char *format, int number)
{
    char tail[32];
    snprintf(tail, sizeof tail, format, number);
    snprintf(n->path, sizeof n->path, "%s/own/%s", soak.root, tail);
    n->version = -1;
}

static const char *fresh(void)
{
    static long serial;
    static char data[DATA_MAX];
    int n = snprintf(data, sizeof data, "value %ld ", ++serial);
    memset(data + n, 'x', (size_t)(serial % 50));
    data[n + serial % 50] = '\0';
    return data;
}

static void node_make(struct node *n, const char *data)
{
    snprintf(n->data, sizeof n->data, "%s", data);
    make(&mine, n->path, n->data, 0);
    n->version = 0;
}

static void node_change(struct node *n)
{
    snprintf(n->data, sizeof n->data, "%s", fresh());
    change(n->path, n->data, n->version);
    n->version++;
}

static void node_check(const struct node *n)
{
    char data[DATA_MAX] = "";
    int rc, len = sizeof data;
    struct Stat stat;
    SURELY(rc, &mine, GET, (len = sizeof data, zoo_get(mine.zh, n->path, 0, data, &len, &stat)));
    CHECK(rc == ZOK);
    CHECK(stat.version == n->version && stat.dataLength == len);
    CHECK(len == (int)strlen(n->data) && memcmp(data, n->data, (size_t)len) == 0);
}

static void nodes(void)
{
    struct node *n = &keys[random() % KEYS];
    char own[PATH_MAX_LEN];
    int rc;
    snprintf(own, sizeof own, "%s/own", soak.root);
    if (n->version < 0) {
        CHECK(!is_there(n->path));
        SURELY(rc, &mine, SET, zoo_set(mine.zh, n->path, "", 0, -1));
        CHECK(rc == ZNONODE);
        node_make(n, fresh());
    }
    SURELY(rc, &mine, CREATE,
           zoo_create(mine.zh, n->path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    CHECK(rc == ZNODEEXISTS);
    SURELY(rc, &mine, DELETE, zoo_delete(mine.zh, own, -1));
    CHECK(rc == ZNOTEMPTY);
    for (int i = 0; i < 3; i++) {
        node_change(n);
        node_check(n);
    }
    SURELY(rc, &mine, SET, zoo_set(mine.zh, n->path, "", 0, n->version + 1));
    CHECK(rc == ZBADVERSION);
    SURELY(rc, &others, EXISTS, zoo_exists(others.zh, n->path, 0, NULL));
    CHECK(rc == ZOK);
    if (random() % 2) {
        drop(n->path, n->version);
        n->version = -1;
    }
}

static void sequences(void)
{
    char prefix[PATH_MAX_LEN], got[PATH_MAX_LEN];
    struct String_vector names;
    struct node *n = &sequence[made % KEPT];
    int rc;
    if (n->version >= 0)
        drop(n->path, n->version);
    snprintf(prefix, sizeof prefix, "%s/s-", parent.path);
    snprintf(n->path, sizeof n->path, "%s%010ld", prefix, made);
    snprintf(n->data, sizeof n->data, "%s", fresh());
    do {
        begin(CREATE);
        rc = zoo_create(mine.zh, prefix, n->data, (int)strlen(n->data), &ZOO_OPEN_ACL_UNSAFE,
                        ZOO_PERSISTENT_SEQUENTIAL, got, sizeof got);
        if (rc == ZOK && strcmp(got, n->path) != 0)
            fault("%s was created, not %s", got, n->path);
    } while (lost(&mine, rc) && !is_there(n->path));
    n->version = 0;
    made++;
    SURELY(rc, &mine, CHILDREN, zoo_get_children(mine.zh, parent.path, 0, &names));
    CHECK(rc == ZOK && names.count == (made < KEPT ? made : KEPT));
    deallocate_String_vector(&names);
    node_check(n);
}

static void transactions(void)
{
    zoo_op_t ops[4];
    zoo_op_result_t results[4];
    char child[PATH_MAX_LEN + 8], got[PATH_MAX_LEN];
    struct Stat stat, after;
    int rc;
    snprintf(child, sizeof child, "%s/c", multi.path);
    snprintf(multi.data, sizeof multi.data, "%s", fresh());
    zoo_check_op_init(&ops[0], multi.path, multi.version);
    zoo_create_op_init(&ops[1], child, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, got, sizeof got);
    zoo_delete_op_init(&ops[2], child, 0);
    zoo_set_op_init(&ops[3], multi.path, multi.data, (int)strlen(multi.data), multi.version + 7,
                    &stat);
    SURELY(rc, &mine, MULTI, zoo_multi(mine.zh, 4, ops, results));
    CHECK(rc == ZBADVERSION && results[0].err == ZOK && results[2].err == ZOK);
    CHECK(results[3].err == ZBADVERSION && !is_there(child));
    zoo_set_op_init(&ops[3], multi.path, multi.data, (int)strlen(multi.data), multi.version, &stat);
    do {
        begin(MULTI);
        rc = zoo_multi(mine.zh, 4, ops, results);
        if (rc == ZOK)
            CHECK(strcmp(got, child) == 0 && stat.version == multi.version + 1);
    } while (lost(&mine, rc) &&
             (stat_of(&mine, multi.path, &after), after.version == multi.version));
    CHECK(rc == ZOK || rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT);
    multi.version++;
    node_check(&multi);
}

/* ---- many at once ---------------------------------------------------------------------------- */

struct burst {
    int done, lost, versions[BURST];
};

static void on_stat(int rc, const struct Stat *stat, const void *context)
{
    struct burst *b = (struct burst *)context;
    pthread_mutex_lock(&mutex);
    b->lost += rc == ZCONNECTIONLOSS;
    if (rc != ZOK && rc != ZCONNECTIONLOSS)
        fault("one of many: %s", zerror(rc));
    b->versions[b->done++] = rc == ZOK ? stat->version : -1;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
}

/* Every other one is a set; each sees what those before it did, and they are answered in order. */
static void many(void)
{
    char path[PATH_MAX_LEN];
    struct burst b = {0};
    struct timespec until = deadline();
    snprintf(path, sizeof path, "%s/many", soak.root);
    clear(path);
    make(&mine, path, "", 0);
    begin(BURSTS);
    for (int i = 0; i < BURST; i++) {
        int rc = i % 2 ? zoo_aexists(mine.zh, path, 0, on_stat, &b)
                       : zoo_aset(mine.zh, path, "x", 1, -1, on_stat, &b);
        CHECK(rc == ZOK);
    }
    pthread_mutex_lock(&mutex);
    while (b.done < BURST)
        CHECK(pthread_cond_timedwait(&cond, &mutex, &until) == 0);
    pthread_mutex_unlock(&mutex);
    if (b.lost > 0) {
        lost(&mine, ZCONNECTIONLOSS);
        return;
    }
    for (int i = 0; i < BURST; i++)
        CHECK(b.versions[i] == i / 2 + 1);
}

/* ---- watches --------------------------------------------------------------------------------- */

struct event {
    int type; /* 0: none yet */
    char path[PATH_MAX_LEN];
};

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct event *e = context;
    (void)zh;
    (void)state;
    if (type == ZOO_SESSION_EVENT) /* which comes to every watcher */
        return;
    pthread_mutex_lock(&mutex);
    if (e->type)
        fault("a second event, of type %d, for a watch of %s", type, path);
    e->type = type;
    snprintf(e->path, sizeof e->path, "%s", path);
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
}

static void expect(struct event *e, int type, const char *path)
{
    struct timespec until = deadline();
    pthread_mutex_lock(&mutex);
    while (e->type == 0)
        if (pthread_cond_timedwait(&cond, &mutex, &until) != 0)
            fault("no event of %s", path);
    if (e->type != type || strcmp(e->path, path) != 0)
        fault("an event of type %d of %s, not %d of %s", e->type, e->path, type, path);
    e->type = 0;
    pthread_mutex_unlock(&mutex);
}

static void watches(void)
{
    static struct event e; /* lives as long as the handle: so may its watch */
    char path[PATH_MAX_LEN], child[PATH_MAX_LEN + 8], data[DATA_MAX];
    struct String_vector names;
    struct Stat stat;
    int rc, len;
    snprintf(path, sizeof path, "%s/watched", soak.root);
    snprintf(child, sizeof child, "%s/c", path);
    clear(child);
    clear(path);
    e.type = 0;
    SURELY(rc, &others, EXISTS, zoo_wexists(others.zh, path, on_event, &e, &stat));
    CHECK(rc == ZNONODE);
    make(&mine, path, "", 0);
    expect(&e, ZOO_CREATED_EVENT, path);
    SURELY(rc, &others, GET,
           (len = sizeof data, zoo_wget(others.zh, path, on_event, &e, data, &len, &stat)));
    CHECK(rc == ZOK);
    change(path, fresh(), 0);
    expect(&e, ZOO_CHANGED_EVENT, path);
    SURELY(rc, &others, CHILDREN, zoo_wget_children(others.zh, path, on_event, &e, &names));
    CHECK(rc == ZOK);
    deallocate_String_vector(&names);
    make(&mine, child, "", 0);
    expect(&e, ZOO_CHILD_EVENT, path);
    SURELY(rc, &others, EXISTS, zoo_wexists(others.zh, child, on_event, &e, &stat));
    CHECK(rc == ZOK);
    drop(child, 0);
    expect(&e, ZOO_DELETED_EVENT, child);
}

/* ---- sessions, and who may do what ----------------------------------------------------------- */

static void sessions(void)
{
    static struct client c; /* events come until it is closed */
    char path[PATH_MAX_LEN];
    struct Stat stat;
    static struct event e;
    int rc;
    snprintf(path, sizeof path, "%s/ephemeral", soak.root);
    e.type = 0;
    SURELY(rc, &mine, EXISTS, zoo_exists(mine.zh, path, 0, &stat));
    CHECK(rc == ZNONODE);
    open_client(&c, "the passing one", soak.session_ms / 2);
    make(&c, path, "mine", ZOO_EPHEMERAL);
    SURELY(rc, &mine, EXISTS, zoo_wexists(mine.zh, path, on_event, &e, &stat));
    CHECK(rc == ZOK && stat.ephemeralOwner == c.id);
    SURELY(rc, &c, CREATE,
           zoo_create(c.zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0));
    CHECK(rc == ZNODEEXISTS);
    close_client(&c);
    expect(&e, ZOO_DELETED_EVENT, path);
}

static void on_auth(int rc, const void *context)
{
    pthread_mutex_lock(&mutex);
    *(int *)context = rc;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
}

static void authenticate(struct client *c)
{
    static int rc;
    struct timespec until = deadline();
    do {
        rc = 1;
        begin(AUTH);
        int asked = zoo_add_auth(c->zh, "digest", "joe:secret", 10, on_auth, &rc);
        CHECK(asked == ZOK || (asked == ZINVALIDSTATE && !is_unrecoverable(c->zh)));
        pthread_mutex_lock(&mutex);
        if (asked == ZINVALIDSTATE)
            rc = ZCONNECTIONLOSS; /* it is between two connections, and has not sent it */
        while (rc == 1)
            CHECK(pthread_cond_timedwait(&cond, &mutex, &until) == 0);
        pthread_mutex_unlock(&mutex);
    } while (lost(c, rc));
    CHECK(rc == ZOK);
}

static void access_lists(void)
{
    static struct client owner;
    char path[PATH_MAX_LEN], data[DATA_MAX];
    struct ACL_vector acl;
    struct Stat stat;
    int rc, len;
    snprintf(path, sizeof path, "%s/locked", soak.root);
    clear(path);
    open_client(&owner, "the owner", soak.session_ms / 2);
    authenticate(&owner);
    make(&mine, path, "secret", 0);
    SURELY(rc, &owner, SETACL, zoo_set_acl(owner.zh, path, -1, &ZOO_CREATOR_ALL_ACL));
    CHECK(rc == ZOK);
    SURELY(rc, &mine, GET, (len = sizeof data, zoo_get(mine.zh, path, 0, data, &len, &stat)));
    CHECK(rc == ZNOAUTH);
    SURELY(rc, &owner, GET, (len = sizeof data, zoo_get(owner.zh, path, 0, data, &len, &stat)));
    CHECK(rc == ZOK && len == 6);
    SURELY(rc, &owner, GETACL, zoo_get_acl(owner.zh, path, &acl, &stat));
    CHECK(rc == ZOK && acl.count == 1 && strcmp(acl.data[0].id.scheme, "digest") == 0);
    CHECK(acl.data[0].perms == ZOO_PERM_ALL && strncmp(acl.data[0].id.id, "joe:", 4) == 0);
    deallocate_ACL_vector(&acl);
    SURELY(rc, &owner, SETACL, zoo_set_acl(owner.zh, path, -1, &ZOO_OPEN_ACL_UNSAFE));
    CHECK(rc == ZOK);
    close_client(&owner);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void start(int argc, char **argv)
{
    char path[PATH_MAX_LEN];
    if (argc != 5)
        exit(64);
    soak.connect = argv[1];
    soak.root = argv[2];
    soak.pause_ms = atoi(argv[3]);
    soak.session_ms = atoi(argv[4]);
    zoo_set_debug_level(0);
    open_client(&mine, "main", soak.session_ms);
    open_client(&others, "other", soak.session_ms);
    make(&mine, soak.root, "", 0);
    snprintf(path, sizeof path, "%s/own", soak.root);
    make(&mine, path, "", 0);
    for (int i = 0; i < KEYS; i++)
        name(&keys[i], "k%d", i);
    for (int i = 0; i < KEPT; i++)
        sequence[i].version = -1;
    name(&multi, "multi", 0);
    name(&parent, "seq", 0);
    node_make(&multi, "");
    node_make(&parent, "");
    puts("ready");
    fflush(stdout);
}

static void tell(const struct node *n)
{
    if (n->version < 0)
        return;
    printf("left %s %d ", n->path, n->version);
    for (const char *c = n->data; *c; c++)
        printf("%02x", (unsigned char)*c);
    puts(*n->data ? "" : "-");
}

static void finish(void)
{
    CHECK(zoo_client_id(mine.zh)->client_id == mine.id);
    CHECK(zoo_client_id(others.zh)->client_id == others.id);
    wait_connected(&mine);
    wait_connected(&others);
    CHECK(zookeeper_close(mine.zh) == ZOK && zookeeper_close(others.zh) == ZOK);
    for (int i = 0; i < OPS; i++)
        printf("count %s %ld\n", op_names[i], soak.counts[i]);
    printf("left %s/own 0 -\n", soak.root);
    for (int i = 0; i < KEYS; i++)
        tell(&keys[i]);
    for (int i = 0; i < KEPT; i++)
        tell(&sequence[i]);
    tell(&multi);
    tell(&parent);
    puts("done");
}

int main(int argc, char **argv)
{
    static void (*const chores[])(void) = {nodes,    watches, transactions, nodes,       sequences,
                                           sessions, many,    sequences,    access_lists};
    start(argc, argv);
    for (size_t i = 0; !stopping(); i = (i + 1) % (sizeof chores / sizeof chores[0]))
        chores[i]();
    finish();
    return 0;
}
