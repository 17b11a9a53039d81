/* The model of locks of any tree: after any changes, in any order, it is the same as a fresh
 * reading; and so is what listings of single locks make of it. */
#include "base/memory.h"
#include "base/path.h"
#include "base/rand.h"
#include "lib/queue_text.h"
#include "lib/unit.h"
#include "observe/lock_holders.h"
#include "observe/lock_listing.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define HEX "0123456789abcdef0123456789abcdef"
#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct clave_mem mem;

/* ---- a tree ---------------------------------------------------------------------------------- */

enum { MOST_NODES = 60, PATHS = 6 };

struct tree_node {
    bool there;
    char path[96];
    clave_stat stat;
    char data[48];
};

struct tree {
    struct tree_node nodes[MOST_NODES];
    struct tree_node marks[PATHS]; /* of lock delays */
    struct tree_node slots[2];     /* the limit and the owners of /s */
    struct rand_state rand;
    int64_t zxid;
    unsigned counter;
};

/* Slots at /s, and what others have put among them. */
static void tree_create_at_slots(struct tree *t, struct tree_node *n, unsigned r)
{
    static const char *const paths[] = {"/s/owners/slot-%u", "/s/owners/foo%u", "/s/queue/foo%u",
                                        "/s/queue/_c_" UUID "-lock-%010u"};
    n->stat.ephemeral_owner = r % 4 == 3 ? n->stat.ephemeral_owner : 0;
    snprintf(n->path, sizeof n->path, paths[r % 4], t->counter++);
}

/* All kinds at any path, mixed; a semaphore at /q0, with others' nodes in it. */
static void tree_create(struct tree *t, struct tree_node *n)
{
    static const char *const words[] = {"-lock-",  "-lock-",   "-__READ__", "-__WRIT__",
                                        "-latch-", "__lock__", "__rlock__"};
    unsigned r = (unsigned)clave__rand_below(&t->rand, 100);
    int where = (int)clave__rand_below(&t->rand, PATHS + 1);
    t->zxid++;
    n->there = true;
    n->stat = (clave_stat){.czxid = t->zxid, .ctime = t->zxid};
    n->stat.ephemeral_owner = 1 + (int64_t)clave__rand_below(&t->rand, 5);
    if (r % 16 == 0)
        n->stat.ephemeral_owner = 0; /* left over */
    snprintf(n->data, sizeof n->data,
             r % 3        ? "x"
             : r % 2 == 0 ? "clave/1\nlimit=%u\n"
                          : "clave/1\nlimit=%u\ndelays=1\n",
             1 + r % 4);
    /* Each path has mostly one kind. */
    const char *word = words[r < 85 ? where % COUNT(words) : r % COUNT(words)];
    if (where == PATHS)
        tree_create_at_slots(t, n, r);
    else if (where == 0 && r % 7 == 0)
        snprintf(n->path, sizeof n->path, r % 2 ? "/q/leases/foo%u" : "/q/locks/foo%u",
                 t->counter++);
    else if (where == 0)
        snprintf(n->path, sizeof n->path,
                 r % 2 ? "/q/leases/_c_" UUID "-lease-%010u" : "/q/locks/_c_" UUID "-lock-%010u",
                 t->counter++);
    else
        snprintf(n->path, sizeof n->path, "/q%d/%s%s%010u", where, HEX, word, t->counter++);
}

/* "=": a limit of 1. */
static void model_set(struct lock_model *m, const struct tree *t, const struct tree_node *n)
{
    bool limit = strcmp(n->data, "=") == 0;
    clave__lock_model_node(m, t->zxid, n->path, &n->stat, limit ? "\0\0\0\1" : n->data,
                           limit ? 4 : strlen(n->data));
}

static void tree_change_slots(struct tree *t, struct lock_model *m)
{
    static const char *const data[] = {"=", "=", "", "four", "2024", "long text"};
    size_t which = (size_t)clave__rand_below(&t->rand, 2);
    struct tree_node *n = &t->slots[which];
    bool gone = n->there && clave__rand_below(&t->rand, 3) == 0;
    snprintf(n->path, sizeof n->path, which ? "/s/owners" : "/s/limit");
    n->stat =
        (clave_stat){.czxid = n->there ? n->stat.czxid : ++t->zxid, .version = n->stat.version + 1};
    snprintf(n->data, sizeof n->data, "%s", data[clave__rand_below(&t->rand, 6)]);
    n->there = !gone;
    if (gone)
        clave__lock_model_gone(m, ++t->zxid, n->path);
    else
        model_set(m, t, n);
}

/* Of any of the places that are, were or will be soon. */
static void tree_change_mark(struct tree *t, struct lock_model *m)
{
    unsigned where = (unsigned)clave__rand_below(&t->rand, PATHS);
    struct tree_node *n = &t->marks[where];
    t->zxid++;
    snprintf(n->path, sizeof n->path, "/q%u-held", where);
    if (n->there) {
        n->there = false;
        clave__lock_model_gone(m, t->zxid, n->path);
        return;
    }
    n->there = true;
    n->stat = (clave_stat){.czxid = t->zxid};
    snprintf(n->data, sizeof n->data, "clave/1\nstate=held\nid=x\ntoken=%d\n",
             (int)(t->zxid - (int64_t)clave__rand_below(&t->rand, 60)));
    model_set(m, t, n);
}

static void tree_change(struct tree *t, struct lock_model *m)
{
    if (clave__rand_below(&t->rand, 10) == 0) {
        tree_change_mark(t, m);
        return;
    }
    if (clave__rand_below(&t->rand, 20) == 0) {
        tree_change_slots(t, m);
        return;
    }
    struct tree_node *n = &t->nodes[clave__rand_below(&t->rand, MOST_NODES)];
    if (!n->there) {
        tree_create(t, n);
        model_set(m, t, n);
    } else if (clave__rand_below(&t->rand, 4) == 0) {
        t->zxid++;
        n->stat.version++;
        bool form = strncmp(n->path, "/s/owners/", 10) != 0 || t->zxid % 3 > 0;
        snprintf(n->data, sizeof n->data, form ? "clave/1\nlimit=%d\n" : "x", (int)(t->zxid % 5));
        model_set(m, t, n);
    } else {
        t->zxid++;
        n->there = false;
        clave__lock_model_gone(m, t->zxid, n->path);
    }
}

/* What a fresh reading, whose nodes come in a random order, makes of the tree. */
static void read_afresh(struct tree *t, struct lock_model *m)
{
    size_t order[MOST_NODES];
    assert_int_equal(clave__lock_model_init(m, &mem, clave__rand_u64(&t->rand), 0), CLAVE_OK);
    for (size_t i = 0; i < MOST_NODES; i++) {
        size_t k = clave__rand_below(&t->rand, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (size_t i = 0; i < MOST_NODES; i++)
        if (t->nodes[order[i]].there)
            model_set(m, t, &t->nodes[order[i]]);
    for (size_t i = 0; i < PATHS; i++)
        if (t->marks[i].there)
            model_set(m, t, &t->marks[i]);
    for (size_t i = 0; i < COUNT(t->slots); i++)
        if (t->slots[i].there)
            model_set(m, t, &t->slots[i]);
    clave__lock_model_loaded(m);
}

static void compare_strangers(const struct lock_queue *x, const struct lock_queue *y)
{
    const struct lock_stranger *a, *b;
    size_t n = 0;
    assert_int_equal(clave__lock_has_bad_limit(x), clave__lock_has_bad_limit(y));
    for (const char *at = "";; at = clave__lock_stranger_name(a), n++) {
        a = clave__lock_stranger_after(x, at);
        b = clave__lock_stranger_after(y, at);
        assert_int_equal(!a, !b);
        if (!a)
            break;
        assert_string_equal(a->path, b->path);
    }
    assert_int_equal(n, clave__lock_nstrangers(x));
}

static void compare_models(const struct lock_model *a, const struct lock_model *b)
{
    const struct lock_queue *x, *y;
    const char *path = "";
    bool leases = false;
    for (;;) {
        x = clave__lock_model_after(a, path, leases);
        y = clave__lock_model_after(b, path, leases);
        assert_int_equal(!x, !y);
        if (!x)
            break;
        char text[1024];
        snprintf(text, sizeof text, "%s", queue_text(x));
        assert_string_equal(text, queue_text(y));
        assert_string_equal(x->path, y->path);
        assert_int_equal(clave__lock_limit(x), clave__lock_limit(y));
        compare_strangers(x, y);
        path = x->path;
        leases = x->leases;
    }
    assert_int_equal(a->nplaces, b->nplaces);
    assert_int_equal(a->sessions.count, b->sessions.count);
    const struct lock_queue *p = NULL, *q = NULL;
    do {
        p = clave__lock_model_linked_after(a, p);
        q = clave__lock_model_linked_after(b, q);
        assert_int_equal(!p, !q);
        if (p)
            assert_string_equal(p->path, q->path);
    } while (p);
}

/* Linked are the places of the sessions that wait and have another place. */
static void check_links(const struct lock_model *m)
{
    for (struct map_node *n = NULL; (n = clave__map_next(&m->sessions, n));) {
        const struct lock_session *s = MAP_ENTRY(n, struct lock_session, node);
        size_t nplaces = 0, nwaits = 0;
        for (struct list *at = s->places.next; at != &s->places; at = at->next) {
            const struct lock_node *p = LIST_ENTRY(at, struct lock_node, in_session);
            nplaces++;
            nwaits += !p->holds;
            assert_int_equal(p->node.marks, clave__lock_marks(p));
        }
        assert_int_equal(s->nplaces, nplaces);
        assert_int_equal(s->nwaits, nwaits);
        assert_int_equal(s->linked, nplaces > 1 && nwaits > 0);
    }
}

/* ---- listings -------------------------------------------------------------------------------- */

static bool is_below(const char *path, const char *dir)
{
    return strncmp(path, dir, (size_t)(clave__path_name(path) - path) - 1) == 0 &&
           strlen(dir) == (size_t)(clave__path_name(path) - path) - 1;
}

/* The names of all nodes of the lock first, then what each says. */
static void listing_of_tree(struct lock_listing *l, const struct tree *t, const char *path)
{
    assert_int_equal(clave__lock_listing_init(l, &mem, 1, path), CLAVE_OK);
    for (enum lock_side side = LOCK_SIDE_PATH; side < LOCK_SIDE_KAZOO; side++) {
        char *dir = clave__lock_side_path(&mem, path, side);
        for (size_t i = 0; i < MOST_NODES; i++) {
            const char *name = clave__path_name(t->nodes[i].path);
            if (t->nodes[i].there && is_below(t->nodes[i].path, dir))
                assert_int_equal(clave__lock_listing_names(l, side, &name, 1), CLAVE_OK);
        }
        clave__mem_free(&mem, dir);
    }
    char *mark = clave__lock_mark_path(&mem, path);
    for (size_t i = 0; i < PATHS; i++)
        if (t->marks[i].there && strcmp(t->marks[i].path, mark) == 0)
            clave__lock_listing_node(l, mark, &t->marks[i].stat, t->marks[i].data,
                                     strlen(t->marks[i].data));
    clave__mem_free(&mem, mark);
    for (size_t i = 0; i < MOST_NODES; i++) {
        const struct tree_node *n = &t->nodes[i];
        size_t len = strlen(path);
        if (n->there && strncmp(n->path, path, len) == 0 && n->path[len] == '/')
            clave__lock_listing_node(l, n->path, &n->stat, n->data, strlen(n->data));
    }
}

/* Each place of the lock once: those that hold by the model hold by the listing. */
static void compare_listing(const struct lock_model *m, const struct tree *t, const char *path)
{
    const struct lock_queue *q = clave__lock_model_find(m, path);
    CLOSED_BY(clave__lock_listing_fini) struct lock_listing l;
    size_t held = 0, waiting = 0;
    listing_of_tree(&l, t, path);
    for (const struct lock_node *p = NULL; (p = clave__lock_listing_after(&l, p));) {
        bool holds = clave__lock_listing_holds(&l, p);
        struct lock_key at = clave__lock_key(p);
        const struct ordered_node *n =
            q && p->queue->leases == q->leases && strcmp(p->queue->path, q->path) == 0
                ? clave__ordered_find(&q->places, &at)
                : NULL;
        assert_int_equal(holds, n && ORDERED_ENTRY(n, struct lock_node, node)->holds);
        held += holds;
        waiting += !holds;
        assert_true(waiting == 0 || !holds);
    }
    assert_int_equal(held, q ? q->nholders : 0);
    if (q)
        assert_int_equal(waiting, clave__lock_nwaiters(q) + clave__lock_nleft_over(q));
}

/* By the walk of queue_kind.h from the first place to the last, which its own test holds against
 * the rules of the recipes. */
static void check_holders(const struct lock_model *m)
{
    struct lock_queue *q;
    bool leases = false;
    for (const char *path = ""; (q = clave__lock_model_after(m, path, leases)); path = q->path) {
        struct lock_key at = {"", ""};
        unsigned before = 0;
        leases = q->leases;
        if (leases)
            continue;
        for (struct ordered_node *n; (n = clave__ordered_after(&q->places, &at, ORDERED_ANY));
             at = clave__lock_key(ORDERED_ENTRY(n, struct lock_node, node))) {
            const struct lock_node *p = ORDERED_ENTRY(n, struct lock_node, node);
            unsigned unseen = clave__queue_kind_unseen(p->kind, p->name);
            bool waits = before & (clave__queue_kind_waits_for(p->kind) | unseen);
            assert_int_equal(p->holds, !waits && !clave__lock_is_delayed(p) && !p->left_over);
            before |= 1u << p->kind;
        }
    }
}

TEST(after_any_changes_it_equals_a_fresh_reading)
{
    struct tree t = {.counter = 1};
    struct lock_model m;
    mem = clave__mem_or_default(NULL);
    assert_int_equal(clave__lock_model_init(&m, &mem, 1, 0), CLAVE_OK);
    clave__rand_seed(&t.rand, 11);
    clave__lock_model_loaded(&m);
    for (int round = 0; round < 20000; round++) {
        tree_change(&t, &m);
        if (clave__rand_below(&t.rand, 3) == 0)
            for (struct lock_queue *q; (q = clave__lock_model_take_dirty(&m));)
                clave__lock_model_settle(&m, q);
        if (round % 20)
            continue;
        CLOSED_BY(clave__lock_model_fini) struct lock_model fresh;
        read_afresh(&t, &fresh);
        compare_models(&m, &fresh);
        for (int i = 0; i < PATHS; i++) {
            char path[8];
            snprintf(path, sizeof path, i ? "/q%d" : "/q", i);
            compare_listing(&m, &t, path);
        }
        check_holders(&m);
        check_links(&m);
    }
    clave__lock_model_fini(&m);
    assert_int_equal(m.bytes, 0);
}
