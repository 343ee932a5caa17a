import { realpathSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type Sqlite from "better-sqlite3";
import BetterSqliteClient from "knex/lib/dialects/better-sqlite3/index.js";
import SqliteTransaction from "knex/lib/dialects/sqlite3/execution/sqlite-transaction.js";
import { observed, operationOf, type StatementObserver } from "../statement-observer.ts";
import { type Checkpoints, startCheckpoints } from "./checkpoints.ts";
import { openConnection, rollBack } from "./connection.ts";
import { createDisk, type Disk, NO_DISK } from "./disk.ts";
import type { Statement } from "./group-transaction.ts";
import { createReader, type Reader } from "./reader.ts";
import { prepared } from "./statements.ts";
import { createTurnReads, type TurnReads } from "./turn-reads.ts";
import { createWriter, type Writer } from "./writer.ts";

type Connection = Sqlite.Database & { __knexUid?: string };
// How long a transaction waits for another process to release the lock, and how often it tries.
const LOCK_WAIT_MS = 5000;
const LOCK_POLL_MS = 5;

type Query = { sql: string; bindings?: unknown[]; response?: unknown; context?: unknown };

type Open = {
  main: Connection;
  disk: Disk;
  checkpoints: Checkpoints;
  writer: Writer;
  reader: Reader;
  turnReads: TurnReads;
  /** The connection for transactions, whose commits wait for the disk themselves, unless they need not be durable. */
  transactional?: Connection;
};

/**
 * Knex's better-sqlite3 dialect, adapted to a server: statements are prepared once per connection, reads need no pool,
 * single writes are committed in groups that share a disk sync, and transactions run one at a time and take the write
 * lock when they begin. Long reads run on a thread.
 */
export class SqliteClient extends BetterSqliteClient {
  // An object, because Knex derives the clients of transactions from this one with `Object.create`.
  readonly state: { open?: Open };

  constructor(config: object) {
    super(config);
    this.state = {};
  }

  /** Creates no pool: everything except transactions is synchronous, so one connection is enough. */
  override initializePool(): void {}

  override async acquireConnection(): Promise<Connection> {
    return this.opened().main;
  }

  override async releaseConnection(): Promise<void> {}

  override async destroy(callback?: (error?: unknown) => void): Promise<void> {
    const { open } = this.state;
    delete this.state.open;
    if (open) {
      open.turnReads.run();
      await open.reader.close();
      await open.writer.close();
      await open.checkpoints.close();
      open.disk.close();
      open.main.close();
      open.transactional?.close();
    }
    callback?.();
  }

  /** Resolves to the connection for a transaction, with the exclusive right to write until it is released. */
  async acquireTransactional(isDurable: boolean): Promise<{ connection: Connection; release(): void }> {
    const open = this.opened();
    const { release } = await open.writer.pause();
    try {
      open.transactional ??= this.connect("transactional");
      const synchronous = isDurable && this.connectionSettings.durable ? "FULL" : "NORMAL";
      open.transactional.pragma(`synchronous = ${synchronous}`);
      return { connection: open.transactional, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  override transaction(...args: unknown[]): ExclusiveTransaction {
    return new ExclusiveTransaction(this, ...args);
  }

  // Knex gives the clients of transactions only the configuration.
  get observer(): StatementObserver | undefined {
    return (this.config as { observer?: StatementObserver }).observer;
  }

  override _query(connection: Connection, query: Query): Promise<Query> {
    const { sql } = query;
    return observed(this.observer, operationOf(sql), sql, () => this.runQuery(connection, query));
  }

  private async runQuery(connection: Connection, query: Query): Promise<Query> {
    const statement = prepared(connection, query.sql);
    const bindings = this._formatBindings(query.bindings ?? []);
    if (statement.reader) {
      query.response = statement.all(bindings);
      return query;
    }
    // The client of a transaction (`transacting`) writes on its own connection.
    const isSingleWrite = !this.transacting && !statement.readonly;
    const changes = isSingleWrite
      ? await this.opened().writer.write(query.sql, bindings)
      : statement.run(bindings).changes;
    query.response = { changes };
    // No `lastID`: every key is generated before the row is inserted.
    query.context = { changes };
    return query;
  }

  /** Runs a read without the steps that Knex takes around a query, because reads of SQLite are synchronous anyway. */
  read({ sql, bindings }: { sql: string; bindings: unknown[] }): unknown[] {
    const end = this.observer?.begin("select", sql);
    try {
      return prepared(this.opened().main, sql).all(this._formatBindings(bindings));
    } finally {
      end?.();
    }
  }

  /** Runs a read in the same way at the end of the turn of the event loop, together with others. */
  readInTurn(query: { sql: string; bindings: unknown[] }): Promise<unknown[]> {
    return this.opened().turnReads.add(() => this.read(query));
  }

  /** Runs a single write in the same way, and resolves to the number of changed rows. */
  write({ sql, bindings }: { sql: string; bindings: unknown[] }): Promise<number> {
    return observed(this.observer, operationOf(sql), sql, () =>
      this.opened().writer.write(sql, this._formatBindings(bindings)),
    );
  }

  /** Runs several statements, all or none, in a group with other concurrent writes. */
  async writeTogether(statements: Statement[]): Promise<void> {
    const { sql = "" } = statements[0] ?? {};
    await observed(this.observer, operationOf(sql), sql, () =>
      this.opened().writer.writeTogether(statements),
    );
  }

  /** Runs a read on a thread, and resolves to its rows. */
  async readOnThread(query: { sql: string; bindings: readonly unknown[] }): Promise<unknown[]> {
    this.emit("query", query);
    const { sql } = query;
    return observed(this.observer, operationOf(sql), sql, () =>
      this.opened().reader.read({ sql, bindings: this._formatBindings([...query.bindings]) }),
    );
  }

  private opened(): Open {
    this.state.open ??= this.open();
    return this.state.open;
  }

  private open(): Open {
    const main = this.connect("main");
    // SQLite keeps the log beside the file that a symbolic link refers to.
    const settings = { ...this.connectionSettings, filename: realpathSync(this.connectionSettings.filename) };
    // Checkpoints run on a thread, so no commit has to wait for one.
    main.pragma("wal_autocheckpoint = 0");
    main.pragma("schema_version"); // the first read creates the log, which the disk then opens
    const disk = settings.durable ? createDisk(settings.filename) : NO_DISK;
    const checkpoints = startCheckpoints(
      settings,
      () => writer.pause(),
      (error) => this.emit("checkpoint-error", error),
    );
    const writer = createWriter(main, disk, checkpoints, (sql) => this.emit("query", { sql }));
    return {
      main,
      disk,
      checkpoints,
      writer,
      reader: createReader(settings),
      turnReads: createTurnReads(main),
    };
  }

  private connect(name: string): Connection {
    const connection: Connection = openConnection(this.connectionSettings);
    connection.__knexUid = name;
    return connection;
  }
}

/** Takes the write lock at BEGIN. Otherwise one of two transactions that read first would fail when it writes. */
class ExclusiveTransaction extends SqliteTransaction<SqliteClient, Connection> {
  override async acquireConnection<T>(
    config: { connection?: Connection; isDurable?: boolean } | undefined,
    run: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    if (config?.connection || this.client.transacting) return super.acquireConnection(config, run);
    const { connection, release } = await this.client.acquireTransactional(config?.isDurable ?? true);
    try {
      return await super.acquireConnection({ ...config, connection }, run);
    } finally {
      rollBack(connection); // a failed commit leaves the transaction open
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
