/* access_fuzz.c - who may do what: lists of any bytes and any identities, and ranges of addresses.
 * What the server takes for a node it can check, show and take again; an address that the C library
 * reads is an id, and means itself. The first byte says which. */
#include <arpa/inet.h>
#include <string.h>

#include "base/memory.h"
#include "fuzz/fuzz.h"
#include "server/access/acl.h"

/* ---- addresses ------------------------------------------------------------------------------- */

static bool matches(struct jbytes id, uint8_t family, const uint8_t ip[16])
{
    struct identities who = {.family = family};
    memcpy(who.ip, ip, sizeof who.ip);
    return clave__ip_matches(id, &who);
}

/* As far as both read them: libc takes an IPv4 address at the end of one of IPv6, too. */
static void compare_with_libc(const char *text, struct jbytes id)
{
    uint8_t ip[16] = {0};
    bool v6 = strchr(text, ':') != NULL;
    if ((v6 && strchr(text, '.')) || inet_pton(v6 ? AF_INET6 : AF_INET, text, ip) != 1)
        return;
    must(clave__ip_valid(id) && matches(id, v6 ? 6 : 4, ip));
    for (unsigned bit = 0; bit < (v6 ? 128 : 32); bit++) {
        ip[bit / 8] ^= 128 >> bit % 8;
        must(!matches(id, v6 ? 6 : 4, ip));
        ip[bit / 8] ^= 128 >> bit % 8;
    }
}

/* "address/bits": what is alike so far matches, and nothing else does. */
static void check_range(char *text, struct jbytes id)
{
    uint8_t ip[16] = {0};
    char *slash = strchr(text, '/');
    bool v6 = strchr(text, ':') != NULL;
    if (!slash || !clave__ip_valid(id))
        return;
    unsigned bits = (unsigned)strtoul(slash + 1, NULL, 10), most = v6 ? 128 : 32;
    *slash = '\0';
    if (inet_pton(v6 ? AF_INET6 : AF_INET, text, ip) == 1)
        for (unsigned bit = 0; bit < most; bit++) {
            *slash = '/';
            ip[bit / 8] ^= 128 >> bit % 8;
            must(matches(id, v6 ? 6 : 4, ip) == (bit >= bits));
            ip[bit / 8] ^= 128 >> bit % 8;
        }
    *slash = '/';
}

static void fuzz_address(const uint8_t *p, size_t n)
{
    static const uint8_t some[16] = {127, 0, 0, 1};
    char *text = malloc(n + 1);
    must(text != NULL);
    if (n > 0)
        memcpy(text, p, n);
    text[n] = '\0';
    struct jbytes id = clave__jbytes_n(text, n);
    must(clave__ip_valid(id) || (!matches(id, 4, some) && !matches(id, 6, some)));
    must(!(matches(id, 4, some) && matches(id, 6, some)));
    if (strlen(text) == n) {
        compare_with_libc(text, id);
        check_range(text, id);
    }
    free(text);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void put_identities(const struct identities *who, const struct clave_mem *mem)
{
    struct buf b;
    clave__buf_init(&b, mem, SIZE_MAX / 4);
    struct jwriter w = clave__jwriter(&b);
    clave__identities_put(&w, who);
    struct jreader r = clave__jreader(clave__buf_bytes(&b), clave__buf_len(&b));
    for (int32_t count = clave__jget_int(&r); count > 0; count--) {
        (void)clave__jget_bytes(&r);
        (void)clave__jget_bytes(&r);
    }
    must(!r.bad && r.n == 0);
    clave__buf_fini(&b);
}

/* As a node has it, and as it is shown to one who may not see the secrets. */
static void keep_list(struct acls *all, const struct identities *who, struct jvec list)
{
    struct buf b;
    struct acl *kept = clave__acls_take(all, list, ACL_NEW_KEY);
    must(kept && clave__acls_take(all, list, ACL_NEW_KEY) == kept && kept->refs == 2);
    bool any = false;
    for (int32_t perm = 1; perm <= PERM_ALL; perm <<= 1)
        any = clave__acl_allows(kept, who, perm) || any;
    must(any == clave__acl_allows(kept, who, PERM_ALL));
    clave__buf_init(&b, all->mem, SIZE_MAX / 4);
    struct jwriter w = clave__jwriter(&b);
    clave__acl_put_masked(&w, kept);
    struct jreader r = clave__jreader(clave__buf_bytes(&b), clave__buf_len(&b));
    struct jvec masked = clave__wire_get_acls(&r);
    must(!r.bad && r.n == 0 && masked.count == list.count);
    clave__buf_fini(&b);
    clave__acls_drop(all, kept);
    clave__acls_drop(all, kept);
}

/* A list, and after it the schemes and names the connection has shown. */
static void fuzz_list(const struct input *in, bool with_subject)
{
    static const uint8_t subject[] = {0x30, 0x0c, 0x31, 0x0a, 0x30, 8, 6,
                                      3,    0x55, 4,    3,    0x0c, 1, 'a'};
    const struct clave_mem mem = clave__mem_or_default(NULL);
    const struct peer_addr peer = {.family = 4, .ip = {127, 0, 0, 1}};
    struct jreader r = clave__jreader(in->p, in->n);
    struct jvec asked = clave__wire_get_acls(&r), fixed, again;
    struct identities who;
    struct acls all;
    struct buf room, more;
    clave__identities_init(&who, &mem, &peer);
    clave__buf_init(&room, &mem, 1 << 20);
    clave__buf_init(&more, &mem, 1 << 20);
    who.knows_x509 = with_subject;
    must(!with_subject || clave__identities_certify(&who, subject, sizeof subject) == CLAVE_OK);
    must(clave__acls_init(&all, &mem, 1) == CLAVE_OK);
    for (bool bad = r.bad; !bad && r.n > 0;) {
        struct jbytes scheme = clave__jget_bytes(&r), auth = clave__jget_bytes(&r);
        bad = r.bad || clave__identities_add(&who, scheme, auth) != CLAVE_OK;
    }
    put_identities(&who, &mem);
    if (!r.bad && clave__acl_fix_up(asked, &who, &room, &fixed) == CLAVE_OK) {
        must(clave__acl_fix_up(fixed, &who, &more, &again) == CLAVE_OK);
        must(again.count == fixed.count && again.n == fixed.n);
        must(memcmp(again.p, fixed.p, fixed.n) == 0);
        keep_list(&all, &who, fixed);
    }
    clave__acls_fini(&all);
    clave__buf_fini(&more);
    clave__buf_fini(&room);
    clave__identities_fini(&who);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    uint8_t which = input_byte(&in);
    if (which % 3 == 0)
        fuzz_address(in.p, in.n);
    else
        fuzz_list(&in, which % 3 == 2);
    return 0;
}
