import { parseArgs } from "node:util";
import { bytes } from "./bytes.ts";
import { day } from "./day.ts";
import { deliveries } from "./deliveries.ts";
import { pages } from "./pages.ts";
import { pooler, workers } from "./postgres.ts";
import { pinGenerator } from "./process.ts";
import { purge } from "./purge.ts";
import { requests } from "./requests.ts";
import { search } from "./search.ts";
import { size } from "./size.ts";
import { soak } from "./soak.ts";
import { addVersion, exchange, introspection, redirects, resources, tokens } from "./systems.ts";
import { type Row, report } from "./table.ts";
import { type Section, Skipped, Workspace } from "./workspace.ts";

const sections: Record<string, Section> = {
  tokens,
  resources,
  redirects,
  introspection,
  exchange,
  purge,
  workers,
  requests,
  pooler,
  deliveries,
  bytes,
  day,
  search,
  pages,
  size,
  soak,
};

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: { full: { type: "boolean" }, list: { type: "boolean" }, against: { type: "string" } },
});
const known = Object.entries(sections).flatMap(([name, { parts = [] }]) => [
  name,
  ...parts.map((part) => `${name}/${part}`),
]);
const unknown = names.filter((name) => !known.includes(name));
if (options.list || unknown.length > 0) {
  for (const name of unknown) console.error(`unknown row: ${name}. The rows are:`);
  console.log(known.join("\n"));
  process.exit(unknown.length > 0 ? 1 : 0);
}

pinGenerator();
const run = new Workspace();
for (const signal of ["SIGINT", "SIGTERM"])
  process.once(signal, () => void run.close().finally(() => process.exit(1)));
if (options.against) addVersion(run, options.against);
const rows: Row[] = [];
for (const [name, section] of Object.entries(sections)) {
  const { parts = [], apart, long } = section;
  const isWhole = names.includes(name) || (names.length === 0 && (!long || options.full));
  const wanted = isWhole ? parts : parts.filter((part) => names.includes(`${name}/${part}`));
  if (!isWhole && wanted.length === 0) continue;
  for (const group of apart ? wanted.map((part) => [part]) : [wanted]) await measure(name, section, group);
}
await run.close();
report(rows);

/** Measures parts of a section. If they fail, the others still run, but the run as a whole fails. */
async function measure(name: string, section: Section, parts: string[]): Promise<void> {
  const title = [name, parts.join(", ")].filter(Boolean).join("/");
  console.log(`${new Date().toISOString()} ${title}`);
  const workspace = new Workspace();
  run.defer(() => workspace.close());
  try {
    rows.push(...(await section.run(workspace, parts)));
  } catch (error) {
    if (error instanceof Skipped) return console.log(`SKIPPED ${title}: ${error.message}`);
    console.error(`FAILED ${title}:`, error);
    process.exitCode = 1;
  } finally {
    await workspace.close();
  }
}
