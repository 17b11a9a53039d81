import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** How long after a LeaderLatch has closed the next one leads: microseconds, one a line. */
public final class CuratorLatch {
    private static CuratorFramework open(String connect) throws Exception {
        CuratorFramework c = CuratorFrameworkFactory.newClient(connect,
                new ExponentialBackoffRetry(50, 10));
        c.start();
        c.blockUntilConnected();
        return c;
    }

    public static void main(String[] a) throws Exception {
        CuratorFramework[] clients = {open(a[0]), open(a[0])};
        LeaderLatch old = new LeaderLatch(clients[0], "/bench/curator-latch");
        old.start();
        old.await();
        for (int i = 0; i < Integer.parseInt(a[1]); i++) {
            LeaderLatch next = new LeaderLatch(clients[(i + 1) % 2], "/bench/curator-latch");
            CountDownLatch leads = new CountDownLatch(1);
            long[] at = new long[1];
            next.addListener(new LeaderLatchListener() {
                @Override
                public void isLeader() {
                    at[0] = System.nanoTime();
                    leads.countDown();
                }

                @Override
                public void notLeader() {
                }
            });
            next.start();
            Thread.sleep(20); // its watch stands
            long begin = System.nanoTime();
            old.close();
            leads.await();
            System.out.println((at[0] - begin) / 1000);
            old = next;
        }
        System.exit(0);
    }
}
