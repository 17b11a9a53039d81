// semaphore.cpp - at most three at a time. The lease releases itself.
#include <clave/clave.hpp>

#include <iostream>

using namespace std::chrono_literals;

int main()
try {
    clave::client client = clave::client::open("").value();
    clave::semaphore semaphore = clave::semaphore::make(client, "/downloads", 3).value();
    clave::lease lease = semaphore.acquire(10s).value();
    std::cout << "one of three, token " << lease.held().value().token() << '\n';
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
