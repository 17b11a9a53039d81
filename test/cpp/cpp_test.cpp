// clave.hpp against a test server: ownership, the two ways of results, the standard's locks, callbacks, grants.
#include <clave/clave.hpp>
#include <clave/testserver.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <type_traits>
#include <unistd.h>

using namespace std::chrono_literals;

bool again(const clave::error &e);

namespace {

int failures = 0;

void check(bool fine, const char *what, int line)
{
    if (fine)
        return;
    failures++;
    std::fprintf(stderr, "cpp_test.cpp:%d: %s\n", line, what);
}
#define CHECK(x) check((x) ? true : false, #x, __LINE__)

class server {
public:
    server()
    {
        clave_test_server_options o = CLAVE_TEST_SERVER_OPTIONS_INIT;
        if (clave_test_server_new(&t_, &o) != CLAVE_OK)
            std::abort();
    }
    server(const server &) = delete;
    server &operator=(const server &) = delete;
    ~server() { clave_test_server_free(t_); }
    std::string hosts() const { return clave_test_server_connect_string(t_); }
    clave_test_server *get() const { return t_; }

private:
    clave_test_server *t_ = nullptr;
};

// A value that another thread waits for.
template <class T> class box {
public:
    void put(T value)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        value_ = value;
        filled_ = true;
        condition_.notify_all();
    }
    T take()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        condition_.wait(lock, [this] { return filled_; });
        filled_ = false;
        return value_;
    }

private:
    std::mutex mutex_;
    std::condition_variable condition_;
    T value_{};
    bool filled_ = false;
};

clave::client connect(const server &s)
{
    clave::client c = clave::client::open(s.hosts()).value();
    c.wait(10s).value();
    return c;
}

template <class T> constexpr bool moves_only = std::is_nothrow_move_constructible_v<T> && !std::is_copy_constructible_v<T>;
static_assert(moves_only<clave::client> && moves_only<clave::mutex> && moves_only<clave::lease>);
static_assert(moves_only<clave::semaphore> && moves_only<clave::latch> && moves_only<clave::selector>);
static_assert(moves_only<clave::slots> && moves_only<clave::slot> && moves_only<clave::slot_list>);
static_assert(moves_only<clave::grant> && moves_only<clave::cache> && moves_only<clave::once>);
static_assert(moves_only<clave::multilock> && moves_only<clave::reply> && moves_only<clave::loop>);

void results_and_exceptions(const server &s)
{
    clave::result<clave::client> bad = clave::client::open("a:b:c");
    CHECK(!bad && bad.code() == CLAVE_EHOST && bad.err_class() == CLAVE_CLASS_FINAL);
    bool thrown = false;
    try {
        bad.value();
    } catch (const clave::error &e) {
        thrown = e.code() == CLAVE_EHOST && std::string(e.what()).find("EHOST") == 0 && !again(e);
    }
    CHECK(thrown);
    clave::client c = connect(s);
    clave::result<clave::reply> none = c.get_data("/none", 5s);
    CHECK(none.code() == CLAVE_ENONODE && none.detail().find("/none") != std::string::npos);
    CHECK(clave::timeout(1500us).ms() == 2 && clave::timeout(-1s).ms() == 0 && clave::forever.ms() == -1);
}

void the_tree(const server &s)
{
    clave::client c = connect(s);
    CHECK(c.create("/tree", std::string_view("a\0b", 3), 5s)->path() == std::string("/tree"));
    CHECK(c.get_data("/tree", 5s)->data() == std::string_view("a\0b", 3));
    CHECK(c.set("/tree", "c", 5s, 7).code() == CLAVE_EBADVERSION);
    CHECK(c.set("/tree", "c", 5s, 0)->stat().version == 1);
    CHECK(c.create("/tree/x", "", 5s) && c.children("/tree", 5s)->names() == std::vector<std::string>{"x"});
    CHECK(c.remove("/tree", 5s).code() == CLAVE_ENOTEMPTY && c.remove("/tree/x", 5s) && c.sync("/", 5s));
    CHECK(c.exists("/tree", 5s)->stat().data_length == 1);
    clave_op op{};
    op.kind = CLAVE_OP_CHECK;
    op.path = "/tree";
    op.version = 9;
    CHECK(c.multi({op}, 5s).code() == CLAVE_EBADVERSION);
    std::int64_t id = 0;
    CHECK(c.run([&](clave_async_client *a) { id = clave_async_client_session_id(a); }) && id == c.id());
    box<bool> posted;
    CHECK(c.post([&](clave_async_client *) { posted.put(true); }) && posted.take());
}

void two_threads_never_hold_it_together(const server &s)
{
    clave::client c = connect(s);
    clave::mutex m = clave::mutex::make(c, "/lock").value();
    std::atomic<int> inside{0}, most{0};
    auto work = [&] {
        for (int i = 0; i < 50; i++) {
            std::lock_guard<clave::mutex> lock(m);
            most = std::max<int>(most, ++inside);
            --inside;
        }
    };
    std::thread other(work);
    work();
    other.join();
    CHECK(most == 1);
}

void the_standards_locks(const server &s)
{
    clave::client c = connect(s), d = connect(s);
    clave::mutex m = clave::mutex::make(c, "/std").value(), n = clave::mutex::make(d, "/std").value();
    std::unique_lock<clave::mutex> lock(m);
    CHECK(lock.owns_lock() && !n.try_lock());
    CHECK(!std::unique_lock<clave::mutex>(n, 50ms) && !n.try_lock_until(std::chrono::steady_clock::now() + 50ms));
    CHECK(n.acquire(clave::at_once).code() == CLAVE_EBUSY);
    lock.unlock();
    CHECK(n.try_lock_for(10s));
    n.unlock();
    CHECK(m.release().code() == CLAVE_ENOTHELD);
    std::scoped_lock<clave::mutex> scoped(m);
    clave::mutex moved = std::move(n); // and back: the object is whole
    n = std::move(moved);
    CHECK(!n.try_lock());
    CHECK(m.acquire_as(7, 10ms).code() == CLAVE_EBUSY);
}

void a_grant_ends_with_its_hold(const server &s)
{
    clave::client c = connect(s);
    clave::mutex m = clave::mutex::make(c, "/grant").value();
    c.create("/guarded", "", 5s).value();
    CHECK(m.held().code() == CLAVE_ENOTHELD);
    m.lock();
    clave::grant g = m.held().value();
    CHECK(g.token() > 0 && g.valid_for(10ms) && g.session_id() == c.id());
    CHECK(g.set("/guarded", "x", 5s) && g.create("/guarded/a", "", 5s) && g.remove("/guarded/a", 5s));
    clave::grant moved = std::move(g);
    m.release_confirmed(5s).value();
    CHECK(moved.set("/of-slots", "late", 5s).code() == CLAVE_ELOST && !moved.valid_for());
    CHECK(c.get_data("/guarded", 5s)->data() == "x");
}

void a_hold_depends_on_its_work(const server &s)
{
    clave::client c = connect(s);
    box<clave_err> lost;
    clave::mutex m = clave::mutex::make(c, "/depends", CLAVE_MUTEX_OPTIONS_INIT, [&](const clave_mutex_event &event) {
        if (event.kind == CLAVE_MUTEX_LOST)
            lost.put(event.why);
    }).value();
    m.lock();
    clave::grant g = m.held().value();
    CHECK(g.alive() && g.depend(1min) && g.alive() && g.valid_for(10ms) && g.depend(clave::at_once));
    CHECK(g.depend(clave::forever).code() == CLAVE_EINVAL);
    {
        clave::dependence work = g.depend_here(1min).value();
        clave::dependence moved = std::move(work);
        CHECK(moved.alive() && g.valid_for(10ms));
    }
    CHECK(g.alive() && g.valid_for(10ms) && g.depend(1ms)); // until here it depended on nothing
    CHECK(lost.take() == CLAVE_ESILENT && !g.valid_for() && g.alive().code() == CLAVE_ELOST);
    CHECK(g.depend_here(1s).code() == CLAVE_ELOST);
    CHECK(m.release().code() == CLAVE_ESILENT);
}

void a_hold_passes_to_another_client(const server &s)
{
    const std::string file = "/tmp/clave-cpp-" + std::to_string(::getpid());
    clave::client old = clave::client::open(s.hosts()).value();
    CHECK(old.hand_over(file, 10s).code() == CLAVE_ENOTHELD);
    clave::mutex m = clave::mutex::make(old, "/handed", CLAVE_MUTEX_OPTIONS_INIT).value();
    m.lock();
    clave::grant was = m.held().value();
    CHECK(!was.resumed() && old.hand_over(file, 10s) && !was.valid_for());
    clave_client_options options = CLAVE_CLIENT_OPTIONS_INIT;
    options.resume_file = file.c_str();
    clave::client heir = clave::client::open(s.hosts(), options).value();
    clave::mutex next = clave::mutex::make(heir, "/handed", CLAVE_MUTEX_OPTIONS_INIT).value();
    next.lock();
    clave::grant is = next.held().value();
    CHECK(is.resumed() && is.token() == was.token() && is.valid_for(1ms));
}

void callbacks_are_lambdas(const server &s)
{
    box<clave_state> state;
    clave::client c = clave::client::open(s.hosts(), CLAVE_CLIENT_OPTIONS_INIT, [&](clave_state now, clave_err) {
        if (now == CLAVE_STATE_CONNECTED)
            state.put(now);
    }).value();
    CHECK(state.take() == CLAVE_STATE_CONNECTED);
    box<clave_err> lost;
    clave::mutex m = clave::mutex::make(c, "/lost", CLAVE_MUTEX_OPTIONS_INIT, [&](const clave_mutex_event &event) {
        if (event.kind == CLAVE_MUTEX_LOST)
            lost.put(event.why);
    }).value();
    clave::mutex moved = std::move(m); // the callback goes with it
    moved.lock();
    CHECK(clave_test_server_expire(s.get(), c.id()) == CLAVE_OK);
    CHECK(lost.take() == CLAVE_EEXPIRED);
    CHECK(moved.release().code() == CLAVE_ELOST);
}

void shared_locks_and_leases(const server &s)
{
    clave::client c = connect(s);
    clave::rwlock rw = clave::rwlock::make(c, "/rw").value();
    CHECK(rw.read.acquire_as(1) && rw.read.acquire_as(2) && rw.write.acquire_as(3, 10ms).code() == CLAVE_EBUSY);
    CHECK(rw.read.release_as(1) && rw.read.release_as(2) && rw.write.acquire_as(3, 5s) && rw.write.release_as(3));
    clave::semaphore two = clave::semaphore::make(c, "/two", 2).value();
    {
        std::vector<clave::lease> both = two.acquire(2, 5s).value();
        CHECK(both.size() == 2 && two.acquire(clave::at_once).code() == CLAVE_EBUSY);
        CHECK(both[0].held()->token() != both[1].held()->token());
    }
    CHECK(two.acquire(5s)->release_confirmed(5s));
    clave::multilock all = clave::multilock::make(c, {{"/m/a"}, {"/m/b"}}).value();
    std::lock_guard<clave::multilock> lock(all);
    CHECK(all.held("/m/a")->token() != all.held("/m/b")->token() && all.held("/m/c").code() == CLAVE_ENONODE);
}

void slots_of_ids(const server &s)
{
    clave::client c = connect(s);
    box<std::size_t> waits;
    clave::slots slots = clave::slots::make(c, "/slots", CLAVE_SLOTS_OPTIONS_INIT,
                                            [&](const clave_slots_event &ev) { waits.put(ev.ahead); }).value();
    CHECK(slots.take("a", 5s).code() == CLAVE_ENONODE && slots.set_limit(1, 5s));
    clave::slot a = slots.take("a", 5s).value();
    CHECK(a.taken() && !slots.take("a", 5s)->taken() && a->id == std::string("a"));
    CHECK(slots.held(a)->create("/of-slots", "", 5s) && slots.held(a)->token() == a.token());
    CHECK(slots.take("b", 50ms).code() == CLAVE_EBUSY && waits.take() == 0);
    CHECK(*slots.give("a", 5s, a.token() + 1) == 0 && *slots.give("a", 5s, a.token()) == a.token());
    clave_slot which = {};
    CHECK(slots.take("b", 5s));
    which.id = "b";
    which.reason = "gone";
    CHECK(*slots.break_slot(which, 5s) != 0 && slots.held(a)->set("/of-slots", "late", 5s).code() == CLAVE_ELOST);
    clave::slot_list none = clave::list_slots(c, "/slots", 5s).value();
    CHECK(none.size() == 0 && none.limit() == 1 && none.broken().id == std::string("b"));
}

void elections(const server &s)
{
    clave::client c = connect(s);
    clave::latch a = clave::latch::make(c, "/svc").value(), b = clave::latch::make(c, "/svc").value();
    a.start().value();
    a.await(10s).value();
    b.start().value();
    CHECK(a.has_leadership() && b.await(10ms).code() == CLAVE_EBUSY && a.publish("here", 5s));
    std::int64_t term = a.held()->token();
    CHECK(a.close(5s) && b.await(10s) && b.held()->token() > term);
    box<bool> led;
    clave::selector sel = clave::selector::make(c, "/sel", [&](clave::leadership &me) {
        led.put(me.has_leadership() && me.held());
        while (me.pause(10ms)) {
        }
    }).value();
    sel.start().value();
    CHECK(led.take() && sel.interrupt() && sel.error());
}

// Every acquire when its time is over: EBUSY only if a server has shown another before it.
void all_acquires_say(clave::client &c, clave_err want, const char *when)
{
    clave::latch candidate = clave::latch::make(c, "/table/svc").value();
    candidate.start().value();
    clave::mutex m = clave::mutex::make(c, "/table/m").value();
    clave::rwlock rw = clave::rwlock::make(c, "/table/rw").value();
    clave::multilock all = clave::multilock::make(c, {{"/table/m"}, {"/table/n"}}).value();
    clave::semaphore one = clave::semaphore::make(c, "/table/one", 1).value();
    clave_slots_options limit = CLAVE_SLOTS_OPTIONS_INIT;
    limit.limit = 1;
    clave::slots slots = clave::slots::make(c, "/table/slots", limit).value();
    const clave::timeout waits[] = {clave::at_once, 500ms};
    for (clave::timeout wait : waits) {
        const clave_err said[] = {m.acquire(wait).code(), rw.read.acquire(wait).code(), rw.write.acquire(wait).code(),
                                  all.acquire(wait).code(), one.acquire(wait).code(), slots.take("ours", wait).code(),
                                  candidate.await(500ms).code()};
        for (std::size_t i = 0; i < sizeof said / sizeof *said; i++)
            if (said[i] != want) {
                std::fprintf(stderr, "%s, acquire %zu: %s\n", when, i, clave_err_name(said[i]));
                failures++;
            }
    }
}

void an_acquire_is_busy_only_if_it_was_shown()
{
    server s;
    clave::client holder = connect(s), c = connect(s);
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.session_timeout_ms = 2000;
    clave::client brief = clave::client::open(s.hosts(), o).value();
    brief.wait(10s).value();
    clave::mutex m = clave::mutex::make(holder, "/table/m").value();
    clave::rwlock rw = clave::rwlock::make(holder, "/table/rw").value();
    clave::semaphore one = clave::semaphore::make(holder, "/table/one", 1).value();
    clave_slots_options limit = CLAVE_SLOTS_OPTIONS_INIT;
    limit.limit = 1;
    clave::slots slots = clave::slots::make(holder, "/table/slots", limit).value();
    clave::latch leader = clave::latch::make(holder, "/table/svc").value();
    CHECK(m.acquire(10s) && rw.write.acquire(10s) && slots.take("theirs", 10s) && leader.start() && leader.await(10s));
    clave::lease lease = one.acquire(10s).value();
    all_acquires_say(c, CLAVE_EBUSY, "a held lock");
    CHECK(clave_test_server_kill(s.get()) == CLAVE_OK);
    clave::client none = clave::client::open(s.hosts()).value();
    all_acquires_say(none, CLAVE_EUNREACHABLE, "no server");
    while (c.state() == CLAVE_STATE_CONNECTED)
        std::this_thread::sleep_for(1ms);
    all_acquires_say(c, CLAVE_EUNREACHABLE, "a lost connection");
    while (brief.state() != CLAVE_STATE_LOST)
        std::this_thread::sleep_for(1ms);
    all_acquires_say(brief, CLAVE_EUNREACHABLE, "a lost session");
}

void jobs_caches_and_lists(const server &s)
{
    clave::client c = connect(s);
    clave::mutex m = clave::mutex::make(c, "/job").value();
    std::lock_guard<clave::mutex> lock(m);
    clave::grant g = m.held().value();
    clave_once_record former{};
    CHECK(clave::once::begin(g, "/job-once/x", 1h, 5s)->end(true, 5s));
    CHECK(clave::once::begin(g, "/job-once/x", 1h, 5s, false, &former).code() == CLAVE_EDONE);
    CHECK(former.state == CLAVE_ONCE_DONE);
    box<bool> changed;
    c.create("/cache", "1", 5s).value();
    clave::cache cache = clave::cache::make(c, "/cache", [&](const clave_cache_event &event) {
        if (event.type == CLAVE_CACHE_CHANGED)
            changed.put(true);
    }).value();
    CHECK(cache.wait(10s) && cache.find("/cache")->data() == "1" && cache.find("/no").code() == CLAVE_ENONODE);
    CHECK(c.set("/cache", "2", 5s) && changed.take() && cache.find("/cache")->data() == "2");
    int nodes = 0;
    CHECK(cache.walk("/cache", [&](const clave_cache_node &) { return ++nodes > 0; }) && nodes == 1);
    clave::participant_list list = clave::participants(c, "/job", 5s).value();
    CHECK(list.size() == 1 && list.begin()->stat.czxid == g.token());
    CHECK(clave::find_deadlocks(c, {"/"}, 5s)->size() == 0);
    CHECK(clave::metrics()->find("clave_") != std::string::npos);
}

void objects_may_outlive_their_client(const server &s)
{
    clave::client c = connect(s);
    clave::mutex m = clave::mutex::make(c, "/outlives").value();
    m.lock();
    clave::grant g = m.held().value();
    c.close(5s);
    CHECK(m.acquire(1s).code() == CLAVE_ECLOSED && !g.valid_for());
}

} // namespace

int main()
{
    server s;
    results_and_exceptions(s);
    the_tree(s);
    two_threads_never_hold_it_together(s);
    the_standards_locks(s);
    a_grant_ends_with_its_hold(s);
    a_hold_depends_on_its_work(s);
    a_hold_passes_to_another_client(s);
    callbacks_are_lambdas(s);
    shared_locks_and_leases(s);
    slots_of_ids(s);
    elections(s);
    jobs_caches_and_lists(s);
    objects_may_outlive_their_client(s);
    an_acquire_is_busy_only_if_it_was_shown();
    return failures ? 1 : 0;
}
