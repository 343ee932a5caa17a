import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { toPublicData } from "../../../resources/events/public-data.ts";
import { EVENT_DATA_SCHEMAS } from "../../../resources/events/schemas.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { limitsOf, ORGANIZATIONS_PER_USER } from "../../../resources/plans.ts";
import { type Api, apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook } from "../../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const { url, drop } = await createTestDatabase();
const service = await startTestService({
  WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
  DATABASE_URL: url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});

const api = apiAt(service.url, await service.token(await service.createOrganization()));

test.after.always(async () => {
  await database.close();
  await Promise.all([service.close(), receiver.close()]);
  await drop();
});

const database = openDatabase(url);
const { knex } = database;

const largest = (fill: string) =>
  Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`${n}`.padEnd(40, "€"), fill.repeat(500)]));

async function newApi() {
  const app = await service.createOrganization();
  return { app, api: apiAt(service.url, await service.token(app)) };
}

const storedEvents = (id: string): Promise<{ type: string; audited: unknown; data: string }[]> =>
  knex("events").where({ subject: id }).orderBy("id").select("type", "audited", "data");
const bytesOf = (events: { data: string }[]) =>
  events.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0);
const patch = (api: Api, { id }: LinkBody, json: object) =>
  api.send<LinkBody>("PATCH", `/v1/links/${id}`, { json });

test("each update of a large link adds what changed to the audit log, and no copy of the link", async (t) => {
  const { app, api } = await newApi();
  const link = await api.createLink({ metadata: largest("é") });
  for (let n = 0; n < 10; n++) await patch(api, link, { title: `Title ${n}` });
  await patch(api, link, { metadata: largest("x") });
  await patch(api, link, { metadata: { campaign: "spring" }, url: "https://example.com/new" });
  const { body: last } = await patch(api, link, { title: null, tags: ["a"] });
  const updates = (await storedEvents(link.id)).filter(
    ({ type, audited }) => type === "link.updated" && audited,
  );
  t.is(updates.length, 13);
  t.true(bytesOf(updates) < 13 * 300, `${bytesOf(updates)} bytes`);
  const entries = (await service.storage.audit.list(app.id, { types: ["link.updated"] }, 100)).map(
    (entry) => ({ data: toPublicData(entry, service.url) }),
  );
  for (const { data } of entries) t.deepEqual(EVENT_DATA_SCHEMAS["link.updated"].parse(data), data as never);
  const { id, slug } = link;
  t.like(entries[0]?.data, { link: { id, slug, title: null, tags: ["a"] }, changed: ["title", "tags"] });
  t.like(entries[1]?.data, {
    link: { id, metadata: { campaign: "spring" }, url: "https://example.com/new" },
  });
  t.deepEqual(entries[2]?.data.changed, ["metadata"]);
  t.like((await api.get<LinkBody>(`/v1/links/${id}`)).body, last);
});

test("webhooks get all of an updated or deleted link, and repeat it after the next update", async (t) => {
  const { api } = await newApi();
  const webhook = await createWebhook(api, receiver.url("/history"), ["link.updated", "link.deleted"]);
  const link = await api.createLink({ metadata: largest("é") });
  const { body: first } = await patch(api, link, { title: "First" });
  const { body: second } = await patch(api, link, { title: "Second" });
  await api.send("DELETE", `/v1/links/${link.id}`);
  await receiver.waitFor("/history", 3);
  const received = receiver.received("/history").map((request) => verify(request, webhook.secret).data);
  const titles = new Map(received.map((data) => [data.title === "First" ? "First" : "Second", data]));
  t.deepEqual(titles.get("First"), first as never);
  t.deepEqual(titles.get("Second"), second as never);
  const audited = (await storedEvents(link.id)).filter(({ audited }) => audited);
  t.is(audited.length, 4);
  t.deepEqual(
    audited.map(({ type }) => type),
    ["link.created", "link.updated", "link.updated", "link.deleted"],
  );
});

type BulkBody = { results: { status: number; error?: { code: string; detail: string } }[] };
type OrganizationBody = { limits: Record<string, number>; usage: Record<string, number> };

/** Creates an organization with room for `room` links, as if it had the others. */
async function createNearlyFull(room: number) {
  const app = await service.createOrganization();
  const links = limitsOf("growth").links - room;
  await database.knex("organization_usage").where({ organization_id: app.id }).update({ links });
  return { app, api: apiAt(service.url, await service.token(app)) };
}

const json = { url: "https://example.com/" };

test("a link above the quota is refused with the name and the limit of the quota", async (t) => {
  const { api } = await createNearlyFull(1);
  t.is((await api.send("POST", "/v1/links", { json })).status, 201);
  const reply = await api.send("POST", "/v1/links", { json });
  isProblem(t, reply, { status: 403, code: "quota_exceeded" });
  t.regex(reply.body.detail, /1,000,000 links/);
  const upsert = await api.send("PUT", "/v1/links/by-external-id/new", { json });
  isProblem(t, upsert, { status: 403, code: "quota_exceeded" });
});

test("a bulk request creates as many links as the quota has room for", async (t) => {
  const { api } = await createNearlyFull(3);
  const links = Array.from({ length: 10 }, () => json);
  const { status, body } = await api.send<BulkBody>("POST", "/v1/links/bulk", { json: { links } });
  t.is(status, 200);
  t.is(body.results.filter((result) => result.status === 201).length, 3);
  const refused = body.results.filter((result) => result.status === 403);
  t.is(refused.length, 7);
  t.true(refused.every(({ error }) => error?.code === "quota_exceeded"));
});

test("concurrent requests of all kinds together stay within the quota", async (t) => {
  const { api } = await createNearlyFull(5);
  const replies = await Promise.all([
    ...Array.from({ length: 10 }, () => api.send("POST", "/v1/links", { json })),
    ...Array.from({ length: 3 }, () =>
      api.send("POST", "/v1/links/bulk", { json: { links: [json, json, json] } }),
    ),
    ...Array.from({ length: 5 }, (_, index) =>
      api.send("PUT", `/v1/links/by-external-id/${index}`, { json }),
    ),
  ]);
  t.true(replies.every(({ status }) => [200, 201, 403].includes(status)));
  const { body } = await api.get<OrganizationBody>("/v1/organization");
  t.is(body.usage.links, body.limits.links);
});

test("usage is counted with each change, without counting the links", async (t) => {
  const app = await service.createOrganization();
  const api = apiAt(service.url, await service.token(app));
  const { id } = await api.createLink({ title: "counted" });
  await api.createLink();
  const statements: string[] = [];
  const stop = service.onStatement((sql) => statements.push(sql));
  const { body } = await api.get<OrganizationBody>("/v1/organization");
  stop();
  t.false(statements.some((sql) => /count\(.*from .links./.test(sql)));
  t.is(body.usage.links, 2);
  t.true((body.usage.link_bytes as number) > 0);
  await api.send("DELETE", `/v1/links/${id}`);
  t.is((await api.get<OrganizationBody>("/v1/organization")).body.usage.links, 1);
});

test("a user cannot own more organizations than the quota", async (t) => {
  const user = await service.createUser([]);
  const { organizations } = service.storage;
  for (let count = 0; count < ORGANIZATIONS_PER_USER; count++) {
    await organizations.create(`Own ${count}`, "premium", OPERATOR, user.id);
  }
  const signedIn = await fetch(`${service.url}/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: user.username, password: user.password }),
  });
  const { access_token } = (await signedIn.json()) as { access_token: string };
  const reply = await fetch(`${service.url}/dashboard/organizations`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${access_token}` },
    body: JSON.stringify({ name: "One more" }),
  });
  t.is(reply.status, 403);
  t.like(await reply.json(), { code: "quota_exceeded" });
});

// Characters of every encoded size, in UTF-8 and in JSON.
const characters: [name: string, character: string][] = [
  ["letters", "x"],
  ["three-byte characters", "€"],
  ["characters escaped in JSON", "\u0001"],
  ["quotes", '"'],
];
for (const [name, character] of characters) {
  test(`a link of the maximum size, of ${name}, can be created, read, updated and deleted`, async (t) => {
    const filled = (length: number, n: number) => `${n}`.padEnd(length, "€");
    const keys = Array.from({ length: 50 }, (_, n) => filled(40, n));
    const fields = {
      url: `https://example.com/${"€".repeat(800)}`,
      title: "€".repeat(255),
      external_id: `${name} `.padEnd(255, "€"),
      tags: Array.from({ length: 20 }, (_, n) => filled(50, n)),
      metadata: Object.fromEntries(keys.map((key) => [key, character.repeat(500)])),
    };
    // In UTF-8, it may be larger than a request for one link.
    const created = await api.send<{ results: { link: LinkBody }[] }>("POST", "/v1/links/bulk", {
      json: { links: [fields] },
    });
    const link = created.body.results[0]?.link as LinkBody;
    t.like(link, fields);
    const path = `/v1/links/${link.id}`;
    t.deepEqual((await api.get(path)).body, link);
    const { body } = await api.send<object>("PATCH", path, { json: { title: "short" } });
    t.like(body, { ...fields, title: "short" });
    t.is((await api.send("DELETE", path)).status, 204);
  });
}

test("a page of large links is shorter than its limit, and the next pages have the rest", async (t) => {
  const own = apiAt(service.url, await service.token(await service.createOrganization()));
  const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`key${n}`, "x".repeat(500)]));
  const ids: string[] = [];
  for (let count = 0; count < 30; count++) ids.unshift((await own.createLink({ metadata })).id);
  type Page = { data: LinkBody[]; next_cursor: string | null };
  const found: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const path = `/v1/links?limit=100${cursor && `&cursor=${cursor}`}`;
    const page: Page = (await own.get<Page>(path)).body;
    t.true(page.data.length > 0 && page.data.length < 20, `${page.data.length} links`);
    found.push(...page.data.map((link) => link.id));
    cursor = page.next_cursor;
  }
  t.deepEqual(found, ids);
});
