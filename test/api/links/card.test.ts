import test from "ava";
import { parse } from "node-html-parser";
import { OPERATOR } from "../../../resources/events/types.ts";
import { isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";

export const databases = "all";

const { service, api, anonymous: visitor } = await shareApi();

const PREVIEW = "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)";
const GOOGLE = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const URL = "https://example.com/spring?a=1&b=2";
const CARD = {
  title: "Spring sale",
  description: "Half price until May.",
  image_url: "https://example.com/spring.png",
};

const visit = (path: string, agent?: string, method = "GET") =>
  visitor.send(method, `/${path}`, { ...(agent && { headers: { "user-agent": agent } }) });
const read = async ({ id }: { id: string }) => (await api.get<LinkBody>(`/v1/links/${id}`)).body;
const patch = (id: string, json: unknown, headers = {}) =>
  api.send<LinkBody>("PATCH", `/v1/links/${id}`, { json, headers });

function metaOf(text: string) {
  const tags = parse(text).querySelectorAll("head meta[content]");
  return Object.fromEntries(
    tags.map(({ attributes: { property, name, content, "http-equiv": header } }) => [
      property ?? name ?? header,
      content,
    ]),
  );
}

test("a preview program gets the card of a link, and a way on for people", async (t) => {
  const link = await api.createLink({ url: URL, card: CARD });
  t.deepEqual(link.card, CARD);
  const { status, headers, text } = await visit(`${link.slug}/?b=x&utm_source=chat`, PREVIEW);
  t.is(status, 200);
  t.is(headers.get("content-type"), "text/html; charset=utf-8");
  t.is(headers.get("location"), null);
  t.is(headers.get("cache-control"), "private, no-store");
  t.is(headers.get("x-robots-tag"), "noindex");
  t.is(headers.get("vary"), "User-Agent");
  t.regex(headers.get("content-security-policy") ?? "", /default-src 'none'/);
  t.is(headers.get("referrer-policy"), "no-referrer");
  const destination = `${URL}&utm_source=chat`;
  t.like(metaOf(text), {
    "og:type": "website",
    "og:url": link.short_url,
    "og:title": CARD.title,
    "og:description": CARD.description,
    "og:image": CARD.image_url,
    "twitter:card": "summary_large_image",
    refresh: `0; url=${destination}`,
  });
  const page = parse(text);
  t.is(page.querySelector("title")?.text, CARD.title);
  t.is(page.querySelector("a")?.attributes.href, destination);
});

test("a card without a description and an image has no tags for them", async (t) => {
  const { slug } = await api.createLink({ card: { title: "Only a title" } });
  const tags = metaOf((await visit(slug, PREVIEW)).text);
  t.is(tags["twitter:card"], "summary");
  t.deepEqual([tags["og:description"], tags["og:image"]], [undefined, undefined]);
});

test("what a card says is text, never markup", async (t) => {
  const title = `"><script>alert('1')</script>&amp;`;
  const description = `two\r\nlines " onload='x' <b>&lt;`;
  const image_url = "https://example.com/?a=\"'<b>&c";
  const { slug } = await api.createLink({
    url: "https://example.com/?q=\"'<i>&r#';x",
    card: { title, description, image_url },
  });
  const { text } = await visit(slug, PREVIEW);
  t.like(metaOf(text), { "og:title": title, "og:description": description, "og:image": image_url });
  const page = parse(text);
  t.deepEqual([page.querySelector("title")?.text, page.querySelectorAll("script, b, i").length], [title, 0]);
  t.is(metaOf(text).refresh, "0; url=https://example.com/?q=%22%27%3Ci%3E&r#';x");
  t.is(text.match(/[<>]script|["']\s*onload/), null);
});

test("other visitors are redirected, and Vary names the user agent", async (t) => {
  const link = await api.createLink({ url: URL, card: CARD, redirect_type: 308 });
  for (const agent of [undefined, GOOGLE, "curl/8.5.0"])
    for (const method of ["GET", "HEAD"]) {
      const { status, headers, text } = await visit(link.slug, agent, method);
      t.deepEqual([status, headers.get("location"), text], [308, URL, ""]);
      t.is(headers.get("vary"), "User-Agent");
      t.is(headers.get("cache-control"), "private, no-store");
    }
});

test("a link without a card, or without one any more, redirects preview programs as well", async (t) => {
  const link = await api.createLink({ url: URL });
  t.is(link.card, null);
  for (const card of [undefined, CARD, null]) {
    const { body } = await patch(link.id, { card });
    const { status, headers } = await visit(link.slug, PREVIEW);
    t.is(status, card ? 200 : 302);
    t.is(headers.get("location"), card ? null : URL);
    t.is(headers.get("vary"), card ? "User-Agent" : null);
    t.deepEqual(body.card, card ?? null);
  }
});

test("a preview program is counted as a bot, up to the limit of clicks, and HEAD isn't counted", async (t) => {
  const link = await api.createLink({ card: CARD, max_clicks: 2 });
  for (const status of [200, 200, 410]) {
    const head = await visit(link.slug, PREVIEW, "HEAD");
    t.deepEqual([head.status, head.text], [status, ""]);
    t.is((await visit(link.slug, PREVIEW)).status, status);
  }
  t.like(await read(link), { clicks: 0, bot_clicks: 2 });
});

test("an unavailable link shows no card and no destination", async (t) => {
  const secret = { url: "https://example.com/secret", card: CARD };
  const create = (fields = {}) => api.createLink({ ...secret, ...fields });
  const [archived, deleted] = [await create(), await create()];
  const [disabled, used] = [await create(), await create({ max_clicks: 1 })];
  await patch(archived.id, { archived: true });
  await api.send("DELETE", `/v1/links/${deleted.id}`);
  await service.storage.disabledLinks.disable(disabled.id, "Phishing", OPERATOR);
  await visit(used.slug);
  for (const { slug } of [archived, deleted, disabled, used])
    for (const accept of ["text/html", "*/*"]) {
      const reply = await visitor.get(`/${slug}`, { "user-agent": PREVIEW, accept });
      t.is(reply.status, 410);
      t.false(/secret|Spring/.test(reply.text));
    }
  await patch(archived.id, { fallback_url: "https://example.com/over" });
  const { status, headers } = await visit(archived.slug, PREVIEW);
  t.deepEqual([status, headers.get("location")], [302, "https://example.com/over"]);
});

test("an update replaces the card, a merge patch its parts, and an upsert clears it", async (t) => {
  const merge = { "content-type": "application/merge-patch+json" };
  const link = await api.createLink({ external_id: "merged", card: CARD });
  const replaced = await patch(link.id, { card: { title: "New" } });
  t.deepEqual(replaced.body.card, { title: "New", description: null, image_url: null });
  await patch(link.id, { card: CARD });
  const merged = await patch(link.id, { card: { title: "Newer", image_url: null } }, merge);
  t.deepEqual(merged.body.card, { ...CARD, title: "Newer", image_url: null });
  const same = await patch(link.id, { card: { title: "Newer" } }, merge);
  t.is(same.headers.get("etag"), merged.headers.get("etag"));
  const untitled = { status: 422, code: "invalid_card", fields: ["card.title"] };
  isProblem(t, await patch(link.id, { card: { title: null } }, merge), untitled);
  t.is((await patch(link.id, { card: null }, merge)).body.card, null);
  isProblem(t, await patch(link.id, { card: { description: "x" } }, merge), untitled);
  await patch(link.id, { card: { title: "First" } }, merge);
  const upserted = await api.send<LinkBody>("PUT", "/v1/links/by-external-id/merged", { json: { url: URL } });
  t.is(upserted.body.card, null);
});
