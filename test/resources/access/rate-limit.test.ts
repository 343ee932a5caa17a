import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { MCP_HEADERS, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService({ RATE_LIMIT: "on", TRUST_PROXY: "1" });
test.after.always(() => service.close());

const GROWTH = 600;
const PER_ADDRESS = 6000;
const mcp = `${service.url}/mcp`;
let hosts = 0;

/** Creates an organization and a function that calls from its own IP address. */
async function caller(plan: "growth" | "premium" = "growth") {
  const app = await service.createOrganization(undefined, plan);
  const token = await service.token(app);
  const from = { "x-forwarded-for": `198.51.100.${++hosts}` };
  const api = apiAt(service.url, token);
  return { app, token, from, show: () => api.get<{ plan: string }>("/v1/organization", from) };
}

/** Parses a header such as `"organization";r=599;t=42`. */
function parse(headers: Headers, name: string) {
  const [, policy, ...pairs] = /^"(\w+)"((?:;\w+=\d+)+)$/.exec(headers.get(name) ?? "") ?? [];
  const numbers = (pairs[0] ?? "")
    .split(";")
    .slice(1)
    .map((pair) => pair.split("="));
  return { policy, ...Object.fromEntries(numbers.map(([key, value]) => [key, Number(value)])) };
}

async function repeat(show: () => Promise<{ status: number }>, calls: number) {
  const statuses: number[] = [];
  while (statuses.length < calls) {
    const many = Math.min(50, calls - statuses.length);
    statuses.push(...(await Promise.all(Array.from({ length: many }, show))).map(({ status }) => status));
  }
  return statuses;
}

test("an organization over the limit of its plan is rejected until the next minute", async (t) => {
  const { app, token, from, show } = await caller();
  const first = await show();
  t.deepEqual(parse(first.headers, "ratelimit-policy"), { policy: "organization", q: GROWTH, w: 60 });
  t.like(parse(first.headers, "ratelimit"), { policy: "organization", r: GROWTH - 1 });

  const statuses = await repeat(show, GROWTH - 1);
  t.true(statuses.every((status) => status === 200));
  const rejected = await show();
  isProblem(t, rejected, { status: 429, code: "rate_limited" });
  const wait = Number(rejected.headers.get("retry-after"));
  t.true(Number.isInteger(wait) && wait >= 1 && wait <= 60, `${wait}`);
  t.deepEqual(parse(rejected.headers, "ratelimit"), { policy: "organization", r: 0, t: wait });

  // Calls from another IP address, with another token, and over MCP count against the same organization.
  const elsewhere = apiAt(service.url, await service.token(app));
  isProblem(t, await elsewhere.get("/v1/links"), { status: 429, code: "rate_limited" });
  const { message, headers } = modernRequest("tools/call", { name: "whoami", arguments: {} });
  const overMcp = await postMcp(mcp, message, { ...headers, ...bearer(token), ...from });
  isProblem(t, overMcp, { status: 429, code: "rate_limited" });
  t.true(Number(overMcp.headers.get("retry-after")) >= 1);

  const other = await caller();
  t.is((await other.show()).status, 200, "another organization is not affected");
});

test("calls of MCP and the API share one limit", async (t) => {
  const { token, from, show } = await caller("premium");
  await show();
  const { message, headers } = modernRequest("tools/list");
  const reply = await postMcp(mcp, message, { ...headers, ...bearer(token), ...from });
  t.is(reply.status, 200);
  t.deepEqual(parse(reply.headers, "ratelimit-policy"), { policy: "organization", q: 3000, w: 60 });
  t.like(parse(reply.headers, "ratelimit"), { policy: "organization", r: 2998 });
});

test("an MCP batch counts as many calls as it contains", async (t) => {
  const { token, from, show } = await caller();
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami", arguments: {} } };
  const send = (calls: number) =>
    postMcp(
      mcp,
      Array.from({ length: calls }, (_, id) => ({ ...call, id })),
      { ...bearer(token), ...from },
    );
  const reply = await send(10);
  t.is(reply.status, 200);
  t.like(parse(reply.headers, "ratelimit"), { policy: "organization", r: GROWTH - 10 });
  const replies = await Promise.all(Array.from({ length: GROWTH / 10 }, () => send(10)));
  const rejected = replies.filter(({ status }) => status !== 200);
  t.is(rejected.length, 1);
  isProblem(t, rejected[0] as (typeof replies)[number], { status: 429, code: "rate_limited" });
  isProblem(t, await show(), { status: 429, code: "rate_limited" });
});

test("a bulk request counts as many calls as it has links, and creates none of them over the limit", async (t) => {
  const { app, token, from } = await caller();
  const api = apiAt(service.url, token);
  const links = Array.from({ length: 100 }, () => ({ url: "https://example.com/" }));
  const create = (headers = {}) =>
    api.send("POST", "/v1/links/bulk", { json: { links }, headers: { ...from, ...headers } });

  t.is((await api.send("POST", "/v1/links/bulk", { json: { links: [] }, headers: from })).status, 422);
  const once = { "idempotency-key": "bulk" };
  t.like(parse((await create(once)).headers, "ratelimit"), { r: GROWTH - 101 });
  t.like(parse((await create(once)).headers, "ratelimit"), { r: GROWTH - 102 }, "a replay creates no links");
  const { message, headers } = modernRequest("tools/call", { name: "create_links", arguments: { links } });
  const overMcp = await postMcp(mcp, message, { ...headers, ...bearer(token), ...from });
  t.is(overMcp.status, 200);

  const statuses = await Promise.all(Array.from({ length: 30 }, async () => (await create()).status));
  t.is(statuses.filter((status) => status === 200).length, 3);
  isProblem(t, await create({ "idempotency-key": "late" }), { status: 429, code: "rate_limited" });
  t.is((await service.storage.links.usage(app.id)).links, 500);
});

test("every response shows the limit that it counted against", async (t) => {
  const { token, from } = await caller();
  const readOnly = await service.token(await service.createOrganization(), { scope: "links:read" });
  const calls: [method: string, path: string, headers: object, status: number, policy: string][] = [
    ["GET", "/v1/organization", {}, 401, "address"],
    ["GET", "/v1/organization", bearer("lga_unknown"), 401, "address"],
    ["GET", "/v1/openapi.json", {}, 200, "address"],
    ["GET", "/v1/nothing", bearer(token), 404, "address"],
    ["PUT", "/v1/links", bearer(token), 405, "address"],
    ["GET", "/v1/links/lnk_unknown", bearer(token), 404, "organization"],
    ["POST", "/v1/links", bearer(readOnly), 403, "organization"],
    ["POST", "/v1/links", bearer(token), 400, "organization"],
    ["GET", "/v1/links?limit=0", bearer(token), 422, "organization"],
    ["GET", "/mcp", bearer(token), 405, "organization"],
    ["POST", "/mcp", {}, 401, "address"],
  ];
  for (const [method, path, headers, status, policy] of calls) {
    const answer = await fetch(service.url + path, {
      method,
      headers: { ...MCP_HEADERS, ...from, ...headers },
    });
    t.is(answer.status, status, `${method} ${path}`);
    t.is(parse(answer.headers, "ratelimit").policy, policy, `${method} ${path}`);
    t.is(parse(answer.headers, "ratelimit-policy").policy, policy);
  }
});

test("every documented operation counts and shows the remaining calls", async (t) => {
  const { app, from } = await caller();
  const api = apiAt(service.url, await service.token(app));
  const { body: document } = await api.get<OpenApiDocument>("/v1/openapi.json", from);
  let left = GROWTH;
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, { security }] of Object.entries(operations)) {
      const requestPath = path.replaceAll(/\{\w+\}/g, "unknown");
      const { headers } = await api.send(method.toUpperCase(), requestPath, { headers: from });
      const isOpen = security.length === 0;
      if (!isOpen) left--;
      const shown = parse(headers, "ratelimit");
      t.like(
        shown,
        isOpen ? { policy: "address" } : { policy: "organization", r: left },
        `${method} ${path}`,
      );
    }
  }
});

for (const plan of ["growth", "premium"] as const) {
  test(`after a downgrade from ${plan} to free, calls are rejected without being counted`, async (t) => {
    const { app, show } = await caller(plan);
    await service.storage.organizations.setPlan(app.id, "free", OPERATOR);
    const rejected = await show();
    isProblem(t, rejected, { status: 403, code: "plan_required" });
    t.is(parse(rejected.headers, "ratelimit").policy, "address");
  });
}

test("calls without a token are limited by IP address before authentication", async (t) => {
  const from = { "x-forwarded-for": "203.0.113.9" };
  const anonymous = apiAt(service.url);
  const ask = () => anonymous.get("/v1/links", from);
  t.deepEqual(parse((await ask()).headers, "ratelimit-policy"), { policy: "address", q: PER_ADDRESS, w: 60 });
  const statuses = await repeat(ask, PER_ADDRESS - 1);
  t.true(statuses.every((status) => status === 401));
  const rejected = await ask();
  isProblem(t, rejected, { status: 429, code: "rate_limited" });
  t.true(Number(rejected.headers.get("retry-after")) >= 1);

  const { token } = await caller();
  isProblem(t, await apiAt(service.url, token).get("/v1/organization", from), {
    status: 429,
    code: "rate_limited",
  });
  t.is((await anonymous.get("/v1/links", { "x-forwarded-for": "203.0.113.10" })).status, 401);
});

test("the limit matches the one that GET /v1/organization returns", async (t) => {
  for (const plan of ["growth", "premium"] as const) {
    const { show } = await caller(plan);
    const { headers, body } = await show();
    const { limits } = body as unknown as { limits: { requests_per_minute: number } };
    t.like(parse(headers, "ratelimit-policy"), { q: limits.requests_per_minute });
  }
});

test("with RATE_LIMIT=off nothing is limited", async (t) => {
  const open = await startTestService();
  const api = apiAt(open.url, await open.token(await open.createOrganization()));
  const { headers } = await api.get("/v1/organization");
  t.false(headers.has("ratelimit") || headers.has("ratelimit-policy"));
  await open.close();
});
