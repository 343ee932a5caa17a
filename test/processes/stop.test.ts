import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { sha256 } from "../../adapters/crypto/ids.ts";
import { sendRequest } from "../harness/clients/raw.ts";
import { engine, inspect } from "../harness/database/test-database.ts";
import { prepareServers } from "../harness/new-server.ts";
import { addressOf, childrenOf, type Program } from "../harness/program.ts";
import { populate } from "../harness/service.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";
import { testOnce } from "../harness/test-once.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

const { settings, storage, launch: start } = await prepareServers({ LOG_LEVEL: "error" });
const { DATABASE_URL } = settings;
await storage.migrate();

const ROUNDS = 2;
const CLIENTS = 60;
// The signal is sent after this many responses, while other requests are in flight on new and kept-alive connections.
const WARM = 300;
// A purge of this many rows takes seconds.
const EXPIRED = 30_000;

/** A request as its client sees it: `isSent` once the kernel has all of it, `status` once the response is complete. */
type Exchange = { isSent: boolean; isReused: boolean; status?: number; error?: string };

async function askToken(url: string, body: string, agent: Agent | false, started: (one: Exchange) => void) {
  const { port, host } = new URL(url);
  const headers = {
    host,
    "content-type": "application/x-www-form-urlencoded",
    "content-length": body.length,
  };
  const sent = request({ host: "127.0.0.1", port, path: "/oauth/token", method: "POST", agent, headers });
  const exchange: Exchange = { isSent: false, isReused: false };
  started(exchange);
  sent.once("finish", () => {
    exchange.isSent = true;
    exchange.isReused = sent.reusedSocket;
  });
  sent.end(body);
  try {
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    await response.toArray();
    exchange.status = response.statusCode as number;
  } catch (error) {
    exchange.error = String((error as NodeJS.ErrnoException).code);
  }
  return exchange;
}

/** Stops a server while requests are in flight. Returns those that were sent before the signal, and those on connections
 * that were opened after it: each client opens further ones until one fails. */
async function stopUnderLoad(server: Program): Promise<{ before: Exchange[]; after: Exchange[] }> {
  const url = await addressOf(server);
  const { clientId, clientSecret } = await populate(url, storage).createOrganization();
  const credentials = { client_id: clientId, client_secret: clientSecret };
  const body = new URLSearchParams({ grant_type: "client_credentials", ...credentials }).toString();
  const agent = new Agent({ keepAlive: true });
  const open = new Set<Exchange>();
  const after: Exchange[] = [];
  let before: Exchange[] | undefined;
  let answered = 0;
  // Half of the clients keep their connection alive; the others open a new one for each request.
  const clients = Array.from({ length: CLIENTS }, async (_, index) => {
    while (!before) {
      const exchange = await askToken(url, body, index % 2 ? agent : false, (one) => open.add(one));
      open.delete(exchange);
      if (++answered < WARM || before) continue;
      const sent = [...open].filter(({ isSent }) => isSent);
      if (!hasBothKinds(sent)) continue;
      before = sent;
      server.kill();
    }
    do after.push(await askToken(url, body, false, () => {}));
    while (!after.some(({ error }) => error));
  });
  await Promise.all(clients);
  agent.destroy();
  return { before: before ?? [], after };
}

/** Returns whether some requests used a new connection and some a kept-alive one. */
function hasBothKinds(sent: Exchange[]): boolean {
  return sent.some(({ isReused }) => isReused) && sent.some(({ isReused }) => !isReused);
}

for (const WORKERS of ["1", "2"])
  testOnce(`WORKERS=${WORKERS}: a stop answers what was sent, and answers or refuses the rest`, async (t) => {
    const errors: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const server = start({ WORKERS });
      const { before, after } = await stopUnderLoad(server);
      const lost = before.filter(({ status }) => status !== 200);
      t.deepEqual(lost, [], `round ${round}: ${lost.length} of ${before.length} lost`);
      t.true(hasBothKinds(before));
      const ends = new Set(after.map(({ status, error }) => error ?? status));
      errors.push([...ends].filter((end) => end !== 200).join());
      t.like(await server.ended, { code: 0, stderr: "" });
    }
    // The kernel resets a connection that arrives in the instant in which the port closes. Without the wait for a quiet
    // moment, that happens in every round.
    t.true(errors.includes("ECONNREFUSED"), errors.join("; "));
    for (const round of errors) t.regex(round, /^(ECONNREFUSED|ECONNRESET|,)+$/);
  });

test.serial("a purge stops after the current batch and leaves the rest for the next purge", async (t) => {
  const { knex } = inspect(DATABASE_URL);
  const token = { kind: "AccessToken", payload: "{}", expires_at: 1 };
  const idOf = (index: number) => sha256(`expired ${index}`);
  const tokens = Array.from({ length: EXPIRED }, (_, index) => ({ ...token, id_hash: idOf(index) }));
  while (tokens.length > 0) await knex("tokens").insert(tokens.splice(0, 500));
  const left = () => knex("tokens").where({ expires_at: 1 });
  const server = start();
  await addressOf(server);
  await until(async () => Number((await left().count({ rows: "*" }))[0]?.rows) < EXPIRED || undefined);
  t.is((await server.stop()).code, 0);
  t.true((await left().limit(1)).length > 0);
  t.deepEqual(await knex("leases").where({ name: "sweep" }), []);
});

async function stopWithoutDatabase(settings: Record<string, string>, how: "freeze" | "silence") {
  const proxy = await startTcpProxy(DATABASE_URL);
  const server = start({ ...settings, DATABASE_URL: proxy.through(DATABASE_URL) });
  const url = await addressOf(server);
  // Workers accept connections in turn. These are already open; a new one might be accepted only after the signal.
  const agents = Array.from({ length: 8 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  await Promise.all(agents.map((agent) => ask(url, "/readyz", agent)));
  await proxy.cut(how);
  const asked = agents.slice(0, 4).map((agent) => ask(url, "/readyz", agent).catch(() => {}));
  // These requests are sent later and answered earlier.
  await Promise.all(agents.slice(4).map((agent) => ask(url, "/healthz", agent)));
  const ending = await server.stop();
  await Promise.all(asked);
  for (const agent of agents) agent.destroy();
  await proxy.close();
  return ending;
}

const ask = (url: string, path: string, agent: Agent) =>
  sendRequest({ url }, { method: "GET", path, expected: 200 }, agent);

if (engine !== "sqlite") {
  test.serial("the workers exit although the database hangs", async (t) => {
    t.is((await stopWithoutDatabase({ WORKERS: "2", DATABASE_TIMEOUT: "5" }, "freeze")).code, 0);
  });

  test.serial("the server exits although the database accepts connections and never responds", async (t) => {
    const { signal } = await stopWithoutDatabase({}, "silence");
    t.is(signal, null);
  });
}

testOnce("a worker that dies during a restart is replaced once", async (t) => {
  const server = start({ WORKERS: "2", LOG_LEVEL: "info" });
  await addressOf(server);
  const [, second] = (await childrenOf(server.pid)).sort((a, b) => a - b);
  server.kill("SIGHUP");
  // The second worker dies while the first one is being replaced.
  while ((await childrenOf(server.pid)).length < 3) await sleep(5);
  process.kill(second as number, "SIGKILL");
  await server.says(/restarted all workers/);
  while ((await childrenOf(server.pid)).length < 2) await sleep(50);
  t.is((await childrenOf(server.pid)).length, 2);
  await server.stop();
});

testOnce("a server that is stopped during a restart exits with 0", async (t) => {
  const server = start({ WORKERS: "2" });
  await addressOf(server);
  server.kill("SIGHUP");
  // A new worker has just been started, and doesn't handle signals yet.
  while ((await childrenOf(server.pid)).length < 3) await sleep(5);
  const { code, stdout, stderr } = await server.stop();
  t.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  t.notRegex(stdout, /"level"/);
});

testOnce("a stop doesn't cut off a worker that a restart is stopping", async (t) => {
  const server = start({ WORKERS: "2", SHUTDOWN_DELAY: "2" });
  const url = await addressOf(server);
  server.kill("SIGHUP");
  while ((await fetch(`${url}/readyz`, { headers: { connection: "close" } })).status !== 503) await sleep(5);
  await sleep(600); // for half a second, a worker takes another signal for the same one
  t.like(await server.stop(), { code: 0, stderr: "" });
});

for (const workers of ["1", "2"])
  testOnce(`with WORKERS=${workers}, a second signal ends a shutdown that is still waiting`, async (t) => {
    const server = start({ WORKERS: workers });
    const url = await addressOf(server);
    const upload = connect(Number(new URL(url).port), "127.0.0.1");
    upload.on("error", () => {});
    upload.write("POST /oauth/token HTTP/1.1\r\nContent-Length: 1000\r\n");
    // While it is arriving, the shutdown waits for it.
    const slowly = setInterval(() => upload.write("X-Filler: yes\r\n"), 50);
    t.teardown(() => {
      clearInterval(slowly);
      upload.destroy();
    });
    const ended = server.ended.finally(() => clearInterval(slowly));
    const isOver = Symbol("over");
    do server.kill();
    while ((await Promise.race([ended.then(() => isOver), sleep(200)])) !== isOver);
    t.is((await ended).code, 1);
    if (workers === "2")
      await until(async () => ((await fetch(`${url}/healthz`).catch(() => undefined)) ? undefined : true));
  });

for (const signals of [["SIGINT"], ["SIGHUP"], ["SIGTERM", "SIGINT"]] as const)
  testOnce(`without workers, ${signals.join(" with ")} stops the server`, async (t) => {
    const server = start();
    await addressOf(server);
    for (const signal of signals) server.kill(signal);
    t.like(await server.ended, { code: 0, stderr: "" });
  });
