import type { NewClient } from "../../adapters/oauth/clients.ts";
import { get, post } from "./connection.ts";
import { median, type NextRequest, onSchedule } from "./load.ts";
import { createWebhook, startReceiver, verifyWebhooks } from "./receiver.ts";
import { withStorage } from "./seed.ts";
import { type Row, row } from "./table.ts";
import { exchanges, fetchToken, introspections, links, redirects, refreshes, tokens } from "./workloads.ts";
import type { Ours, Workspace } from "./workspace.ts";
import { count, eachDatabase, expectStored, RESOURCE_SERVER } from "./workspace.ts";

const PER_SECOND = 300;
const MINUTES = Math.max(3, Number(process.env.BENCH_MINUTES ?? 30));
const REFRESH_TOKENS = 20;
const RECEIVER_HOST = "127.0.0.1";
// How many of so many requests create a link.
const LINKS = 3;
const TURNS = 20;
// What a server keeps must not grow with the number of requests.
const MAX_GROWTH = 1.1;

/** Half an hour of mixed requests at a fixed rate, with webhooks, and what it leaves in the process. */
export const soak = { ...eachDatabase(run, ["sqlite", "postgres"]), long: true };

async function run(workspace: Workspace, url: string, name: string): Promise<Row[]> {
  const receiver = await startReceiver(workspace, [RECEIVER_HOST]);
  const first = await workspace.ours(url, { codes: REFRESH_TOKENS });
  await first.server.stop();
  await withStorage(url, (storage) =>
    createWebhook(storage, first.organizationId, `${receiver.origins[0]}/`),
  );
  await verifyWebhooks(url);
  const { port } = first;
  const env = { LOG_LEVEL: "info", WEBHOOK_ALLOW_HOSTS: RECEIVER_HOST };
  const ours = await workspace.restart(first, { port, env });
  const refreshTokens: string[] = [];
  const next = exchanges(ours.host, ours, refreshTokens);
  await onSchedule({ port, next, expected: 200, rate: REFRESH_TOKENS, seconds: 1 });
  if (refreshTokens.length < REFRESH_TOKENS) throw new Error("the codes could not be exchanged");

  const minutes: Minute[] = [];
  for (let minute = 0; minute < MINUTES; minute++) {
    // A token lasts for an hour at most.
    minutes.push(await observe(ours, everyday(ours, await fetchToken(ours), refreshTokens)));
    if (minute % 5 === 4) console.log(`${name}, minute ${minute + 1}:`, JSON.stringify(minutes.at(-1)));
  }
  const created = Math.floor(MINUTES * 60 * PER_SECOND * (LINKS / TURNS));
  await ours.server.stop(); // sends the deliveries that are due
  expectStored("new links", await count(url, "links"), created);
  return rowsOf(name, minutes, workspace.syncNote());
}

function rowsOf(name: string, minutes: Minute[], note: string): Row[] {
  // The first third is the warm-up of caches and of the garbage collector.
  const third = Math.floor(minutes.length / 3);
  const [early, late] = [minutes.slice(third, 2 * third), minutes.slice(-third)];
  const middle = (of: Minute[], value: keyof Minute) => median(of.map((minute) => minute[value]));
  const growth = (what: string, value: keyof Minute) =>
    row(`${what}, last third of the soak / the one before, ${name}`, middle(late, value), {
      reference: middle(early, value),
      atMost: MAX_GROWTH,
    });
  const wrong = minutes.reduce((sum, minute) => sum + minute.wrong, 0);
  const total = (minutes.length * 60 * PER_SECOND).toLocaleString("en");
  return [
    row(`soak at ${PER_SECOND} per second, unexpected responses, ${name}`, wrong, {
      cpu: middle(minutes, "cpuUs"),
      atMost: 0,
      note: `${total} requests, p99 ${middle(minutes, "p99").toFixed(1)} ms, ${note}`,
    }),
    growth("memory, MB", "memory"),
    growth("open files", "files"),
    growth("bytes logged per request", "logged"),
  ];
}

type Minute = Awaited<ReturnType<typeof observe>>;

/** Sends the requests of a minute, and returns what it looked like at its end. */
async function observe({ server, port }: Ours, next: NextRequest) {
  const [cpuMs, logged] = [server.cpuMs(), server.logged()];
  const load = { port, next, expected: [200, 201, 302], rate: PER_SECOND, seconds: 60 };
  const { p99, answered, wrong } = await onSchedule(load);
  const requests = answered + wrong;
  return {
    memory: server.memory(),
    files: server.openFiles(),
    logged: (server.logged() - logged) / requests,
    cpuUs: ((server.cpuMs() - cpuMs) * 1000) / requests,
    p99,
    wrong,
  };
}

const CALL = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami", arguments: {} } };

function everyday({ host, clients, slug }: Ours, token: string, refreshTokens: string[]): NextRequest {
  const authorization = `Authorization: Bearer ${token}\r\n`;
  const headers = `${authorization}Accept: application/json, text/event-stream\r\n`;
  const list = get(host, "/v1/links?limit=20", authorization);
  const call = post(host, "/mcp", "application/json", JSON.stringify(CALL), headers);
  const kinds: [times: number, next: NextRequest][] = [
    [9, redirects(host, slug)],
    [LINKS, links(host, token)],
    [2, tokens(host, clients)],
    [2, introspections(host, token, RESOURCE_SERVER)],
    [2, () => list],
    [1, refreshes(host, clients[0] as NewClient, refreshTokens)],
    [1, () => call],
  ];
  const turns = kinds.flatMap(([times, next]) => Array<NextRequest>(times).fill(next));
  return (index) => (turns[index % TURNS] as NextRequest)(index);
}
