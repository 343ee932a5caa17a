import test from "ava";
import type { DomainView } from "../../../resources/domains/schema.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { isMissing, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../harness/clients/dashboard.ts";
import { alertOn, isMarked, openSection, textsOn, typedIn } from "../../harness/clients/pages.ts";
import type { Page } from "../../harness/clients/test-browser.ts";
import { startDomainService } from "../../harness/domains.ts";

const { service, knex, records } = await startDomainService();

const OWN_HOST = new URL(service.url).host;
let count = 0;

/** Creates a team with functions that manage its domains as the owner, with requests and in a browser. */
async function withDomains() {
  const section = await openSection<DomainView>(service, "domains");
  const { api, base, browser, path } = section;
  const create = async (fields: object = {}) => {
    const json = { host: `go-${++count}.example`, ...fields };
    return (await api.send<DomainView>("POST", path, { json })).body;
  };
  return {
    ...section,
    create,
    /** Creates a verified domain. */
    async add(fields: object = {}) {
      const { id, dns } = await create(fields);
      records.set(dns.name, [dns.value]);
      return (await api.send<DomainView>("POST", `${path}/${id}/verify`)).body;
    },
    openLinks: (address = "") => browser.open(`${service.url}${base}/links${address}`),
    async createLink(fields: object) {
      const json = { url: "https://example.com/", ...fields };
      return (await api.send<LinkBody>("POST", `${base}/links`, { json })).body;
    },
  };
}

const statusOn = (page: Page): string => textsOn(page, "[data-fact=status]")[0] ?? "";

test("an owner adds a domain, creates its DNS record and verifies it in the browser", async (t) => {
  const { browser, open, list } = await withDomains();
  const empty = await open();
  t.regex(empty.text, /No domains yet/);
  const invalid = { host: "https://a.example/", case_sensitive: "false" };
  const rejected = await browser.press(await open("/new"), "Add domain", invalid);
  t.is(rejected.status, 422);
  isMarked(t, rejected, "host", /without https:\/\//);
  for (const [name, value] of Object.entries(invalid)) t.is(typedIn(rejected, name), value);
  const added = await browser.press(rejected, "Add domain", { host: "Shop.Acme.example" });
  t.regex(added.text, /Domain added/);
  t.is(textsOn(added, "h1")[0], "shop.acme.example");
  const [domain] = await list();
  const { type = "", name = "", value = "" } = domain?.dns ?? {};
  t.deepEqual(textsOn(added, ".copyable code"), [type, name, value]);
  const copied = added.html.querySelectorAll("[data-copy]").map(({ attributes }) => attributes["data-copy"]);
  t.deepEqual(copied, [type, name, value]);
  t.is(statusOn(added), "Waiting for DNS record");

  const unproven = await browser.press(added, "Verify domain");
  t.is(unproven.status, 409);
  t.regex(alertOn(unproven), /TXT record _linkgate\.shop\.acme\.example must have the value/);
  t.deepEqual(textsOn(unproven, "form[action$=verify] > [role=alert]"), [alertOn(unproven)], "at the button");
  t.is(statusOn(unproven), "Waiting for DNS record");
  records.set(name, "SERVFAIL");
  const unanswered = await browser.press(unproven, "Verify domain");
  t.is(unanswered.status, 503);
  t.is(unanswered.headers.get("retry-after"), "60");
  t.regex(alertOn(unanswered), /DNS servers of shop\.acme\.example don’t answer/);
  t.truthy(unanswered.html.querySelector("main form"));

  records.set(name, [value]);
  const verified = await browser.press(unanswered, "Verify domain");
  t.regex(verified.text, /Domain verified/);
  t.is(statusOn(verified), "Verified");
  t.false(verified.text.includes("Verify domain"));
  const page = await open();
  t.deepEqual(textsOn(page, "tbody td:nth-child(2)"), ["Verified"]);
  t.regex(page.text, /1 of 5 domains/);
});

test("a lost DNS record is shown in the list, on the domain's page and among the notices", async (t) => {
  const { browser, open, add, api, path, base } = await withDomains();
  const { id, host, dns } = await add();
  records.delete(dns.name);
  isProblem(t, await api.send("POST", `${path}/${id}/verify`), { status: 409, code: "domain_unproven" });
  t.regex(textsOn(await open(), "tbody td:nth-child(2)")[0] ?? "", /^DNS record missing since/);
  const page = await open(`/${id}`);
  t.regex(textsOn(page, ".alert.bad")[0] ?? "", /keeps serving links, but after 7 days/);
  const overview = await browser.open(service.url + base);
  t.regex(overview.text, /<strong>Notice:<\/strong> The DNS record for/);
  const notices = await browser.open(`${service.url}/dashboard/notices`);
  const notice = notices.html.querySelectorAll("main section").find(({ text }) => text.includes(host));
  t.regex(notice?.text ?? "", /The DNS record for .* is missing/);
  t.regex(notice?.querySelector("p:not(.soft)")?.text ?? "", /Create it again/);
  t.is(notice?.querySelector("details"), null, "it isn't about what the user did");
  records.set(dns.name, [dns.value]);
  t.is(statusOn(await browser.press(page, "Verify domain")), "Verified");
});

test("the settings of a domain are changed in the browser, and an unchanged form changes nothing", async (t) => {
  const { browser, open, add, look } = await withDomains();
  const apple = { applinks: { details: [{ appIDs: ["A.example"] }] } };
  const { id } = await add({ default: true, app_links: { apple_app_site_association: apple } });
  const before = await look(id);
  t.truthy((await open(`/${id}`)).html.querySelector("details[open]"), "documents are shown");
  const same = await browser.press(await open(`/${id}`), "Save settings");
  t.regex(same.text, /Domain saved/);
  t.deepEqual(await look(id), before);
  await browser.press(same, "Save settings", {
    default: [],
    root_redirect_url: "acme.example",
    not_found_url: "https://acme.example/404",
    fallback_url: "https://acme.example/gone",
    apple_app_site_association: "",
    assetlinks: '[{ "relation": [] }]',
  });
  t.like(await look(id), {
    default: false,
    root_redirect_url: "https://acme.example",
    not_found_url: "https://acme.example/404",
    fallback_url: "https://acme.example/gone",
    app_links: { apple_app_site_association: null, assetlinks: [{ relation: [] }] },
  });
});

test("rejected settings are shown again, with the error at its field", async (t) => {
  const { browser, open, add, look } = await withDomains();
  const before = await add();
  const form = await open(`/${before.id}`);
  for (const [field, value, message] of [
    ["root_redirect_url", "ftp://acme.example/", /http or https/],
    ["fallback_url", `${service.url}/loop`, /must not point to this service/i],
    ["apple_app_site_association", "{", /valid JSON/],
    ["assetlinks", "{}", /an array/],
  ] as const) {
    const again = await browser.press(form, "Save settings", { default: "true", [field]: value });
    t.is(again.status, 422);
    isMarked(t, again, field, message);
    const shown = again.html.querySelector(`[name=${field}]`);
    t.is(shown?.attributes.value ?? shown?.text, value);
    t.not(again.html.querySelector("[name=default]")?.attributes.checked, undefined);
  }
  t.deepEqual(await look(before.id), before);
});

test("a form that is older than the domain is shown again before it replaces anything", async (t) => {
  const { browser, open, add, look, api, path } = await withDomains();
  const { id } = await add();
  const form = await open(`/${id}`);
  const root_redirect_url = "https://acme.example/theirs";
  await api.send("PATCH", `${path}/${id}`, { json: { root_redirect_url } });
  const mine = { root_redirect_url: "https://acme.example/mine" };
  const again = await browser.press(form, "Save settings", mine);
  t.is(again.status, 412);
  t.regex(alertOn(again), /changed while you were editing/);
  t.is(typedIn(again, "root_redirect_url"), mine.root_redirect_url);
  t.like(await look(id), { root_redirect_url });
  await browser.press(again, "Save settings");
  t.like(await look(id), mine);
});

test("the page of a deletion asks what happens to the links of the domain", async (t) => {
  const { browser, open, add, create, createLink, list, base, api } = await withDomains();
  const empty = await create();
  const page = await open(`/${empty.id}/delete`);
  t.is(page.html.querySelector("[name=links]"), null);
  t.regex((await browser.press(page, "Delete domain")).text, /Domain deleted/);

  const [moving, deleting] = [await add(), await add()];
  const moved = await createLink({ domain: moving.host, slug: `moved-${count}` });
  const deleted = await createLink({ domain: deleting.host });
  const asking = await open(`/${moving.id}/delete`);
  t.is(textsOn(asking, "h1")[0], `Delete ${moving.host}?`);
  t.is(textsOn(asking, "label[for=links]")[0], "Its 1 link");
  await browser.press(asking, "Delete domain");
  await browser.press(await open(`/${deleting.id}/delete`), "Delete domain", { links: "delete" });
  t.deepEqual(await list(), []);
  t.is((await api.get<LinkBody>(`${base}/links/${moved.id}`)).body.domain, OWN_HOST);
  isMissing(t, await api.get(`${base}/links/${deleted.id}`));
});

test("the Free plan has no new domains, and keeps those from before", async (t) => {
  const { organization, open, add } = await withDomains();
  await add();
  await service.storage.organizations.setPlan(organization.id, "free", OPERATOR);
  const page = await open();
  t.regex(textsOn(page, ".alert")[0] ?? "", /keep serving links on the Free plan/);
  t.false(page.text.includes("Add domain"));
  t.is((await open("/new")).status, 403);
  const fresh = await createTeam(service, "free");
  const { browser } = await browserOf(service, fresh.owner);
  t.regex((await browser.open(`${service.url}${fresh.base}/domains`)).text, /Domains require a paid plan/);
});

test("a full list of domains says so instead of offering another one", async (t) => {
  const { browser, open, create } = await withDomains();
  const form = await open("/new");
  for (let index = 0; index < 5; index++) await create();
  const page = await open();
  t.regex(page.text, /5 of 5 domains\. Delete one/);
  t.false(page.text.includes("Add domain"));
  const refused = await browser.press(form, "Add domain", { host: "sixth.example" });
  t.is(refused.status, 409);
  t.regex(alertOn(refused), /limit of 5 domains/);
});

test("the form of a link has the verified domains, with the default one selected", async (t) => {
  const { browser, openLinks, create, add, member } = await withDomains();
  t.is((await openLinks("/new")).html.querySelector("[name=domain]"), null, "there is no choice yet");
  await create();
  t.is((await openLinks("/new")).html.querySelector("[name=domain]"), null, "nor with an unverified one");
  const other = await add();
  const { host } = await add({ default: true });
  const form = await openLinks("/new");
  t.deepEqual(textsOn(form, "[name=domain] option").sort(), [OWN_HOST, other.host, host].sort());
  t.is(typedIn(form, "domain"), host);
  const url = "https://example.com/a";
  const slug = `chosen-${count}`;
  const byDefault = await browser.press(form, "Create link", { url, slug });
  t.is(textsOn(byDefault, ".copyable code")[0], `http://${host}/${slug}`);
  t.is(textsOn(byDefault, "h1")[0], `${host}/${slug}`);
  const own = await browser.press(form, "Create link", { url, slug, domain: "" });
  t.is(textsOn(own, ".copyable code")[0], `${service.url}/${slug}`);
  const again = await browser.press(form, "Create link", { url, slug });
  t.is(again.status, 409);
  isMarked(t, again, "slug", /already taken/);
  t.is(typedIn(again, "domain"), host);
  const { browser: members } = await browserOf(service, member);
  t.is(typedIn(await members.open(form.url), "domain"), host, "members choose it, too");
});

test("an edited link keeps its domain, or moves to another one", async (t) => {
  const { browser, openLinks, add, createLink } = await withDomains();
  const [from, to] = [await add(), await add({ default: true })];
  const { id } = await createLink({ domain: from.host });
  const saved = await browser.press(await openLinks(`/${id}/edit`), "Save link", { title: "Kept" });
  t.true(textsOn(saved, ".copyable code")[0]?.includes(from.host));
  const form = await openLinks(`/${id}/edit`);
  t.is(typedIn(form, "domain"), from.host);
  const moved = await browser.press(form, "Save link", { domain: to.host });
  t.true(textsOn(moved, ".copyable code")[0]?.includes(to.host));
});

test("a link whose domain another organization took over is found, keeps it in the form, and can be moved", async (t) => {
  const { browser, openLinks, add, createLink } = await withDomains();
  const { id: lostId, host } = await add();
  const { id } = await createLink({ domain: host });
  await knex("domains").where({ id: lostId }).update({ live_host: null });
  const listed = await openLinks(`?domain=${host}`);
  t.is(listed.html.querySelectorAll("tbody tr").length, 1);
  const form = await openLinks(`/${id}/edit`);
  t.is(typedIn(form, "domain"), host);
  t.regex((await browser.press(form, "Save link", { title: "Still there" })).text, /Link saved/);
  const moved = await browser.press(await openLinks(`/${id}/edit`), "Save link", { domain: "" });
  t.true(textsOn(moved, ".copyable code")[0]?.startsWith(`${service.url}/`));
});

test("the list of links, its export and its selection are of the chosen domain", async (t) => {
  const { browser, openLinks, add, createLink } = await withDomains();
  const { host } = await add();
  const [there, here] = [await createLink({ domain: host }), await createLink({})];
  const all = await openLinks();
  t.is(all.html.querySelectorAll("tbody tr").length, 2);
  const filter = all.html.querySelector("form[data-filter]");
  const found = await browser.submit(all, { domain: host }, filter);
  t.deepEqual(textsOn(found, ".short"), [`${host}/${there.slug}`]);
  t.is(typedIn(found, "domain"), host);
  const exported = await browser.open(
    service.url + found.html.querySelector("a[data-live]")?.attributes.href,
  );
  t.true(exported.text.includes(there.short_url) && !exported.text.includes(here.id));
  const archived = await browser.press(found, "Archive", { ids: there.id });
  t.regex(archived.text, /1 link archived/);
  t.regex(archived.url, new RegExp(`domain=${host}`));
});
