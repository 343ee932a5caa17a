import type { TokenRow } from "../../adapters/database/tables/oauth.ts";
import { interleaved, type Subject, scheduled } from "./measure.ts";
import { levelsOf, row } from "./table.ts";
import { fetchToken, issuesTokens } from "./workloads.ts";
import { count, eachDatabase, type Ours, withDatabase } from "./workspace.ts";

const BACKLOG = 200_000;
const CHUNK = 500;
const UNTIL_PURGE_S = 8; // the purge starts 5 seconds after the server
const PURGE_S = 12;
const MIN_RATIO = 2;

/** How much faster expired tokens are deleted than tokens are issued, at half of the rate that saturates the server. */
export const purge = eachDatabase(async (workspace, url, name) => {
  const first = await workspace.ours(url);
  const warm = await interleaved([issues(first)], { seconds: 1, connections: [16] });
  const rate = Math.floor((levelsOf(warm, "T")[0]?.rate ?? 0) / 2);
  await scheduled(issues(first), rate, 2);
  const idle = await scheduled(issues(first), rate, PURGE_S / 2);
  await fetchToken(first);
  await first.server.stop();
  await addExpired(url);

  const busy = await workspace.restart(first);
  await scheduled(issues(busy), rate, UNTIL_PURGE_S);
  const before = await count(url, "tokens");
  const started = performance.now();
  const during = await scheduled(issues(busy), rate, PURGE_S);
  const after = await count(url, "tokens");
  const perSecond = (before + during.answered - after) / ((performance.now() - started) / 1000);
  const ended = after - during.answered < BACKLOG / 20 ? ", the backlog ended" : "";
  const tails = `p99 of T ${during.p99.toFixed(1)} ms, without a purge ${idle.p99.toFixed(1)} ms`;
  return [
    row(`rows purged / tokens issued, per second, ${name}`, perSecond, {
      reference: rate,
      atLeast: MIN_RATIO,
      note: `${tails}, ${workspace.syncNote()}${ended}`,
    }),
  ];
});

const issues = (ours: Ours): Subject => ({ name: "T", ...issuesTokens(ours) });

function addExpired(url: string): Promise<void> {
  return withDatabase(url, async (knex) => {
    const token = (await knex("tokens").first()) as TokenRow;
    const hourAgo = Date.now() - 3_600_000;
    const expired = Array.from({ length: BACKLOG }, (_, index) => ({
      ...token,
      id_hash: `expired${String(index).padStart(36, "0")}`,
      expires_at: hourAgo + index,
    }));
    await knex.batchInsert("tokens", expired, CHUNK);
  });
}
