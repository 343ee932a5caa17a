import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import test from "ava";
import { apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { sendRaw } from "../../harness/clients/raw.ts";

const { service, token, api } = await shareApi();
const anonymous = apiAt(service.url);
const { id } = await api.createLink();

const ROUTES = [
  ["POST", "/v1/links", api],
  ["PATCH", `/v1/links/${id}`, api],
  ["PUT", "/v1/links/by-external-id/x", api],
  ["POST", "/v1/links/bulk", api],
  ["POST", "/v1/webhooks", api],
  ["POST", "/auth/register", anonymous],
  ["POST", "/auth/login", anonymous],
  ["POST", "/auth/refresh", anonymous],
] as const;
const OF_LINKS = ROUTES.slice(0, 2);
const JSON_TYPE = { "content-type": "application/json" };
const good = JSON.stringify({ url: "https://example.com/" });
const ACCEPT_PATCH = "application/merge-patch+json, application/json";
const KB = 2 ** 10;
const MB = 2 ** 20;
const UNSUPPORTED = { status: 415, code: "unsupported_media_type" };
const TOO_LARGE = { status: 413, code: "body_too_large" };

const post = (body: RequestInit["body"], headers: Record<string, string> = JSON_TYPE) =>
  api.send<LinkBody>("POST", "/v1/links", { body, headers });

test("a body of another type, or without one, is refused with 415, and no body with 400", async (t) => {
  for (const [method, path] of OF_LINKS) {
    for (const type of ["text/plain", "application/json; charset=utf-16"]) {
      const reply = await api.send(method, path, { body: good, headers: { "content-type": type } });
      isProblem(t, reply, UNSUPPORTED);
      t.is(reply.headers.get("accept-patch"), method === "PATCH" ? ACCEPT_PATCH : null);
    }
    const send = async (headers: string[], body = {}) => {
      const own = ["authorization", `Bearer ${token}`, ...headers];
      const { status, text } = await sendRaw(service.url, path, { method, headers: own, ...body });
      return `${status} ${JSON.parse(text).code}`;
    };
    const framings = { "content-length": String(good.length), "transfer-encoding": "chunked" };
    for (const framing of Object.entries(framings))
      t.is(await send(framing, { body: good }), "415 unsupported_media_type");
    for (const type of [[], ["content-type", "application/json"]]) t.is(await send(type), "400 invalid_json");
  }
});

test("a merge patch is accepted by PATCH only", async (t) => {
  const headers = { "content-type": "application/merge-patch+json; charset=utf-8" };
  const body = JSON.stringify({ title: "merged" });
  t.is((await api.send("PATCH", `/v1/links/${id}`, { body, headers })).body.title, "merged");
  isProblem(t, await post(good, headers), UNSUPPORTED);
});

for (const [method, path, client] of ROUTES)
  test(`${method} ${path.replace(id, "{id}")} refuses malformed, nested, crowded and other JSON`, async (t) => {
    const send = (body: string) => client.send(method, path, { body, headers: JSON_TYPE });
    const nested = "[".repeat(30_000) + "]".repeat(30_000);
    for (const body of ["{", '{"url":"https://example.com","__proto__":{"title":"x"}}', nested])
      isProblem(t, await send(body), { status: 400, code: "invalid_json" });
    const fields = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`field_${index}`, 1]));
    const crowded = await send(JSON.stringify(fields));
    isProblem(t, crowded, { status: 422, code: "invalid_request", fields: [""] });
    t.regex(crowded.body.detail, /must have at most 100 fields/);
    if (client === anonymous) return;
    for (const body of ["null", "1", "[]", `[${good}]`]) {
      const reply = await send(body);
      t.deepEqual([reply.status, reply.body.code], [422, "invalid_request"], body);
    }
  });

test("a body over 64 KB is refused with 413, and one of 64 KB is accepted", async (t) => {
  for (const [method, path] of [...OF_LINKS, ["POST", "/v1/webhooks"] as const]) {
    const reply = await api.send(method, path, { body: good.padEnd(64 * KB + 1, " "), headers: JSON_TYPE });
    isProblem(t, reply, TOO_LARGE);
    t.regex(reply.body.detail, /64 KB/);
  }
  t.is((await post(good.padEnd(64 * KB, " "))).status, 201);
  const headers = ["authorization", `Bearer ${token}`, "content-type", "application/json"];
  const chunked = await sendRaw(service.url, "/v1/links", {
    method: "POST",
    headers: [...headers, "transfer-encoding", "chunked"],
    body: Buffer.from(`${" ".repeat(64 * KB)}${good}`),
  });
  t.is(chunked.status, 413);
});

test("links in bulk may have 1 MB", async (t) => {
  const bulk = JSON.stringify({ links: [JSON.parse(good)] });
  const send = (body: string) => api.send("POST", "/v1/links/bulk", { body, headers: JSON_TYPE });
  t.is((await send(bulk.padEnd(MB, " "))).status, 200);
  isProblem(t, await send(bulk.padEnd(MB + 1, " ")), TOO_LARGE);
});

test("a compressed body is accepted, and refused if it is unknown, broken or decompresses to over 64 KB", async (t) => {
  const compressed = (encoding: string, body: RequestInit["body"]) =>
    post(body, { ...JSON_TYPE, "content-encoding": encoding });
  t.is((await compressed("gzip", gzipSync(good))).status, 201);
  t.is((await compressed("deflate", deflateSync(good))).status, 201);
  t.is((await compressed("br", brotliCompressSync(good))).status, 201);
  for (const encoding of ["zstd", "compress", "nonsense"])
    isProblem(t, await compressed(encoding, good), UNSUPPORTED);
  isProblem(t, await compressed("gzip", gzipSync(`${" ".repeat(50 * MB)}${good}`)), TOO_LARGE);
  isProblem(t, await compressed("gzip", "not gzip"), { status: 400, code: "invalid_json" });
});

test("responses to a token are not stored by shared caches", async (t) => {
  for (const path of ["/v1/links", `/v1/links/${id}`, "/v1/links/lnk_unknown", "/v1/organization"])
    for (const caller of [api, anonymous])
      t.is((await caller.get(path)).headers.get("cache-control"), "private, no-cache", path);
});
