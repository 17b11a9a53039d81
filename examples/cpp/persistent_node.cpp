// persistent_node.cpp - is seen by others while it runs.
#include <clave/clave.hpp>

#include <iostream>

using namespace std::chrono_literals;

int main()
try {
    clave::client client = clave::client::open("").value();
    clave::persistent_node node =
        clave::persistent_node::make(client, "/members/worker", "idle", CLAVE_PERSISTENT_NODE_OPTIONS_INIT,
                                     [](const clave_persistent_node_event &event) {
                                         if (event.type == CLAVE_PERSISTENT_NODE_CONFLICT)
                                             std::cerr << event.path << " is another's\n";
                                     })
            .value();
    node.await(10s).value();
    node.set("busy", 5s).value();
    std::cout << node.path() << (node.is_present() ? " is there\n" : " is gone\n");
    node.close(5s).value();
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
