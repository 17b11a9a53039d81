// The header in a second translation unit: nothing in it is defined twice.
#include <clave/clave.hpp>

bool again(const clave::error &e);
bool again(const clave::error &e)
{
    return e.code() == CLAVE_EBUSY;
}
