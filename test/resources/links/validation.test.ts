import test from "ava";
import { apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));

const victim = await service.createOrganization();

test.after.always(() => service.close());

const base = service.url;
const port = new URL(base).port;
const label = (value: unknown) =>
  (JSON.stringify(value) ?? "undefined").slice(0, 60).replaceAll(port, "port");
const tags = (n: number) => Array.from({ length: n }, (_, index) => `t${index}`);
const record = (n: number) => Object.fromEntries(tags(n).map((key) => [key, 1]));

const NOT_STRINGS = [null, 1, true, [], {}, ["https://example.com"]];
const INVALID_STRINGS = [
  "nul\u0000",
  "lone \ud800",
  "lone \udc00\ud800",
  "bell\u0007",
  "line\nbreak",
  "tab\t",
  "del\u007f",
];
const HTTPS = "https://example.com/";

const invalid: Record<string, unknown[]> = {
  url: [
    ...NOT_STRINGS,
    "",
    " ",
    "example.com",
    "//example.com",
    "/path",
    "?q",
    "https:",
    "https:example.com",
    "https:/example.com",
    "https://",
    "http:\\\\example.com",
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "ftp://example.com",
    "mailto:a@example.com",
    "blob:https://example.com/x",
    "view-source:https://example.com",
    "https://user@example.com",
    "https://user:pw@example.com",
    "https://:pw@example.com",
    ` ${HTTPS}`,
    `${HTTPS} `,
    `${HTTPS}a b`,
    `${HTTPS}\t`,
    `java\nscript:alert(1)`,
    `ht\ntps://example.com`,
    `${HTTPS}\r\nSet-Cookie: a=b`,
    `${HTTPS}\u0000`,
    `${HTTPS}\ud800`,
    `${HTTPS}\udc00`,
    `${HTTPS}\u007f`,
    "https://exa mple.com",
    "https://[::1",
    "https://example.com:99999",
    "https://%00/",
    "https://a<b/",
    HTTPS + "a".repeat(2049 - HTTPS.length),
    base,
    `${base}/`,
    `${base}/abc`,
    base.toUpperCase(),
    base.replace("localhost", "LocalHost"),
    base.replace("http:", "https:"),
    base.replace("localhost", "localhost."),
    base.replace("localhost", "%6cocalhost"),
    base.replace("localhost", "ｌｏｃａｌｈｏｓｔ"),
    base.replace("//", "//@"),
    `${base}?x#y`,
    base.replace(port, `0${port}`),
  ],
  slug: [
    ...NOT_STRINGS,
    "",
    " ",
    "a b",
    "a.b",
    ".",
    "..",
    "a/b",
    "a%20b",
    "ä",
    "日本",
    "a\u0000",
    "a\n",
    "+",
    "~",
    "a?b",
    "a#b",
    "x".repeat(65),
    "\ud800",
    "ａ",
    "v1",
    "V1",
    "mcp",
    "MCP",
    "oauth",
    "OAuth",
    "auth",
    "dashboard",
    "Dashboard",
    "DASHBOARD",
    "docs",
    "healthz",
    "readyz",
    "metrics",
    "assets",
  ],
  title: [1, true, [], {}, "", "x".repeat(256), "🎉".repeat(256), ...INVALID_STRINGS],
  tags: [
    null,
    "a",
    1,
    {},
    { 0: "a" },
    [1],
    [null],
    [["a"]],
    [""],
    ["x".repeat(51)],
    ["🎉".repeat(51)],
    tags(21),
    ...INVALID_STRINGS.map((text) => [text]),
  ],
  external_id: [1, true, [], {}, "", "x".repeat(256), "🎉".repeat(256), ...INVALID_STRINGS],
  metadata: [
    null,
    "a",
    1,
    [],
    [1],
    { a: {} },
    { a: [] },
    { a: "x".repeat(501) },
    { a: "🎉".repeat(501) },
    { ["🎉".repeat(41)]: 1 },
    { "": 1 },
    { ["k".repeat(41)]: 1 },
    record(51),
    { a: "nul\u0000" },
    { a: "lone \ud800" },
    { "nul\u0000": 1 },
    { "lone \udfff": 1 },
  ],
  expires_at: [
    "9999-12-31T23:59:59-00:01",
    "2020-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
    "2099-01-01T00:00:00",
    "2099-01-01",
    "2099-02-30T00:00:00Z",
    "2099-13-01T00:00:00Z",
    "2099-01-01T25:00:00Z",
    "2099-01-01 00:00:00Z",
    "tomorrow",
    "",
    4102444800,
    4102444800000,
    true,
    [],
    {},
    "+275761-01-01T00:00:00Z",
    "Thu, 01 Jan 2099 00:00:00 GMT",
    "2099-01-01T00:00:00Z\n",
  ],
  max_clicks: [0, -1, 1.5, "10", "", true, [], {}, 2 ** 31, 2 ** 53, 1e300],
  redirect_type: [null, 300, 303, 304, 200, 404, 0, -302, 302.5, "302", true, [302], {}],
};

for (const [field, values] of Object.entries(invalid)) {
  for (const [index, value] of values.entries()) {
    test(`${field} ${index}: ${label(value)} is rejected by create and update`, async (t) => {
      const { id } = await api.createLink();
      const before = await api.get(`/v1/links/${id}`);
      for (const reply of [
        await api.send("POST", "/v1/links", { json: { url: HTTPS, [field]: value } }),
        await api.send("PATCH", `/v1/links/${id}`, { json: { archived: true, [field]: value } }),
      ]) {
        isProblem(t, reply, {
          status: 422,
          code: `invalid_${field}`,
          fields: expectedFields(reply.body.errors, field),
        });
      }
      t.deepEqual((await api.get(`/v1/links/${id}`)).body, before.body);
    });
  }
}

/** Returns the field that the only error should name: the field itself, or a part of it such as `tags.3`. */
function expectedFields(errors: { field: string }[] = [], field: string): string[] {
  const [first] = errors;
  return [first?.field.startsWith(`${field}.`) ? first.field : field];
}

test("a missing URL is rejected with an error for its field", async (t) => {
  for (const json of [{}, { slug: "no-url" }, { URL: HTTPS }]) {
    const { status, body } = await api.send("POST", "/v1/links", { json });
    t.is(status, 422, label(json));
    const fields = body.errors?.map(({ field }) => field);
    t.true(fields?.includes("url"), label(json));
  }
});

test("all invalid fields are named in one response", async (t) => {
  const reply = await api.send("POST", "/v1/links", {
    json: { url: "x", slug: "?", max_clicks: 0, color: "red" },
  });
  isProblem(t, reply, {
    status: 422,
    code: "invalid_request",
    fields: ["color", "max_clicks", "slug", "url"],
  });
});

const valid: [field: string, value: unknown][] = [
  ["url", HTTPS + "a".repeat(2048 - HTTPS.length)],
  ["url", "HTTPS://EXAMPLE.COM/Path"],
  ["url", "http://127.0.0.1:1/"],
  ["url", "https://münchen.example/straße?q=ü"],
  ["url", "https://[2001:db8::1]:8443/x"],
  ["url", "https://example.com/user@host"],
  ["slug", "x".repeat(64)],
  ["slug", "-_-"],
  ["slug", "v1x"],
  ["title", "x".repeat(255)],
  ["title", "🎉"],
  // Lengths count characters (Unicode code points), as the document does, not UTF-16 units.
  ["url", HTTPS + "🎉".repeat(600)],
  ["title", "🎉".repeat(255)],
  ["tags", ["🎉".repeat(50)]],
  ["external_id", "🎉".repeat(255)],
  ["metadata", { ["🎉".repeat(40)]: "🎉".repeat(500) }],
  ["tags", tags(20)],
  ["tags", ["x".repeat(50)]],
  ["external_id", "x".repeat(255)],
  ["metadata", record(50)],
  ["metadata", { ["k".repeat(40)]: "x".repeat(500) }],
  ["max_clicks", 1],
  ["max_clicks", 2 ** 31 - 1],
];
for (const [field, value] of valid) {
  test(`${field} ${label(value)} is accepted`, async (t) => {
    const link = await api.createLink({ [field]: value });
    t.deepEqual(link[field as keyof typeof link], value);
  });
}

const unwritable: [field: string, value: unknown][] = [
  ["id", "lnk_00000000000000000000000000"],
  ["clicks", 1000],
  ["last_clicked_at", "2030-01-01T00:00:00Z"],
  ["created_at", "2000-01-01T00:00:00Z"],
  ["updated_at", "2000-01-01T00:00:00Z"],
  ["created_by", "usr_someone"],
  ["short_url", "https://example.com/x"],
  ["organization_id", victim.id],
  ["organizationId", victim.id],
  ["org_id", victim.id],
  ["organization", { id: victim.id, plan: "premium" }],
  ["plan", "premium"],
  ["version", 7],
  ["deleted_at", 1],
  ["deleted", true],
  ["maxClicks", 1],
  ["expiresAt", 1],
  ["redirectType", 301],
  ["externalId", "x"],
  ["createdBy", "x"],
  ["toString", "x"],
  ["hasOwnProperty", "x"],
  ["", "x"],
  ["Url", "https://example.com"],
  ["url ", "https://example.com"],
  ["🎉", 1],
];

for (const [field, value] of unwritable) {
  test(`the field ${JSON.stringify(field)} cannot be written, and the error names it`, async (t) => {
    const created = await api.createLink();
    for (const reply of [
      await api.send("POST", "/v1/links", { json: { url: "https://example.com", [field]: value } }),
      await api.send("PATCH", `/v1/links/${created.id}`, { json: { title: "x", [field]: value } }),
    ]) {
      t.is(reply.status, 422);
      isProblem(t, reply, { status: 422, code: "unknown_field", fields: [field] });
    }
    t.deepEqual((await api.get<LinkBody>(`/v1/links/${created.id}`)).body, created);
  });
}

test("a link cannot be created as archived", async (t) => {
  const reply = await api.send("POST", "/v1/links", { json: { url: "https://example.com", archived: true } });
  isProblem(t, reply, { status: 422, code: "unknown_field", fields: ["archived"] });
});

test("query parameters don't set fields of a new link", async (t) => {
  const json = { url: "https://example.com" };
  const reply = await api.send<LinkBody>(
    "POST",
    `/v1/links?organization_id=${victim.id}&clicks=5&slug=query`,
    { json },
  );
  t.is(reply.body.clicks, 0);
  t.not(reply.body.slug, "query");
  const other = apiAt(service.url, await service.token(victim));
  t.is((await other.get(`/v1/links/${reply.body.id}`)).status, 404);
});
