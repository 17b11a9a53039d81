// nightly.cpp - the job of this folder in C++.
//
//   c++ -std=c++17 nightly.cpp $(pkg-config --cflags --libs clave) -o nightly && ./nightly ledger
#include <clave/clave.hpp>

#include <fstream>
#include <iostream>
#include <mutex>
#include <thread>

using namespace std::chrono_literals;

int main(int argc, char **argv)
try {
    clave::client client = clave::client::open("").value();
    clave::mutex mutex = clave::mutex::make(client, "/jobs/nightly").value();
    std::lock_guard<clave::mutex> lock(mutex);
    clave::grant grant = mutex.held().value();
    std::ofstream ledger(argc > 1 ? argv[1] : "ledger", std::ios::app);
    ledger << "begin " << grant.token() << " c++" << std::endl;
    std::this_thread::sleep_for(100ms);
    if (grant.valid_for()) // else it may be another's by now
        ledger << "end " << grant.token() << " c++" << std::endl;
    return 0;
} catch (const clave::error &e) {
    std::cerr << "nightly: " << e.what() << '\n';
    return 1;
}
