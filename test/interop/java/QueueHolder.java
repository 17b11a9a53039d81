import java.io.File;
import java.io.FileOutputStream;
import java.util.Collection;
import java.util.Random;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

/**
 * One holder in the queue of queue_test.py, with Curator's InterProcessMutex. Each hold is two
 * lines in the log: "+ name token" and "- name token", each one write with O_APPEND.
 */
public final class QueueHolder {
    private static void append(FileOutputStream log, String line) throws Exception {
        log.write(line.getBytes());
    }

    public static void main(String[] a) throws Exception {
        String connect = a[0], path = a[1], name = a[3];
        File stop = new File(a[4]);
        int sessionMs = Integer.parseInt(a[5]);
        FileOutputStream log = new FileOutputStream(a[2], true);
        CuratorFramework client = CuratorFrameworkFactory.newClient(connect, sessionMs, 10000,
                new ExponentialBackoffRetry(50, 10));
        client.start();
        client.blockUntilConnected();
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        Random random = new Random(name.hashCode());
        while (!stop.exists()) {
            mutex.acquire();
            Collection<String> nodes = mutex.getParticipantNodes();
            Stat stat = client.checkExists().forPath(nodes.iterator().next());
            long own = client.getZookeeperClient().getZooKeeper().getSessionId();
            if (stat == null || stat.getEphemeralOwner() != own)
                throw new IllegalStateException("the first in the queue is not ours");
            append(log, "+ " + name + " " + stat.getCzxid() + "\n");
            Thread.sleep(random.nextInt(3));
            append(log, "- " + name + " " + stat.getCzxid() + "\n");
            mutex.release();
        }
        client.close();
    }
}
