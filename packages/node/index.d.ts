/** Locks, elections and run-once over the HTTP interface of `clave gate` and `clave serve --http`. */

// Without @types/node and without the library DOM there are neither AbortSignal nor Symbol.asyncDispose.
declare global {
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
  }
}

/** The AbortSignal of the platform. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer T } } ? T : AnySignal;
export interface AnySignal {
  readonly aborted: boolean;
  readonly reason: any;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** A Buffer. */
export type Bytes = Uint8Array & { toString(encoding?: 'utf8' | 'latin1' | 'hex' | 'base64'): string };

/** Milliseconds, or a text such as '1500ms', '10s', '1h30m', '7d'. */
export type Duration = number | bigint | string;

export interface ConnectOptions {
  /** `Authorization: Bearer`: who this client is, by default CLAVE_GATE_TOKEN. A function is asked before each request. */
  token?: string | null | (() => string | Promise<string>);
  /** After so long without a renewal the gate gives back what is held ('10s'). When the servers allow less, that is told
   * by a warning of the process, CLAVE_TTL. */
  ttl?: Duration;
  /** For people who look who holds a lock. */
  name?: string;
  /** For https: as of node:tls. */
  ca?: string | Uint8Array | (string | Uint8Array)[];
  cert?: string | Uint8Array;
  key?: string | Uint8Array;
}

/** A client of the gates at these URLs (`http://`, `https://` or `unix:/path`), by default those of CLAVE_GATE, with commas
 * between them, or http://127.0.0.1:8080. Contacts none yet. Here and everywhere: an option that is not known, or of
 * another type, is a TypeError. */
export function connect(urls?: string | string[], options?: ConnectOptions): Client;

export interface HoldOptions {
  /** After so long without success: BusyError. 0: only if it is free now. Default: for ever, as long as gates answer;
   * when none begins a session within 10 s: UnreachableError. */
  wait?: Duration;
  /** Gives up waiting. */
  signal?: Signal;
  name?: string;
  /** What runs under it, for people who look. */
  command?: string;
  /** It is given back when it has been held for so long; `signal` says so, with EMAXHOLD. */
  maxHold?: Duration;
  /** It is lost unless `hold.alive()` is called at least so often, from when it is held; `signal` says so, with ESILENT.
   * Renewals, which the client sends by itself, do not count. */
  alive?: Duration;
  /** A pause before it is held when the last holder was lost. */
  lockDelay?: Duration;
}

export interface SemaphoreOptions extends HoldOptions {
  /** How many leases there are: the same number everywhere. */
  limit: number | bigint;
  /** How many of them, all or none (1). */
  permits?: number | bigint;
}

export interface OnceOptions extends HoldOptions {
  /** One word: several jobs may share a lock ('once'). */
  key?: string;
  /** A run counts for so long from its beginning, by the servers' clock. Default: for ever. */
  for?: Duration;
  /** A run that has begun counts, however it ended. */
  atMostOnce?: boolean;
}

export interface Stat {
  czxid: string;
  mzxid: string;
  pzxid: string;
  ctime: number;
  mtime: number;
  version: number;
  cversion: number;
  aversion: number;
  ephemeral_owner: string;
  data_length: number;
  num_children: number;
}

/** `sequential`: the server adds ten digits to the name. Ephemeral ones go with the session. */
export type Mode = 'persistent' | 'persistent_sequential' | 'ephemeral' | 'ephemeral_sequential' | 'container';

export type Operation =
  | { op: 'check'; path: string; version?: number | bigint }
  | { op: 'create'; path: string; data?: string; data_base64?: string; mode?: Mode }
  | { op: 'set'; path: string; data?: string; data_base64?: string; version?: number | bigint }
  | { op: 'delete'; path: string; version?: number | bigint };

/** Writes that are done only while it is held, in one transaction with the check. */
export interface Guarded {
  readonly path: string;
  /** The fencing token: larger than that of every grant before. A decimal string. */
  readonly token: string;
  set(path: string, data: string | Uint8Array, options?: { version?: number | bigint }): Promise<Stat>;
  create(path: string, data?: string | Uint8Array, options?: { parents?: boolean }): Promise<string>;
  delete(path: string, options?: { version?: number | bigint }): Promise<void>;
  multi(operations: Operation[]): Promise<unknown[]>;
}

/** What is held: a lock, leases, a leadership. It keeps the process alive. */
export interface Hold extends Guarded {
  /** Aborted with a LostError before another may own it. A blocked event loop cannot be told in time: see validFor. */
  readonly signal: Signal;
  /** Milliseconds for which nobody else can own it, by the clocks of now. 0: nothing is certain. */
  readonly remaining: number;
  /** True when it is held and certainly will be for `ms` milliseconds (0). */
  validFor(ms?: number): boolean;
  /** Throws a LostError unless it is certainly held. */
  check(): void;
  /** A sign of life from the work under it: call it between two steps of the work, a few times in the time of the option
   * `alive`. Resolves when a gate has noted it; rejects with the LostError of `signal`. It is repeated until then, and need
   * not be awaited. Without the option it does nothing. */
  alive(): Promise<void>;
  /** Gives it back. Rejects with a LostError when it had been lost before, and with an UnreachableError when no gate has
   * answered `within` (the ttl); then it is tried again at each renewal. */
  release(options?: { within?: Duration }): Promise<void>;
  /** It keeps the process alive no more, or again. */
  unref(): this;
  ref(): this;
  /** Runs `fn`, then releases. */
  run<T>(fn: (signal: Signal, hold: Hold) => T | Promise<T>): Promise<T>;
  /** Of an election: what the leader says to those who look. */
  publish(value: string | Uint8Array): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface SlotOptions {
  /** After so long without success: BusyError. 0: only if one is free now. Default: for ever. */
  wait?: Duration;
  signal?: Signal;
  /** What a missing limit is made with. */
  limit?: number | bigint;
  /** For people who look: the person or role, what it is for, where. */
  by?: string;
  reason?: string;
  host?: string;
}

/** A slot as it was when its owner took it. Only slots.give, or a break, ends it. */
export interface Slot extends Guarded {
  readonly owner: string;
  /** false: the owner had it before. */
  readonly taken: boolean;
  readonly since: Date;
  readonly host: string | null;
  readonly by: string | null;
  readonly reason: string | null;
}

export interface SlotOwner {
  /** null: a node that is not a slot but counts as one; `detail` says what removes it. */
  owner: string | null;
  detail?: string;
  token: string;
  since: string;
  host: string | null;
  by: string | null;
  reason: string | null;
  node: string;
}

export interface SlotList {
  path: string;
  /** null: none is set; or, with `detail`, its node holds no number. */
  limit: number | null;
  detail?: string;
  /** The oldest first. */
  owners: SlotOwner[];
  waiting: { owner: string | null; host?: string | null; since: string }[];
  broken?: { owner: string | null; token: string; at: string; by?: string | null; reason?: string | null };
}

export interface Slots {
  readonly path: string;
  /** Repeated after a lost answer it is the same slot. Aborted in the moment in which it is taken, the owner has it. */
  take(owner: string, options?: SlotOptions): Promise<Slot>;
  /** `token`: only the slot of that token. Resolves to whether the owner had it. Without one a lost answer is an
   * UnknownOutcomeError: repeated, it could give back a later take. */
  give(owner: string, options?: { token?: string | bigint }): Promise<boolean>;
  list(): Promise<SlotList>;
  /** A lower limit takes nobody's slot. */
  setLimit(limit: number | bigint): Promise<void>;
  /** Takes the slot away from its owner, as an operator; the reason is recorded. */
  break(owner: string, options: { reason: string; token?: string | bigint }): Promise<void>;
}

export interface Place {
  node: string;
  token: string | null;
  session: string | null;
  role: string;
  client: string | null;
  host: string | null;
  pid: number | null;
  name: string | null;
  command: string | null;
  text: string | null;
  since: number | null;
  /** No session owns the node, as when a program copied the tree: it holds nothing, those behind it wait, and it never
   * ends by itself. */
  left_over?: boolean;
}

export interface Lock {
  path: string;
  kind: 'lock' | 'rw' | 'semaphore' | 'election' | 'mixed';
  holders: Place[];
  waiters: Place[];
  left_over: Place[];
  nholders: number;
  nwaiters: number;
  nleft_over: number;
  /** A waiter is a kazoo lock that does not see the places before it, and may hold at the same time. */
  outside: boolean;
  /** null: nobody holds it, or it is not known when it was granted. */
  held_since: number | null;
  /** node: its node tells, by the servers' clock. gate: this gate has seen it. */
  held_since_by: 'node' | 'gate' | null;
  oldest_wait_ms: number | null;
}

export interface FormerRun {
  state: 'started' | 'done' | 'failed';
  began: Date;
  /** Milliseconds. */
  took: number | null;
  host: string | null;
  token: string | null;
}

export type OnceResult<T> = { ran: true; result: T } | { ran: false; former: FormerRun };

export interface Client {
  lock(path: string, options?: HoldOptions): Promise<Hold>;
  readLock(path: string, options?: HoldOptions): Promise<Hold>;
  writeLock(path: string, options?: HoldOptions): Promise<Hold>;
  semaphore(path: string, options: SemaphoreOptions): Promise<Hold>;
  /** Places that belong to an owner, an id, and outlive this process. */
  slots(path: string): Slots;
  withLock<T>(path: string, fn: (signal: Signal, hold: Hold) => T | Promise<T>): Promise<T>;
  withLock<T>(path: string, options: HoldOptions, fn: (signal: Signal, hold: Hold) => T | Promise<T>): Promise<T>;
  /** Terms of leadership, one after the other. An outage ends a term, and not the loop: it stands again. */
  lead(path: string, options?: Omit<HoldOptions, 'wait'>): AsyncGenerator<Hold, void, void>;
  /** Runs `fn` unless it was run already, by any client, or by `clave lock --once`. */
  once<T>(path: string, fn: (signal: Signal, hold: Hold) => T | Promise<T>): Promise<OnceResult<T>>;
  once<T>(path: string, options: OnceOptions, fn: (signal: Signal, hold: Hold) => T | Promise<T>): Promise<OnceResult<T>>;
  /** The lock as the gate's copy has it, which is a moment old; `fresh` asks the servers. null: nobody holds it or waits. */
  look(path: string, options?: { fresh?: boolean }): Promise<Lock | null>;
  /** A number that several programs change. Does not contact the gate. */
  counter(path: string): Counter;
  /** Is a member of the group at `path`: a node PATH/ID that stays until it leaves, the client is closed or the process
   * ends. It goes on at another gate, and in the next session when one was lost. Rejects with ENODEEXISTS when another
   * session has the id. */
  join(path: string, options?: JoinOptions): Promise<Membership>;
  /** Is an instance of a service in the same way: a node BASE/SERVICE/ID in Curator's JSON. Takes the place of an instance
   * of this id, so a program that is started again is there at once. */
  register(service: string, options: RegisterOptions): Promise<Registration>;
  /** Who is in a group: the nodes below its path. */
  members(path: string): Promise<Member[]>;
  /** The instances of a service below `base` ('/services'). */
  instances(service: string, options?: { base?: string }): Promise<Instance[]>;
  /** The members of a group now, and after every change. */
  watchMembers(path: string, options?: { signal?: Signal }): AsyncGenerator<Member[], void, void>;
  /** The instances of a service now, and after every change. */
  watchInstances(service: string, options?: { base?: string; signal?: Signal }): AsyncGenerator<Instance[], void, void>;
  /** The lock now, and after every change. */
  watch(path: string, options?: { signal?: Signal }): AsyncGenerator<Lock | null, void, void>;
  /** A node, after everything that was committed before. null: there is none. */
  get(path: string): Promise<{ data: Bytes; stat: Stat } | null>;
  /** Ends all sessions, and so gives back all that is held, and all waits (LostError, ECLOSED). A slot stays its owner's.
   * Rejects with an UnreachableError when no gate has answered `within` ('5s'). */
  close(options?: { within?: Duration }): Promise<void>;
  /** Nothing of it keeps the process alive any more: neither what it holds nor what waits. */
  unref(): this;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Values have 64 bits. A change whose answer was lost is not repeated: UnknownOutcomeError, and it may have been made. */
export interface Counter {
  readonly path: string;
  /** A counter that is missing is 0. */
  get(): Promise<bigint>;
  /** Adds `delta` (1): the new value. */
  add(delta?: number | bigint): Promise<bigint>;
  set(value: number | bigint): Promise<bigint>;
  /** false: it is not `expected`, and nothing was done. */
  compareAndSet(expected: number | bigint, value: number | bigint): Promise<boolean>;
}

/** `present` is false with the reason why: ELOST, a new session is begun; ENODEEXISTS, another session has the id. It is
 * tried again with each renewal. */
export type OnChange = (present: boolean, error: ClaveError | null) => void;

export interface JoinOptions {
  /** Unique in the group. Default: a UUID. */
  id?: string;
  data?: string | Uint8Array;
  /** Takes the place of another session's node of this id, such as that of this program before it crashed. */
  replace?: boolean;
  onChange?: OnChange;
  /** Gives up joining. */
  signal?: Signal;
}

export interface InstanceOptions {
  /** The host or IP at which others reach it. */
  address?: string;
  port?: number | bigint;
  sslPort?: number | bigint;
  /** Any JSON. */
  payload?: unknown;
  /** '{scheme}://{address}:{port}/v1': how others make a URI of it. */
  uri?: string;
  /** false: it is registered, and others do not use it. */
  enabled?: boolean;
}

export interface RegisterOptions extends InstanceOptions {
  address: string;
  /** Unique in the service. Default: a UUID. */
  id?: string;
  /** The parent of the services ('/services'). */
  base?: string;
  onChange?: OnChange;
  /** Gives up registering. */
  signal?: Signal;
}

/** A node that stays. It keeps the process alive. */
export interface Kept {
  readonly path: string;
  readonly id: string;
  /** It is there, as far as the gates have told. */
  readonly present: boolean;
  /** Why it is not. */
  readonly error: ClaveError | null;
  /** It keeps the process alive no more, or again. */
  unref(): this;
  ref(): this;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Membership extends Kept {
  /** Sets its data, now and whenever it is made anew. Rejects when no gate has done it in time: then it is done later. */
  set(data: string | Uint8Array): Promise<void>;
  /** Resolves when it is no member any more. */
  leave(options?: { within?: Duration }): Promise<void>;
}

export interface Registration extends Kept {
  readonly service: string;
  /** Changes what is given. Rejects when no gate has done it in time: then it is done later. */
  update(changes: InstanceOptions): Promise<void>;
  enable(): Promise<void>;
  /** It stays registered, and others do not use it. */
  disable(): Promise<void>;
  /** Resolves when it is not registered any more. */
  unregister(options?: { within?: Duration }): Promise<void>;
}

export interface Member {
  id: string;
  /** Whose node it is; null: it is not ephemeral. */
  session: string | null;
  czxid: string;
  since: string | null;
  /** null: not UTF-8, or not known. */
  data: string | null;
  data_base64?: string;
}

export interface Instance {
  service: string;
  path: string;
  state: 'up' | 'disabled' | 'unreadable';
  /** Why it is unreadable. */
  fault: string | null;
  id: string | null;
  address: string | null;
  port: number | null;
  ssl_port: number | null;
  payload: unknown;
  registered: number | null;
  type: string | null;
  /** Curator's UriSpec, and the URI that it makes of this instance. */
  uri_spec: unknown;
  uri: string | null;
}

/** `code` is a name of clave/err.h, `problem` the gate's answer (RFC 9457). */
export class ClaveError extends Error {
  readonly code: string;
  readonly cause?: unknown;
  readonly status: number | null;
  readonly path: string | null;
  readonly problem: Record<string, unknown> | null;
}
/** Another holds it, and the time to wait is over. Nothing was done. */
export class BusyError extends ClaveError {}
/** It was held and is not any more, or cannot be relied on. */
export class LostError extends ClaveError {}
/** No gate answered in time: `cause` says why, and the message which gate. */
export class UnreachableError extends ClaveError {}
/** An answer was lost: the write may or may not have been done. */
export class UnknownOutcomeError extends ClaveError {}
/** The gate does not let this client do it. */
export class DeniedError extends ClaveError {}
