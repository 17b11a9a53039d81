import java.io.File;
import java.io.FileOutputStream;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

/**
 * One candidate of elections_test.py, with Curator's LeaderLatch or LeaderSelector. Each term is
 * two lines in the log: "+ name token" and "- name token", each one write with O_APPEND.
 */
public final class ElectionHolder {
    private final CuratorFramework client;
    private final String path, name;
    private final File stop;
    private final FileOutputStream log;
    private final Random random;

    private ElectionHolder(String[] a) throws Exception {
        path = a[1];
        name = a[3];
        stop = new File(a[4]);
        log = new FileOutputStream(a[2], true);
        random = new Random(name.hashCode());
        client = CuratorFrameworkFactory.newClient(a[0], Integer.parseInt(a[5]), 10000,
                new ExponentialBackoffRetry(50, 10));
        client.start();
        client.blockUntilConnected();
    }

    private void append(String line) throws Exception {
        log.write(line.getBytes());
    }

    /** The first in the queue has to be ours. */
    private void lead() throws Exception {
        List<String> nodes = client.getChildren().forPath(path);
        nodes.sort(Comparator.comparing(n -> n.substring(n.length() - 10)));
        Stat stat = client.checkExists().forPath(path + "/" + nodes.get(0));
        long own = client.getZookeeperClient().getZooKeeper().getSessionId();
        if (stat == null || stat.getEphemeralOwner() != own) {
            System.err.println(name + ": the first in the queue is not ours");
            System.exit(1);
        }
        append("+ " + name + " " + stat.getCzxid() + "\n");
        Thread.sleep(random.nextInt(3));
        append("- " + name + " " + stat.getCzxid() + "\n");
    }

    private void latch() throws Exception {
        while (!stop.exists()) {
            LeaderLatch latch = new LeaderLatch(client, path, name);
            latch.start();
            latch.await();
            lead();
            latch.close();
        }
    }

    private void selector() throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        LeaderSelector selector = new LeaderSelector(client, path,
                new LeaderSelectorListenerAdapter() {
                    @Override
                    public void takeLeadership(CuratorFramework c) throws Exception {
                        lead();
                        if (stop.exists())
                            done.countDown();
                    }
                });
        selector.setId(name);
        selector.autoRequeue();
        selector.start();
        done.await();
        selector.close();
    }

    public static void main(String[] a) throws Exception {
        ElectionHolder holder = new ElectionHolder(a);
        if (System.getProperty("what").equals("latch"))
            holder.latch();
        else
            holder.selector();
        holder.client.close();
        System.exit(0);
    }
}
