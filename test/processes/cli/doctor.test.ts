import type { IncomingHttpHeaders, RequestListener } from "node:http";
import test, { type ExecutionContext } from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { MIGRATIONS } from "../../../adapters/database/migrations/index.ts";
import { openStorage } from "../../../adapters/index.ts";
import { checkAll } from "../../../server/cli/commands/doctor-checks.ts";
import type { CommandContext } from "../../../server/cli/execution/command.ts";
import { readSettings } from "../../../server/settings/config.ts";
import { publicUrlsOf } from "../../../server/settings/public-urls.ts";
import { forward } from "../../harness/balancer.ts";
import { startApp } from "../../harness/clients/app-server.ts";
import { startMailServer } from "../../harness/mail-server.ts";
import { PRODUCTION } from "../../harness/production.ts";
import {
  addressOf,
  CLI,
  freePort,
  runCommand,
  runShell,
  startServer,
  stopPrograms,
  temporaryFolder,
} from "../../harness/program.ts";
import { startTcpProxy } from "../../harness/tcp-proxy.ts";

const newDatabase = () => `sqlite:${temporaryFolder("doctor")}/test.sqlite`;
const settings = { DATABASE_URL: newDatabase(), PORT: String(await freePort()) };
const METRICS_TOKEN = "a-token-that-only-these-tests-use-1234";
const closes: (() => Promise<unknown>)[] = [];
type Settings = Record<string, string>;
type Check = { name: string; ok: boolean; detail: string };

/** Runs `doctor` with changed settings. Returns a check and the exit code. */
async function diagnose(name: string, changed: Settings = {}) {
  const options = { settings: { ...settings, ...changed } };
  const { code, stdout, stderr } = await runCommand(["doctor", "--json"], options);
  if (!stdout) throw new Error(stderr);
  const { checks } = JSON.parse(stdout) as { checks: Check[] };
  return { code, checks, ...(checks.find((check) => check.name === name) as Check) };
}

async function listen(listener: RequestListener): Promise<string> {
  const { url, close } = await startApp(listener);
  closes.push(close);
  return url;
}

/** Starts something that answers like a server with this issuer and clock. */
function startImitation({ issuer = "", aheadMs = 0 }): Promise<string> {
  return listen((req, res) => {
    res.setHeader("Date", new Date(Date.now() + aheadMs).toUTCString());
    res.end(JSON.stringify({ issuer: issuer || `http://${req.headers.host}` }));
  });
}

/** Starts a server behind a proxy. `pass` returns the headers that the proxy sends for those that it gets. */
async function startProxied(TRUST_PROXY: string, pass: typeof append) {
  const port = await freePort();
  const BASE_URL = await listen((req, res) => forward(req, res, port, pass(req.headers)));
  const own = { BASE_URL, METRICS_TOKEN, TRUST_PROXY, DATABASE_URL: newDatabase() };
  await addressOf(startServer({ settings: { ...own, PORT: String(port), LOG_LEVEL: "silent" } }));
  return own;
}

const append = (headers: IncomingHttpHeaders): IncomingHttpHeaders => ({
  ...headers,
  "x-forwarded-for": [headers["x-forwarded-for"], "127.0.0.1"].filter(Boolean).join(", "),
});

const unused = await freePort();
const other = await startImitation({ issuer: "https://other.example" });
const mute = await listen(() => {});
const ahead = await startImitation({ aheadMs: 90_000 });

const silent = await startTcpProxy("redis://127.0.0.1:1");
await silent.cut("silence");
const [renaming, passing, chained] = await Promise.all([
  startProxied("1", (headers) => ({ ...append(headers), host: "linkgate" })),
  startProxied("1", (headers) => headers),
  startProxied("0", (headers) => append(append(headers))),
]);

test.before(() => runCommand(["migrate"], { settings }));
test.after.always(() => {
  stopPrograms();
  return Promise.all([silent.close(), ...closes.map((close) => close())]);
});

test("doctor lists its checks", async (t) => {
  const { code, checks } = await diagnose("settings");
  t.is(code, 0);
  for (const check of checks) {
    t.deepEqual(Object.keys(check), ["name", "ok", "detail"]);
    t.true(check.ok, check.name);
  }
  const names = checks.map(({ name }) => name).join(" ");
  t.true(names.startsWith("settings environment database disk migrations keys encryption addresses server "));
  t.regex(names, / rate limits .*descriptors registration plans$/);
});

test("doctor exits with 1 if a check fails, and still returns the others", async (t) => {
  const DATABASE_URL = newDatabase();
  const { knex, close } = openDatabase(DATABASE_URL);
  await knex.raw("create table unused (id integer)");
  await close();
  const { code, checks, ok, detail } = await diagnose("migrations", { DATABASE_URL });
  t.deepEqual([code, ok], [1, false]);
  const pending = MIGRATIONS.map(({ name }) => name).join(", ");
  t.true(detail.startsWith(`pending: ${pending} (run "linkgate upgrade --check" to see what they change,`));
  t.true(checks.length > 8);
});

const LINKS = "https://links.example.com";
const REDIS_URL = `redis://:secret@127.0.0.1:${unused}`;
const SMTP = { SMTP_URL: `smtp://127.0.0.1:${unused}`, SMTP_FROM: "links@example.com" };
const UNREACHABLE =
  /can't be reached from here \(ECONNREFUSED\)\. Start the server, and check the name, the proxy/;
// A request that takes long makes the difference less certain, not its direction.
const AHEAD = /^\d\d\.\d s behind that of the server: synchronize the clocks with NTP$/;
const NO_REDIS = /^REDIS_URL: cannot connect to 127\.0\.0\.1:\d+ \(ECONNREFUSED\)\./;
const OTHER_HOST = /answered with 421: the proxy doesn't pass on the header Host: 127\.0\.0\.1:\d+$/;
const NO_HEADER = /^TRUST_PROXY is 1, but no proxy adds .* Set TRUST_PROXY=0, or let each proxy add /;
const UNCOUNTED = /^TRUST_PROXY is 0, but 2 proxies add .* Set TRUST_PROXY=2$/;
const NO_MAIL = /^can't connect to the SMTP server at 127\.0\.0\.1:\d+ \(connection refused\)$/;

/** What doctor finds with these settings: the check that fails, and what it says. */
const PROBLEMS: Record<string, [changed: Settings, check: string, detail: RegExp]> = {
  "a public service outside production": [{ BASE_URL: LINKS }, "environment", /Set NODE_ENV=production$/],
  "a service without TLS": [{ ...PRODUCTION, BASE_URL: other }, "addresses", /set BASE_URL to an https URL$/],
  "an address that can't be reached": [{ BASE_URL: `https://localhost:${unused}` }, "server", UNREACHABLE],
  "a server that doesn't answer": [{ BASE_URL: mute }, "server", /can't be reached from here \(timed out\)/],
  "another service at the public address": [{ BASE_URL: other }, "server", /something other than linkgate /],
  "a clock that is off": [{ BASE_URL: ahead }, "server", AHEAD],
  "a Redis that can't be reached": [{ REDIS_URL }, "rate limits", NO_REDIS],
  "a Redis that never answers": [{ REDIS_URL: silent.through(REDIS_URL) }, "rate limits", /\(timed out\)/],
  "a mail server that can't be reached": [SMTP, "mail", NO_MAIL],
  "a proxy that replaces the Host header": [renaming, "server", OTHER_HOST],
  "a proxy that doesn't add X-Forwarded-For": [passing, "proxies", NO_HEADER],
  "proxies that TRUST_PROXY doesn't count": [chained, "proxies", UNCOUNTED],
};
const FREE = "owners and admins choose any plan at no charge (SELF_SERVICE_PLANS=on)";
const CLI_ONLY = "only the CLI changes plans (SELF_SERVICE_PLANS=off)";
/** What it says about others, which pass. */
const REMARKS: [changed: Settings, check: string, detail: string][] = [
  [{ ...PRODUCTION, BASE_URL: LINKS }, "environment", "NODE_ENV=production"],
  [{}, "rate limits", "shared by the workers of this server"],
  [{}, "registration", "everyone can create an account and an organization (REGISTRATION=open)"],
  [{}, "plans", FREE],
  [PRODUCTION, "plans", `${FREE}; since registration is open, everyone can have the Premium plan`],
  [{ ...PRODUCTION, REGISTRATION: "invite" }, "plans", FREE],
  [{ ...PRODUCTION, SELF_SERVICE_PLANS: "off" }, "plans", CLI_ONLY],
];

async function inspect(check: string, changed: Settings) {
  const all = readSettings({ ...settings, ...changed });
  const storage = openStorage(settings.DATABASE_URL, Buffer.alloc(32));
  const context = { settings: all, urls: publicUrlsOf(all, all.PORT), storage };
  const { checks } = await checkAll(context as CommandContext).finally(storage.close);
  return checks.find(({ name }) => name === check) as Check;
}

function isFound(t: ExecutionContext, { ok, detail }: Check, expected: RegExp): void {
  t.false(ok);
  t.regex(detail, expected);
}

// One after the other: the servers are in this process, and have to answer within seconds on a busy machine.
for (const [what, [changed, check, expected]] of Object.entries(PROBLEMS))
  test.serial(`${what} is found`, async (t) => isFound(t, await inspect(check, changed), expected));

test("doctor says what production, registration and plans mean, and which Host headers a proxy has to pass on", async (t) => {
  for (const [changed, check, detail] of REMARKS)
    t.deepEqual(await inspect(check, changed), { name: check, ok: true, detail });
  const proxied = { BASE_URL: `${LINKS}:8443`, SHORT_URL: "https://go.example", TRUST_PROXY: "1" };
  const { ok, detail } = await inspect("addresses", proxied);
  t.true(ok);
  t.regex(detail, /need the header Host: links\.example\.com:8443 or go\.example$/);
});

test("a key that doesn't decrypt the stored keys is found", async (t) => {
  const own = await startProxied("1", append);
  t.like(await diagnose("keys", own), { ok: true, detail: "keys can be decrypted" });
  const ENCRYPTION_KEY = Buffer.alloc(32, 1).toString("base64url");
  isFound(t, await diagnose("keys", { ...own, ENCRYPTION_KEY }), /ENCRYPTION_KEY/);
});

test("a running server is reached through its proxy", async (t) => {
  const own = await startProxied("1", append);
  const { ok, detail } = await diagnose("server", own);
  t.true(ok, detail);
  t.regex(detail, /^reachable at http:\S+; the clock of this machine is \d\.\d s from that of the server$/);
  const seen = "1 proxy, which adds to X-Forwarded-For; the server sees requests from here as 127.0.0.1";
  t.like(await diagnose("proxies", own), { ok: true, detail: seen });
  const unknown = await diagnose("proxies", { ...own, METRICS_TOKEN: "" });
  t.regex(unknown.detail, /^not checked: with METRICS_TOKEN/);
  const other = await diagnose("proxies", { ...own, METRICS_TOKEN: "a-token-that-the-server-does-not-know" });
  isFound(t, other, /^not checked: the server has another METRICS_TOKEN, or none$/);
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

test("too low a limit on file descriptors is found", async (t) => {
  const { code, stdout } = await runShell(`ulimit -n 1024; exec ${CLI} doctor`, { settings });
  t.is(code, 1);
  t.regex(stdout, /^✗ descriptors +at most 1024 file descriptors/m);
});

test("doctor connects to the mail server, and sends nothing", async (t) => {
  const mailServer = await startMailServer();
  const SMTP_FROM = "noreply@links.example";
  const mail = { SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`, SMTP_FROM };
  t.like(await diagnose("mail", mail), { code: 0, ok: true, detail: `connected, sender ${SMTP_FROM}` });
  await mailServer.close();
  t.is(mailServer.received.length, 0);
});
