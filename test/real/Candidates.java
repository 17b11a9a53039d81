import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.framework.state.SessionConnectionStateErrorPolicy;
import org.apache.curator.framework.state.StandardConnectionStateErrorPolicy;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.retry.RetryOneTime;

/**
 * Curator's candidates and lock owners for timelines.py, each with a client of its own:
 *
 *   Candidates standard|session|impatient SESSION_MS (NAME CONNECT)...
 *
 * session: the error policy; impatient: the retry policy, which is to retry once and not for ever.
 * Reads "lead NAME", "leave NAME", "acquire NAME", "release NAME" and "who", which is answered
 * with the names of those who lead, or hold and have heard neither SUSPENDED nor LOST since.
 */
public final class Candidates {
    private static final class Party {
        final CuratorFramework client;
        final ExecutorService thread = Executors.newSingleThreadExecutor();
        final InterProcessMutex mutex;
        LeaderLatch latch;
        volatile boolean holds;

        Party(String policy, int sessionMs, String connect) {
            boolean session = policy.equals("session"), once = policy.equals("impatient");
            client = CuratorFrameworkFactory.builder().connectString(connect)
                    .sessionTimeoutMs(sessionMs).connectionTimeoutMs(1000)
                    .retryPolicy(once ? new RetryOneTime(50) : new RetryForever(50))
                    .connectionStateErrorPolicy(session ? new SessionConnectionStateErrorPolicy()
                            : new StandardConnectionStateErrorPolicy())
                    .build();
            client.getConnectionStateListenable().addListener((c, s) -> {
                if (s == ConnectionState.SUSPENDED || s == ConnectionState.LOST)
                    holds = false;
            });
            client.start();
            mutex = new InterProcessMutex(client, "/lock");
        }

        void lead(String name) throws Exception {
            client.blockUntilConnected();
            latch = new LeaderLatch(client, "/election", name);
            latch.start();
        }

        void run(boolean acquire) {
            thread.submit(() -> {
                try {
                    holds = false;
                    if (acquire)
                        mutex.acquire();
                    else
                        mutex.release();
                    holds = acquire;
                } catch (Exception e) {
                    System.err.println("Candidates: " + e);
                }
            });
        }

        boolean believes() {
            return holds || latch != null && latch.hasLeadership();
        }
    }

    public static void main(String[] a) throws Exception {
        Map<String, Party> parties = new LinkedHashMap<>();
        for (int i = 2; i < a.length; i += 2)
            parties.put(a[i], new Party(a[0], Integer.parseInt(a[1]), a[i + 1]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            Party party = words.length > 1 ? parties.get(words[1]) : null;
            StringBuilder answer = new StringBuilder("ok");
            switch (words[0]) {
            case "lead":
                party.lead(words[1]);
                break;
            case "leave":
                party.latch.close();
                break;
            case "acquire":
            case "release":
                party.run(words[0].equals("acquire"));
                break;
            default:
                for (Map.Entry<String, Party> p : parties.entrySet())
                    if (p.getValue().believes())
                        answer.append(" ").append(p.getKey());
            }
            System.out.println(answer);
        }
        System.exit(0);
    }
}
