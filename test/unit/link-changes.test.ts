import test from "ava";
import type { Problem } from "../../resources/http/problem.ts";
import { validate } from "../../resources/http/validate.ts";
import { bulkUpdateBody, readBulkUpdate } from "../../resources/links/bulk-update.ts";
import { changeEach } from "../../resources/links/change-many.ts";
import { type Changes, changesSchema, updateOf } from "../../resources/links/changes.ts";
import type { Link } from "../../resources/links/types.ts";
import { limitsOf } from "../../resources/plans.ts";

const link = { url: "https://example.com/spring?a=1&utm_source=mail#spring", tags: ["a", "b"] };
const at = (path: string) => ({ url: `https://example.com${path}` });
const tags = (count: number, prefix = "t") => Array.from({ length: count }, (_, n) => `${prefix}${n}`);
const utm = (parameters: Changes["utm"]) => ({ utm: parameters });
const replace = (find: string, text: string) => ({ replace_in_url: { find, with: text } });

const UPDATES: [what: string, changes: Changes, update: object][] = [
  ["tags are added after those of the link", { add_tags: ["c", "d"] }, { tags: ["a", "b", "c", "d"] }],
  ["tags that the link has are not added", { add_tags: ["b", "a"] }, {}],
  ["tags are removed", { remove_tags: ["a", "c"] }, { tags: ["b"] }],
  ["tags are removed before others are added", { remove_tags: ["a"], add_tags: ["a"] }, { tags: ["b", "a"] }],
  ["the expiry is cleared", { expires_at: null }, { expires_at: null }],
  ["each occurrence of a text is replaced", replace("spring", "fall"), at("/fall?a=1&utm_source=mail#fall")],
  ["a text is removed", replace("spring", ""), at("/?a=1&utm_source=mail#")],
  ["a text is found only in its letter case", replace("Spring", "fall"), {}],
  ["a text is no regular expression", replace(".", "!"), { url: link.url.replaceAll(".", "!") }],
  ["a replacement is no pattern", replace("/spring?", "/$&$1?"), at("/$&$1?a=1&utm_source=mail#spring")],
  [
    "a parameter is set",
    utm({ term: "e & f" }),
    at("/spring?a=1&utm_source=mail&utm_term=e%20%26%20f#spring"),
  ],
  ["a parameter is replaced in its place", utm({ source: "sms" }), at("/spring?a=1&utm_source=sms#spring")],
  ["a parameter is removed", { utm: { source: null } }, at("/spring?a=1#spring")],
  ["a parameter that is as it should be stays", { utm: { source: "mail", term: null } }, {}],
  ["parameters are set after the replacement", { ...replace("mail", "sms"), utm: { source: "mail" } }, {}],
];
for (const [what, changes, update] of UPDATES)
  test(`of changes to a link, ${what}`, (t) => t.deepEqual(updateOf(link, changes) as object, update));

test("a link of 20 tags gets one more only in the place of another", (t) => {
  const full = { ...link, tags: tags(20) };
  t.is(updateOf(full, { add_tags: ["new"] }).tags?.length, 21, "which its update refuses");
  t.is(updateOf(full, { add_tags: ["new"], remove_tags: ["t3"] }).tags?.length, 20);
});

test("a URL that gets too long isn't searched for parameters", (t) => {
  const long = { ...link, url: `https://example.com/?${"&".repeat(2000)}` };
  const { url = "" } = updateOf(long, { ...replace("&", "&a".repeat(1000)), utm: { source: "mail" } });
  t.true(url.length > 1_000_000 && !url.includes("utm_source"));
});

test("a URL whose parameters stay is not rewritten", (t) => {
  const odd = { ...link, url: "https://example.com/a%20b?&x=%2F&&y" };
  t.deepEqual(updateOf(odd, { utm: { source: null } }), {});
  t.deepEqual(updateOf({ ...odd, url: "https://example.com/?" }, { utm: { source: null } }), {});
});

const INVALID: [changes: unknown, field: string][] = [
  [{}, ""],
  [null, ""],
  [{ add_tags: tags(21) }, "add_tags"],
  [{ add_tags: ["x".repeat(51)] }, "add_tags.0"],
  [{ remove_tags: "a" }, "remove_tags"],
  [{ expires_at: "2001-01-01T00:00:00Z" }, "expires_at"],
  [replace("", "x"), "replace_in_url.find"],
  [replace("x".repeat(2049), ""), "replace_in_url.find"],
  [{ replace_in_url: { find: "x" } }, "replace_in_url.with"],
  [{ utm: { source: "" } }, "utm.source"],
  [{ utm: { source: "\ud800" } }, "utm.source"],
  [{ utm: { utm_source: "x" } }, "utm.utm_source"],
  [{ archived: true, url: "https://example.com/" }, "url"],
];
test("invalid changes are refused by the name of their field", (t) => {
  for (const [changes, field] of INVALID) {
    const problem = t.throws<Problem>(() => validate(changesSchema, changes), undefined, field);
    t.is(problem?.errors?.map((error) => error.field).join(), field);
  }
});

const changes = { archived: true };
const TARGETS: [target: object, code: string][] = [
  [{}, "invalid_request"],
  [{ filter: {} }, "invalid_request"],
  [{ expected_count: 1 }, "invalid_request"],
  [{ ids: ["a"], filter: {}, expected_count: 1 }, "invalid_request"],
  [{ ids: [] }, "invalid_ids"],
  [{ ids: tags(101) }, "invalid_ids"],
  ...[0, 1001, 1.5, "1"].map(
    (count) => [{ filter: {}, expected_count: count }, "invalid_expected_count"] as const,
  ),
  [{ filter: { limit: 1 }, expected_count: 1 }, "unknown_field"],
  [{ filter: { tag: "" }, expected_count: 1 }, "invalid_filter"],
].map(([target, code]) => [target, code] as [object, string]);
test("changes are of up to 100 IDs, or of an expected count of links that match a filter", (t) => {
  for (const [target, code] of TARGETS) {
    const problem = t.throws<Problem>(
      () => validate(bulkUpdateBody, { ...target, changes }),
      undefined,
      code,
    );
    t.is(problem?.code, code, JSON.stringify(target));
  }
  t.deepEqual(validate(bulkUpdateBody, { ids: ["a", "b", "a"], changes }).ids, ["a", "b"]);
});

test("no more links are expected than the plan has requests per minute", (t) => {
  const expecting = (expected_count: number) => ({ filter: {}, expected_count, changes });
  t.is(readBulkUpdate(expecting(600), limitsOf("growth")).expected_count, 600);
  t.is(readBulkUpdate(expecting(1000), limitsOf("premium")).expected_count, 1000);
  const problem = t.throws<Problem>(() => readBulkUpdate(expecting(601), limitsOf("growth")));
  t.is(problem?.code, "invalid_expected_count");
});

test("results have links only up to a length, and all have the ID and whether the link was changed", async (t) => {
  const title = "x".repeat(100);
  const apply = async (id: string) => ({ link: { id, title } as Link, isChanged: true });
  const results = await changeEach(["a", "b", "c"], { apply, enqueue: (work) => work(), maxLength: 150 });
  const shown = results.map(({ link }) => link?.id);
  t.deepEqual(shown, ["a", "b", undefined]);
  const changed = results.map(({ id, isChanged }) => `${id} ${isChanged}`);
  t.deepEqual(changed, ["a true", "b true", "c true"]);
});
