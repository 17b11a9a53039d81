import type { Client } from './index.js';

export interface CoordinatorOptions {
  /** Where the locks are ('/cron'). */
  prefix?: string;
  /** The lock was lost while the task runs: fence what must not be late. */
  onLost?: (key: string, error: unknown) => void;
}

/** A RunCoordinator of node-cron. */
export class ClaveCoordinator {
  constructor(client: Client, options?: CoordinatorOptions);
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
  onComplete(key: string): Promise<void>;
}
export function coordinator(client: Client, options?: CoordinatorOptions): ClaveCoordinator;
