import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Stat;

/**
 * ZooKeeper's Java client at its usual work: nodes of every kind, transactions, watches of every kind,
 * access lists, many requests at once, sessions that are closed and that expire.
 *
 *   JavaClient CONNECT ROOT PAUSE_MS SESSION_MS        (see worker.py)
 */
public final class JavaClient extends Worker {
    static final int KEYS = 8;
    static final long REAPED_S = 150; // the server looks for them once a minute
    final Random dice = new Random();
    final Session main, other;
    final Map<String, Long> doomed = new LinkedHashMap<>(); // nodes that the server is to remove
    long sequential;

    /** A session, its loss a fault. */
    final class Session implements Watcher {
        final String name;
        final ZooKeeper zk;
        final long id;
        boolean connected;
        long since; // when it was connected
        boolean expires; // its loss is none
        boolean dropped; // nor is that of its connection

        Session(String name, int timeoutMs) throws Exception {
            this.name = name;
            count("session");
            zk = new ZooKeeper(connect, timeoutMs, this);
            untilConnected();
            id = zk.getSessionId();
        }

        public synchronized void process(WatchedEvent e) {
            if (e.getState() == Event.KeeperState.Expired && !expires)
                fail("the session of " + name + " is lost");
            if (connected && !dropped && e.getState() == Event.KeeperState.Disconnected)
                lose("connection", "Disconnected");
            if (!connected)
                since = System.nanoTime();
            connected = e.getState() == Event.KeeperState.SyncConnected;
            notifyAll();
        }

        synchronized void untilConnected() throws InterruptedException {
            for (long until = System.nanoTime() + PATIENCE_S * 1000000000L; !connected; wait(100))
                if (System.nanoTime() > until)
                    throw new Wrong("no connection in " + PATIENCE_S + " s");
        }

        synchronized boolean connectedFor(long seconds) {
            return connected && System.nanoTime() - since > seconds * 1000000000L;
        }
    }

    JavaClient(String[] a) throws Exception {
        super(a);
        main = new Session("main", sessionMs);
        other = new Session("other", sessionMs);
        for (String path : new String[] {root, own, scratch, own + "/seq", own + "/multi"})
            make(main, path, "", CreateMode.PERSISTENT);
    }

    void untilConnected() throws InterruptedException {
        main.untilConnected();
        other.untilConnected();
    }

    // ---- nodes

    Stat stat(String path) throws Exception {
        return surely("exists", () -> main.zk.exists(path, false));
    }

    String ifThere(String path) throws Exception {
        return stat(path) == null ? null : path;
    }

    void make(Session s, String path, String data, CreateMode mode) throws Exception {
        same("what was created", write("create", () -> ifThere(path), () -> s.zk.create(path,
                data.getBytes(), Ids.OPEN_ACL_UNSAFE, mode)), path);
        if (path.startsWith(own))
            model.put(path, new Node(0, data));
    }

    void change(String path) throws Exception {
        int version = model.get(path).version;
        String data = fresh();
        Stat stat = write("set", () -> {
            Stat now = stat(path);
            return now.getVersion() == version + 1 ? now : null;
        }, () -> main.zk.setData(path, data.getBytes(), version));
        same("the version", stat.getVersion(), version + 1);
        model.put(path, new Node(version + 1, data));
    }

    void remove(String path, int version) throws Exception {
        write("delete", () -> stat(path) == null ? true : null, () -> {
            main.zk.delete(path, version);
            return true;
        });
        model.remove(path);
    }

    void clear(String path) throws Exception {
        if (stat(path) != null)
            remove(path, -1);
    }

    /** One that is empty the server may sweep first. */
    void clearContainer(String path) throws Exception {
        write("delete", () -> stat(path) == null ? true : null, () -> {
            try {
                main.zk.delete(path, -1);
            } catch (KeeperException.NoNodeException e) {
                return true;
            }
            return true;
        });
        model.remove(path);
    }

    void check(String path) throws Exception {
        Stat stat = new Stat();
        byte[] data = surely("get", () -> main.zk.getData(path, false, stat));
        same(path, new String(data), model.get(path).data);
        same("its version", stat.getVersion(), model.get(path).version);
    }

    void nodes() throws Exception {
        String path = own + "/k" + dice.nextInt(KEYS);
        if (!model.containsKey(path)) {
            refused(Code.NONODE, "get", () -> main.zk.getData(path, false, null));
            make(main, path, fresh(), CreateMode.PERSISTENT);
        }
        refused(Code.NODEEXISTS, "create", () -> main.zk.create(path, null, Ids.OPEN_ACL_UNSAFE,
                CreateMode.PERSISTENT));
        refused(Code.NOTEMPTY, "delete", () -> {
            main.zk.delete(own, -1);
            return null;
        });
        for (int i = 0; i < 3; i++) {
            change(path);
            check(path);
        }
        int version = model.get(path).version;
        refused(Code.BADVERSION, "set", () -> main.zk.setData(path, null, version + 1));
        if (dice.nextBoolean())
            remove(path, version);
        List<String> children = surely("children", () -> other.zk.getChildren(own, false, null));
        Collections.sort(children);
        same("children", children, names(own));
        same("all children", surely("getAllChildrenNumber", () -> main.zk.getAllChildrenNumber(own)),
                model.size() - 1);
    }

    void sequences() throws Exception {
        String parent = own + "/seq";
        String path = String.format("%s/s-%010d", parent, sequential), data = fresh();
        Stat stat = new Stat();
        same("the sequential node", write("create2", () -> ifThere(path), () -> {
            String made = main.zk.create(parent + "/s-", data.getBytes(), Ids.OPEN_ACL_UNSAFE,
                    CreateMode.PERSISTENT_SEQUENTIAL, stat);
            same("its length", stat.getDataLength(), data.length());
            return made;
        }), path);
        sequential++;
        model.put(path, new Node(0, data));
        check(path);
        while (names(parent).size() > 4)
            remove(parent + "/" + names(parent).get(0), 0);
    }

    void transactions() throws Exception {
        String path = own + "/multi", data = fresh();
        int version = model.get(path).version;
        List<Op> ops = Arrays.asList(Op.check(path, version), Op.setData(path, data.getBytes(), version),
                Op.create(path + "/c", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL),
                Op.delete(path + "/c", 0));
        List<Op> inVain = new ArrayList<>(ops);
        inVain.add(Op.check(path, version));
        refused(Code.BADVERSION, "multi", () -> main.zk.multi(inVain));
        same("its version", stat(path).getVersion(), version);
        surely("sync", () -> {
            main.zk.sync(path, null, null);
            return true;
        });
        write("multi", () -> stat(path).getVersion() == version + 1 ? path : null, () -> {
            List<OpResult> r = main.zk.multi(ops);
            same("the set", ((OpResult.SetDataResult) r.get(1)).getStat().getVersion(), version + 1);
            return ((OpResult.CreateResult) r.get(2)).getPath();
        });
        model.put(path, new Node(version + 1, data));
        List<OpResult> read = surely("multiRead", () -> other.zk.multi(Arrays.asList(Op.getData(path),
                Op.getChildren(path), Op.getData(path + "/c"))));
        same("what was read", new String(((OpResult.GetDataResult) read.get(0)).getData()), data);
        same("children", ((OpResult.GetChildrenResult) read.get(1)).getChildren().size(), 0);
        same("what is not there", ((OpResult.ErrorResult) read.get(2)).getErr(), Code.NONODE.intValue());
    }

    /** Many at once: each sees what those before it did, and they are answered in order. */
    void many() throws Exception {
        String path = scratch + "/many";
        clear(path);
        make(main, path, "", CreateMode.PERSISTENT);
        BlockingQueue<Integer> versions = new LinkedBlockingQueue<>();
        count("burst");
        for (int i = 0; i < 20; i++) {
            if (i % 2 == 0)
                main.zk.setData(path, null, -1, (rc, p, c, s) -> versions.add(rc == 0
                        ? s.getVersion() : rc), null);
            else
                main.zk.getData(path, false, (rc, p, c, d, s) -> versions.add(rc == 0
                        ? s.getVersion() : rc), null);
        }
        for (int i = 0; i < 20; i++) {
            Integer version = versions.poll(PATIENCE_S, TimeUnit.SECONDS);
            if (version != null && version == Code.CONNECTIONLOSS.intValue()) {
                lose("burst", "CONNECTIONLOSS");
                main.untilConnected();
                return;
            }
            same("the version after " + i, version, i / 2 + 1);
        }
    }

    // ---- watches

    void expect(BlockingQueue<WatchedEvent> events, Watcher.Event.EventType type, String path)
            throws Exception {
        WatchedEvent e = events.poll(PATIENCE_S, TimeUnit.SECONDS);
        same("the event", e == null ? null : e.getType() + " " + e.getPath(), type + " " + path);
    }

    Watcher into(BlockingQueue<WatchedEvent> events) {
        return e -> {
            if (e.getType() != Watcher.Event.EventType.None)
                events.add(e);
        };
    }

    void watches() throws Exception {
        String path = scratch + "/watched", child = path + "/c";
        BlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
        Watcher watcher = into(events);
        clear(child);
        clear(path);
        surely("exists", () -> other.zk.exists(path, watcher));
        make(main, path, "", CreateMode.PERSISTENT);
        expect(events, Watcher.Event.EventType.NodeCreated, path);
        surely("get", () -> other.zk.getData(path, watcher, null));
        surely("set", () -> main.zk.setData(path, null, -1));
        expect(events, Watcher.Event.EventType.NodeDataChanged, path);
        surely("children", () -> other.zk.getChildren(path, watcher));
        make(main, child, "", CreateMode.PERSISTENT);
        expect(events, Watcher.Event.EventType.NodeChildrenChanged, path);
        surely("exists", () -> other.zk.exists(child, watcher));
        remove(child, -1);
        expect(events, Watcher.Event.EventType.NodeDeleted, child);
        same("events that are left", events.size(), 0);
    }

    /** With a connection lost in between, events of that time are missing: nothing is said then. */
    void persistentWatches() throws Exception {
        String path = scratch + "/followed", child = path + "/c";
        BlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
        Watcher watcher = into(events);
        clear(child);
        clear(path);
        int before = losses.get();
        surely("addWatch", () -> {
            other.zk.addWatch(path, watcher, AddWatchMode.PERSISTENT_RECURSIVE);
            return true;
        });
        make(main, path, "", CreateMode.PERSISTENT);
        make(main, child, "", CreateMode.PERSISTENT);
        surely("set", () -> main.zk.setData(child, null, -1));
        surely("set", () -> main.zk.setData(child, null, -1));
        remove(child, -1);
        remove(path, -1);
        if (losses.get() == before) {
            expect(events, Watcher.Event.EventType.NodeCreated, path);
            expect(events, Watcher.Event.EventType.NodeCreated, child);
            expect(events, Watcher.Event.EventType.NodeDataChanged, child);
            expect(events, Watcher.Event.EventType.NodeDataChanged, child);
            expect(events, Watcher.Event.EventType.NodeDeleted, child);
            expect(events, Watcher.Event.EventType.NodeDeleted, path);
        }
        removeWatch(path, watcher, before);
        make(main, path, "", CreateMode.PERSISTENT);
        surely("exists", () -> other.zk.exists(path, false));
        if (losses.get() == before) {
            expect(events, Watcher.Event.EventType.PersistentWatchRemoved, path);
            same("events that are left", events.size(), 0);
        }
    }

    /** The client forgets it with the answer, so that a second attempt may find none. */
    void removeWatch(String path, Watcher watcher, int before) throws Exception {
        try {
            surely("removeWatches", () -> {
                other.zk.removeWatches(path, watcher, Watcher.WatcherType.Any, false);
                return true;
            });
        } catch (KeeperException.NoWatcherException e) {
            if (losses.get() == before)
                throw e;
        }
    }

    // ---- sessions

    void sessions() throws Exception {
        String path = scratch + "/ephemeral";
        BlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
        same("the node of the last session", stat(path), null);
        Session s = new Session("passing", sessionMs / 2);
        make(s, path, "mine", CreateMode.EPHEMERAL);
        same("its owner", surely("exists", () -> main.zk.exists(path, into(events))).getEphemeralOwner(),
                s.id);
        same("its nodes", surely("getEphemerals", () -> s.zk.getEphemerals()), Arrays.asList(path));
        same("our nodes", surely("getEphemerals", () -> main.zk.getEphemerals(scratch)).size(), 0);
        s.zk.close();
        expect(events, Watcher.Event.EventType.NodeDeleted, path);
    }

    /** As ZooKeeper's own tests do it: there is no other way from within. */
    static void closeSocket(ZooKeeper zk) throws Exception {
        Field cnxn = ZooKeeper.class.getDeclaredField("cnxn");
        cnxn.setAccessible(true);
        Field sender = cnxn.getType().getDeclaredField("sendThread");
        sender.setAccessible(true);
        Method close = sender.getType().getDeclaredMethod("testableCloseSocket");
        close.setAccessible(true);
        close.invoke(sender.get(cnxn.get(zk)));
    }

    /** What happens while a connection is away is told when it is back. */
    void missedEvents() throws Exception {
        String path = scratch + "/missed";
        BlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
        clear(path);
        make(main, path, "", CreateMode.PERSISTENT);
        Session s = new Session("dropped", sessionMs / 2);
        surely("get", () -> s.zk.getData(path, into(events), null));
        s.dropped = true;
        closeSocket(s.zk); // it comes back within a second or so
        if (dice.nextBoolean()) {
            surely("set", () -> main.zk.setData(path, null, -1));
            expect(events, Watcher.Event.EventType.NodeDataChanged, path);
        } else {
            remove(path, -1);
            expect(events, Watcher.Event.EventType.NodeDeleted, path);
        }
        s.untilConnected();
        s.zk.close();
    }

    /** A session that its client forgets ends in its time, not before. */
    void expiry() throws Exception {
        String path = scratch + "/forgotten";
        BlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
        Session s = new Session("forgotten", 10000);
        make(s, path, "mine", CreateMode.EPHEMERAL);
        surely("exists", () -> main.zk.exists(path, into(events)));
        s.expires = true;
        long from = System.nanoTime();
        s.zk.getTestable().injectSessionExpiration();
        expect(events, Watcher.Event.EventType.NodeDeleted, path);
        if (System.nanoTime() - from < 5000000000L) // its last ping is at most a third of its time ago
            throw new Wrong("it ended after " + (System.nanoTime() - from) / 1000000 + " ms");
    }

    void access() throws Exception {
        String path = scratch + "/locked";
        clear(path);
        Session s = new Session("owner", sessionMs / 2);
        s.zk.addAuthInfo("digest", "joe:secret".getBytes());
        make(s, path, "secret", CreateMode.PERSISTENT);
        surely("setACL", () -> s.zk.setACL(path, Ids.CREATOR_ALL_ACL, -1));
        refused(Code.NOAUTH, "get", () -> main.zk.getData(path, false, null));
        same("data", new String(surely("get", () -> s.zk.getData(path, false, null))), "secret");
        same("acl", surely("getACL", () -> s.zk.getACL(path, null)).get(0).getId().getScheme(), "digest");
        List<String> who = new ArrayList<>();
        for (ClientInfo i : surely("whoAmI", () -> {
            List<ClientInfo> answer = s.zk.whoAmI();
            if (answer == null) // how it tells of a lost connection
                throw new KeeperException.ConnectionLossException();
            return answer;
        }))
            who.add(i.getAuthScheme() + ":" + i.getUser());
        Collections.sort(who);
        same("who am I", who, Arrays.asList("digest:joe", "ip:127.0.0.1"));
        surely("setACL", () -> s.zk.setACL(path, Ids.OPEN_ACL_UNSAFE, -1));
        s.zk.close();
    }

    /** Containers, and nodes with a time to live: those that the server is to remove, and has to have
        removed when it has been there for long enough. */
    void ttlsAndContainers() throws Exception {
        String ttl = scratch + "/ttl", container = scratch + "/container";
        clear(ttl);
        same("what was created", write("createTTL", () -> ifThere(ttl), () -> main.zk.create(ttl, null,
                Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, null, 3600000)), ttl);
        clear(container + "/c");
        clearContainer(container);
        make(main, container, "", CreateMode.CONTAINER);
        make(main, container + "/c", "", CreateMode.PERSISTENT);
        long now = System.nanoTime();
        if (doomed.isEmpty()) {
            String brief = scratch + "/brief", empty = scratch + "/empty";
            write("createTTL", () -> ifThere(brief), () -> main.zk.create(brief, null,
                    Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, null, 1000));
            make(main, empty, "", CreateMode.CONTAINER);
            make(main, empty + "/c", "", CreateMode.PERSISTENT);
            remove(empty + "/c", -1);
            doomed.put(brief, now);
            doomed.put(empty, now);
        }
        for (String path : new ArrayList<>(doomed.keySet())) {
            if (stat(path) == null)
                doomed.remove(path);
            else if (main.connectedFor(REAPED_S) && now - doomed.get(path) > REAPED_S * 1000000000L)
                throw new Wrong(path + " is still there");
        }
    }

    public static void main(String[] a) throws Exception {
        JavaClient w = new JavaClient(a);
        w.run(w.rounds(w::nodes, w::watches, w::sequences, w::transactions, w::nodes,
                w::persistentWatches, w::sessions, w::many, w::access, w::ttlsAndContainers),
                w.rounds(w::expiry), w.rounds(w::missedEvents));
        w.guarded(() -> {
            w.untilConnected();
            w.same("the session", w.main.zk.getSessionId(), w.main.id);
            w.main.zk.close();
            w.other.zk.close();
            w.end();
        }).join();
        System.exit(0);
    }
}
