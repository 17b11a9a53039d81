/* seeds_texts.c - what people and other programs write: names, addresses, configurations. */
#include <string.h>

#include "base/memory.h"
#include "clave/async/mutex.h"
#include "fuzz/seeds.h"
#include "wire/record.h"

static void keep_text(const char *target, char kind, const char *text)
{
    keep(target, &kind, 1, text, strlen(text));
}

static void keep_hosts(void)
{
    static const char *const hosts[] = {"zk1:2181,[::1]:2182,zk3/chroot", "tls:a,b:2", "unix:/x",
                                        "local:/a", "[::1]"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        keep_text("text_fuzz", 3, hosts[i]);
}

/* As Curator, kazoo and clave name their nodes, in one folder, for each rule; and bare. */
static void keep_names(void)
{
    static const char names[] = "_c_1b-lock-0000000003\nb8__lock__0000000001\nlock-2147482647\n"
                                "a__rlock__0000000002\n_c_2-__READ__0000000004\nlock--2147483648\n"
                                "_c_3-__WRIT__0000000004\nlease-0000000001\nother\n"
                                "_c_4-priority-10-latch-0000000005\n_c_5-latch-0000000006";
    for (char kind = 0; kind < 5; kind++)
        keep_text("names_fuzz", kind, names);
    keep_text("names_fuzz", (char)128, "n_\nn_0000000001\nn_0000000002\nm_0000000003");
}

static void keep_access(void)
{
    static const char *const ids[] = {"127.0.0.1", "10.0.0.0/8", "::1/128", "2001:db8::/32",
                                      "fe80::1:2:3:4"};
    static const char *const list[][2] = {{"world", "anyone"},
                                          {"auth", ""},
                                          {"ip", "10.0.0.0/8"},
                                          {"digest", "u:p"},
                                          {"x509", "CN=a"}};
    const struct clave_mem mem = clave__mem_or_default(NULL);
    enum { ENTRIES = sizeof list / sizeof *list };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        keep_text("access_fuzz", 0, ids[i]);
    for (uint8_t kind = 1; kind <= 2; kind++) {
        struct buf b;
        clave__buf_init(&b, &mem, SIZE_MAX / 4);
        struct jwriter w = clave__jwriter(&b);
        clave__jput_int(&w, ENTRIES - (kind == 1)); /* x509 needs a certificate */
        for (int i = 0; i < ENTRIES - (kind == 1); i++)
            clave__wire_put_acl(
                &w, &(struct wire_acl){31, clave__jbytes(list[i][0]), clave__jbytes(list[i][1])});
        clave__jput_str(&w, "digest");
        clave__jput_str(&w, "u:p");
        keep("access_fuzz", &kind, 1, b.data, b.tail);
        clave__buf_fini(&b);
    }
}

static void keep_configs(void)
{
    static const char server[] =
        "# ours\ndata = /var/lib/clave\nlisten = 127.0.0.1:2181\nlisten = tls:[::1]:2281\ntick = "
        "2s\n"
        "max-request = 2048\ntls-cert = a\ntls-clients = none\nwords = ruok,mntr\nsnap-count = 9\n"
        "super-digest = u:0123456789012345678901234567\nlog-level = debug\nlog-format = json\n"
        "max-connections = 0\nextended-types = true\nidle-exit = 1m\nmin-session-timeout = 4s\n";
    static const char zoocfg[] =
        "dataDir=/var/lib/zookeeper\nclientPort: 2181\nclientPortAddress ::1\ntickTime=2000\n"
        "4lw.commands.whitelist=stat, ruok, "
        "nope\njute.maxbuffer=0x1000\nserver.1=a:1:2;[::1]:2181\n"
        "secureClientPort=2281\nssl.keyStore.location=/a\\\n   b\\u00e4\nssl.keyStore.type=PEM\n"
        "ssl.clientAuth=none\nextendedTypesEnabled=true\nminSessionTimeout=-1\nadmin.x=1\n!end\n";
    static const char client[] = "connect = zk1,zk2/app\nsession-timeout = 10s\ntimeout = 3s\nauth "
                                 "= digest:u:p\nlocal = never\n"
                                 "tls-ca = /ca\ntls-cert = /c\ntls-key = /k\ntls-name = n\n";
    keep_text("config_fuzz", 0, server);
    keep_text("config_fuzz", 0, zoocfg);
    keep_text("config_fuzz", 1, client);
    keep_text("config_fuzz", 2, "world:anyone:r,digest:joe:x=:cdrwa,x509:CN=a,O=b:cd,auth::a");
    keep_text("config_fuzz", 2, "creator");
    keep_text("config_fuzz", 3, "500ms");
    keep_text("config_fuzz", 3, "2d");
}

void keep_texts(void)
{
    static const char *const texts[] = {
        "/a/b/c", "/\xc3\xbc/..x", "/a/./b", "//", "host 12", "clave/1\nhost=h%0A\npid=7\nname=\n"};
    /* O=z, CN=a+2.5.4.5=#13.. */
    static const uint8_t name[] = {0x30, 0x22, 0x31, 0x0a, 0x30, 8, 6,    3, 0x55, 4,    10, 0x0c,
                                   1,    'z',  0x31, 0x14, 0x30, 8, 6,    3, 0x55, 4,    3,  0x0c,
                                   1,    'a',  0x30, 8,    6,    3, 0x55, 4, 5,    0x13, 1,  '1'};
    char text[256];
    clave_identity id = {.host = "h", .pid = 42, .name = "n%", .command = "make\tall"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        keep("text_fuzz", "\0", 1, texts[i], strlen(texts[i]));
        keep("text_fuzz", "\1", 1, texts[i], strlen(texts[i]));
    }
    keep_hosts();
    keep("text_fuzz", "\1", 1, text, clave_identity_format(&id, text, sizeof text));
    keep("text_fuzz", "\2", 1, name, sizeof name);
    keep("text_fuzz", "\2", 1, "CN=a\\,b+1.2=#0500;O=\"c\"", 22);
    keep_names();
    keep_access();
    keep_configs();
}
