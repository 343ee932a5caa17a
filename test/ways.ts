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
import { ROOT } from "./harness/program.ts";
import { startTestService } from "./harness/service.ts";

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

type Way = [title: string, run: (token: string) => Promise<unknown>];
const WAYS: Record<string, Way> = {
  token: ["a token by client credentials", requestToken],
  link: ["a new link, until 201", () => api.createLink()],
  redirect: ["a redirect", () => read(fetch(`${service.url}/${slug}`, { redirect: "manual" }))],
  page: ["the page of links", () => browser.open(`${service.url}/dashboard/organizations/${app.id}/links`)],
  revocation: ["a revocation", (token) => postAsClient(service, "revoke", app, { token })],
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
  const relative = files.map((file) => path.relative(ROOT, file));
  return new Set(relative.filter((file) => /^(server|adapters|resources)\//.test(file)));
}

async function filesOf([, run]: Way): Promise<string[]> {
  for (let count = 0; count < WARM_UP; count++) await run(await requestToken());
  let common: Set<string> | undefined;
  for (let count = 0; count < REPETITIONS; count++) {
    const token = await requestToken();
    await readCalled();
    await run(token);
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
  for (const way of Object.values(WAYS)) rows.push(`| ${way[0]} | ${(await filesOf(way)).length} |`);
  const table = ["| Request | Files |", "|---|--:|", ...rows, ""].join("\n");
  const text = readFileSync(DOCUMENT, "utf8");
  if (!TABLE.test(text)) throw new Error("docs/architecture.md has no place for the table");
  writeFileSync(DOCUMENT, text.replace(TABLE, table));
  console.log(table);
}
session.disconnect();
await service.close();
