import { readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { rowsOf } from "../../adapters/database/engine.ts";
import { apiAt } from "../harness/clients/api.ts";
import { runCodeFlow } from "../harness/clients/authorization.ts";
import { createApp } from "../harness/clients/authorization-request.ts";
import { browserOf, firstPartyToken } from "../harness/clients/dashboard.ts";
import { isAcceptedByApi, refresh } from "../harness/clients/oauth.ts";
import { addTotp, logIn } from "../harness/clients/second-factor.ts";
import { isSignedIn } from "../harness/clients/visits.ts";
import { inspect } from "../harness/database/test-database.ts";
import { blocksOf } from "../harness/examples.ts";
import { prepareServers } from "../harness/new-server.ts";
import { runCommand, temporaryFolder } from "../harness/program.ts";
import { serviceAt } from "../harness/two-versions.ts";
import { until } from "../harness/webhooks.ts";

// docs/operate/incidents.md: its commands and statements, on a running server.

function linesOf(heading: string, language: "sql" | "sh"): string[] {
  const blocks = blocksOf("docs/operate/incidents.md").filter((block) => block.heading === heading);
  const own = blocks.filter((block) => block.language === language);
  const lines = own.flatMap(({ code }) => code.split(language === "sql" ? ";" : "\n"));
  return lines.map((one) => one.trim()).filter(Boolean);
}

const folder = temporaryFolder("incidents");
const keyFile = path.join(folder, "encryption.key");
const { settings, key, storage, start } = await prepareServers({ LOG_LEVEL: "error" }, { keyFile });
const { url } = await start();
const database = inspect(settings.DATABASE_URL);

const service = serviceAt(url, storage);

/** Runs a command as the page says, for another organization or user. */
async function run(command: string): Promise<void> {
  const words = command.replace(/^npx linkgate /, "").split(" ");
  const { code, stderr } = await runCommand(words, { settings });
  if (code !== 0) throw new Error(`${command}: ${stderr}`);
}

const execute = async (statement: string) =>
  rowsOf<Record<string, unknown>>(await database.knex.raw(statement));

test.serial("the steps after a leak of the encryption key leave what users need working", async (t) => {
  const app = await service.createOrganization();
  const user = await service.createUser([app.id], "ada");
  await addTotp(service, { ...user, token: await firstPartyToken(service, user) });
  t.is((await logIn(service, user)).status, 403);
  const token = await service.token(app);
  const json = { url: "https://hooks.example.com/private", events: ["link.created"] };
  t.is((await apiAt(url, token).send("POST", "/v1/webhooks", { json })).status, 201);

  const { browser } = await browserOf(service, await service.createUser([app.id]));
  t.true(await isSignedIn(service, browser));

  const [webhooks = "", factors = ""] = linesOf("The encryption key leaked", "sql");
  t.deepEqual(await execute(webhooks), [{ organization_id: app.id }]);
  t.deepEqual(await execute(factors), [{ username: "ada" }]);
  const commands = linesOf("The encryption key leaked", "sh");
  t.is(commands.length, 5);
  for (const command of commands) await run(command);
  t.not(readFileSync(keyFile, "utf8").trim(), key.toString("base64url"));
  t.is((await logIn(service, user)).status, 200);
  t.true(await isAcceptedByApi(service, token));
  // From then on, the server has the new cookie key. A sign-in that began with the old one can't be completed.
  await until(async () => !(await isSignedIn(service, browser)) || undefined);

  const [complaint = ""] = linesOf("A receiver complains about webhooks", "sql");
  t.deepEqual(await execute(complaint), [{ organization_id: app.id }]);
});

test.serial("the statements that end all tokens end those of everyone, and nothing else", async (t) => {
  const { app, user } = await createApp(service);
  const tokens = await runCodeFlow(service, app, user);
  const own = await service.token(app);
  const { browser } = await browserOf(service, user);
  t.true(await isSignedIn(service, browser));
  for (const token of [own, tokens.accessToken]) t.true(await isAcceptedByApi(service, token));

  const statements = linesOf("All tokens must end now", "sql");
  t.is(statements.length, 3);
  for (const statement of statements) await execute(statement);
  for (const token of [own, tokens.accessToken]) t.false(await isAcceptedByApi(service, token));
  t.is((await refresh(service, app, tokens.refreshToken)).body.error, "invalid_grant");
  t.false(await isSignedIn(service, browser));
  for (const command of linesOf("All tokens must end now", "sh")) await run(command);

  t.true(await isAcceptedByApi(service, await service.token(app)));
  // Until the server has the new cookie key, sign-ins may have to be started again.
  const again = await until(() => runCodeFlow(service, app, user).catch(() => undefined));
  t.true(await isAcceptedByApi(service, again.accessToken));
});

test.serial("the other statements run, and show what the page says", async (t) => {
  const app = await service.createOrganization();
  const api = apiAt(url, await service.token(app));
  const { id, slug } = await api.createLink({ url: "https://example.com/deleted" });
  const [links = "", tokens = ""] = linesOf("The database is full", "sql");
  t.true((await execute(links)).some((row) => row.organization_id === app.id && Number(row.links) === 1));
  t.true((await execute(tokens)).some((row) => row.client_id === app.clientId));
  const [events = ""] = linesOf("A tenant misbehaves", "sql");
  t.true((await execute(events)).some((row) => row.organization_id === app.id));
  for (const command of linesOf("The database is full", "sh")) await run(command);

  const [restore = ""] = linesOf("Restore after a mistake", "sql");
  const [row] = await execute(restore.replace(/org_\w+/, app.id));
  t.like(row, { slug, url: "https://example.com/deleted" });
  t.is((await api.send("DELETE", `/v1/links/${id}`)).status, 204);
  t.deepEqual(await execute(restore.replace(/org_\w+/, app.id)), []);
  const json = { links: [{ slug, url: row?.url }, { url: row?.url }] };
  const { body } = await api.send<{ results: object[] }>("POST", "/v1/links/bulk", { json });
  t.like(body.results, [{ status: 409 }, { status: 201 }]);
});
