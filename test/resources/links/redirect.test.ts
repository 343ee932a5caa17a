import test from "ava";
import { parse } from "node-html-parser";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isMissing, isProblem, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const app = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));

const archived = await api.createLink();
const active = await api.createLink();
await api.send("PATCH", `/v1/links/${archived.id}`, { json: { archived: true } });

test.after.always(() => service.close());

const visitor = apiAt(service.url);

const follow = (slug: string, headers: Record<string, string> = {}) => visitor.get(`/${slug}`, headers);
const read = async ({ id }: LinkBody) => (await api.get(`/v1/links/${id}`)).body;
const patch = (id: string, json: unknown) => api.send("PATCH", `/v1/links/${id}`, { json });
const gone = { status: 410, code: "link_gone" };

for (const redirect_type of [undefined, 301, 302, 307, 308]) {
  test(`a link with redirect_type ${redirect_type ?? "omitted"} redirects with ${redirect_type ?? 302}`, async (t) => {
    const link = await api.createLink({ url: "https://example.com/a?b=c&d=%20#e", redirect_type });
    for (const method of ["GET", "HEAD"]) {
      const { status, headers, text } = await visitor.send(method, `/${link.slug}`);
      t.is(status, redirect_type ?? 302);
      t.is(headers.get("location"), "https://example.com/a?b=c&d=%20#e");
      t.is(text, "");
      t.regex(headers.get("cache-control") ?? "", /no-store/, "a cached redirect would not be counted");
    }
  });
}

test("every GET is counted and timestamped, and HEAD is not", async (t) => {
  const link = await api.createLink();
  await visitor.send("HEAD", `/${link.slug}`);
  t.is((await read(link)).last_clicked_at, null);
  const before = Date.now();
  for (let n = 1; n <= 3; n++) {
    await follow(link.slug);
    const { clicks, last_clicked_at } = await read(link);
    t.is(clicks, n);
    t.true(Date.parse(last_clicked_at ?? "") >= before);
  }
  await visitor.send("HEAD", `/${link.slug}`);
  t.is((await read(link)).clicks, 3);
});

test("a list and an update return the current clicks", async (t) => {
  const link = await api.createLink();
  await follow(link.slug);
  const { body } = await api.get<PageBody>("/v1/links?limit=100");
  t.is(body.data.find(({ id }) => id === link.id)?.clicks, 1);
  await follow(link.slug);
  const updated = await api.send<LinkBody>("PATCH", `/v1/links/${link.id}`, { json: { title: "x" } });
  t.is(updated.body.clicks, 2);
});

test("a click does not change updated_at", async (t) => {
  const link = await api.createLink();
  await follow(link.slug);
  t.is((await read(link)).updated_at, link.updated_at);
});

// Serial, because the test sets the clock: no time passes while a request is sent.
test.serial("a link expires exactly at expires_at", async (t) => {
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

test("a later max_clicks includes earlier clicks", async (t) => {
  const link = await api.createLink();
  for (const _ of [1, 2, 3]) await follow(link.slug);
  await patch(link.id, { max_clicks: 4 });
  t.deepEqual([(await follow(link.slug)).status, (await follow(link.slug)).status], [302, 410]);
});

test("an archived link is unavailable and not counted until it is restored", async (t) => {
  const link = await api.createLink();
  await patch(link.id, { archived: true });
  isProblem(t, await follow(link.slug), gone);
  t.is((await read(link)).clicks, 0);
  await patch(link.id, { archived: false });
  t.is((await follow(link.slug)).status, 302);
});

test("a deleted link is unavailable", async (t) => {
  const link = await api.createLink();
  await api.send("DELETE", `/v1/links/${link.id}`);
  isProblem(t, await follow(link.slug), gone);
});

test("a new destination takes effect immediately", async (t) => {
  const link = await api.createLink({ redirect_type: 301 });
  await follow(link.slug);
  await patch(link.id, { url: "https://example.org/new", redirect_type: 307 });
  const { status, headers } = await follow(link.slug);
  t.deepEqual([status, headers.get("location")], [307, "https://example.org/new"]);
});

test("the links of a downgraded organization still redirect and count clicks", async (t) => {
  const other = await service.createOrganization();
  const owner = apiAt(service.url, await service.token(other));
  const link = await owner.createLink();
  await service.storage.organizations.setPlan(other.id, "free", OPERATOR);
  t.is((await follow(link.slug)).status, 302);
  await service.storage.organizations.setPlan(other.id, "growth", OPERATOR);
  t.is((await owner.get(`/v1/links/${link.id}`)).body.clicks, 1);
});

const destinations: [url: string, location: string][] = [
  ["https://münchen.example/straße?q=ü#ß", "https://xn--mnchen-3ya.example/stra%C3%9Fe?q=%C3%BC#%C3%9F"],
  ["https://example.com/日本/🎉", "https://example.com/%E6%97%A5%E6%9C%AC/%F0%9F%8E%89"],
  ["HTTPS://EXAMPLE.COM/Path%2Fa", "https://example.com/Path%2Fa"],
  ["https://example.com/\u0085\u2028", "https://example.com/%C2%85%E2%80%A8"],
  ["https://example.com/?a=\"<>'", "https://example.com/?a=%22%3C%3E%27"],
];
for (const [url, location] of destinations) {
  test(`the destination ${url} is stored unchanged and redirected to as ASCII`, async (t) => {
    const link = await api.createLink({ url });
    t.is(link.url, url);
    t.is((await follow(link.slug)).headers.get("location"), location);
  });
}

test("the longest destination fits in a header that clients accept", async (t) => {
  const start = "https://example.com/";
  const reply = await api.send<LinkBody>("POST", "/v1/links", {
    json: { url: start + "日".repeat(2048 - start.length) },
  });
  isProblem(t, reply, { status: 422, code: "invalid_url", fields: ["url"] });
  const { slug } = await api.createLink({ url: start + "日".repeat(900) });
  const { status, headers } = await follow(slug);
  t.is(status, 302);
  t.is(headers.get("location"), start + "%E6%97%A5".repeat(900));
});

const unknown = ["nothing", "-", "_", "x".repeat(64), "UPPER"];
for (const slug of unknown) {
  test(`the unknown slug ${slug.slice(0, 10)} is not found`, async (t) => {
    isMissing(t, await follow(slug));
    const head = await visitor.send("HEAD", `/${slug}`);
    t.deepEqual([head.status, head.text], [404, ""]);
  });
}

test("only the exact path of a slug redirects", async (t) => {
  const { slug, id } = await api.createLink({ slug: "ExactSlug" });
  const similar = [
    "exactslug",
    "EXACTSLUG",
    `${slug}//`,
    `/${slug}/`,
    `/${slug}`,
    `${slug}/x`,
    `${slug}.`,
    `${slug}%00`,
    `${slug}%20`,
    `${slug};x`,
    "x".repeat(65),
    `${slug}%0d%0a`,
  ];
  for (const path of similar) {
    const reply = await sendRaw(service.url, `/${path}`);
    t.is(reply.status, 404, path);
    t.is(reply.headers.location, undefined, path);
  }
  t.is((await sendRaw(service.url, `/${slug}?utm=1`)).status, 302, "a query is not part of the slug");
  t.is((await read({ id } as LinkBody)).clicks, 1);
});

test("a trailing slash leads to the destination without another redirect, and counts", async (t) => {
  const link = await api.createLink({ url: "https://example.com/a" });
  for (const path of [`${link.slug}/`, `${link.slug}/?utm_source=x`]) {
    const { status, headers } = await follow(path);
    t.deepEqual([status, headers.get("location")], [302, "https://example.com/a"], path);
  }
  t.is((await visitor.send("HEAD", `/${link.slug}/`)).status, 302);
  t.is((await read(link)).clicks, 2);
});

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

/** Follows a link concurrently, and counts the responses by status. */
async function followConcurrently(slug: string, times: number): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  const replies = await Promise.all(Array.from({ length: times }, () => visitor.get(`/${slug}`)));
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

test("concurrent clicks are all redirected and counted", async (t) => {
  const link = await api.createLink();
  t.deepEqual(await followConcurrently(link.slug, 200), { 302: 200 });
  t.is((await api.get(`/v1/links/${link.id}`)).body.clicks, 200);
});

test("concurrent clicks never exceed max_clicks", async (t) => {
  const link = await api.createLink({ max_clicks: 100 });
  t.deepEqual(await followConcurrently(link.slug, 200), { 302: 100, 410: 100 });
  t.is((await api.get(`/v1/links/${link.id}`)).body.clicks, 100);
});

test("a single-use link redirects exactly one of many concurrent clicks", async (t) => {
  const link = await api.createLink({ max_clicks: 1 });
  t.deepEqual(await followConcurrently(link.slug, 50), { 302: 1, 410: 49 });
});

test("no click is lost while the link is updated", async (t) => {
  const link = await api.createLink();
  const [counts] = await Promise.all([
    followConcurrently(link.slug, 100),
    ...Array.from({ length: 10 }, (_, n) =>
      api.send("PATCH", `/v1/links/${link.id}`, { json: { title: `title ${n}` } }),
    ),
  ]);
  t.deepEqual(counts, { 302: 100 });
  t.is((await api.get(`/v1/links/${link.id}`)).body.clicks, 100);
});

test("a limit that is set later includes all earlier clicks", async (t) => {
  const link = await api.createLink();
  await followConcurrently(link.slug, 100);
  await api.send("PATCH", `/v1/links/${link.id}`, { json: { max_clicks: 110 } });
  t.deepEqual(await followConcurrently(link.slug, 20), { 302: 10, 410: 10 });
});

const { disabledLinks } = service.storage;

test("a disabled link says why, and can't be changed", async (t) => {
  const link = await api.createLink({ external_id: "order-1" });
  await disabledLinks.disable(link.id, "Phishing", OPERATOR);
  const { body, headers } = await api.get<LinkBody>(`/v1/links/${link.id}`);
  t.is(body.disabled_reason, "Phishing");
  t.truthy(body.disabled_at);
  t.not(headers.get("etag"), '"1"');
  const refused = { status: 409, code: "link_disabled" };
  for (const json of [{ url: "https://example.org/" }, { slug: "another" }, { archived: true }, {}]) {
    isProblem(t, await api.send("PATCH", `/v1/links/${link.id}`, { json }), refused);
  }
  const json = { url: "https://example.org/" };
  isProblem(t, await api.send("PUT", "/v1/links/by-external-id/order-1", { json }), refused);
  t.is((await api.get<LinkBody>(`/v1/links/${link.id}`)).body.url, link.url);
});

test("visitors of a disabled link see no reason", async (t) => {
  const link = await api.createLink();
  await disabledLinks.disable(link.id, "Phishing", OPERATOR);
  isProblem(t, await apiAt(service.url).send("GET", `/${link.slug}`), { status: 410, code: "link_gone" });
  const page = await fetch(`${service.url}/${link.slug}`, { headers: { accept: "text/html" } });
  const text = await page.text();
  t.is(page.status, 410);
  t.true(text.includes("The link has been disabled."));
  t.false(text.includes("Phishing"));
});

test("a disabled link can be deleted, but its slug can't be used again", async (t) => {
  const link = await api.createLink({ slug: "phish" });
  await disabledLinks.disable(link.id, null, OPERATOR);
  t.is((await api.send("DELETE", `/v1/links/${link.id}`)).status, 204);
  t.is(await disabledLinks.enable(link.id, OPERATOR), undefined);
  const json = { url: "https://example.com/", slug: "phish" };
  isProblem(t, await api.send("POST", "/v1/links", { json }), {
    status: 409,
    code: "slug_taken",
    fields: ["slug"],
  });
});

test("of a concurrent change and a switch, a change that comes second is refused", async (t) => {
  for (let round = 0; round < 5; round++) {
    const link = await api.createLink();
    const changes = Array.from({ length: 6 }, (_, index) =>
      api.send("PATCH", `/v1/links/${link.id}`, { json: { title: `Title ${index}` } }),
    );
    const disabled = await disabledLinks.disable(link.id, "Phishing", OPERATOR);
    const statuses = (await Promise.all(changes)).map(({ status }) => status);
    t.true(statuses.every((status) => status === 200 || status === 409));
    const { body, headers } = await api.get<LinkBody>(`/v1/links/${link.id}`);
    t.is(body.disabled_reason, "Phishing");
    t.is(body.title, disabled?.title ?? null);
    t.is(headers.get("etag"), `"${disabled?.version}"`);
  }
});
