import test from "ava";
import fc from "fast-check";
import { addressOf, isSlug, type LinkDomain } from "../../resources/links/rules.ts";
import { SEED } from "../harness/rounds.ts";

const IDS = [
  "dom_01JAV4T9Q5YQ8Z6K3W2N7R1XCE",
  "dom_01JAV4T9Q5YQ8Z6K3W2N7R1XCF",
  "dom_01JAV4T9Q5YQ8Z6K3W2N7R1XCf",
];
const MAX_SEGMENTS = 8;

type Place = { domain: LinkDomain | null; slug: string };

const domains = fc.record({ id: fc.constantFrom(...IDS), caseSensitive: fc.boolean() });
// Few characters, so that slugs are often equal or begin with another one, and what addresses begin with.
const word = fc.string({ unit: fc.constantFrom("a", "A", "b", "_", "-"), minLength: 1, maxLength: 3 });
const segment = fc.oneof(word, fc.constantFrom(...IDS, ...IDS.map((id) => id.toLowerCase())));
const slugs = fc.array(segment, { minLength: 1, maxLength: MAX_SEGMENTS }).map((all) => all.join("/"));
const place: fc.Arbitrary<Place> = fc.record({ domain: fc.option(domains), slug: slugs.filter(isSlug) });

/** What two links share if one address leads to both. */
function identityOf({ domain, slug }: Place): string {
  if (!domain) return JSON.stringify(["own", slug]);
  return JSON.stringify([domain.id, domain.caseSensitive ? slug : slug.toLowerCase()]);
}

test("links have the same address only with the same domain and slug", (t) => {
  // A domain keeps what it says about case.
  const pairs = fc
    .tuple(place, place)
    .filter(
      ([one, other]) =>
        one.domain?.id !== other.domain?.id || one.domain?.caseSensitive === other.domain?.caseSensitive,
    );
  const isRight = ([one, other]: [Place, Place]) =>
    (addressOf(one.slug, one.domain) === addressOf(other.slug, other.domain)) ===
    (identityOf(one) === identityOf(other));
  const random = fc.check(fc.property(pairs, isRight), { seed: SEED, numRuns: 5000 });
  t.false(random.failed, JSON.stringify(random.counterexample));
  // No slug of the service's own host is what a domain's link is looked up by.
  const isFree = ({ domain, slug }: Place) => domain === null || !isSlug(addressOf(slug, domain));
  const found = fc.check(fc.property(place, isFree), { seed: SEED, numRuns: 2000 });
  t.false(found.failed, JSON.stringify(found.counterexample));
});
