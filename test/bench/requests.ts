import { fork } from "node:child_process";
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { freePort } from "../harness/port.ts";
import { post } from "./connection.ts";
import {
  type Candidate,
  JSON_TYPE,
  largest,
  repeated,
  requestsOfTenant,
  requestsOfVisitors,
  type Tenant,
} from "./expensive-requests.ts";
import type { Flood } from "./flood.ts";
import { createTally, saturate } from "./load.ts";
import { fieldsOfTenant, fieldsOfVisitors, mostExpensive } from "./long-texts.ts";
import { median } from "./measure.ts";
import { seed } from "./ours.ts";
import { judged, type Row } from "./table.ts";
import { uploads } from "./uploads.ts";
import { fetchToken } from "./workloads.ts";
import { type Ours, section } from "./workspace.ts";

const MAX_MS = 20;
const LISTED = 10;
const ROUNDS = 3;
const REQUESTS = 5;
const FLOODS = 3;
const TAIL_CONNECTIONS = 16;
// A user has one upload at a time.
const UPLOAD_CONNECTIONS = 1;
const TAIL_S = 10;
const ALONE_S = 5;
const TAIL_PAUSE_MS = 20;
const MAX_TAIL_MS = 50;
const MAX_UPLOAD_MS = 50;
const MAX_UPLOAD_MB = 64;
const LINKS = 5000;
// Argon2 is slow on purpose. Searches have a thread of their own, and an organization has one at a time. Batches and exports
// consist of parts, with other requests in between, whose latency is measured instead.
const WITHOUT_TARGET = /Argon2|password of|search|filter|batch|CSV/;
// Limited per link: each body has room for a hundred.
const BULK = /^links in bulk/;
const PAGE = /^page of /;
const MAX_PAGE_MS = 60;
const LINKS_IN_BULK = 100;
const MAX_MS_PER_LINK = 1;

type Cost = { name: string; ms: number; statuses: string };

/** Measures the most expensive requests, and how long another tenant waits meanwhile. */
export const requestRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = keys.publicKey.export({ type: "spki", format: "pem" });
    const keyFile = workspace.file("keys.json");
    writeFileSync(
      keyFile,
      JSON.stringify({ public_keys: [{ key_identifier: "key", key, is_current: true }] }),
    );
    const port = await freePort();
    const seeded = await seed(`sqlite:${workspace.file("requests")}.sqlite`, { port });
    const ours = await workspace.restart(seeded, {
      port,
      cores: [0, 1],
      env: { LEAK_REPORT_KEYS: keyFile, DYNAMIC_REGISTRATION: "stateless", LOG_LEVEL: "error" },
    });
    const origin = `http://${ours.host}`;
    const tenant = await createTenant(origin);
    const wrongSignature = sign("sha256", Buffer.from("other"), keys.privateKey).toString("base64");
    const lists = {
      "without credentials": {
        ...requestsOfVisitors(wrongSignature),
        ...(await mostExpensive(ours, await fieldsOfVisitors(origin, tenant))),
      },
      "of a tenant": {
        ...(await requestsOfTenant(tenant, origin)),
        ...(await mostExpensive(ours, await fieldsOfTenant(origin, tenant))),
      },
    };
    const rows: Row[] = [await tailAlone(ours)];
    for (const [who, candidates] of Object.entries(lists)) {
      const costs: Cost[] = [];
      for (const [name, candidate] of Object.entries(candidates)) {
        costs.push(await costOf(ours, name, candidate));
      }
      costs.sort((a, b) => b.ms - a.ms);
      console.log(`\n| request ${who} | CPU, ms | status |\n|---|---|---|`);
      for (const { name, ms, statuses } of costs) console.log(`| ${name} | ${ms.toFixed(2)} | ${statuses} |`);
      rows.push(...costs.slice(0, LISTED).map((cost) => costRow(who, cost)));
      for (const { name } of who === "of a tenant" ? costs.slice(0, FLOODS) : [])
        rows.push(await tailBeside(ours, { name, candidate: candidates[name] as Candidate }));
    }
    return [...rows, ...(await uploadRows(ours, tenant))];
  });

function costRow(who: string, { name, ms }: Cost): Row {
  const row: Row = { name: `CPU of a request ${who}, ms: ${name}`, ours: [ms] };
  if (WITHOUT_TARGET.test(name)) return row;
  if (!BULK.test(name)) return judged(row, { atMost: PAGE.test(name) ? MAX_PAGE_MS : MAX_MS });
  const perLink: Row = { name: `CPU per link, ms: ${name}`, ours: [ms / LINKS_IN_BULK] };
  return judged(perLink, { atMost: MAX_MS_PER_LINK });
}

/** Measures what files to import cost, and how long another tenant waits meanwhile. */
async function uploadRows(ours: Ours, { organization, session }: Tenant): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, candidate] of Object.entries(await uploads(organization, session))) {
    const before = ours.server.memory();
    ours.server.resetPeak();
    await ask(ours, candidate, 0);
    const memory = ours.server.peakMemory() - before;
    const { ms, statuses } = await costOf(ours, name, candidate);
    const note = `status ${statuses}`;
    rows.push(
      judged({ name: `CPU of a ${name}, ms`, ours: [ms], note }, { atMost: MAX_UPLOAD_MS }),
      judged({ name: `memory of a ${name}, MB`, ours: [memory], note }, { atMost: MAX_UPLOAD_MB }),
      await tailBeside(ours, { name, candidate }, UPLOAD_CONNECTIONS),
    );
  }
  return rows;
}

/** Returns the processor time that the server needs for a request: the median of some rounds. */
async function costOf(ours: Ours, name: string, candidate: Candidate): Promise<Cost> {
  const { server } = ours;
  const statuses = new Set<number>();
  let index = 0;
  const rounds: number[] = [];
  for (let round = -1; round < ROUNDS; round++) {
    const before = server.cpuMs();
    for (let request = 0; request < REQUESTS; request++) statuses.add(await ask(ours, candidate, index++));
    if (round >= 0) rounds.push((server.cpuMs() - before) / REQUESTS);
  }
  return { name, ms: median(rounds), statuses: [...statuses].join(", ") };
}

/** Sends a request. Resolves to the status when all of the response is read. */
async function ask({ host }: Ours, candidate: Candidate, index: number): Promise<number> {
  const { path, init } = await candidate(index);
  const response = await fetch(`http://${host}${path}`, { redirect: "manual", ...init });
  await response.arrayBuffer();
  return response.status;
}

/** Measures how long another tenant waits while some connections send nothing but an expensive request. */
async function tailBeside(
  ours: Ours,
  { name, candidate }: { name: string; candidate: Candidate },
  connections = TAIL_CONNECTIONS,
): Promise<Row> {
  const requests = await Promise.all(Array.from({ length: connections }, (_, index) => candidate(index)));
  const flood: Flood = {
    origin: `http://${ours.host}`,
    requests,
    connections,
    seconds: TAIL_S,
  };
  const flooding = fork(new URL("./flood.ts", import.meta.url), { serialization: "advanced" });
  const ended = once(flooding, "exit");
  flooding.send(flood);
  await once(flooding, "message");
  let sent: number | undefined;
  flooding.once("message", (count) => {
    sent = Number(count);
  });
  const { p50, p99 } = await waitsOfAnother(ours, () => sent !== undefined);
  await ended;
  const rate = Math.round((sent as number) / TAIL_S);
  return judged(
    {
      name: `p99 of another tenant beside ${connections} ${connections === 1 ? "connection" : "connections"} of: ${name}, ms`,
      ours: [p99],
      note: `p50 ${p50.toFixed(1)} ms, ${rate} such requests per second`,
    },
    { atMost: MAX_TAIL_MS },
  );
}

/** Measures how long a tenant waits by itself: no figure beside a flood can be better. */
async function tailAlone(ours: Ours): Promise<Row> {
  const end = performance.now() + ALONE_S * 1000;
  const { p50, p99 } = await waitsOfAnother(ours, () => performance.now() > end);
  return {
    name: "p99 of another tenant, nothing beside it, ms",
    ours: [p99],
    note: `p50 ${p50.toFixed(1)} ms`,
  };
}

/** Creates links, one after the other, until `isOver`. */
async function waitsOfAnother(ours: Ours, isOver: () => boolean) {
  const [client] = ours.clients;
  if (!client) throw new Error("there is no client");
  const token = await fetchToken(ours.host, client);
  const body = '{"url":"https://example.com/"}';
  const own = post(ours.host, "/v1/links", "application/json", body, `Authorization: Bearer ${token}\r\n`);
  const answers = createTally(201);
  while (!isOver()) {
    await saturate({ port: ours.port, next: () => own, seconds: 0.001, connections: 1 }, answers);
    await new Promise((resolve) => setTimeout(resolve, TAIL_PAUSE_MS));
  }
  return answers.result();
}

/** Creates an organization with many links. */
async function createTenant(origin: string): Promise<Tenant> {
  const send = async <Body>(path: string, body: unknown, token?: string, method = "POST") => {
    const response = await fetch(origin + path, {
      method,
      body: JSON.stringify(body),
      headers: { ...JSON_TYPE, ...(token && { authorization: `Bearer ${token}` }) },
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Body;
  };
  const credentials = { username: "tenant", password: randomBytes(12).toString("hex") };
  type Registered = { organization: { id: string }; access_token: string };
  const { organization, access_token: session } = await send<Registered>("/auth/register", credentials);
  const path = `/dashboard/organizations/${organization.id}/plan`;
  type Upgraded = { client: { client_id: string; client_secret: string } };
  const { client } = await send<Upgraded>(path, { plan: "premium" }, session, "PUT");
  const token = await fetchToken(new URL(origin).host, {
    clientId: client.client_id,
    clientSecret: client.client_secret,
  });
  for (let count = 0; count < 100; count++) {
    const link = { ...largest(), tags: ["large"] };
    await send(
      "/v1/links",
      {
        ...link,
        metadata: Object.fromEntries(Object.keys(link.metadata).map((name) => [name, repeated("é", 500)])),
      },
      token,
    );
  }
  for (let count = 0; count < LINKS; count += 100) {
    const links = Array.from({ length: 100 }, (_, index) => ({
      url: `https://example.com/page/${count + index}`,
    }));
    await send("/v1/links/bulk", { links }, token);
  }
  return {
    token,
    session,
    organization: organization.id,
    client: { id: client.client_id, secret: client.client_secret },
  };
}
