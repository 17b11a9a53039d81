// multilock.cpp - two locks as one, and one write that both guard.
#include <clave/clave.hpp>

#include <iostream>
#include <mutex>

using namespace std::chrono_literals;

int main()
try {
    clave::client client = clave::client::open("").value();
    auto both = clave::multilock::make(client, {{"/accounts/a"}, {"/accounts/b", CLAVE_MULTILOCK_WRITE}}).value();
    std::lock_guard<clave::multilock> lock(both);
    clave::grant a = both.held("/accounts/a").value(), b = both.held("/accounts/b").value();
    clave_op transfer{};
    transfer.kind = CLAVE_OP_CREATE;
    transfer.path = "/transfers-";
    transfer.mode = CLAVE_PERSISTENT_SEQUENTIAL;
    clave::multi({&a, &b}, {transfer}, 5s).value();
    std::cout << "done under both\n";
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
