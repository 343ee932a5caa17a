import { openDatabase } from "../../adapters/database/index.ts";
import { firstEventIdAt } from "../../adapters/database/partitions/tables.ts";
import { openStorage, type Storage } from "../../adapters/index.ts";
import { advanceClock } from "../harness/clock.ts";
import { onPostgres } from "./cluster.ts";
import { cpuMsOfCommands } from "./cpu-time.ts";
import { createsLinks } from "./engine.ts";
import { interleaved, type Subject } from "./measure.ts";
import { KEY } from "./ours.ts";
import { answered, compare, compareValues, type Row } from "./table.ts";
import type { Ours } from "./workspace.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
// As many days as deliveries are kept, and those between the conversion and the first partition.
const AGE_DAYS = 35;
const EXPIRED = 1_000_000;
// Deleting all of them would take minutes.
const DELETE_MS = 20_000;
const MIN_RATIO = 0.95;

/** R with partitions of a month of deliveries, and how fast the purge drops a day of deliveries instead of deleting it. */
export const partitionRows = () =>
  onPostgres(
    async (workspace, [plainUrl, partitionedUrl]) => {
      const [one, other] = [plainUrl as string, partitionedUrl as string];
      await partition(other);
      const [plain, partitioned] = [await workspace.oursOn(one), await workspace.oursOn(other)];
      const before = [one, other].map(cpuMs);
      const measured = await interleaved([
        await creates("partitioned", partitioned),
        await creates("plain", plain),
      ]);
      const [plainMs, partitionedMs] = [one, other].map(
        (url, index) => cpuMs(url) - (before[index] as number),
      );
      const us = (ms: number | undefined, name: string) =>
        (((ms as number) * 1000) / answered(measured, name)).toFixed(0);
      const rows: Row[] = [
        compare("R, PostgreSQL, partitioned / not", measured, ["partitioned", "plain"], {
          atLeast: MIN_RATIO,
          note: `${workspace.syncNote()}, PostgreSQL: ${us(partitionedMs, "partitioned")} and ${us(plainMs, "plain")} µs`,
        }),
      ];
      await Promise.all([plain.server.stop(), partitioned.server.stop()]);
      const [deleted, dropped] = [await purge(one), await purge(other)];
      rows.push(
        compareValues("expired deliveries dropped / deleted, per second", dropped.rate, deleted.rate, {
          note: `${describe(dropped)}; deleted: ${describe(deleted)}`,
        }),
      );
      return rows;
    },
    { databases: 2 },
  );

/** Returns the processor time of the connections to a database. */
function cpuMs(url: string): number {
  return cpuMsOfCommands(new URL(url).pathname.slice(1));
}

async function creates(name: string, ours: Ours): Promise<Subject> {
  return { name, server: ours.server, ...(await createsLinks(ours)) };
}

/** Partitions a database as if that had been a month ago: one partition for each day since. */
async function partition(url: string): Promise<void> {
  const { knex, close } = openDatabase(url);
  const storage = openStorage(url, Buffer.from(KEY, "base64url"));
  await storage.migrate();
  advanceClock(-AGE_DAYS * DAY_MS);
  await storage.partition([]);
  for (let day = 0; day < AGE_DAYS; day++) {
    await knex.raw(INSERT_DELIVERIES, [firstEventIdAt(Date.now()), Date.now(), Date.now() + 31 * DAY_MS, 1]);
    advanceClock(DAY_MS);
    await storage.purgeExpired();
  }
  await Promise.all([close(), storage.close()]);
}

const INSERT_DELIVERIES = `with given as (select ?::text as id, ?::bigint as created, ?::bigint as expires)
  insert into deliveries (webhook_id, event_id, status, attempts, log, created_at, expires_at)
  select 'whk_01M000000000000000000000' || lpad((n % 40)::text, 2, '0'), left(id, 20) || lpad(n::text, 10, '0'),
    'succeeded', 1, '[{"at":1795400000000,"status":200,"duration_ms":12}]', created, expires
  from given, generate_series(1, ?::int) n`;

type Purge = { rows: number; ms: number; rate: number; walBytes: number };

/** Purges a day of expired deliveries, for a limited time. */
async function purge(url: string): Promise<Purge> {
  const { knex, close } = openDatabase(url, { timeoutMs: 600_000 });
  const storage: Storage = openStorage(url, Buffer.from(KEY, "base64url"));
  const yesterday = Date.now() - DAY_MS;
  await knex("deliveries").delete();
  await knex.raw(INSERT_DELIVERIES, [firstEventIdAt(yesterday), yesterday, Date.now() - 60_000, EXPIRED]);
  await knex.raw("vacuum analyze deliveries");
  const position = async () => (await knex.raw("select pg_current_wal_lsn() as lsn")).rows[0].lsn;
  const before = await position();
  const count = async () => Number((await knex("deliveries").count({ rows: "*" }))[0]?.rows);
  const rowsBefore = await count();
  const stop = new AbortController();
  const started = performance.now();
  const timer = setTimeout(() => stop.abort(), DELETE_MS);
  await storage.purgeExpired(stop.signal);
  clearTimeout(timer);
  const ms = performance.now() - started;
  const rows = rowsBefore - (await count());
  const { rows: wal } = await knex.raw("select pg_wal_lsn_diff(pg_current_wal_lsn(), ?) as bytes", [before]);
  await Promise.all([close(), storage.close()]);
  return { rows, ms, rate: (rows * 1000) / ms, walBytes: Number(wal[0].bytes) };
}

function describe({ rows, ms, walBytes }: Purge): string {
  return `${rows} in ${(ms / 1000).toFixed(2)} s, ${(walBytes / rows).toFixed(1)} bytes of log each`;
}
