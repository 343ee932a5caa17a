import { fileURLToPath } from "node:url";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { freePort } from "../harness/port.ts";
import { onPostgres } from "./cluster.ts";
import { get, post } from "./connection.ts";
import { type NextRequest, onSchedule, type Request } from "./load.ts";
import { median } from "./measure.ts";
import { seed } from "./ours.ts";
import { compareValues, judged, type Row } from "./table.ts";
import {
  exchanges,
  fetchToken,
  introspections,
  links,
  redirects,
  refreshes,
  resourceServer,
  tokens,
} from "./workloads.ts";
import { count, expectStored, type Ours, section, type Workspace } from "./workspace.ts";

const PER_SECOND = 300;
const MINUTES = Math.max(3, Number(process.env.BENCH_MINUTES ?? 30));
const REFRESH_TOKENS = 20;
const RECEIVER = fileURLToPath(new URL("./servers/receiver.ts", import.meta.url));
const RECEIVER_HOST = "127.0.0.1";
const ANSWERS = [200, 201, 302];
// What a server keeps must not grow with the number of requests.
const MAX_GROWTH = 1.1;

/** What a minute of the load looked like at its end. */
type Minute = { memory: number; files: number; logged: number; cpuUs: number; p99: number; wrong: number };

/** Half an hour of mixed requests at a fixed rate, with webhooks, and what it leaves in the process. */
export const soakRows = Object.assign(
  async (parts: string[]): Promise<Row[]> => {
    const rows: Row[] = [];
    if (parts.length === 0 || parts.includes("sqlite"))
      rows.push(
        ...(await section((workspace) =>
          soak(workspace, "SQLite", `sqlite:${workspace.file("soak")}.sqlite`),
        )),
      );
    if (parts.length === 0 || parts.includes("postgres"))
      rows.push(...(await onPostgres((workspace, [url]) => soak(workspace, "PostgreSQL", url as string))));
    return rows;
  },
  { parts: ["sqlite", "postgres"] },
);

async function soak(workspace: Workspace, name: string, url: string): Promise<Row[]> {
  const receiver = await workspace.start({
    script: RECEIVER,
    env: { HOSTS: RECEIVER_HOST },
    ready: /^listening on (\d+)$/,
  });
  const origin = `http://${RECEIVER_HOST}:${receiver.port}`;
  const port = await freePort();
  const seeded = await seed(url, { codes: REFRESH_TOKENS, port });
  const ours = await workspace.restart(seeded, {
    port,
    env: { LOG_LEVEL: "info", WEBHOOK_ALLOW_HOSTS: RECEIVER_HOST },
  });
  await createWebhook(ours, origin);
  const refreshTokens: string[] = [];
  const exchange = exchanges(ours.host, seeded, refreshTokens);
  await onSchedule({ port, next: exchange, expected: 200, rate: REFRESH_TOKENS, seconds: 1 });
  if (refreshTokens.length < REFRESH_TOKENS) throw new Error("the codes could not be exchanged");

  const minutes: Minute[] = [];
  for (let minute = 0; minute < MINUTES; minute++) {
    // A token lasts for an hour at most.
    const next = everyday(ours, await fetchToken(ours.host, ours.clients[0] as NewClient), refreshTokens);
    minutes.push(await observe(ours, next));
    if (minute % 5 === 4) console.log(`${name}, minute ${minute + 1}:`, JSON.stringify(minutes.at(-1)));
  }
  const created = minutes.length * 60 * PER_SECOND * (TURNS.links / TURNS_IN_ALL);
  await ours.server.stop(); // sends the deliveries that are due
  expectStored("new links", await count(url, "links"), Math.floor(created));
  return rowsOf(name, minutes, workspace.syncNote());
}

function rowsOf(name: string, minutes: Minute[], note: string): Row[] {
  // The first third is the warm-up of caches and of the garbage collector.
  const third = Math.max(1, Math.floor(minutes.length / 3));
  const [early, late] = [minutes.slice(third, 2 * third), minutes.slice(-third)];
  const middle = (of: Minute[], value: keyof Minute) => median(of.map((minute) => minute[value]));
  const growth = (what: string, value: keyof Minute) =>
    compareValues(
      `${what}, last ten minutes of the soak / those before, ${name}`,
      middle(late, value),
      middle(early, value),
      { atMost: MAX_GROWTH },
    );
  const requests = minutes.length * 60 * PER_SECOND;
  const wrong = minutes.reduce((sum, minute) => sum + minute.wrong, 0);
  const p99 = median(minutes.map((minute) => minute.p99));
  const total = `${requests.toLocaleString("en")} requests, p99 ${p99.toFixed(1)} ms, ${note}`;
  return [
    judged(
      {
        name: `soak at ${PER_SECOND} per second, unexpected responses, ${name}`,
        ours: [wrong],
        cpu: [middle(minutes, "cpuUs")],
        note: total,
      },
      { atMost: 0 },
    ),
    growth("memory, MB", "memory"),
    growth("open files", "files"),
    growth("bytes logged per request", "logged"),
  ];
}

async function observe({ server }: Ours, next: NextRequest): Promise<Minute> {
  const [cpuMs, logged] = [server.cpuMs(), server.logged()];
  const load = { port: server.port, next, expected: ANSWERS, rate: PER_SECOND, seconds: 60 };
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

/** How many of twenty requests are of each kind. */
const TURNS = { redirects: 9, links: 3, tokens: 2, introspections: 2, lists: 2, refreshes: 1, calls: 1 };
const TURNS_IN_ALL = 20;

/** Requests of every kind in turn. */
function everyday({ host, clients, slug }: Ours, token: string, refreshTokens: string[]): NextRequest {
  const authorization = `Authorization: Bearer ${token}\r\n`;
  const list = get(host, "/v1/links?limit=20", authorization);
  const call = post(
    host,
    "/mcp",
    "application/json",
    JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "whoami", arguments: {} },
    }),
    `${authorization}Accept: application/json, text/event-stream\r\n`,
  );
  const kinds: Record<keyof typeof TURNS, NextRequest> = {
    redirects: redirects(host, [slug]),
    links: links(host, token),
    tokens: tokens(host, clients),
    introspections: introspections(host, token, resourceServer),
    lists: () => list,
    refreshes: refreshes(host, clients[0] as NewClient, refreshTokens),
    calls: () => call,
  };
  const turns = Object.entries(TURNS).flatMap(([kind, times]) =>
    Array<NextRequest>(times).fill(kinds[kind as keyof typeof TURNS]),
  );
  return (index): Request => (turns[index % TURNS_IN_ALL] as NextRequest)(index);
}

async function createWebhook({ host, clients }: Ours, origin: string): Promise<void> {
  const token = await fetchToken(host, clients[0] as NewClient);
  const answer = await fetch(`http://${host}/v1/webhooks`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ url: origin, events: ["link.created"] }),
  });
  if (answer.status !== 201) throw new Error(`the webhook was not created: ${await answer.text()}`);
}
