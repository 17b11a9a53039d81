// slots.cpp - a machine that may be out of service while at most two are. Its slot is the id's: it
// outlives this process, and is given back by name.
#include <clave/clave.hpp>

#include <iostream>

using namespace std::chrono_literals;

int main()
try {
    clave::client client = clave::client::open("").value();
    clave::slots slots = clave::slots::make(client, "/maintenance").value();
    slots.set_limit(2, 5s).value();
    clave::slot slot = slots.take("web1", 30s).value();
    std::cout << "web1 " << (slot.taken() ? "took" : "owned") << " a slot, token " << slot.token()
              << '\n';
    for (const clave_slot &owned : clave::list_slots(client, "/maintenance", 5s).value())
        std::cout << "owned by " << owned.id << '\n';
    slots.give("web1", 5s, slot.token()).value();
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
