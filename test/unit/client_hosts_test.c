/* The host list: what is understood, what is refused, and in which order hosts are tried. */
#include "base/memory.h"
#include "client/hosts.h"
#include "lib/failmem.h"
#include "lib/unit.h"

/* "h1:2181 h2:2182 /chroot" */
static const char *taken_apart(const char *text)
{
    static char out[512];
    struct failmem mem;
    struct hosts h;
    size_t n = 0;
    failmem_init(&mem);
    assert_int_equal(clave__hosts_init(&h, &mem.mem, text), CLAVE_OK);
    for (size_t i = 0; i < h.count; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s:%u ", h.list[i].name,
                              (unsigned)h.list[i].port);
    snprintf(out + n, sizeof out - n, "%s", h.chroot);
    assert_int_equal(h.chroot_len, strlen(h.chroot));
    clave__hosts_fini(&h);
    assert_int_equal(mem.live, 0);
    return out;
}

TEST(lists_are_taken_apart)
{
    static const struct {
        const char *text, *is;
    } rows[] = {
        {"h", "h:2181 "},
        {"h:1", "h:1 "},
        {"h/", "h:2181 "},
        {"h1:1,h2,10.0.0.1:65535/a/b", "h1:1 h2:2181 10.0.0.1:65535 /a/b"},
        {"[::1]:9,[fe80::1%eth0]/x", "::1:9 fe80::1%eth0:2181 /x"},
        {"[::ffff:10.0.0.1%25]", "::ffff:10.0.0.1%25:2181 "},
        {"unix:/run/x/sock", "/run/x/sock:0 "},
        {"unix:/run/a,b c", "/run/a,b c:0 "},
        {"local:", "local::0 "},
        {"local:/", "local::0 "},
        {"local:/app", "local::0 /app"},
        /* Java's ConnectStringParser, and kazoo for the spaces. */
        {"zk1:2181, zk2:2181", "zk1:2181 zk2:2181 "},
        {" zk1:2181 ,\tzk2\n", "zk1:2181 zk2:2181 "},
        {"zk1:2181,zk2:2181,", "zk1:2181 zk2:2181 "},
        {",zk1,,zk2, ,/app", "zk1:2181 zk2:2181 /app"},
        {"zk1 /app", "zk1:2181 /app"},
        {"zk1:2181/", "zk1:2181 "},
        {"zk1/app/", "zk1:2181 /app"}, /* kazoo */
        {"local:/a/", "local::0 /a"},
        /* Mesos, Spark, Dubbo. */
        {"zk://zk1:2181,zk2/app", "zk1:2181 zk2:2181 /app"},
        {"zookeeper://zk1:2181", "zk1:2181 "},
        {"zk", "zk:2181 "},
        {"local,unix:1", "local:2181 unix:1 "},
        {"zk-1.example.com.,zk_2", "zk-1.example.com.:2181 zk_2:2181 "},
        {"10.0.0.255,3com", "10.0.0.255:2181 3com:2181 "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(taken_apart(rows[i].text), rows[i].is);
}

static bool wants_tls(const char *text)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct hosts h;
    assert_int_equal(clave__hosts_init(&h, &mem, text), CLAVE_OK);
    bool wants = h.tls;
    clave__hosts_fini(&h);
    return wants;
}

TEST(tls_is_of_all_hosts)
{
    assert_string_equal(taken_apart("tls:h1:1,h2,[::1]/a"), "h1:1 h2:2281 ::1:2281 /a");
    assert_true(wants_tls("tls:h1:1,h2,[::1]/a"));
    assert_false(wants_tls("h1:1,h2"));
    assert_false(wants_tls("[tls]:2181")); /* a host of this name */
    assert_false(wants_tls("unix:/tls:"));
}

/* A refusal names the fault that its writer made. */
static const struct {
    const char *text, *why;
} bad[] = {
    {"", "empty"},
    {",", "names no host"},
    {" , ", "names no host"},
    {"tls:", "names no host"},
    {"tls:/a", "names no host"},
    {"/app", "names no host"},
    {"zk://", "names no host"},
    /* a chroot after each host, however they are separated */
    {"h1/app,h2/app", "there can be only one chroot, at the end: h1,h2/app"},
    {"h1/,h2/", "there can be only one chroot"},
    {"h1/app, h2:2181", "there can be only one chroot"},
    {"h1/app,", "there can be only one chroot"},
    {"zk://h1/app,zk://h2/app", "there can be only one chroot"},
    {"local:/a,b", "there can be only one chroot"},
    {"h1/app;h2/app", "nothing may follow it"},
    {"h1/app h2/app", "nothing may follow it"},
    {"h1/app ", "nothing may follow it"},
    {"h1/app # the test servers", "nothing may follow it"},
    {"h1/app:2181", "the port comes before the chroot"},
    {"h1:1/b:2/c", "the port comes before the chroot"},
    {"h1:2181/app?timeout=3", "no parameters"},
    {"h1//", "not a valid path"},
    {"h/a//b", "not a valid path"},
    {"h/a//", "not a valid path"},
    {"h/../b", "not a valid path"},
    {"local:x", "only a chroot may follow local:"},
    {"local:2181", "only a chroot may follow local:"},
    /* separators of others */
    {"127.0.0.1:2181;127.0.0.2:2181", "separated by commas"},
    {"h1|h2", "separated by commas"},
    {"h1 h2", "separated by commas"},
    {"h 1", "separated by commas"},
    {"h1:2181 h2:2181", "separated by commas"},
    {"\"h1:2181\"", "quote"},
    {"'h1,h2'", "quote"},
    {"[\"h1\", \"h2\"]", "quote"},
    {"h/\"", "quote"},
    {"${ZK}", "variable"},
    {"$ZK:2181", "variable"},
    /* prefixes */
    {"user:pw@h", "no user or password"},
    {"zk://user:pw@h1,h2/mesos", "no user or password"},
    {"http://h:2181", "only zk:// and zookeeper:// are known"},
    {"tcp://h:2181", "only zk:// and zookeeper:// are known"},
    {"tls:zk://h", "only zk:// and zookeeper:// are known"},
    {"h1,zk://h2", "only zk:// and zookeeper:// are known"},
    {"tls:unix:/x", "may be given, at the very beginning"},
    {"tls:local:", "may be given, at the very beginning"},
    {"a,tls:b", "may be given, at the very beginning"},
    {" tls:b", "may be given, at the very beginning"},
    {"a,local:", "may be given, at the very beginning"},
    {" local:", "may be given, at the very beginning"},
    {"unix:", "path of a socket"},
    /* ports and addresses */
    {"h:", "a port is missing"},
    {"h:,h2", "a port is missing"},
    {"h:x", "must be a number"},
    {"h:-1", "must be a number"},
    {"h:0", "from 1 to 65535"},
    {"h:65536", "from 1 to 65535"},
    {"h:999999", "from 1 to 65535"},
    {"2181", "a port without its host"},
    {"h1,2181", "a port without its host"},
    {":2181", "no name"},
    {"tls::2281", "no name"},
    {"192.168.1:2181", "four numbers"},
    {"192.168.1.256", "four numbers"},
    {"192.168.1.2.256", "four numbers"},
    {"010.0.0.1", "four numbers"},
    {"10.0.0.1.", "four numbers"},
    {"::1", "in brackets: [::1]:2181"},
    {"a:1:2", "in brackets: [::1]:2181"},
    {"fe80::1%eth0", "in brackets: [::1]:2181"},
    {"[::1", "closing bracket"},
    {"[]:1", "closing bracket"},
    {"[::1]x", "only a port may follow"},
    {"[::1]2181", "only a port may follow"},
    {"[::1]:x", "must be a number"},
    {"[zk1:2181]", "only an IPv6 address may be in brackets"},
    {"[127.0.0.1:2181]", "only an IPv6 address may be in brackets"},
    {"[::1%]", "no name"},
    /* characters that no name has */
    {"h]", "letters, digits"},
    {"h\x01x", "letters, digits"},
    {"h%eth0", "letters, digits"},
    {"\xc2\xa0h", "letters, digits"},
    {"h1,\xe2\x80\x9ch2\xe2\x80\x9d", "letters, digits"},
};

TEST(nonsense_is_refused_with_a_reason)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct hosts h;
    assert_non_null(clave__hosts_fault(NULL));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *fault = clave__hosts_fault(bad[i].text);
        if (!fault || !strstr(fault, bad[i].why))
            fail_msg("'%s': %s", bad[i].text, fault ? fault : "accepted");
        assert_int_equal(clave__hosts_init(&h, &mem, bad[i].text), CLAVE_EHOST);
    }
}

TEST(a_pause_comes_after_a_whole_round_of_failures)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    CLOSED_BY(clave__hosts_fini) struct hosts h;
    assert_int_equal(clave__hosts_init(&h, &mem, "a,b,c"), CLAVE_OK);
    assert_false(clave__hosts_next(&h, true));
    assert_string_equal(clave__hosts_current(&h)->name, "b");
    assert_false(clave__hosts_next(&h, true));
    assert_true(clave__hosts_next(&h, true));
    assert_string_equal(clave__hosts_current(&h)->name, "a");
    assert_int_equal(clave__hosts_current(&h)->tried, 1);
    assert_false(clave__hosts_next(&h, true));
    clave__hosts_served(&h); /* b was of use */
    assert_false(clave__hosts_next(&h, false));
    assert_false(clave__hosts_next(&h, true));
    assert_false(clave__hosts_next(&h, true));
    assert_true(clave__hosts_next(&h, true));
}

TEST(shuffling_keeps_every_host)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct rand_state r;
    unsigned first[5] = {0};
    clave__rand_seed(&r, 4);
    for (int round = 0; round < 1000; round++) {
        CLOSED_BY(clave__hosts_fini) struct hosts h;
        unsigned seen = 0;
        assert_int_equal(clave__hosts_init(&h, &mem, "a,b,c,d,e"), CLAVE_OK);
        clave__hosts_shuffle(&h, &r);
        for (size_t i = 0; i < h.count; i++)
            seen |= 1u << (h.list[i].name[0] - 'a');
        assert_int_equal(seen, 31);
        first[h.list[0].name[0] - 'a']++;
    }
    for (int i = 0; i < 5; i++)
        assert_in_range(first[i], 140, 260);
}

TEST(without_memory_nothing_is_left)
{
    struct failmem mem;
    struct hosts h;
    for (size_t n = 1; n <= 2; n++) {
        failmem_init(&mem);
        failmem_arm(&mem, n, 1);
        assert_int_equal(clave__hosts_init(&h, &mem.mem, "a,b/c"), CLAVE_ENOMEM);
        assert_int_equal(mem.live, 0);
    }
}

static void try_next(struct hosts *h, unsigned refused_by)
{
    if (refused_by > 0)
        clave__hosts_refused(h, refused_by);
    clave__hosts_next(h, true);
}

TEST(all_of_them_refuse)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    CLOSED_BY(clave__hosts_fini) struct hosts h;
    assert_int_equal(clave__hosts_init(&h, &mem, "a,b"), CLAVE_OK);
    assert_false(clave__hosts_all_refuse(&h));
    try_next(&h, 1);
    assert_false(clave__hosts_all_refuse(&h)); /* b was not asked yet */
    try_next(&h, 2);
    assert_false(clave__hosts_all_refuse(&h)); /* nor was b's other address */
    try_next(&h, 1);
    assert_false(clave__hosts_all_refuse(&h));
    try_next(&h, 0);
    assert_true(clave__hosts_all_refuse(&h)); /* nobody is there */
    try_next(&h, 1);
    try_next(&h, 0);
    assert_false(clave__hosts_all_refuse(&h)); /* what b said is not of its newest two tries */
    try_next(&h, 1);
    try_next(&h, 2);
    assert_true(clave__hosts_all_refuse(&h));
    clave__hosts_answered(&h); /* a */
    assert_false(clave__hosts_all_refuse(&h));
}
