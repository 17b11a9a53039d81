import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.details.ServiceCacheListener;

/** Curator's x-discovery: the measurements of clave_services.c. */
public final class CuratorServices {
    static final int WARM_UP = 200;

    static ServiceDiscovery<String> discovery(CuratorFramework c) throws Exception {
        ServiceDiscovery<String> d = ServiceDiscoveryBuilder.builder(String.class).client(c).basePath("/services").build();
        d.start();
        return d;
    }

    static ServiceInstance<String> instance(String id, long registered) throws Exception {
        return ServiceInstance.<String>builder().name("web").id(id).address("10.0.0.1").port(80).payload("of the bench")
                .registrationTimeUTC(registered).build();
    }

    static void register(String connect, int n) throws Exception {
        CuratorFramework c = CuratorTree.client(connect);
        ServiceDiscovery<String> d = discovery(c);
        double resident = CuratorTree.residentMb();
        long begin = System.nanoTime();
        for (int i = 0; i < n; i++)
            d.registerService(instance(String.format("instance-%06d", i), 1));
        double ms = (System.nanoTime() - begin) / 1e6;
        double now = CuratorTree.residentMb();
        System.out.printf("{\"ms\": %.1f, \"rss_mb\": %.2f, \"all_mb\": %.1f}%n", ms, now - resident, now);
        d.close();
        c.close();
        System.exit(0);
    }

    /** Of the change that is under way. */
    static volatile long wanted, sent;
    static volatile boolean counts;
    static volatile CountDownLatch all;

    static void follow(CuratorFramework c, long[] ns, AtomicInteger n) throws Exception {
        ServiceCache<String> cache = discovery(c).serviceCacheBuilder().name("web").build();
        long[] told = {0};
        cache.addListener(new ServiceCacheListener() {
            @Override
            public void cacheChanged() {
                for (ServiceInstance<String> i : cache.getInstances())
                    if (i.getRegistrationTimeUTC() == wanted && told[0] != wanted) {
                        told[0] = wanted;
                        if (counts)
                            ns[n.getAndIncrement()] = System.nanoTime() - sent;
                        all.countDown();
                    }
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {
            }
        });
        cache.start();
    }

    static void change(String connect, int sessions, int writes) throws Exception {
        long[] ns = new long[sessions * writes];
        AtomicInteger n = new AtomicInteger();
        ServiceDiscovery<String> writer = discovery(CuratorTree.client(connect));
        writer.registerService(instance("changes", 1));
        List<CuratorFramework> clients = new ArrayList<>();
        for (int i = 0; i < sessions; i++) {
            clients.add(CuratorTree.client(connect));
            follow(clients.get(i), ns, n);
        }
        for (int i = -WARM_UP; i < writes; i++) {
            all = new CountDownLatch(sessions);
            counts = i >= 0;
            ServiceInstance<String> next = instance("changes", 1000 + i);
            wanted = 1000 + i;
            sent = System.nanoTime();
            writer.updateService(next);
            CuratorTree.await(all, "a change is told");
        }
        int count = n.get();
        Arrays.sort(ns, 0, count);
        System.out.printf("{\"p50_us\": %.1f, \"p99_us\": %.1f}%n", ns[count / 2] / 1e3, ns[count * 99 / 100] / 1e3);
        System.exit(0);
    }

    public static void main(String[] a) throws Exception {
        if (a[0].equals("register"))
            register(a[1], Integer.parseInt(a[2]));
        else
            change(a[1], Integer.parseInt(a[2]), Integer.parseInt(a[3]));
    }
}
