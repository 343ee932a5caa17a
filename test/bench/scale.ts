import { onPostgres } from "./cluster.ts";
import { createsLinks } from "./engine.ts";
import { type Fill, fill } from "./fill.ts";
import { interleaved, median, type Subject } from "./measure.ts";
import { seed } from "./ours.ts";
import type { Seeded } from "./seed.ts";
import { answered, compare, judged, type Row } from "./table.ts";
import { tokens } from "./workloads.ts";
import { count, expectStored, type Ours, section, type Workspace } from "./workspace.ts";

// BENCH_SCALE=0.01 makes the tables smaller, to try a change of the benchmark.
const SCALE = Number(process.env.BENCH_SCALE ?? 1);
const LINKS = 10_000_000 * SCALE;
const MANY_TOKENS = 50_000_000 * SCALE;
const MANY_LINKS = 20_000_000 * SCALE;
const MONTH_MS = 30 * 86_400_000;
const MIN_RATIO = 0.9;

type Part = () => Promise<Row[]>;
const parts: Record<string, Part> = {
  links: () => section((workspace) => linkRows(workspace)),
  sqlite: () =>
    section((workspace) => {
      const urls = ["large", "empty"].map((name) => `sqlite:${workspace.file(name)}.sqlite`);
      return tokenRows(workspace, urls, "SQLite full");
    }),
  postgres: () => onPostgres((workspace, urls) => tokenRows(workspace, urls, "PostgreSQL"), { databases: 2 }),
};

/** Large tables compared with small ones. */
export const sizeRows = Object.assign(
  async (wanted: string[]): Promise<Row[]> => {
    const rows: Row[] = [];
    for (const [name, part] of Object.entries(parts))
      if (wanted.length === 0 || wanted.includes(name)) rows.push(...(await part()));
    return rows;
  },
  { parts: Object.keys(parts) },
);

/** The start with many links. */
async function linkRows(workspace: Workspace): Promise<Row[]> {
  const large = await seedFile(workspace, "large");
  const note = await filled(large.url, { links: [{ count: LINKS, organizationId: large.organizationId }] });
  const empty = await seedFile(workspace, "empty");
  const [emptyS, largeS] = [await startSeconds(workspace, empty), await startSeconds(workspace, large)];
  const target = { atMost: 1.5 };
  const name = `start to ready, ${(LINKS / 1e6).toLocaleString("en")} M links, beside a new database, s`;
  return [
    judged({ name: "start to ready, new database, s", ours: [emptyS] }, target),
    judged({ name, ours: [largeS], reference: [emptyS], note }, target),
  ];
}

const STARTS = 5;

/** Returns how long the server takes from its start to its first 200 for `/readyz`: the median, in seconds. */
export async function startSeconds(workspace: Workspace, seeded: Seeded): Promise<number> {
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

/** T and R with large tables and with empty ones. */
async function tokenRows(workspace: Workspace, urls: string[], name: string): Promise<Row[]> {
  const [large, empty] = (await Promise.all(urls.map((url) => seed(url)))) as [Seeded, Seeded];
  const note = await filled(large.url, {
    tokens: { count: MANY_TOKENS, expiresAt: Date.now() + MONTH_MS },
    links: [{ count: MANY_LINKS, organizationId: large.organizationId }],
  });
  const before = { T: await count(large.url, "tokens"), R: await count(large.url, "links") };
  const [largeServer, emptyServer] = [await workspace.restart(large), await workspace.restart(empty)];
  const workloads: Record<"T" | "R", (server: Ours) => Promise<Pick<Subject, "next" | "expected">>> = {
    T: async ({ host, clients }) => ({ next: tokens(host, clients), expected: 200 }),
    R: createsLinks,
  };
  const rows: Row[] = [];
  const sizes = `${(MANY_TOKENS / 1e6).toLocaleString("en")} M tokens and ${(MANY_LINKS / 1e6).toLocaleString("en")} M links`;
  for (const workload of ["T", "R"] as const) {
    const measured = await interleaved([
      { name: "large", server: largeServer.server, ...(await workloads[workload](largeServer)) },
      { name: "empty", server: emptyServer.server, ...(await workloads[workload](emptyServer)) },
    ]);
    const stored = (await count(large.url, workload === "T" ? "tokens" : "links")) - before[workload];
    expectStored(workload, stored, answered(measured, "large"));
    rows.push(
      compare(`${workload}, ${name}, ${sizes} / none`, measured, ["large", "empty"], {
        atLeast: MIN_RATIO,
        note: `${note}, ${workspace.syncNote()}`,
      }),
    );
  }
  return rows;
}

/** Fills a database, and describes it. */
async function filled(url: string, rows: Fill): Promise<string> {
  const { seconds, bytes } = await fill(url, rows);
  return `${(bytes / 1e9).toFixed(1)} GB, filled in ${seconds.toFixed(0)} s`;
}

function seedFile(workspace: Workspace, name: string): Promise<Seeded> {
  return seed(`sqlite:${workspace.file(name)}.sqlite`);
}
