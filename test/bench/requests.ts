import { fork } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { apiAt } from "../harness/clients/api.ts";
import type { Candidate, Tenant } from "./expensive-requests.ts";
import { largest, repeated, requestsOfTenant, requestsOfVisitors } from "./expensive-requests.ts";
import type { Flood } from "./flood.ts";
import { createTally, median, saturate } from "./load.ts";
import { fieldsOfTenant, fieldsOfVisitors, mostExpensive, uploads } from "./long-texts.ts";
import { printTable, type Row, row } from "./table.ts";
import { createsLinks, fetchToken, registerOwner } from "./workloads.ts";
import type { Ours, Section } from "./workspace.ts";

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

/** Measures the most expensive requests, and how long another tenant waits meanwhile. */
export const requests: Section = {
  async run(workspace) {
    const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = keys.publicKey.export({ type: "spki", format: "pem" });
    const keyFile = workspace.file("keys.json");
    const published = [{ key_identifier: "key", key, is_current: true }];
    writeFileSync(keyFile, JSON.stringify({ public_keys: published }));
    const ours = await workspace.ours(await workspace.database("sqlite"), {
      cores: [0, 1],
      env: { LEAK_REPORT_KEYS: keyFile, DYNAMIC_REGISTRATION: "stateless", LOG_LEVEL: "error" },
    });
    const origin = `http://${ours.host}`;
    const tenant = await createTenant(ours.host);
    const wrongSignature = sign("sha256", Buffer.from("other"), keys.privateKey).toString("base64");
    const visitors = await mostExpensive(ours, await fieldsOfVisitors(origin, tenant));
    const tenants = await mostExpensive(ours, await fieldsOfTenant(origin, tenant));
    const ofVisitors = { ...requestsOfVisitors(wrongSignature), ...visitors };
    const ofTenant = { ...(await requestsOfTenant(tenant, origin)), ...tenants };
    return [
      await tailAlone(ours),
      ...(await costRows(ours, "without credentials", ofVisitors)),
      ...(await costRows(ours, "of a tenant", ofTenant, FLOODS)),
      ...(await uploadRows(ours, tenant)),
    ];
  },
};

/** Measures what requests cost. The most expensive ones then flood the server. */
async function costRows(ours: Ours, who: string, candidates: Record<string, Candidate>, floods = 0) {
  const costs: Cost[] = [];
  for (const [name, candidate] of Object.entries(candidates)) costs.push(await costOf(ours, name, candidate));
  costs.sort((a, b) => b.ms - a.ms);
  console.log("");
  printTable(
    [`request ${who}`, "CPU, ms", "status"],
    costs.map(({ name, ms, statuses }) => [name, ms.toFixed(2), statuses]),
  );
  const rows = costs.slice(0, LISTED).map((cost) => costRow(who, cost));
  for (const { name } of costs.slice(0, floods))
    rows.push(await tailBeside(ours, name, candidates[name] as Candidate, TAIL_CONNECTIONS));
  return rows;
}

type Cost = { name: string; ms: number; statuses: string };

function costRow(who: string, { name, ms }: Cost): Row {
  if (BULK.test(name))
    return row(`CPU per link, ms: ${name}`, ms / LINKS_IN_BULK, { atMost: MAX_MS_PER_LINK });
  const atMost = WITHOUT_TARGET.test(name) ? undefined : PAGE.test(name) ? MAX_PAGE_MS : MAX_MS;
  return row(`CPU of a request ${who}, ms: ${name}`, ms, { atMost });
}

/** Measures what files to import cost, and how long another tenant waits meanwhile. */
async function uploadRows(ours: Ours, tenant: Tenant): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, candidate] of Object.entries(await uploads(tenant))) {
    const before = ours.server.memory();
    ours.server.resetPeak();
    await ask(ours, candidate, 0);
    const memory = ours.server.peakMemory() - before;
    const { ms, statuses } = await costOf(ours, name, candidate);
    const note = `status ${statuses}`;
    rows.push(
      row(`CPU of a ${name}, ms`, ms, { atMost: MAX_UPLOAD_MS, note }),
      row(`memory of a ${name}, MB`, memory, { atMost: MAX_UPLOAD_MB, note }),
      await tailBeside(ours, name, candidate, UPLOAD_CONNECTIONS),
    );
  }
  return rows;
}

/** Returns the processor time that the server needs for a request: the median of some rounds. */
async function costOf(ours: Ours, name: string, candidate: Candidate): Promise<Cost> {
  const statuses = new Set<number>();
  let index = 0;
  const rounds: number[] = [];
  for (let round = -1; round < ROUNDS; round++) {
    const before = ours.server.cpuMs();
    for (let request = 0; request < REQUESTS; request++) statuses.add(await ask(ours, candidate, index++));
    if (round >= 0) rounds.push((ours.server.cpuMs() - before) / REQUESTS);
  }
  return { name, ms: median(rounds), statuses: [...statuses].join(", ") };
}

const requestOf = async (candidate: Candidate, index: number) =>
  typeof candidate === "function" ? candidate(index) : candidate;

async function ask({ host }: Ours, candidate: Candidate, index: number): Promise<number> {
  const { path, init } = await requestOf(candidate, index);
  const response = await fetch(`http://${host}${path}`, { redirect: "manual", ...init });
  await response.arrayBuffer();
  return response.status;
}

/** Measures how long another tenant waits while some connections send nothing but an expensive request. */
async function tailBeside(ours: Ours, name: string, candidate: Candidate, connections: number): Promise<Row> {
  const indexes = Array.from({ length: connections }, (_, index) => index);
  const requests = await Promise.all(indexes.map((index) => requestOf(candidate, index)));
  const flood: Flood = { origin: `http://${ours.host}`, requests, connections, seconds: TAIL_S };
  const flooding = fork(new URL("./flood.ts", import.meta.url), { serialization: "advanced" });
  const ended = once(flooding, "exit");
  flooding.send(flood);
  await once(flooding, "message");
  let isOver = false;
  const sent = once(flooding, "message").finally(() => {
    isOver = true;
  });
  const { p50, p99 } = await waitsOfAnother(ours, () => isOver);
  const [count] = await sent;
  await ended;
  const rate = Math.round(count / TAIL_S);
  const title = `p99 of another tenant beside ${connections} connection${connections > 1 ? "s" : ""} of: ${name}, ms`;
  const note = `p50 ${p50.toFixed(1)} ms, ${rate} such requests per second`;
  return row(title, p99, { atMost: MAX_TAIL_MS, note });
}

/** Measures how long a tenant waits by itself: no figure beside a flood can be better. */
async function tailAlone(ours: Ours): Promise<Row> {
  const end = performance.now() + ALONE_S * 1000;
  const { p50, p99 } = await waitsOfAnother(ours, () => performance.now() > end);
  return row("p99 of another tenant, nothing beside it, ms", p99, { note: `p50 ${p50.toFixed(1)} ms` });
}

/** Creates links, one after the other, until `isOver`. */
async function waitsOfAnother(ours: Ours, isOver: () => boolean) {
  const { next, expected } = await createsLinks(ours);
  const answers = createTally(expected);
  while (!isOver()) {
    await saturate({ port: ours.port, next, seconds: 0.001, connections: 1 }, answers);
    await sleep(TAIL_PAUSE_MS);
  }
  return answers.result();
}

async function createTenant(host: string): Promise<Tenant> {
  const origin = `http://${host}`;
  const owner = await registerOwner(origin, "tenant");
  const token = await fetchToken({ host, clients: [owner.client] });
  const api = apiAt(origin, token);
  const { metadata, ...link } = largest();
  const texts = Object.fromEntries(Object.keys(metadata).map((name) => [name, repeated("é", 500)]));
  for (let count = 0; count < 100; count++)
    await api.createLink({ ...link, tags: ["large"], metadata: texts });
  for (let count = 0; count < LINKS; count += 100) {
    const urls = Array.from({ length: 100 }, (_, index) => `https://example.com/page/${count + index}`);
    await api.send("POST", "/v1/links/bulk", { json: { links: urls.map((url) => ({ url })) } });
  }
  return { ...owner, token };
}
