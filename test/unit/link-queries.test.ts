import querystring from "node:querystring";
import test from "ava";
import type { Context } from "koa";
import { createCursors } from "../../resources/http/pagination.ts";
import type { Problem } from "../../resources/http/problem.ts";
import { readQuery, validate } from "../../resources/http/validate.ts";
import { parseAnalyticsQuery } from "../../resources/links/analytics.ts";
import { listQuery } from "../../resources/links/list.ts";

function parse(query: string) {
  const context = { query: querystring.parse(query), state: {} } as unknown as Context;
  readQuery(listQuery)(context as Parameters<ReturnType<typeof readQuery>>[0], async () => {});
  return validate(listQuery, context.state.query);
}

const INVALID: Record<string, string[]> = {
  limit: [
    ...["0", "-1", "101", "1.5", "", "abc", "1e1", "0x10", "+5", "%2010", "10%20", "NaN", "Infinity"],
    ...["9".repeat(400), "١٠", "null", "5&limit=6"],
  ],
  search: ["", "x".repeat(256), "🎉".repeat(256), "%00", "a&search=b"],
  tag: ["", "x".repeat(51), "🎉".repeat(51), "a%00", "one%1ftwo", "%1f", "one%0a", "a&tag=b"],
  archived: ["1", "0", "TRUE", "yes", "", "null", "true&archived=true"],
  sort: ["", "-", "title", "-title", "--clicks", "clicks,id", "clicks&sort=clicks"],
  slug: ["", "a b", "a%00", "x".repeat(65), "a&slug=b"],
  url: ["", "a b", "a%00", "x".repeat(2049), "a&url=b"],
  external_id: ["", "a%00", "x".repeat(256)],
  created_after: ["", "yesterday", "2030-01-31", "2030-01-31T12:00:00", "1772357400"],
  created_before: ["", "yesterday", "2030-01-31", "2030-01-31T12:00:00", "1772357400"],
  cursor: ["a&cursor=b"],
};

for (const [name, values] of Object.entries(INVALID))
  test(`invalid values of ${name} in the query of a list are refused by name`, (t) => {
    for (const value of values) {
      const problem = t.throws<Problem>(() => parse(`${name}=${value}`), undefined, value);
      t.like(problem, { status: 422, code: `invalid_${name}` });
      t.is(problem?.errors?.map(({ field }) => field).join(), name);
    }
  });

test("unknown parameters of a list are refused by name", (t) => {
  for (const name of ["limit[]", "offset", "organization_id", "__proto__"]) {
    const problem = t.throws<Problem>(() => parse(`${name}=5`));
    t.is(problem?.code, "unknown_field");
    t.is(problem?.errors?.[0]?.field, name);
  }
});

test("the parameters of a list are converted, and have defaults", (t) => {
  const sort = "-created_at";
  t.deepEqual(parse("limit=5&archived=true&tag=%F0%9F%8E%89"), { limit: 5, archived: true, tag: "🎉", sort });
  t.deepEqual(parse(""), { limit: 25, sort });
});

const cursors = createCursors("secret");
const POSITION = JSON.stringify(["lnk_01ARZ3NDEKTSV4RRFFQ69G5FAV", 0, false, 0]);
const flip = (text: string, index: number) =>
  text.slice(0, index) + (text[index] === "A" ? "B" : "A") + text.slice(index + 1);

const FORGERIES: Record<string, (cursor: string) => string> = {
  "its first character changed": (cursor) => flip(cursor, 0),
  "its last character removed": (cursor) => cursor.slice(0, -1),
  "extra characters": (cursor) => `${cursor}AAAA`,
  "all letters in lower case": (cursor) => cursor.toLowerCase(),
  "an ID as its value": () => "lnk_01ARZ3NDEKTSV4RRFFQ69G5FAV",
  "an unsigned position as its value": () => Buffer.from(POSITION).toString("base64url"),
  "the signature of another secret": () => createCursors("other").write(POSITION, "list"),
  "the signature of another list": () => cursors.write(POSITION, "another list"),
};

test("a cursor is read only as it was written, for its list and with its secret", (t) => {
  const cursor = cursors.write(POSITION, "list");
  t.is(cursors.read(cursor, "list"), POSITION);
  for (const [what, forge] of Object.entries(FORGERIES))
    t.throws(() => cursors.read(forge(cursor), "list"), { code: "invalid_cursor" } as object, what);
});

const parseRange = (query: object) => parseAnalyticsQuery(query, { filteredDays: 20, timeZone: "UTC" });

const RANGES: [query: Record<string, unknown>, field: string][] = [
  [{ from: "yesterday" }, "from"],
  [{ to: "2030-01-01T00:00:00Z" }, "to"],
  [{ from: "2030-01-02", to: "2030-01-01" }, "from"],
  [{ from: "2999-01-01" }, "from"],
  [{ from: "2029-01-01", to: "2030-01-02" }, "from"],
  [{ from: ["2030-01-01", "2030-01-01"] }, "from"],
  [{ from: "1969-12-31", to: "1970-01-02" }, "from"],
  [{ to: "1969-12-31" }, "to"],
];

test("a range of days is refused if it doesn't exist, is reversed, before 1970 or longer than 366 days", (t) => {
  for (const [query, field] of RANGES) {
    const code = `invalid_${field}`;
    t.throws(() => parseRange(query), { code } as object, JSON.stringify(query));
  }
  t.throws(() => parseRange({ day: "2030-01-01" }), { code: "unknown_field" } as object);
});

const dateBefore = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

test("filters combine, may be empty, and are refused before the days whose details are kept", (t) => {
  const filter = { referrer: "", country: "SE", utm_campaign: "spring" };
  const { from, to, filter: parsed } = parseRange(filter);
  t.deepEqual([parsed, to - from + 1], [filter, 20]);
  t.deepEqual(parseRange({ from: dateBefore(40) }).filter, {});
  parseRange({ ...filter, from: dateBefore(19) });
  t.throws(() => parseRange({ ...filter, from: dateBefore(20) }), {
    message: /^from must be one of the last 20 days/,
  });
  for (const [name, value] of Object.entries({
    device: "\0",
    browser: "x".repeat(256),
    utm_medium: ["a", "b"],
  }))
    t.throws(() => parseRange({ [name]: value }), { code: `invalid_${name}` } as object);
  t.throws(() => parseRange({ city: "Basel" }), { code: "unknown_field" } as object);
});

test("a range of days has both its days, and 30 days by default", (t) => {
  const lengthOf = (query: object) => {
    const { from, to } = parseRange(query);
    return to - from + 1;
  };
  t.is(lengthOf({ from: "2030-03-01", to: "2030-03-01" }), 1);
  t.is(lengthOf({ from: "2029-03-04", to: "2030-03-04" }), 366);
  t.is(lengthOf({ to: "2030-03-30" }), 30);
  t.is(lengthOf({ to: "1970-01-02" }), 2, "no days before 1970");
  t.is(parseRange({}).to, Math.floor(Date.now() / 86_400_000));
});
