import type { Duration } from './index.js';

export interface Fault {
  /** It is refused with this status, and nothing is done. */
  status?: number;
  /** It is never answered, and nothing is done. */
  silent?: boolean;
  /** It is done, and its answer is lost. */
  lose?: boolean;
  /** The connection ends before it is done. */
  cut?: boolean;
  /** It is answered so much later. */
  delay?: Duration;
  /** To how many requests (1). */
  times?: number;
  /** Only to requests with this method, and whose URL's path begins so: 'POST', '/v1/claims'. */
  method?: string;
  path?: string;
}

/** A gate in memory, for tests: it stores nothing, and lets everybody do everything. */
export interface TestGate {
  /** For `connect`. */
  readonly url: string;
  /** How many requests there have been. */
  readonly requests: number;
  /** What happens to the next request, or requests. */
  fault(fault: Fault): void;
  /** There are no faults any more. */
  heal(): void;
  /** The sessions that hold `path` end, as when the servers have not heard of them for too long; without it all do. */
  expire(path?: string): void;
  /** Who holds `path`, and who waits, in their order. */
  places(path: string): { token: string; name: string | null; state: 'held' | 'waiting' }[];
  close(): Promise<void>;
}

export function startGate(options?: { port?: number }): Promise<TestGate>;
