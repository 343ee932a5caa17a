import { setTimeout as sleep } from "node:timers/promises";
import type Sqlite from "better-sqlite3";
import BetterSqliteClient from "knex/lib/dialects/better-sqlite3/index.js";
import SqliteTransaction from "knex/lib/dialects/sqlite3/execution/sqlite-transaction.js";
import { openConnection } from "./connection.ts";
import { prepared } from "./statements.ts";
import { startWriter, type Writer } from "./writer.ts";

type Connection = Sqlite.Database & { __knexUid?: string };
// How long a transaction waits for another process to let go of the file, and how often it looks.
const LOCK_WAIT_MS = 5000;
const LOCK_POLL_MS = 5;

type Query = { sql: string; bindings?: unknown[]; response?: unknown; context?: unknown };

/**
 * Knex's better-sqlite3 dialect for a server: statements are prepared once per connection, reads take no pool, single
 * writes are committed in groups on a thread of their own, and transactions begin with the write lock, one at a time.
 */
export class SqliteClient extends BetterSqliteClient {
  // One object, because Knex derives clients from this one with `Object.create`.
  readonly open: { reader?: Connection; transactional?: Connection; writer?: Writer };

  constructor(config: object) {
    super(config);
    this.open = {};
  }

  /** There is no pool: reads are synchronous, so that one connection serves them all. */
  override initializePool(): void {}

  override async acquireConnection(): Promise<Connection> {
    this.open.reader ??= this.connect("reader");
    return this.open.reader;
  }

  override async releaseConnection(): Promise<void> {}

  override async destroy(callback?: (error?: unknown) => void): Promise<void> {
    const { reader, transactional, writer } = this.open;
    for (const name of Object.keys(this.open)) delete this.open[name as keyof typeof this.open];
    await writer?.close();
    reader?.close();
    transactional?.close();
    callback?.();
  }

  /** The connection for a transaction, and the right to write until it is released. */
  async acquireTransactional(): Promise<{ connection: Connection; release(): void }> {
    const { release } = await this.writer().pause();
    this.open.transactional ??= this.connectTransactional();
    return { connection: this.open.transactional, release };
  }

  override transaction(...args: unknown[]): SqliteTransaction {
    return new ExclusiveTransaction(this, ...args);
  }

  override async _query(connection: Connection, query: Query): Promise<Query> {
    const statement = prepared(connection, query.sql);
    const bindings = this._formatBindings(query.bindings ?? []);
    if (statement.reader) {
      query.response = statement.all(bindings);
      return query;
    }
    // A transaction's own client (`transacting`) writes where it reads.
    const isAlone = !this.transacting && !statement.readonly;
    const changes = isAlone
      ? await this.writer().write(query.sql, bindings)
      : statement.run(bindings).changes;
    query.response = { changes };
    // There is no `lastID`: every key of ours is made before it is stored.
    query.context = { changes };
    return query;
  }

  private writer(): Writer {
    this.open.writer ??= startWriter(this.connectionSettings);
    return this.open.writer;
  }

  private connectTransactional(): Connection {
    const connection = this.connect("transactional");
    // Its statements run on the event loop, which must not stand still: the wait for the lock is `begin`'s.
    connection.pragma("busy_timeout = 0");
    return connection;
  }

  private connect(name: string): Connection {
    const connection: Connection = openConnection(this.connectionSettings);
    connection.__knexUid = name;
    return connection;
  }
}

/** Takes the write lock at once: of two transactions that read first, neither is refused when it writes. */
class ExclusiveTransaction extends SqliteTransaction {
  override async acquireConnection<T>(
    config: { connection?: Connection } | undefined,
    run: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    if (config?.connection || this.client.transacting) return super.acquireConnection(config, run);
    const { connection, release } = await this.client.acquireTransactional();
    try {
      return await super.acquireConnection({ ...config, connection }, run);
    } finally {
      // A commit that failed, on a full disk say, leaves it open.
      if (connection.inTransaction) connection.exec("ROLLBACK");
      release();
    }
  }

  override async begin(connection: Connection): Promise<void> {
    const deadline = performance.now() + LOCK_WAIT_MS;
    for (;;) {
      try {
        connection.exec("BEGIN IMMEDIATE");
        return;
      } catch (error) {
        const isLocked = (error as { code?: string }).code === "SQLITE_BUSY";
        if (!isLocked || performance.now() > deadline) throw error;
      }
      await sleep(LOCK_POLL_MS);
    }
  }
}
