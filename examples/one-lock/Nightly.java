import java.io.FileWriter;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** The job of this folder with Apache Curator: {@code java Nightly ledger}. */
public final class Nightly {
    public static void main(String[] args) throws Exception {
        String servers = System.getenv().getOrDefault("CLAVE_CONNECT", "localhost:2181");
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(servers,
                new ExponentialBackoffRetry(100, 5))) {
            client.start();
            InterProcessMutex mutex = new InterProcessMutex(client, "/jobs/nightly");
            mutex.acquire();
            try (FileWriter ledger = new FileWriter(args.length > 0 ? args[0] : "ledger", true)) {
                String node = mutex.getParticipantNodes().iterator().next();
                long token = client.checkExists().forPath(node).getCzxid();
                ledger.write("begin " + token + " java\n");
                ledger.flush();
                Thread.sleep(100);
                ledger.write("end " + token + " java\n");
            } finally {
                mutex.release();
            }
        }
    }
}
