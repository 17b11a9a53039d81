import java.io.IOException;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.zookeeper.KeeperException;

/** What worker.py says, in Java: the lines for the driver, and how a lost connection is taken. */
abstract class Worker {
    static final int PATIENCE_S = 90;

    /** An answer that is not what it has to be. */
    static final class Wrong extends RuntimeException {
        Wrong(String text) {
            super(text);
        }
    }

    /** No answer: what was asked for was done, or was not. */
    static final class Lost extends RuntimeException {
    }

    interface Work {
        void run() throws Exception;
    }

    /** A node of ours that is there. */
    static final class Node {
        final int version;
        final String data;

        Node(int version, String data) {
            this.version = version;
            this.data = data;
        }
    }

    final String connect, root, own, scratch;
    final long pauseMs;
    final int sessionMs;
    final Map<String, Node> model = new ConcurrentSkipListMap<>();
    final AtomicInteger losses = new AtomicInteger();
    volatile boolean stopping;
    private final Map<String, Long> counts = new TreeMap<>();
    private final ThreadLocal<String> operation = ThreadLocal.withInitial(() -> "start");
    private long serial;

    Worker(String[] a) {
        connect = a[0];
        root = a[1];
        own = root + "/own";
        scratch = root + "/scratch";
        pauseMs = Long.parseLong(a[2]);
        sessionMs = Integer.parseInt(a[3]);
    }

    // ---- what the driver is told

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static String time() {
        return String.format("%.3f", System.nanoTime() / 1e9); // CLOCK_MONOTONIC, on Linux
    }

    void count(String op) {
        operation.set(op);
        synchronized (counts) {
            counts.merge(op, 1L, Long::sum);
        }
    }

    void lose(String op, String kind) {
        losses.incrementAndGet();
        say("lost " + time() + " " + op + " " + kind);
    }

    void fail(String text) {
        say("fault " + time() + " " + operation.get() + " " + text.replaceAll("\\s+", " "));
        Runtime.getRuntime().halt(1);
    }

    // ---- operations

    /** Returns when there is a connection again. */
    abstract void untilConnected() throws Exception;

    /** One request; Lost when there is no answer. */
    <T> T attempt(String op, Callable<T> call) throws Exception {
        count(op);
        if (!stopping)
            Thread.sleep(pauseMs);
        try {
            return call.call();
        } catch (KeeperException.ConnectionLossException | KeeperException.OperationTimeoutException e) {
            lose(op, e.code().name());
        }
        untilConnected();
        throw new Lost();
    }

    /** The answer to a request that may be made twice. */
    <T> T surely(String op, Callable<T> call) throws Exception {
        return write(op, () -> null, call);
    }

    /** The answer to one that must not be: without one, done looks whether it was made, and returns what
        stands for the answer, or null. */
    <T> T write(String op, Callable<T> done, Callable<T> call) throws Exception {
        for (long until = System.nanoTime() + PATIENCE_S * 1000000000L;;) {
            try {
                return attempt(op, call);
            } catch (Lost e) {
                T found = done.call();
                if (found != null)
                    return found;
                if (System.nanoTime() > until)
                    throw new Wrong("no answer in " + PATIENCE_S + " s");
            }
        }
    }

    /** The request has to be answered with this error. */
    void refused(KeeperException.Code code, String op, Callable<?> call) throws Exception {
        try {
            Object answer = surely(op, call);
            throw new Wrong(op + " is answered with " + answer + ", not " + code);
        } catch (KeeperException e) {
            same("the error", e.code(), code);
        }
    }

    void same(String what, Object is, Object should) {
        if (!Objects.equals(is, should))
            throw new Wrong(what + " is " + is + ", not " + should);
    }

    /** Waits for what events or the server's own time bring about. */
    void await(String what, Callable<Boolean> condition) throws Exception {
        for (long until = System.nanoTime() + PATIENCE_S * 1000000000L; !condition.call();) {
            if (System.nanoTime() > until)
                throw new Wrong(what + " did not come in " + PATIENCE_S + " s");
            Thread.sleep(20);
        }
    }

    synchronized String fresh() {
        return "value " + ++serial + " " + "x".repeat((int) (serial % 50));
    }

    /** The names of what the model has below a node. */
    java.util.List<String> names(String parent) {
        java.util.List<String> names = new java.util.ArrayList<>();
        for (String path : model.keySet())
            if (path.startsWith(parent + "/") && path.indexOf('/', parent.length() + 1) < 0)
                names.add(path.substring(parent.length() + 1));
        return names;
    }

    // ---- who is inside of a lock, in this process

    private final Map<String, int[]> inside = new TreeMap<>();

    /** At most limit at once; with across, however often the connection was lost meanwhile. */
    void visit(String what, int limit, boolean across, Work stay) throws Exception {
        int[] now;
        synchronized (inside) {
            now = inside.computeIfAbsent(what, w -> new int[2]);
            if (now[0]++ == 0)
                now[1] = losses.get();
            if (now[0] > limit && (across || losses.get() == now[1]))
                throw new Wrong("SAFETY VIOLATED: " + now[0] + " are inside of " + what);
        }
        stay.run();
        synchronized (inside) {
            now[0]--;
        }
    }

    int inside(String what) {
        synchronized (inside) {
            return inside.containsKey(what) ? inside.get(what)[0] : 0;
        }
    }

    // ---- the run

    /** Runs it; whatever it throws is a fault. */
    Thread guarded(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Throwable e) {
                StringBuilder text = new StringBuilder(e.toString());
                for (StackTraceElement at : e.getStackTrace())
                    if (text.length() < 1500)
                        text.append(" at ").append(at);
                fail(text.toString());
            }
        });
        thread.start();
        return thread;
    }

    Thread rounds(Work... chores) {
        return guarded(() -> {
            while (!stopping)
                for (Work chore : chores)
                    if (!stopping)
                        chore.run();
        });
    }

    private void pulse() throws InterruptedException {
        for (; !stopping; Thread.sleep(1000)) {
            long all = 0;
            synchronized (counts) {
                for (long n : counts.values())
                    all += n;
            }
            say("ops " + all);
        }
    }

    /** Until the input ends; then the threads end, each with its chore. */
    void run(Thread... threads) throws IOException, InterruptedException {
        Thread pulse = new Thread(() -> {
            try {
                pulse();
            } catch (InterruptedException e) {
                // the end
            }
        });
        pulse.start();
        say("ready");
        while (System.in.read() >= 0)
            ;
        stopping = true;
        pulse.interrupt();
        for (Thread t : threads)
            t.join();
    }

    void end() {
        counts.forEach((op, n) -> say("count " + op + " " + n));
        model.forEach((path, node) -> {
            StringBuilder hex = new StringBuilder();
            for (byte b : node.data.getBytes())
                hex.append(String.format("%02x", b));
            say("left " + path + " " + node.version + " " + (hex.length() > 0 ? hex : "-"));
        });
        say("done");
    }
}
