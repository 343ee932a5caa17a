import test from "ava";
import type { DomainView } from "../../../resources/domains/schema.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem, newApi } from "../../harness/clients/api.ts";
import { startDomainService } from "../../harness/domains.ts";

export const databases = "all";

const { service, at, addDomain, create, records, startAnother } = await startDomainService();
const other = await startAnother();

const URL = "https://example.com/";

/** Asks both services, the one that nothing is changed at first. */
async function bothAt(host: string, path: string): Promise<string[]> {
  const shown: string[] = [];
  for (const { url } of [other, service]) {
    const { status, headers, body } = await at(host, path, { url, headers: { accept: "application/json" } });
    shown.push(`${headers.get("location") ?? (status === 200 ? JSON.stringify(body) : status)}`);
  }
  return shown;
}

const BOTH = (value: unknown) => [value, value].map(String);

test("each change of a domain and its links counts for the next visitor of every process", async (t) => {
  const api = await newApi(service);
  const host = "current.example";
  const domain = await create(api, host, { case_sensitive: false });
  const path = `/v1/domains/${domain.id}`;
  const patch = (json: object) => api.send("PATCH", path, { json });
  records.set(domain.dns.name, [domain.dns.value]);
  let link = "";
  const patchLink = (json: object) => api.send("PATCH", `/v1/links/${link}`, { json });
  const document = [{ relation: ["delegate_permission/common.handle_all_urls"] }];
  const changes: [title: string, visited: string, change: () => Promise<unknown>, after: unknown][] = [
    ["that it is verified", "/sale", () => api.send("POST", `${path}/verify`), 404],
    [
      "a new link",
      "/sale",
      async () => {
        link = (await api.createLink({ url: `${URL}1`, domain: host, slug: "Sale" })).id;
        const again = { json: { url: URL, domain: host, slug: "sALE" } };
        const taken = { status: 409, code: "slug_taken", fields: ["slug"] };
        isProblem(t, await api.send("POST", "/v1/links", again), taken);
      },
      `${URL}1`,
    ],
    ["its URL, for another spelling", "/SALE", () => patchLink({ url: `${URL}2` }), `${URL}2`],
    ["its slug", "/sale", () => patchLink({ slug: "Autumn" }), 404],
    ["its slug, for another spelling", "/sALe", () => patchLink({ slug: "sale" }), `${URL}2`],
    ["its root", "/", () => patch({ root_redirect_url: `${URL}root` }), `${URL}root`],
    ["that it has no root", "/", () => patch({ root_redirect_url: null }), 404],
    ["its not-found URL", "/absent", () => patch({ not_found_url: `${URL}404` }), `${URL}404`],
    ["another not-found URL", "/not/a%20slug", () => patch({ not_found_url: `${URL}none` }), `${URL}none`],
    ["that it has no not-found URL", "/absent", () => patch({ not_found_url: null }), 404],
    [
      "its documents for apps",
      "/.well-known/assetlinks.json",
      () => patch({ app_links: { assetlinks: document } }),
      JSON.stringify(document),
    ],
    [
      "its document for apps of Apple",
      "/.well-known/apple-app-site-association",
      () => patch({ app_links: { apple_app_site_association: { applinks: {} } } }),
      '{"applinks":{}}',
    ],
    ["that its link is archived", "/sale", () => patchLink({ archived: true }), 410],
    ["its fallback", "/sale", () => patch({ fallback_url: `${URL}gone` }), `${URL}gone`],
    ["that its link is restored", "/Sale", () => patchLink({ archived: false }), `${URL}2`],
    ["that its link is moved", "/sale", () => patchLink({ domain: null }), 404],
    ["that its link is moved back", "/sale", () => patchLink({ domain: host }), `${URL}2`],
    ["that it is deleted", "/sale", () => api.send("DELETE", `${path}?links=delete`), 421],
  ];
  let before: string[] = [];
  for (const [title, visited, change, after] of changes) {
    before = await bothAt(host, visited);
    t.notDeepEqual(before, BOTH(after), title);
    await change();
    t.deepEqual(await bothAt(host, visited), BOTH(after), title);
  }

  // The same host again is another domain, with its own slugs.
  await addDomain(api, host);
  t.deepEqual(await bothAt(host, "/sale"), BOTH(404));
  await api.createLink({ url: `${URL}3`, domain: host, slug: "sale" });
  t.deepEqual(await bothAt(host, "/sale"), BOTH(`${URL}3`));
  t.deepEqual(await bothAt(host, "/Sale"), BOTH(404), "it doesn't ignore case");
});

test("the default domain of an organization counts for the next link at every process", async (t) => {
  const organization = await service.createOrganization();
  const api = apiAt(service.url, await service.token(organization));
  const there = apiAt(other.url, await other.token(organization));
  const domains = [await addDomain(api, "one.current.example"), await addDomain(api, "two.current.example")];
  const own = new globalThis.URL(other.url).host;
  t.is((await there.createLink()).domain, own);
  for (const { id, host } of domains) {
    await api.send("PATCH", `/v1/domains/${id}`, { json: { default: true } });
    t.is((await there.createLink()).domain, host);
  }
  const [, { id, host }] = domains as [DomainView, DomainView];
  for (const isDefault of [false, true]) {
    await api.send("PATCH", `/v1/domains/${id}`, { json: { default: isDefault } });
    t.is((await there.createLink()).domain, isDefault ? host : own);
  }
  await api.send("DELETE", `/v1/domains/${id}?links=delete`);
  t.is((await there.createLink()).domain, own);
});

test("a suspension of its owner counts for the next visitor of a domain at every process", async (t) => {
  const organization = await service.createOrganization();
  const api = apiAt(service.url, await service.token(organization));
  const urls = { root_redirect_url: URL, not_found_url: URL, fallback_url: URL };
  const { host } = await addDomain(api, "owner.current.example", urls);
  await api.createLink({ url: URL, domain: host, slug: "spring" });
  const paths = ["/", "/spring", "/absent", "/spring+", "/robots.txt"];
  const answers = async () => {
    const all = await Promise.all(paths.map((path) => bothAt(host, path)));
    return all.flat().map((answer) => (answer === URL || /^4/.test(answer) ? answer : "page"));
  };
  const expected = (values: unknown[]) => values.flatMap(BOTH);
  t.deepEqual(await answers(), expected([URL, URL, URL, "page", "page"]));
  await service.storage.suspensions.suspend(organization.id, null, OPERATOR);
  t.deepEqual(await answers(), expected([404, 410, 404, 410, "page"]));
  await service.storage.suspensions.resume(organization.id, OPERATOR);
  t.deepEqual(await answers(), expected([URL, URL, URL, "page", "page"]));
  await service.storage.organizations.remove(organization.id, OPERATOR);
  t.deepEqual(await bothAt(host, "/"), BOTH(421));
});
