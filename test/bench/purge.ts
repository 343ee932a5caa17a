import knexFactory from "knex";
import { knexConfig } from "../../adapters/database/engine.ts";
import type { TokenRow } from "../../adapters/database/tables/oauth.ts";
import { ENGINE_PARTS, onEachDatabase } from "./each-database.ts";
import { interleaved, type Subject, scheduled } from "./measure.ts";
import { compareValues, type Row } from "./table.ts";
import { fetchToken, tokens } from "./workloads.ts";
import { count, type Ours } from "./workspace.ts";

const BACKLOG = 200_000;
const CHUNK = 500;
const UNTIL_PURGE_S = 8; // the purge starts 5 seconds after the server
const PURGE_S = 12;
const MIN_RATIO = 2;

/** How much faster expired tokens are deleted than tokens are issued, at half of the rate that saturates the server. */
export const purgeRows = Object.assign(
  (parts: string[]) =>
    onEachDatabase(parts, async (workspace, url, name): Promise<Row[]> => {
      const first = await workspace.oursOn(url);
      const warm = (await interleaved([issues(first)], { seconds: 1, connections: [16] })).get("T");
      const rate = Math.floor((warm?.levels[0]?.rate ?? 0) / 2);
      await scheduled(issues(first), rate, 2);
      const idle = await scheduled(issues(first), rate, PURGE_S / 2);
      await fetchToken(first.host, first.clients[0] as Ours["clients"][0]);
      await first.server.stop();
      await addExpired(url);

      const busy = await workspace.restart(first);
      await scheduled(issues(busy), rate, UNTIL_PURGE_S);
      const before = await count(url, "tokens");
      const started = performance.now();
      const during = await scheduled(issues(busy), rate, PURGE_S);
      const after = await count(url, "tokens");
      const perSecond = (before + during.answered - after) / ((performance.now() - started) / 1000);
      const left = after - during.answered;
      const note = `p99 of T ${during.p99.toFixed(1)} ms, without a purge ${idle.p99.toFixed(1)} ms, ${workspace.syncNote()}${left < BACKLOG / 20 ? ", the backlog ended" : ""}`;
      return [
        compareValues(`rows purged / tokens issued, per second, ${name}`, perSecond, rate, {
          atLeast: MIN_RATIO,
          note,
        }),
      ];
    }),
  { parts: ENGINE_PARTS },
);

const issues = ({ server, host, clients }: Ours): Subject => ({
  name: "T",
  server,
  next: tokens(host, clients),
  expected: 200,
});

/** Adds copies of a token that have expired. */
async function addExpired(url: string): Promise<void> {
  const knex = knexFactory(knexConfig(url));
  try {
    const row = (await knex("tokens").first()) as TokenRow;
    await knex.transaction(async (trx) => {
      for (let start = 0; start < BACKLOG; start += CHUNK) await trx("tokens").insert(copiesOf(row, start));
    });
  } finally {
    await knex.destroy();
  }
}

function copiesOf(row: TokenRow, start: number): TokenRow[] {
  const hour = 3_600_000;
  return Array.from({ length: CHUNK }, (_, index) => ({
    ...row,
    id_hash: `expired${String(start + index).padStart(36, "0")}`,
    expires_at: Date.now() - hour + start + index,
  }));
}
