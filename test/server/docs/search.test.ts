import test from "ava";
import { parse } from "node-html-parser";
import { ANSWERS } from "../../harness/documentation.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

async function search(query: string): Promise<{ status: number; text: string; results: string[] }> {
  const response = await fetch(`${service.url}/docs/search?${new URLSearchParams({ q: query })}`);
  const text = await response.text();
  const links = parse(text).querySelectorAll(".found a");
  return { status: response.status, text, results: links.map((link) => link.getAttribute("href") ?? "") };
}

for (const [question, answer] of Object.entries(ANSWERS)) {
  test(`“${question}” is answered by one of the first three results`, async (t) => {
    const { results } = await search(question);
    t.true(
      results.slice(0, 3).some((result) => answer.test(result)),
      results.join("\n"),
    );
  });
}

test("results lead to the section that answers", async (t) => {
  const [first = ""] = (await search("secret URLs")).results;
  t.is(first, "/docs/webhooks#secret-urls");
  const html = parse(await (await fetch(service.url + first)).text());
  t.truthy(html.querySelector("#secret-urls"));
});

for (const code of ["slug_taken", "invalid_client", "Invalid_URL"]) {
  test(`the first result for ${code} is its page`, async (t) => {
    t.is((await search(code)).results[0], `/docs/errors/${code.toLowerCase()}`);
  });
}

test("a search without results says so", async (t) => {
  const { text, results } = await search("xyzzyplugh");
  t.deepEqual(results, []);
  t.regex(text, /No page matches/);
});

test("what was searched for is escaped", async (t) => {
  const { status, text } = await search('"><script>alert(1)</script>');
  t.is(status, 200);
  t.notRegex(text, /<script>/);
});

for (const query of ["", "?q=", "?q=a&q=b", `?q=${"x ".repeat(3000)}`]) {
  test(`the search accepts “${query.slice(0, 12)}”`, async (t) => {
    t.is((await fetch(`${service.url}/docs/search${query}`)).status, 200);
  });
}

test("the index is cacheable, and small when compressed", async (t) => {
  const response = await fetch(`${service.url}/docs/search.json`, { headers: { "accept-encoding": "br" } });
  t.is(response.headers.get("cache-control"), "public, max-age=300");
  t.is(response.headers.get("content-encoding"), "br");
  const tag = response.headers.get("etag") as string;
  const again = await fetch(`${service.url}/docs/search.json`, { headers: { "if-none-match": tag } });
  t.is(again.status, 304);
});
