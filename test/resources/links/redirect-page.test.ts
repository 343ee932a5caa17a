import test from "ava";
import { parse } from "node-html-parser";
import { apiAt, isProblem } from "../harness/api.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));
const over = await api.createLink();
const live = await api.createLink();
await api.send("PATCH", `/v1/links/${over.id}`, { json: { archived: true } });
const people = apiAt(service.url);
test.after.always(() => service.close());

const refusals = [
  ["nothing-here", 404, "not_found"],
  [over.slug, 410, "link_gone"],
] as const;

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const wantsPage = [BROWSER, "text/html", "text/html, application/json;q=0.9", "TEXT/HTML"];
const wantsJson = [
  "",
  "*/*",
  "application/json",
  "application/problem+json, */*",
  "application/json, text/html;q=0.5",
  "image/png",
];

for (const [slug, status, code] of refusals) {
  for (const accept of wantsPage) {
    test(`${status}: a browser that accepts ${accept} gets a page`, async (t) => {
      const reply = await people.get(`/${slug}`, { accept });
      t.is(reply.status, status);
      t.regex(reply.headers.get("content-type") ?? "", /^text\/html; charset=utf-8$/i);
      t.truthy(parse(reply.text).querySelector("h1")?.text);
      t.is(parse(reply.text).querySelectorAll("script").length, 0);
      t.true(reply.headers.get("content-security-policy")?.includes("default-src 'none'"));
      t.false(reply.text.includes("request_id"));
    });
  }
  for (const accept of wantsJson) {
    test(`${status}: whoever accepts ${accept || "nothing special"} gets a problem`, async (t) => {
      isProblem(t, await people.get(`/${slug}`, { accept }), { status, code });
    });
  }

  test(`${status}: caches keep neither the page nor the problem, and tell the two apart`, async (t) => {
    for (const accept of [BROWSER, "*/*"]) {
      const { headers } = await people.get(`/${slug}`, { accept });
      t.regex(headers.get("cache-control") ?? "", /no-store/);
      t.regex(headers.get("vary") ?? "", /\baccept\b/i);
    }
  });
}

test("a browser that follows a live link gets no page", async (t) => {
  const reply = await people.get(`/${live.slug}`, { accept: BROWSER });
  t.is(reply.status, 302);
  t.is(reply.text, "");
});

test("a refusal does not repeat what was asked for", async (t) => {
  for (const accept of [BROWSER, "*/*"]) {
    const { text } = await people.get("/Repeat-Me-Not?x=<script>alert(1)</script>", { accept });
    t.false(/repeat-me-not|alert/i.test(text));
  }
});
