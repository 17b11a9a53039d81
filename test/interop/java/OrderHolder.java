import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's part of deadlock_test.py: takes one lock and says so, and at a line of its input waits
 * for another.
 */
public final class OrderHolder {
    public static void main(String[] a) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(a[0], 10000, 10000,
                new ExponentialBackoffRetry(50, 10));
        client.start();
        client.blockUntilConnected();
        InterProcessMutex first = new InterProcessMutex(client, a[1]);
        InterProcessMutex second = new InterProcessMutex(client, a[2]);
        first.acquire();
        System.out.println("held");
        System.in.read();
        System.out.println(second.acquire(60, TimeUnit.SECONDS) ? "got" : "late");
        client.close();
    }
}
