#include "clave/err.h"

#include <stddef.h>

struct entry {
    clave_err err;
    clave_err_class class_;
    const char *name;
    const char *text;
};

static const struct entry table[] = {
#define ENTRY(name, number, class_, text) {CLAVE_##name, CLAVE_CLASS_##class_, #name, text},
    CLAVE_ERR_MAP(ENTRY)
#undef ENTRY
};

static const struct entry *find(clave_err err)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].err == err)
            return &table[i];
    return NULL;
}

const char *clave_err_name(clave_err err)
{
    const struct entry *e = find(err);
    return e ? e->name : "E?";
}

const char *clave_strerror(clave_err err)
{
    const struct entry *e = find(err);
    return e ? e->text : "an error code this version does not know";
}

clave_err_class clave_err_classify(clave_err err)
{
    const struct entry *e = find(err);
    return e ? e->class_ : CLAVE_CLASS_UNKNOWN;
}

const char *clave_version(void)
{
    return CLAVE_VERSION_STRING;
}
