// observe.cpp - who holds, who waits, and the metrics of this process.
#include <clave/clave.hpp>

#include <iostream>
#include <mutex>

using namespace std::chrono_literals;

int main()
try {
    clave::client client = clave::client::open("").value();
    clave::mutex mutex = clave::mutex::make(client, "/jobs/seen").value();
    std::lock_guard<clave::mutex> lock(mutex);
    for (const clave_participant &p : clave::participants(client, "/jobs/seen", 10s).value())
        std::cout << p.node << " of " << (p.identity.host ? p.identity.host : "?") << '\n';
    std::cout << clave::find_deadlocks(client, {"/jobs"}, 10s).value().size() << " deadlocks, "
              << clave::metrics().value().size() << " bytes of metrics\n";
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
