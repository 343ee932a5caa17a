import test from "ava";
import fc from "fast-check";
import { withForwardedPath } from "../../resources/links/forwarding.ts";

const APPENDED: [destination: string, rest: string, expected: string][] = [
  ["https://example.com/", "a", "https://example.com/a"],
  ["https://example.com/shop", "shoes/red", "https://example.com/shop/shoes/red"],
  ["https://example.com/shop?a=/x#/y", "shoes", "https://example.com/shop/shoes?a=/x#/y"],
  ["https://example.com/shop#top", "a;b=c@d:e", "https://example.com/shop/a;b=c@d:e#top"],
  ["https://example.com/", "a%20b%C3%A4", "https://example.com/a%20b%C3%A4"],
  ["https://example.com/", 'Ã¤"<>|^`', "https://example.com/%C3%A4%22%3C%3E%7C%5E%60"],
  ["https://example.com/", "...", "https://example.com/..."],
];

test("what a visitor adds is appended to the path, before the query", (t) => {
  for (const [destination, rest, expected] of APPENDED)
    t.is(withForwardedPath(destination, rest), expected, `${destination} ${rest}`);
});

const LEAVING =
  `. .. a/../b .%2e %2E%2e %252e%252e %25252e. a%2f..%2fb a%2Fb a%252fb ..;a ..;/b .; %5c a%5C..%5Cb a%255cb
  \\ ..\\ a//b //example.net / %zz % a%00 a%0d%0ab %25252525252e ${"x".repeat(2049)}`.split(/\s+/);

test("a path that a server could take for another one is not found", (t) => {
  for (const rest of LEAVING) t.is(withForwardedPath("https://example.com/shop", rest), undefined, rest);
});

test("what is added stays below the path of the destination, decoded once or several times", (t) => {
  const parts = fc.constantFrom(..."./\\%;ab".split(""), "%2e", "%2f", "%5c", "%25", "..", "%c3%a4", "Ã¤");
  const rests = fc.array(parts, { maxLength: 12 }).map((list) => list.join(""));
  fc.assert(
    fc.property(rests, (rest) => {
      const forwarded = withForwardedPath("https://example.com/shop", rest);
      for (let path = forwarded; path !== undefined; path = decoded(path)) {
        const { origin, pathname } = new URL(path.replaceAll(/;[^/]*/g, ""));
        t.true(origin === "https://example.com" && pathname.startsWith("/shop/"), `${rest}: ${path}`);
      }
    }),
    { numRuns: 2000 },
  );
});

/** Decodes a URL once more, unless that makes no difference. */
function decoded(url: string): string | undefined {
  const once = decodeURIComponent(url);
  return once === url ? undefined : once;
}
