import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import test from "ava";
import { apiAt } from "../harness/clients/api.ts";
import { browserOf, createTeam } from "../harness/clients/dashboard.ts";
import { bearer, startTestService } from "../harness/service.ts";

const service = await startTestService();
const token = await service.token(await service.createOrganization());
const otherToken = await service.token(await service.createOrganization());
const api = apiAt(service.url, token);
const other = apiAt(service.url, otherToken);
const links = Array.from({ length: 10 }, (_, n) => ({ url: `https://example.com/${n}` }));
await api.send("POST", "/v1/links/bulk", { json: { links } });
const { id } = await other.createLink({ metadata: { text: "x".repeat(500), more: "x".repeat(500) } });

type Options = { method?: string; headers?: Record<string, string>; body?: string };

/** Sends a request as it is: `fetch` adds headers and decompresses. */
async function load(path: string, { body, ...options }: Options = {}) {
  const sent = request(service.url + path, { ...options, agent: false }).end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, bytes: await buffer(response) };
}

const AUTHORIZED = bearer(token);
const JSON_TYPE = { "content-type": "application/json" };
const COMPRESSED: Record<string, [path: string, options?: Options]> = {
  "a page": ["/docs", { headers: { accept: "text/html" } }],
  "a style sheet": ["/assets/dashboard.css"],
  "the OpenAPI document": ["/v1/openapi.json"],
  "a list of the API": ["/v1/links", { headers: AUTHORIZED }],
  "links created in bulk": [
    "/v1/links/bulk",
    { method: "POST", headers: { ...bearer(otherToken), ...JSON_TYPE }, body: JSON.stringify({ links }) },
  ],
};

for (const [what, [path, options]] of Object.entries(COMPRESSED)) {
  const ask = (encodings?: string, method = options?.method ?? "GET") =>
    load(path, {
      ...options,
      method,
      headers: { ...options?.headers, ...(encodings !== undefined && { "accept-encoding": encodings }) },
    });

  test(`${what} is compressed as the client accepts`, async (t) => {
    const plain = await ask();
    t.is(plain.headers["content-encoding"], undefined);
    t.regex(String(plain.headers.vary), /\bAccept-Encoding\b/);
    for (const [accepted, encoding, decompress] of [
      ["gzip, deflate, br", "br", brotliDecompressSync],
      ["gzip", "gzip", gunzipSync],
      ["br;q=0, *", "gzip", gunzipSync],
      ["identity", undefined, (bytes: Buffer) => bytes],
      ["zstd", undefined, (bytes: Buffer) => bytes],
    ] as const) {
      const { headers, bytes } = await ask(accepted);
      t.is(headers["content-encoding"], encoding, accepted);
      t.is(headers["content-length"], `${bytes.length}`);
      t.is(headers["content-type"], plain.headers["content-type"]);
      t.regex(String(headers.vary), /\bAccept-Encoding\b/);
      t.is(headers.etag, plain.headers.etag);
      const text = decompress(bytes).toString();
      // New links differ each time.
      if (options?.method) t.is(JSON.parse(text).results.length, links.length);
      else t.is(text, plain.bytes.toString());
      if (encoding) t.true(bytes.length < plain.bytes.length / 2, `${bytes.length} of ${plain.bytes.length}`);
    }
  });
}

test("a 304 for the tag of a compressed response has its headers, and no body", async (t) => {
  for (const path of ["/docs", "/v1/openapi.json"]) {
    const accepted = { "accept-encoding": "br" };
    const { headers } = await load(path, { headers: accepted });
    const again = await load(path, { headers: { ...accepted, "if-none-match": String(headers.etag) } });
    t.is(again.status, 304);
    t.is(again.bytes.length, 0);
    t.deepEqual([again.headers.etag, again.headers.vary], [headers.etag, headers.vary]);
    t.is(again.headers["content-encoding"], undefined);
  }
});

test("a link is not compressed, so its strong ETag can be sent in If-Match", async (t) => {
  const path = `/v1/links/${id}`;
  const accepted = { ...bearer(otherToken), "accept-encoding": "br" };
  const { headers, bytes } = await load(path, { headers: accepted });
  t.true(bytes.length > 1024);
  t.is(headers["content-encoding"], undefined);
  t.regex(String(headers.etag), /^"/);
  const changes = { json: { title: "changed" }, headers: { "if-match": String(headers.etag) } };
  t.is((await other.send("PATCH", path, changes)).status, 200);
});

test("neither a short response nor what may hold a secret is compressed", async (t) => {
  const short = await load("/v1/organization", { headers: { ...AUTHORIZED, "accept-encoding": "br" } });
  t.is(short.headers["content-encoding"], undefined);
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const options = { headers: { accept: "text/html", "accept-encoding": "br" } };
  for (const path of ["/auth/login", "/auth/reset-password/x"])
    t.is((await load(path, options)).headers["content-encoding"], undefined, path);
  const rotation = await browser.open(`${service.url}${base}/client/rotate`);
  const secret = await browser.press(rotation, "Rotate secret");
  t.regex(secret.text, /data-once/);
  t.is(secret.headers.get("content-encoding"), null);
});

test("a page of the dashboard is compressed, with a token in its forms that is another each time, and valid", async (t) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  const tokens = new Set<string | undefined>();
  for (let time = 0; time < 2; time++) {
    const page = await browser.open(`${service.url}/dashboard/account`, {
      headers: { "accept-encoding": "br" },
    });
    t.is(page.headers.get("content-encoding"), "br");
    t.regex(page.headers.get("vary") ?? "", /Accept-Encoding/);
    tokens.add(page.html.querySelector("[name=csrf]")?.getAttribute("value"));
    t.is((await browser.press(page, "Set up authenticator app")).status, 200);
  }
  t.is(tokens.size, 2);
});
