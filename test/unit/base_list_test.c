/* base_list_test.c - the ring, empty, with one entry and with more. */
#include "base/list.h"
#include "lib/unit.h"

struct item {
    char name;
    struct list link;
};

static struct item items[] = {{'a', {0}}, {'b', {0}}, {'c', {0}}, {'d', {0}}};

/* The names in order; the ring has to be whole in both directions. */
static const char *names(struct list *head)
{
    static char text[16];
    size_t n = 0;
    for (struct list *e = head->next; e != head; e = e->next) {
        assert_ptr_equal(e->next->prev, e);
        assert_ptr_equal(e->prev->next, e);
        text[n++] = LIST_ENTRY(e, struct item, link)->name;
    }
    text[n] = '\0';
    assert_int_equal(list_empty(head), n == 0);
    return text;
}

static void fill(struct list *head, size_t from, size_t to)
{
    list_init(head);
    for (size_t i = from; i < to; i++)
        list_push_back(head, &items[i].link);
}

TEST(at_both_ends)
{
    struct list l;
    fill(&l, 0, 0);
    assert_string_equal(names(&l), "");
    assert_null(list_pop_front(&l));
    list_push_back(&l, &items[1].link);
    assert_string_equal(names(&l), "b");
    list_push_front(&l, &items[0].link);
    list_push_back(&l, &items[2].link);
    assert_string_equal(names(&l), "abc");
    assert_ptr_equal(list_pop_front(&l), &items[0].link);
    assert_true(list_empty(&items[0].link)); /* it is a ring by itself */
    assert_string_equal(names(&l), "bc");
}

TEST(removing_from_anywhere)
{
    static const char *const left[] = {"bcd", "acd", "abd", "abc"};
    for (size_t i = 0; i < 4; i++) {
        struct list l;
        fill(&l, 0, 4);
        list_remove(&items[i].link);
        assert_string_equal(names(&l), left[i]);
        list_remove(&items[i].link); /* twice is harmless */
        assert_string_equal(names(&l), left[i]);
        list_push_back(&l, &items[i].link);
        assert_int_equal(strlen(names(&l)), 4);
    }
}

TEST(splicing)
{
    static const struct {
        size_t to, from;
        const char *result;
    } cases[] = {{0, 0, ""}, {0, 2, "ab"}, {2, 2, "ab"}, {2, 4, "abcd"}, {1, 2, "ab"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct list to, from;
        fill(&to, 0, cases[i].to);
        fill(&from, cases[i].to, cases[i].from);
        list_splice(&to, &from);
        assert_string_equal(names(&to), cases[i].result);
        assert_true(list_empty(&from));
    }
}

/* Every entry may go between two looks, the one the cursor is at and the last one too; the list
 * itself may be gone once the cursor has left it. */
TEST(a_cursor_leaves_what_is_removed)
{
    for (size_t looks = 0; looks <= 4; looks++)
        for (size_t gone = 0; gone < 4; gone++) {
            struct list head, cursors;
            struct list_cursor c;
            char text[8] = "";
            size_t n = 0;
            fill(&head, 0, 4);
            list_init(&cursors);
            list_cursor_init(&c);
            list_cursor_open(&c, &cursors, &head);
            for (; n < looks; n++)
                text[n] = LIST_ENTRY(list_cursor_next(&c), struct item, link)->name;
            list_cursors_leave(&cursors, &items[gone].link);
            list_remove(&items[gone].link);
            for (struct list *e; (e = list_cursor_next(&c));)
                text[n++] = LIST_ENTRY(e, struct item, link)->name;
            assert_int_equal(n, gone < looks ? 4 : 3);
            for (size_t i = 0; i + 1 < n; i++)
                assert_true(text[i] < text[i + 1]);
            list_cursor_close(&c);
            assert_true(list_empty(&cursors));
        }
}
