/* wire_x509_name_test.c - certificates as identities: how a subject is written, what an access
 * list may say, and what a client that has shown it may do. The texts are Java's own answers
 * (X500Principal of JDK 17). */
#include "base/memory.h"
#include "lib/memserver.h"
#include "lib/unit.h"
#include "wire/x509_name.h"

/* ---- names -------------------------------------------------------------------------------- */

static const struct {
    const char *der; /* hexadecimal */
    const char *text;
} subjects[] = {
    // clang-format off
    {"302d310b3009060355040613024445310d300b060355040a0c0441636d65310f300d06035504030c06636c69656e74", "CN=client,O=Acme,C=DE"},
    {"30820105310a300806035504030c0176310a300806035504060c0176310a300806035504070c0176310a300806035504080c0176310a300806035504090c0176310a3008060355040a0c0176310a3008060355040b0c01763111300f060a0992268993f22c6401190c01763111300f060a0992268993f22c6401010c01763110300e06092a864886f70d0109010c0176310a300806035504050c0176310a300806035504040c0176310a3008060355042a0c0176310a3008060355040c0c017631123010060b2b0601040182373c0201030c0176310a3008060355042b0c0176310a3008060355042e0c0176310a300806035504110c0176310f300d060888379080808000030c0176", "2.999.4294967296.3=#0c0176,2.5.4.17=#0c0176,2.5.4.46=#0c0176,2.5.4.43=#0c0176,1.3.6.1.4.1.311.60.2.1.3=#0c0176,2.5.4.12=#0c0176,2.5.4.42=#0c0176,2.5.4.4=#0c0176,2.5.4.5=#0c0176,1.2.840.113549.1.9.1=#0c0176,UID=v,DC=v,OU=v,O=v,STREET=v,ST=v,L=v,C=v,CN=v"},
    {"301e311c301a06035504030c13612c622b6322645c653c663e673b683d69236a", "CN=a\\,b\\+c\\\"d\\\\e\\<f\\>g\\;h\\=i\\#j"},
    {"3010310e300c06035504030c05236c656164", "CN=\\#lead"},
    {"3010310e300c06035504030c05206c656164", "CN=\\ lead"},
    {"3011310f300d06035504030c06747261696c20", "CN=trail\\ "},
    {"30123110300e06035504030c07202074776f2020", "CN=\\ \\ two\\ \\ "},
    {"300f310d300b06035504030c0461202062", "CN=a  b"},
    {"300c310a300806035504030c0120", "CN=\\ "},
    {"300b3109300706035504030c00", "CN="},
    {"30193117301506035504030c0e4a6f73c3a920e4b8ad20f09f9491", "CN=Jos\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x94\x91"},
    {"300d310b300906035504030c02fffe", "CN=\xef\xbf\xbd\xef\xbf\xbd"},
    {"300f310d300b060355040314044a6f73e9", "CN=Jos\xef\xbf\xbd"},
    {"30133111300f06035504031e0800630061006600e9", "CN=\\00c\\00a\\00f\\00\xef\xbf\xbd"},
    {"30133111300f06035504031c080000006100000062", "CN=#1c080000006100000062"},
    {"3010310e300c060355040312053132332034", "CN=#12053132332034"},
    {"300e310c300a06035504031a03766973", "CN=#1a03766973"},
    {"3010310e300c06035504031b0567656e2c78", "CN=gen\\,x"},
    {"3010310e300c060355040316056961354078", "CN=ia5@x"},
    {"30163114300806035504030c01623008060355040b0c0161", "CN=b+OU=a"},
    {"302231143008060355040b0c0162300806035504030c0161310a3008060355040a0c017a", "O=z,OU=b+CN=a"},
    {"301c311a300806035504030c0178300e06092a864886f70d010901160179", "CN=x+1.2.840.113549.1.9.1=#160179"},
    {"300e310c300a06035504030c03610062", "CN=a\\00b"},
    {"30133111300f06035504030c08610a6209630d647f", "CN=a\x0a" "b\x09" "c\x0d" "d\x7f"},
    {"300e310c300a06035504030c030d780d", "CN=\\\x0dx\\\x0d"},
    {"300e310c300a06035504030c03097809", "CN=\x09x\x09"},
    {"3000", ""},
    {"301d311b301906035504030c12782a79407a212425267e5e5f607b7c7d5b5d", "CN=x*y@z!$%&~^_`{|}[]"},
    {"301f311d301b06035504030c14697427732028612920746573742f313a323f2d2e", "CN=it's (a) test/1:2?-."},
    {"300c310a300806035504030c01c3", "CN=\xef\xbf\xbd"},
    {"300f310d300b06035504030c0461e28262", "CN=a\xef\xbf\xbd" "b"},
    {"300e310c300a06035504030c03eda080", "CN=\xef\xbf\xbd"},
    {"300e310c300a06035504030c03f09f94", "CN=\xef\xbf\xbd"},
    {"300d310b300906035504030c02c080", "CN=\xef\xbf\xbd\xef\xbf\xbd"},
    {"300f310d300b06035504030c04f4908080", "CN=\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"300f310d300b06035504030c04e0808078", "CN=\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx"},
    {"3010310e300c06035504030c05f888808080", "CN=\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"300e310c300a06035504030c03715c20", "CN=q\\\\\\ "},
    {"3010310e300c06035504030c05c2a078c2a0", "CN=\xc2\xa0x\xc2\xa0"},
    {"300c310a30080603550403020105", "CN=#020105"},
    {"300d310b30090603550403030200f0", "CN=#030200f0"},
    {"300b3109300706035504030500", "CN=#0500"},
    // clang-format on
};

static size_t unhex(const char *hex, uint8_t *out)
{
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned v;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &v), 1);
        out[i] = (uint8_t)v;
    }
    return n;
}

TEST(subjects_read_as_in_java)
{
    uint8_t der[512];
    struct clave_mem mem = clave__mem_or_default(NULL);
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        CLOSED_BY(clave__buf_fini) struct buf out;
        clave__buf_init(&out, &mem, 4096);
        size_t n = unhex(subjects[i].der, der);
        assert_int_equal(clave__x509_name_put(&out, der, n), CLAVE_OK);
        assert_int_equal(clave__buf_append(&out, "", 1), CLAVE_OK);
        assert_string_equal((const char *)clave__buf_bytes(&out), subjects[i].text);
    }
}

/* Every beginning of a name and every name with one bit turned ends well, or is refused. */
TEST(damaged_subjects_do_no_harm)
{
    uint8_t der[512];
    struct clave_mem mem = clave__mem_or_default(NULL);
    CLOSED_BY(clave__buf_fini) struct buf out;
    clave__buf_init(&out, &mem, 4096);
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        size_t n = unhex(subjects[i].der, der);
        for (size_t cut = 0; cut < n; cut++)
            assert_int_equal(clave__x509_name_put(&out, der, cut), CLAVE_EINVAL);
        for (size_t bit = 0; bit < n * 8; bit++) {
            der[bit / 8] ^= (uint8_t)(1u << bit % 8);
            clave_err err = clave__x509_name_put(&out, der, n);
            assert_true(err == CLAVE_OK || err == CLAVE_EINVAL);
            der[bit / 8] ^= (uint8_t)(1u << bit % 8);
            clave__buf_clear(&out);
        }
        clave__buf_clear(&out);
    }
}

static const struct {
    const char *id;
    bool valid;
} ids[] = {
    // clang-format off
    {"CN=a", true},
    {"cn=a", true},
    {"CN=a,O=b", true},
    {"CN=a;O=b", true},
    {"CN=a+OU=b", true},
    {"CN = a , O=b", true},
    {"", true},
    {"x", false},
    {"=x", false},
    {"CN=", true},
    {"CN", false},
    {"CN=a,", false},
    {"CN=a,,O=b", false},
    {",CN=a", false},
    {"FOO=a", false},
    {"1.2.3=a", true},
    {"OID.1.2.3=a", true},
    {"oid.1.2.3=#0401", false},
    {"CN=\"a,b\"", true},
    {"CN=\"a", false},
    {"CN=a\\", false},
    {"CN=a\\,b", true},
    {"CN=a\\zz", false},
    {"CN=a\\C3\\A9", true},
    {"E=x", false},
    {"EMAILADDRESS=x", true},
    {"EMAIL=x", true},
    {"S=x", true},
    {"ST=x", true},
    {"T=x", true},
    {"IP=x", true},
    {"STREET=x", true},
    {"DC=x", true},
    {"DNQUALIFIER=x", true},
    {"DNQ=x", true},
    {"SURNAME=x", true},
    {"SN=x", false},
    {"GIVENNAME=x", true},
    {"GN=x", false},
    {"INITIALS=x", true},
    {"GENERATION=x", true},
    {"UID=x", true},
    {"SERIALNUMBER=x", true},
    {"L=x", true},
    {"C=x", true},
    {"OU=x", true},
    {"CN=#zz", false},
    {"CN=#0c0161", true},
    {"CN=#", false},
    {"CN=a=b", true},
    {"CN=a#b", true},
    {"CN=<a", false},
    {"CN=a\x09" "b", true},
    {"CN=\xc3\xa9", true},
    {"1=a", false},
    {"1.2.=a", false},
    {"3.1=a", false},
    {"CN=a+", false},
    {"CN=\" a \"", true},
    {"CN= a", true},
    {"CN=a b", true},
    {"CN=#0c01", false},
    {"CN=\\20a", true},
    {"ip:1", false},
    {"CN=#0c0161,O=b", true},
    {"CN=a \"b\" c", false},
    {"CN=a\"b", false},
    {"CN=\"a\"b", false},
    {"CN=\\#a", true},
    {"CN=a<", false},
    {"0.5=a", true},
    {"0.39.1=a", true},
    {"0.40.1=a", false},
    {"2.999=a", true},
    {"TITLE=x", false},
    {"BUSINESSCATEGORY=x", false},
    {"POSTALCODE=x", false},
    {"1.02.3=a", true},
    {"CN=a+O=b,OU=c+L=d", true},
    {"oid.1.2.3=a", true},
    {"oId.1.2.3=a", true},
    {"CN=a>b", false},
    {"CN=a<b", false},
    {"CN=a,<b", false},
    {"CN=a\\<b", true},
    {"CN=\"a<b\"", true},
    {"CN=#0401,", false},
    {"CN=#0C0161", true},
    {"CN=#0c0261", false},
    {"CN=\\C3", true},
    {"CN=\\C", false},
    {"CN=\"a\\\"b\"", true},
    {"CN=\"a\" ,O=b", true},
    {"CN=\"a\",O=b", true},
    {"+CN=a", false},
    {"CN =a", true},
    {"CN= \"a\"", true},
    {"CN=a\\ ", true},
    {"CN=a;", false},
    {" CN=a", true},
    {"CN=a,\x09O=b", true},
    {"C N=a", false},
    {"CN=a=", true},
    // clang-format on
};

TEST(ids_of_access_lists)
{
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (clave__x509_name_valid(clave__jbytes(ids[i].id)) != ids[i].valid)
            fail_msg("'%s' should be %s", ids[i].id, ids[i].valid ? "valid" : "refused");
    assert_false(clave__x509_name_valid(clave__jbytes(NULL)));
}

/* ---- connections -------------------------------------------------------------------------- */

/* CN=client,O=Acme,C=DE */
#define CLIENT subjects[0]

struct place {
    struct memserver d;
    struct memserver_conn c; /* has shown the certificate */
};

/* Shows the subject and shakes hands. */
static void connect_as(struct memserver_conn *c, struct memserver *d, const char *hex)
{
    uint8_t der[512], passwd[WIRE_PASSWORD_LEN] = {0};
    struct wire_connect_request q = {.timeout_ms = 10000, .has_read_only = true};
    struct wire_connect_response r;
    memserver_dial(c, d);
    q.passwd = clave__jbytes_n(passwd, sizeof passwd);
    assert_int_equal(clave__server_conn_certify(c->c, der, unhex(hex, der)), CLAVE_OK);
    assert_true(memserver_handshake(c, &q, &r) && r.session_id != 0);
}

static void open_place(struct place *p, const char *super)
{
    const struct server_options o = {.x509 = true, .x509_super = super};
    memserver_open(&p->d, &o);
    connect_as(&p->c, &p->d, CLIENT.der);
    assert_int_equal(memserver_create(&p->c, "/n", "", 0), CLAVE_OK);
}

static void close_place(struct place *p)
{
    memserver_hang_up(&p->c);
    memserver_close(&p->d);
}

static clave_err set_acl(struct memserver_conn *c, const char *scheme, const char *id)
{
    union wire_body b = {.set_acl = {clave__jbytes("/n"), memserver_acl(31, scheme, id), -1}};
    return memserver_call(c, OP_SET_ACL, &b, NULL);
}

static clave_err authenticate(struct memserver_conn *c, const char *scheme, const char *auth)
{
    union wire_body b = {.auth = {0, clave__jbytes(scheme), clave__jbytes(auth)}};
    struct wire_reply_header h;
    struct jreader r;
    memserver_request(c, OP_AUTH, &b);
    return memserver_next(c, &h, &r) ? (clave_err)h.err : CLAVE_ECONNLOSS;
}

/* "31 x509 CN=..." */
static const char *acl_of(struct memserver_conn *c)
{
    static char text[256];
    struct wire_reply r;
    union wire_body b = {.path = clave__jbytes("/n")};
    assert_int_equal(memserver_call(c, OP_GET_ACL, &b, &r), CLAVE_OK);
    struct jreader in = clave__jvec_reader(r.acl);
    int n = 0;
    for (int32_t i = 0; i < r.acl.count; i++) {
        struct wire_acl a = clave__wire_get_acl(&in);
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%d %.*s %.*s", i ? ", " : "",
                      (int)a.perms, (int)a.scheme.n, a.scheme.p, (int)a.id.n, a.id.p);
    }
    return text;
}

static const char *who_am_i(struct memserver_conn *c)
{
    static char text[256];
    struct wire_reply r;
    assert_int_equal(memserver_call(c, OP_WHO_AM_I, NULL, &r), CLAVE_OK);
    struct jreader in = clave__jvec_reader(r.ids);
    int n = 0;
    for (int32_t i = 0; i < r.ids.count; i++) {
        struct jbytes scheme = clave__jget_bytes(&in), user = clave__jget_bytes(&in);
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%.*s:%.*s", i ? " " : "", (int)scheme.n,
                      scheme.p, (int)user.n, user.p);
    }
    return text;
}

TEST(a_certificate_opens_what_is_its_own)
{
    CLOSED_BY(close_place) struct place p;
    struct memserver_conn other;
    open_place(&p, NULL);
    assert_string_equal(who_am_i(&p.c), "ip:127.0.0.1 x509:CN=client,O=Acme,C=DE");
    assert_int_equal(set_acl(&p.c, "x509", "CN=client,O=Acme,C=DE"), CLAVE_OK);
    assert_string_equal(acl_of(&p.c), "31 x509 CN=client,O=Acme,C=DE");
    assert_int_equal(memserver_set(&p.c, "/n", "1", -1), CLAVE_OK);
    memserver_connect(&other, &p.d, 10000);
    assert_int_equal(memserver_set(&other, "/n", "2", -1), CLAVE_ENOAUTH);
    memserver_hang_up(&other);
    connect_as(&other, &p.d, subjects[3].der);
    assert_int_equal(memserver_set(&other, "/n", "2", -1), CLAVE_ENOAUTH);
    memserver_hang_up(&other);
    /* It is compared as text: another way to write the same name is another id. */
    assert_int_equal(set_acl(&p.c, "x509", "CN=client, O=Acme, C=DE"), CLAVE_OK);
    assert_int_equal(memserver_set(&p.c, "/n", "3", -1), CLAVE_ENOAUTH);
}

TEST(auth_stands_for_the_subject_too)
{
    CLOSED_BY(close_place) struct place p;
    open_place(&p, NULL);
    assert_int_equal(authenticate(&p.c, "x509", ""), CLAVE_OK); /* it has it already */
    assert_int_equal(authenticate(&p.c, "digest", "u:p"), CLAVE_OK);
    assert_int_equal(set_acl(&p.c, "auth", ""), CLAVE_OK);
    assert_string_equal(acl_of(&p.c),
                        "31 digest u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=, 31 x509 CN=client,O=Acme,C=DE");
}

TEST(without_a_certificate_there_is_nobody)
{
    CLOSED_BY(close_place) struct place p;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_place(&p, "CN=client,O=Acme,C=DE");
    memserver_connect(&c, &p.d, 10000);
    assert_string_equal(who_am_i(&c), "ip:127.0.0.1");
    assert_int_equal(set_acl(&c, "auth", ""), CLAVE_EINVALIDACL);
    assert_int_equal(authenticate(&c, "x509", "CN=client,O=Acme,C=DE"), CLAVE_EAUTHFAILED);
    assert_null(c.c);
}

TEST(a_certificate_may_be_the_super_user)
{
    CLOSED_BY(close_place) struct place p;
    open_place(&p, "CN=client,O=Acme,C=DE");
    assert_int_equal(set_acl(&p.c, "digest", "nobody:x"), CLAVE_OK);
    assert_int_equal(memserver_set(&p.c, "/n", "1", -1), CLAVE_OK);
    assert_non_null(strstr(p.d.lines, "127.0.0.1:42100 is CN=client,O=Acme,C=DE, the super user"));
}

TEST_SESSION(a_server_without_the_scheme_refuses_it, 10000)
{
    assert_int_equal(memserver_create(c, "/n", "", 0), CLAVE_OK);
    assert_int_equal(set_acl(c, "x509", "CN=client"), CLAVE_EINVALIDACL);
}

TEST(what_is_no_name_is_refused)
{
    CLOSED_BY(close_place) struct place p;
    CLOSED_BY(memserver_hang_up) struct memserver_conn c;
    open_place(&p, NULL);
    memserver_dial(&c, &p.d);
    assert_int_equal(clave__server_conn_certify(c.c, "\x30\x01", 2), CLAVE_EINVAL);
}
