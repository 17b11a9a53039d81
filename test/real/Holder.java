import java.io.File;
import java.io.FileOutputStream;
import java.util.Collections;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

/**
 * Holders of Curator's, in one process: a thread for each "mutex PATH" or "latch PATH" of its
 * arguments, which log what they believe as holder.c does, until they have lost what they held.
 * A mutex has no loss of its own: what counts here is isOwnedByCurrentThread, and that the
 * connection's state is neither SUSPENDED nor LOST, as a careful user would ask.
 *
 *   Holder CONNECT LOG SESSION_MS CLOCK_OFFSET_NS (mutex|latch PATH)...
 */
public final class Holder extends Thread {
    private static FileOutputStream log;
    private static String connect;
    private static int sessionMs;
    private static long offset; // from this machine's nanoTime to CLOCK_BOOTTIME

    private final String kind, path;
    private final CuratorFramework client;
    private volatile ConnectionState state = ConnectionState.CONNECTED;
    private long token;

    private interface Belief {
        boolean holds() throws Exception;
    }

    private Holder(String kind, String path) {
        this.kind = kind;
        this.path = path;
        client = CuratorFrameworkFactory.newClient(connect, sessionMs, 10000,
                new ExponentialBackoffRetry(50, 10));
        client.getConnectionStateListenable().addListener((c, s) -> state = s);
        client.start();
    }

    private static long now() {
        return System.nanoTime() + offset;
    }

    private void note(long ns, String what, String detail) throws Exception {
        log.write((ns + " " + what + " curator-" + kind + " " + token + " " + detail + "\n")
                .getBytes());
    }

    /** The first in the queue is ours: its czxid. */
    private void granted() throws Exception {
        List<String> nodes = client.getChildren().forPath(path);
        Collections.sort(nodes, (a, b) -> a.substring(a.length() - 10)
                .compareTo(b.substring(b.length() - 10)));
        Stat stat = client.checkExists().forPath(path + "/" + nodes.get(0));
        if (stat.getEphemeralOwner() != client.getZookeeperClient().getZooKeeper().getSessionId())
            throw new IllegalStateException("the first in the queue is not ours");
        token = stat.getCzxid();
        note(now(), "grant", kind);
    }

    private void hold(Belief belief) throws Exception {
        for (long ns = now(); belief.holds(); ns = now()) {
            note(ns, "held", "-");
            Thread.sleep(5);
        }
        note(now(), "gone", state.name());
    }

    @Override
    public void run() {
        try {
            client.blockUntilConnected();
            if (kind.equals("latch")) {
                LeaderLatch latch = new LeaderLatch(client, path);
                latch.start();
                latch.await();
                granted();
                hold(latch::hasLeadership);
                latch.close();
            } else {
                InterProcessMutex mutex = new InterProcessMutex(client, path);
                mutex.acquire();
                granted();
                hold(() -> mutex.isOwnedByCurrentThread() && state != ConnectionState.SUSPENDED
                        && state != ConnectionState.LOST);
            }
        } catch (Exception e) {
            System.err.println("Holder: " + kind + ": " + e);
            System.exit(1);
        }
    }

    public static void main(String[] a) throws Exception {
        connect = a[0];
        log = new FileOutputStream(a[1], true);
        sessionMs = Integer.parseInt(a[2]);
        offset = Long.parseLong(a[3]);
        Thread[] holders = new Thread[(a.length - 4) / 2];
        for (int i = 0; i < holders.length; i++) {
            holders[i] = new Holder(a[4 + 2 * i], a[5 + 2 * i]);
            holders[i].start();
        }
        for (Thread holder : holders)
            holder.join();
        System.exit(0);
    }
}
