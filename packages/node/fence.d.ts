type Token = string | bigint | number | { readonly token: string; readonly path?: string };

/** A later holder has written. Nothing was written. */
export class StaleTokenError extends Error {}

/** In a transaction of a client of `pg`: goes on only if no later holder of the lock has been here. Needs
 * `CREATE TABLE fence (lock text PRIMARY KEY, token bigint NOT NULL)`. */
export function fencePostgres(
  client: { query(text: string, values: unknown[]): Promise<{ rowCount: number | null }> },
  lock: Token,
  name?: string,
): Promise<void>;

export interface ObjectStore {
  /** null: there is no such object. */
  get(): Promise<{ etag: string; body: string } | null>;
  /** Resolves to the status of the PUT. */
  put(body: string, headers: Record<string, string>): Promise<number>;
}
/** Writes an object whose first line is the token, by If-Match. */
export function fenceS3(store: ObjectStore, lock: Token, content: string, options?: { tries?: number }): Promise<void>;

/** Replaces a file whose first line is the token. For writers on one machine; needs flock(1). */
export function fenceFile(file: string, lock: Token, content: string): Promise<void>;
