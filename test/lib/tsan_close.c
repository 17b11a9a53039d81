/* tsan_close.c - linked into the tests and the program when TSan watches them. libuv closes
 * descriptors by syscall(SYS_close), which TSan does not see: it took the next file of the same
 * number, in another thread, for the one that was closed, and reported a race. Here it is a
 * close(). */
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long system_call(long number, ...);

__attribute__((visibility("default"))) long syscall(long number, ...)
{
    static system_call *real;
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) /* as many as there may be, like libc's */
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_close)
        return close((int)a[0]);
    system_call *call = __atomic_load_n(&real, __ATOMIC_RELAXED);
    if (!call) {
        call = (system_call *)dlsym(RTLD_NEXT, "syscall");
        __atomic_store_n(&real, call, __ATOMIC_RELAXED);
    }
    return call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
