import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { apiAt } from "../harness/clients/api.ts";
import { basic } from "../harness/clients/oauth.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { atOnce } from "../harness/database/storage.ts";
import { readMetrics } from "../harness/metrics.ts";
import { startOnNewDatabase } from "../harness/new-server.ts";
import { childrenOf, freePort } from "../harness/program.ts";
import { bearer } from "../harness/service.ts";

const metricsPort = await freePort();
const settings = { WORKERS: "2", LOG_LEVEL: "info", METRICS_PORT: String(metricsPort) };
const { url, server, storage, createOrganization, token } = await startOnNewDatabase(settings);
const limited = await startOnNewDatabase({ WORKERS: "2", RATE_LIMIT: "on" });

/** Polls for a condition that emits no event, such as the child processes of another program. */
async function until(condition: () => Promise<boolean>) {
  while (!(await condition())) await sleep(50);
}

const deaths = () => server.stdout.match(/worker died/g)?.length ?? 0;

const metricsUrl = `http://127.0.0.1:${metricsPort}`;

const TOKENS = 'linkgate_http_requests_total{method="POST",route="/oauth/token",status="200"}';
const GRANTS = 'linkgate_grants_total{grant_type="client_credentials"}';

const read = () => readMetrics(metricsUrl);
const counters = async () => {
  const metrics = await read();
  return [metrics.get(TOKENS), metrics.get(GRANTS)];
};

test.serial("each worker serves the metrics of all workers", async (t) => {
  const app = await createOrganization();
  await atOnce(40, () => token(app));
  // Each on a new connection, so that both workers answer.
  const samples = await atOnce(10, read);
  for (const metrics of samples) {
    t.is(metrics.get("linkgate_processes"), 2);
    t.is(metrics.get(TOKENS), 40);
    t.is(metrics.get(GRANTS), 40);
    t.is(metrics.get("linkgate_database_up"), 1, "not the sum of the workers");
  }
});

test.serial("counters don't go backward when the workers are restarted", async (t) => {
  const before = await childrenOf(server.pid);
  const app = await createOrganization();
  // On a connection of its own: one that is idle is closed when its worker stops.
  const form = ["content-type", "application/x-www-form-urlencoded"];
  const headers = [...form, "authorization", basic(app).authorization];
  const request = { method: "POST", headers, body: "grant_type=client_credentials" };
  const issue = async () => t.is((await sendRaw(url, "/oauth/token", request)).status, 200);
  await atOnce(10, issue);
  const [requests = 0] = await counters();
  server.kill("SIGHUP");
  let issued = 0;
  let last = requests;
  await until(async () => {
    await issue();
    issued++;
    const [now = 0] = await counters();
    t.true(now >= last, `${now} after ${last}`);
    last = now;
    const children = await childrenOf(server.pid);
    return children.length === 2 && !children.some((pid) => before.includes(pid));
  });
  // A worker that takes longer than a scrape waits for is counted by the next one.
  await until(async () => (await counters())[0] === requests + issued);
  const metrics = await read();
  t.is(metrics.get("linkgate_processes"), 2);
  t.is(metrics.get(TOKENS), metrics.get(GRANTS));
});

test.serial("what a killed worker had counted at the last scrape stays counted", async (t) => {
  const [victim] = await childrenOf(server.pid);
  const before = await counters();
  process.kill(victim as number, "SIGKILL");
  await server.says(/worker died/);
  await until(async () => (await read()).get("linkgate_processes") === 2);
  t.deepEqual(await counters(), before);
});

test.serial("a client that has closed its side of the connection gets its response", async (t) => {
  const { port, host } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1");
  // Node's server closes the connection once it sees that, so only what is answered immediately arrives: not what asks the
  // database.
  socket.end(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  t.regex(await text(socket), /^HTTP\/1\.1 200 /);
});

/** Returns the process IDs of the workers that answer new connections. */
async function answering(): Promise<number[]> {
  const answers = await atOnce(20, () => sendRaw(url, "/readyz?verbose"));
  return [...new Set(answers.map(({ text }) => JSON.parse(text).pid as number))];
}

test.serial("a killed worker is replaced while the service keeps running", async (t) => {
  const app = await createOrganization();
  await until(async () => (await answering()).length === 2);
  const before = await childrenOf(server.pid);
  const died = deaths();
  process.kill(before[0] as number, "SIGKILL");
  // Until the primary notices, it may still assign connections to the dead worker; open ones are closed with it.
  await until(async () => deaths() > died);
  await nextTurn();
  await until(async () => {
    const api = apiAt(url, await token(app));
    const link = await api.createLink();
    t.is((await api.get(`/v1/links/${link.id}`)).status, 200);
    return (await answering()).some((pid) => !before.includes(pid));
  });
  const now = await childrenOf(server.pid);
  t.is(now.length, 2);
  t.is(now.filter((pid) => before.includes(pid)).length, 1);
});

test.serial("connections that a killed worker had not yet received are closed", async (t) => {
  await until(async () => (await answering()).length === 2);
  const [victim = 0] = await childrenOf(server.pid);
  process.kill(victim, "SIGSTOP");
  const ends: unknown[] = [];
  const requests = atOnce(20, async () => {
    const end = await sendRaw(url, "/healthz").catch((error) => error);
    ends.push(end.code ?? end.status);
  });
  await until(async () => ends.includes(200));
  process.kill(victim, "SIGKILL");
  await requests;
  t.deepEqual([...new Set(ends)], [200, "ECONNRESET"]);
  await until(async () => (await answering()).length === 2);
});

test.serial("SIGTERM stops every worker with exit code 0, and stores what was confirmed", async (t) => {
  const workers = await childrenOf(server.pid);
  const app = await createOrganization();
  const api = apiAt(url, await token(app));
  const link = await api.createLink();
  const followed = await atOnce(50, () => api.get(`/${link.slug}`));
  t.true(followed.every(({ status }) => status === 302));
  t.like(await server.stop(), { code: 0, signal: null, stderr: "" });
  for (const pid of [server.pid, ...workers]) t.throws(() => process.kill(pid, 0), { code: "ESRCH" });
  t.is((await storage.links.find(app.id, link.id))?.clicks, 50);
  await t.throwsAsync(fetch(`${url}/healthz`));
});

test.serial("two workers together limit the guesses at a password", async (t) => {
  const headers = ["content-type", "application/json", "accept", "application/json"];
  const guess = { method: "POST", headers, body: JSON.stringify({ username: "grace", password: "guess" }) };
  const statuses = [];
  // Each on a new connection: the primary process assigns them to its workers in turn.
  while (statuses.length < 7) statuses.push((await sendRaw(limited.url, "/auth/login", guess)).status);
  t.deepEqual(statuses, [401, 401, 401, 401, 401, 429, 429]);
});

test.serial("two workers soon know of each other's calls of an organization", async (t) => {
  const { authorization } = bearer(await limited.token(await limited.createOrganization()));
  const call = { headers: ["authorization", authorization] };
  let calls = 0;
  let remaining: number;
  // The workers exchange their counts in the background: repeats until one of them has all of them.
  do {
    calls++;
    const { headers } = await sendRaw(limited.url, "/v1/organization", call);
    remaining = Number(/;r=(\d+)/.exec(String(headers.ratelimit))?.[1]);
  } while (calls < 20 || (remaining !== 600 - calls && calls < 600));
  t.true(calls < 600);
});
