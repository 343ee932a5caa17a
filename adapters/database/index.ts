import { mkdirSync } from "node:fs";
import path from "node:path";
import knexFactory, { type Knex } from "knex";
import { type Engine, engineOf, knexConfig, sqliteFile } from "./engine.ts";
import { createInserter, type Insert, type Insertion } from "./inserter.ts";
import { migrations, steps } from "./migrations/index.ts";
import { migrate, pending } from "./migrations/migrate.ts";
import { createPrepare, type Prepare } from "./statement.ts";
import { persistently } from "./unavailable.ts";

/** An open database: what every store is made of. Times in it are epoch milliseconds. */
export type Database = {
  knex: Knex;
  engine: Engine;
  prepare: Prepare;
  /** The insertion of small rows, grouped. */
  inserter(insertion: Insertion): Insert;
  /**
   * Runs several statements as one: all of them are committed, or none. Run again from the start when the database
   * undid it for the sake of another one, so `work` must do nothing else.
   */
  transaction<T>(work: (trx: Knex.Transaction) => Promise<T>): Promise<T>;
  /** Brings the schema up to date; resolves to the names applied. Safe to call from several processes. */
  migrate(): Promise<string[]>;
  /** Resolves to the names of migrations that are still to be applied; rejects when the database is away. */
  pendingMigrations(): Promise<string[]>;
  /** Tells a listener the text of every statement that is sent, never its values. Returns how to stop that. */
  onStatement(listener: (sql: string) => void): () => void;
  /** Calls back for each checkpoint of a SQLite file that failed. It is retried. */
  onCheckpointError(listener: (error: Error) => void): void;
  close(): Promise<void>;
};

/** Opens the database behind a `DATABASE_URL`; connects lazily, creates the folder of a SQLite file. */
export function openDatabase(url: string): Database {
  const engine = engineOf(url);
  if (engine === "sqlite") mkdirSync(path.dirname(sqliteFile(url)), { recursive: true });
  const knex = knexFactory({
    ...knexConfig(url),
    migrations: { migrationSource: migrations(engine), disableTransactions: engine === "mysql" },
    log: silent,
  });
  const statements = createPrepare(knex);
  const transaction: Database["transaction"] = (work) => persistently(() => knex.transaction(work), false);

  return {
    knex,
    engine,
    prepare: statements.prepare,
    inserter: (insertion) => createInserter({ knex, engine, ...statements }, insertion),

    transaction,

    migrate: () => migrate({ knex, engine, transaction }),

    pendingMigrations: () => pending({ knex }, steps),

    onStatement(listener) {
      const hear = ({ sql }: { sql: string }) => listener(sql);
      knex.on("query", hear);
      return () => void knex.off("query", hear);
    },

    onCheckpointError: (listener) => void knex.client.on("checkpoint-error", listener),

    close: () => knex.destroy(),
  };
}

// Knex prints its warnings itself; ours come from the caller, with their context.
const silent = { warn() {}, error() {}, debug() {}, deprecate() {} };
