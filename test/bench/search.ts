import { engineOf } from "../../adapters/database/engine.ts";
import { fill } from "./fill.ts";
import { percentile } from "./load.ts";
import { seed } from "./seed.ts";
import { row } from "./table.ts";
import { fetchToken, timed } from "./workloads.ts";
import { eachDatabase, SCALE } from "./workspace.ts";

const LINKS = 1_000_000 * SCALE;
// Organizations that search at the same time as the largest one.
const OTHERS = 3;
const LINKS_OF_OTHERS = 200_000 * SCALE;
const SEARCHES = 200;
const REQUESTS = 500;
const MAX_MS = { sqlite: 1500, mysql: 1500, postgres: 150 };
const MAX_WAIT_MS = 50;

/** Searches of an organization with many links, and the requests of another one beside four organizations that search. */
export const search = eachDatabase(async (workspace, url, name) => {
  const seeded = await seed(url, { clients: OTHERS + 2 });
  const searching = seeded.organizationIds.slice(0, OTHERS + 1);
  await fill(url, {
    links: searching.map((organizationId, index) => ({
      organizationId,
      count: index === 0 ? LINKS : LINKS_OF_OTHERS,
    })),
  });
  const { host, clients } = await workspace.restart(seeded);
  const tokens = await Promise.all(clients.map((client) => fetchToken({ host, clients: [client] })));
  const [largest, another] = [tokens[0] as string, tokens.at(-1) as string];
  const list = (token: string, query: string) =>
    timed(`http://${host}/v1/links${query}`, { authorization: `Bearer ${token}` });

  const times: number[] = [];
  for (let index = 0; index < SEARCHES; index++) times.push(await list(largest, `?search=${textOf(index)}`));
  const title = `slowest of ${SEARCHES} searches of ${LINKS.toLocaleString("en")} links, ${name}, ms`;
  const rows = [
    row(title, Math.max(...times), {
      atMost: MAX_MS[engineOf(url)],
      note: `p50 ${ms(percentile(times, 0.5))} ms`,
    }),
  ];

  const measure = async () => {
    const own = { search: [] as number[], list: [] as number[] };
    for (let index = 0; index < REQUESTS; index++) {
      own.search.push(await list(another, `?search=absent-${index}`));
      own.list.push(await list(another, ""));
    }
    return own;
  };
  await measure();
  const without = await measure();
  let isOver = false;
  const searches = tokens.slice(0, -1).map(async (token, index) => {
    while (!isOver) await list(token, `?search=absent-${index}`);
  });
  const beside = await measure();
  isOver = true;
  await Promise.all(searches);
  for (const kind of ["search", "list"] as const) {
    const [p99, before] = [percentile(beside[kind], 0.99), percentile(without[kind], 0.99)];
    const note = `p99 ${ms(p99)} instead of ${ms(before)} ms, longest ${ms(Math.max(...beside[kind]))} ms`;
    const title = `${kind} of another organization beside four searches, p99 longer by, ${name}, ms`;
    rows.push(row(title, p99 - before, { atMost: MAX_WAIT_MS, note }));
  }
  return rows;
});

/** Returns a text that one link contains, or none. */
function textOf(index: number): string {
  const number = 1 + Math.floor((index / SEARCHES) * LINKS);
  return index % 4 === 0 ? `absent-${number}` : `page%2F${number}`;
}

const ms = (value: number) => value.toFixed(1);
