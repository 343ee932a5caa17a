import { setTimeout as sleep } from "node:timers/promises";
import type Sqlite from "better-sqlite3";
import BetterSqliteClient from "knex/lib/dialects/better-sqlite3/index.js";
import SqliteTransaction from "knex/lib/dialects/sqlite3/execution/sqlite-transaction.js";
import { type Checkpoints, startCheckpoints } from "./checkpoints.ts";
import { openConnection, rollBack } from "./connection.ts";
import { createDisk, type Disk, NO_DISK } from "./disk.ts";
import { prepared } from "./statements.ts";
import { createWriter, type Writer } from "./writer.ts";

type Connection = Sqlite.Database & { __knexUid?: string };
// How long a transaction waits for another process to let go of the file, and how often it looks.
const LOCK_WAIT_MS = 5000;
const LOCK_POLL_MS = 5;

type Query = { sql: string; bindings?: unknown[]; response?: unknown; context?: unknown };

type Open = {
  main: Connection;
  disk: Disk;
  checkpoints: Checkpoints;
  writer: Writer;
  /** For transactions, whose commits wait for the disk themselves. */
  transactional?: Connection;
};

/**
 * Knex's better-sqlite3 dialect for a server: statements are prepared once per connection, reads take no pool, single
 * writes are committed in groups that wait for the disk together, and transactions begin with the write lock, one at a
 * time.
 */
export class SqliteClient extends BetterSqliteClient {
  // An object, because Knex derives clients from this one with `Object.create`.
  readonly state: { open?: Open };

  constructor(config: object) {
    super(config);
    this.state = {};
  }

  /** There is no pool: everything but transactions is synchronous, so that one connection serves it all. */
  override initializePool(): void {}

  override async acquireConnection(): Promise<Connection> {
    return this.opened().main;
  }

  override async releaseConnection(): Promise<void> {}

  override async destroy(callback?: (error?: unknown) => void): Promise<void> {
    const { open } = this.state;
    delete this.state.open;
    if (open) {
      await open.writer.close();
      await open.checkpoints.close();
      open.disk.close();
      open.main.close();
      open.transactional?.close();
    }
    callback?.();
  }

  /** The connection for a transaction, and the right to write until it is released. */
  async acquireTransactional(): Promise<{ connection: Connection; release(): void }> {
    const open = this.opened();
    const { release } = await open.writer.pause();
    try {
      open.transactional ??= this.connect(
        "transactional",
        this.connectionSettings.durable ? "FULL" : "NORMAL",
      );
      return { connection: open.transactional, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  override transaction(...args: unknown[]): ExclusiveTransaction {
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
      ? await this.opened().writer.write(query.sql, bindings)
      : statement.run(bindings).changes;
    query.response = { changes };
    // There is no `lastID`: every key of ours is made before it is stored.
    query.context = { changes };
    return query;
  }

  /** Writes several statements as one, with the other writes of their moment. */
  async writeTogether(queries: { sql: string; bindings: unknown[] }[]): Promise<void> {
    for (const query of queries) this.emit("query", query);
    const statements = queries.map(({ sql, bindings }) => ({
      sql,
      bindings: this._formatBindings(bindings),
    }));
    await this.opened().writer.writeTogether(statements);
  }

  private opened(): Open {
    this.state.open ??= this.open();
    return this.state.open;
  }

  private open(): Open {
    const settings = this.connectionSettings;
    const main = this.connect("main");
    // Checkpoints are ours, so that no commit has to wait for one.
    main.pragma("wal_autocheckpoint = 0");
    main.pragma("schema_version"); // a first read makes the log, which is synced from here on
    const disk = settings.durable ? createDisk(settings.filename) : NO_DISK;
    const checkpoints = startCheckpoints(
      settings,
      () => writer.pause(),
      (error) => this.emit("checkpoint-error", error),
    );
    const writer = createWriter(main, disk, checkpoints);
    return { main, disk, checkpoints, writer };
  }

  private connect(name: string, synchronous?: "FULL" | "NORMAL"): Connection {
    const connection: Connection = openConnection(this.connectionSettings, synchronous);
    connection.__knexUid = name;
    return connection;
  }
}

/** Takes the write lock at once: of two transactions that read first, neither is refused when it writes. */
class ExclusiveTransaction extends SqliteTransaction<SqliteClient, Connection> {
  override async acquireConnection<T>(
    config: { connection?: Connection } | undefined,
    run: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    if (config?.connection || this.client.transacting) return super.acquireConnection(config, run);
    const { connection, release } = await this.client.acquireTransactional();
    try {
      return await super.acquireConnection({ ...config, connection }, run);
    } finally {
      rollBack(connection); // a commit that failed leaves it open
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
