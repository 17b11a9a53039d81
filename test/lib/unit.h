/* unit.h - the tests of one program. TEST(name) { ... } is a test, and main in unit.c runs the
 * tests of the program in the order in which they stand. An argument runs only the tests of that
 * name, in which `*` and `?` are wildcards. What a set-up makes is in `*state`. */
#ifndef CLAVE_TEST_UNIT_H
#define CLAVE_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct unit_test {
    struct CMUnitTest test;
    int line;
    struct unit_test *next;
};
/* Called before main, by what the macros below define. */
void unit_add(struct unit_test *t);
void unit_group(CMFixtureFunction setup, CMFixtureFunction teardown);

#define TEST(name) TEST_WITH(name, NULL, NULL)
/* It runs before all others, as a test that forks must while there are no threads. */
#define TEST_FIRST(name) UNIT_TEST(name, __LINE__ - 1000000, NULL, NULL)
/* The functions run before and after the test, each may be NULL. */
#define TEST_WITH(name, setup, teardown) UNIT_TEST(name, __LINE__, setup, teardown)
#define UNIT_TEST(name, line, setup, teardown)                                                     \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_is_a_test(void)                                \
    {                                                                                              \
        static struct unit_test t = {{#name, name, setup, teardown, NULL}, line, NULL};            \
        unit_add(&t);                                                                              \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)
/* The functions run before the first and after the last test, each may be NULL. */
#define TEST_GROUP(setup, teardown)                                                                \
    __attribute__((constructor)) static void unit_has_a_group(void)                                \
    {                                                                                              \
        unit_group(setup, teardown);                                                               \
    }

/* Before a declaration: the variables are closed when their block ends, in the reverse of their
 * order. The function takes the address of one. */
#define CLOSED_BY(function) __attribute__((cleanup(function)))

#endif
