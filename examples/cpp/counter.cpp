// counter.cpp - counts, exactly once, with others.
#include <clave/clave.hpp>

#include <iostream>

using namespace std::chrono_literals;

int main()
try {
    clave::client client = clave::client::open("").value();
    clave::counter orders = clave::counter::make(client, "/counters/orders").value();
    clave_counter_change change = orders.add(1, 5s).value();
    std::cout << "order number " << change.after << '\n';
    orders.set(1000, 5s).value();
    orders.compare_and_set(1000, 0, 5s).value();
    std::cout << "counts from " << orders.value(5s).value() << " again\n";
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
