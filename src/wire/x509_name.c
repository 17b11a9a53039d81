/* x509_name.c - the subject of a certificate as Java writes it, and which texts Java accepts as
 * one; see x509_name.h. The bytes come from clients, so nothing here trusts a length. */
#include "wire/x509_name.h"

#include <stdio.h>
#include <string.h>

/* ---- DER ------------------------------------------------------------------------------------- */

enum der_tag {
    DER_OID = 0x06,
    DER_UTF8 = 0x0c,
    DER_PRINTABLE = 0x13,
    DER_T61 = 0x14,
    DER_IA5 = 0x16,
    DER_GENERAL = 0x1b,
    DER_BMP = 0x1e,
    DER_SEQUENCE = 0x30,
    DER_SET = 0x31,
};

struct der {
    const uint8_t *p;
    size_t n;
};

/* One element: its tag, its content, and the element as a whole. */
struct element {
    uint8_t tag;
    struct der content;
    struct der whole;
};

static bool x509_take_length(struct der *d, size_t *out)
{
    if (d->n == 0)
        return false;
    size_t first = *d->p++, octets = first & 0x7f;
    d->n--;
    *out = first;
    if (first < 0x80)
        return true;
    if (octets == 0 || octets > 3 || octets > d->n)
        return false;
    for (*out = 0; octets > 0; octets--, d->n--)
        *out = *out << 8 | *d->p++;
    return true;
}

static bool x509_take_element(struct der *d, struct element *e)
{
    size_t len;
    e->whole.p = d->p;
    if (d->n == 0)
        return false;
    e->tag = *d->p++;
    d->n--;
    if ((e->tag & 0x1f) == 0x1f || !x509_take_length(d, &len) || len > d->n)
        return false;
    e->content = (struct der){d->p, len};
    d->p += len;
    d->n -= len;
    e->whole.n = (size_t)(d->p - e->whole.p);
    return true;
}

static bool x509_name_take(struct der *d, uint8_t tag, struct element *e)
{
    return x509_take_element(d, e) && e->tag == tag;
}

/* ---- types ----------------------------------------------------------------------------------- */

/* The types with a keyword in RFC 2253; Java writes all others as numbers. */
static const struct keyword {
    const char *word;
    uint8_t len;
    uint8_t oid[10];
} keywords[] = {
    {"CN", 3, {0x55, 4, 3}},
    {"C", 3, {0x55, 4, 6}},
    {"L", 3, {0x55, 4, 7}},
    {"ST", 3, {0x55, 4, 8}},
    {"STREET", 3, {0x55, 4, 9}},
    {"O", 3, {0x55, 4, 10}},
    {"OU", 3, {0x55, 4, 11}},
    {"UID", 10, {9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1}},
    {"DC", 10, {9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25}},
};

static const char *x509_keyword_of(struct der oid)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (oid.n == keywords[i].len && memcmp(oid.p, keywords[i].oid, oid.n) == 0)
            return keywords[i].word;
    return NULL;
}

static clave_err x509_name_put_text(struct buf *out, const char *text)
{
    return clave__buf_append(out, text, strlen(text));
}

/* "2.5.4.5". The first two numbers are one in DER. */
static clave_err x509_put_oid(struct buf *out, struct der oid)
{
    char text[24];
    uint64_t v = 0;
    bool first = true;
    clave_err err = oid.n > 0 && !(oid.p[oid.n - 1] & 0x80) ? CLAVE_OK : CLAVE_EINVAL;
    for (size_t i = 0; i < oid.n && err == CLAVE_OK; i++) {
        if (v > UINT64_MAX >> 8)
            return CLAVE_EINVAL;
        v = v << 7 | (oid.p[i] & 0x7f);
        if (oid.p[i] & 0x80)
            continue;
        unsigned top = v < 80 ? (unsigned)(v / 40) : 2;
        if (first)
            snprintf(text, sizeof text, "%u.%llu", top, (unsigned long long)(v - top * 40));
        else
            snprintf(text, sizeof text, ".%llu", (unsigned long long)v);
        err = x509_name_put_text(out, text);
        first = false;
        v = 0;
    }
    return err;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* "#0c0176": the whole element. */
static clave_err x509_put_hex(struct buf *out, struct der d)
{
    static const char digits[] = "0123456789abcdef";
    clave_err err = x509_name_put_text(out, "#");
    for (size_t i = 0; i < d.n && err == CLAVE_OK; i++) {
        const char pair[2] = {digits[d.p[i] >> 4], digits[d.p[i] & 15]};
        err = clave__buf_append(out, pair, sizeof pair);
    }
    return err;
}

/* Java reads strings with these tags as UTF-8, whatever the tag says. */
static bool x509_is_string(uint8_t tag)
{
    return tag == DER_UTF8 || tag == DER_PRINTABLE || tag == DER_T61 || tag == DER_IA5 ||
           tag == DER_GENERAL || tag == DER_BMP;
}

static bool x509_continues(struct der d, size_t at, uint8_t from, uint8_t to)
{
    return at < d.n && d.p[at] >= from && d.p[at] <= to;
}

/* The number of bytes of the character at d, or (*sound is false) of the bytes that Java replaces
 * by one U+FFFD. All three bytes of a surrogate are one such sequence. */
static size_t x509_character(struct der d, bool *sound)
{
    uint8_t lead = d.p[0];
    size_t want = lead < 0x80 ? 1 : 2, got = 1;
    if (lead >= 0xe0)
        want = lead < 0xf0 ? 3 : 4;
    *sound = false;
    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4)
        return 1;
    uint8_t least = lead == 0xe0 ? 0xa0 : 0x80;
    if (lead == 0xf0)
        least = 0x90;
    uint8_t most = lead == 0xf4 ? 0x8f : 0xbf;
    if (want > 1 && x509_continues(d, 1, least, most))
        for (got = 2; got < want && x509_continues(d, got, 0x80, 0xbf);)
            got++;
    *sound = got == want && !(lead == 0xed && d.p[1] >= 0xa0);
    return got;
}

static bool x509_is_space(uint8_t c)
{
    return c == ' ' || c == '\r';
}

/* Spaces are escaped at both ends only. */
static clave_err x509_name_put_string(struct buf *out, struct der d)
{
    clave_err err = CLAVE_OK;
    size_t lead = 0, trail = d.n;
    while (lead < d.n && x509_is_space(d.p[lead]))
        lead++;
    while (trail > lead && x509_is_space(d.p[trail - 1]))
        trail--;
    for (size_t at = 0, n; at < d.n && err == CLAVE_OK; at += n) {
        bool sound;
        n = x509_character((struct der){d.p + at, d.n - at}, &sound);
        if (!sound || d.p[at] == '\0') {
            err = x509_name_put_text(out, sound ? "\\00" : "\xef\xbf\xbd");
            continue;
        }
        if (at < lead || at >= trail || strchr(",=+<>#;\"\\", d.p[at]))
            err = x509_name_put_text(out, "\\");
        if (err == CLAVE_OK)
            err = clave__buf_append(out, d.p + at, n);
    }
    return err;
}

/* "CN=client", or "2.5.4.5=#130131" for a type without a keyword. */
static clave_err x509_put_attribute(struct buf *out, struct der *set)
{
    struct element pair, type, value;
    if (!x509_name_take(set, DER_SEQUENCE, &pair) ||
        !x509_name_take(&pair.content, DER_OID, &type) ||
        !x509_take_element(&pair.content, &value) || pair.content.n > 0)
        return CLAVE_EINVAL;
    const char *word = x509_keyword_of(type.content);
    clave_err err = word ? x509_name_put_text(out, word) : x509_put_oid(out, type.content);
    if (err == CLAVE_OK)
        err = x509_name_put_text(out, "=");
    if (err != CLAVE_OK)
        return err;
    return word && x509_is_string(value.tag) ? x509_name_put_string(out, value.content)
                                             : x509_put_hex(out, value.whole);
}

/* One step of the name: its attributes in order, joined by '+'. */
static clave_err x509_put_step(struct buf *out, struct der set)
{
    clave_err err = set.n > 0 ? CLAVE_OK : CLAVE_EINVAL;
    for (bool more = false; set.n > 0 && err == CLAVE_OK; more = true) {
        if (more)
            err = x509_name_put_text(out, "+");
        if (err == CLAVE_OK)
            err = x509_put_attribute(out, &set);
    }
    return err;
}

clave_err clave__x509_name_put(struct buf *out, const void *der, size_t n)
{
    enum { MAX_STEPS = 64 };
    struct der d = {der, n}, steps[MAX_STEPS];
    struct element name, set;
    size_t count = 0;
    clave_err err = CLAVE_OK;
    if (!x509_name_take(&d, DER_SEQUENCE, &name) || d.n > 0)
        return CLAVE_EINVAL;
    while (name.content.n > 0) {
        if (count == MAX_STEPS || !x509_name_take(&name.content, DER_SET, &set))
            return CLAVE_EINVAL;
        steps[count++] = set.content;
    }
    for (size_t i = count; i > 0 && err == CLAVE_OK; i--) { /* RFC 2253: the last comes first */
        if (i < count)
            err = x509_name_put_text(out, ",");
        if (err == CLAVE_OK)
            err = x509_put_step(out, steps[i - 1]);
    }
    return err;
}

/* ---- ids in access lists --------------------------------------------------------------------- */

struct text {
    const char *p;
    const char *end;
};

static void x509_skip_spaces(struct text *t)
{
    while (t->p < t->end && (*t->p == ' ' || *t->p == '\t'))
        t->p++;
}

static bool x509_is_separator(char c)
{
    return c == ',' || c == ';' || c == '+';
}

static char x509_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool x509_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool x509_is_hex(char c)
{
    return x509_is_digit(c) || (x509_upper(c) >= 'A' && x509_upper(c) <= 'F');
}

/* "1.2.840": at least two numbers; the first up to 2, and the second up to 39 below it. */
static bool x509_is_numeric_type(const char *p, size_t n)
{
    unsigned numbers = 0, top = 0, value = 0;
    for (size_t i = 0, from = 0; i <= n; i++) {
        if (i < n && x509_is_digit(p[i])) {
            value = value < 100000 ? value * 10 + (unsigned)(p[i] - '0') : value;
            continue;
        }
        if (i == from || (i < n && p[i] != '.'))
            return false;
        top = numbers == 0 ? value : top;
        if ((numbers == 0 && value > 2) || (numbers == 1 && top < 2 && value > 39))
            return false;
        numbers++;
        value = 0;
        from = i + 1;
    }
    return numbers >= 2;
}

static bool x509_same_word(const char *word, const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && word[i] && word[i] == x509_upper(p[i]))
        i++;
    return i == n && word[i] == '\0';
}

static bool x509_is_type(const char *p, size_t n)
{
    static const char *const words[] = {
        "CN",           "C",          "L",     "S",
        "ST",           "O",          "OU",    "T",
        "IP",           "STREET",     "DC",    "DNQUALIFIER",
        "DNQ",          "SURNAME",    "UID",   "GIVENNAME",
        "INITIALS",     "GENERATION", "EMAIL", "EMAILADDRESS",
        "SERIALNUMBER",
    };
    static const char prefix[] = "OID.";
    const size_t skip = sizeof prefix - 1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (x509_same_word(words[i], p, n))
            return true;
    bool named = n > skip && x509_same_word(prefix, p, skip);
    return named ? x509_is_numeric_type(p + skip, n - skip) : x509_is_numeric_type(p, n);
}

static bool x509_take_type(struct text *t)
{
    x509_skip_spaces(t);
    const char *from = t->p;
    const char *equals = from < t->end ? memchr(from, '=', (size_t)(t->end - from)) : NULL;
    if (!equals)
        return false;
    size_t n = (size_t)(equals - from);
    while (n > 0 && from[n - 1] == ' ')
        n--;
    t->p = equals + 1;
    return x509_is_type(from, n);
}

/* After a backslash: a character that may need one, or two hexadecimal digits. */
static bool x509_take_escape(struct text *t)
{
    if (t->p == t->end)
        return false;
    if (strchr(",=+<>#;\"\\ ", *t->p) && *t->p) {
        t->p++;
        return true;
    }
    if (t->end - t->p < 2 || !x509_is_hex(t->p[0]) || !x509_is_hex(t->p[1]))
        return false;
    t->p += 2;
    return true;
}

static bool x509_take_quoted(struct text *t)
{
    for (t->p++; t->p < t->end && *t->p != '"';)
        if (*t->p++ == '\\' && !x509_take_escape(t))
            return false;
    if (t->p == t->end)
        return false;
    t->p++;
    x509_skip_spaces(t);
    return t->p == t->end || x509_is_separator(*t->p);
}

static unsigned x509_octet(const char *p)
{
    unsigned v = 0;
    for (int i = 0; i < 2; i++)
        v = v << 4 | (unsigned)(x509_is_digit(p[i]) ? p[i] - '0' : x509_upper(p[i]) - 'A' + 10);
    return v;
}

/* One DER element; the length of a long one is not checked. */
static bool x509_take_hex(struct text *t)
{
    const char *from = ++t->p;
    while (t->p < t->end && x509_is_hex(*t->p))
        t->p++;
    size_t n = (size_t)(t->p - from);
    bool whole = n % 2 == 0 && n >= 4;
    whole = whole && (x509_octet(from + 2) >= 0x80 || x509_octet(from + 2) == n / 2 - 2);
    x509_skip_spaces(t);
    return whole && (t->p == t->end || x509_is_separator(*t->p));
}

static bool x509_name_take_value(struct text *t)
{
    x509_skip_spaces(t);
    if (t->p < t->end && *t->p == '"')
        return x509_take_quoted(t);
    if (t->p < t->end && *t->p == '#')
        return x509_take_hex(t);
    while (t->p < t->end && !x509_is_separator(*t->p)) {
        char c = *t->p++;
        if (c == '"' || c == '<' || c == '>' || (c == '\\' && !x509_take_escape(t)))
            return false;
    }
    return true;
}

bool clave__x509_name_valid(struct jbytes id)
{
    if (id.n <= 0)
        return id.n == 0;
    struct text t = {id.p, id.p + id.n};
    while (x509_take_type(&t) && x509_name_take_value(&t)) {
        if (t.p == t.end)
            return true;
        t.p++; /* a separator */
    }
    return false;
}
