import test from "ava";
import type { DomainView } from "../../../resources/domains/schema.ts";
import { isInvalid, isProblem, newApi, type PageBody } from "../../harness/clients/api.ts";
import { startDomainService } from "../../harness/domains.ts";

export const databases = "all";

const { service, records, at, addDomain, create } = await startDomainService();

const URL = "https://example.com/spring";

test("a domain serves the links of its organization once its DNS record is verified", async (t) => {
  const api = await newApi(service);
  const domain = await create(api, "Go.Acme.Example");
  t.like(domain, { host: "go.acme.example", verified: false, default: false, case_sensitive: true });
  t.like(domain.dns, { type: "TXT", name: "_linkgate.go.acme.example" });
  t.is((await at("go.acme.example", "/spring")).status, 421, "it isn't known before");
  const unproven = await api.send("POST", `/v1/domains/${domain.id}/verify`);
  isProblem(t, unproven, { status: 409, code: "domain_unproven" });
  const early = { json: { url: URL, domain: domain.host } };
  isInvalid(t, await api.send("POST", "/v1/links", early), "domain");

  records.set(domain.dns.name, ["other", domain.dns.value]);
  const verified = await api.send<DomainView>("POST", `/v1/domains/${domain.id}/verify`);
  t.true(verified.body.verified);
  const link = await api.createLink({ url: URL, domain: "GO.acme.example", slug: "spring" });
  t.like(link, {
    domain: "go.acme.example",
    short_url: `${new globalThis.URL(service.url).protocol}//go.acme.example/spring`,
  });
  const followed = await at("go.acme.example", "/spring?a=1");
  t.deepEqual([followed.status, followed.headers.get("location")], [302, `${URL}?a=1`]);
  t.is((await at(new globalThis.URL(service.url).host, "/spring")).status, 404);
  t.is((await at("go.acme.example", "/spring%2B")).status, 200, "its preview");
  t.regex((await at("go.acme.example", "/robots.txt")).text, /Allow: \//);
  t.is((await api.get(`/v1/links/${link.id}`)).body.clicks, 1);
});

test("links that are created in bulk on a domain are in the order of the request", async (t) => {
  const api = await newApi(service);
  await addDomain(api, "bulk.example", { default: true });
  const links = Array.from({ length: 100 }, (_, n) => ({ url: URL, title: `Link ${n}` }));
  const own = links.map((link, n) => (n % 2 === 0 ? link : { ...link, domain: "bulk.example" }));
  await api.send("POST", "/v1/links/bulk", { json: { links: own } });
  const { body } = await api.get<PageBody>("/v1/links?limit=100&domain=bulk.example");
  const titles = body.data.map(({ title }) => title).toReversed();
  t.deepEqual(titles, links.map(({ title }) => title) as typeof titles);
});

test("a root or a not-found URL that leads to itself is no loop", async (t) => {
  const api = await newApi(service);
  const { id, host } = await addDomain(api, "loop.example");
  const json = { root_redirect_url: `https://${host}/`, not_found_url: `https://${host}/lost` };
  await api.send("PATCH", `/v1/domains/${id}`, { json });
  t.is((await at(host, "/absent")).headers.get("location"), json.not_found_url);
  for (const path of ["/lost", "/lost?a=1"]) t.is((await at(host, path)).status, 404, path);
  t.is((await at(host, "/")).headers.get("location"), json.not_found_url);
  await api.createLink({ url: URL, domain: host, slug: "lost" });
  t.is((await at(host, "/lost")).headers.get("location"), URL);
});
