// election.cpp - a latch that leads until it resigns, and leadership as a function call.
#include <clave/clave.hpp>

#include <future>
#include <iostream>

using namespace std::chrono_literals;

int main()
try {
    clave::client client = clave::client::open("").value();

    clave::latch latch = clave::latch::make(client, "/services/mail", CLAVE_LATCH_OPTIONS_INIT, [](const clave_latch_event &event) {
        if (event.kind == CLAVE_LATCH_NOT_LEADER)
            std::cout << "leads no more\n"; // on the loop's thread
    }).value();
    latch.start().value();
    latch.await(10s).value();
    latch.publish("10.0.0.1:25", 5s).value();
    std::cout << "leads, term " << latch.held().value().token() << '\n';
    latch.close(5s).value();

    std::promise<std::int64_t> led;
    clave::selector selector = clave::selector::make(client, "/services/backup", [&](clave::leadership &me) {
        led.set_value(me.held().value().token());
        while (me.pause(100ms)) // returns when it should stop
            break;
    }).value();
    selector.start().value();
    std::cout << "led, token " << led.get_future().get() << '\n';
    return 0;
} catch (const clave::error &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
