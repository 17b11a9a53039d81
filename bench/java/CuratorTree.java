import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's CuratorCache: the measurements of clave_cache.c, `load` and `change`. */
public final class CuratorTree {
    static final int ROOTS = 2;
    static final int WARM_UP = 200;
    static final int PATIENCE_S = 120;

    static CuratorFramework client(String connect) throws Exception {
        CuratorFramework c = CuratorFrameworkFactory.newClient(connect, 60000, 30000,
                new ExponentialBackoffRetry(100, 3));
        c.start();
        if (!c.blockUntilConnected(PATIENCE_S, TimeUnit.SECONDS))
            fail("no connection");
        return c;
    }

    static void fail(String what) {
        System.err.println("CuratorTree: " + what);
        System.exit(1);
    }

    static void await(CountDownLatch latch, String what) throws Exception {
        if (!latch.await(PATIENCE_S, TimeUnit.SECONDS))
            fail("not in " + PATIENCE_S + " s: " + what);
    }

    static double residentMb() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status")))
            if (line.startsWith("VmRSS:"))
                return Long.parseLong(line.replaceAll("\\D", "")) / 1024.0;
        return -1;
    }

    static double heapMb() {
        System.gc();
        System.gc();
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed() / 1048576.0;
    }

    static double loadOnce(CuratorFramework c, List<CuratorCache> caches) throws Exception {
        CountDownLatch loaded = new CountDownLatch(ROOTS);
        long begin = System.nanoTime();
        for (int i = 0; i < ROOTS; i++) {
            CuratorCache cache = CuratorCache.build(c, "/bench/" + i);
            cache.listenable().addListener(CuratorCacheListener.builder()
                    .forInitialized(loaded::countDown).build());
            cache.start();
            caches.add(cache);
        }
        await(loaded, "load");
        return (System.nanoTime() - begin) / 1e6;
    }

    static void load(String connect, int times) throws Exception {
        CuratorFramework c = client(connect);
        double heap = heapMb();
        double resident = residentMb();
        double[] ms = new double[times];
        int nodes = 0;
        for (int t = 0; t < times; t++) {
            List<CuratorCache> caches = new ArrayList<>();
            ms[t] = loadOnce(c, caches);
            if (t == 0) {
                resident = residentMb() - resident;
                heap = heapMb() - heap;
                for (CuratorCache cache : caches)
                    nodes += cache.size();
            }
            for (CuratorCache cache : caches)
                cache.close();
        }
        Arrays.sort(ms, 1, times);
        System.out.printf("{\"nodes\": %d, \"first_ms\": %.1f, \"again_ms\": %.1f, "
                + "\"rss_mb\": %.1f, \"heap_mb\": %.1f}%n", nodes, ms[0],
                times > 1 ? ms[1 + (times - 1) / 2] : ms[0], resident, heap);
        System.exit(0);
    }

    /** What the writes that are counted took until each cache had told them. */
    static final class Seen {
        final long[] ns;
        final AtomicInteger n = new AtomicInteger();
        volatile boolean counts;
        volatile CountDownLatch all;

        Seen(int max) {
            ns = new long[max];
        }

        void changed(byte[] data) {
            long took = data.length == Long.BYTES
                    ? System.nanoTime() - ByteBuffer.wrap(data).getLong() : -1;
            if (took >= 0 && counts)
                ns[n.getAndIncrement()] = took;
            if (took >= 0)
                all.countDown();
        }
    }

    static void change(String connect, int sessions, int writes) throws Exception {
        Seen seen = new Seen(sessions * writes);
        CountDownLatch loaded = new CountDownLatch(sessions);
        double resident = residentMb();
        for (int i = 0; i < sessions; i++) {
            CuratorCache cache = CuratorCache.build(client(connect), "/bench/small");
            cache.listenable().addListener(CuratorCacheListener.builder()
                    .forChanges((was, now) -> seen.changed(now.getData()))
                    .forInitialized(loaded::countDown).build());
            cache.start();
        }
        await(loaded, "load");
        CuratorFramework writer = client(connect);
        for (int i = -WARM_UP; i < writes; i++) {
            seen.all = new CountDownLatch(sessions);
            seen.counts = i >= 0;
            byte[] now = ByteBuffer.allocate(Long.BYTES).putLong(System.nanoTime()).array();
            writer.setData().forPath("/bench/small/000003", now);
            await(seen.all, "a change");
        }
        Arrays.sort(seen.ns);
        System.out.printf("{\"p50_us\": %.1f, \"p99_us\": %.1f, \"each_kb\": %.1f}%n",
                seen.ns[seen.ns.length / 2] / 1e3, seen.ns[seen.ns.length * 99 / 100] / 1e3,
                (residentMb() - resident) * 1024 / sessions);
        System.exit(0);
    }

    public static void main(String[] a) throws Exception {
        if (a[0].equals("load"))
            load(a[1], Integer.parseInt(a[2]));
        else
            change(a[1], Integer.parseInt(a[2]), Integer.parseInt(a[3]));
    }
}
