import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's InterProcessMutex: the measurements of clave_mutex.c and clave_sessions.c. */
public final class CuratorLock {
    static CuratorFramework client(String connect) throws Exception {
        CuratorFramework c = CuratorFrameworkFactory.newClient(connect, 10000, 10000,
                new ExponentialBackoffRetry(100, 3));
        c.start();
        c.blockUntilConnected();
        return c;
    }

    static void report(long[] ns) {
        Arrays.sort(ns);
        System.out.printf("{\"p50_us\": %.1f, \"p99_us\": %.1f}%n", ns[ns.length / 2] / 1e3,
                ns[ns.length * 99 / 100] / 1e3);
    }

    static void cycles(String connect, int cycles, int pauseUs) throws Exception {
        CuratorFramework c = client(connect);
        InterProcessMutex m = new InterProcessMutex(c, "/bench/curator");
        long[] ns = new long[cycles];
        for (int i = -Math.max(cycles, 2000); i < cycles; i++) { // as many again to warm the JVM up
            long start = System.nanoTime();
            m.acquire();
            m.release();
            if (i >= 0)
                ns[i] = System.nanoTime() - start;
            if (pauseUs > 0 && i > -50)
                TimeUnit.MICROSECONDS.sleep(pauseUs);
        }
        report(ns);
        c.close();
    }

    static void handoff(String connect, int n, int cycles) throws Exception {
        long[] ns = new long[cycles];
        AtomicInteger done = new AtomicInteger(-cycles); // as many again to warm up
        AtomicLong released = new AtomicLong();
        CountDownLatch end = new CountDownLatch(1);
        for (int t = 0; t < n; t++) {
            InterProcessMutex m = new InterProcessMutex(client(connect), "/bench/curator-handoff");
            Thread thread = new Thread(() -> {
                try {
                    while (end.getCount() > 0) {
                        m.acquire();
                        long at = System.nanoTime();
                        long from = released.get();
                        int k = from == 0 ? -1 : done.getAndIncrement();
                        if (k >= 0 && k < cycles)
                            ns[k] = at - from;
                        if (k == cycles - 1)
                            end.countDown();
                        released.set(System.nanoTime());
                        m.release();
                    }
                } catch (Exception e) {
                    if (end.getCount() > 0) {
                        e.printStackTrace();
                        System.exit(1);
                    }
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        end.await();
        report(ns);
        System.exit(0);
    }

    static long status(String field) throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status")))
            if (line.startsWith(field))
                return Long.parseLong(line.substring(field.length()).replaceAll("\\D", ""));
        return -1;
    }

    static void sessions(String connect, int n) throws Exception {
        long one = 0;
        for (int i = 0; i < n; i++) {
            new InterProcessMutex(client(connect), "/bench/curator-sessions/" + i).acquire();
            if (i == 0)
                one = status("VmRSS:");
        }
        System.out.printf("{\"one_kb\": %d, \"each_kb\": %.1f, \"threads\": %d}%n", one,
                (status("VmRSS:") - one) / (n - 1.0), status("Threads:") - 1);
        System.exit(0);
    }

    public static void main(String[] a) throws Exception {
        if (a[0].equals("cycle"))
            cycles(a[1], Integer.parseInt(a[2]), Integer.parseInt(a[3]));
        else if (a[0].equals("sessions"))
            sessions(a[1], Integer.parseInt(a[2]));
        else
            handoff(a[1], Integer.parseInt(a[2]), Integer.parseInt(a[3]));
    }
}
