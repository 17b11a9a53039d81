/* hostile_tree.c - see hostile_tree.h. A row of the table is a node as its recipe makes it. An
 * input takes its directory, name, data and mode from one row, or each from another, and then
 * damages the texts. */
#include "fuzz/hostile_tree.h"

#include <string.h>

#include "clave/async/client.h"

/* ---- texts ----------------------------------------------------------------------------------- */

/* A text that grows and is cut to its room. */
struct text {
    char *at;
    size_t n, cap;
};

static void put(struct text *t, const char *p, size_t n)
{
    n = n < t->cap - t->n ? n : t->cap - t->n;
    memcpy(t->at + t->n, p, n);
    t->n += n;
}

static void put_word(struct text *t, const char *word)
{
    put(t, word, strlen(word));
}

/* Of few values, so that nodes meet each other. */
static void put_hex(struct text *t, struct input *in, const char *shape)
{
    uint32_t x = input_byte(in) % 8 * 2654435761u + 1;
    for (; *shape; shape++, x = x * 1664525u + 1013904223u)
        put(t, *shape == 'x' ? &"0123456789abcdef"[x >> 28] : shape, 1);
}

static void put_sequence(struct text *t, struct input *in)
{
    static const char *const odd[] = {"2147483647",  "-2147483648", "-000000001", "9999999999",
                                      "4294967296",  "2147483646",  "000000001",  "00000000001",
                                      "-2147482648", "+000000001",  "000000000a", ""};
    uint8_t b = input_byte(in);
    char digits[16];
    snprintf(digits, sizeof digits, "00000000%02u", b % 12u);
    put_word(t, b < 200 ? digits : odd[b % (sizeof odd / sizeof *odd)]);
}

static void put_number(struct text *t, struct input *in)
{
    static const char *const numbers[] = {"1",
                                          "0",
                                          "2",
                                          "3",
                                          "4711",
                                          "-1",
                                          "2147483647",
                                          "2147483648",
                                          "4294967295",
                                          "4294967297",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "-9223372036854775808",
                                          "18446744073709551616",
                                          "99999999999999999999999999999999",
                                          "",
                                          "007",
                                          "1e3",
                                          " 5",
                                          "five",
                                          "0x10",
                                          "1.5"};
    put_word(t, numbers[input_byte(in) % (sizeof numbers / sizeof *numbers)]);
}

static void put_id(struct text *t, struct input *in)
{
    static const char *const ids[] = {
        "a",     "web1",      "%2F",    "b%2Fc",           "%C3%BC", "%FF", "%00", "%",     "%zz",
        "%0A",   "owners",    "limit",  "lock-",           "a-b-c",  "",    "%25", "~@:+.", "%7F",
        "queue", "%E2%80%A8", "%3C%21", "lease-0000000001"};
    put_word(t, ids[input_byte(in) % (sizeof ids / sizeof *ids)]);
}

static void put_words(struct text *t, struct input *in)
{
    static const char *const words[] = {"web1",
                                        "nightly",
                                        "10.0.0.7",
                                        "a \"b\" <c>&'d'\\",
                                        "%0A%00%41",
                                        "\xc3\xbc\xe2\x80\xa8",
                                        "",
                                        "%",
                                        "\xff\xfe",
                                        "a\tb\x7f\x1b[2J",
                                        "{\"a\":",
                                        "lock-0000000001",
                                        "_c_-latch-0000000001"};
    size_t pick = input_byte(in);
    put_word(t, words[pick % (sizeof words / sizeof *words)]);
    if (pick < 8)
        for (unsigned i = 0; i < 40u * pick; i++)
            put_word(t, "long\xc3\xbc");
}

static void put_form(struct text *t, struct input *in);

/* The text of a template: %u a UUID, %x 32 hexadecimal digits, %d a number as a server appends it,
 * %n any number, %i an id as it stands in the names of slots, %t words, %4 four bytes, %b a byte,
 * %f clave's form with some fields. */
static void put_template(struct text *t, struct input *in, const char *how)
{
    for (; *how; how++) {
        if (*how != '%') {
            put(t, how, 1);
            continue;
        }
        switch (*++how) {
        case 'u':
            put_hex(t, in, "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx");
            break;
        case 'x':
            put_hex(t, in, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
            break;
        case 'd':
            put_sequence(t, in);
            break;
        case 'n':
            put_number(t, in);
            break;
        case 'i':
            put_id(t, in);
            break;
        case 't':
            put_words(t, in);
            break;
        case '4': {
            uint8_t b = input_byte(in);
            put(t, b < 240 ? (char[]){0, 0, 0, (char)(b % 4)} : (char[]){(char)b, -1, -1, -1}, 4);
            break;
        }
        case 'b':
            put(t, (char[]){(char)input_byte(in)}, 1);
            break;
        case 'f':
            put_form(t, in);
            break;
        default:
            must(false);
        }
    }
}

static void put_form(struct text *t, struct input *in)
{
    static const char *const fields[] = {
        "owner=%u\n",
        "limit=%n\n",
        "host=%t\n",
        "pid=%n\n",
        "name=%i\n",
        "task=%u\n",
        "yields=%n\n",
        "revocable=1\n",
        "asked=1\n",
        "command=%t\n",
        "text=%t\n",
        "token=%n\n",
        "state=held\n",
        "state=done\n",
        "state=%t\n",
        "by=%t\n",
        "reason=%t\n",
        "delays=1\n",
        "took=%n\n",
        "id=%u\n",
        "granted=%n\n",
        "max_hold=%n\n",
        "permits=%n\n",
        "kind=slot\n",
        "=\n",
        "host",
        "%b=%b\n",
        "\n",
        "limit=2\n",
        "name=a\n",
        "traceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n",
    };
    put_word(t, "clave/1\n");
    for (unsigned n = input_byte(in) % 6; n > 0; n--)
        put_template(t, in, fields[input_byte(in) % (sizeof fields / sizeof *fields)]);
}

/* Three of four texts stay as they are. */
static void damage(struct text *t, struct input *in)
{
    static const char *const bits[] = {"-", "%",  "lock-", "lease-",   "_c_",  "latch-", "0",
                                       ".", "\"", "<",     "\xc3\xbc", "\xff", "=",      " "};
    uint8_t how = input_byte(in);
    size_t at = t->n ? input_byte(in) % t->n : 0;
    if (how < 192)
        return;
    switch (how % 4) {
    case 0: /* cut at its end */
        t->n = at;
        break;
    case 1: /* cut at its beginning */
        memmove(t->at, t->at + at, t->n - at);
        t->n -= at;
        break;
    case 2: { /* doubled */
        char copy[HOSTILE_DATA];
        size_t n = t->n < sizeof copy ? t->n : sizeof copy;
        memcpy(copy, t->at, n);
        put(t, copy, n);
        break;
    }
    default: { /* something in its middle */
        const char *bit = bits[input_byte(in) % (sizeof bits / sizeof *bits)];
        size_t n = strlen(bit);
        if (t->n + n <= t->cap) {
            memmove(t->at + at + n, t->at + at, t->n - at);
            memcpy(t->at + at, bit, n);
            t->n += n;
        }
    }
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

enum { PERSISTENT = CLAVE_PERSISTENT, EPHEMERAL = CLAVE_EPHEMERAL };

static const struct row {
    const char *dir;  /* appended to the root: of the node, or the node itself: */
    const char *name; /* NULL: it is `dir` */
    const char *data;
    int mode;
} rows[] = {
    /* mutexes: clave's and Curator's, kazoo's, of programs written by hand */
    {"", "_c_%u-lock-%d", "%f", EPHEMERAL},
    {"", "_c_%u-lock-%d", "10.0.0.7", EPHEMERAL},
    {"", "lock-%d", "", EPHEMERAL},
    {"", "%x__lock__%d", "web1", EPHEMERAL},
    {"", "job-%d", "%t", EPHEMERAL},
    {"", "_c_%u-lock-%d", "__REVOKE__", EPHEMERAL},
    {"", "_c_%u-lock-", "%f", CLAVE_EPHEMERAL_SEQUENTIAL},
    {"-held", NULL, "clave/1\nstate=held\ntoken=%n\n", PERSISTENT},
    {"-done", NULL, "clave/1\nstate=done\nid=%u\ntoken=%n\ntook=%n\nhost=%t\n", PERSISTENT},
    /* read-write locks */
    {"", "_c_%u-__READ__%d", "%f", EPHEMERAL},
    {"", "_c_%u-__WRIT__%d", "%f", EPHEMERAL},
    {"", "%x__rlock__%d", "", EPHEMERAL},
    {"", "%x__lock__%d", "", EPHEMERAL},
    /* semaphores */
    {"/leases", "_c_%u-lease-%d", "%f", EPHEMERAL},
    {"/leases", "_c_%u-lease-%d", "clave/1\nowner=%u\nlimit=2\n", EPHEMERAL},
    {"/locks", "_c_%u-lock-%d", "%f", EPHEMERAL},
    {"/leases", "%x", "", EPHEMERAL},
    {"", "%x", "", EPHEMERAL},
    {"-__lock__", "%x__lock__%d", "", EPHEMERAL},
    {"/leases", "_c_%u-lease-", "%f", CLAVE_EPHEMERAL_SEQUENTIAL},
    {"-limit", NULL, "%4", PERSISTENT},
    /* slots */
    {"/owners", "slot-%i", "clave/1\nhost=%t\nname=%i\nby=%t\nreason=%t\n", PERSISTENT},
    {"/owners", "slot-a", "%f", PERSISTENT},
    {"/owners/slot-a", "take-%u", "", PERSISTENT},
    {"/owners/slot-web1", "take-%u", "%f", PERSISTENT},
    {"/owners/slot-web1", "%x", "", EPHEMERAL},
    {"/owners", "%i", "%f", PERSISTENT},
    {"/limit", NULL, "%4", PERSISTENT},
    {"/limit", NULL, "%n", PERSISTENT},
    {"/queue", "_c_%u-lock-%d", "clave/1\nowner=%u\nname=%i\nhost=%t\n", EPHEMERAL},
    {"/broken", NULL, "clave/1\nname=%i\nby=%t\nreason=%t\ntoken=%n\n", PERSISTENT},
    {"/owners/owners", "slot-%i", "%f", PERSISTENT},
    /* elections */
    {"", "_c_%u-latch-%d", "%f", EPHEMERAL},
    {"", "_c_%u-priority-%n-latch-%d", "%f", EPHEMERAL},
    {"", "%x__lock__%d", "candidate", EPHEMERAL},
    {"-value", NULL, "_c_%u-latch-%d\n%t", EPHEMERAL},
    {"-value", NULL, "%t", PERSISTENT},
    /* what is no lock's */
    {"", "%t", "{\"name\":\"%t\",\"id\":\"%u\"}", PERSISTENT},
    {"", NULL, "%t%b%b%b", PERSISTENT},
    {"", "%i", "%n", CLAVE_CONTAINER},
    {"", "%t-", "%b%b", CLAVE_PERSISTENT_SEQUENTIAL},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* The row, or another one for one text in eight. */
static const struct row *near(struct input *in, const struct row *row)
{
    uint8_t b = input_byte(in);
    return b < 224 ? row : &rows[input_byte(in) % ROWS];
}

static const char *const roots[] = {"/a", "/a/b", "", "/a/owners", "/a/leases", "/a/queue"};
enum { ROOTS = sizeof roots / sizeof *roots };

bool hostile_root(size_t number, const char *prefix, char out[HOSTILE_PATH])
{
    if (number >= ROOTS)
        return false;
    snprintf(out, HOSTILE_PATH, "%s%s", prefix, roots[number]);
    if (out[0] == '\0')
        strcpy(out, "/");
    return true;
}

/* A name that the server takes: no control characters, no slash, not "." or "..", not empty. */
static void make_valid(char *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c == '/' || c < ' ' || c == 0x7f)
            name[i] = '_';
    }
}

static void put_name(struct text *t, struct input *in, const char *how)
{
    char room[160];
    struct text name = {room, 0, sizeof room};
    put_template(&name, in, how);
    damage(&name, in);
    make_valid(room, name.n);
    bool dots = (name.n == 1 && room[0] == '.') || (name.n == 2 && !memcmp(room, "..", 2));
    put_word(t, name.n == 0 || dots ? "/_" : "/");
    put(t, room, name.n);
}

size_t hostile_data(struct input *in, char *out, size_t cap)
{
    struct text t = {out, 0, cap};
    put_template(&t, in, rows[input_byte(in) % ROWS].data);
    damage(&t, in);
    return t.n;
}

static void make_parents(const struct hostile_node *of,
                         void (*make)(void *arg, const struct hostile_node *node), void *arg)
{
    struct hostile_node parent = {
        .mode = CLAVE_PERSISTENT, .owner = of->owner, .perms = CLAVE_PERM_ALL};
    for (const char *slash = of->path; (slash = strchr(slash + 1, '/'));) {
        size_t n = (size_t)(slash - of->path);
        memcpy(parent.path, of->path, n);
        parent.path[n] = '\0';
        make(arg, &parent);
    }
}

static void put_node(struct hostile_node *node, struct input *in, const char *prefix,
                     const char *root)
{
    static const int modes[] = {CLAVE_PERSISTENT, CLAVE_EPHEMERAL, CLAVE_EPHEMERAL_SEQUENTIAL,
                                CLAVE_PERSISTENT_SEQUENTIAL, CLAVE_CONTAINER};
    const struct row *row = &rows[input_byte(in) % ROWS];
    const char *dir = near(in, row)->dir, *name = near(in, row)->name;
    struct text path = {node->path, 0, sizeof node->path - 1};
    struct text data = {node->data, 0, sizeof node->data};
    put_word(&path, prefix);
    put_word(&path, root);
    if (dir[0] == '-' && path.n == 0)
        put_word(&path, "/"); /* beside the root */
    put_word(&path, dir);
    if (name || path.n == 0)
        put_name(&path, in, name ? name : "%t");
    node->path[path.n] = '\0';
    put_template(&data, in, near(in, row)->data);
    damage(&data, in);
    node->n = data.n;
    uint8_t mode = input_byte(in);
    node->mode = mode < 224 ? row->mode : modes[mode % (sizeof modes / sizeof *modes)];
    node->owner = mode % 2;
    node->perms = input_byte(in) < 240 ? CLAVE_PERM_ALL : CLAVE_PERM_ALL & ~CLAVE_PERM_READ;
}

void hostile_tree(struct input *in, const char *prefix,
                  void (*make)(void *arg, const struct hostile_node *node), void *arg)
{
    unsigned n = 1 + input_byte(in) % HOSTILE_NODES;
    const char *root = roots[input_byte(in) % ROOTS];
    for (; n > 0; n--) {
        struct hostile_node node;
        uint8_t b = input_byte(in);
        put_node(&node, in, prefix, b < 208 ? root : roots[b % ROOTS]);
        make_parents(&node, make, arg);
        make(arg, &node);
    }
}

void hostile_seed(uint64_t seed, uint8_t *out, size_t n)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        out[i] = (uint8_t)(x >> 32);
    }
}
