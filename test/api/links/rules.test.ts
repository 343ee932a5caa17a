import test from "ava";
import { parse } from "node-html-parser";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import { BROWSER, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";

export const databases = "all";

const { service, api, anonymous: visitor } = await shareApi({ COUNTRY_HEADER: "CF-IPCountry" });

const IPHONE =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1";
const [EVERYONE, STORE, GERMAN] = ["everyone", "store", "de"].map(
  (name) => `https://example.com/${name}`,
) as [string, string, string];

async function follow(path: string, headers: Record<string, string> = {}, method = "GET") {
  const answer = await visitor.send(method, `/${path}`, { headers: { "user-agent": BROWSER, ...headers } });
  return { status: answer.status, to: answer.headers.get("location"), vary: answer.headers.get("vary") };
}

test("each visitor is sent where the first rule leads that applies, and what decides is in Vary", async (t) => {
  const rules = [
    { if: { os: "iOS" }, url: STORE },
    { if: { language: "de" }, url: GERMAN },
  ];
  const { slug, ...link } = await api.createLink({ url: EVERYONE, rules });
  t.deepEqual(link.rules, rules);
  const sent: [headers: Record<string, string>, to: string][] = [
    [{}, EVERYONE],
    [{ "user-agent": IPHONE }, STORE],
    [{ "user-agent": IPHONE, "accept-language": "de" }, STORE],
    [{ "accept-language": "de-AT,de;q=0.9,en;q=0.8" }, GERMAN],
    [{ "accept-language": "en-US,en;q=0.9,de;q=0.8" }, EVERYONE],
    [{ "accept-language": "en;q=0.1, de" }, GERMAN],
  ];
  for (const method of ["GET", "HEAD"])
    for (const [headers, to] of sent)
      t.deepEqual(await follow(slug, headers, method), {
        status: 302,
        to,
        vary: "User-Agent, Accept-Language",
      });

  t.like(await follow((await api.createLink()).slug), { vary: null });
});

test("a rule about the country reads what the proxy says, and one about parameters what was added", async (t) => {
  const rules = [
    { if: { country: "CH", query: "ref=mail" }, url: STORE },
    { if: { country: "CH" }, url: GERMAN },
  ];
  const { slug } = await api.createLink({ url: EVERYONE, rules });
  const swiss = { "cf-ipcountry": "CH" };
  t.like(await follow(slug, swiss), { to: GERMAN, vary: "*" });
  t.like(await follow(`${slug}?ref=mail`, swiss), { to: `${STORE}?ref=mail` });
  t.like(await follow(`${slug}?ref=mail`), { to: `${EVERYONE}?ref=mail` });
});

test("a change of the rules counts at the next visit, and only then as a change", async (t) => {
  const rules = [{ if: { os: "iOS" }, url: STORE }];
  const link = await api.createLink({ url: EVERYONE, rules });
  const patch = (json: object) => api.send<LinkBody>("PATCH", `/v1/links/${link.id}`, { json });
  const iphone = async () => (await follow(link.slug, { "user-agent": IPHONE })).to;
  t.is(await iphone(), STORE);
  t.is((await patch({ rules })).body.updated_at, link.updated_at);
  t.deepEqual((await patch({ rules: [] })).body.rules, []);
  t.is(await iphone(), EVERYONE);
  t.is((await api.get<LinkBody>(`/v1/links/${link.id}`)).headers.get("etag"), '"2"');
  const refused = await patch({ rules: [{ if: { os: "iOS" }, url: service.url }] });
  isProblem(t, refused, { status: 422, code: "invalid_rules", fields: ["rules.0.url"] });
});

test("clicks are counted by where they led, and an unavailable link leads nowhere else", async (t) => {
  const rules = [{ if: { os: "iOS" }, url: STORE }];
  const link = await api.createLink({ url: EVERYONE, rules });
  for (const headers of [{}, { "user-agent": IPHONE }, { "user-agent": IPHONE }])
    await follow(link.slug, headers);
  const path = `/v1/links/${link.id}/analytics`;
  t.deepEqual((await api.get<AnalyticsView>(path)).body.destinations, [
    { destination: STORE, clicks: 2 },
    { destination: EVERYONE, clicks: 1 },
  ]);
  await api.send("PATCH", `/v1/links/${link.id}`, { json: { archived: true } });
  t.deepEqual(await follow(link.slug, { "user-agent": IPHONE }), { status: 410, to: null, vary: "Accept" });
});

test("the preview shows every destination", async (t) => {
  const rules = [{ if: { os: "iOS", after: "2026-01-01T00:00:00Z" }, url: "https://apps.example.net/<b>" }];
  const { slug } = await api.createLink({ url: EVERYONE, rules });
  const page = parse((await visitor.get(`/${slug}+`)).text);
  t.is(page.querySelector("dl.facts dt")?.text, "System iOS, from 2026-01-01 00:00 UTC");
  t.is(page.querySelector("dl.facts dd")?.text, "https://apps.example.net/%3Cb%3E");
});

test("with forward_path, what visitors add to the path reaches every destination", async (t) => {
  const rules = [{ if: { os: "iOS" }, url: `${STORE}?a=1` }];
  const link = await api.createLink({ slug: "shop/all", url: `${EVERYONE}/`, rules });
  t.is((await follow("shop/all/shoes")).status, 404);
  await api.send("PATCH", `/v1/links/${link.id}`, { json: { forward_path: true } });
  const expected: [path: string, to: string][] = [
    ["shop/all", `${EVERYONE}/`],
    ["shop/all/shoes", `${EVERYONE}/shoes`],
    ["shop/all/shoes/", `${EVERYONE}/shoes/`],
    ["shop/all/a.html/b/c/d/e/f/g/h/i?x=1", `${EVERYONE}/a.html/b/c/d/e/f/g/h/i?x=1`],
    ["shop/all/a%20b", `${EVERYONE}/a%20b`],
  ];
  for (const [path, to] of expected) t.like(await follow(path), { status: 302, to }, path);
  t.like(await follow("shop/all/shoes", { "user-agent": IPHONE }), { to: `${STORE}/shoes?a=1` });

  await api.createLink({ slug: "shop/all/red", url: "https://example.com/red" });
  t.like(await follow("shop/all/red"), { to: "https://example.com/red" }, "a slug of its own");
  t.like(await follow("shop/all/red/x"), { to: `${EVERYONE}/red/x` }, "which doesn't forward");
  for (const path of ["shop/all/%2e%2e/x", "shop/all/a%2fb", "shop/all//x", "shop/x", "shop/allx/y"])
    t.is((await follow(path)).status, 404, path);
  t.is((await visitor.send("POST", "/shop/all/shoes")).status, 405);
  const counted = (await api.get<LinkBody>(`/v1/links/${link.id}`)).body;
  t.is(counted.clicks, 7);
});
