// once.cpp - however many processes start it, one makes the report, once in twenty hours.
#include <clave/clave.hpp>

#include <iostream>
#include <mutex>

using namespace std::chrono_literals;

int main()
try {
    clave::client client = clave::client::open("").value();
    clave::mutex mutex = clave::mutex::make(client, "/jobs/daily").value();
    std::lock_guard<clave::mutex> lock(mutex);
    clave::grant grant = mutex.held().value();
    clave::result<clave::once> job = clave::once::begin(grant, "/jobs/daily-once/report", 20h, 10s);
    if (job.code() == CLAVE_EDONE) {
        std::cout << "done already\n";
        return 0;
    }
    std::cout << "makes the report\n";
    job->end(true, 10s).value();
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
