import test from "ava";
import { parse } from "node-html-parser";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));
const archived = await api.createLink();
const active = await api.createLink();
await api.send("PATCH", `/v1/links/${archived.id}`, { json: { archived: true } });
const visitor = apiAt(service.url);
test.after.always(() => service.close());

const unavailable = [
  ["unknown-slug", 404, "not_found"],
  [archived.slug, 410, "link_gone"],
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

for (const [slug, status, code] of unavailable) {
  for (const accept of wantsPage) {
    test(`a ${status} is a page for the Accept header ${accept}`, async (t) => {
      const reply = await visitor.get(`/${slug}`, { accept });
      t.is(reply.status, status);
      t.regex(reply.headers.get("content-type") ?? "", /^text\/html; charset=utf-8$/i);
      t.truthy(parse(reply.text).querySelector("h1")?.text);
      t.is(parse(reply.text).querySelectorAll("script").length, 0);
      t.true(reply.headers.get("content-security-policy")?.includes("default-src 'none'"));
      t.false(reply.text.includes("request_id"));
    });
  }
  for (const accept of wantsJson) {
    test(`a ${status} is a problem document for the Accept header ${accept || "(empty)"}`, async (t) => {
      isProblem(t, await visitor.get(`/${slug}`, { accept }), { status, code });
    });
  }

  test(`a ${status} is not cacheable and varies by Accept`, async (t) => {
    for (const accept of [BROWSER, "*/*"]) {
      const { headers } = await visitor.get(`/${slug}`, { accept });
      t.regex(headers.get("cache-control") ?? "", /no-store/);
      t.regex(headers.get("vary") ?? "", /\baccept\b/i);
    }
  });
}

test("a browser that follows an active link is redirected without a page", async (t) => {
  const reply = await visitor.get(`/${active.slug}`, { accept: BROWSER });
  t.is(reply.status, 302);
  t.is(reply.text, "");
});

test("an error does not echo the request", async (t) => {
  for (const accept of [BROWSER, "*/*"]) {
    const { text } = await visitor.get("/Repeat-Me-Not?x=<script>alert(1)</script>", { accept });
    t.false(/repeat-me-not|alert/i.test(text));
  }
});
