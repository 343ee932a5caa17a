import test from "ava";
import { z } from "zod";
import {
  checkFields,
  isJson,
  MERGE_PATCH,
  parseJson,
  parseLargeJson,
} from "../../resources/http/json-body.ts";
import type { Problem } from "../../resources/http/problem.ts";
import { normalizeText } from "../../resources/http/text.ts";
import { validate } from "../../resources/http/validate.ts";

const GOOD = '{"url":"https://example.com/"}';
const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const many = (count: number, value: unknown) => Array.from({ length: count }, () => value);
const named = (count: number, value: unknown) =>
  Object.fromEntries(many(count, value).map((entry, index) => [`k${index}`, entry]));

const JSON_TYPES = [
  ...["application/json", "application/json;charset=utf-8", 'Application/JSON; charset="UTF-8"'],
  ...["application/json; charset=utf8", "application/json; x=y"],
];
const OTHER_TYPES = [
  ...["", "json", "application", "text/plain", "text/json", "multipart/form-data; boundary=x"],
  ...["application/json, text/plain", "application/json; charset=utf-16", "application/jsonp"],
  ...["application/json; charset=iso-8859-1", "application/json; charset=nonsense", "application/json-seq"],
  ...["application/merge-patch+json", "application/x-www-form-urlencoded"],
];

test("only the media types of JSON are accepted, and UTF-8 as their only charset", (t) => {
  for (const type of JSON_TYPES) t.true(isJson(type), type);
  for (const type of OTHER_TYPES) t.false(isJson(type), type);
  t.true(isJson("application/merge-patch+json; charset=utf-8", MERGE_PATCH));
  t.false(isJson("application/merge-patch+json; charset=utf-16", MERGE_PATCH));
});

const MALFORMED: Record<string, string | Buffer> = {
  nothing: "",
  "half an object": '{"url":"https://example.com"',
  "UTF-16": Buffer.from(GOOD, "utf16le"),
  "60,000 open brackets": "[".repeat(60_000),
  "a prototype": '{"url":"https://example.com","__proto__":{"title":"poison","max_clicks":1}}',
  "a prototype in metadata": '{"metadata":{"__proto__":{"title":"poison"}}}',
  "an escaped prototype": '{"url":"https://example.com","\\u005f_proto__":{"title":"poison"}}',
};

test("malformed JSON, and a key that replaces a prototype, are syntax errors", async (t) => {
  for (const [what, text] of Object.entries(MALFORMED))
    t.throws(() => parseJson(Buffer.from(text)), { instanceOf: SyntaxError }, what);
  await t.throwsAsync(parseLargeJson(Buffer.from('{"__proto__":{}}')), { instanceOf: SyntaxError });
  t.false("title" in {});
  t.deepEqual(parseJson(Buffer.from(`\ufeff${GOOD}`)), JSON.parse(GOOD));
});

const CROWDED: [body: unknown, field: string, rule: string][] = [
  [named(101, 1), "", "100 fields"],
  [{ url: 1, metadata: named(101, 1) }, "metadata", "100 fields"],
  [{ links: [{}, named(101, 1)] }, "links", "100 fields"],
  [{ url: 1, tags: many(1001, 1) }, "tags", "1,000 items"],
];

test("an object of more than 100 fields, or an array of more than 1,000 items, is refused by its field", (t) => {
  for (const [body, field, rule] of CROWDED) {
    const problem = t.throws<Problem>(() => checkFields(body));
    t.like(problem, { status: 422, code: "invalid_request" });
    t.deepEqual(problem?.errors, [{ field, message: `must have at most ${rule}` }]);
  }
  t.notThrows(() => checkFields({ a: named(100, 1), b: many(1000, named(100, 1)) }));
});

test("a large body of more than 10,000 fields and items is refused before it is parsed", async (t) => {
  const parse = (body: unknown) => parseLargeJson(Buffer.from(JSON.stringify(body)));
  const problem = await t.throwsAsync<Problem>(parse({ links: many(100_000, 1) }));
  t.deepEqual(problem?.errors, [{ field: "", message: "must have at most 10,000 fields and items" }]);
  const text = 'brackets [[[, commas ,,, and quotes "'.repeat(3000);
  t.deepEqual(await parse({ text }), { text }, "those in a string don't count");
});

test("64 levels are read, and more are not, wherever they are", (t) => {
  for (const field of ["url", "metadata", "unknown"]) {
    const read = (levels: number) => parseJson(Buffer.from(`{"${field}":${nested(levels - 1)}}`));
    t.notThrows(() => read(64));
    for (const levels of [65, 30_000]) {
      const problem = t.throws<Problem>(() => read(levels));
      t.like(problem, { status: 400, code: "invalid_json" });
      t.regex(problem?.message ?? "", /at most 64 levels deep/);
    }
  }
});

const schema = z.strictObject({
  name: z.string().min(2).max(5),
  size: z.int().min(1).max(3),
  kind: z.enum(["a", "b"]),
  tags: z.array(z.string()).max(2).optional(),
  on: z.boolean({ error: "must be on or off" }).optional(),
  nested: z.strictObject({ id: z.string() }).optional(),
});
const valid = { name: "name", size: 1, kind: "a" };
const ON_OR_OFF = "on must be on or off.";

const cases: [name: string, input: unknown, code: string, detail: string][] = [
  ["a missing field", { ...valid, name: undefined }, "invalid_name", "name is required."],
  ["a missing nested field", { ...valid, nested: {} }, "invalid_nested", "nested.id is required."],
  ["a missing body", undefined, "invalid_request", "The body is required."],
  ["a body that is not an object", "text", "invalid_request", "The body must be an object."],
  ["a value of another type", { ...valid, name: 5 }, "invalid_name", "name must be a string."],
  ["a fraction", { ...valid, size: 1.5 }, "invalid_size", "size must be a whole number."],
  ["a number that is too small", { ...valid, size: 0 }, "invalid_size", "size must be at least 1."],
  ["a short string", { ...valid, name: "n" }, "invalid_name", "name must have at least 2 characters."],
  ["a long array", { ...valid, tags: ["a", "b", "c"] }, "invalid_tags", "tags must have at most 2 items."],
  ["an item of another type", { ...valid, tags: [5] }, "invalid_tags", "tags.0 must be a string."],
  ["a value that is not in the list", { ...valid, kind: "c" }, "invalid_kind", "kind must be one of a, b."],
  ["a schema's own message", { ...valid, on: 1 }, "invalid_on", ON_OR_OFF],
  ["an unknown field", { ...valid, color: "red" }, "unknown_field", "color is not a known field."],
  ["two errors", { ...valid, on: 1, kind: "c" }, "invalid_request", `kind must be one of a, b. ${ON_OR_OFF}`],
];

test("each kind of error has its code, and a sentence with its field", (t) => {
  for (const [name, input, code, detail] of cases) {
    const problem = t.throws<Problem>(() => validate(schema, input), undefined, name);
    t.like(problem, { status: 422, code, message: detail });
    t.true((problem?.errors?.length ?? 0) > 0);
  }
});

test("at most 20 errors are returned", (t) => {
  for (const [list, input] of [
    [z.array(z.string()), many(50, 1)],
    [z.strictObject({}), named(50, 1)],
  ] as const)
    t.is(t.throws<Problem>(() => validate(list, input))?.errors?.length, 20);
});

test("a text is normalized only if it can have the allowed length", (t) => {
  t.is(normalizeText("Cafe\u0301", "NFC", 4), "Café");
  t.is(normalizeText("ﬁ", "NFKC", 1), "fi");
  // Decomposed, a syllable of Hangul has nine bytes.
  const syllables = "각".repeat(100);
  t.is(normalizeText(syllables.normalize("NFD"), "NFC", 100), syllables);
  t.is(normalizeText("𝒜".repeat(300), "NFKC", 100), "A".repeat(300));
  for (const form of ["NFC", "NFKC", "NFKD"] as const)
    for (const text of ["a".repeat(1201), "é".repeat(601), "\uFDFA".repeat(20_000)])
      t.is(normalizeText(text, form, 100), undefined);
});
