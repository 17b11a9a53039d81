#include "lib/unit.h"

static struct unit_test *first;
static CMFixtureFunction group_setup, group_teardown;

/* Compilers choose the order of constructors, so the lines decide. */
void unit_add(struct unit_test *t)
{
    struct unit_test **at = &first;
    while (*at && (*at)->line < t->line)
        at = &(*at)->next;
    t->next = *at;
    *at = t;
}

void unit_group(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    group_setup = setup;
    group_teardown = teardown;
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[256];
    size_t n = 0;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    for (const struct unit_test *t = first; t; t = t->next) {
        if (n == sizeof tests / sizeof tests[0])
            return 1;
        tests[n++] = t->test;
    }
    return _cmocka_run_group_tests("tests", tests, n, group_setup, group_teardown);
}
