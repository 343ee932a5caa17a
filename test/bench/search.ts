import type { Engine } from "../../adapters/database/engine.ts";
import { engineOf } from "../../adapters/database/engine.ts";
import { ENGINE_PARTS, onEachDatabase } from "./each-database.ts";
import { fill } from "./fill.ts";
import { seed } from "./ours.ts";
import { judged, type Row } from "./table.ts";
import { fetchToken } from "./workloads.ts";

// BENCH_SCALE=0.01 makes the tables smaller, to try a change of the benchmark.
const SCALE = Number(process.env.BENCH_SCALE ?? 1);
const LINKS = 1_000_000 * SCALE;
// Organizations that search at the same time as the largest one.
const OTHERS = 3;
const LINKS_OF_OTHERS = 200_000 * SCALE;
const SEARCHES = 200;
const REQUESTS = 500;
const MAX_MS: Record<Engine, number> = { sqlite: 1500, mysql: 1500, postgres: 150 };
const MAX_WAIT_MS = 50;

/** Searches of an organization with many links, and the requests of another one beside four organizations that search. */
export const searchRows = Object.assign(
  (parts: string[]) =>
    onEachDatabase(parts, async (workspace, url, name): Promise<Row[]> => {
      const seeded = await seed(url, { clients: OTHERS + 2 });
      const searching = seeded.organizationIds.slice(0, OTHERS + 1);
      await fill(url, {
        links: searching.map((organizationId, index) => ({
          organizationId,
          count: index === 0 ? LINKS : LINKS_OF_OTHERS,
        })),
      });
      const { host, clients } = await workspace.restart(seeded);
      const tokens = await Promise.all(clients.map((client) => fetchToken(host, client)));
      const get = async (token: string | undefined, path: string) => {
        const start = performance.now();
        const response = await fetch(`http://${host}${path}`, {
          headers: { authorization: `Bearer ${token}` },
        });
        await response.text();
        if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
        return performance.now() - start;
      };
      const search = (token: string | undefined, text: string) => get(token, `/v1/links?search=${text}`);

      const times: number[] = [];
      for (let index = 0; index < SEARCHES; index++) times.push(await search(tokens[0], textOf(index)));
      const rows = [
        judged(
          {
            name: `slowest of ${SEARCHES} searches of ${LINKS.toLocaleString("en")} links, ${name}, ms`,
            ours: [Math.max(...times)],
            note: `p50 ${percentile(times, 0.5)} ms`,
          },
          { atMost: MAX_MS[engineOf(url)] },
        ),
      ];

      const another = tokens.at(-1);
      const measure = async () => {
        const own = { search: [] as number[], list: [] as number[] };
        for (let index = 0; index < REQUESTS; index++) {
          own.search.push(await search(another, `absent-${index}`));
          own.list.push(await get(another, "/v1/links"));
        }
        return own;
      };
      await measure();
      const without = await measure();
      let isOver = false;
      const searches = tokens.slice(0, -1).map(async (token, index) => {
        while (!isOver) await search(token, `absent-${index}`);
      });
      const beside = await measure();
      isOver = true;
      await Promise.all(searches);
      for (const kind of ["search", "list"] as const) {
        const [p99, before] = [percentile(beside[kind], 0.99), percentile(without[kind], 0.99)];
        rows.push(
          judged(
            {
              name: `${kind} of another organization beside four searches, p99 longer by, ${name}, ms`,
              ours: [p99 - before],
              note: `p99 ${p99} instead of ${before} ms, longest ${percentile(beside[kind], 1)} ms`,
            },
            { atMost: MAX_WAIT_MS },
          ),
        );
      }
      return rows;
    }),
  { parts: ENGINE_PARTS },
);

/** Returns a text that one link contains, or none. */
function textOf(index: number): string {
  const number = 1 + Math.floor((index / SEARCHES) * LINKS);
  return index % 4 === 0 ? `absent-${number}` : `page%2F${number}`;
}

function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number;
  return Math.round(value * 10) / 10;
}
