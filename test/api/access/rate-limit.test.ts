import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { MCP_HEADERS, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { bearer, OPERATOR, startTestService } from "../../harness/service.ts";

const service = await startTestService({ RATE_LIMIT: "on", TRUST_PROXY: "1" });

const GROWTH = 600;
const mcp = `${service.url}/mcp`;
let hosts = 0;

type Organization = { limits: { requests_per_minute: number } };

async function caller() {
  const app = await service.createOrganization();
  const token = await service.token(app);
  const from = { "x-forwarded-for": `198.51.100.${++hosts}` };
  const api = apiAt(service.url, token);
  return { app, token, from, api, show: () => api.get<Organization>("/v1/organization", from) };
}

/** Parses a header such as `"organization";r=599;t=42`. */
function parse(headers: Headers, name: string) {
  const [, policy, ...pairs] = /^"(\w+)"((?:;\w+=\d+)+)$/.exec(headers.get(name) ?? "") ?? [];
  const numbers = [...(pairs[0] ?? "").matchAll(/(\w+)=(\d+)/g)];
  return { policy, ...Object.fromEntries(numbers.map(([, key, value]) => [key, Number(value)])) };
}

test("an organization over the limit of its plan is rejected until the next minute", async (t) => {
  const { app, token, from, show } = await caller();
  const first = await show();
  t.deepEqual(parse(first.headers, "ratelimit-policy"), { policy: "organization", q: GROWTH, w: 60 });
  t.is(first.body.limits.requests_per_minute, GROWTH);
  t.like(parse(first.headers, "ratelimit"), { policy: "organization", r: GROWTH - 1 });

  for (const { status } of await atOnce(GROWTH - 1, show)) t.is(status, 200);
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

test("an MCP batch counts as many calls as it contains", async (t) => {
  const { token, from, show } = await caller();
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami", arguments: {} } };
  const batch = Array.from({ length: 10 }, (_, id) => ({ ...call, id }));
  const send = () => postMcp(mcp, batch, { ...bearer(token), ...from });
  const reply = await send();
  t.is(reply.status, 200);
  t.like(parse(reply.headers, "ratelimit"), { policy: "organization", r: GROWTH - 10 });
  const replies = await atOnce(GROWTH / 10, send);
  const rejected = replies.filter(({ status }) => status !== 200);
  t.is(rejected.length, 1);
  isProblem(t, rejected[0] as (typeof replies)[number], { status: 429, code: "rate_limited" });
  isProblem(t, await show(), { status: 429, code: "rate_limited" });
});

test("a bulk request counts as many calls as it has links, and creates none of them over the limit", async (t) => {
  const { app, token, from, api } = await caller();
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

  const replies = await atOnce(30, () => create());
  t.is(replies.filter(({ status }) => status === 200).length, 3);
  isProblem(t, await create({ "idempotency-key": "late" }), { status: 429, code: "rate_limited" });
  t.is((await service.storage.links.usage(app.id)).links, 500);
});

test("a bulk update counts as many calls as it has links, and changes none of them over the limit", async (t) => {
  const { app, from, api } = await caller();
  const links = Array.from({ length: 100 }, () => ({ url: "https://example.com/" }));
  await api.send("POST", "/v1/links/bulk", { json: { links }, headers: from });
  const update = (target: object, tag: string, headers = {}) =>
    api.send("PATCH", "/v1/links/bulk", {
      json: { ...target, changes: { add_tags: [tag] } },
      headers: { ...from, ...headers },
    });
  const all = { filter: {}, expected_count: 100 };
  const once = { "idempotency-key": "bulk" };
  const calls: [reply: Awaited<ReturnType<typeof update>>, status: number, left: number][] = [
    [await update({ filter: {}, expected_count: 99 }, "a"), 409, GROWTH - 101],
    [await update(all, "a", once), 200, GROWTH - 201],
    [await update(all, "a", once), 200, GROWTH - 202],
    [await update({ ids: ["lnk_x", "lnk_y"] }, "a"), 200, GROWTH - 204],
  ];
  for (const [{ status, headers }, expected, left] of calls)
    t.deepEqual([status, parse(headers, "ratelimit").r], [expected, left]);
  const replies = await atOnce(5, () => update(all, "b"));
  t.is(replies.filter(({ status }) => status === 200).length, 3);
  isProblem(t, await update(all, "c"), { status: 429, code: "rate_limited" });
  const { ids } = (await service.storage.links.listIds(app.id, { tag: "c" }, 1)) as { ids: string[] };
  t.deepEqual(ids, []);
});

test("every response shows the limit that it counted against", async (t) => {
  const { token, from } = await caller();
  const { app: free, token: downgraded } = await caller();
  await service.storage.organizations.setPlan(free.id, "free", OPERATOR);
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
    ["GET", "/v1/organization", bearer(downgraded), 403, "address"],
  ];
  for (const [method, path, headers, status, policy] of calls) {
    const init = { method, headers: { ...MCP_HEADERS, ...from, ...headers } };
    const answer = await fetch(service.url + path, init);
    t.is(answer.status, status, `${method} ${path}`);
    t.is(parse(answer.headers, "ratelimit").policy, policy, `${method} ${path}`);
    t.is(parse(answer.headers, "ratelimit-policy").policy, policy);
  }
  const anonymous = async (address: string) =>
    parse((await apiAt(service.url).get("/v1/links", { "x-forwarded-for": address })).headers, "ratelimit").r;
  const [left, again] = [await anonymous("203.0.113.9"), await anonymous("203.0.113.9")];
  t.deepEqual([again, await anonymous("203.0.113.10")], [left - 1, left], "another address is not affected");
});
