import type { EventEmitter } from "node:events";
import { realpathSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type Sqlite from "better-sqlite3";
import type { Query, Runner } from "knex/lib/client.js";
import BetterSqliteClient from "knex/lib/dialects/better-sqlite3/index.js";
import SqliteTransaction from "knex/lib/dialects/sqlite3/execution/sqlite-transaction.js";
import { createFolder } from "../../durable-files.ts";
import { withQueryRetries } from "../retry.ts";
import { observed, observedTogether, operationOf, type StatementObserver } from "../statement-observer.ts";
import {
  findLog,
  LOCK_WAIT_MS,
  openConnection,
  prepared,
  rollBack,
  type SqliteSettings,
  synchronousOf,
  verifyLog,
} from "./connection.ts";
import { createThread } from "./thread.ts";
import type { Statement } from "./worker.ts";
import { createWriter } from "./writer.ts";

type Connection = Sqlite.Database & { __knexTxId?: string };
type Sent = {
  sql: string;
  bindings?: unknown[];
  response?: unknown;
  context?: unknown;
};

type Open = ReturnType<typeof openFile>;

const LOCK_POLL_MS = 5;

/** Reads need no pool, single writes commit in groups on a thread, and transactions lock when they begin. */
export class SqliteClient extends BetterSqliteClient {
  // Only in the client that Knex derives those of transactions from.
  current?: Open;

  /** Creates no pool: everything except transactions is synchronous, so one connection is enough. */
  override initializePool(): void {}

  override async acquireConnection(): Promise<Connection> {
    return this.opened().main;
  }

  override async releaseConnection(): Promise<void> {}

  override async destroy(callback?: (error?: unknown) => void): Promise<void> {
    const open = this.current;
    delete this.current;
    if (open) {
      open.turnReads.run();
      await open.reader.close();
      await open.writer.close();
      open.transactional.close();
      open.main.close();
    }
    callback?.();
  }

  /** Runs work with the connection for transactions, while nothing else of this process is written. */
  exclusively<T>(isDurable: boolean, work: (connection: Connection) => Promise<T>): Promise<T> {
    const open = this.opened();
    const connection: Connection = open.transactional;
    return open.writer.exclusively(async () => {
      connection.pragma(`synchronous = ${isDurable ? synchronousOf(this.connectionSettings) : "NORMAL"}`);
      try {
        const result = await work(connection);
        verifyLog(open.log);
        return result;
      } finally {
        rollBack(connection); // a failed commit leaves the transaction open
      }
    });
  }

  override transaction(...args: unknown[]): ExclusiveTransaction {
    return new ExclusiveTransaction(this, ...args);
  }

  // Knex gives the clients of transactions only the configuration.
  get observer(): StatementObserver | undefined {
    return (this.config as { observer?: StatementObserver }).observer;
  }

  override _query(connection: Connection, query: Sent): Promise<Sent> {
    const { sql } = query;
    const run = () => this.runQuery(connection, query);
    return observed(this.observer, operationOf(sql), sql, run, connection.__knexTxId);
  }

  private async runQuery(connection: Connection, query: Sent): Promise<Sent> {
    const statement = prepared(connection, query.sql);
    const bindings = this._formatBindings(query.bindings ?? []);
    if (statement.reader) {
      const read = () => statement.all(bindings);
      query.response = this.transacting ? read() : await this.opened().turnReads.add(read);
      return query;
    }
    // The client of a transaction (`transacting`) writes on its own connection.
    const isSingleWrite = !this.transacting && !statement.readonly;
    const changes = isSingleWrite
      ? await this.opened().writer.write([{ sql: query.sql, bindings }])
      : statement.run(bindings).changes;
    query.response = { changes };
    // No `lastID`: every key is generated before the row is inserted.
    query.context = { changes };
    return query;
  }

  override runner(query: Query): Runner {
    const create = () => super.runner(query);
    return this.transacting ? create() : withQueryRetries(query, create);
  }

  /** Runs statements, all or none, and resolves to the number of rows that the first one changed. */
  write(statements: Statement[]): Promise<number> {
    const formatted = statements.map(({ sql, bindings }) => ({
      sql,
      bindings: this._formatBindings(bindings),
    }));
    return observedTogether(this.observer, formatted, async () => this.opened().writer.write(formatted));
  }

  async readOnThread(query: { sql: string; bindings: readonly unknown[] }): Promise<unknown[]> {
    this.emit("query", query); // as Knex does for the queries that it runs itself
    const { sql } = query;
    return observed(this.observer, operationOf(sql), sql, () =>
      this.opened().reader.ask({ read: { sql, bindings: this._formatBindings([...query.bindings]) } }),
    );
  }

  private opened(): Open {
    this.current ??= openFile(this.connectionSettings, this);
    return this.current;
  }
}

function openFile(given: SqliteSettings, events: EventEmitter) {
  createFolder(path.dirname(given.filename));
  const main: Connection = openConnection(given);
  // SQLite keeps the log beside the file that a symbolic link refers to.
  const settings = { ...given, filename: realpathSync(given.filename) };
  main.pragma("schema_version"); // the first read creates the log
  const log = findLog(settings.filename);
  return {
    main,
    transactional: openConnection(settings),
    log,
    writer: createWriter(createThread({ settings, log }), main, events),
    reader: createThread({ settings, log }),
    turnReads: createTurnReads(main),
  };
}

/** Takes the write lock at BEGIN. Otherwise one of two transactions that read first would fail when it writes. */
class ExclusiveTransaction extends SqliteTransaction<SqliteClient, Connection> {
  override async acquireConnection<T>(
    config: { connection?: Connection; isDurable?: boolean } | undefined,
    run: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    if (config?.connection || this.client.transacting) return super.acquireConnection(config, run);
    return this.client.exclusively(config?.isDurable ?? true, (connection) =>
      super.acquireConnection({ ...config, connection }, run),
    );
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

/** Reads of a turn share a transaction: a small read takes less time than taking and releasing the lock. */
export function createTurnReads(connection: Sqlite.Database) {
  let waiting: (() => void)[] = [];
  const runAll = (reads: (() => void)[]) => {
    for (const read of reads) read();
  };
  const runTogether = connection.transaction(runAll);

  function run() {
    const reads = waiting;
    waiting = [];
    try {
      runTogether(reads);
    } catch {
      runAll(reads); // each takes the lock for itself, or reports why it can't
    }
  }

  return {
    /** Runs a read at the end of the turn. */
    add: <Result>(read: () => Result): Promise<Result> =>
      new Promise((resolve, reject) => {
        waiting.push(() => {
          try {
            resolve(read());
          } catch (error) {
            reject(error);
          }
        });
        if (waiting.length === 1) setImmediate(run);
      }),
    run,
  };
}
