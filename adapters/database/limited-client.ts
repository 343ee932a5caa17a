import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type ServerClient from "knex/lib/client.js";
import type { Query, Runner } from "knex/lib/client.js";
import { ConnectionLimits } from "./connection-limits.ts";
import { isReadOnly } from "./outages.ts";
import { withQueryRetries } from "./retry.ts";
import { observed, operationOf, type Pool, type StatementObserver } from "./statement-observer.ts";

/** What the dialects do differently. */
type Dialect = {
  /** The socket of a connection. */
  streamOf(connection: object): Duplex;
  /** Sets up a new session, whose statements end after a time on the server, too. Infinity is no limit. */
  setUp(connection: object, timeoutMs: number): Promise<void>;
};

type Config = Knex.Config & {
  timeoutMs: number;
  observer?: StatementObserver;
  /** The limits of the client, for the clients of its transactions. */
  limits?: ConnectionLimits<object>;
};

/** What a client with limits adds to Knex's. */
export type LimitedClient = {
  readonly connections: Pool;
  /** Runs work without a time limit, on connections that are used for nothing else. */
  exempt<T>(work: () => Promise<T>): Promise<T>;
  /** Runs a statement on a connection with a time limit of its own. */
  runFor<T>(ms: number, run: (connection: object) => Promise<T>): Promise<T>;
};

// The server also ends the statement, a little later. Otherwise, a statement that waits for a lock would outlive its caller.
export const SERVER_EXTRA_MS = 1000;
// When the process ends: how long to wait for running statements, and for the server to close a connection.
const LAST_STATEMENTS_MS = 1000;
const CLOSE_MS = 500;

/** Returns the client class of a dialect, extended to limit the time for which connections are used. */
export function withLimits(Client: typeof ServerClient, { streamOf, setUp }: Dialect) {
  /** Closes a connection without waiting for the server. Its statement fails with the error. */
  function cut(connection: object, error?: Error) {
    streamOf(connection).destroy(error);
  }

  return class extends Client implements LimitedClient {
    readonly limits: ConnectionLimits<object>;

    constructor(config: Config) {
      super(config);
      this.limits = new ConnectionLimits(config.pool?.max ?? 1, config.timeoutMs, cut);
      (this.config as Config).limits = this.limits;
    }

    // Knex derives the clients of transactions from this class, and gives them only the configuration.
    get observer(): StatementObserver | undefined {
      return (this.config as Config).observer;
    }

    get connections(): Pool {
      const { pool } = this;
      const max = this.config.pool?.max ?? 1;
      if (!pool) return { inUse: 0, idle: 0, waiting: 0, max };
      return { inUse: pool.numUsed(), idle: pool.numFree(), waiting: pool.numPendingAcquires(), max };
    }

    override async _query(connection: unknown, query: { sql: string }): Promise<unknown> {
      const { sql } = query;
      try {
        const { __knexTxId: transaction } = connection as { __knexTxId?: string };
        const run = () => super._query(connection, query);
        return await observed(this.observer, operationOf(sql), sql, run, transaction);
      } catch (error) {
        // A new connection may reach the server that has become the primary.
        if (isReadOnly(error)) (this.config as Config).limits?.replaceAll();
        throw error;
      }
    }

    override runner(query: Query): Runner {
      const create = () => super.runner(query);
      return this.transacting ? create() : withQueryRetries(query, create);
    }

    /** Watches a new connection until it is closed, which may be before the pool gets it. */
    watchNew(connection: object): void {
      this.limits.watch(connection);
      streamOf(connection).once("close", () => this.limits.forget(connection));
    }

    override acquireConnection(): Promise<object> {
      return observed(this.observer, "acquire", "", () =>
        this.limits.acquire(() => super.acquireConnection()),
      );
    }

    override releaseConnection(connection: object): Promise<void> {
      this.limits.release(connection);
      return super.releaseConnection(connection);
    }

    override validateConnection(connection: object): boolean {
      return !this.limits.isOutdated(connection) && super.validateConnection(connection);
    }

    override async acquireRawConnection(): Promise<object> {
      const { timeoutMs } = this.limits;
      const connection = await super.acquireRawConnection();
      this.limits.watch(connection);
      await setUp(connection, timeoutMs + SERVER_EXTRA_MS);
      this.limits.release(connection);
      return connection;
    }

    override async destroyRawConnection(connection: object): Promise<void> {
      const closed = super.destroyRawConnection(connection).catch(() => {}); // it may be lost already
      await Promise.race([closed, sleep(CLOSE_MS)]);
      cut(connection);
    }

    override _wrappedCancelQueryCall(connection: object, toCancel: object): Promise<unknown> {
      this.limits.watch(connection);
      return super._wrappedCancelQueryCall(connection, toCancel);
    }

    override destroy(callback?: (error?: unknown) => void): Promise<void> {
      return this.limits.end(LAST_STATEMENTS_MS, () => super.destroy(callback));
    }

    exempt<T>(work: () => Promise<T>): Promise<T> {
      return this.limits.exempt(work);
    }

    async runFor<T>(ms: number, run: (connection: object) => Promise<T>): Promise<T> {
      const connection = await this.acquireConnection();
      try {
        this.limits.watch(connection, performance.now() + ms + SERVER_EXTRA_MS);
        return await run(connection);
      } finally {
        this.releaseConnection(connection);
      }
    }
  };
}
