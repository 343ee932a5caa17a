import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { openStorage } from "../../adapters/index.ts";
import { apiAt } from "../harness/clients/api.ts";
import { browserOf, firstPartyToken } from "../harness/clients/dashboard.ts";
import { createApp, isAcceptedByApi, refresh, runCodeFlow } from "../harness/clients/oauth.ts";
import { addTotp, logIn } from "../harness/clients/second-factor.ts";
import { createTestDatabase } from "../harness/database/test-database.ts";
import { addressOf, ROOT, runCommand, startServer, stopPrograms } from "../harness/program.ts";
import { populate, type TestService } from "../harness/service.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

// docs/operate/incidents.md: its commands and statements, on a running server.

const page = readFileSync(`${ROOT}docs/operate/incidents.md`, "utf8");

/** Returns the statements or commands of a section. */
function blocksOf(heading: string, language: "sql" | "sh"): string[] {
  const [, section = ""] = page.split(`\n## ${heading}\n`);
  const [own = ""] = section.split("\n## ");
  const blocks = own.matchAll(new RegExp(`^ *\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\`$`, "gm"));
  return [...blocks].flatMap(([, text = ""]) =>
    text
      .split(language === "sql" ? ";" : "\n")
      .map((one) => one.trim())
      .filter(Boolean),
  );
}

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-incidents-"));
const key = randomBytes(32);
const keyFile = path.join(folder, "encryption.key");
writeFileSync(keyFile, key.toString("base64url"), { mode: 0o600 });
const { url: databaseUrl, drop } = await createTestDatabase();
const settings = { DATABASE_URL: databaseUrl, ENCRYPTION_KEY_FILE: keyFile, LOG_LEVEL: "error" };
const server = startServer({ settings: { ...settings, PORT: "0", RATE_LIMIT: "off" } });
const url = await addressOf(server);
const storage = openStorage(databaseUrl, key);
const database = openDatabase(databaseUrl);
test.after.always(async () => {
  stopPrograms();
  await Promise.all([storage.close(), database.close()]);
  await drop();
  rmSync(folder, { recursive: true });
});

const urls = { base: url, api: `${url}/v1`, mcp: `${url}/mcp`, short: url };
const service: TestService = { url, urls, storage, close: async () => {}, ...populate(url, storage) };

/** Runs a command as the page says, for another organization or user. */
async function run(command: string): Promise<string> {
  const { code, stdout, stderr } = await runCommand(command.replace(/^npx linkgate /, "").split(" "), {
    settings,
  });
  if (code !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout;
}

async function execute(statement: string): Promise<Record<string, unknown>[]> {
  const result = await database.knex.raw(statement);
  return (
    database.engine === "postgres" ? result.rows : database.engine === "mysql" ? result[0] : result
  ) as never;
}

/** Returns whether a browser is signed in to the dashboard. */
async function isSignedIn({ browser }: Awaited<ReturnType<typeof browserOf>>): Promise<boolean> {
  const headers = { accept: "application/json" };
  return (await browser.open(`${url}/dashboard/me`, { headers })).status === 200;
}

test.serial("the steps after a leak of the encryption key leave what users need working", async (t) => {
  const app = await service.createOrganization();
  const user = await service.createUser([app.id], "ada");
  await addTotp(service, { ...user, token: await firstPartyToken(service, user) });
  t.is((await logIn(service, user)).status, 403);
  const token = await service.token(app);
  const json = { url: "https://hooks.example.com/private", events: ["link.created"] };
  t.is((await apiAt(url, token).send("POST", "/v1/webhooks", { json })).status, 201);

  const signedIn = await browserOf(service, await service.createUser([app.id]));
  t.true(await isSignedIn(signedIn));

  const [webhooks = "", factors = ""] = blocksOf("The encryption key leaked", "sql");
  t.deepEqual(await execute(webhooks), [{ organization_id: app.id }]);
  t.deepEqual(await execute(factors), [{ username: "ada" }]);
  const commands = blocksOf("The encryption key leaked", "sh");
  t.is(commands.length, 5);
  for (const command of commands) await run(command);
  t.not(readFileSync(keyFile, "utf8").trim(), key.toString("base64url"));
  t.is((await logIn(service, user)).status, 200);
  t.true(await isAcceptedByApi(service, token));
  // From then on, the server has the new cookie key. A sign-in that began with the old one can't be completed.
  await until(async () => ((await isSignedIn(signedIn)) ? undefined : true));

  const [complaint = ""] = blocksOf("A receiver complains about webhooks", "sql");
  t.deepEqual(await execute(complaint), [{ organization_id: app.id }]);
});

test.serial("the statements that end all tokens end those of everyone, and nothing else", async (t) => {
  const { app, user } = await createApp(service);
  const tokens = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  const signedIn = await browserOf(service, user);
  t.true(await isSignedIn(signedIn));
  for (const token of [own, tokens.accessToken]) t.true(await isAcceptedByApi(service, token));

  const statements = blocksOf("All tokens must end now", "sql");
  t.is(statements.length, 3);
  for (const statement of statements) await execute(statement);
  for (const token of [own, tokens.accessToken]) t.false(await isAcceptedByApi(service, token));
  t.is((await refresh(service, app, tokens.refreshToken)).body.error, "invalid_grant");
  t.false(await isSignedIn(signedIn));
  for (const command of blocksOf("All tokens must end now", "sh")) await run(command);

  t.true(await isAcceptedByApi(service, await service.token(app)));
  // Until the server has the new cookie key, sign-ins may have to be started again.
  const again = await until(() => runCodeFlow(service, app, user).catch(() => undefined));
  t.true(await isAcceptedByApi(service, again.accessToken));
});

test.serial("the other statements run, and show what the page says", async (t) => {
  const app = await service.createOrganization();
  const api = apiAt(url, await service.token(app));
  const { id, slug } = await api.createLink({ url: "https://example.com/deleted" });
  const [links = "", tokens = ""] = blocksOf("The database is full", "sql");
  t.true((await execute(links)).some((row) => row.organization_id === app.id && Number(row.links) === 1));
  t.true((await execute(tokens)).some((row) => row.client_id === app.clientId));
  const [events = ""] = blocksOf("A tenant misbehaves", "sql");
  t.true((await execute(events)).some((row) => row.organization_id === app.id));
  for (const command of blocksOf("The database is full", "sh")) await run(command);

  const [restore = ""] = blocksOf("Restore after a mistake", "sql");
  const [row] = await execute(restore.replace(/org_\w+/, app.id));
  t.like(row, { slug, url: "https://example.com/deleted" });
  t.is((await api.send("DELETE", `/v1/links/${id}`)).status, 204);
  t.deepEqual(await execute(restore.replace(/org_\w+/, app.id)), []);
  const create = (...links: object[]) => api.send("POST", "/v1/links/bulk", { json: { links } });
  const { body } = (await create({ slug, url: row?.url }, { url: row?.url })) as unknown as {
    body: { results: { status: number }[] };
  };
  t.deepEqual(
    body.results.map(({ status }) => status),
    [409, 201],
  );
});

test("each command on the page exists", async (t) => {
  const names = [...page.matchAll(/`(?:npx linkgate )?((?:org|client|user|link|grant|keys) [a-z-]+)/g)];
  t.true(names.length > 20);
  const help = (await runCommand(["--help"], {})).stdout;
  for (const [, name = ""] of names) t.true(help.includes(name), name);
});
