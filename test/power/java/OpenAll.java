import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;

/**
 * Opens every data directory that is named on its input as ZooKeeper does when it starts, and says
 * what it has found there: "DIR ZXID DIGEST NODES SESSIONS", or "DIR refused WHY".
 */
public class OpenAll {
    private static String open(String name) {
        File dir = new File(name);
        DataTree tree = new DataTree();
        ConcurrentHashMap<Long, Integer> sessions = new ConcurrentHashMap<>();
        try {
            FileTxnSnapLog files = new FileTxnSnapLog(dir, dir);
            try {
                long zxid = files.restore(tree, sessions, (header, record, digest) -> { });
                return zxid + " " + Long.toUnsignedString(tree.getTreeDigest()) + " "
                    + tree.getNodeCount() + " " + sessions.size();
            } finally {
                files.close();
            }
        } catch (Exception e) {
            return "refused " + e;
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String name; (name = in.readLine()) != null; ) {
            System.out.println(name + " " + open(name).replace('\n', ' '));
        }
    }
}
