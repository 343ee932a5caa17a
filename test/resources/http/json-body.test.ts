import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import test from "ava";
import { z } from "zod";
import type { Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { createWorkQueue } from "../../../resources/work-queue.ts";
import { apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const token = await service.token(app);
const api = apiAt(service.url, token);
const { id } = await api.createLink();

test.after.always(() => service.close());

const routes = [
  ["POST", "/v1/links"],
  ["PATCH", `/v1/links/${id}`],
] as const;
const JSON_TYPE = { "content-type": "application/json" };
const good = JSON.stringify({ url: "https://example.com/" });
const ACCEPT_PATCH = "application/merge-patch+json, application/json";
const KB = 2 ** 10;
const MB = 2 ** 20;

const types: [type: string, body: RequestInit["body"]][] = [
  ["text/plain", good],
  ["text/json", good],
  ["application/x-www-form-urlencoded", "url=https%3A%2F%2Fexample.com"],
  [
    "multipart/form-data; boundary=x",
    '--x\r\nContent-Disposition: form-data; name="url"\r\n\r\nhttps://example.com\r\n--x--\r\n',
  ],
  ["application/xml", "<url>https://example.com</url>"],
  ["application/octet-stream", good],
  ["application/jsonp", good],
  ["application/json-seq", good],
  ["application/merge-patch+json; charset=utf-16", good],
  ["application/json-patch+json", good],
  ["application/vnd.api+json", good],
  ["application", good],
  ["json", good],
  ["application/json, text/plain", good],
  ["application/json; charset=utf-16", good],
  ["application/json; charset=iso-8859-1", good],
  ["application/json; charset=nonsense", good],
];
for (const [type, body] of types) {
  test(`a body of type ${type} is rejected with 415`, async (t) => {
    for (const [method, path] of routes) {
      const reply = await api.send(method, path, { body, headers: { "content-type": type } });
      isProblem(t, reply, { status: 415, code: "unsupported_media_type" });
      t.is(reply.headers.get("accept-patch"), method === "PATCH" ? ACCEPT_PATCH : null);
    }
  });
}

test("a body without a type is rejected with 415, whether its length is known or not", async (t) => {
  for (const [method, path] of routes) {
    for (const framing of [
      ["content-length", String(good.length)],
      ["transfer-encoding", "chunked"],
    ]) {
      const headers = ["authorization", `Bearer ${token}`, ...framing];
      const reply = await sendRaw(service.url, path, { method, headers, body: good });
      t.is(reply.status, 415, reply.text);
      t.is(JSON.parse(reply.text).code, "unsupported_media_type");
    }
  }
});

test("a merge patch is accepted by PATCH only", async (t) => {
  const headers = { "content-type": "application/merge-patch+json; charset=utf-8" };
  const body = JSON.stringify({ title: "merged" });
  t.is((await api.send("PATCH", `/v1/links/${id}`, { body, headers })).body.title, "merged");
  const refused = await api.send("POST", "/v1/links", { body: good, headers });
  isProblem(t, refused, { status: 415, code: "unsupported_media_type" });
});

for (const type of [
  "application/json",
  "application/json;charset=utf-8",
  'Application/JSON; charset="UTF-8"',
  "application/json; charset=utf8",
  "application/json; x=y",
]) {
  test(`a body of type ${type} is accepted`, async (t) => {
    t.is(
      (await api.send("POST", "/v1/links", { body: good, headers: { "content-type": type } })).status,
      201,
    );
  });
}

for (const encoding of ["zstd", "compress", "nonsense"]) {
  test(`a body in the encoding ${encoding} is rejected with 415`, async (t) => {
    const reply = await api.send("POST", "/v1/links", {
      body: good,
      headers: { ...JSON_TYPE, "content-encoding": encoding },
    });
    isProblem(t, reply, { status: 415, code: "unsupported_media_type" });
  });
}

const malformed: [name: string, body: RequestInit["body"]][] = [
  ["nothing", ""],
  ["white space", " \n"],
  ["half an object", '{"url":"https://example.com"'],
  ["a trailing comma", '{"url":"https://example.com",}'],
  ["single quotes", "{'url':'https://example.com'}"],
  ["a comment", '{"url":"https://example.com"} // comment'],
  ["two documents", `${good}${good}`],
  ["NaN", '{"max_clicks":NaN}'],
  ["a control character in a string", '{"title":"a\u0000b"}'],
  ["a form", "url=https://example.com"],
  ["a bare word", "undefined"],
  ["UTF-16", Buffer.from(good, "utf16le")],
  ["60,000 open brackets", "[".repeat(60_000)],
];
for (const [name, body] of malformed) {
  test(`a body of ${name} is rejected with 400 invalid_json`, async (t) => {
    for (const [method, path] of routes) {
      const reply = await api.send(method, path, { body, headers: JSON_TYPE });
      isProblem(t, reply, { status: 400, code: "invalid_json" });
    }
  });
}

test("a missing body is rejected with 400 invalid_json, with or without a type", async (t) => {
  for (const [method, path] of routes) {
    for (const headers of [[], ["content-type", "application/json"]]) {
      const reply = await sendRaw(service.url, path, {
        method,
        headers: ["authorization", `Bearer ${token}`, ...headers],
      });
      t.is(reply.status, 400, reply.text);
      t.is(JSON.parse(reply.text).code, "invalid_json");
    }
  }
});

for (const text of ["null", "1", "true", '"https://example.com"', "[]", `[${good}]`]) {
  test(`JSON that is not an object is rejected with 422: ${text.slice(0, 30)}`, async (t) => {
    for (const [method, path] of routes) {
      const reply = await api.send(method, path, { body: text, headers: JSON_TYPE });
      isProblem(t, reply, { status: 422, code: "invalid_request", fields: [""] });
    }
  });
}

test("a body over 64 KB is rejected with 413, and one of 64 KB is accepted", async (t) => {
  for (const [method, path] of [...routes, ["POST", "/v1/webhooks"] as const]) {
    const reply = await api.send(method, path, { body: good.padEnd(64 * KB + 1, " "), headers: JSON_TYPE });
    isProblem(t, reply, { status: 413, code: "body_too_large" });
    t.regex(reply.body.detail, /64 KB/);
  }
  const full = good.padEnd(64 * KB, " ");
  t.is((await api.send("POST", "/v1/links", { body: full, headers: JSON_TYPE })).status, 201);
});

test("links in bulk may have 1 MB", async (t) => {
  const bulk = JSON.stringify({ links: [JSON.parse(good)] });
  const send = (body: string) => api.send("POST", "/v1/links/bulk", { body, headers: JSON_TYPE });
  t.is((await send(bulk.padEnd(MB, " "))).status, 200);
  isProblem(t, await send(bulk.padEnd(MB + 1, " ")), { status: 413, code: "body_too_large" });
});

test("a chunked body over 64 KB is rejected with 413", async (t) => {
  const body = Buffer.from(`${" ".repeat(64 * KB)}${good}`);
  const reply = await sendRaw(service.url, "/v1/links", {
    method: "POST",
    headers: [
      "authorization",
      `Bearer ${token}`,
      "content-type",
      "application/json",
      "transfer-encoding",
      "chunked",
    ],
    body,
  });
  t.is(reply.status, 413);
});

test("other work runs between the large bodies of an organization", async (t) => {
  const enqueue = createWorkQueue({ pauses: false });
  const order: string[] = [];
  setImmediate(() => order.push("other"));
  const pieces = ["first", "second"].map((name) => enqueue(app.id, async () => void order.push(name)));
  await Promise.all(pieces);
  t.deepEqual(order, ["first", "other", "second"]);
});

test("a compressed body is accepted, and rejected with 413 if it decompresses to over 64 KB", async (t) => {
  const headers = { ...JSON_TYPE, "content-encoding": "gzip" };
  for (const [encoding, compress] of [
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
  ] as const) {
    const sent = { body: compress(good), headers: { ...JSON_TYPE, "content-encoding": encoding } };
    t.is((await api.send("POST", "/v1/links", sent)).status, 201, encoding);
  }
  const bomb = gzipSync(`${" ".repeat(50 * MB)}${good}`);
  isProblem(t, await api.send("POST", "/v1/links", { body: bomb, headers }), {
    status: 413,
    code: "body_too_large",
  });
  const broken = await api.send("POST", "/v1/links", { body: "not gzip", headers });
  isProblem(t, broken, { status: 400, code: "invalid_json" });
});

test("of a duplicate key one value counts, and it is validated", async (t) => {
  const twice = (first: string, second: string) =>
    api.send<LinkBody>("POST", "/v1/links", {
      body: `{"url":"${first}","url":"${second}"}`,
      headers: JSON_TYPE,
    });
  t.is((await twice("javascript:alert(1)", "https://example.com/2")).body.url, "https://example.com/2");
  t.is((await twice("https://example.com/1", "javascript:alert(1)")).status, 422);
});

const many = (count: number, value: unknown) => Array.from({ length: count }, () => value);
const named = (count: number, value: unknown) =>
  Object.fromEntries(many(count, value).map((entry, index) => [`k${index}`, entry]));
const mistakes: [what: string, path: string, body: object][] = [
  ["unknown fields", "/v1/links", named(100, 1)],
  ["tags", "/v1/links", { url: "https://example.com/", tags: many(20_000, "") }],
  ["metadata", "/v1/links", { url: "https://example.com/", metadata: named(100, {}) }],
  ["events", "/v1/webhooks", { url: "https://example.com/hook", events: many(5000, "nothing") }],
  ["links", "/v1/links/bulk", { links: many(9000, 1) }],
];
for (const [what, path, json] of mistakes) {
  test(`a body full of invalid ${what} gets a short error response`, async (t) => {
    const { status, text, body } = await api.send("POST", path, { json });
    t.is(status, 422);
    t.true(text.length < 10_000, `${text.length}`);
    const count = body.errors?.length ?? 0;
    t.true(count >= 1 && count <= 20, `${count}`);
  });
}

const crowded: [what: string, path: string, body: object, field: string, rule: string][] = [
  ["an object", "/v1/links", named(101, 1), "", "100 fields"],
  ["metadata", "/v1/links", { url: 1, metadata: named(101, 1) }, "metadata", "100 fields"],
  ["an object in an unknown field", "/v1/links", { other: [[named(101, 1)]] }, "other", "100 fields"],
  ["a link in bulk", "/v1/links/bulk", { links: [{}, named(101, 1)] }, "links", "100 fields"],
  ["an array", "/v1/links", { url: 1, tags: many(1001, 1) }, "tags", "1,000 items"],
  ["a bulk request", "/v1/links/bulk", { links: many(100_000, 1) }, "", "10,000 fields and items"],
];
for (const [what, path, json, field, rule] of crowded) {
  test(`${what} with more than ${rule} is rejected with 422 before it is validated`, async (t) => {
    const reply = await api.send("POST", path, { json });
    isProblem(t, reply, { status: 422, code: "invalid_request", fields: [field] });
    t.is(reply.body.errors?.[0]?.message, `must have at most ${rule}`);
  });
}

test("responses to a token are not stored by shared caches", async (t) => {
  for (const path of ["/v1/links", `/v1/links/${id}`, "/v1/links/lnk_unknown", "/v1/organization"]) {
    for (const caller of [api, apiAt(service.url)]) {
      t.is((await caller.get(path)).headers.get("cache-control"), "private, no-cache", path);
    }
  }
});

const poison = [
  '{"url":"https://example.com","__proto__":{"title":"poison","max_clicks":1}}',
  '{"url":"https://example.com","constructor":{"prototype":{"title":"poison"}}}',
  '{"__proto__":{"url":"https://example.com"}}',
  '{"url":"https://example.com","metadata":{"__proto__":{"title":"poison"}}}',
  '{"url":"https://example.com","metadata":{"a":{"__proto__":{"title":"poison"}}}}',
  '{"url":"https://example.com","\\u005f_proto__":{"title":"poison"}}',
];
for (const body of poison) {
  test(`${body.slice(0, 90)} is rejected and pollutes no prototype`, async (t) => {
    for (const [method, path] of routes) {
      const { status } = await api.send(method, path, { body, headers: JSON_TYPE });
      t.true(status === 400 || status === 422, `${status}`);
    }
    t.is((await api.createLink()).title, null);
    t.false("title" in {});
  });
}

const schema = z.strictObject({
  name: z.string().min(2).max(5),
  size: z.int().min(1).max(3),
  kind: z.enum(["a", "b"]),
  tags: z.array(z.string()).max(2).optional(),
  on: z.boolean({ error: "must be on or off" }).optional(),
  nested: z.strictObject({ id: z.string() }).optional(),
});
const valid = { name: "name", size: 1, kind: "a" };

const cases: [name: string, input: unknown, code: string, detail: string][] = [
  ["a missing field", { ...valid, name: undefined }, "invalid_name", "name is required."],
  ["a missing nested field", { ...valid, nested: {} }, "invalid_nested", "nested.id is required."],
  ["a missing body", undefined, "invalid_request", "The body is required."],
  ["a body that is not an object", "text", "invalid_request", "The body must be an object."],
  ["a value of another type", { ...valid, name: 5 }, "invalid_name", "name must be a string."],
  ["a fraction", { ...valid, size: 1.5 }, "invalid_size", "size must be a whole number."],
  ["a number that is too small", { ...valid, size: 0 }, "invalid_size", "size must be at least 1."],
  ["a number that is too large", { ...valid, size: 4 }, "invalid_size", "size must be at most 3."],
  ["a short string", { ...valid, name: "n" }, "invalid_name", "name must have at least 2 characters."],
  ["a long array", { ...valid, tags: ["a", "b", "c"] }, "invalid_tags", "tags must have at most 2 items."],
  ["an item of another type", { ...valid, tags: [5] }, "invalid_tags", "tags.0 must be a string."],
  ["a value that is not in the list", { ...valid, kind: "c" }, "invalid_kind", "kind must be one of a, b."],
  ["a schema's own message", { ...valid, on: 1 }, "invalid_on", "on must be on or off."],
  ["an unknown field", { ...valid, color: "red" }, "unknown_field", "color is not a known field."],
  [
    "several errors",
    { ...valid, size: 0, kind: "c" },
    "invalid_request",
    "size must be at least 1. kind must be one of a, b.",
  ],
];

for (const [name, input, code, detail] of cases) {
  test(`${name} is a 422 ${code}: ${detail}`, (t) => {
    const problem = t.throws<Problem>(() => validate(schema, input));
    t.is(problem?.status, 422);
    t.is(problem?.code, code);
    t.is(problem?.message, detail);
    t.true((problem?.errors?.length ?? 0) > 0);
  });
}

test("at most 20 errors are returned", (t) => {
  const problem = t.throws<Problem>(() =>
    validate(
      z.array(z.string()),
      Array.from({ length: 50 }, (_, n) => n),
    ),
  );
  t.is(problem?.errors?.length, 20);
});

const NESTED = `${"[".repeat(30_000)}${"]".repeat(30_000)}`;
const nestedIn = (field: string, levels: number) => `{"${field}":${"[".repeat(levels)}${"]".repeat(levels)}}`;
const plain = apiAt(service.url);

for (const [method, path, client] of [
  ["POST", "/v1/links", api],
  ["PATCH", `/v1/links/${id}`, api],
  ["PUT", "/v1/links/by-external-id/x", api],
  ["POST", "/v1/links/bulk", api],
  ["POST", "/v1/webhooks", api],
  ["POST", "/auth/register", plain],
  ["POST", "/auth/login", plain],
  ["POST", "/auth/refresh", plain],
] as const) {
  test(`JSON of 30,000 levels at ${method} ${path} is refused as such, wherever it is`, async (t) => {
    for (const field of ["url", "metadata", "links", "username", "refresh_token", "unknown"]) {
      const reply = await client.send(method, path, { body: nestedIn(field, 30_000), headers: JSON_TYPE });
      isProblem(t, reply, { status: 400, code: "invalid_json" });
      t.regex(reply.body.detail as string, /at most 64 levels deep/);
    }
    const whole = await client.send(method, path, { body: NESTED, headers: JSON_TYPE });
    isProblem(t, whole, { status: 400, code: "invalid_json" });
  });
}

test("64 levels are read, and 65 are not", async (t) => {
  const send = (levels: number) =>
    api.send("POST", "/v1/links", { body: nestedIn("title", levels - 1), headers: JSON_TYPE });
  isProblem(t, await send(64), { status: 422, code: "invalid_request", fields: ["title", "url"] });
  isProblem(t, await send(65), { status: 400, code: "invalid_json" });
});

test("an object of more than 100 fields is refused before its fields are looked at", async (t) => {
  const fields = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`field_${index}`, 1]));
  for (const [path, client, field, json] of [
    ["/v1/links", api, "", fields],
    ["/v1/links", api, "metadata", { url: 7, metadata: fields }],
    ["/v1/links/bulk", api, "links", { links: [fields] }],
    ["/v1/webhooks", api, "", fields],
    ["/auth/register", plain, "", fields],
  ] as const) {
    const reply = await client.send("POST", path, { json });
    isProblem(t, reply, { status: 422, code: "invalid_request", fields: [field] });
    t.regex(reply.body.detail as string, /must have at most 100 fields/);
  }
});
