import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;

/**
 * Curator's numbers, persistent nodes and group members, told what to do by kept_test.py: each line is answered
 * with one line, and "count PATH N" with one for each of the N additions, before the next.
 */
public final class KeptPeer {
    private static final Map<String, AutoCloseable> kept = new HashMap<>();

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String count(CuratorFramework client, String path, int times) throws Exception {
        DistributedAtomicLong n = new DistributedAtomicLong(client, path, new ExponentialBackoffRetry(5, 25));
        for (int i = 0; i < times; i++) {
            System.out.println("begun");
            AtomicValue<Long> v = n.increment();
            System.out.println(v.succeeded() ? "counted " + v.preValue() + " " + v.postValue() : "busy");
        }
        return "done";
    }

    private static String answer(CuratorFramework client, String[] w) throws Exception {
        switch (w[0]) {
        case "count":
            return count(client, w[1], Integer.parseInt(w[2]));
        case "value":
            return "" + new DistributedAtomicLong(client, w[1], new ExponentialBackoffRetry(5, 25)).get().postValue();
        case "keep":
            PersistentNode node = new PersistentNode(client, CreateMode.EPHEMERAL, false, w[1], bytes(w[2]));
            node.start();
            kept.put(w[1], node);
            return node.waitForInitialCreate(10, TimeUnit.SECONDS) ? "done" : "late";
        case "set":
            ((PersistentNode) kept.get(w[1])).setData(bytes(w[2]));
            return "done";
        case "join":
            GroupMember member = new GroupMember(client, w[1], w[2], bytes(w[3]));
            member.start();
            kept.put(w[1], member);
            return "done";
        case "members":
            Map<String, String> found = new TreeMap<>();
            ((GroupMember) kept.get(w[1])).getCurrentMembers()
                    .forEach((id, data) -> found.put(id, new String(data, StandardCharsets.UTF_8)));
            return found.toString();
        default: // leave
            kept.remove(w[1]).close();
            return "done";
        }
    }

    public static void main(String[] a) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(a[0], Integer.parseInt(a[1]), 10000,
                new ExponentialBackoffRetry(50, 10));
        client.start();
        client.blockUntilConnected();
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;)
            System.out.println(answer(client, line.split(" ")));
        client.close();
    }
}
