import { readdirSync, readFileSync } from "node:fs";
import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import { apiAt } from "../harness/clients/api.ts";
import { codeFor } from "../harness/clients/authorization.ts";
import { authorizeUrl, createApp, VERIFIER } from "../harness/clients/authorization-request.ts";
import { firstPartyToken } from "../harness/clients/dashboard.ts";
import { MCP_HEADERS } from "../harness/clients/mcp.ts";
import { postAsClient, redeemCode, refresh } from "../harness/clients/oauth.ts";
import { addTotp, logIn, proveFactor } from "../harness/clients/second-factor.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { startCollector } from "../harness/collector.ts";
import { inspect } from "../harness/database/test-database.ts";
import { PRODUCTION } from "../harness/production.ts";
import { addressOf, resultOf, startServer, temporaryFolder } from "../harness/program.ts";
import { postForm, type TestOrganization, type TestUser } from "../harness/service.ts";
import { serviceAt } from "../harness/two-versions.ts";
import type { NewWebhookBody } from "../harness/webhooks.ts";

const folder = temporaryFolder("secrets");
const settings = {
  PORT: "0",
  ...PRODUCTION,
  LOG_LEVEL: "trace",
  RESOURCE_SERVER_SECRET: "the secret of the resource server",
  DATABASE_URL: `sqlite:${folder}/test.sqlite`,
  ENCRYPTION_KEY: Buffer.alloc(32, 8).toString("base64url"),
};
const NEW_PASSWORD = "the second password of a user";
const SCOPES = { scope: "openid offline_access links:write" };

const secrets = new Map<string, string>();
const keep = (name: string, value: unknown) => {
  if (!value) throw new Error(`${name} was not issued`);
  secrets.set(name, String(value));
  return String(value);
};

const statuses: number[][] = [];
const collector = await startCollector();
const telemetry = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" };
const server = startServer({ settings: { ...settings, ...telemetry } });
const url = await addressOf(server);
const storage = openStorage(settings.DATABASE_URL, Buffer.from(settings.ENCRYPTION_KEY, "base64url"));
const service = serviceAt(url, storage);
const { knex } = inspect(settings.DATABASE_URL);

async function useEverything() {
  const { app, user } = await createApp(service);
  keep("client secret", app.clientSecret);
  keep("password", user.password);
  const token = keep("client credentials token", await service.token(app));
  await fetch(`${url}/${token}`);
  statuses.push(await sendToken(token));
  await knex.schema.renameTable("links", "links_elsewhere");
  statuses.push(await sendToken(token));
  await knex.schema.renameTable("links_elsewhere", "links");
  const { accessToken, refreshToken } = await authorize(app, user);
  const { searchParams } = new URL(authorizeUrl(service, app));
  const pushed = await postAsClient(service, "par", app, Object.fromEntries(searchParams));
  keep("pushed request", String(pushed.body.request_uri).split(":").at(-1));
  await postForm(`${url}/oauth/introspect`, {
    client_id: "resource-server",
    client_secret: keep("resource server secret", settings.RESOURCE_SERVER_SECRET),
    token: accessToken,
  });
  await useWebhook(token);
  for (const one of [token, refreshToken]) await postAsClient(service, "revoke", app, { token: one });
  const rotation = await resultOf<{ client_secret: string }>(["client", "rotate", app.id], { settings });
  await service.token({ ...app, clientSecret: keep("rotated secret", rotation.client_secret) });
  await resetPassword(user);
  await useSecondFactor({ ...user, password: NEW_PASSWORD });
  return user.username;
}

/** Sends a token in requests that end in each way, where it may be logged. Returns their statuses. */
async function sendToken(token: string): Promise<number[]> {
  const api = apiAt(url, token);
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami", arguments: {} } };
  const replies = [
    await api.get("/v1/links"),
    await api.get(`/v1/links?access_token=${token}`),
    await apiAt(url).get(`/v1/links?access_token=${token}`),
    await apiAt(url, `${token} ${token}`).get("/v1/links"),
    await apiAt(url, `${token}x`).get("/v1/links"),
    await api.send("POST", "/v1/links", { json: { url: "https://example.com", token } }),
    await api.send("POST", "/mcp", { json: call, headers: MCP_HEADERS }),
  ];
  return replies.map(({ status }) => status);
}

/** Runs the authorization code flow, with one wrong password. */
async function authorize(app: TestOrganization, user: TestUser) {
  const browser = new TestBrowser(url);
  const page = await browser.open(authorizeUrl(service, app, SCOPES));
  await keepCookies(browser, "sign-in");
  await browser.signIn(page, { ...user, password: keep("wrong password", "a wrong password") });
  const code = keep("code", await codeFor(service, app, user, { browser, changes: SCOPES }));
  keep("unredeemed code", await codeFor(service, app, user, { browser, changes: SCOPES }));
  await keepCookies(browser, "end");
  keep("verifier", VERIFIER);
  const { body } = await redeemCode(service, app, code);
  keep("id_token", body.id_token);
  const refreshToken = keep("refresh token", body.refresh_token);
  keep("refreshed access token", (await refresh(service, app, refreshToken)).body.access_token);
  return { accessToken: keep("access token", body.access_token), refreshToken };
}

async function resetPassword({ username }: TestUser) {
  const reset = () => resultOf<{ url: string }>(["user", "reset-password", username], { settings });
  const link = new URL(new URL((await reset()).url).pathname, url).href;
  keep("reset token", link.split("/").at(-1));
  await postForm(link, { password: keep("weak password", "short") });
  await postForm(link, { password: keep("new password", NEW_PASSWORD) });
  keep("unused reset token", (await reset()).url.split("/").at(-1));
}

async function useWebhook(token: string) {
  const api = apiAt(url, token);
  const part = keep("secret of a webhook URL", "the-secret-part-of-a-webhook-url");
  const json = { url: `https://hooks.example.com/${part}`, events: ["link.created"], enabled: false };
  const { body } = await api.send<NewWebhookBody>("POST", "/v1/webhooks", { json });
  keep("webhook secret", body.secret);
  const rotated = await api.send<NewWebhookBody>("POST", `/v1/webhooks/${body.id}/rotate-secret`);
  keep("rotated webhook secret", rotated.body.secret);
}

async function useSecondFactor(user: TestUser) {
  const token = keep("access token of a login", await firstPartyToken(service, user));
  const { secret, recoveryCodes, code } = await addTotp(service, { ...user, token });
  keep("secret of the authenticator app", secret);
  for (const [index, one] of recoveryCodes.entries()) {
    keep(`recovery code ${index}`, one);
    keep(`recovery code ${index} without hyphens`, one.replaceAll("-", ""));
  }
  const { login_token } = (await logIn(service, user)).body;
  const { body } = await proveFactor(service, keep("login token", login_token), { totp: code() });
  keep("access token after the second factor", body.access_token);
}

/**
 * The ID of a session is secret. The ID of a pending sign-in is part of its URL; there, the signature is the secret part
 * of the cookie.
 */
async function keepCookies(browser: TestBrowser, step: string) {
  const { cookies } = await browser.jar.serialize();
  for (const { key, value } of cookies) {
    const isSecret = key === "session" || key?.endsWith(".sig");
    if (isSecret && value) keep(`cookie ${key} at ${step}`, value);
  }
}

const username = await useEverything();
const metrics = await (await fetch(`${url}/metrics`)).text();
// While the server runs, so the write-ahead log exists as well.
const bytes = readdirSync(folder).map((file) => [file, readFileSync(`${folder}/${file}`, "latin1")] as const);
await server.stop();

const never = () => Promise.reject(new Error("the key does not exist"));
const jwks = JSON.parse(await storage.keys.load("jwks", never));
for (const part of ["d", "p", "q", "dp", "dq", "qi"]) keep(`private key: ${part}`, jwks.keys[0][part]);
for (const [index, { key }] of JSON.parse(await storage.keys.load("cookies", never)).entries())
  keep(`cookie key ${index}`, key);
keep("signing key", await storage.keys.load("signing", never));
await storage.close();
keep("encryption key", settings.ENCRYPTION_KEY);

const names: string[] = await knex("sqlite_master").where({ type: "table" }).pluck("name");
const tables = new Map<string, Record<string, unknown>[]>();
for (const name of names) tables.set(name, await knex(name).select());

/** Returns the secrets that a text contains, in any of the usual encodings. */
function foundIn(text: string): string[] {
  return [...secrets].flatMap(([name, value]) => {
    const bytes = Buffer.from(value);
    const random = value.replace(/^lg[a-z]_/, "");
    const spellings = [random, encodeURIComponent(value), bytes.toString("base64"), bytes.toString("hex")];
    return spellings.some((spelling) => text.includes(spelling)) ? [name] : [];
  });
}

test("every kind of secret was issued", (t) => {
  t.true(secrets.size >= 40, [...secrets.keys()].join(", "));
  t.true(bytes.some(([file]) => file.endsWith("-wal")));
  t.true((tables.get("tokens")?.length ?? 0) > 3);
  // Usernames are stored in plain text, so a search that works finds one.
  secrets.set("canary", username);
  t.deepEqual(foundIn(JSON.stringify(tables.get("users"))), ["canary"]);
  t.true(bytes.some(([, content]) => foundIn(content).includes("canary")));
  secrets.delete("canary");
});

test("every token expires in 90 days at most, and belongs to a stored grant", (t) => {
  const grants = new Set(tables.get("grants")?.map(({ id }) => id));
  for (const { id_hash, expires_at, grant_id } of tables.get("tokens") ?? []) {
    t.is(String(id_hash).length, 43);
    t.true(Number(expires_at) > 0 && Number(expires_at) < Date.now() + 91 * 86_400_000);
    t.true(!grant_id || grants.has(grant_id));
  }
});

test("no column of any table contains a secret", (t) => {
  for (const [name, rows] of tables) t.deepEqual(foundIn(JSON.stringify(rows)), [], name);
});

test("the bytes of the database and of its write-ahead log contain no secret", (t) => {
  for (const [file, content] of bytes) t.deepEqual(foundIn(content), [], file);
});

test("the log contains no secret at its most verbose level, and every line is JSON", (t) => {
  const ends = [400, 401, 400, 401, 422, 200];
  t.deepEqual(statuses, [
    [200, ...ends],
    [500, ...ends],
  ]);
  const log = server.stdout + server.stderr;
  t.deepEqual(foundIn(log), []);
  for (const [name, value] of secrets)
    if (/^lg[a-z]_/.test(value))
      for (const part of [value.slice(4, 16), value.slice(-12)]) t.false(log.includes(part), name);
  const lines = server.stdout.trim().split("\n");
  t.true(lines.length > 15);
  for (const line of lines.filter((one) => !one.startsWith("linkgate listening"))) {
    const entry = JSON.parse(line);
    t.true(["trace", "debug", "info", "warn", "error"].includes(entry.level), line);
    t.regex(entry.time, /^\d{4}-\d\d-\d\dT.*Z$/);
    if (entry.msg === "request")
      t.regex(`${entry.request_id} ${entry.route} ${entry.status}`, /^[\w-]{36} \S+ \d{3}$/);
  }
});

test("the traces and metrics contain no secret", (t) => {
  t.true(collector.spans().length > 100);
  t.true(metrics.split("# TYPE ").length > 20);
  for (const span of collector.spans()) t.deepEqual(foundIn(JSON.stringify(span)), [], span.name);
  t.deepEqual(foundIn(collector.bodies.join("\n")), []);
  t.deepEqual(foundIn(metrics), []);
});
