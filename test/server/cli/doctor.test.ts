import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, request, type Server } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { openDatabase } from "../../../adapters/database/index.ts";
import { MIGRATIONS } from "../../../adapters/database/migrations/index.ts";
import { startMailServer } from "../../harness/mail-server.ts";
import { freePort } from "../../harness/port.ts";
import { PRODUCTION } from "../../harness/production.ts";
import { addressOf, CLI, runCommand, runShell, startServer, stopPrograms } from "../../harness/program.ts";
import { startTcpProxy } from "../../harness/tcp-proxy.ts";

export const stage = "processes";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-doctor-"));
/** Returns the URL of a database in a folder of its own, for its key. */
const databaseOf = (name: string) => `sqlite:${folder}/${name}/test.sqlite`;
const settings = { DATABASE_URL: databaseOf("own"), PORT: String(await freePort()) };
const METRICS_TOKEN = "a-token-that-only-these-tests-use-1234";
const servers = new Set<Server>();
test.before(async () => {
  await runCommand(["migrate"], { settings });
});
test.after.always(() => {
  stopPrograms();
  for (const server of servers) server.close().closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
});

type Check = { name: string; ok: boolean; detail: string };

/** Runs `doctor` with changed settings. Returns a check and the exit code. */
async function diagnose(name: string, changed: Record<string, string> = {}) {
  const { code, stdout, stderr } = await runCommand(["doctor", "--json"], {
    settings: { ...settings, ...changed },
  });
  if (!stdout) throw new Error(stderr);
  const { checks } = JSON.parse(stdout) as { checks: Check[] };
  return { code, checks, ...(checks.find((check) => check.name === name) as Check) };
}

test("doctor lists its checks", async (t) => {
  const { code, checks } = await diagnose("settings");
  t.is(code, 0);
  for (const check of checks) {
    t.deepEqual(Object.keys(check), ["name", "ok", "detail"]);
    t.true(check.ok, check.name);
    t.is(typeof check.detail, "string");
  }
  t.deepEqual(
    checks.map(({ name }) => name),
    [
      ...["settings", "environment", "database", "disk", "migrations", "keys", "encryption", "addresses"],
      ...["server", "rate limits", "descriptors", "registration", "plans"],
    ],
  );
});

test("doctor exits with 1 if a check fails, and still returns the others", async (t) => {
  const DATABASE_URL = databaseOf("unmigrated");
  const { knex, close } = openDatabase(DATABASE_URL);
  await knex.raw("create table unused (id integer)");
  await close();
  const { code, checks, ok, detail } = await diagnose("migrations", { DATABASE_URL });
  t.deepEqual([code, ok], [1, false]);
  const pending = MIGRATIONS.map(({ name }) => name).join(", ");
  t.true(detail.startsWith(`pending: ${pending} (run "linkgate upgrade --check" to see what they change,`));
  t.true(checks.length > 8);
});

test("a database of a newer version is found", async (t) => {
  const DATABASE_URL = databaseOf("newer");
  await runCommand(["migrate"], { settings: { DATABASE_URL } });
  const knex = knexFactory(knexConfig(DATABASE_URL));
  await knex("knex_migrations").insert({ name: "9999_later", batch: 99, migration_time: new Date() });
  await knex.destroy();
  const { ok, detail } = await diagnose("migrations", { DATABASE_URL });
  t.false(ok);
  t.regex(detail, /^The database is at schema 9999_later of a newer version /);
});

test("a key that doesn't decrypt the stored keys is found", async (t) => {
  const DATABASE_URL = databaseOf("other-key");
  const server = startServer({ settings: { ...settings, DATABASE_URL, PORT: "0" } });
  await addressOf(server);
  await server.stop();
  t.like(await diagnose("keys", { DATABASE_URL }), { ok: true, detail: "keys can be decrypted" });
  const ENCRYPTION_KEY = Buffer.alloc(32, 1).toString("base64url");
  const { ok, detail } = await diagnose("keys", { DATABASE_URL, ENCRYPTION_KEY });
  t.false(ok);
  t.regex(detail, /ENCRYPTION_KEY/);
});

test("a public service that isn't configured for production is found", async (t) => {
  const BASE_URL = "https://links.example.com";
  const { ok, detail } = await diagnose("environment", { BASE_URL });
  t.false(ok);
  t.regex(detail, /Set NODE_ENV=production$/);
  t.true((await diagnose("environment", { ...PRODUCTION, BASE_URL })).ok);
});

test("a service without TLS is found", async (t) => {
  const { ok, detail } = await diagnose("addresses", {
    ...PRODUCTION,
    BASE_URL: "http://localhost:4321",
  });
  t.false(ok);
  t.regex(detail, /set BASE_URL to an https URL$/);
});

test("doctor names the Host headers that a proxy has to pass on, with the port", async (t) => {
  const { ok, detail } = await diagnose("addresses", {
    BASE_URL: "https://links.example.com:8443",
    SHORT_URL: "https://go.example",
    TRUST_PROXY: "1",
  });
  t.true(ok);
  t.regex(detail, /need the header Host: links\.example\.com:8443 or go\.example$/);
});

test("a public address that can't be reached is found", async (t) => {
  const { ok, detail } = await diagnose("server", { BASE_URL: `https://localhost:${await freePort()}` });
  t.false(ok);
  t.regex(
    detail,
    /can't be reached from here \(ECONNREFUSED\)\. Start the server, and check the name, the proxy/,
  );
});

/** Starts a server behind a proxy. `pass` returns the headers that the proxy sends for those that it gets. */
async function startProxied(
  changed: Record<string, string>,
  pass: (headers: IncomingHttpHeaders) => IncomingHttpHeaders,
) {
  const port = await freePort();
  const BASE_URL = `http://localhost:${await freePort()}`;
  const own = { BASE_URL, METRICS_TOKEN, ...changed };
  const DATABASE_URL = `sqlite:${mkdtempSync(path.join(folder, "proxied-"))}/test.sqlite`;
  await addressOf(
    startServer({ settings: { ...own, DATABASE_URL, PORT: String(port), LOG_LEVEL: "silent" } }),
  );
  const proxy = createServer((req, res) => {
    const to = { port, path: req.url, method: req.method, headers: pass(req.headers) };
    req.pipe(
      request(to, (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      }),
    );
  }).listen(Number(new URL(BASE_URL).port), "localhost");
  servers.add(proxy);
  await once(proxy, "listening");
  return { ...own, DATABASE_URL };
}

const append = (headers: IncomingHttpHeaders) => ({
  ...headers,
  "x-forwarded-for": [headers["x-forwarded-for"], "127.0.0.1"].filter(Boolean).join(", "),
});

test("a running server is reached through its proxy", async (t) => {
  const own = await startProxied({ TRUST_PROXY: "1" }, append);
  const { ok, detail } = await diagnose("server", own);
  t.true(ok, detail);
  t.regex(
    detail,
    /^reachable at http:\/\/localhost:\d+; the clock of this machine is \d\.\d s from that of the server$/,
  );
  t.like(await diagnose("proxies", own), {
    ok: true,
    detail: "1 proxy, which adds to X-Forwarded-For; the server sees requests from here as 127.0.0.1",
  });
});

test("a proxy that replaces the Host header is found", async (t) => {
  const own = await startProxied({ TRUST_PROXY: "1" }, (headers) => ({
    ...append(headers),
    host: "linkgate",
  }));
  const { ok, detail } = await diagnose("server", own);
  t.false(ok);
  t.regex(detail, /answered with 421: the proxy doesn't pass on the header Host: localhost:\d+$/);
});

test("a proxy that doesn't add X-Forwarded-For is found", async (t) => {
  const own = await startProxied({ TRUST_PROXY: "1" }, (headers) => headers);
  const { ok, detail } = await diagnose("proxies", own);
  t.false(ok);
  t.regex(
    detail,
    /^TRUST_PROXY is 1, but no proxy adds .* Set TRUST_PROXY=0, or let each proxy add the header$/,
  );
});

test("proxies that TRUST_PROXY doesn't count are found", async (t) => {
  const own = await startProxied({}, (headers) => append(append(headers)));
  const { ok, detail } = await diagnose("proxies", own);
  t.false(ok);
  t.regex(detail, /^TRUST_PROXY is 0, but 2 proxies add .* Set TRUST_PROXY=2$/);
  t.regex(
    (await diagnose("proxies", { ...own, METRICS_TOKEN: "" })).detail,
    /^not checked: with METRICS_TOKEN/,
  );
  const other = { ...own, METRICS_TOKEN: "a-token-that-the-server-does-not-know" };
  t.like(await diagnose("proxies", other), {
    ok: false,
    detail: "not checked: the server has another METRICS_TOKEN, or none",
  });
});

/** Starts something that answers like a server with this issuer and clock. */
async function startImitation({ issuer = "", aheadMs = 0 }): Promise<string> {
  const server = createServer((req, res) => {
    res.setHeader("Date", new Date(Date.now() + aheadMs).toUTCString());
    res.end(JSON.stringify({ issuer: issuer || `http://${req.headers.host}` }));
  }).listen(0, "localhost");
  servers.add(server);
  await once(server, "listening");
  return `http://localhost:${(server.address() as { port: number }).port}`;
}

test("another service at the public address is found", async (t) => {
  const BASE_URL = await startImitation({ issuer: "https://other.example" });
  const { ok, detail } = await diagnose("server", { BASE_URL });
  t.false(ok);
  t.regex(detail, /something other than linkgate answers at/);
});

test("a clock that is off is found", async (t) => {
  const BASE_URL = await startImitation({ aheadMs: 90_000 });
  const { ok, detail } = await diagnose("server", { BASE_URL });
  t.false(ok);
  t.regex(detail, /^(89|9\d)\.\d s behind that of the server: synchronize the clocks with NTP$/);
});

test("a Redis that can't be reached is found", async (t) => {
  const port = await freePort();
  const { ok, detail } = await diagnose("rate limits", { REDIS_URL: `redis://:secret@127.0.0.1:${port}` });
  t.false(ok);
  t.regex(detail, /^REDIS_URL: cannot connect to 127\.0\.0\.1:\d+ \(ECONNREFUSED\)\./);
});

test("a mail server that can't be reached is found", async (t) => {
  const port = await freePort();
  const mail = { SMTP_URL: `smtp://127.0.0.1:${port}`, SMTP_FROM: "links@example.com" };
  t.like(await diagnose("mail", mail), {
    ok: false,
    detail: `can't connect to the SMTP server at 127.0.0.1:${port} (connection refused)`,
  });
});

test("people read a line for each check, and the number of problems", async (t) => {
  const { code, stdout } = await runCommand(["doctor"], { settings });
  t.is(code, 0);
  t.regex(stdout, /^✓ settings +valid$/m);
  t.regex(stdout, /\n\nNo problems\.\n$/);
  const failed = await runCommand(["doctor"], { settings: { ...settings, ...PRODUCTION, TRUST_PROXY: "1" } });
  t.is(failed.code, 1);
  t.regex(failed.stdout, /^✗ addresses +.*set BASE_URL to an https URL/m);
  t.regex(failed.stdout, /^– proxies +not checked: /m);
  t.regex(failed.stdout, /\n\n\d problems?\.\n$/);
});

test("a Redis that doesn't answer is found", async (t) => {
  const proxy = await startTcpProxy("redis://127.0.0.1:6379");
  t.teardown(proxy.close);
  await proxy.cut("silence");
  const { ok, detail } = await diagnose("rate limits", {
    REDIS_URL: proxy.through("redis://127.0.0.1:6379"),
  });
  t.false(ok);
  t.regex(detail, /\(timed out\)/);
});

test("too low a limit on file descriptors is found", async (t) => {
  const command = `ulimit -n 1024; exec ${CLI} doctor --json`;
  const { code, stdout } = await runShell(command, { settings });
  t.is(code, 1);
  const { checks } = JSON.parse(stdout) as { checks: Check[] };
  t.regex(checks.find(({ name }) => name === "descriptors")?.detail ?? "", /^at most 1024 file descriptors/);
});

test("doctor says who can create an account and who changes plans, and what both together mean in production", async (t) => {
  const open = "everyone can create an account and an organization (REGISTRATION=open)";
  t.like(await diagnose("registration"), { ok: true, detail: open });
  const free = "owners and admins choose any plan at no charge (SELF_SERVICE_PLANS=on)";
  t.like(await diagnose("plans"), { ok: true, detail: free });
  t.like(await diagnose("plans", PRODUCTION), {
    ok: true,
    detail: `${free}; since registration is open, everyone can have the Premium plan`,
  });
  t.is((await diagnose("plans", { ...PRODUCTION, REGISTRATION: "invite" })).detail, free);
  const { detail } = await diagnose("plans", { ...PRODUCTION, SELF_SERVICE_PLANS: "off" });
  t.is(detail, "only the CLI changes plans (SELF_SERVICE_PLANS=off)");
});

test("doctor says which processes share the rate limits", async (t) => {
  t.is((await diagnose("rate limits")).detail, "shared by the workers of this server");
});

test("doctor connects to the mail server", async (t) => {
  const mailServer = await startMailServer();
  const SMTP_FROM = "noreply@links.example";
  const mail = { SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`, SMTP_FROM };
  t.like(await diagnose("mail", mail), { code: 0, ok: true, detail: `connected, sender ${SMTP_FROM}` });
  await mailServer.close();
  t.like(await diagnose("mail", mail), { code: 1, ok: false });
  t.is(mailServer.received.length, 0);
});
