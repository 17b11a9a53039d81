// instances.cpp - finds an instance of a service, in turn.
#include <clave/clave.hpp>

#include <iostream>

using namespace std::chrono_literals;

int main()
try {
    clave::client client = clave::client::open("").value();
    (void)client.create("/services", "", 5s); // they may be there
    (void)client.create("/services/db", "", 5s);
    (void)client.create("/services/db/a", R"({"name":"db","id":"a","address":"10.0.0.9","port":5432})", 5s);
    clave::instances db = clave::instances::make(client, "db").value();
    db.wait(10s).value();
    db.pick(CLAVE_PICK_ROUND_ROBIN, [](const clave_instances_entry &e) {
        std::cout << "use " << e.instance->address << " port " << e.instance->port << '\n';
        return true;
    }).value();
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
