import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import knexFactory, { type Knex } from "knex";
import { knexConfig } from "../../adapters/database/engine.ts";
import type { PostgresServer } from "../harness/database/postgres.ts";
import { cpuMsOf } from "./cpu-time.ts";
import { type NextRequest, onSchedule, type Result } from "./load.ts";
import type { Ours } from "./workspace.ts";

/** What requests of one kind cost, per request. */
export type Cost = Result & {
  requests: number;
  /** Processor time in microseconds. */
  serverUs: number;
  databaseUs: number;
  /** Of the write-ahead log. */
  walBytes: number;
  /** Of tables and indexes. */
  diskBytes: number;
  /** Rows that were added, by table. */
  rows: Record<string, number>;
};

/** Processor time in milliseconds. */
export type Clocks = { serverMs: number; databaseMs: number };
type Snapshot = Clocks & { at: number; wal: number; disk: number; rows: Rows };
type Rows = Record<string, number>;

const TABLES = ["tokens", "links", "events", "deliveries", "click_counts"];
// Statistics are stored within 2 s, and webhooks delivered.
const SETTLE_MS = 4000;
const IDLE_MS = 5000;
const TICKS_PER_S = 100;

/** Measures what requests cost linkgate and its database server, which serve nothing else. */
export class Meter {
  readonly #ours: Ours;
  readonly #database: PostgresServer;
  readonly #knex: Knex;
  #idle: Clocks = { serverMs: 0, databaseMs: 0 };

  constructor(ours: Ours, database: PostgresServer) {
    this.#ours = ours;
    this.#database = database;
    this.#knex = knexFactory(knexConfig(ours.url));
  }

  /** Measures what they do without requests, per millisecond. It is subtracted from now on. */
  async calibrate(): Promise<Clocks> {
    await sleep(SETTLE_MS);
    const before = await this.#snapshot();
    await sleep(IDLE_MS);
    const after = await this.#snapshot("clocks first");
    const perMs = (clock: keyof Clocks) => (after[clock] - before[clock]) / (after.at - before.at);
    this.#idle = {
      serverMs: perMs("serverMs"),
      databaseMs: perMs("databaseMs"),
    };
    return this.#idle;
  }

  /** Sends requests at a rate, and waits until everything that follows from them is done. */
  async measure(next: NextRequest, expected: number[], rate: number, seconds: number): Promise<Cost> {
    return this.around(() => onSchedule({ port: this.#ours.port, next, expected, rate, seconds }));
  }

  /** Measures what the requests that `send` sends cost. */
  async around(send: () => Promise<Result>): Promise<Cost> {
    const before = await this.#snapshot();
    const result = await send();
    if (result.wrong > 0) throw new Error(`${result.wrong} unexpected responses`);
    await sleep(SETTLE_MS);
    const after = await this.#snapshot("clocks first");
    const usOf = (clock: keyof Clocks) => {
      const idleMs = (after.at - before.at) * this.#idle[clock];
      return ((after[clock] - before[clock] - idleMs) * 1000) / requests;
    };
    const requests = result.answered;
    const rows: Rows = {};
    for (const table of TABLES)
      rows[table] = ((after.rows[table] as number) - (before.rows[table] as number)) / requests;
    return {
      ...result,
      requests,
      serverUs: usOf("serverMs"),
      databaseUs: usOf("databaseMs"),
      walBytes: (after.wal - before.wal) / requests,
      diskBytes: (after.disk - before.disk) / requests,
      rows,
    };
  }

  /** Sets whether the first change of each page after a checkpoint writes the whole page, and starts with a checkpoint. */
  async writeFullPages(value: "on" | "off", compression: "off" | "lz4" = "off"): Promise<void> {
    await this.#knex.raw(`alter system set full_page_writes = ${value}`);
    await this.#knex.raw(`alter system set wal_compression = ${compression}`);
    await this.#knex.raw("select pg_reload_conf()");
    await this.#knex.raw("checkpoint");
  }

  /** Counts the connections of linkgate to the database server. */
  async connections(): Promise<number> {
    const { rows } = await this.#knex.raw(
      "select count(*) from pg_stat_activity where client_port is not null and backend_type = 'client backend' and pid <> pg_backend_pid()",
    );
    return Number(rows[0].count);
  }

  async close(): Promise<void> {
    await this.#knex.destroy();
  }

  /** The clocks are read outside of the time that the snapshot itself takes. */
  async #snapshot(order?: "clocks first"): Promise<Snapshot> {
    const counts = TABLES.map((table) => `(select count(*) from ${table}) as ${table}`);
    const sizes = TABLES.map((table) => `pg_total_relation_size('${table}')`).join(" + ");
    const read = () => ({
      at: performance.now(),
      serverMs: this.#ours.server.cpuMs(),
      databaseMs: databaseMs(this.#database.pid),
    });
    const early = read();
    const { rows } = await this.#knex.raw(
      `select pg_current_wal_insert_lsn() - '0/0' as wal, ${sizes} as disk, ${counts}`,
    );
    const { wal, disk, ...counted } = rows[0] as Rows;
    return { ...(order ? early : read()), wal: Number(wal), disk: Number(disk), rows: counted };
  }
}

/** The processor time of a database server: its processes, and those that have ended. */
function databaseMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [cutime, cstime] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(13, 15);
  return cpuMsOf(pid) + ((Number(cutime) + Number(cstime)) * 1000) / TICKS_PER_S;
}
