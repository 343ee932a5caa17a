import fc from "fast-check";
import type { Vocabulary } from "./schema-values.ts";

/** Returns the vocabulary of an operation or tool, by its name and that of its object. */
export function vocabularyOf(name: string, find?: Vocabulary["find"]): Vocabulary {
  const kind = /webhook|deliver/i.test(name) ? "webhook" : "link";
  return { ...(find && { find }), named: { ...NAMED, url: URLS[kind], id: references(kind) } };
}

/** Refers to one of the first objects of a kind, less often to any of them, and sometimes to one that was deleted. */
function references(kind: "link" | "webhook" | "delivery"): fc.Arbitrary<string> {
  const existing = fc.oneof(fc.constant(0), fc.nat(9)).map((index) => `<${kind} ${index}>`);
  if (kind === "delivery") return existing;
  return fc.oneof(
    { weight: 8, arbitrary: existing },
    fc.nat(3).map((index) => `<gone ${kind} ${index}>`),
    fc.constant(`<foreign_${kind}>`),
  );
}

const key = fc.oneof(
  fc.nat(9).map((number) => `key-${number}`),
  fc.stringMatching(/^[\x21-\x7e]{1,255}$/),
);

const URLS = {
  link: fc.oneof(
    fc.constantFrom("https://example.com/", "http://a.example/%C3%A4?b=1#c", "https://bücher.example/ä"),
    fc.webUrl({ withQueryParameters: true, withFragments: true }),
  ),
  // Other hosts would be connected to.
  webhook: fc.nat(300).map((number) => `<receiver>/${number}`),
};

const number = fc.oneof({ weight: 1, arbitrary: fc.nat(3) }, { weight: 2, arbitrary: fc.nat(1000) });

// A few values of most, so that they collide.
const NAMED: Record<string, fc.Arbitrary<unknown>> = {
  slug: number.map((one) => `<run>-${one}`),
  external_id: fc.oneof(
    fc.constantFrom("x", "y/z", "ä %"),
    number.map((one) => `id-${one}`),
  ),
  max_clicks: fc.constantFrom(null, 1, 2 ** 31 - 1),
  tags: fc.subarray(["red", "Red", "blue green", "مرحبا"]),
  expires_at: fc.constantFrom(null, "2099-01-31T12:00:00+02:00", "9999-12-31T23:59:59.999Z"),
  events: fc.subarray(["link.created", "link.deleted", "webhook.test"], { minLength: 1 }),
  enabled: fc.constantFrom(true, true, true, false),
  delivery_id: references("delivery"),
  limit: fc.integer({ min: 1, max: 3 }),
  cursor: fc.constantFrom(undefined, undefined, undefined, "<cursor>"),
  sort: fc.constantFrom("created_at", "-created_at", "clicks", "-last_clicked_at"),
  created_after: fc.constantFrom("2026-01-01T00:00:00Z", "1969-12-31T23:59:59+01:00"),
  created_before: fc.constantFrom("2099-01-31T12:00:00Z", "2000-01-01T00:00:00.123-05:00"),
  after: fc.constantFrom(undefined, "latest", "<cursor>"),
  search: fc.constantFrom("example", "<run>", "É", "_"),
  tag: fc.constantFrom("red", "blue green"),
  from: fc.constantFrom("2026-01-01", "2026-01-31", "2025-02-28"),
  to: fc.constantFrom("2026-02-01", "2026-01-31"),
  idempotency_key: key,
  "Idempotency-Key": key,
  "If-Match": fc.constantFrom(
    undefined,
    undefined,
    "<etag>",
    "<etag>",
    '"x", <etag>',
    "*",
    "W/<etag>",
    '"99"',
  ),
  "If-None-Match": fc.constantFrom("<etag>", "*", "W/<etag>", '"99"'),
};
