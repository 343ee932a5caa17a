import { Agent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { basic } from "../harness/clients/oauth.ts";
import { type LoadRequest, sendRequest, type Target } from "../harness/clients/raw.ts";
import { atOnce } from "../harness/database/storage.ts";
import { prepareServers } from "../harness/new-server.ts";
import { HAS_NGINX, prepareNginx, type TestProxy } from "../harness/nginx.ts";
import { addressOf, childrenOf, freePort, type Program } from "../harness/program.ts";
import { rounds } from "../harness/rounds.ts";
import { populate } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";

export const stage = "races";

const LANES = 16;
// Until so many requests have been sent, servers are restarted again and again.
const REQUESTS = rounds(3_000, 20_000);

// The connections of the pool take turns, so each is used, and told to close, within the delay of a shutdown. An idle one
// is closed at its end, and a request that is sent at that moment is lost (RFC 9112 §9.3.1).
const POOL = { keepAlive: true, maxSockets: 16, scheduling: "fifo" } as const;

const { storage, launch: start } = await prepareServers({ SHUTDOWN_DELAY: "1", LOG_LEVEL: "error" });
await storage.migrate();

/** Creates an organization, and returns requests of its app: tokens, new links and redirects in turn. */
async function prepareRequests(target: Target): Promise<(index: number) => LoadRequest> {
  const app = await populate(target.url, storage).createOrganization();
  const token: LoadRequest = {
    method: "POST",
    path: "/oauth/token",
    headers: { "content-type": "application/x-www-form-urlencoded", ...basic(app) },
    body: "grant_type=client_credentials",
    expected: 200,
  };
  const { access_token } = JSON.parse(await sendRequest(target, token));
  const link: LoadRequest = {
    method: "POST",
    path: "/v1/links",
    headers: { "content-type": "application/json", authorization: `Bearer ${access_token}` },
    body: JSON.stringify({ url: "https://example.com/" }),
    expected: 201,
  };
  const { slug } = JSON.parse(await sendRequest(target, link));
  const redirect: LoadRequest = { method: "GET", path: `/${slug}`, expected: 302 };
  return (index) => [token, link, redirect][index % 3] as LoadRequest;
}

/** Restarts servers with `restart` until enough requests have been sent. Returns how often, and what failed. */
async function restartUnderLoad(target: Target, agent: Agent, restart: () => Promise<void>) {
  const next = await prepareRequests(target);
  const failures: string[] = [];
  let sent = 0;
  let restarts = 0;
  // Half of the lanes use kept-alive connections, the others new ones.
  const load = atOnce(LANES, async (lane) => {
    while (sent < REQUESTS || restarts < 2) {
      const request = next(sent++);
      await sendRequest(target, request, lane % 2 ? agent : false).catch(({ code = "", message }) =>
        failures.push(`${request.method} ${request.path}: ${code} ${message}`),
      );
    }
  });
  for (; sent < REQUESTS || restarts < 2; restarts++) await restart();
  await load;
  agent.destroy();
  return { sent, failures, restarts };
}

test.serial("SIGHUP restarts the workers one after the other without losing a request", async (t) => {
  const server = start({ WORKERS: "2" });
  const url = await addressOf(server);
  const { sent, failures, restarts } = await restartUnderLoad({ url }, new Agent(POOL), async () => {
    const before = await childrenOf(server.pid);
    server.kill("SIGHUP");
    // The end of a restart is no event outside of the server.
    for (let now = before; now.length !== 2 || now.some((pid) => before.includes(pid)); await sleep(50))
      now = await childrenOf(server.pid);
  });
  t.log(`${restarts} restarts, ${sent} requests`);
  t.deepEqual(failures, [], `${failures.length} of ${sent} failed`);
  const { code, stdout, stderr } = await server.stop();
  t.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  t.notRegex(stdout, /"level"/);
});

async function startBehind({ url }: TestProxy, port: number): Promise<Program> {
  const server = start({ BASE_URL: url, TRUST_PROXY: "1", PORT: String(port) });
  await addressOf(server);
  return server;
}

const title = "behind nginx, two servers are restarted in turn without losing a request";
if (!HAS_NGINX) skip(title, "nginx is not installed");
else
  test.serial(title, async (t) => {
    const nginx = await prepareNginx();
    t.teardown(nginx.stop);
    const ports = [await freePort(), await freePort()] as const;
    const servers = await Promise.all(ports.map((port) => startBehind(nginx, port)));
    await nginx.start(ports);
    let turn = 0;
    const agent = new HttpsAgent(POOL);
    const { sent, failures, restarts } = await restartUnderLoad(nginx, agent, async () => {
      const index = turn++ % 2;
      await servers[index]?.stop();
      servers[index] = await startBehind(nginx, ports[index] as number);
    });
    t.log(`${restarts} restarts, ${sent} requests`);
    t.deepEqual(failures, [], `${failures.length} of ${sent} failed`);
    for (const server of servers) t.is((await server.stop()).code, 0);
  });
