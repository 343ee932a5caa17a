import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import knexFactory from "knex";
import { knexConfig } from "../../adapters/database/engine.ts";
import type { PostgresServer } from "../harness/database/postgres.ts";
import type { NextRequest } from "./load.ts";
import { scheduled } from "./measure.ts";
import { cpuMsOf } from "./process.ts";
import type { Ours } from "./workspace.ts";

/** Processor time in milliseconds. */
export type Clocks = { serverMs: number; databaseMs: number };
type Snapshot = Record<string, unknown> & { clocks: Clocks & { at: number } };

export type Load = { next: NextRequest; rate: number; seconds: number };

const TABLES = ["tokens", "links", "events", "deliveries", "click_counts"];
// Statistics are stored within 2 s, and webhooks delivered.
const SETTLE_MS = 4000;
const IDLE_MS = 5000;
const TICKS_PER_S = 100;

export type Meter = ReturnType<typeof createMeter>;
/** What requests cost, per request. */
export type Cost = Awaited<ReturnType<Meter["measure"]>>;

/** Measures what requests cost linkgate and its database server, which serve nothing else. */
export function createMeter({ url, server }: Ours, database: PostgresServer) {
  const knex = knexFactory(knexConfig(url));
  let idle: Clocks = { serverMs: 0, databaseMs: 0 };
  const readClocks = () => ({
    at: performance.now(),
    serverMs: server.cpuMs(),
    databaseMs: databaseMs(database.pid),
  });

  /** Reads the log, the size and the rows, and after them the clocks: the snapshot itself takes time, too. */
  async function takeSnapshot(): Promise<Snapshot> {
    const counts = TABLES.map((table) => `(select count(*) from ${table}) as ${table}`);
    const sizes = TABLES.map((table) => `pg_total_relation_size('${table}')`).join(" + ");
    const sql = `select pg_current_wal_insert_lsn() - '0/0' as wal, ${sizes} as disk, ${counts}`;
    const { rows } = await knex.raw(sql);
    return { ...rows[0], clocks: readClocks() };
  }

  return {
    /** Measures what they do without requests, per millisecond. It is subtracted from now on. */
    async calibrate(): Promise<Clocks> {
      await sleep(SETTLE_MS);
      const { clocks: before } = await takeSnapshot();
      await sleep(IDLE_MS);
      const after = readClocks();
      const perMs = (clock: keyof Clocks) => (after[clock] - before[clock]) / (after.at - before.at);
      idle = { serverMs: perMs("serverMs"), databaseMs: perMs("databaseMs") };
      return idle;
    },

    /** Sends requests, and waits until everything that follows from them is done. */
    async measure(...loads: Load[]) {
      const { clocks, ...before } = await takeSnapshot();
      let requests = 0;
      for (const { next, rate, seconds } of loads) {
        const subject = { name: "the day", server, next, expected: [200, 201, 302] };
        requests += (await scheduled(subject, rate, seconds)).answered;
      }
      await sleep(SETTLE_MS);
      const end = readClocks();
      const after = await takeSnapshot();
      const usOf = (clock: keyof Clocks) => {
        const idleMs = (end.at - clocks.at) * idle[clock];
        return ((end[clock] - clocks[clock] - idleMs) * 1000) / requests;
      };
      const added = (of: string) => (Number(after[of]) - Number(before[of])) / requests;
      return {
        requests,
        /** Processor time in microseconds. */
        serverUs: usOf("serverMs"),
        databaseUs: usOf("databaseMs"),
        /** Of the write-ahead log. */
        walBytes: added("wal"),
        /** Of tables and indexes. */
        diskBytes: added("disk"),
        rows: Object.fromEntries(TABLES.map((table) => [table, added(table)])),
      };
    },

    /** Sets whether the first change of each page after a checkpoint writes the whole page, and starts with a checkpoint. */
    async writeFullPages(value: "on" | "off", compression: "off" | "lz4" = "off"): Promise<void> {
      await knex.raw(`alter system set full_page_writes = ${value}`);
      await knex.raw(`alter system set wal_compression = ${compression}`);
      await knex.raw("select pg_reload_conf()");
      await knex.raw("checkpoint");
    },

    async connections(): Promise<number> {
      const { rows } = await knex.raw(
        "select count(*) from pg_stat_activity where client_port is not null and backend_type = 'client backend' and pid <> pg_backend_pid()",
      );
      return Number(rows[0].count);
    },

    close: () => knex.destroy(),
  };
}

/** The processor time of a database server: its processes, and those that have ended. */
function databaseMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [cutime, cstime] = fields.slice(13, 15).map(Number) as [number, number];
  return cpuMsOf(pid) + ((cutime + cstime) * 1000) / TICKS_PER_S;
}
