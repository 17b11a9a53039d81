import java.io.File;
import java.io.FileOutputStream;
import java.util.Random;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

/**
 * One holder of locks_test.py, with Curator's other locks. Each hold is two lines in the log,
 * "+ name kind token" and "- name kind token", each one write with O_APPEND; kind is R, W or S.
 *
 *   LocksHolder CONNECT PATH LOG NAME STOP SESSION_MS rw|semaphore|semaphore-mutex
 */
public final class LocksHolder {
    static final int LIMIT = 3;
    final CuratorFramework client;
    final String path, name;
    final FileOutputStream log;
    final Random random;

    LocksHolder(CuratorFramework client, String[] a) throws Exception {
        this.client = client;
        path = a[1];
        name = a[3];
        log = new FileOutputStream(a[2], true);
        random = new Random(name.hashCode());
    }

    void append(char sign, String kind, long token) throws Exception {
        log.write((sign + " " + name + " " + kind + " " + token + "\n").getBytes());
    }

    /** The czxid of the one node of ours among the children. */
    long token(String parent) throws Exception {
        long own = client.getZookeeperClient().getZooKeeper().getSessionId();
        for (String node : client.getChildren().forPath(parent)) {
            Stat stat = client.checkExists().forPath(parent + "/" + node);
            if (stat != null && stat.getEphemeralOwner() == own)
                return stat.getCzxid();
        }
        System.err.println(name + ": no node of ours in " + parent);
        System.exit(1);
        return 0;
    }

    void hold(String kind) throws Exception {
        long token = token(kind.equals("S") ? path + "/leases" : path);
        append('+', kind, token);
        Thread.sleep(random.nextInt(3));
        append('-', kind, token);
    }

    /* No downgrade: that of 5.4 lets a waiting writer in (CURATOR-621). */
    void readOrWrite(InterProcessReadWriteLock lock) throws Exception {
        boolean writes = random.nextInt(3) == 0;
        InterProcessMutex side = writes ? lock.writeLock() : lock.readLock();
        side.acquire();
        hold(writes ? "W" : "R");
        side.release();
    }

    /* One at a time: acquire(qty) queues anew for each lease, so that several of them stop each
       other, each with a part of what it wants. */
    void takeLease(InterProcessSemaphoreV2 semaphore) throws Exception {
        Lease lease = semaphore.acquire();
        hold("S");
        semaphore.returnLease(lease);
    }

    public static void main(String[] a) throws Exception {
        File stop = new File(a[4]);
        CuratorFramework client = CuratorFrameworkFactory.newClient(a[0], Integer.parseInt(a[5]),
                10000, new ExponentialBackoffRetry(50, 10));
        client.start();
        client.blockUntilConnected();
        LocksHolder holder = new LocksHolder(client, a);
        InterProcessReadWriteLock rw = new InterProcessReadWriteLock(client, holder.path);
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, holder.path, LIMIT);
        InterProcessSemaphoreMutex mutex = new InterProcessSemaphoreMutex(client, holder.path);
        while (!stop.exists()) {
            if (a[6].equals("rw")) {
                holder.readOrWrite(rw);
            } else if (a[6].equals("semaphore")) {
                holder.takeLease(semaphore);
            } else {
                mutex.acquire();
                holder.hold("S");
                mutex.release();
            }
        }
        client.close();
    }
}
