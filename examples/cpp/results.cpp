// results.cpp - without exceptions: each call returns what happened.
#include <clave/clave.hpp>

#include <cstdio>

using namespace std::chrono_literals;

int main()
{
    clave::result<clave::client> client = clave::client::open("");
    if (!client)
        return std::fprintf(stderr, "open: %s\n", client.detail().c_str()), 1;
    auto mutex = clave::mutex::make(*client, "/jobs/results");
    if (!mutex)
        return 1;
    if (auto acquired = mutex->acquire(10s); !acquired) {
        bool later = acquired.err_class() == CLAVE_CLASS_RETRY;
        return std::fprintf(stderr, "%s\n", clave_strerror(acquired.code())), later ? 75 : 1;
    }
    std::puts("held");
    clave::result<void> released = mutex->release();
    return released ? 0 : 1;
}
