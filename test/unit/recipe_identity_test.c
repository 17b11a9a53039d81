/* What a lock node says about its owner: clave's form both ways, and other clients' data. */
#include "lib/unit.h"
#include "recipe/queue/identity.h"

static clave_identity parse(char *buf, size_t cap, const void *data, size_t n)
{
    clave_identity id;
    assert_true(n < cap);
    memcpy(buf, data, n);
    buf[n] = '\0';
    clave__identity_parse(buf, n, &id);
    return id;
}

TEST(format_and_parse_are_inverse)
{
    clave_identity in = {
        .host = "db1", .pid = 4711, .name = "nightly 100% \x7f", .command = "sh -c 'a\nb=c\t%41'"};
    char out[256];
    size_t n = clave_identity_format(&in, out, sizeof out);
    assert_int_equal(n, strlen(out));
    assert_string_equal(out, "clave/1\nhost=db1\npid=4711\nname=nightly 100%25 %7F\n"
                             "command=sh -c 'a%0Ab=c%09%2541'\n");
    char buf[256];
    clave_identity id = parse(buf, sizeof buf, out, n);
    assert_string_equal(id.host, in.host);
    assert_int_equal(id.pid, in.pid);
    assert_string_equal(id.name, in.name);
    assert_string_equal(id.command, in.command);
    assert_null(id.text);
}

/* What the locks write after the caller's data. */
TEST(owners_limits_and_promises_are_read)
{
    clave_identity in = {.owner = "deploy/7",
                         .task = "3f",
                         .limit = 12,
                         .yields = true,
                         .revocable = -1,
                         .asked = true};
    char out[256], buf[256];
    size_t n = clave_identity_format(&in, out, sizeof out);
    assert_string_equal(
        out, "clave/1\nowner=deploy/7\ntask=3f\nlimit=12\nyields=1\nrevocable=0\nasked=1\n");
    assert_true(clave__identity_is_form(out, n));
    assert_false(clave__identity_is_form(out, 7));
    clave_identity id = parse(buf, sizeof buf, out, n);
    assert_string_equal(id.owner, "deploy/7");
    assert_string_equal(id.task, "3f");
    assert_int_equal(id.limit, 12);
    assert_true(id.yields && id.asked);
    assert_int_equal(id.revocable, -1);
    static const char odd[] = "clave/1\nlimit=4294967297\nyields=yes\nrevocable=2\nasked=0\n";
    id = parse(buf, sizeof buf, odd, sizeof odd - 1);
    assert_int_equal(id.limit, 0);
    assert_false(id.yields || id.asked);
    assert_int_equal(id.revocable, 0);
    assert_null(id.owner);
    id = parse(buf, sizeof buf, CLAVE_REVOKE_WORD, strlen(CLAVE_REVOKE_WORD));
    assert_true(id.asked && !id.text);
}

/* Only what is one goes into the node, and comes out of it. */
TEST(traces_are_read)
{
    static const char trace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    static const char *const others[] = {
        "",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-0000000000000000-00",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-\n",
        "00-4bf92f3577b34da6a3ce929d0e0e4736a00f067aa0ba902b7-01",
    };
    char out[256], buf[256];
    assert_true(clave__identity_is_traceparent(trace));
    assert_true(clave__identity_is_traceparent(
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-da7e"));
    clave_identity in = {.host = "h", .traceparent = trace};
    size_t n = clave_identity_format(&in, out, sizeof out);
    assert_string_equal(parse(buf, sizeof buf, out, n).traceparent, trace);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        in.traceparent = others[i];
        assert_int_equal(clave_identity_format(&in, out, sizeof out), strlen("clave/1\nhost=h\n"));
        snprintf(out, sizeof out, "clave/1\ntraceparent=%s\n", others[i]);
        assert_null(parse(buf, sizeof buf, out, strlen(out)).traceparent);
    }
}

TEST(format_cuts_as_snprintf_does)
{
    clave_identity in = {.host = "h"};
    char out[8] = "XXXXXXX";
    size_t whole = strlen("clave/1\nhost=h\n");
    assert_int_equal(clave_identity_format(&in, NULL, 0), whole);
    assert_int_equal(clave_identity_format(&in, out, 1), whole);
    assert_string_equal(out, "");
    assert_int_equal(clave_identity_format(&in, out, sizeof out), whole);
    assert_string_equal(out, "clave/1");
}

TEST(other_clients_data_is_text_when_it_is_printable)
{
    static const struct {
        const char *data;
        size_t n;
        bool text;
    } cases[] = {
        {"10.0.0.7", 8, true}, /* Curator: the host's address */
        {"worker \xc3\xa9\xe2\x82\xac", 12, true},
        {"", 0, false},
        {"a\nb", 3, false},
        {"\x1b[31m", 5, false},
        {"\xc2\x9b"
         "31m",
         5, false}, /* C1: a terminal may obey it */
        {"\x9b"
         "31m",
         4, false},
        {"\xc3", 1, false}, /* cut off */
        {"\xc3"
         "a",
         2, false},
        {"\xf5\x80\x80\x80", 4, false},
        {"a\0b", 3, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buf[64];
        clave_identity id = parse(buf, sizeof buf, cases[i].data, cases[i].n);
        assert_int_equal(id.text != NULL, cases[i].text);
        if (id.text)
            assert_string_equal(id.text, cases[i].data);
        assert_null(id.host);
    }
}

TEST(a_damaged_form_yields_what_can_be_read)
{
    char buf[128];
    static const char odd[] = "clave/1\nrubbish\nhost=a\nhost\nfuture=x\npid=12x\nname=%4%zz%";
    clave_identity id = parse(buf, sizeof buf, odd, sizeof odd - 1);
    assert_string_equal(id.host, "a");
    assert_int_equal(id.pid, 0);
    assert_string_equal(id.name, "%4%zz%");
    static const char big[] = "clave/1\npid=99999999999999999999";
    assert_int_equal(parse(buf, sizeof buf, big, sizeof big - 1).pid, 0);
    static const char nul[] = "clave/1\nhost=a\0b\n";
    assert_null(parse(buf, sizeof buf, nul, sizeof nul - 1).host);
    static const char empty[] = "clave/1\n";
    assert_null(parse(buf, sizeof buf, empty, sizeof empty - 1).host);
}
