// rwlock.cpp - readers share, a writer is alone.
#include <clave/clave.hpp>

#include <iostream>
#include <mutex>

int main()
try {
    clave::client client = clave::client::open("").value();
    clave::rwlock lock = clave::rwlock::make(client, "/tables/users").value();
    {
        std::lock_guard<clave::mutex> reads(lock.read);
        std::cout << "reads\n";
    }
    std::lock_guard<clave::mutex> writes(lock.write);
    std::cout << "writes\n";
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
