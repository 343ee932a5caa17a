import test, { type ExecutionContext } from "ava";
import type { DomainView } from "../../../resources/domains/schema.ts";
import type { Plan } from "../../../resources/plans.ts";
import type { Api, PageBody } from "../../harness/clients/api.ts";
import { apiAt, isInvalid, isMissing, isProblem } from "../../harness/clients/api.ts";
import { advanceClock, DAY_MS, HOUR_MS } from "../../harness/clock.ts";
import { storeManyLinks } from "../../harness/database/many-links.ts";
import { atOnce, OPERATOR } from "../../harness/database/storage.ts";
import { startDomainService } from "../../harness/domains.ts";
import type { TestOrganization } from "../../harness/service.ts";

export const databases = "all";

const { service, knex, records, at, addDomain, create, checkRecords, startAnother } =
  await startDomainService();
const other = await startAnother();
const { storage } = service;
const own = new globalThis.URL(service.url).host;

const URL = "https://example.com/spring";

const apiOf = async (organization: TestOrganization, one: typeof other = service) =>
  apiAt(one.url, await one.token(organization));
async function newParty(plan?: Plan) {
  const organization = await service.createOrganization(undefined, plan);
  return { organization, api: await apiOf(organization) };
}
const verify = (api: Api, { id }: DomainView) => api.send<DomainView>("POST", `/v1/domains/${id}/verify`);
const read = async (api: Api, { id }: DomainView) => (await api.get<DomainView>(`/v1/domains/${id}`)).body;
const remove = (api: Api, { id }: DomainView, links?: string) =>
  api.send("DELETE", `/v1/domains/${id}${links ? `?links=${links}` : ""}`);
const isTaken = (t: ExecutionContext, reply: Awaited<ReturnType<typeof verify>>) =>
  isProblem(t, reply, { status: 409, code: "domain_taken" });
const locationAt = async (host: string, path: string) => (await at(host, path)).headers.get("location");

async function auditOf({ id: organizationId }: { id: string }, { id }: DomainView): Promise<string[]> {
  const entries = await storage.audit.list(organizationId, {}, 100);
  return entries.flatMap(({ subject, type }) => (subject === id ? type : [])).reverse();
}

async function noticesOf(users: { id: string }[]): Promise<string[][]> {
  const listed = await Promise.all(users.map(({ id }) => storage.notices.list(id)));
  return listed.map((notices) => notices.map(({ kind, data }) => `${kind} ${data.name}`));
}

test.serial("a host is another organization's only after its record is lost for 7 days", async (t) => {
  const host = "taken.example";
  const { organization, api } = await newParty();
  const roles = ["owner", "admin", "member"] as const;
  const users = await Promise.all(
    roles.map((role) => service.createUser([organization.id], undefined, role)),
  );
  const first = await addDomain(api, host, { default: true });
  const second = await addDomain(api, "second.taken.example");
  const [link, another] = [
    await api.createLink({ url: `${URL}?first`, slug: "spring" }),
    await api.createLink({ slug: "summer" }),
  ];
  const rival = await newParty();
  const claimed = await create(rival.api, host);
  t.not(claimed.dns.value, first.dns.value, "each organization has a record of its own");

  isProblem(t, await verify(rival.api, claimed), { status: 409, code: "domain_unproven" });
  records.set(first.dns.name, [first.dns.value, claimed.dns.value]);
  isTaken(t, await verify(rival.api, claimed));
  t.is((await read(api, first)).record_lost_at, null);

  // The first one's record is gone, which the other's check finds.
  records.set(first.dns.name, [claimed.dns.value]);
  isTaken(t, await verify(rival.api, claimed));
  const lost = await read(api, first);
  t.true(lost.verified);
  t.true(Math.abs(Date.parse(lost.record_lost_at as string) - Date.now()) < HOUR_MS);
  t.is(await locationAt(host, "/spring"), `${URL}?first`, "its links still redirect");
  t.is((await api.createLink()).domain, host, "and are created");
  const history = ["domain.created", "domain.verified", "domain.record_lost"];
  t.deepEqual(await auditOf(organization, first), history);
  t.deepEqual(await noticesOf(users), [...Array(2).fill([`domain_record_lost ${host}`]), []]);

  advanceClock(7 * DAY_MS - HOUR_MS);
  const [late, lateRival] = [await apiOf(organization), await apiOf(rival.organization)];
  isTaken(t, await verify(lateRival, claimed));
  isProblem(t, await verify(late, first), { status: 409, code: "domain_unproven" });
  t.is((await read(late, first)).record_lost_at, lost.record_lost_at, "it is lost since then");
  advanceClock(HOUR_MS + 60_000);
  const [api2, rival2] = [await apiOf(organization), await apiOf(rival.organization)];
  const won = await verify(rival2, claimed);
  t.is(won.status, 200, won.text);
  t.like(won.body, { verified: true, record_lost_at: null });

  await rival2.createLink({ url: `${URL}?second`, slug: "spring", domain: host });
  t.is(await locationAt(host, "/spring"), `${URL}?second`);
  t.is((await at(host, "/summer")).status, 404, "the former links don't resolve there");
  t.like(await read(api2, first), { verified: false, record_lost_at: null, default: false });
  const former = { json: { url: URL, domain: host } };
  isInvalid(t, await api2.send("POST", "/v1/links", former), "domain");
  t.is((await api2.createLink()).domain, own, "nor is it the default any more");
  t.deepEqual(await auditOf(organization, first), [...history, "domain.taken_over"]);
  t.deepEqual(await auditOf(rival.organization, claimed), ["domain.created", "domain.verified"]);
  const notices = [`domain_taken_over ${host}`, `domain_record_lost ${host}`];
  t.deepEqual(await noticesOf(users), [notices, notices, []]);

  // What the first one can do with its links.
  const found = await api2.get<PageBody>(`/v1/links?slug=summer&domain=${host}`);
  t.is(found.body.data.map(({ id }) => id).join(), another.id);
  const move = (id: string, domain: string | null) =>
    api2.send("PATCH", `/v1/links/${id}`, { json: { domain } });
  t.is((await move(link.id, second.host)).status, 200);
  t.is(await locationAt(second.host, "/spring"), `${URL}?first`);
  t.is((await move(another.id, null)).status, 200);
  t.is((await at(own, "/summer")).status, 302);
  isProblem(t, await remove(api2, first), { status: 409, code: "domain_in_use" });
  t.is((await remove(api2, first, "delete")).status, 204);
  t.is(await locationAt(host, "/spring"), `${URL}?second`, "the host is the other's");
});

test.serial(
  "the daily check marks a domain that lost its record, which keeps redirecting, and one that has it again",
  async (t) => {
    const host = "daily.example";
    const { organization, api } = await newParty();
    const domain = await addDomain(api, host);
    await api.createLink({ url: URL, domain: host, slug: "spring" });
    const local = await create(api, "go.localhost:8123");
    t.true(local.verified, "a host of this machine needs no record");
    const { name, value } = domain.dns;
    const stateAfter = async (answer: string[] | "SERVFAIL", later = DAY_MS + 1000) => {
      records.set(name, answer);
      advanceClock(later);
      await checkRecords();
      const { verified, record_lost_at } = await read(await apiOf(organization), domain);
      t.is(await locationAt(host, "/spring"), URL, `${answer}`);
      return `${verified} ${record_lost_at !== null}`;
    };
    const [kept, lost] = ["true false", "true true"];
    t.is(await stateAfter([value]), kept);
    t.is(await stateAfter("SERVFAIL"), kept, "no answer says nothing");
    t.is(await stateAfter(["v=spf1 -all"], 23 * HOUR_MS), kept, "it isn't due");
    t.is(await stateAfter(["v=spf1 -all"], HOUR_MS + 2000), lost);
    t.is(await stateAfter([], 90 * DAY_MS), lost, "no one else proves its host");
    t.is(await stateAfter("SERVFAIL"), lost);
    const unanswered = await verify(await apiOf(organization), domain);
    isProblem(t, unanswered, { status: 503, code: "temporarily_unavailable" });
    t.is(await stateAfter(["v=spf1 -all", ` ${value} `]), kept);
    t.deepEqual(await auditOf(organization, domain), [
      ...["domain.created", "domain.verified", "domain.record_lost", "domain.verified"],
    ]);
    const [row] = await knex("domains").where({ id: local.id });
    t.is(row?.lost_at, null);
  },
);

test.serial("every domain that is due is checked, whichever of several processes takes it", async (t) => {
  const { organization, api } = await newParty("premium");
  const hosts = Array.from({ length: 45 }, (_, number) => `due${number}.example`);
  for (const host of hosts) await addDomain(api, host);
  for (const host of hosts) records.set(`_linkgate.${host}`, []);
  advanceClock(DAY_MS + 1000);
  await Promise.all([checkRecords(), checkRecords(other)]);
  const lost = await knex("domains").where({ organization_id: organization.id }).whereNotNull("lost_at");
  t.is(lost.length, hosts.length);
});

const valuesOf = (claims: DomainView[]) => claims.map(({ dns }) => dns.value);

/** Verifies the domain of each organization at the same time, each at another process. */
async function verifyAll(parties: { organization: TestOrganization }[], claims: DomainView[]) {
  const asking = parties.map(({ organization }, index) => apiOf(organization, [service, other][index]));
  const apis = await Promise.all(asking);
  return Promise.all(apis.map((api, index) => verify(api, claims[index] as DomainView)));
}

test.serial(
  "when two organizations prove a host at the same time, one gets it, also from a third",
  async (t) => {
    for (let round = 0; round < 5; round++) {
      const host = `race${round}.example`;
      const first = round > 2 ? await newParty() : undefined;
      const domain = first && (await addDomain(first.api, host));
      const parties = await atOnce(2, () => newParty());
      const claims = await Promise.all(parties.map(({ api }) => create(api, host)));
      records.set(`_linkgate.${host}`, valuesOf(claims));
      if (domain) {
        isTaken(t, await verify((parties[0] as (typeof parties)[0]).api, claims[0] as DomainView));
        advanceClock(7 * DAY_MS + 1000);
      }
      const replies = await verifyAll(parties, claims);
      t.deepEqual(replies.map(({ status }) => status).sort(), [200, 409], replies[0]?.text);
      isTaken(t, replies.find(({ status }) => status !== 200) as (typeof replies)[0]);
      t.is((await knex("domains").where({ live_host: host })).length, 1);
      if (!domain) continue;
      const ends = (await auditOf(first.organization, domain)).filter((type) => type === "domain.taken_over");
      t.is(ends.length, 1);
    }
  },
);

test("a deleted organization's host serves nothing, and is another's without delay", async (t) => {
  const { organization, api } = await newParty();
  const { host, dns } = await addDomain(api, "deleted.example", { root_redirect_url: URL });
  await api.createLink({ url: URL, domain: host, slug: "spring" });
  await storage.organizations.remove(organization.id, OPERATOR);
  for (const path of ["/", "/spring", "/spring+"]) t.is((await at(host, path)).status, 421, path);
  const next = await newParty();
  await addDomain(next.api, host);
  t.is((await at(host, "/spring")).status, 404);
  t.true((records.get(dns.name) ?? []).includes(dns.value), "although the former record is still there");
});

test("after a downgrade, domains keep redirecting, and none is added", async (t) => {
  const { organization, api } = await newParty("premium");
  const hosts = [1, 2, 3, 4, 5, 6].map((number) => `plan${number}.example`);
  for (const host of hosts) await addDomain(api, host);
  await api.createLink({ url: URL, domain: "plan6.example", slug: "spring" });
  const json = { host: "plan7.example" };
  await storage.organizations.setPlan(organization.id, "growth", OPERATOR);
  isProblem(t, await api.send("POST", "/v1/domains", { json }), { status: 409, code: "domain_limit" });
  await storage.organizations.setPlan(organization.id, "free", OPERATOR);
  isProblem(t, await api.send("POST", "/v1/domains", { json }), { status: 403, code: "plan_required" });
  t.is(await locationAt("plan6.example", "/spring"), URL);
  await storage.organizations.setPlan(organization.id, "premium", OPERATOR);
  t.is((await api.send("POST", "/v1/domains", { json })).status, 201);
});

test("concurrent requests on two services add no more domains than the plan allows", async (t) => {
  const { organization, api } = await newParty("growth");
  const there = await apiOf(organization, other);
  const replies = await atOnce(10, (index) =>
    (index % 2 ? api : there).send("POST", "/v1/domains", { json: { host: `limit${index}.example` } }),
  );
  t.is(replies.filter(({ status }) => status === 201).length, 5);
  const refused = replies.filter(({ status }) => status !== 201);
  for (const reply of refused) isProblem(t, reply, { status: 409, code: "domain_limit" });
  t.is((await api.get<{ data: unknown[] }>("/v1/domains")).body.data.length, 5);
});

test("concurrent requests make one domain the default, and add a host once", async (t) => {
  const { organization, api } = await newParty();
  const there = await apiOf(organization, other);
  const added = await Promise.all([1, 2, 3, 4].map((number) => create(api, `default${number}.example`)));
  const json = { default: true };
  await Promise.all(
    added.map(({ id }, index) => (index % 2 ? api : there).send("PATCH", `/v1/domains/${id}`, { json })),
  );
  const { data } = (await api.get<{ data: DomainView[] }>("/v1/domains")).body;
  t.is(data.filter((domain) => domain.default).length, 1);
  const same = { json: { host: "once.example" } };
  const replies = await atOnce(4, (index) => (index % 2 ? api : there).send("POST", "/v1/domains", same));
  const [created, ...others] = replies.sort((one, another) => one.status - another.status);
  t.is(created?.status, 201);
  for (const reply of others) t.true(["domain_exists", "domain_limit"].includes(reply.body.code), reply.text);
});

test("no link is left on a domain that is deleted while links are created and changed", async (t) => {
  const { organization, api } = await newParty();
  const there = await apiOf(organization, other);
  for (let round = 0; round < 8; round++) {
    const domain = await addDomain(api, `leaving${round}.example`);
    const moving = await api.createLink();
    const json = { url: URL, domain: domain.host };
    const [removed, changed, ...created] = await Promise.all([
      remove(there, domain),
      api.send("PATCH", `/v1/links/${moving.id}`, { json: { domain: domain.host } }),
      ...Array.from({ length: 4 }, (_, index) =>
        (index % 2 ? api : there).send("POST", "/v1/links", { json }),
      ),
    ]);
    const left = await knex("links").where({ domain: domain.host }).whereNull("deleted_at");
    const statuses = [removed, changed, ...created].map(({ status }) => status).join();
    if (removed.status === 204) t.is(left.length, 0, statuses);
    else isProblem(t, removed, { status: 409, code: "domain_in_use" });
    for (const reply of created) if (reply.status !== 201) isInvalid(t, reply, "domain");
    if (removed.status === 409) t.is((await remove(api, domain, "delete")).status, 204);
  }
});

test("links that can't be moved keep their domain, and the others are moved", async (t) => {
  const { api } = await newParty();
  const domain = await addDomain(api, "moving.example");
  await api.createLink({ domain: own, slug: "moving-taken" });
  const slugs = ["moving-taken", "dashboard", "moving-free", "v1/spring", "moving/free"];
  const links = await Promise.all(slugs.map((slug) => api.createLink({ domain: domain.host, slug })));
  const inUse = { status: 409, code: "domain_in_use" };
  isProblem(t, await remove(api, domain), inUse);
  const reply = await remove(api, domain, "move");
  isProblem(t, reply, inUse);
  t.regex(reply.body.detail, /^3 of 5 links/);
  for (const slug of ["moving-taken", "dashboard", "v1/spring"])
    t.true(reply.body.detail.includes(slug), slug);
  const now = await Promise.all(links.map(async ({ id }) => (await api.get(`/v1/links/${id}`)).body.domain));
  t.deepEqual(now, [domain.host, domain.host, own, domain.host, own]);
  t.is((await at(domain.host, "/dashboard")).status, 302, "it works on");
  const json = { domain: null };
  isInvalid(t, await api.send("PATCH", `/v1/links/${links[1]?.id}`, { json }), "slug");
  t.is((await at(own, "/moving-free")).status, 302);
  t.is((await remove(api, domain, "delete")).status, 204);
  t.deepEqual((await api.get<PageBody>(`/v1/links?domain=${domain.host}`)).body.data, []);
});

test("more than 1,000 links are neither moved nor deleted with their domain", async (t) => {
  const { organization, api } = await newParty();
  const domain = await addDomain(api, "many.example");
  await storeManyLinks(knex, organization.id, 1001, (number) => ({ slug: `many-${number}` }));
  await knex("links").where({ organization_id: organization.id }).update({ domain: domain.host });
  for (const how of ["move", "delete"]) {
    const reply = await remove(api, domain, how);
    isProblem(t, reply, { status: 409, code: "domain_in_use" });
    t.regex(reply.body.detail, /more than 1,000 links/);
  }
  const left = await knex("links").where({ domain: domain.host }).whereNull("deleted_at").select("id");
  t.is(left.length, 1001);
  isInvalid(t, await remove(api, domain, "keep"), "links");
});

test("a change and a deletion of another version are refused", async (t) => {
  const { api } = await newParty();
  const domain = await addDomain(api, "version.example");
  const path = `/v1/domains/${domain.id}`;
  const tag = (await api.get<DomainView>(path)).headers.get("etag") as string;
  const change = (root_redirect_url: string | null, headers: Record<string, string>) =>
    api.send<DomainView>("PATCH", path, { json: { root_redirect_url }, headers });
  const changed = await change(URL, { "if-match": tag });
  t.is(changed.status, 200);
  const next = changed.headers.get("etag") as string;
  t.not(next, tag);
  const stale = { status: 412, code: "precondition_failed" };
  isProblem(t, await change(null, { "if-match": tag }), stale);
  isProblem(t, await api.send("DELETE", path, { headers: { "if-match": tag } }), stale);
  t.is((await read(api, domain)).root_redirect_url, URL);
  t.is((await change(URL, {})).headers.get("etag"), next, "what changes nothing has the same version");
  t.is((await api.send("GET", path, { headers: { "if-none-match": next } })).status, 304);
  t.is((await api.send("DELETE", path, { headers: { "if-match": next } })).status, 204);
  isMissing(t, await api.send("GET", path));
});

test("no organization sees, changes, verifies or deletes a domain of another one", async (t) => {
  const { api } = await newParty();
  const domain = await addDomain(api, "foreign.example");
  const { api: stranger } = await newParty();
  const path = `/v1/domains/${domain.id}`;
  isMissing(t, await stranger.send("GET", path));
  isMissing(t, await stranger.send("PATCH", path, { json: { root_redirect_url: URL } }));
  isMissing(t, await stranger.send("POST", `${path}/verify`));
  isMissing(t, await stranger.send("DELETE", `${path}?links=delete`));
  t.deepEqual((await stranger.get<{ data: unknown[] }>("/v1/domains")).body.data, []);
  const json = { url: URL, domain: domain.host };
  isInvalid(t, await stranger.send("POST", "/v1/links", { json }), "domain");
  t.deepEqual((await stranger.get<PageBody>(`/v1/links?domain=${domain.host}`)).body.data, []);
});
