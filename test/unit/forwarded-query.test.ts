import test from "ava";
import { withForwardedQuery } from "../../resources/links/forwarding.ts";

const QUERIES = `? ?a ?a= ?a=1 ?a=1&a=2 ?a=1&&b=2 ?a=1& ?& ?=1 ?a=b=c ?a%20b=1 ?a+b=1 ?%61=1 ?a[]=1&a[]=2 ?a[b]=1 ?A=1
  ?a.b=1 ?a=1;b=2 ?a;b=1 ?q=%zz ?q=1%26a=2 ?q=%C3%A4 ??a=1 ?a=? ?url=https://example.net/?a=2 ?%00a=1`;
const DESTINATIONS = ["", ...QUERIES.split(/\s+/)].flatMap((query) =>
  ["", "#", "#top", "#/path?a=1&b=2"].map((fragment) => `https://example.com/page${query}${fragment}`),
);
const ADDED =
  `a=9 A=9 %61=9 a[]=9 a%5B%5D=9 a[b=9 a[b]=9 +a=9 %20a=9 a%00x=9 b=9 a_b=9 a.b=9 A%20b=9 a+b=9 x;a=9 a=9;b=9
  x=9;b=9 a%3Bb=9 =9 ?a=9 &a=9 q=9 url=9 %zz=9 a`.split(/\s+/);

/** What programs read a query as: pairs of a name and a value. */
type Read = (query: string) => (readonly [name: string, value: string])[];
const web: Read = (query) => [...new URLSearchParams(`&${query}`)];
const READERS: Record<string, Read> = {
  web,
  semicolons: (query) => web(query.replaceAll(";", "&")),
  "ASP.NET": (query) => web(query).map(([name, value]) => [name.toLowerCase(), value]),
  // https://www.php.net/manual/en/language.variables.external.php
  PHP: (query) =>
    web(query).map(([name, value]) => {
      const visible = (name.trimStart().split("\0")[0] ?? "").replace(/\[.*\].*/s, "");
      return [visible.replace(/[. [\]]/g, "_"), value];
    }),
};

function partsOf(location: string): { page: string; query: string; fragment: string } {
  const [, page = "", query = "", fragment = ""] = /^([^?#]*)(?:\?([^#]*))?(.*)$/.exec(location) ?? [];
  return { page, query, fragment };
}

test(`nothing that a visitor adds changes one of ${DESTINATIONS.length} destinations, however programs read a query`, (t) => {
  for (const destination of DESTINATIONS) {
    const own = partsOf(destination);
    for (const added of [...ADDED, ADDED.join("&")]) {
      const forwarded = withForwardedQuery(destination, added);
      const { page, query, fragment } = partsOf(forwarded);
      const shown = `${destination} and ${added} → ${forwarded}`;
      t.deepEqual([page, fragment], [own.page, own.fragment], shown);
      t.true(query.startsWith(own.query), shown);
      for (const [reader, read] of Object.entries(READERS)) {
        const before = read(own.query);
        const names = new Set(before.map(([name]) => name));
        const after = read(query).filter(([name]) => names.has(name));
        t.deepEqual(after, before, `${reader}: ${shown}`);
      }
    }
  }
});

test("parameters that the destination doesn't have are added, in their order", (t) => {
  const added: [destination: string, query: string, expected: string][] = [
    ["", "utm_source=mail", "?utm_source=mail"],
    ["?", "a=1&a=2", "?a=1&a=2"],
    ["?a=1", "b=2&a=3&c", "?a=1&b=2&c"],
    ["?a=1#top", "b=x%20y+z", "?a=1&b=x%20y+z#top"],
    ["?a=1&", "b=2", "?a=1&&b=2"],
    ["", "a=1&&b=2&", "?a=1&b=2"],
    ["", "", ""],
    ["#top", "&", "#top"],
    // What a header can't have, and what some programs would read as two parameters.
    ["", 'a="<\u00e9>"\\^`{|}', "?a=%22%3C%E9%3E%22%5C%5E%60%7B%7C%7D"],
    ["", "a=1;b=2", "?a=1%3Bb=2"],
    ["", "a=100%&b=%4", "?a=100%25&b=%254"],
  ];
  for (const [destination, query, expected] of added)
    t.is(withForwardedQuery(`https://example.com/${destination}`, query), `https://example.com/${expected}`);
});

test("a destination that would be longer than 8,192 characters is sent without what was added", (t) => {
  const destination = "https://example.com/";
  const longest = `a=${"x".repeat(8192 - destination.length - 3)}`;
  t.is(withForwardedQuery(destination, longest), `${destination}?${longest}`);
  for (const query of [`${longest}x`, `a=${"\u00e9".repeat(4000)}`, "&".repeat(16_000)])
    t.is(withForwardedQuery(destination, query), destination);
});
