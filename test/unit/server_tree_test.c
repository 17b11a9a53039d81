/* server_tree_test.c - nodes and their memory: data inside and outside of a node, the walk, and an
 * allocator that leaves nothing between its blocks. */
#include <stdalign.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "server/tree/tree.h"

/* Blocks one after another, as size classes of an allocator without headers are. */
struct row {
    struct clave_mem mem;
    size_t used;
    size_t live;
    alignas(16) uint8_t bytes[1 << 16];
};

static void *take(void *arg, size_t size)
{
    struct row *r = arg;
    size_t n = (size + 7) & ~(size_t)7;
    if (n > sizeof r->bytes - r->used)
        return NULL;
    r->used += n;
    r->live++;
    return r->bytes + r->used - n;
}

static void *change(void *arg, void *p, size_t size)
{
    (void)p;
    return take(arg, size); /* the tree does not ask for it */
}

static void give_back(void *arg, void *p)
{
    struct row *r = arg;
    r->live -= p ? 1 : 0;
}

static void open_row(struct row *r, struct tree *t)
{
    *r = (struct row){.mem = {take, change, give_back, r}};
    assert_int_equal(clave__tree_init(t, &r->mem, 1), CLAVE_OK);
}

static struct node *add(struct tree *t, const char *path, const char *data)
{
    struct node_spec spec = {clave__jbytes(path), clave__jbytes(data), {0}, t->acls.open};
    struct node *n = clave__tree_new_node(t, &spec);
    assert_non_null(n);
    clave__tree_link(t, clave__tree_find_parent(t, spec.path), n);
    return n;
}

/* As setData does, and keeps. */
static void set(struct tree *t, struct node *n, const char *data)
{
    uint8_t *bytes;
    int32_t len = (int32_t)strlen(data);
    assert_int_equal(clave__tree_copy_data(t, clave__jbytes(data), &bytes), CLAVE_OK);
    clave__tree_swap_data(t, n, &bytes, &len);
    clave__tree_free_data(t, n, bytes);
}

/* Data that were set may begin right where the node's own memory ends: they are no part of it. */
TEST(data_behind_a_node_are_not_its_own)
{
    for (size_t len = 1; len < 40; len++) { /* one of them ends where the next block begins */
        static struct row r;
        struct tree t;
        char path[64] = "/";
        memset(path + 1, 'n', len);
        path[len + 1] = '\0';
        open_row(&r, &t);
        struct node *n = add(&t, path, "");
        set(&t, n, "data");
        assert_true(clave__jbytes_eq(clave__node_data(n), clave__jbytes("data")));
        set(&t, n, "other data");
        clave__tree_fini(&t);
        assert_int_equal(r.live, 0);
    }
}

/* Short data are inside the node, long data outside; data set later are always outside. */
TEST(data_inside_and_outside)
{
    static char bytes[600];
    memset(bytes, 'x', sizeof bytes - 1);
    for (size_t n = 0; n < sizeof bytes; n += 50) {
        static struct row r;
        struct tree t;
        open_row(&r, &t);
        size_t built_in = t.data_bytes;
        struct node *node = add(&t, "/n", bytes + sizeof bytes - 1 - n);
        assert_int_equal(t.data_bytes, built_in + 2 + n);
        uint64_t digest = t.digest;
        set(&t, node, "short");
        clave__tree_changed(&t, node);
        assert_int_equal(t.data_bytes, built_in + 2 + 5);
        assert_true(t.digest != digest);
        set(&t, node, bytes + sizeof bytes - 1 - n);
        clave__tree_changed(&t, node);
        assert_true(t.digest == digest);
        clave__tree_unlink(&t, node);
        assert_int_equal(t.data_bytes, built_in);
        clave__tree_free_node(&t, node);
        clave__tree_fini(&t);
        assert_int_equal(r.live, 0);
    }
}

static void walk(const struct tree *t, const char *from, char *out, size_t room)
{
    const struct node *top = clave__tree_find(t, clave__jbytes(from));
    size_t n = 0;
    out[0] = '\0';
    int32_t count = 0;
    for (const struct node *at = top; (at = clave__tree_next(at, top)); count++)
        n += (size_t)snprintf(out + n, room - n, " %.*s", (int)at->path_len, clave__node_path(at));
    assert_int_equal(clave__node_below(top), count);
}

/* Parents come before their children, siblings in the order they came. */
TEST(the_walk)
{
    static struct row r;
    struct tree t;
    char paths[256];
    open_row(&r, &t);
    add(&t, "/a", "");
    add(&t, "/b", "");
    add(&t, "/a/x", "");
    add(&t, "/a/x/1", "");
    add(&t, "/a/y", "");
    walk(&t, "/a", paths, sizeof paths);
    assert_string_equal(paths, " /a/x /a/x/1 /a/y");
    walk(&t, "/b", paths, sizeof paths);
    assert_string_equal(paths, "");
    struct node *leaf = clave__tree_find(&t, clave__jbytes("/a/x/1")), *x = leaf->parent;
    clave__tree_unlink(&t, leaf);
    walk(&t, "/a", paths, sizeof paths);
    assert_string_equal(paths, " /a/x /a/y");
    clave__tree_link(&t, x, leaf);
    walk(&t, "/", paths, sizeof paths);
    assert_string_equal(paths, " /zookeeper /zookeeper/config /zookeeper/quota /a /a/x /a/x/1 /a/y"
                               " /b");
    clave__tree_fini(&t);
    assert_int_equal(r.live, 0);
}

TEST(finding)
{
    static struct row r;
    CLOSED_BY(clave__tree_fini) struct tree t;
    open_row(&r, &t);
    struct node *a = add(&t, "/a", ""), *x = add(&t, "/a/x", "");
    assert_ptr_equal(clave__tree_find(&t, clave__jbytes("/")), t.root);
    assert_ptr_equal(clave__tree_find(&t, clave__jbytes("")), t.root);
    assert_ptr_equal(clave__tree_find(&t, clave__jbytes("/a/x")), x);
    assert_null(clave__tree_find(&t, clave__jbytes("/a/")));
    assert_null(clave__tree_find(&t, clave__jbytes("a")));
    assert_ptr_equal(clave__tree_find_parent(&t, clave__jbytes("/a/x")), a);
    assert_ptr_equal(clave__tree_find_parent(&t, clave__jbytes("/a/new")), a);
    assert_ptr_equal(clave__tree_find_parent(&t, clave__jbytes("/new")), t.root);
    assert_null(clave__tree_find_parent(&t, clave__jbytes("/new/x")));
    assert_null(clave__tree_find_parent(&t, clave__jbytes("new")));
    assert_null(clave__tree_find_parent(&t, clave__jbytes("")));
    assert_true(clave__jbytes_eq(clave__node_name(x), clave__jbytes("x")));
}

/* What the ephemeralOwner on the disk says. */
TEST(owners)
{
    static const struct {
        uint64_t owner;
        enum node_kind kind;
    } cases[] = {
        {0, NODE_PLAIN},
        {1, NODE_EPHEMERAL},
        {0x0100000bb2fc0000, NODE_EPHEMERAL},
        {0xfe00000000000001, NODE_EPHEMERAL},
        {0x8000000000000000, NODE_CONTAINER},
        {0x8000000000000001, NODE_EPHEMERAL},
        {0xff00000000000001, NODE_TTL},
        {0xff000000000003e8, NODE_TTL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(clave__owner_kind((int64_t)cases[i].owner), cases[i].kind);
    assert_int_equal(clave__owner_ttl_ms((int64_t)0xff000000000003e8), 1000);
    assert_true(clave__owner_ttl_ms((int64_t)0xff0000ffffffffff) == 0xffffffffff);
}
