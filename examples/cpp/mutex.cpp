// mutex.cpp - a lock, held by a thread, and a write that only the holder can do.
//
//   c++ -std=c++17 mutex.cpp $(pkg-config --cflags --libs clave) && ./a.out
//
// Talks to the servers that `clave` would: open("").
#include <clave/clave.hpp>

#include <iostream>
#include <mutex>

using namespace std::chrono_literals;

int main()
try {
    clave::client client = clave::client::open("").value();
    clave::mutex mutex = clave::mutex::make(client, "/jobs/report").value();

    std::unique_lock<clave::mutex> lock(mutex, 10s);
    if (!lock) {
        std::cout << "another holds it\n";
        return 75;
    }
    clave::grant grant = mutex.held().value();
    std::cout << "held, token " << grant.token() << '\n';

    clave::result<clave::reply> made = client.create("/report-cpp", "", 5s);
    if (!made && made.code() != CLAVE_ENODEEXISTS)
        made.value(); // throws
    if (grant.valid_for(1s)) // less than a second left: no new work is begun
        grant.set("/report-cpp", "done", 5s).value();
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
