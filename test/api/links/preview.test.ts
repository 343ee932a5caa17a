import test from "ava";
import { parse } from "node-html-parser";
import { isMissing, isProblem } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";

const { api, anonymous: visitor } = await shareApi();

test("a + after the slug shows where a link leads, and counts nothing", async (t) => {
  const link = await api.createLink({
    url: "https://münchen.example:8443/straße?q=<b>&r=1#top",
    title: "Spring & <more>",
    tags: ["internal"],
    metadata: { secret: "internal" },
    max_clicks: 1,
  });
  for (const path of [`${link.slug}+`, `${link.slug}%2B`, `${link.slug}%2b?x=1`]) {
    const { status, headers, text } = await visitor.get(`/${path}`);
    t.is(status, 200, path);
    t.regex(headers.get("content-type") ?? "", /^text\/html/);
    t.is(headers.get("cache-control"), "no-store");
    t.is(headers.get("x-robots-tag"), "noindex");
    t.regex(headers.get("content-security-policy") ?? "", /default-src 'none'/);
    const page = parse(text);
    const destination = page.querySelector(".destination")?.text.replace(/\s/g, "");
    t.is(destination, "https://xn--mnchen-3ya.example:8443/stra%C3%9Fe?q=%3Cb%3E&r=1#top");
    t.is(page.querySelector(".destination strong")?.text, "xn--mnchen-3ya.example:8443");
    t.true(text.includes("Spring &amp; &lt;more&gt;"));
    t.is(page.querySelector("time")?.attributes.datetime, link.created_at);
    t.is(page.querySelector("a.button")?.attributes.href, `/${link.slug}`);
    t.false(/internal|org_|usr_|lgc_/.test(text));
  }
  const head = await visitor.send("HEAD", `/${link.slug}+`);
  t.deepEqual([head.status, head.text], [200, ""]);
  t.is((await api.get(`/v1/links/${link.id}`)).body.clicks, 0);
  t.is((await visitor.get(`/${link.slug}`)).status, 302);
});

test("a preview never redirects: it says what is unavailable, unknown or reserved", async (t) => {
  const { id, slug } = await api.createLink({ fallback_url: "https://example.com/" });
  await api.send("PATCH", `/v1/links/${id}`, { json: { archived: true } });
  isProblem(t, await visitor.get(`/${slug}+`), { status: 410, code: "link_gone" });
  const page = await visitor.get(`/${slug}+`, { accept: "text/html" });
  t.is(page.status, 410);
  t.regex(page.text, /no longer available/);
  isMissing(t, await visitor.get("/no-such-link+"));
  for (const path of [`${slug}++`, `${slug}+/`, "+", "dashboard+", "v1+"])
    t.is((await visitor.get(`/${path}`)).status, 404, path);
  t.is((await visitor.send("POST", `/${slug}+`)).status, 405);
});
