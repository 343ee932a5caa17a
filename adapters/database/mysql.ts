import type { Duplex } from "node:stream";
import { promisify } from "node:util";
import type { Knex } from "knex";
import Mysql2Client from "knex/lib/dialects/mysql2/index.js";
import type { Connection } from "mysql2";
import { lockLimitOf, SERVER_EXTRA_MS, withLimits } from "./limited-client.ts";

type MysqlConnection = Connection & { stream: Duplex };

/** Knex's dialect for MySQL and MariaDB, whose connections are used for a limited time. */
export class MysqlClient extends withLimits(Mysql2Client, {
  streamOf: (connection) => (connection as MysqlConnection).stream,
  setUp: configure,
}) {
  checkVersion(connection: object): Promise<unknown> {
    this.watchNew(connection);
    return Mysql2Client.prototype.checkVersion.call(this, connection);
  }

  override runFor<T>(ms: number, run: (connection: object) => Promise<T>): Promise<T> {
    return super.runFor(ms, async (connection) => {
      await send(connection, `SET SESSION ${statementLimit(ms)}`);
      try {
        return await run(connection);
      } finally {
        const usual = statementLimit(this.limits.timeoutMs + SERVER_EXTRA_MS);
        await send(connection, `SET SESSION ${usual}`).catch(() => {}); // the connection may be lost
      }
    });
  }
}

/** Limits the time of statements, on MySQL of those that read, and sets the time zone. */
async function configure(connection: object, timeoutMs: number): Promise<void> {
  // With READ COMMITTED, a transaction that waited for a lock reads what the previous holder wrote.
  await send(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  const lock = Math.max(1, Math.floor(lockLimitOf(timeoutMs) / 1000));
  await send(
    connection,
    `SET SESSION sql_mode = 'TRADITIONAL', time_zone = '+00:00', lock_wait_timeout = ${lock},
    innodb_lock_wait_timeout = ${lock}, ${statementLimit(timeoutMs)}`,
  );
  // On a node of Galera, each statement sees what any other node has acknowledged. Other servers may not know it.
  await send(connection, "SET SESSION wsrep_sync_wait = 7").catch(() => {});
}

/** Resolves to the number of nodes of a Galera cluster, or 0 if the server isn't one. */
export async function readClusterSize(knex: Knex): Promise<number> {
  const [[status]] = await knex.raw("show status like 'wsrep_cluster_size'");
  return Number(status?.Value ?? 0);
}

/** Each server reads the comment meant for it. */
function statementLimit(timeoutMs: number): string {
  const ms = Number.isFinite(timeoutMs) ? Math.ceil(timeoutMs) : 0; // no limit
  return `/*M!100101 max_statement_time = ${ms / 1000} */ /*!80000 max_execution_time = ${ms} */`;
}

const send = (connection: object, sql: string) =>
  promisify((done: (error: unknown) => void) => (connection as MysqlConnection).query(sql, done))();
