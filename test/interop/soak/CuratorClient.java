import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.RetryPolicy;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.data.Stat;

/**
 * Curator 5 at its usual work: nodes and transactions, locks of three kinds and a latch for which
 * several contend, caches, barriers, counters, persistent nodes and watches, sessions.
 *
 *   CuratorClient CONNECT ROOT PAUSE_MS SESSION_MS        (see worker.py)
 */
@SuppressWarnings("deprecation") // the caches of before 5.0 are what many programs use
public final class CuratorClient extends Worker {
    static final int KEYS = 6, LEASES = 2, CONTENDERS = 3;
    final Random dice = new Random();
    final ExecutorService pool = Executors.newCachedThreadPool();
    final List<CuratorFramework> clients = Collections.synchronizedList(new ArrayList<>());
    final List<Long> sessions = Collections.synchronizedList(new ArrayList<>());
    final CuratorFramework plain; // tells of each lost connection: what it was asked is asked again here
    final CuratorFramework main, other; // try again by themselves
    final String recipes = root + "/recipes";
    NodeCache node;
    PathChildrenCache children;
    CuratorCache tree;

    CuratorClient(String[] a) throws Exception {
        super(a);
        plain = stay(new RetryNTimes(0, 1));
        main = stay(new RetryForever(100));
        other = stay(new RetryForever(100));
        for (String path : new String[] {root, own, own + "/multi", own + "/cached", scratch, recipes})
            make(path, "");
        caches();
    }

    // ---- sessions

    CuratorFramework open(RetryPolicy retry, int timeoutMs) throws Exception {
        count("session");
        CuratorFramework c = CuratorFrameworkFactory.builder().connectString(connect).retryPolicy(retry)
                .sessionTimeoutMs(timeoutMs).connectionTimeoutMs(15000).build();
        c.getConnectionStateListenable().addListener((client, state) -> {
            if (state == ConnectionState.SUSPENDED)
                lose("connection", "SUSPENDED");
            if (state == ConnectionState.LOST)
                fail("a session is lost");
        });
        c.start();
        if (!c.blockUntilConnected(PATIENCE_S, TimeUnit.SECONDS))
            throw new Wrong("no connection in " + PATIENCE_S + " s");
        return c;
    }

    long session(CuratorFramework c) throws Exception {
        return c.getZookeeperClient().getZooKeeper().getSessionId();
    }

    CuratorFramework stay(RetryPolicy retry) throws Exception {
        CuratorFramework c = open(retry, sessionMs);
        clients.add(c);
        sessions.add(session(c));
        return c;
    }

    void untilConnected() throws Exception {
        plain.blockUntilConnected(PATIENCE_S, TimeUnit.SECONDS);
    }

    // ---- nodes

    Stat stat(String path) throws Exception {
        return surely("exists", () -> plain.checkExists().forPath(path));
    }

    String ifThere(String path) throws Exception {
        return stat(path) == null ? null : path;
    }

    void make(String path, String data) throws Exception {
        same("what was created", write("create", () -> ifThere(path), () -> plain.create().forPath(path,
                data.getBytes())), path);
        if (path.startsWith(own))
            model.put(path, new Node(0, data));
    }

    void change(String path) throws Exception {
        int version = model.get(path).version;
        String data = fresh();
        Stat stat = write("set", () -> {
            Stat now = stat(path);
            return now.getVersion() == version + 1 ? now : null;
        }, () -> plain.setData().withVersion(version).forPath(path, data.getBytes()));
        same("the version", stat.getVersion(), version + 1);
        model.put(path, new Node(version + 1, data));
    }

    void remove(String path, int version) throws Exception {
        write("delete", () -> stat(path) == null ? true : null, () -> {
            plain.delete().withVersion(version).forPath(path);
            return true;
        });
        model.remove(path);
    }

    void clear(String path) throws Exception {
        count("clear");
        main.delete().quietly().deletingChildrenIfNeeded().forPath(path);
    }

    void nodes() throws Exception {
        String path = own + "/k" + dice.nextInt(KEYS);
        if (!model.containsKey(path)) {
            refused(Code.NONODE, "get", () -> plain.getData().forPath(path));
            make(path, fresh());
        }
        refused(Code.NODEEXISTS, "create", () -> plain.create().forPath(path));
        for (int i = 0; i < 3; i++) {
            change(path);
            Stat stat = new Stat();
            byte[] data = surely("get", () -> plain.getData().storingStatIn(stat).forPath(path));
            same(path, new String(data), model.get(path).data);
            same("its version", stat.getVersion(), model.get(path).version);
        }
        int version = model.get(path).version;
        refused(Code.BADVERSION, "set", () -> plain.setData().withVersion(version + 1).forPath(path));
        if (dice.nextBoolean())
            remove(path, version);
        List<String> names = surely("children", () -> other.getChildren().forPath(own));
        Collections.sort(names);
        same("children", names, names(own));
    }

    void transactions() throws Exception {
        String path = own + "/multi", child = path + "/c", data = fresh();
        int version = model.get(path).version;
        refused(Code.BADVERSION, "transaction", () -> plain.transaction().forOperations(
                plain.transactionOp().create().forPath(child),
                plain.transactionOp().check().withVersion(version + 1).forPath(path)));
        same("what was rolled back", stat(child), null);
        write("transaction", () -> stat(path).getVersion() == version + 1 ? true : null, () -> {
            List<CuratorTransactionResult> r = plain.transaction().forOperations(
                    plain.transactionOp().check().withVersion(version).forPath(path),
                    plain.transactionOp().create().forPath(child),
                    plain.transactionOp().setData().forPath(path, data.getBytes()),
                    plain.transactionOp().delete().forPath(child));
            same("the set", r.get(2).getResultStat().getVersion(), version + 1);
            return true;
        });
        model.put(path, new Node(version + 1, data));
    }

    void sessions() throws Exception {
        String path = scratch + "/ephemeral";
        await("the end of the last session", () -> stat(path) == null);
        CuratorFramework c = open(new RetryForever(100), sessionMs / 2);
        count("create");
        c.create().orSetData().withMode(CreateMode.EPHEMERAL).forPath(path, "mine".getBytes());
        same("its owner", stat(path).getEphemeralOwner(), session(c));
        c.close();
        await("the end of its node", () -> stat(path) == null);
    }

    // ---- caches and watches

    void caches() throws Exception {
        String path = own + "/cached";
        node = new NodeCache(other, path);
        node.start(true);
        children = new PathChildrenCache(other, path, true);
        children.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        tree = CuratorCache.build(main, path);
        tree.start();
    }

    static String show(ChildData d) {
        return d == null ? null : d.getStat().getVersion() + " " + new String(d.getData());
    }

    String show(String path) {
        Node n = model.get(path);
        return n == null ? null : n.version + " " + n.data;
    }

    void cachesFollow() throws Exception {
        String path = own + "/cached", child = path + "/" + dice.nextInt(4);
        if (!model.containsKey(child))
            make(child, fresh());
        else if (dice.nextBoolean())
            change(child);
        else
            remove(child, model.get(child).version);
        change(path);
        await("the NodeCache", () -> show(path).equals(show(node.getCurrentData())));
        await("the PathChildrenCache", () -> Objects.equals(show(child),
                show(children.getCurrentData(child))));
        await("the CuratorCache", () -> Objects.equals(show(child),
                show(tree.get(child).orElse(null))) && show(path).equals(show(tree.get(path).orElse(null))));
        same("the PathChildrenCache", children.getCurrentData().size(), names(path).size());
        same("the CuratorCache", (int) tree.stream().count(), names(path).size() + 1);
    }

    void persistentWatches() throws Exception {
        String path = scratch + "/followed";
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        Watcher watcher = (WatchedEvent e) -> {
            if (e.getType() != Watcher.Event.EventType.None)
                events.add(e.getType() + " " + e.getPath());
        };
        clear(path);
        int before = losses.get();
        count("addWatch");
        other.watchers().add().withMode(AddWatchMode.PERSISTENT_RECURSIVE).usingWatcher(watcher)
                .forPath(path);
        make(path, "");
        make(path + "/c", "");
        surely("set", () -> plain.setData().forPath(path));
        remove(path + "/c", -1);
        remove(path, -1);
        String[] due = {"NodeCreated " + path, "NodeCreated " + path + "/c", "NodeDataChanged " + path,
            "NodeDeleted " + path + "/c", "NodeDeleted " + path};
        for (String e : due)
            if (losses.get() == before)
                sameUnlessLost(before, events.poll(PATIENCE_S, TimeUnit.SECONDS), e);
        count("removeWatches");
        other.watchers().remove(watcher).quietly().forPath(path);
    }

    void sameUnlessLost(int before, String event, String due) {
        if (losses.get() == before)
            same("the event", event, due);
    }

    // ---- recipes that one thread can try

    /** Whether it was done without a loss of a connection: its answers are exact then. */
    boolean undisturbed(String what, Callable<?> recipe) throws Exception {
        int before = losses.get();
        count(what);
        try {
            recipe.call();
        } catch (Exception e) {
            Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
            if (!(cause instanceof KeeperException.ConnectionLossException))
                throw e;
            lose(what, "CONNECTIONLOSS");
            untilConnected();
        }
        return losses.get() == before;
    }

    void barrier() throws Exception {
        DistributedBarrier here = new DistributedBarrier(main, recipes + "/barrier");
        DistributedBarrier there = new DistributedBarrier(other, recipes + "/barrier");
        List<Boolean> passed = new ArrayList<>();
        if (undisturbed("DistributedBarrier", () -> {
            here.setBarrier();
            passed.add(there.waitOnBarrier(1, TimeUnit.MILLISECONDS));
            Future<Boolean> waiter = pool.submit(() -> there.waitOnBarrier(PATIENCE_S, TimeUnit.SECONDS));
            here.removeBarrier();
            return passed.add(waiter.get());
        }))
            same("who passed", passed, Arrays.asList(false, true));
    }

    /** With its connection lost in between Curator counts twice what it does not know of. */
    void counters() throws Exception {
        DistributedAtomicLong number = new DistributedAtomicLong(main, recipes + "/long",
                new RetryForever(20));
        List<Long> values = new ArrayList<>();
        if (undisturbed("DistributedAtomicLong", () -> {
            for (long delta : new long[] {1, 5}) {
                AtomicValue<Long> v = number.add(delta);
                values.add(v.succeeded() ? v.postValue() : null);
            }
            return null;
        }))
            same("the value", values.get(1), values.get(0) + 5);
        SharedCount count = new SharedCount(main, recipes + "/count", 0);
        SharedCount seen = new SharedCount(other, recipes + "/count", 0);
        count("SharedCount");
        count.start();
        seen.start();
        int next = dice.nextInt();
        count.setCount(next);
        await("the SharedCount", () -> seen.getCount() == next);
        count.close();
        seen.close();
    }

    void persistentNodes() throws Exception {
        String path = recipes + "/persistent";
        count("PersistentNode");
        try (PersistentNode node = new PersistentNode(main, CreateMode.EPHEMERAL, false, path,
                "here".getBytes())) {
            node.start();
            same("it is there", node.waitForInitialCreate(PATIENCE_S, TimeUnit.SECONDS), true);
            same("its owner", stat(node.getActualPath()).getEphemeralOwner(), session(main));
        }
        await("the end of the PersistentNode", () -> stat(path) == null);
        count("GroupMember");
        GroupMember one = new GroupMember(main, recipes + "/group", "one");
        GroupMember two = new GroupMember(other, recipes + "/group", "two");
        one.start();
        two.start();
        await("the group", () -> new TreeSet<>(one.getCurrentMembers().keySet())
                .equals(new TreeSet<>(Arrays.asList("one", "two"))));
        two.close();
        await("the group without one", () -> one.getCurrentMembers().size() == 1);
        one.close();
    }

    // ---- contenders

    void mutex(CuratorFramework c) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(c, recipes + "/mutex");
        count("InterProcessMutex");
        mutex.acquire();
        visit("InterProcessMutex", 1, true, () -> stay(c));
        mutex.release();
    }

    void readOrWrite(CuratorFramework c) throws Exception {
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(c, recipes + "/rw");
        count("InterProcessReadWriteLock");
        lock.writeLock().acquire();
        visit("write lock", 1, true, () -> stay(c));
        lock.writeLock().release();
        lock.readLock().acquire();
        same("writers inside", inside("write lock"), 0);
        stay(c);
        lock.readLock().release();
    }

    void semaphore(CuratorFramework c) throws Exception {
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(c, recipes + "/semaphore", LEASES);
        count("InterProcessSemaphoreV2");
        Lease lease = semaphore.acquire();
        visit("InterProcessSemaphoreV2", LEASES, true, () -> stay(c));
        semaphore.returnLease(lease);
    }

    /** A latch lets go when its connection is lost. */
    void latch(CuratorFramework c) throws Exception {
        count("LeaderLatch");
        try (LeaderLatch latch = new LeaderLatch(c, recipes + "/latch")) {
            latch.start();
            latch.await();
            visit("LeaderLatch", 1, false, () -> stay(c));
        }
    }

    void stay(CuratorFramework c) throws Exception {
        surely("exists", () -> c.checkExists().forPath(recipes));
    }

    // ---- the run

    void finish() throws Exception {
        untilConnected();
        for (int i = 0; i < clients.size(); i++)
            same("the session", session(clients.get(i)), sessions.get(i));
        node.close();
        children.close();
        tree.close();
        for (CuratorFramework c : clients)
            c.close();
        end();
    }

    public static void main(String[] a) throws Exception {
        CuratorClient w = new CuratorClient(a);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < CONTENDERS; i++) {
            CuratorFramework c = w.stay(new RetryForever(100));
            threads.add(w.rounds(() -> w.mutex(c), () -> w.semaphore(c), () -> w.readOrWrite(c),
                    () -> w.latch(c)));
        }
        threads.add(w.rounds(w::nodes, w::cachesFollow, w::transactions, w::nodes, w::sessions,
                w::persistentWatches));
        threads.add(w.rounds(w::barrier, w::counters, w::persistentNodes));
        w.run(threads.toArray(new Thread[0]));
        w.guarded(w::finish).join();
        System.exit(0);
    }
}
