/* base_memory_test.c - the allocator's door, the table of errors, and log lines. */
#include "base/log_line.h"
#include "base/memory.h"
#include "clave/err.h"
#include "lib/failmem.h"
#include "lib/unit.h"

/* ---- memory ---------------------------------------------------------------------------------- */

TEST(all_goes_through_the_hooks)
{
    struct failmem f;
    failmem_init(&f);
    struct clave_mem m = clave__mem_or_default(&f.mem);
    char *zeros = clave__mem_zalloc(&m, 100);
    assert_non_null(zeros);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(zeros[i], 0);
    char *s = clave__mem_strdup(&m, "text");
    char *part = clave__mem_strndup(&m, "text\0more", 9);
    assert_string_equal(s, "text");
    assert_memory_equal(part, "text\0more\0", 10);
    void *p = clave__mem_realloc(&m, NULL, 10);
    p = clave__mem_realloc(&m, p, 1000);
    assert_int_equal(f.live, 4);
    assert_int_equal(f.asked, 5);
    clave__mem_free(&m, zeros);
    clave__mem_free(&m, s);
    clave__mem_free(&m, part);
    clave__mem_free(&m, p);
    clave__mem_free(&m, NULL);
    assert_int_equal(f.live, 0);
}

TEST(nothing_is_something)
{
    struct failmem f;
    failmem_init(&f);
    void *p = clave__mem_alloc(&f.mem, 0); /* not NULL, which would be a failure */
    assert_non_null(p);
    p = clave__mem_realloc(&f.mem, p, 0);
    assert_non_null(p);
    clave__mem_free(&f.mem, p);
    char *empty = clave__mem_strndup(&f.mem, NULL, 0);
    assert_string_equal(empty, "");
    clave__mem_free(&f.mem, empty);
    assert_int_equal(f.live, 0);
}

TEST(failures_are_passed_on)
{
    struct failmem f;
    failmem_init(&f);
    void *p = clave__mem_alloc(&f.mem, 10);
    failmem_arm(&f, 1, SIZE_MAX);
    assert_null(clave__mem_alloc(&f.mem, 10));
    assert_null(clave__mem_zalloc(&f.mem, 10));
    assert_null(clave__mem_realloc(&f.mem, p, 100)); /* p stays */
    assert_null(clave__mem_strdup(&f.mem, "text"));
    assert_true(f.failed);
    assert_int_equal(f.live, 1);
    clave__mem_free(&f.mem, p);
}

TEST(the_default_is_libc)
{
    struct clave_mem m = clave__mem_or_default(NULL);
    char *s = clave__mem_strdup(&m, "text");
    assert_string_equal(s, "text");
    s = clave__mem_realloc(&m, s, 1 << 20);
    assert_string_equal(s, "text");
    clave__mem_free(&m, s);
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define EACH(name, number, class_, text) {CLAVE_##name, number, CLAVE_CLASS_##class_, #name, text},
static const struct {
    clave_err err;
    int number;
    clave_err_class class_;
    const char *name, *text;
} errors[] = {CLAVE_ERR_MAP(EACH)};

TEST(every_error_is_in_the_table_once)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        assert_int_equal(errors[i].err, errors[i].number);
        assert_string_equal(clave_err_name(errors[i].err), errors[i].name);
        assert_string_equal(clave_strerror(errors[i].err), errors[i].text);
        assert_int_equal(clave_err_classify(errors[i].err), errors[i].class_);
        for (size_t k = 0; k < i; k++)
            assert_true(errors[k].number != errors[i].number);
    }
}

TEST(a_number_that_is_none)
{
    clave_err none = (clave_err)-9999;
    assert_string_equal(clave_err_name(none), "E?");
    assert_true(strlen(clave_strerror(none)) > 0);
    assert_int_equal(clave_err_classify(none), CLAVE_CLASS_UNKNOWN); /* nothing may be concluded */
}

/* What decides whether a write may be sent again. */
TEST(the_classes_that_matter)
{
    assert_int_equal(clave_err_classify(CLAVE_OK), CLAVE_CLASS_NONE);
    assert_int_equal(clave_err_classify(CLAVE_ECONNLOSS), CLAVE_CLASS_UNKNOWN);
    assert_int_equal(clave_err_classify(CLAVE_ETIMEDOUT), CLAVE_CLASS_UNKNOWN);
    assert_int_equal(clave_err_classify(CLAVE_ENOTSENT), CLAVE_CLASS_RETRY);
    /* Not done, and the client has another session soon, or memory. */
    assert_int_equal(clave_err_classify(CLAVE_EEXPIRED), CLAVE_CLASS_RETRY);
    assert_int_equal(clave_err_classify(CLAVE_ENOMEM), CLAVE_CLASS_RETRY);
    assert_int_equal(clave_err_classify(CLAVE_ENODEEXISTS), CLAVE_CLASS_FINAL);
    assert_int_equal(clave_err_classify(CLAVE_ECORRUPT), CLAVE_CLASS_FATAL);
}

/* ---- log lines ------------------------------------------------------------------------------- */

struct heard {
    int level;
    char text[4096];
};

static void hear(void *arg, int level, const char *msg)
{
    struct heard *h = arg;
    h->level = level;
    snprintf(h->text, sizeof h->text, "%s", msg);
}

TEST(lines_are_cut_not_overrun)
{
    struct heard h = {0};
    struct log log = {.cb = hear, .arg = &h}, none = {0};
    char longer[4000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    clave__log(&none, CLAVE_LOG_ERROR, "%s", longer);
    clave__log(&log, CLAVE_LOG_WARN, "%s is %d", "it", 7);
    assert_string_equal(h.text, "it is 7");
    assert_int_equal(h.level, CLAVE_LOG_WARN);
    clave__log(&log, CLAVE_LOG_ERROR, "%s", longer);
    assert_int_equal(strlen(h.text), 2047);
}
