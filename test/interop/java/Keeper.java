import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.data.Stat;

/**
 * A lock of Curator's for takeover_test.py: takes it, and answers each line "check" with the
 * session, the token, and the connection states since the last one; "release" ends it.
 */
public final class Keeper {
    public static void main(String[] a) throws Exception {
        ConcurrentLinkedQueue<String> states = new ConcurrentLinkedQueue<>();
        CuratorFramework client = CuratorFrameworkFactory.newClient(a[0], Integer.parseInt(a[2]),
                10000, new RetryForever(100));
        client.getConnectionStateListenable().addListener((c, state) -> states.add(state.name()));
        client.start();
        client.blockUntilConnected();
        InterProcessMutex mutex = new InterProcessMutex(client, a[1]);
        mutex.acquire();
        String node = mutex.getParticipantNodes().iterator().next();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = "check"; line != null && line.equals("check"); line = in.readLine()) {
            Stat stat = client.checkExists().forPath(node);
            long session = client.getZookeeperClient().getZooKeeper().getSessionId();
            boolean ours = stat != null && stat.getEphemeralOwner() == session
                    && mutex.isOwnedByCurrentThread();
            StringBuilder seen = new StringBuilder();
            for (String state; (state = states.poll()) != null;)
                seen.append(' ').append(state);
            System.out.println((ours ? "held " : "lost ") + session + " "
                    + (stat == null ? 0 : stat.getCzxid()) + seen);
        }
        mutex.release();
        client.close();
    }
}
