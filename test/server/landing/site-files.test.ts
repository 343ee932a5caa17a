import test from "ava";
import { parse } from "node-html-parser";
import { readSettings } from "../../../server/config.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { startTestService } from "../../harness/service.ts";

const CONTACT = "mailto:security@example.com";
const [service, contact] = await Promise.all([
  startTestService(),
  startTestService({ SECURITY_CONTACT: CONTACT }),
]);
test.after.always(() => Promise.all([service.close(), contact.close()]));

const YEAR_MS = 365 * 24 * 60 * 60 * 1000;

test("/favicon.ico is the icon of the pages", async (t) => {
  const answer = await fetch(`${service.url}/favicon.ico`);
  t.is(answer.status, 200);
  t.is(answer.headers.get("content-type"), "image/svg+xml");
  t.is(await answer.text(), await (await fetch(`${service.url}/assets/icon.svg`)).text());
});

test("/robots.txt keeps crawlers away from everything that needs a sign-in or a token", async (t) => {
  const answer = await fetch(`${service.url}/robots.txt`);
  t.is(answer.status, 200);
  t.is(answer.headers.get("content-type"), "text/plain; charset=utf-8");
  const text = await answer.text();
  t.true(text.startsWith("User-agent: *\n"));
  for (const path of ["/auth/", "/dashboard", "/interaction/", "/oauth/", "/v1/", "/mcp"])
    t.true(text.includes(`\nDisallow: ${path}\n`), path);
  t.notRegex(text, /^Disallow: \/$/m, "short links may be crawled");
});

test("/.well-known/security.txt names the contact and expires within a year (RFC 9116)", async (t) => {
  const url = `${contact.url}/.well-known/security.txt`;
  const answer = await fetch(url);
  t.is(answer.status, 200);
  t.is(answer.headers.get("content-type"), "text/plain; charset=utf-8");
  const fields = Object.fromEntries(
    (await answer.text())
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/: (.*)/, 2) as [string, string]),
  );
  t.like(fields, { Contact: CONTACT, Canonical: url });
  const left = Date.parse(fields.Expires ?? "") - Date.now();
  t.true(left > 0 && left < YEAR_MS, fields.Expires);
});

test("without SECURITY_CONTACT there is no security.txt", async (t) => {
  t.is((await fetch(`${service.url}/.well-known/security.txt`)).status, 404);
});

test("SECURITY_CONTACT is a mailto: or an https: URI", (t) => {
  for (const good of [CONTACT, "https://example.com/security"])
    t.is(readSettings({ SECURITY_CONTACT: good }).SECURITY_CONTACT, good, good);
  for (const bad of [
    "security@example.com",
    "http://example.com",
    "mailto:",
    "mailto:a",
    "https://a b",
    "tel:1",
  ])
    t.throws(() => readSettings({ SECURITY_CONTACT: bad }), { message: /SECURITY_CONTACT must/ }, bad);
});

test("HEAD answers as GET does, and other methods are not answered with a file", async (t) => {
  for (const path of ["/favicon.ico", "/robots.txt", "/.well-known/security.txt"]) {
    const head = await fetch(contact.url + path, { method: "HEAD" });
    t.is(head.status, 200, path);
    t.is(await head.text(), "", path);
    t.is((await fetch(contact.url + path, { method: "POST" })).status, 404, path);
  }
});

test("the landing page describes itself to search engines and link previews", async (t) => {
  const { text } = await sendRaw(service.url, "/", { headers: ["accept", "text/html"] });
  const html = parse(text);
  const contentOf = (selector: string) => html.querySelector(selector)?.getAttribute("content") ?? "";
  t.regex(contentOf('meta[name="description"]'), /short links/);
  t.is(contentOf('meta[property="og:title"]'), html.querySelector("h1")?.text ?? "");
  t.is(contentOf('meta[property="og:description"]'), contentOf('meta[name="description"]'));
  t.is(contentOf('meta[property="og:type"]'), "website");
  t.is(contentOf('meta[property="og:url"]'), `${service.url}/`);
});
