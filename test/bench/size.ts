import { engineOf } from "../../adapters/database/engine.ts";
import { type Fill, fill } from "./fill.ts";
import { median } from "./load.ts";
import { interleaved } from "./measure.ts";
import { type Seeded, seed } from "./seed.ts";
import { answered, compare, type Row, row } from "./table.ts";
import { createsLinks, issuesTokens } from "./workloads.ts";
import { count, eachDatabase, expectStored, SCALE, type Section, type Workspace } from "./workspace.ts";

const LINKS = 10_000_000 * SCALE;
const MANY_TOKENS = 50_000_000 * SCALE;
const MANY_LINKS = 20_000_000 * SCALE;
const MONTH_MS = 30 * 86_400_000;
const MIN_RATIO = 0.9;
const MAX_START_S = 1.5;
const STARTS = 5;

const millions = (value: number) => `${(value / 1e6).toLocaleString("en")} M`;
const onDatabases = eachDatabase(tokensAndLinks, ["sqlite", "postgres"]);

export const size: Section = {
  ...onDatabases,
  parts: ["links", ...(onDatabases.parts as string[])],
  long: true,
  run: (workspace, parts) =>
    parts.includes("links") ? starts(workspace) : onDatabases.run(workspace, parts),
};

async function starts(workspace: Workspace): Promise<Row[]> {
  const rows: Row[] = [];
  for (const links of [0, LINKS]) {
    const seeded = await seed(await workspace.database("sqlite", `${links}`));
    const { organizationId } = seeded;
    const note = links ? await filled(seeded.url, { links: [{ count: links, organizationId }] }) : undefined;
    const name = `start to ready, ${links ? `${millions(links)} links` : "new database"}, s`;
    rows.push(row(name, await startSeconds(workspace, seeded), { atMost: MAX_START_S, note }));
  }
  return rows;
}

/** Returns how long the server takes from its start to its first 200 for `/readyz`: the median, in seconds. */
async function startSeconds(workspace: Workspace, seeded: Seeded): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < STARTS; round++) {
    const start = performance.now();
    const { host, server } = await workspace.restart(seeded);
    while ((await fetch(`http://${host}/readyz`)).status !== 200);
    times.push((performance.now() - start) / 1000);
    await server.stop();
  }
  return median(times);
}

async function tokensAndLinks(workspace: Workspace, url: string, name: string): Promise<Row[]> {
  const large = await seed(url);
  const note = await filled(url, {
    tokens: { count: MANY_TOKENS, expiresAt: Date.now() + MONTH_MS },
    links: [{ count: MANY_LINKS, organizationId: large.organizationId }],
  });
  const largeServer = await workspace.restart(large);
  const emptyServer = await workspace.ours(await workspace.database(engineOf(url), "empty"));
  const rows: Row[] = [];
  for (const [workload, load, table] of [
    ["T", issuesTokens, "tokens"],
    ["R", createsLinks, "links"],
  ] as const) {
    const before = await count(url, table);
    const measured = await interleaved([
      { name: "large", ...(await load(largeServer)) },
      { name: "empty", ...(await load(emptyServer)) },
    ]);
    expectStored(workload, (await count(url, table)) - before, answered(measured, "large"));
    const title = `${workload}, ${name}, ${millions(MANY_TOKENS)} tokens and ${millions(MANY_LINKS)} links / none`;
    const target = { atLeast: MIN_RATIO, note: `${note}, ${workspace.syncNote()}` };
    rows.push(compare(title, measured, ["large", "empty"], target));
  }
  return rows;
}

async function filled(url: string, rows: Fill): Promise<string> {
  const { seconds, bytes } = await fill(url, rows);
  return `${(bytes / 1e9).toFixed(1)} GB, filled in ${seconds.toFixed(0)} s`;
}
