/* The names of slots: any id makes a valid name, and a name says whose slot it is. */
#include "lib/unit.h"
#include "recipe/slots/slot_node.h"

TEST(a_name_says_the_id)
{
    char longest[CLAVE_SLOT_ID_MAX + 1];
    memset(longest, '/', sizeof longest - 1);
    longest[CLAVE_SLOT_ID_MAX] = '\0';
    const char *const ids[] = {"a",   "-",   "a-b",  "a/b",    ".",      "..",
                               "%41", "a b", "100%", "ümläut", "slot-a", longest};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char name[SLOT_NAME_CAP], id[CLAVE_SLOT_ID_MAX + 1] = "";
        assert_true(clave__slot_id_is_valid(ids[i]));
        clave__slot_name_format(name, ids[i]);
        assert_null(strchr(name, '/'));
        assert_true(strlen(name) < SLOT_NAME_CAP);
        assert_true(clave__slot_name_parse(name, id));
        assert_string_equal(id, ids[i]);
    }
}

TEST(names_are_escaped_in_one_way)
{
    char name[SLOT_NAME_CAP];
    clave__slot_name_format(name, "a/B 1~");
    assert_string_equal(name, "slot-a%2FB%201~");
}

TEST(other_names_are_nobodys)
{
    static const char *const names[] = {
        "",          "a",         "slot",
        "slot-",     "Slot-a",    "slot-a%2f", /* not the digits that we write */
        "slot-a%41",                           /* not escaped by us */
        "slot-a%2",                            /* cut off */
        "slot-a%",   "slot-a%0A",              /* a control character */
        "slot-a%FF",                           /* no UTF-8 */
        "slot-a b",                            /* not escaped */
    };
    char id[CLAVE_SLOT_ID_MAX + 1];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_false(clave__slot_name_parse(names[i], id));
    char name[SLOT_NAME_CAP] = "slot-";
    memset(name + 5, 'a', CLAVE_SLOT_ID_MAX + 1);
    name[5 + CLAVE_SLOT_ID_MAX + 1] = '\0';
    assert_false(clave__slot_name_parse(name, id)); /* a byte too long */
    name[5 + CLAVE_SLOT_ID_MAX] = '\0';
    assert_true(clave__slot_name_parse(name, id));
    assert_int_equal(strlen(id), CLAVE_SLOT_ID_MAX);
}

TEST(ids_and_texts_are_checked)
{
    char text[CLAVE_SLOT_TEXT_MAX + 2];
    assert_false(clave__slot_id_is_valid(NULL));
    assert_false(clave__slot_id_is_valid(""));
    assert_false(clave__slot_id_is_valid("a\nb"));
    assert_false(clave__slot_id_is_valid("\xff"));
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_false(clave__slot_text_is_valid(text));
    text[CLAVE_SLOT_TEXT_MAX] = '\0';
    assert_true(clave__slot_text_is_valid(text));
    assert_true(clave__slot_text_is_valid(""));
    assert_true(clave__slot_text_is_valid(NULL));
    text[CLAVE_SLOT_ID_MAX + 1] = '\0';
    assert_false(clave__slot_id_is_valid(text));
    text[CLAVE_SLOT_ID_MAX] = '\0';
    assert_true(clave__slot_id_is_valid(text));
}
