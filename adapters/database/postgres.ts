import { once } from "node:events";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import PgClient from "knex/lib/dialects/postgres/index.js";
import type { Client } from "pg";
import { hasCode } from "./errors.ts";
import { lockLimitOf, withLimits } from "./limited-client.ts";

type PgConnection = Client & {
  connection: { stream: Duplex };
  processID: number | null;
  secretKey: number | null;
  /** Knex sets it during a transaction. */
  __knexTxId?: string;
};

const INT8 = 20; // the type's OID

/** Knex's PostgreSQL dialect, whose connections are used for a limited time, and which accepts strings with NUL. */
export class PostgresClient extends withLimits(PgClient, {
  streamOf: (connection) => (connection as PgConnection).connection.stream,
  setUp: configure,
  cut,
}) {
  /** Parses bigints as numbers: all are milliseconds or counts, far below 2^53. */
  _driver() {
    const driver = PgClient.prototype._driver.call(this);
    driver.types.setTypeParser(INT8, Number);
    return driver;
  }

  async _acquireOnlyConnection(): Promise<object> {
    const connection = await PgClient.prototype._acquireOnlyConnection.call(this);
    this.watchNew(connection);
    return connection;
  }

  /** Replaces NUL, because an id with one is merely unknown, and must not fail the statement. */
  override _query(connection: unknown, query: { sql: string; bindings?: unknown[] }): Promise<unknown> {
    const bindings = query.bindings?.map((value) => (typeof value === "string" ? toStorable(value) : value));
    const run = () => super._query(connection, bindings ? Object.assign(query, { bindings }) : query);
    const isAlone = (connection as PgConnection).__knexTxId === undefined;
    // Within a transaction, `this` is another client, without limits.
    return isAlone && this.limits.timeoutMs === Number.POSITIVE_INFINITY
      ? withSettings(connection as PgConnection, `${LOCK_TIMEOUT}; ${NO_STATEMENT_TIMEOUT}`, run)
      : run();
  }

  /** A commit that isn't durable doesn't wait for a standby, so it takes no turn among those that do. */
  override transaction(container: unknown, config?: { isDurable?: boolean }, outer?: unknown): unknown {
    const client = config?.isDurable === false ? this.local : this;
    return super.transaction.call(client, container, config, outer);
  }

  /** The server ends the statement: behind a pooler, a request to cancel it wouldn't reach its session. */
  override runFor<T>(ms: number, run: (connection: object) => Promise<T>): Promise<T> {
    return super.runFor(ms, (connection) =>
      withSettings(connection as PgConnection, `set local statement_timeout = ${Math.ceil(ms)}`, () =>
        run(connection),
      ),
    );
  }
}

const LOCK_TIMEOUT = `set local lock_timeout = ${lockLimitOf(Number.POSITIVE_INFINITY)}`;

/** Behind a pooler, a session may have the time limit of the process that last used it. */
const NO_STATEMENT_TIMEOUT = "set local statement_timeout = 0";

async function configure(connection: object, timeoutMs: number): Promise<void> {
  const limit = Number.isFinite(timeoutMs) ? `; set statement_timeout = ${Math.ceil(timeoutMs)}` : "";
  await (connection as PgConnection).query(`set lock_timeout = ${lockLimitOf(timeoutMs)}${limit}`);
}

const CANCEL_REQUEST = 80_877_102;
const CANCEL_MS = 500;
// One request at a time, for which the pool leaves a connection.
let canceling = Promise.resolve();

/** No time limit of the server ends a commit that waits for a standby, so the connection is used until that is canceled. */
async function cut(connection: object, error: Error): Promise<void> {
  const { stream } = (connection as PgConnection).connection;
  // Without its response: a canceled commit must not be taken for one that succeeded.
  stream
    .removeAllListeners("data")
    .resume()
    .once("end", () => stream.destroy(error));
  canceling = canceling.then(() => cancel(connection as PgConnection));
  await canceling;
  await closedInTime(stream.end());
  stream.destroy(error);
}

async function cancel({ host, port, processID, secretKey }: PgConnection): Promise<void> {
  if (processID === null || secretKey === null) return;
  const message = Buffer.alloc(16);
  for (const [index, word] of [message.length, CANCEL_REQUEST, processID, secretKey].entries())
    message.writeInt32BE(word, index * 4);
  const socket = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
  // The server closes the connection. PgBouncer 1.18 exits if its client does before the request is passed on.
  socket.unref().on("error", () => {});
  socket.resume().write(message);
  await closedInTime(socket);
}

const closedInTime = (stream: Duplex) =>
  Promise.race([once(stream, "close").catch(() => {}), sleep(CANCEL_MS)]);

async function withSettings<T>(
  connection: PgConnection,
  settings: string,
  run: () => Promise<T>,
): Promise<T> {
  await connection.query(`begin; ${settings}`);
  try {
    const result = await run();
    await connection.query("commit");
    return result;
  } catch (error) {
    await connection.query("rollback").catch(() => {}); // the connection may be lost
    throw error;
  }
}

/** Replaces what PostgreSQL cannot store, NUL and lone surrogates, with U+FFFD. */
export function toStorable(text: string): string {
  return text.isWellFormed() && !text.includes("\0") ? text : text.toWellFormed().replaceAll("\0", "\ufffd");
}

/** Returns whether a pooler sent a statement to a connection where it wasn't prepared, or prepared it twice. */
export const isNameConflict = hasCode(
  "26000", // PostgreSQL invalid_sql_statement_name
  "42P05", // PostgreSQL duplicate_prepared_statement
);
