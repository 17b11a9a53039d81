import java.io.IOException;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/** A standalone server that loads its data before it takes connections; see load_first.py. */
public final class LoadFirst extends NIOServerCnxnFactory {
    @Override
    public void startup(ZooKeeperServer server, boolean start)
            throws IOException, InterruptedException {
        server.startdata();
        super.startup(server, start);
    }
}
