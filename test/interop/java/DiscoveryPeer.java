import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.TreeSet;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceType;

/**
 * Curator's service discovery, told what to do by discovery_test.py: lines "register NAME ID PORT TYPE",
 * "unregister NAME ID", "list NAME"; each is answered with one line.
 */
public final class DiscoveryPeer {
    private static ServiceInstance<String> instance(String[] w) throws Exception {
        return ServiceInstance.<String>builder().name(w[1]).id(w[2]).address("127.0.0.1")
                .port(w.length > 3 ? Integer.parseInt(w[3]) : 1).payload("of Curator")
                .serviceType(w.length > 4 ? ServiceType.valueOf(w[4]) : ServiceType.DYNAMIC).build();
    }

    public static void main(String[] a) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(a[0], Integer.parseInt(a[2]), 10000,
                new ExponentialBackoffRetry(50, 10));
        client.start();
        client.blockUntilConnected();
        ServiceDiscovery<String> discovery = ServiceDiscoveryBuilder.builder(String.class).client(client)
                .basePath(a[1]).build();
        discovery.start();
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] w = line.split(" ");
            if (w[0].equals("register")) {
                discovery.registerService(instance(w));
                System.out.println("done");
            } else if (w[0].equals("unregister")) {
                discovery.unregisterService(instance(w));
                System.out.println("done");
            } else {
                TreeSet<String> found = new TreeSet<>();
                for (ServiceInstance<String> i : discovery.queryForInstances(w[1]))
                    found.add(i.getId() + "@" + i.getAddress() + ":" + i.getPort() + "/" + i.getServiceType() + "/"
                            + i.isEnabled() + "/" + i.getPayload());
                System.out.println(String.join("|", found));
            }
        }
        discovery.close();
        client.close();
    }
}
