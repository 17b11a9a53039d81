/* err_lookup.c - name, text and class of an error, from the one table in clave/err.h. */
#include "clave/err.h"

struct entry {
    clave_err_class class_;
    const char *name;
    const char *text;
};

/* A switch, not a search, so that a number used twice does not compile. */
static struct entry err_find(clave_err err)
{
    switch (err) {
#define ENTRY(name, number, class_, text)                                                          \
    case CLAVE_##name:                                                                             \
        return (struct entry){CLAVE_CLASS_##class_, #name, text};
        CLAVE_ERR_MAP(ENTRY)
#undef ENTRY
    }
    return (struct entry){CLAVE_CLASS_UNKNOWN, "E?", "an error code this version does not know"};
}

const char *clave_err_name(clave_err err)
{
    return err_find(err).name;
}

const char *clave_strerror(clave_err err)
{
    return err_find(err).text;
}

clave_err_class clave_err_classify(clave_err err)
{
    return err_find(err).class_;
}
