/* base_http_host_test.c - which Host of a request names this server. */
#include "base/http_host.h"
#include "lib/unit.h"

TEST(hosts)
{
    static const struct {
        const char *host;
        bool ours;
    } cases[] = {
        {"127.0.0.1", true},
        {"127.0.0.1:8080", true},
        {"10.1.2.3:80", true},
        {"[::1]", true},
        {"[fd00::1]:8080", true},
        {"localhost", true},
        {"LocalHost:8080", true},
        {"zk1", true},
        {"ZK1.example:80", true},
        {"zk1.example.", false},
        {"zk", false},
        {"zk1.examples", false},
        {"evil.example", false},
        {"127.0.0.1.evil.example", false},
        {"localhost.evil.example", false},
        {"localhost:80@evil", false},
        {"localhost:123456", false},
        {"[::1]evil", false},
        {"[evil]", false},
        {":80", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (clave__http_host_is_ours(cases[i].host, "zk1, zk1.example,,other") != cases[i].ours)
            fail_msg("%s", cases[i].host);
    assert_false(clave__http_host_is_ours("zk1", NULL));
    assert_false(clave__http_host_is_ours("zk1", ""));
}
