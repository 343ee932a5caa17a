// Counts the files of the product that one request executes, on a warm server, and writes them into docs/architecture.md.
//
//   npm run ways            writes the table
//   npm run ways -- token   lists the files of one request

import { readFileSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { apiAt } from "./harness/clients/api.ts";
import { browserOf } from "./harness/clients/dashboard.ts";
import { postAsClient } from "./harness/clients/oauth.ts";
import { startTestService } from "./harness/service.ts";

const ROOT = path.join(import.meta.dirname, "..");
const DOCUMENT = path.join(ROOT, "docs/architecture.md");
const TABLE = /(?<=<!-- ways -->\n)[\s\S]*?(?=<!-- \/ways -->)/;
// The files of each of these requests count: the others belong to what happened to run meanwhile.
const REPETITIONS = 5;
const WARM_UP = 20;

const service = await startTestService();
const app = await service.createOrganization();
const user = await service.createUser([app.id], undefined, "owner");
const { browser } = await browserOf(service, user);
const api = apiAt(service.url, await service.token(app));
const { slug } = await api.createLink();

const requestToken = async () => {
  const { body } = await postAsClient(service, "token", app, { grant_type: "client_credentials" });
  return String(body.access_token);
};
const read = async (request: Promise<Response>) => void (await (await request).text());

type Way = { title: string; prepare?(): Promise<string>; run(prepared: string): Promise<unknown> };
const WAYS: Record<string, Way> = {
  token: { title: "a token by client credentials", run: requestToken },
  link: { title: "a new link, until 201", run: () => api.createLink() },
  redirect: {
    title: "a redirect",
    run: () => read(fetch(`${service.url}/${slug}`, { redirect: "manual" })),
  },
  page: {
    title: "the page of links",
    run: () => browser.open(`${service.url}/dashboard/organizations/${app.id}/links`),
  },
  revocation: {
    title: "a revocation",
    prepare: requestToken,
    run: (token) => postAsClient(service, "revoke", app, { token }),
  },
};

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

/** Returns the product's files of which functions were called since the last reading. */
async function readCalled(): Promise<Set<string>> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const called = result.filter(({ functions }) => functions.some(({ ranges }) => ranges[0]?.count));
  const files = called.filter(({ url }) => url.startsWith("file:")).map(({ url }) => fileURLToPath(url));
  return new Set(
    files
      .map((file) => path.relative(ROOT, file))
      .filter((file) => /^(server|adapters|resources)\//.test(file)),
  );
}

async function filesOf({ prepare, run }: Way): Promise<string[]> {
  for (let count = 0; count < WARM_UP; count++) await run((await prepare?.()) ?? "");
  let common: Set<string> | undefined;
  for (let count = 0; count < REPETITIONS; count++) {
    const prepared = (await prepare?.()) ?? "";
    await readCalled();
    await run(prepared);
    const called = await readCalled();
    common = common?.intersection(called) ?? called;
  }
  return [...(common ?? [])].toSorted();
}

const [chosen] = process.argv.slice(2);
if (chosen) {
  const way = WAYS[chosen];
  if (!way) throw new Error(`${chosen} is none of ${Object.keys(WAYS).join(", ")}`);
  console.log((await filesOf(way)).join("\n"));
} else {
  const rows = [];
  for (const way of Object.values(WAYS)) rows.push(`| ${way.title} | ${(await filesOf(way)).length} |`);
  const table = ["| Request | Files |", "|---|--:|", ...rows, ""].join("\n");
  const text = readFileSync(DOCUMENT, "utf8");
  if (!TABLE.test(text)) throw new Error("docs/architecture.md has no place for the table");
  writeFileSync(DOCUMENT, text.replace(TABLE, table));
  console.log(table);
}
session.disconnect();
await service.close();
