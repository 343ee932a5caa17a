import test from "ava";
import { parse } from "node-html-parser";
import { isProblem, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { OPERATOR } from "../../harness/database/storage.ts";

export const databases = "all";

const { service, api, anonymous: visitor } = await shareApi();

const { disabledLinks } = service.storage;

const follow = (slug: string, headers: Record<string, string> = {}) => visitor.get(`/${slug}`, headers);
const read = async ({ id }: LinkBody) => (await api.get(`/v1/links/${id}`)).body;
const patch = (id: string, json: unknown) => api.send<LinkBody>("PATCH", `/v1/links/${id}`, { json });
const gone = { status: 410, code: "link_gone" };
const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

test("a link redirects with its redirect_type, 302 by default, and the redirect isn't stored", async (t) => {
  for (const redirect_type of [undefined, 301, 302, 307, 308]) {
    const link = await api.createLink({ url: "https://example.com/a?b=c&d=%20#e", redirect_type });
    for (const method of ["GET", "HEAD"]) {
      const sent = { headers: { accept: BROWSER } };
      const { status, headers, text } = await visitor.send(method, `/${link.slug}`, sent);
      t.is(status, redirect_type ?? 302);
      t.is(headers.get("location"), "https://example.com/a?b=c&d=%20#e");
      t.is(text, "");
      t.regex(headers.get("cache-control") ?? "", /no-store/, "a cached redirect would not be counted");
    }
  }
});

// Serial, because the test sets the clock: no time passes while a request is sent.
test.serial("a link expires exactly at expires_at, has its fallback then, and can be renewed", async (t) => {
  const expiresAt = Date.now() + 60_000;
  const link = await api.createLink({ expires_at: new Date(expiresAt).toISOString() });
  const now = Date.now;
  t.teardown(() => {
    Date.now = now;
  });
  Date.now = () => expiresAt - 1;
  t.is((await follow(link.slug)).status, 302);
  Date.now = () => expiresAt;
  for (const _ of [1, 2]) isProblem(t, await follow(link.slug), gone);
  t.is((await visitor.send("HEAD", `/${link.slug}`)).status, 410);
  t.is((await read(link)).clicks, 1);
  await patch(link.id, { fallback_url: "https://example.com/sorry" });
  t.is((await follow(link.slug)).headers.get("location"), "https://example.com/sorry");
  await patch(link.id, { expires_at: "2099-01-01T00:00:00Z", fallback_url: null });
  t.is((await follow(link.slug)).status, 302);
});

test("a link stops at max_clicks, and HEAD doesn't count", async (t) => {
  const link = await api.createLink({ max_clicks: 2 });
  for (const status of [302, 302, 410, 410]) {
    t.is((await visitor.send("HEAD", `/${link.slug}`)).status, status);
    t.is((await follow(link.slug)).status, status);
  }
  t.is((await read(link)).clicks, 2);
  await patch(link.id, { max_clicks: 3 });
  t.deepEqual([(await follow(link.slug)).status, (await follow(link.slug)).status], [302, 410]);
  await patch(link.id, { max_clicks: null });
  t.is((await follow(link.slug)).status, 302);
});

const destinations: [url: string, location: string][] = [
  ["https://münchen.example/straße?q=ü#ß", "https://xn--mnchen-3ya.example/stra%C3%9Fe?q=%C3%BC#%C3%9F"],
  ["https://example.com/日本/🎉", "https://example.com/%E6%97%A5%E6%9C%AC/%F0%9F%8E%89"],
  ["HTTPS://EXAMPLE.COM/Path%2Fa", "https://example.com/Path%2Fa"],
  ["https://example.com/?a=\"<>'", "https://example.com/?a=%22%3C%3E%27"],
];

test("a destination is stored unchanged and redirected to as ASCII", async (t) => {
  for (const [url, location] of destinations) {
    const link = await api.createLink({ url });
    t.is(link.url, url);
    t.is((await follow(link.slug)).headers.get("location"), location);
  }
});

test("only the exact path of a slug redirects", async (t) => {
  const { slug, id } = await api.createLink({ slug: "ExactSlug" });
  const others = ["nothing", "-", "exactslug", "EXACTSLUG", `/${slug}/`, `/${slug}`, "x".repeat(65)];
  const longer = ["//", "/x", ".", "%00", "%20", ";x", "%0d%0a"].map((end) => slug + end);
  for (const path of [...others, ...longer])
    for (const method of ["GET", "HEAD"]) {
      const reply = await sendRaw(service.url, `/${path}`, { method });
      t.is(reply.status, 404, path);
      t.is(reply.headers.location, undefined, path);
    }
  t.is((await sendRaw(service.url, `/${slug}?utm=1`)).status, 302, "a query is not part of the slug");
  t.is((await read({ id } as LinkBody)).clicks, 1);
});

test("a trailing slash leads to the destination without another redirect, and counts", async (t) => {
  const link = await api.createLink({ url: "https://example.com/a" });
  for (const query of ["", "?utm_source=x"]) {
    const { status, headers } = await follow(`${link.slug}/${query}`);
    t.deepEqual([status, headers.get("location")], [302, `https://example.com/a${query}`]);
  }
  t.is((await visitor.send("HEAD", `/${link.slug}/`)).status, 302);
  const { clicks, last_clicked_at, updated_at } = await read(link);
  t.deepEqual([clicks, updated_at], [2, link.updated_at]);
  const age = Date.now() - Date.parse(last_clicked_at ?? "");
  t.true(age >= 0 && age < 60_000, `${last_clicked_at}`);
});

const wantsPage = [BROWSER, "text/html", "text/html, application/json;q=0.9", "TEXT/HTML"];
const wantsJson = ["", "*/*", "application/json", "application/json, text/html;q=0.5", "image/png"];

test("what is unknown or unavailable is a page for browsers, a problem for others, and never cached", async (t) => {
  const archived = await api.createLink();
  await patch(archived.id, { archived: true });
  for (const [slug, status, code] of [
    ["Repeat-Me-Not?x=<script>alert(1)</script>", 404, "not_found"],
    [archived.slug, 410, "link_gone"],
  ] as const)
    for (const accept of [...wantsPage, ...wantsJson]) {
      const reply = await follow(slug, { accept });
      const { headers, text } = reply;
      t.notRegex(text, /repeat-me-not|alert/i);
      t.regex(headers.get("cache-control") ?? "", /no-store/);
      t.regex(headers.get("vary") ?? "", /\baccept\b/i);
      if (wantsJson.includes(accept)) {
        isProblem(t, reply, { status, code });
        continue;
      }
      t.is(reply.status, status);
      t.regex(headers.get("content-type") ?? "", /^text\/html; charset=utf-8$/i);
      t.truthy(parse(text).querySelector("h1")?.text);
      t.is(parse(text).querySelectorAll("script").length, 0);
      t.true(headers.get("content-security-policy")?.includes("default-src 'none'"));
      t.false(text.includes("request_id"));
    }
});

test("a disabled link says why to its owner, not to visitors, and can only be deleted", async (t) => {
  const link = await api.createLink({ external_id: "order-1" });
  await disabledLinks.disable(link.id, "Phishing", OPERATOR);
  const { body, headers } = await api.get<LinkBody>(`/v1/links/${link.id}`);
  t.is(body.disabled_reason, "Phishing");
  t.truthy(body.disabled_at);
  t.not(headers.get("etag"), '"1"');
  const refused = { status: 409, code: "link_disabled" };
  for (const json of [{ url: "https://example.org/" }, { slug: "another" }, { archived: true }, {}])
    isProblem(t, await patch(link.id, json), refused);
  const json = { url: "https://example.org/" };
  isProblem(t, await api.send("PUT", "/v1/links/by-external-id/order-1", { json }), refused);
  t.is((await read(link)).url, link.url);
  isProblem(t, await follow(link.slug), gone);
  const page = await follow(link.slug, { accept: "text/html" });
  t.is(page.status, 410);
  t.true(page.text.includes("The link has been disabled."));
  t.false(page.text.includes("Phishing"));

  t.is((await api.send("DELETE", `/v1/links/${link.id}`)).status, 204);
  t.is(await disabledLinks.enable(link.id, OPERATOR), undefined);
  const again = { json: { ...json, slug: link.slug } };
  const taken = { status: 409, code: "slug_taken", fields: ["slug"] };
  isProblem(t, await api.send("POST", "/v1/links", again), taken);
});

test("of a concurrent change and a switch, a change that comes second is refused", async (t) => {
  for (let round = 0; round < 5; round++) {
    const link = await api.createLink();
    const changes = Array.from({ length: 6 }, (_, index) => patch(link.id, { title: `Title ${index}` }));
    const disabled = await disabledLinks.disable(link.id, "Phishing", OPERATOR);
    const statuses = (await Promise.all(changes)).map(({ status }) => status);
    t.true(statuses.every((status) => status === 200 || status === 409));
    const { body, headers } = await api.get<LinkBody>(`/v1/links/${link.id}`);
    t.is(body.disabled_reason, "Phishing");
    t.is(body.title, disabled?.title ?? null);
    t.is(headers.get("etag"), `"${disabled?.version}"`);
  }
});

test("what a visitor adds to a short URL reaches the destination, unless forward_query is false", async (t) => {
  const url = "https://example.com/a?b=c#d";
  const link = await api.createLink({ url });
  t.true(link.forward_query);
  const locationOf = async (method: string) =>
    (await visitor.send(method, `/${link.slug}?utm_source=mail&b=x`)).headers.get("location");
  for (const method of ["GET", "HEAD"])
    t.is(await locationOf(method), "https://example.com/a?b=c&utm_source=mail#d");
  await patch(link.id, { forward_query: false });
  t.is(await locationOf("GET"), url);
});

test("a slug may have segments, which are one path", async (t) => {
  const link = await api.createLink({ slug: "spring/sale", url: "https://example.com/sale" });
  t.is(link.short_url, `${service.url}/spring/sale`);
  for (const path of ["spring/sale", "spring/sale/", "spring/sale?"])
    t.is((await follow(path)).headers.get("location"), "https://example.com/sale", path);
  const preview = parse((await follow("spring/sale+")).text);
  t.is(preview.querySelector("a.button")?.attributes.href, "/spring/sale");
  const longer = ["spring/sale/x", "x/spring/sale"];
  for (const path of ["spring", "sale", "spring/Sale", "spring//sale", "spring%2Fsale", ...longer])
    t.is((await follow(path)).status, 404, path);
  const { body } = await api.get<PageBody>("/v1/links?slug=spring/sale");
  t.is(body.data.map(({ id }) => id).join(), link.id);
  const most = ["a", "b", "c", "d", "e", "f", "g", "x".repeat(64)].join("/");
  await api.createLink({ slug: most });
  t.is((await follow(most)).status, 302);
});
