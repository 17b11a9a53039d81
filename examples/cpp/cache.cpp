// cache.cpp - settings in memory, kept up to date.
#include <clave/clave.hpp>

#include <atomic>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;

int main()
try {
    std::atomic<int> changes{0}; // before the cache, whose callback uses it
    clave::client client = clave::client::open("").value();
    (void)client.create("/settings-cpp", "", 5s); // it may be there
    clave::cache cache = clave::cache::make(client, "/settings-cpp", [&](const clave_cache_event &event) {
        changes += event.type == CLAVE_CACHE_CHANGED;
    }).value();
    cache.wait(10s).value();
    client.set("/settings-cpp", "colour=red", 5s).value();
    while (changes == 0)
        std::this_thread::yield();
    std::cout << cache.find("/settings-cpp").value().data() << ", " << cache.status().count << " node\n";
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
