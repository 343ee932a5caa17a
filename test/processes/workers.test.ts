import http from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { childrenOf } from "../harness/child-processes.ts";
import { apiAt } from "../harness/clients/api.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { atOnce } from "../harness/database/storage.ts";
import { readMetrics } from "../harness/metrics.ts";
import { freePort } from "../harness/port.ts";
import { bearer } from "../harness/service.ts";
import { startWorkers } from "../harness/workers.ts";

export const databases = "all";

const {
  url,
  program: server,
  storage,
  createOrganization,
  token,
  close,
} = await startWorkers({ RATE_LIMIT: "off" });

const metricsPort = await freePort();
const {
  url: meteredUrl,
  program: metered,
  token: meteredToken,
  createOrganization: createMetered,
  close: closeMetered,
} = await startWorkers({
  RATE_LIMIT: "off",
  LOG_LEVEL: "info",
  METRICS_PORT: String(metricsPort),
});

const {
  url: limitedUrl,
  createOrganization: createLimited,
  token: limitedToken,
  close: closeLimited,
} = await startWorkers({ RATE_LIMIT: "on" });

test.after.always(close);
test.after.always(closeMetered);
test.after.always(closeLimited);

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Polls for a condition that emits no event, such as the child processes of another program. */
async function until(condition: () => Promise<boolean>) {
  while (!(await condition())) await sleep(50);
}

/** Counts the dead workers in the log. */
const deaths = () => server.stdout.match(/worker died/g)?.length ?? 0;

test.serial("two workers serve one port", async (t) => {
  t.is((await childrenOf(server.pid)).length, 2);
  const app = await createOrganization();
  const tokens = await atOnce(10, () => token(app));
  const answers = await atOnce(20, (index) => apiAt(url, tokens[index % 10]).get("/v1/links"));
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
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
  for (let round = 0; round < 2; round++) {
    await until(async () => (await answering()).length === 2);
    const before = await childrenOf(server.pid);
    const victim = before[round] as number;
    process.kill(victim, "SIGKILL");
    // Until the primary notices, it may still assign connections to the dead worker; open ones are closed with it.
    await until(async () => deaths() > round);
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
  }
  t.is(deaths(), 2);
});

test.serial("connections that a killed worker had not yet received are closed", async (t) => {
  await until(async () => (await answering()).length === 2);
  const [victim = 0] = await childrenOf(server.pid);
  process.kill(victim, "SIGSTOP");
  const ends: unknown[] = [];
  const requests = atOnce(20, async () => {
    ends.push(
      await sendRaw(url, "/healthz").then(
        ({ status }) => status,
        ({ code }) => code,
      ),
    );
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
  t.deepEqual(
    new Set((await atOnce(50, () => api.get(`/${link.slug}`))).map(({ status }) => status)),
    new Set([302]),
  );
  const { code, signal, stderr } = await server.stop();
  t.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: "" });
  for (const pid of [server.pid, ...workers]) t.false(isAlive(pid));
  t.is((await storage.links.find(app.id, link.id))?.clicks, 50);
  await t.throwsAsync(fetch(`${url}/healthz`));
});

const metricsUrl = `http://127.0.0.1:${metricsPort}`;

const TOKENS = 'linkgate_http_requests_total{method="POST",route="/oauth/token",status="200"}';
const GRANTS = 'linkgate_grants_total{grant_type="client_credentials"}';

const read = () => readMetrics(metricsUrl);
const counters = async () => {
  const metrics = await read();
  return [metrics.get(TOKENS), metrics.get(GRANTS)];
};

test.serial("each worker serves the metrics of all workers", async (t) => {
  const app = await createMetered();
  await atOnce(40, () => meteredToken(app));
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
  const before = await childrenOf(metered.pid);
  const app = await createMetered();
  // On a connection of its own: one that is idle is closed when its worker stops.
  const issue = async () => {
    const { status } = await sendRaw(meteredUrl, "/oauth/token", {
      method: "POST",
      headers: ["content-type", "application/x-www-form-urlencoded"],
      body: new URLSearchParams({
        grant_type: "client_credentials",
        client_id: app.clientId,
        client_secret: app.clientSecret,
      }).toString(),
    });
    t.is(status, 200);
  };
  await atOnce(10, issue);
  const [requests = 0] = await counters();
  metered.kill("SIGHUP");
  let issued = 0;
  let last = requests;
  await until(async () => {
    await issue();
    issued++;
    const [now = 0] = await counters();
    t.true(now >= last, `${now} after ${last}`);
    last = now;
    const children = await childrenOf(metered.pid);
    return children.length === 2 && !children.some((pid) => before.includes(pid));
  });
  // A worker that takes longer than a scrape waits for is counted by the next one.
  await until(async () => (await counters())[0] === requests + issued);
  const metrics = await read();
  t.is(metrics.get("linkgate_processes"), 2);
  t.is(metrics.get(TOKENS), metrics.get(GRANTS));
});

test.serial("what a killed worker had counted at the last scrape stays counted", async (t) => {
  const [victim] = await childrenOf(metered.pid);
  const before = await counters();
  process.kill(victim as number, "SIGKILL");
  await metered.says(/worker died/);
  await until(async () => (await read()).get("linkgate_processes") === 2);
  t.deepEqual(await counters(), before);
});

test.serial("METRICS_PORT serves nothing but the metrics", async (t) => {
  t.is((await sendRaw(metricsUrl, "/readyz")).status, 404);
  t.is((await sendRaw(meteredUrl, "/metrics")).status, 404);
});

/** Sends a request on a new connection. The primary process assigns connections to its workers in turn. */
function send(path: string, headers: Record<string, string>, body?: string): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? "GET" : "POST";
    const request = http.request(new URL(path, limitedUrl), { agent: false, method, headers }, (response) => {
      response.resume().once("end", () => resolve(response));
    });
    request.once("error", reject).end(body);
  });
}

test.serial("two workers together register ten users per minute for a network", async (t) => {
  const headers = { "content-type": "application/json", accept: "application/json" };
  const statuses = [];
  for (let count = 0; count < 12; count++) {
    const user = { username: `worker-user${count}`, password: "correct horse battery" };
    statuses.push((await send("/auth/register", headers, JSON.stringify(user))).statusCode);
  }
  t.deepEqual(statuses, [...Array(10).fill(201), 429, 429]);
});

test.serial("two workers together limit the guesses at a password", async (t) => {
  const headers = { "content-type": "application/json", accept: "application/json" };
  const guess = JSON.stringify({ username: "grace", password: "guess" });
  const statuses = [];
  for (let count = 0; count < 7; count++)
    statuses.push((await send("/auth/login", headers, guess)).statusCode);
  t.deepEqual(statuses, [401, 401, 401, 401, 401, 429, 429]);
});

test.serial("two workers soon know of each other's calls of an organization", async (t) => {
  const headers = bearer(await limitedToken(await createLimited()));
  let calls = 0;
  let remaining: number;
  // The workers exchange their counts in the background: repeats until one of them has all of them.
  do {
    calls++;
    const { headers: answer } = await send("/v1/organization", headers);
    remaining = Number(/;r=(\d+)/.exec(String(answer.ratelimit))?.[1]);
  } while (calls < 20 || (remaining !== 600 - calls && calls < 600));
  t.true(calls < 600);
});
