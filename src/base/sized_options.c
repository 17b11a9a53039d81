/* sized_options.c - options structs of any version, as its header describes. Every _new that
 * takes options calls clave__options_take. A field this version does not know must be 0. */
#include "base/sized_options.h"

#include <assert.h>
#include <string.h>

/* The caller's struct need not be aligned as ours is. */
static size_t options_size(const void *options)
{
    size_t size;
    memcpy(&size, options, sizeof size);
    return size;
}

const char *clave__options_fault(size_t dst_size, const void *src)
{
    if (!src)
        return NULL;
    size_t size = options_size(src);
    if (size == 0)
        return "has size 0: begin with its _INIT macro, or set .size to its sizeof";
    if (size < sizeof size || size > OPTIONS_SIZE_MAX)
        return "has a size that no version of it has: begin with its _INIT macro, or set .size to "
               "its sizeof";
    const unsigned char *bytes = src;
    size_t zeros_to = dst_size;
    while (zeros_to < size && bytes[zeros_to] == 0)
        zeros_to++;
    if (zeros_to < size)
        return "has a field set that this version of libclave does not know: leave it 0, or use "
               "the libclave that the program was built with";
    return NULL;
}

clave_err clave__options_take(void *dst, size_t dst_size, const void *src)
{
    assert(dst_size >= sizeof dst_size && dst_size <= OPTIONS_SIZE_MAX);
    clave_err err = clave__options_fault(dst_size, src) ? CLAVE_EINVAL : CLAVE_OK;
    memset(dst, 0, dst_size);
    if (src && err == CLAVE_OK) {
        size_t size = options_size(src);
        memcpy(dst, src, size < dst_size ? size : dst_size);
    }
    memcpy(dst, &dst_size, sizeof dst_size);
    return err;
}

clave_err clave__options_give(void *dst, const void *src, size_t src_size)
{
    assert(src_size >= sizeof src_size && src_size <= OPTIONS_SIZE_MAX);
    size_t size = dst ? options_size(dst) : 0;
    if (size < sizeof size || size > OPTIONS_SIZE_MAX)
        return CLAVE_EINVAL;
    memset(dst, 0, size);
    memcpy(dst, src, size < src_size ? size : src_size);
    memcpy(dst, &size, sizeof size);
    return CLAVE_OK;
}
