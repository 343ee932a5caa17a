import test from "ava";
import { toPublicData } from "../../../resources/events/public-data.ts";
import { EVENT_DATA_SCHEMAS } from "../../../resources/events/schemas.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { limitsOf, ORGANIZATIONS_PER_USER } from "../../../resources/plans.ts";
import { apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { startServiceWithDatabase } from "../../harness/database/service.ts";

export const databases = "all";

const { service, knex } = await startServiceWithDatabase();

const largest = (fill: string) =>
  Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`${n}`.padEnd(40, "€"), fill.repeat(500)]));

async function newOrganization() {
  const app = await service.createOrganization();
  return { app, api: apiAt(service.url, await service.token(app)) };
}

test("each update of a large link adds what changed to the audit log, and no copy of the link", async (t) => {
  const { app, api } = await newOrganization();
  const { id, slug } = await api.createLink({ metadata: largest("é") });
  const update = (json: object) => api.send<LinkBody>("PATCH", `/v1/links/${id}`, { json });
  for (let n = 0; n < 10; n++) await update({ title: `Title ${n}` });
  await update({ metadata: largest("x") });
  await update({ metadata: { campaign: "spring" }, url: "https://example.com/new" });
  const { body: last } = await update({ title: null, tags: ["a"] });
  const events = await knex("events").where({ subject: id, type: "link.updated" });
  const sizes = events.filter(({ audited }) => audited).map(({ data }) => Buffer.byteLength(data));
  t.is(sizes.length, 13);
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  t.true(bytes < 13 * 300, `${bytes} bytes`);
  const entries = await service.storage.audit.list(app.id, { types: ["link.updated"] }, 100);
  const shown = entries.map((entry) => toPublicData(entry, service.url));
  for (const data of shown) t.deepEqual(EVENT_DATA_SCHEMAS["link.updated"].parse(data), data as never);
  t.like(shown[0], { link: { id, slug, title: null, tags: ["a"] }, changed: ["title", "tags"] });
  t.like(shown[1], { link: { id, metadata: { campaign: "spring" }, url: "https://example.com/new" } });
  t.deepEqual(shown[2]?.changed, ["metadata"]);
  t.like((await api.get<LinkBody>(`/v1/links/${id}`)).body, last);
});

const json = { url: "https://example.com/" };

test("a link above the quota is refused with the name and the limit of the quota", async (t) => {
  const { app, api } = await newOrganization();
  // As if it had all others.
  const links = limitsOf("growth").links - 1;
  await knex("organization_usage").where({ organization_id: app.id }).update({ links });
  t.is((await api.send("POST", "/v1/links", { json })).status, 201);
  const reply = await api.send("POST", "/v1/links", { json });
  isProblem(t, reply, { status: 403, code: "quota_exceeded" });
  t.regex(reply.body.detail, /1,000,000 links/);
  const upsert = await api.send("PUT", "/v1/links/by-external-id/new", { json });
  isProblem(t, upsert, { status: 403, code: "quota_exceeded" });
  const bulk = await api.send<{ results: { error?: { code: string } }[] }>("POST", "/v1/links/bulk", {
    json: { links: [json] },
  });
  t.is(bulk.body.results[0]?.error?.code, "quota_exceeded");
});

test("a user cannot own more organizations than the quota", async (t) => {
  const { id, api } = await createColleague(service, undefined);
  const { organizations } = service.storage;
  for (let count = 0; count < ORGANIZATIONS_PER_USER; count++)
    await organizations.create(`Own ${count}`, "premium", OPERATOR, id);
  const reply = await api.send("POST", "/dashboard/organizations", { json: { name: "One more" } });
  isProblem(t, reply, { status: 403, code: "quota_exceeded" });
});

test("a link of the maximum size, in characters of any encoded size, is created, read, updated and deleted", async (t) => {
  const { api } = await newOrganization();
  for (const character of ["x", "€", "\u0001", '"']) {
    const filled = (length: number, n: number) => `${n}`.padEnd(length, "€");
    const keys = Array.from({ length: 50 }, (_, n) => filled(40, n));
    const fields = {
      url: `https://example.com/${"€".repeat(800)}`,
      title: "€".repeat(255),
      external_id: `${character.charCodeAt(0)} `.padEnd(255, "€"),
      tags: Array.from({ length: 20 }, (_, n) => filled(50, n)),
      metadata: Object.fromEntries(keys.map((key) => [key, character.repeat(500)])),
      card: {
        title: "€".repeat(255),
        description: "🎉".repeat(500),
        image_url: `https://example.com/${"€".repeat(800)}`,
      },
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
  }
});
