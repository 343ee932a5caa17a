import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import knexFactory from "knex";
import * as oidc from "openid-client";
import { knexConfig } from "../../adapters/database/engine.ts";
import { openStorage } from "../../adapters/index.ts";
import { firstPartyToken } from "../harness/clients/dashboard.ts";
import { addTotp, logIn, proveFactor } from "../harness/clients/second-factor.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { startCollector } from "../harness/collector.ts";
import { PRODUCTION } from "../harness/production.ts";
import { addressOf, runCommand, startServer, stopPrograms } from "../harness/program.ts";
import { bearer, postForm } from "../harness/service.ts";

export const stage = "processes";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-secrets-"));
const settings = {
  PORT: "0",
  ...PRODUCTION,
  LOG_LEVEL: "trace",
  RESOURCE_SERVER_SECRET: "the secret of the resource server",
  DATABASE_URL: `sqlite:${folder}/test.sqlite`,
  ENCRYPTION_KEY: Buffer.alloc(32, 8).toString("base64url"),
};

const PASSWORD = "the first password of ada";
const NEW_PASSWORD = "the second password of ada";
const CALLBACK = "https://app.example.com/callback";

/** The values that must not be found, by their names. */
const secrets = new Map<string, string>();
const keep = (name: string, value: string | undefined) => {
  if (!value) throw new Error(`${name} was not issued`);
  secrets.set(name, value);
  return value;
};

async function command(input: string, ...words: string[]) {
  const { code, stdout, stderr } = await runCommand([...words, "--json"], { settings }, input);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

type App = { organizationId: string; clientId: string; clientSecret: string };

/** Issues every kind of secret over HTTP. */
async function useEverything(base: string) {
  const { organization, client } = await command("", "org", "create", "Secretive", "--plan", "growth");
  const app: App = {
    organizationId: organization.id,
    clientId: client.client_id,
    clientSecret: keep("client secret", client.client_secret),
  };
  await command(PASSWORD, "user", "create", "ada", "--org", app.organizationId);
  keep("password", PASSWORD);
  await command("", "client", "redirect-uris", app.organizationId, CALLBACK);
  const config = await oidc.discovery(new URL(base), app.clientId, app.clientSecret, undefined, {
    execute: [oidc.allowInsecureRequests],
  });

  const clientToken = await callApi(base, config);
  const tokens = await authorize(base, config);
  const refreshed = await oidc.refreshTokenGrant(config, tokens.refresh_token as string);
  keep("refreshed access token", refreshed.access_token);
  await pushRequest(base, app);
  await introspect(base, refreshed.access_token);
  await oidc.tokenRevocation(config, clientToken);
  await oidc.tokenRevocation(config, tokens.refresh_token as string);
  await rotateSecret(base, app);
  await resetPassword(base);
  await useSecondFactor({ url: base });
  await useWebhook(base, config);
}

/** Uses a client credentials token in every place where it might be logged. */
async function callApi(base: string, config: oidc.Configuration): Promise<string> {
  const { access_token: token } = await oidc.clientCredentialsGrant(config, {});
  keep("client credentials token", token);
  await fetch(`${base}/v1/links`, {
    method: "POST",
    headers: { ...bearer(token), "content-type": "application/json" },
    body: JSON.stringify({ url: "https://example.com/a" }),
  });
  await fetch(`${base}/v1/links?access_token=${token}`, { headers: bearer(`${token}x`) });
  await fetch(`${base}/${token}`);
  await oidc.tokenIntrospection(config, token);
  return token;
}

/** Runs the authorization code flow, with one wrong password. */
async function authorize(base: string, config: oidc.Configuration) {
  const browser = new TestBrowser(base);
  const verifier = keep("verifier", oidc.randomPKCECodeVerifier());
  const url = oidc.buildAuthorizationUrl(config, {
    redirect_uri: CALLBACK,
    scope: "openid offline_access links:write",
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state: "a-state-of-the-app",
  });
  const page = await browser.open(url.href);
  await keepCookies(browser, "sign-in");
  const wrong = await browser.signIn(page, {
    id: "",
    username: "ada",
    password: keep("wrong password", "a wrong password"),
  });
  const consent = await browser.signIn(wrong, { id: "", username: "ada", password: PASSWORD });
  await keepCookies(browser, "consent");
  const callback = new URL((await browser.press(consent, "Allow")).url);
  await keepCookies(browser, "end");
  keep("code", callback.searchParams.get("code") ?? undefined);
  const tokens = await oidc.authorizationCodeGrant(config, callback, {
    pkceCodeVerifier: verifier,
    expectedState: "a-state-of-the-app",
  });
  keep("access token", tokens.access_token);
  keep("refresh token", tokens.refresh_token);
  keep("id_token", tokens.id_token);
  return tokens;
}

async function pushRequest(base: string, { clientId, clientSecret }: App) {
  const pushed = await postForm(`${base}/oauth/par`, {
    client_id: clientId,
    client_secret: clientSecret,
    response_type: "code",
    redirect_uri: CALLBACK,
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  });
  keep("pushed request", ((await pushed.json()) as { request_uri: string }).request_uri.split(":").at(-1));
}

async function introspect(base: string, token: string) {
  await postForm(`${base}/oauth/introspect`, {
    client_id: "resource-server",
    client_secret: keep("resource server secret", settings.RESOURCE_SERVER_SECRET),
    token,
  });
}

async function rotateSecret(base: string, { organizationId, clientId }: App) {
  const rotation = await command("", "client", "rotate", organizationId);
  keep("rotated secret", rotation.client_secret);
  await postForm(`${base}/oauth/token`, {
    grant_type: "client_credentials",
    client_id: clientId,
    client_secret: rotation.client_secret,
  });
}

async function resetPassword(base: string) {
  const reset = await command("", "user", "reset-password", "ada");
  const link = new URL(new URL(reset.url).pathname, base).href;
  keep("reset token", link.split("/").at(-1));
  await postForm(link, { password: keep("weak password", "short") });
  await postForm(link, { password: keep("new password", NEW_PASSWORD) });
  const open = await command("", "user", "reset-password", "ada");
  keep("unused reset token", open.url.split("/").at(-1));
}

/** Creates a webhook, whose URL is secret as well, and rotates its secret. */
async function useWebhook(base: string, config: oidc.Configuration) {
  const { access_token: token } = await oidc.clientCredentialsGrant(config, {});
  const send = async (path: string, body: object) => {
    const headers = { ...bearer(token), "content-type": "application/json" };
    const answer = await fetch(base + path, { method: "POST", headers, body: JSON.stringify(body) });
    return (await answer.json()) as { id: string; secret: string };
  };
  const part = keep("secret of a webhook URL", "the-secret-part-of-a-webhook-url");
  const url = `https://hooks.example.com/${part}`;
  const { id, secret } = await send("/v1/webhooks", { url, events: ["link.created"], enabled: false });
  keep("webhook secret", secret);
  keep("rotated webhook secret", (await send(`/v1/webhooks/${id}/rotate-secret`, {})).secret);
}

async function useSecondFactor(service: { url: string }) {
  const user = { id: "", username: "ada", password: NEW_PASSWORD };
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

const collector = await startCollector();
const telemetry = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" };
const server = startServer({ settings: { ...settings, ...telemetry } });
const base = await addressOf(server);
await useEverything(base);
const metrics = await (await fetch(`${base}/metrics`)).text();
// While the server runs, so the write-ahead log exists as well.
const bytes = readdirSync(folder).map(
  (file) => [file, readFileSync(path.join(folder, file), "latin1")] as const,
);
await server.stop();
collector.close();

const storage = openStorage(settings.DATABASE_URL, Buffer.from(settings.ENCRYPTION_KEY, "base64url"));
const never = () => Promise.reject(new Error("the key does not exist"));
const jwks = JSON.parse(await storage.keys.load("jwks", never));
for (const part of ["d", "p", "q", "dp", "dq", "qi"]) keep(`private key: ${part}`, jwks.keys[0][part]);
for (const [index, { key }] of JSON.parse(await storage.keys.load("cookies", never)).entries())
  keep(`cookie key ${index}`, key);
keep("signing key", await storage.keys.load("signing", never));
await storage.close();
keep("encryption key", settings.ENCRYPTION_KEY);

const knex = knexFactory(knexConfig(settings.DATABASE_URL));
const names: string[] = await knex("sqlite_master").where({ type: "table" }).pluck("name");
const tables = new Map<string, Record<string, unknown>[]>();
for (const name of names) tables.set(name, await knex(name).select());
await knex.destroy();

/** Returns the secrets that a text contains, in any of the usual encodings. */
function foundIn(text: string): string[] {
  return [...secrets].flatMap(([name, value]) => {
    const bytes = Buffer.from(value);
    const spellings = [value, encodeURIComponent(value), bytes.toString("base64"), bytes.toString("hex")];
    return spellings.some((spelling) => text.includes(spelling)) ? [name] : [];
  });
}

test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

test("every kind of secret was issued", (t) => {
  t.true(secrets.size >= 25, [...secrets.keys()].join(", "));
  t.true(bytes.some(([file]) => file.endsWith("-wal")));
  t.true((tables.get("tokens")?.length ?? 0) > 3);
  // Public values are found, so the search works.
  secrets.set("canary", "Secretive");
  t.deepEqual(foundIn(JSON.stringify(tables.get("organizations"))), ["canary"]);
  t.true(bytes.some(([, content]) => foundIn(content).includes("canary")));
  secrets.delete("canary");
});

test("no column of any table contains a secret", (t) => {
  for (const [name, rows] of tables) t.deepEqual(foundIn(JSON.stringify(rows)), [], name);
});

test("the bytes of the database and of its write-ahead log contain no secret", (t) => {
  for (const [file, content] of bytes) t.deepEqual(foundIn(content), [], file);
});

test("the log contains no secret at its most verbose level", (t) => {
  const lines = server.stdout.split("\n").filter((line) => line.startsWith("{"));
  t.true(lines.length > 15);
  for (const line of lines) t.deepEqual(foundIn(line), [], line);
  t.deepEqual(foundIn(server.stdout + server.stderr), []);
});

test("the traces and metrics contain no secret", (t) => {
  t.true(collector.spans().length > 100);
  t.true(metrics.split("# TYPE ").length > 20);
  for (const span of collector.spans()) t.deepEqual(foundIn(JSON.stringify(span)), [], span.name);
  t.deepEqual(foundIn(collector.bodies.join("\n")), []);
  t.deepEqual(foundIn(metrics), []);
});

test("every log line is JSON with a level, a time and, for a request, its ID, route and status", (t) => {
  const lines = server.stdout
    .trim()
    .split("\n")
    .filter((line) => !line.startsWith("linkgate listening"));
  for (const line of lines) {
    const entry = JSON.parse(line);
    t.true(["trace", "debug", "info", "warn", "error"].includes(entry.level), line);
    t.regex(entry.time, /^\d{4}-\d\d-\d\dT.*Z$/);
    if (entry.msg === "request")
      t.regex(`${entry.request_id} ${entry.route} ${entry.status}`, /^[\w-]{36} \S+ \d{3}$/);
  }
});

test("the stored rows are consistent", (t) => {
  const rows = (name: string) => (tables.get(name) ?? []) as Record<string, number | string | null>[];
  const grants = new Map(rows("grants").map((grant) => [grant.id, grant]));
  const DAY = 24 * 3_600_000;
  for (const token of rows("tokens")) {
    t.is(String(token.id_hash).length, 43);
    const expires = Number(token.expires_at);
    t.true(expires > 0 && expires < Date.now() + 91 * DAY, "it expires soon enough");
    if (token.grant_id) t.true(grants.has(token.grant_id), "no token without its grant");
  }
  const families = Map.groupBy(
    rows("tokens").filter(({ kind, consumed_at }) => kind === "RefreshToken" && consumed_at === null),
    ({ grant_id }) => grant_id,
  );
  for (const leaves of families.values()) t.true(leaves.length <= 1, "one refresh token per family");
  for (const session of rows("sessions")) t.is(String(session.id_hash).length, 43);
  for (const secret of rows("client_secrets")) t.is(String(secret.hash).length, 43);
  for (const user of rows("users")) t.regex(String(user.password_hash), /^\$argon2id\$/);
  for (const key of rows("sealed_keys")) t.regex(String(key.sealed), /^v1\./);
});
