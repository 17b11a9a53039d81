// instances.cpp - registers an instance of a service while it runs, and finds one, in turn.
#include <clave/clave.hpp>

#include <iostream>

using namespace std::chrono_literals;

int main()
try {
    clave::client client = clave::client::open("").value();
    const std::string spec = clave::uri_spec("{scheme}://{address}:{port}/v1").value();
    clave_instance mine = {};
    mine.name = "db";
    mine.id = "a";
    mine.address = "10.0.0.9";
    mine.port = 5432;
    mine.uri_spec = spec.c_str();
    clave_persistent_node_options options = CLAVE_PERSISTENT_NODE_OPTIONS_INIT;
    options.replace = true; // of this program, before it crashed
    clave::persistent_node node =
        clave::persistent_node::make(client, "/services/db/a", clave::instance_data(mine).value(), options).value();
    node.await(10s).value();

    clave::instances db = clave::instances::make(client, "db").value();
    db.wait(10s).value();
    db.pick(CLAVE_PICK_ROUND_ROBIN, [](const clave_instances_entry &e) {
        std::cout << "use " << e.instance->address << " port " << e.instance->port << ", " << clave::uri_of(*e.instance) << '\n';
        return true;
    }).value();
    node.close(5s).value();
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
