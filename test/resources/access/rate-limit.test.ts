import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import { apiAt, isProblem } from "../harness/api.ts";
import { MCP_HEADERS, modernRequest, postMcp } from "../harness/mcp.ts";
import { bearer, startTestService } from "../harness/service.ts";

const service = await startTestService({ RATE_LIMIT: "on", TRUST_PROXY: "1" });
test.after.always(() => service.close());

const GROWTH = 600;
const PER_ADDRESS = 6000;
const mcp = `${service.url}/mcp`;
let hosts = 0;

/** An organization, and its calls from an address of its own. */
async function caller(plan: "growth" | "premium" = "growth") {
  const app = await service.createOrganization(undefined, plan);
  const token = await service.token(app);
  const from = { "x-forwarded-for": `198.51.100.${++hosts}` };
  const api = apiAt(service.url, token);
  return { app, token, from, show: () => api.get<{ plan: string }>("/v1/organization", from) };
}

/** The numbers of a header such as `"organization";r=599;t=42`. */
function parse(headers: Headers, name: string) {
  const [, policy, ...pairs] = /^"(\w+)"((?:;\w+=\d+)+)$/.exec(headers.get(name) ?? "") ?? [];
  const numbers = (pairs[0] ?? "")
    .split(";")
    .slice(1)
    .map((pair) => pair.split("="));
  return { policy, ...Object.fromEntries(numbers.map(([key, value]) => [key, Number(value)])) };
}

async function useUp(show: () => Promise<{ status: number }>, calls: number) {
  const statuses: number[] = [];
  while (statuses.length < calls) {
    const many = Math.min(50, calls - statuses.length);
    statuses.push(...(await Promise.all(Array.from({ length: many }, show))).map(({ status }) => status));
  }
  return statuses;
}

test("sec 96: an organization has the calls of its plan within a minute, and then waits", async (t) => {
  const { app, token, from, show } = await caller();
  const first = await show();
  t.deepEqual(parse(first.headers, "ratelimit-policy"), { policy: "organization", q: GROWTH, w: 60 });
  t.like(parse(first.headers, "ratelimit"), { policy: "organization", r: GROWTH - 1 });

  const statuses = await useUp(show, GROWTH - 1);
  t.true(statuses.every((status) => status === 200));
  const refused = await show();
  isProblem(t, refused, { status: 429, code: "rate_limited" });
  const wait = Number(refused.headers.get("retry-after"));
  t.true(Number.isInteger(wait) && wait >= 1 && wait <= 60, `${wait}`);
  t.deepEqual(parse(refused.headers, "ratelimit"), { policy: "organization", r: 0, t: wait });

  // From elsewhere, with another token, and over MCP: it is the organization that is counted.
  const elsewhere = apiAt(service.url, await service.token(app));
  isProblem(t, await elsewhere.get("/v1/links"), { status: 429, code: "rate_limited" });
  const { message, headers } = modernRequest("tools/call", { name: "whoami", arguments: {} });
  const overMcp = await postMcp(mcp, message, { ...headers, ...bearer(token), ...from });
  isProblem(t, overMcp, { status: 429, code: "rate_limited" });
  t.true(Number(overMcp.headers.get("retry-after")) >= 1);

  const other = await caller();
  t.is((await other.show()).status, 200, "another organization is not held up");
});

test("calls over MCP and those of the API count together", async (t) => {
  const { token, from, show } = await caller("premium");
  await show();
  const { message, headers } = modernRequest("tools/list");
  const reply = await postMcp(mcp, message, { ...headers, ...bearer(token), ...from });
  t.is(reply.status, 200);
  t.deepEqual(parse(reply.headers, "ratelimit-policy"), { policy: "organization", q: 3000, w: 60 });
  t.like(parse(reply.headers, "ratelimit"), { policy: "organization", r: 2998 });
});

test("sec 96: a batch over MCP counts as many calls as it holds", async (t) => {
  const { token, from, show } = await caller();
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami", arguments: {} } };
  const send = (calls: number) =>
    postMcp(
      mcp,
      Array.from({ length: calls }, (_, id) => ({ ...call, id })),
      { ...bearer(token), ...from },
    );
  const reply = await send(50);
  t.is(reply.status, 200);
  t.like(parse(reply.headers, "ratelimit"), { policy: "organization", r: GROWTH - 50 });
  const refused = await send(GROWTH);
  isProblem(t, refused, { status: 429, code: "rate_limited" });
  isProblem(t, await show(), { status: 429, code: "rate_limited" });
});

test("every answer shows the limit that it counted against", async (t) => {
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

test("every operation of the document counts, and shows what is left", async (t) => {
  const { app, from } = await caller();
  const api = apiAt(service.url, await service.token(app));
  const { body: document } = await api.get<OpenApiDocument>("/v1/openapi.json", from);
  let left = GROWTH;
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, { security }] of Object.entries(operations)) {
      const address = path.replaceAll(/\{\w+\}/g, "unknown");
      const { headers } = await api.send(method.toUpperCase(), address, { headers: from });
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
  test(`sec 94, 96: an organization that was on ${plan} and is on free is refused before it is counted`, async (t) => {
    const { app, show } = await caller(plan);
    await service.storage.organizations.setPlan(app.id, "free", OPERATOR);
    const refused = await show();
    isProblem(t, refused, { status: 403, code: "plan_required" });
    t.is(parse(refused.headers, "ratelimit").policy, "address");
  });
}

test("sec 96: an address that sends without a token is held up before anything is looked up", async (t) => {
  const from = { "x-forwarded-for": "203.0.113.9" };
  const anybody = apiAt(service.url);
  const ask = () => anybody.get("/v1/links", from);
  t.deepEqual(parse((await ask()).headers, "ratelimit-policy"), { policy: "address", q: PER_ADDRESS, w: 60 });
  const statuses = await useUp(ask, PER_ADDRESS - 1);
  t.true(statuses.every((status) => status === 401));
  const refused = await ask();
  isProblem(t, refused, { status: 429, code: "rate_limited" });
  t.true(Number(refused.headers.get("retry-after")) >= 1);

  const { token } = await caller();
  isProblem(t, await apiAt(service.url, token).get("/v1/organization", from), {
    status: 429,
    code: "rate_limited",
  });
  t.is((await anybody.get("/v1/links", { "x-forwarded-for": "203.0.113.10" })).status, 401);
});

test("the limit is the one that the organization shows", async (t) => {
  for (const plan of ["growth", "premium"] as const) {
    const { show } = await caller(plan);
    const { headers, body } = await show();
    const { limits } = body as unknown as { limits: { requests_per_minute: number } };
    t.like(parse(headers, "ratelimit-policy"), { q: limits.requests_per_minute });
  }
});

test("with RATE_LIMIT=off nothing is counted", async (t) => {
  const open = await startTestService();
  const api = apiAt(open.url, await open.token(await open.createOrganization()));
  const { headers } = await api.get("/v1/organization");
  t.false(headers.has("ratelimit") || headers.has("ratelimit-policy"));
  await open.close();
});
