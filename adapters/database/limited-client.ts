import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type ServerClient from "knex/lib/client.js";
import type { Query, Runner } from "knex/lib/client.js";
import { isReadOnly } from "./errors.ts";
import { isRead, withQueryRetries } from "./retry.ts";
import { observed, operationOf, type Pool, type StatementObserver } from "./statement-observer.ts";

/** Its connection was closed, so it is open whether a statement or transaction took effect. */
const timedOut = () => failure("ERR_DATABASE_TIMEOUT", "the database did not respond in time");
/** The statement was not sent. */
const poolBusy = () =>
  failure("ERR_POOL_BUSY", "too many statements are waiting for a connection to the database");

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** Knex replaces a connection that it regards as disposed, instead of using it again. */
type Connection = object & { __knex__disposed?: Error };

const MAX_WAITING = 1000;
// With all connections in use, statements are refused if another has waited for this part of the time limit.
const MAX_WAIT = 0.2;
// What writes leave to reads, since commits may all wait for a standby that is missing.
const READ_CONNECTIONS = 2;
/** Timers can't wait longer. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Closes connections in use for too long, since a frozen server says nothing, and refuses work that would wait. */
class ConnectionLimits {
  readonly timeoutMs: number;
  readonly #size: number;
  readonly #cut: (connection: Connection, error: Error) => void;
  /** The limit of the present use of each connection. Idle ones have none. */
  readonly #limits = new Map<Connection, NodeJS.Timeout | undefined>();
  readonly #waiting = new Set<{ since: number }>();
  readonly #writing = new Set<Connection>();
  /** Writes that wait for others to end, rather than for a connection. */
  readonly turns: { since: number; take(): void }[] = [];
  #turnsLeft: number;

  /** @param cut closes a connection without waiting for the server, so that its statement fails with the error */
  constructor(size: number, timeoutMs: number, cut: (connection: Connection, error: Error) => void) {
    this.#size = size;
    this.#turnsLeft = Math.max(1, size - READ_CONNECTIONS);
    this.timeoutMs = timeoutMs;
    this.#cut = cut;
  }

  async acquire(acquireFromPool: () => Promise<Connection>, isLocal: boolean): Promise<Connection> {
    const since = performance.now();
    if (!isLocal) await this.#takeTurn(since);
    const wait = { since: performance.now() };
    try {
      // What gets its turn needs time to run.
      const isLate = wait.since - since > this.timeoutMs * (1 - MAX_WAIT);
      if (isLate || this.#isBusy(wait.since)) throw poolBusy();
      this.#waiting.add(wait);
      const connection = await acquireFromPool();
      if (!isLocal) this.#writing.add(connection);
      this.watch(connection, since + this.timeoutMs - performance.now());
      return connection;
    } catch (error) {
      if (!isLocal) this.#passTurn();
      throw error;
    } finally {
      this.#waiting.delete(wait);
    }
  }

  watch(connection: Connection, ms = this.timeoutMs): void {
    const end = () => {
      this.replaceAll(); // the others may be lost as well
      this.#cut(connection, timedOut());
    };
    clearTimeout(this.#limits.get(connection));
    this.#limits.set(connection, setTimeout(end, Math.min(Math.max(ms, 1), MAX_TIMER_MS)).unref());
  }

  release(connection: Connection): void {
    clearTimeout(this.#limits.get(connection));
    if (this.#limits.has(connection)) this.#limits.set(connection, undefined);
    if (this.#writing.delete(connection)) this.#passTurn();
  }

  forget(connection: Connection): void {
    clearTimeout(this.#limits.get(connection));
    this.#limits.delete(connection);
  }

  replaceAll(): void {
    for (const connection of this.#limits.keys())
      connection.__knex__disposed ??= new Error("may be lost, or lead to a former primary");
  }

  /** Waits until all connections are closed. After a time, closes those in use. */
  async end(ms: number, ended: () => Promise<void>): Promise<void> {
    const cutAll = () => {
      for (const [connection, limit] of this.#limits) if (limit) this.#cut(connection, timedOut());
    };
    const last = setTimeout(cutAll, ms);
    await ended().finally(() => clearTimeout(last));
  }

  #isBusy(now: number): boolean {
    const [oldest] = this.#waiting;
    if (!oldest || now - oldest.since <= this.timeoutMs * MAX_WAIT) return this.#waiting.size >= MAX_WAITING;
    // Otherwise, connections are being opened, and the database may respond again.
    return [...this.#limits.values()].filter((limit) => limit !== undefined).length >= this.#size;
  }

  /** Writes take turns in the order in which they came. */
  async #takeTurn(since: number): Promise<void> {
    if (this.#turnsLeft > 0) return void this.#turnsLeft--;
    const [oldest] = this.turns;
    const isLate = oldest && since - oldest.since > this.timeoutMs * MAX_WAIT;
    if (isLate || this.turns.length >= MAX_WAITING) throw poolBusy();
    return new Promise((take) => this.turns.push({ since, take }));
  }

  #passTurn(): void {
    const next = this.turns.shift();
    if (next) next.take();
    else this.#turnsLeft++;
  }
}

type Dialect = {
  streamOf(connection: object): Duplex;
  /** Sets up a new session, whose statements end after a time on the server, too. Infinity is no limit. */
  setUp(connection: object, timeoutMs: number): Promise<void>;
  /** Closes a connection without waiting for its statement, which fails with the error. */
  cut?(connection: object, error: Error): void;
};

type Config = Knex.Config & { timeoutMs: number; observer?: StatementObserver; limits?: ConnectionLimits };

// The server also ends the statement, a little later: one that waits for a lock would outlive its caller.
export const SERVER_EXTRA_MS = 1000;
// How long a migration, and what queues behind it, waits for other processes.
const LOCK_MAX_MS = 30_000;
// The lock wait ends before the statement times out, so the error names the lock.
const LOCK_SHARE = 0.85;

/** Returns how long a statement waits for a lock, in ms. @param timeoutMs how long it may take on the server */
export function lockLimitOf(timeoutMs: number): number {
  return Math.min(LOCK_MAX_MS, Math.floor(timeoutMs * LOCK_SHARE));
}

// When the process ends: how long to wait for running statements, and for the server to close a connection.
const LAST_STATEMENTS_MS = 1000;
const CLOSE_MS = 500;

export type LimitedClient = InstanceType<ReturnType<typeof withLimits>>;

export function withLimits(Client: typeof ServerClient, { streamOf, setUp, ...dialect }: Dialect) {
  const cut = dialect.cut ?? ((connection, error) => void streamOf(connection).destroy(error));

  return class extends Client {
    /** Connections that are replaced are closed before others are opened. */
    closing: Promise<unknown> = Promise.resolve();
    readonly limits: ConnectionLimits;

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
      const waiting = pool.numPendingAcquires() + this.limits.turns.length;
      return { inUse: pool.numUsed(), idle: pool.numFree(), waiting, max };
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
      if (this.transacting || query._connection) return super.runner(query);
      return withQueryRetries(query, () => super.runner.call(isRead(query) ? this.local : this, query));
    }

    /** Watches a new connection until it is closed, which may be before the pool gets it. */
    watchNew(connection: object): void {
      this.limits.watch(connection);
      streamOf(connection).once("close", () => this.limits.forget(connection));
    }

    /** This client, for what doesn't wait for a standby. */
    get local(): this {
      return Object.assign(Object.create(this), { acquireConnection: () => this.acquireConnection(true) });
    }

    /** For what may wait for a standby, it waits while too many connections do. Reads are local. */
    override acquireConnection(isLocal = false): Promise<object> {
      return observed(this.observer, "acquire", "", () =>
        this.limits.acquire(() => super.acquireConnection(), isLocal),
      );
    }

    override releaseConnection(connection: object): Promise<void> {
      this.limits.release(connection);
      return super.releaseConnection(connection);
    }

    override async acquireRawConnection(): Promise<object> {
      const { timeoutMs } = this.limits;
      await this.closing;
      const connection = await super.acquireRawConnection();
      await setUp(connection, timeoutMs + SERVER_EXTRA_MS);
      this.limits.release(connection);
      return connection;
    }

    override async destroyRawConnection(connection: object): Promise<void> {
      const closed = super.destroyRawConnection(connection).catch(() => {}); // it may be lost already
      this.closing = Promise.all([this.closing, Promise.race([closed, sleep(CLOSE_MS)])]);
      await this.closing;
      streamOf(connection).destroy();
    }

    override destroy(callback?: (error?: unknown) => void): Promise<void> {
      return this.limits.end(LAST_STATEMENTS_MS, () => super.destroy(callback));
    }

    /** Runs a read with a time limit of its own. */
    async runFor<T>(ms: number, run: (connection: object) => Promise<T>): Promise<T> {
      const connection = await this.acquireConnection(true);
      try {
        this.limits.watch(connection, ms + SERVER_EXTRA_MS);
        return await run(connection);
      } finally {
        this.releaseConnection(connection);
      }
    }
  };
}
