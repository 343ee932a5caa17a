import test from "ava";
import { parse } from "node-html-parser";
import { apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();

const { disabledLinks, organizationSettings, organizations, suspensions } = service.storage;
const FALLBACK = "https://example.com/sale-ended";
const DEFAULT = "https://example.com/";
const gone = { status: 410, code: "link_gone" };

async function createOwner(fallbackUrl?: string) {
  const app = await service.createOrganization();
  if (fallbackUrl) await organizationSettings.change(app.id, { fallbackUrl }, OPERATOR);
  const api = apiAt(service.url, await service.token(app));
  const patch = (id: string, json: object) => api.send<LinkBody>("PATCH", `/v1/links/${id}`, { json });
  const clicksOf = async ({ id }: LinkBody) => (await api.get(`/v1/links/${id}`)).body.clicks;
  return { app, api, patch, clicksOf };
}

const visitor = apiAt(service.url);
const follow = (slug: string, method = "GET") => visitor.send(method, `/${slug}`);

async function leadsTo(slug: string, method?: string): Promise<string | number> {
  const { status, headers } = await follow(slug, method);
  return status === 302 ? (headers.get("location") ?? "") : status;
}

test("an archived link leads to its fallback with a 302 that isn't stored or counted", async (t) => {
  const { api, patch, clicksOf } = await createOwner();
  const link = await api.createLink({ fallback_url: FALLBACK, redirect_type: 301 });
  t.is(link.fallback_url, FALLBACK);
  t.is((await follow(link.slug)).status, 301);
  await patch(link.id, { archived: true });
  for (const method of ["GET", "HEAD"]) {
    const { status, headers, text } = await follow(link.slug, method);
    t.deepEqual([status, headers.get("location"), text], [302, FALLBACK, ""]);
    t.regex(headers.get("cache-control") ?? "", /no-store/);
    t.is(headers.get("x-robots-tag"), "noindex");
  }
  t.is(await clicksOf(link), 1);
  await patch(link.id, { archived: false });
  t.is((await follow(link.slug)).status, 301);
});

test("the fallback of the organization is for links without their own, also after a downgrade", async (t) => {
  const { app, api, patch } = await createOwner(DEFAULT);
  const link = await api.createLink();
  await patch(link.id, { archived: true });
  t.is(await leadsTo(link.slug), DEFAULT);
  t.is((await api.get<{ fallback_url: string }>("/v1/organization")).body.fallback_url, DEFAULT);
  await patch(link.id, { fallback_url: FALLBACK });
  t.is(await leadsTo(link.slug), FALLBACK);
  await patch(link.id, { fallback_url: null });
  t.is(await leadsTo(link.slug), DEFAULT);
  await organizations.setPlan(app.id, "free", OPERATOR);
  t.is(await leadsTo(link.slug), DEFAULT);
  await organizationSettings.change(app.id, { fallbackUrl: null }, OPERATOR);
  isProblem(t, await follow(link.slug), gone);
});

test("a deleted link leads to the fallback of its organization, as its own is erased", async (t) => {
  const { api } = await createOwner();
  const { api: other } = await createOwner(DEFAULT);
  const own = await api.createLink({ fallback_url: FALLBACK });
  const both = await other.createLink({ fallback_url: FALLBACK });
  await api.send("DELETE", `/v1/links/${own.id}`);
  await other.send("DELETE", `/v1/links/${both.id}`);
  isProblem(t, await follow(own.slug), gone);
  t.is(await leadsTo(both.slug), DEFAULT);
});

test("no fallback is used for what the operator stopped, nor for a deleted organization", async (t) => {
  const disabled = await createOwner(DEFAULT);
  const link = await disabled.api.createLink({ fallback_url: FALLBACK });
  await disabledLinks.disable(link.id, null, OPERATOR);
  isProblem(t, await follow(link.slug), gone);
  await disabled.api.send("DELETE", `/v1/links/${link.id}`);
  isProblem(t, await follow(link.slug), gone);
  const stops = [
    (id: string) => suspensions.suspend(id, null, OPERATOR),
    (id: string) => organizations.remove(id, OPERATOR),
  ];
  for (const stop of stops) {
    const { app, api, patch } = await createOwner(DEFAULT);
    const [active, archived] = [await api.createLink(), await api.createLink({ fallback_url: FALLBACK })];
    const deleted = await api.createLink();
    await patch(archived.id, { archived: true });
    await api.send("DELETE", `/v1/links/${deleted.id}`);
    await stop(app.id);
    for (const { slug } of [active, archived, deleted]) isProblem(t, await follow(slug), gone);
  }
});

test("the page of a link names its organization, and that of a missing or disabled one only the host", async (t) => {
  const { app, api, patch } = await createOwner();
  const [shown, locked, archived, deleted, disabled] = await Promise.all(
    [{}, { password: "spring" }, {}, {}, {}].map((fields) => api.createLink(fields)),
  );
  await patch(archived?.id ?? "", { archived: true });
  await api.send("DELETE", `/v1/links/${deleted?.id}`);
  await disabledLinks.disable(disabled?.id ?? "", null, OPERATOR);
  const { host } = new URL(service.url);
  const pages: [path: string, status: number, name: string][] = [
    [`${shown?.slug}+`, 200, app.name],
    [`${locked?.slug}`, 200, app.name],
    [`${locked?.slug}+`, 200, app.name],
    [`${archived?.slug}`, 410, app.name],
    [`${archived?.slug}+`, 410, app.name],
    [`${deleted?.slug}`, 410, app.name],
    [`${disabled?.slug}`, 410, host],
    ["no-such-link", 404, host],
    ["no-such-link+", 404, host],
    ["no.page", 404, host],
  ];
  for (const [path, status, name] of pages) {
    const page = await visitor.get(`/${path}`, { accept: "text/html" });
    const html = parse(page.text);
    t.deepEqual([page.status, html.querySelector(".brand")?.text], [status, name], path);
    t.true(html.querySelector("title")?.text.startsWith(`${name} · `), path);
    t.notRegex(html.querySelector("body")?.text ?? "", /linkgate/, path);
  }
});
