/* server_four_letter_test.c - the four-letter words that are listed, and those that list. */
#include "lib/memserver.h"
#include "lib/unit.h"

static const char *ask(struct memserver *d, const char *word)
{
    static char answer[4096];
    struct memserver_conn c;
    memserver_dial(&c, d);
    memserver_send(&c, word, 4);
    size_t n = clave__buf_len(&c.in);
    assert_true(n < sizeof answer);
    memcpy(answer, n > 0 ? clave__buf_bytes(&c.in) : (const uint8_t *)"", n);
    answer[n] = '\0';
    memserver_hang_up(&c);
    return answer;
}

static void expect(struct memserver *d, const char *word, const char *text)
{
    const char *answer = ask(d, word);
    if (!strstr(answer, text))
        fail_msg("%s: no \"%s\" in \"%s\"", word, text, answer);
}

TEST(only_what_is_listed_is_answered)
{
    static const struct {
        const char *listed;
        const char *word;
        bool answered;
    } cases[] = {
        {NULL, "ruok", true},         {NULL, "wchc", false},      {NULL, "crst", false},
        {"", "ruok", false},          {"ruok", "ruok", true},     {"ruok", "srvr", false},
        {"srvr, ruok", "ruok", true}, {" srvr ,x", "srvr", true}, {"ruokx,ruo", "ruok", false},
        {"*", "wchp", true},          {"ruok", "dump", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(memserver_close) struct memserver d;
        struct server_options o = {.words = cases[i].listed};
        memserver_open(&d, &o);
        bool answered = !strstr(ask(&d, cases[i].word), "not in the whitelist");
        if (answered != cases[i].answered)
            fail_msg("case %zu: %d", i, answered);
    }
}

static void open_all(struct memserver *d)
{
    struct server_options o = {.words = "*"};
    memserver_open(d, &o);
}

/* Each of Apache 3.9 is answered, or it is said why not: the whitelist is not the reason. */
TEST(every_word_of_apache_is_known)
{
    static const char *const answered[] = {"conf", "cons", "crst", "dirs", "dump",
                                           "envi", "isro", "mntr", "ruok", "srst",
                                           "srvr", "stat", "wchc", "wchp", "wchs"};
    static const char *const lists[] = {"*", "ruok"};
    struct memserver d;
    open_all(&d);
    for (size_t i = 0; i < sizeof answered / sizeof *answered; i++)
        if (!*ask(&d, answered[i]) || strstr(ask(&d, answered[i]), "not executed"))
            fail_msg("%s: \"%s\"", answered[i], ask(&d, answered[i]));
    memserver_close(&d);
    for (size_t i = 0; i < 2; i++) {
        struct server_options o = {.words = lists[i]};
        memserver_open(&d, &o);
        expect(&d, "gtmk", "gtmk is not executed because this server has no trace mask.\n");
        expect(&d, "stmk", "stmk is not executed because this server has no trace mask.\n");
        expect(&d, "hash", "hash is not executed because this server has no log of digests.\n");
        memserver_close(&d);
    }
}

/* Apache's checks of a server's health read these two: critical without them. */
TEST(mntr_has_what_the_driver_measures)
{
    static const struct driver_stats known = {7, 1024, 4096, 1234, 12, 345, 0x1f, 99, 5000, 90000};
    static const struct driver_stats unknown = DRIVER_STATS_UNKNOWN;
    CLOSED_BY(memserver_close) struct memserver d;
    open_all(&d);
    clave__server_set_driver_stats(d.s, &known);
    expect(&d, "mntr", "\nzk_open_file_descriptor_count\t7\nzk_max_file_descriptor_count\t1024\n");
    clave__server_set_driver_stats(d.s, &unknown);
    assert_null(strstr(ask(&d, "mntr"), "file_descriptor"));
}

TEST(watches_are_listed)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    char line[128];
    union wire_body add = {.typed = {clave__jbytes("/p"), ADD_WATCH_PERSISTENT_RECURSIVE}};
    open_all(&d);
    expect(&d, "wchs", "0 connections watching 0 paths\nTotal watches:0\n");
    memserver_connect(&a, &d, 10000);
    memserver_connect(&b, &d, 10000);
    memserver_watch(&a, OP_EXISTS, "/none");
    memserver_watch(&a, OP_GET_CHILDREN, "/"); /* of the other table */
    memserver_watch(&b, OP_EXISTS, "/none");
    assert_int_equal(memserver_call(&b, OP_ADD_WATCH, &add, NULL), CLAVE_OK);
    expect(&d, "wchs", "2 connections watching 2 paths\nTotal watches:3\n");
    snprintf(line, sizeof line, "/none\n\t0x%llx\n\t0x%llx\n", (unsigned long long)a.session,
             (unsigned long long)b.session);
    expect(&d, "wchp", line);
    snprintf(line, sizeof line, "0x%llx\n\t/none\n\t/p\n", (unsigned long long)b.session);
    expect(&d, "wchc", line);
}

TEST(sessions_are_listed)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    char line[128];
    open_all(&d);
    memserver_connect(&c, &d, 10000);
    assert_int_equal(memserver_create(&c, "/mine", "", MODE_EPHEMERAL), CLAVE_OK);
    snprintf(line, sizeof line, "Sessions with Ephemerals (1):\n0x%llx:\n\t/mine\nConnections",
             (unsigned long long)c.session);
    expect(&d, "dump", line);
    expect(&d, "dump", "SessionTracker dump:\nSession Sets (1)/(1):\n1 expire at ");
}

TEST(figures_begin_anew)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_all(&d);
    memserver_connect(&c, &d, 10000);
    memserver_call(&c, OP_PING, NULL, NULL);
    expect(&d, "cons", "recved=2,sent=2,");
    expect(&d, "crst", "Connection stats reset.\n");
    expect(&d, "cons", "recved=0,sent=0,");
    expect(&d, "srst", "Server stats reset.\n");
    expect(&d, "srvr", "Received: 0\nSent: 1\n"); /* the answer to srst itself */
}

TEST(what_the_driver_knows_is_shown)
{
    CLOSED_BY(memserver_close) struct memserver d;
    struct driver_info info = {.client_port = 2181,
                               .secure_client_port = 2281,
                               .max_per_address = 60,
                               .data_dir = "/data/version-2"};
    struct driver_stats stats = DRIVER_STATS_UNKNOWN;
    stats.snapshot_bytes = 12;
    stats.log_bytes = 345;
    open_all(&d);
    expect(&d, "conf", "clientPort=-1\n");
    expect(&d, "dirs", "datadir_size: 0\nlogdir_size: 0\n");
    clave__server_set_driver_info(d.s, &info);
    clave__server_set_driver_stats(d.s, &stats);
    expect(&d, "conf",
           "clientPort=2181\nsecureClientPort=2281\ndataDir=/data/version-2\ndataDirSize=12\n"
           "dataLogDir=/data/version-2\ndataLogSize=345\ntickTime=2000\nmaxClientCnxns=60\n");
    expect(&d, "dirs", "datadir_size: 12\nlogdir_size: 345\n");
}

TEST(so_many_connections)
{
    CLOSED_BY(memserver_close) struct memserver d;
    struct peer_addr peer = {.family = 4};
    struct server_options o = {.max_connections = 2};
    memserver_open(&d, &o);
    struct server_conn *a = clave__server_accept(d.s, &peer, NULL);
    struct server_conn *b = clave__server_accept(d.s, &peer, NULL);
    assert_true(a && b);
    assert_null(clave__server_accept(d.s, &peer, NULL));
    clave__server_conn_closed(a);
    a = clave__server_accept(d.s, &peer, NULL);
    assert_non_null(a);
    clave__server_conn_closed(a);
    clave__server_conn_closed(b);
}

/* A client with that digest passes every check, and whoAmI says so. */
TEST(the_super_user)
{
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    struct wire_reply r;
    struct server_options o = {.super_digest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="};
    union wire_body b = memserver_create_body("/closed", "", MODE_PERSISTENT);
    union wire_body get = {.read = {clave__jbytes("/closed"), false}};
    union wire_body wrong = {.auth = {0, clave__jbytes("digest"), clave__jbytes("super:no")}};
    union wire_body right = {.auth = {0, clave__jbytes("digest"), clave__jbytes("super:test")}};
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 10000);
    b.create.acl = memserver_acl(PERM_ALL, "digest", "joe:x");
    assert_int_equal(memserver_call(&c, OP_CREATE, &b, NULL), CLAVE_OK);
    assert_int_equal(memserver_call(&c, OP_AUTH, &wrong, NULL), CLAVE_OK);
    assert_int_equal(memserver_call(&c, OP_GET_DATA, &get, NULL), CLAVE_ENOAUTH);
    assert_int_equal(memserver_call(&c, OP_AUTH, &right, NULL), CLAVE_OK);
    assert_int_equal(memserver_call(&c, OP_GET_DATA, &get, NULL), CLAVE_OK);
    assert_int_equal(memserver_call(&c, OP_WHO_AM_I, NULL, &r), CLAVE_OK);
    assert_int_equal(r.ids.count, 4); /* ip, super, digest twice */
    b.create = memserver_create_body("/x", "", MODE_PERSISTENT).create;
    b.create.acl = memserver_acl(PERM_ALL, "super", "");
    assert_int_equal(memserver_call(&c, OP_CREATE, &b, NULL), CLAVE_EINVALIDACL);
}
