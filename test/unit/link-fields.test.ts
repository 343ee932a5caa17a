import test from "ava";
import type { Problem } from "../../resources/http/problem.ts";
import { validate } from "../../resources/http/validate.ts";
import { assertAllowedSlug } from "../../resources/links/create.ts";
import { reservedNamesOf, SLUG_RULE } from "../../resources/links/rules.ts";
import { linkSchemas, toFields, withExternalId } from "../../resources/links/schema.ts";
import { GUESSED_SEGMENTS } from "../../server/http/redirects.ts";

const BASE = "http://localhost:3000";
const SHORT = "https://go.example";
const mcp = `${SHORT}/tools/mcp`;
const own = reservedNamesOf({ base: BASE, api: `${BASE}/v1`, mcp, mcpRead: `${mcp}/read`, short: SHORT });
const { create, update, fallbackUrl } = linkSchemas(own);
const URL = "https://example.com/";

const names = (count: number) => Array.from({ length: count }, (_, index) => `t${index}`);
const record = (count: number) => Object.fromEntries(names(count).map((key) => [key, 1]));

const NOT_STRINGS = [1, true, [], {}, [URL]];
const NOT_LINES = ["nul\0", "bell\u0007", "line\nbreak", "tab\t", "del\u007f", "lone \ud800", "\udc00\ud800"];
const textsOver = (max: number) => ["", "x".repeat(max + 1), "🎉".repeat(max + 1), ...NOT_LINES];

const DESTINATIONS: Record<string, unknown[]> = {
  "must be a string": NOT_STRINGS,
  "must be an absolute URL, for example https://example.com/page": [
    ...["", "example.com", "//example.com", "https://", "https://[::1", "https://a:99999", "https://%00/"],
  ],
  "must not contain spaces or control characters": [
    ...[` ${URL}`, `${URL} `, `${URL}a b`, "https://exa mple.com", "java\nscript:alert(1)"],
    ...["\t", "\r\nSet-Cookie: a=b", "\0", "\ud800", "\udc00", "\u007f"].map((end) => URL + end),
  ],
  "must have // after the scheme": ["https:example.com", "https:/example.com", "http:\\\\example.com"],
  "must be an http or https URL": [
    ...["JavaScript:alert(1)", "data:text/html,x", "file:///etc/passwd", "blob:https://example.com/x"],
  ],
  "must not contain a username or password": ["user", "user:pw", ":pw"].map(
    (user) => `https://${user}@example.com`,
  ),
  "must be at most 2048 characters": [URL.padEnd(2049, "a")],
  "must be at most 8192 characters when percent-encoded": [URL.padEnd(2048, "日")],
  "must not point to this service": [
    ...[BASE, `${BASE}/`, `${BASE}/abc`, `${BASE}?x#y`, BASE.toUpperCase(), BASE.replace("//", "//@")],
    ...["LocalHost:3000", "localhost.:3000", "localhost:03000"].map((host) => `http://${host}`),
    ...["https://localhost:3000", "http://%6cocalhost:3000", "http://ｌｏｃａｌｈｏｓｔ:3000"],
    ...[SHORT, "http://GO.example."],
  ],
};

const INVALID: Record<string, Record<string, unknown[]>> = {
  url: { ...DESTINATIONS, "must be a string": [null, ...NOT_STRINGS] },
  fallback_url: DESTINATIONS,
  password: {
    "must be a string": NOT_STRINGS,
    "must be 4 to 128 characters without control characters": [...textsOver(128), "abc", "🎉🎉🎉"],
  },
  slug: {
    "must be a string": [null, ...NOT_STRINGS],
    [SLUG_RULE]: [
      ...["", ".", "+", "a b", "a.b", "a%2Fb", "a\0", "a\n", "a?b", "ä", "ａ", "/a", "a/", "a//b", "a\\b"],
      ...["\ud800", "x".repeat(65), `a/${"x".repeat(65)}`, "1/2/3/4/5/6/7/8/9"],
      Array(4).fill("x".repeat(64)).join("/"),
    ],
  },
  title: {
    "must be a string": NOT_STRINGS,
    "must be 1 to 255 characters without control characters": textsOver(255),
  },
  tags: {
    "must be an array of strings": [null, "a", 1, {}, { 0: "a" }],
    "0: must be a string": [[1], [null], [["a"]]],
    "0: must be 1 to 50 characters without control characters": textsOver(50).map((text) => [text]),
    "must have at most 20 tags": [names(21)],
  },
  external_id: {
    "must be a string": NOT_STRINGS,
    "must be 1 to 255 characters without control characters": textsOver(255),
  },
  metadata: {
    "must be an object": [null, "a", 1, [], [1]],
    "a: must be a string of at most 500 characters, a number, a boolean or null": [
      ...[{}, [], "x".repeat(501), "🎉".repeat(501), "nul\0", "lone \ud800"].map((a) => ({ a })),
    ],
    "must have at most 50 keys": [record(51)],
    ...Object.fromEntries(
      ["", "k".repeat(41), "🎉".repeat(41), "nul\0", "lone \udfff"].map((key) => [
        `${key}: must be 1 to 40 characters without control characters`,
        [{ [key]: 1 }],
      ]),
    ),
  },
  expires_at: {
    "must be before the year 10000 in UTC": ["9999-12-31T23:59:59-00:01"],
    "must be in the future": ["2020-01-01T00:00:00Z", "1970-01-01T00:00:00Z"],
    "must be an RFC 3339 time with a time zone, for example 2030-01-31T12:00:00Z": [
      ...["2099-01-01T00:00:00", "2099-01-01", "2099-02-30T00:00:00Z", "2099-01-01T25:00:00Z", "tomorrow"],
      ...["", "2099-01-01 00:00:00Z", "+275761-01-01T00:00:00Z", "2099-01-01T00:00:00Z\n", 4102444800, {}],
    ],
  },
  max_clicks: {
    "must be at least 1": [0, -1],
    "must be a whole number": [1.5, "10", "", true, [], {}, 2 ** 53, 1e300],
    "must be at most 2147483647": [2 ** 31],
  },
  card: {
    "must be an object": ["a", 1, true, [], [1]],
    "title: is required": [{}, { description: "x" }, { image_url: URL }],
    "title: must be a string": NOT_STRINGS.map((title) => ({ title })),
    "title: must be 1 to 255 characters without control characters": textsOver(255).map((title) => ({
      title,
    })),
    "description: must be at most 500 characters of valid text": [
      ...["x".repeat(501), "🎉".repeat(501), "nul\0", "lone \ud800"].map((text) => ({
        title: "a",
        description: text,
      })),
    ],
    ...Object.fromEntries(
      Object.entries(DESTINATIONS).map(([message, values]) => [
        `image_url: ${message}`,
        values.map((image_url) => ({ title: "a", image_url })),
      ]),
    ),
  },
  redirect_type: {
    "must be 301, 302, 307 or 308": [null, 300, 303, 304, 200, 404, 0, -302, 302.5, "302", true, [302], {}],
  },
};

const RESERVED = [
  ...["v1", "V1", "mcp", "MCP", "oauth", "OAuth", "auth", "dashboard", "Dashboard", "DASHBOARD", "docs"],
  ...["healthz", "readyz", "metrics", "assets", "tools", "v1/links", "OAuth/a/b", "tools/a"],
  ...["Logout", ...GUESSED_SEGMENTS],
];

test("the addresses of the service are no slugs on its own host, but on domains", (t) => {
  const errors = [{ field: "slug", message: "is reserved" }];
  for (const slug of RESERVED) {
    t.throws(() => assertAllowedSlug({ slug, domain: null }, own), { code: "invalid_slug" }, slug);
    t.like(
      t.throws(() => assertAllowedSlug({ slug, domain: null }, own)),
      { errors },
    );
    t.notThrows(() => assertAllowedSlug({ slug, domain: "go.acme.example" }, own));
  }
  t.notThrows(() => assertAllowedSlug({ slug: "spring", domain: null }, own));
});

function problemOf(schema: Parameters<typeof validate>[0], input: object): Problem {
  try {
    validate(schema, input);
  } catch (error) {
    return error as Problem;
  }
  throw new Error(`${JSON.stringify(input)} was accepted`);
}

for (const [field, messages] of Object.entries(INVALID))
  test(`invalid values of ${field} are refused with their rule`, (t) => {
    for (const [rule, values] of Object.entries(messages)) {
      const [, part, message] = /^(?:(.*): )?(.*)$/s.exec(rule) ?? [];
      const expected = { field: part === undefined ? field : `${field}.${part}`, message };
      for (const value of values)
        for (const schema of [create, update]) {
          const { status, code, errors } = problemOf(schema, { url: URL, [field]: value });
          t.deepEqual([status, code, errors], [422, `invalid_${field}`, [expected]]);
        }
    }
  });

// Lengths count characters (Unicode code points), as the document does, not UTF-16 units.
const VALID: Record<string, unknown[]> = {
  url: [
    ...[URL.padEnd(2048, "a"), URL + "🎉".repeat(600), URL + "日".repeat(900)],
    ...["HTTPS://EXAMPLE.COM/Path", "http://127.0.0.1:1/", "https://münchen.example/straße?q=ü"],
    ...["https://[2001:db8::1]:8443/x", "https://example.com/user@host", "http://localhost:3001/"],
  ],
  fallback_url: [null, URL],
  slug: ["x".repeat(64), "-_-", "v1x", "MCP-1", "Tools"],
  title: [null, "x".repeat(255), "🎉", "🎉".repeat(255)],
  password: [null, "0000", "    ", "🎉".repeat(4), "🎉".repeat(128)],
  tags: [[], names(20), ["x".repeat(50)], ["🎉".repeat(50)], ["50%_off", 'a "quoted" one']],
  external_id: [null, "x".repeat(255), "🎉".repeat(255)],
  metadata: [
    ...[{}, record(50), { ["k".repeat(40)]: "x".repeat(500) }, { ["🎉".repeat(40)]: "🎉".repeat(500) }],
    { text: "line\nbreak", number: 1.5, yes: true, no: false, nothing: null, "a key": "" },
  ],
  expires_at: [null, "2099-01-01T00:00:00Z", "2099-01-31T12:00:00+02:00", "9999-12-31T23:59:59.999Z"],
  max_clicks: [null, 1, 2 ** 31 - 1],
  redirect_type: [301, 302, 307, 308],
  card: [
    null,
    { title: "🎉".repeat(255), description: "🎉".repeat(500), image_url: URL },
    { title: `<b>"'&`, description: "Two\r\nlines\t", image_url: null },
  ],
};

for (const [field, values] of Object.entries(VALID))
  test(`valid values of ${field} are kept as they are`, (t) => {
    for (const value of values)
      for (const schema of [create, update])
        t.deepEqual(validate(schema, { url: URL, [field]: value })[field as "url"], value as string);
  });

test("what a card doesn't have is null", (t) => {
  const card = { title: "a", description: null, image_url: null };
  t.deepEqual(validate(create, { url: URL, card: { title: "a" } }).card, card);
  t.deepEqual(validate(create, { url: URL, card: { title: "a", description: "" } }).card, card);
});

test("an unknown field of a card is named", (t) => {
  const { code, errors } = problemOf(create, { url: URL, card: { title: "a", image: URL } });
  t.is(code, "unknown_field");
  t.deepEqual(errors, [{ field: "card.image", message: "is not a known field" }]);
});

test("a tag that is sent twice is kept once", (t) => {
  t.deepEqual(validate(create, { url: URL, tags: ["a", "b", "a"] }).tags, ["a", "b"]);
});

test("a time with a zone is stored as its instant", (t) => {
  t.is(toFields({ expires_at: "2099-01-31T12:00:00+02:00" }).expiresAt, Date.UTC(2099, 0, 31, 10));
});

const UNWRITABLE =
  "id clicks bot_clicks last_clicked_at created_at updated_at created_by created_via short_url organization_id organizationId org_id organization plan version deleted_at deleted disabled_at disabled_reason has_password password_hash passwordHash maxClicks expiresAt redirectType externalId createdBy toString hasOwnProperty Url 🎉".split(
    " ",
  );

test("other fields cannot be written, and the error names them", (t) => {
  for (const field of [...UNWRITABLE, "", "url "])
    for (const schema of [create, update]) {
      const { status, code, errors } = problemOf(schema, { url: URL, [field]: "x" });
      const error = { field, message: "is not a known field" };
      t.deepEqual({ status, code, errors }, { status: 422, code: "unknown_field", errors: [error] });
    }
  t.is(problemOf(create, { url: URL, archived: true }).code, "unknown_field");
  t.true(validate(update, { archived: true }).archived);
});

test("only the URL of a new link is required", (t) => {
  for (const input of [{}, { slug: "no-url" }, { URL }])
    t.like(problemOf(create, input).errors?.[0], { field: "url", message: "is required" });
  t.deepEqual(validate(update, {}), {});
});

test("all invalid fields are named in one problem", (t) => {
  const { code, errors } = problemOf(create, { url: "x", slug: "?", max_clicks: 0, color: "red" });
  t.is(code, "invalid_request");
  t.deepEqual(errors?.map(({ field }) => field).sort(), ["color", "max_clicks", "slug", "url"]);
});

test("an upsert has the external ID of its path, which the body may repeat", (t) => {
  const schema = withExternalId(create, "order-1");
  for (const body of [{ url: URL }, { url: URL, external_id: "order-1" }])
    t.is(validate(schema, body).external_id, "order-1");
  for (const external_id of ["other", null, "", 1]) {
    const { code, errors } = problemOf(schema, { url: URL, external_id });
    t.is(code, "invalid_external_id");
    t.is(errors?.[0]?.message, "must match the external_id in the path, or be omitted");
  }
  for (const path of ["", "x".repeat(256), "line\nbreak", "nul\0"])
    t.is(problemOf(withExternalId(create, path), { url: URL }).code, "invalid_external_id");
});

test("an organization's fallback is a destination like that of a link", (t) => {
  t.is(validate(fallbackUrl, null), null);
  for (const [message, values] of Object.entries(DESTINATIONS))
    for (const value of values) t.is(problemOf(fallbackUrl, value as object).errors?.[0]?.message, message);
});
