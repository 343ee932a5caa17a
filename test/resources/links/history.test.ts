import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { toPublicData } from "../../../resources/events/public-data.ts";
import { EVENT_DATA_SCHEMAS } from "../../../resources/events/schemas.ts";
import { type Api, apiAt, type LinkBody } from "../../harness/clients/api.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const { url, drop } = await createTestDatabase();
const service = await startTestService({
  WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
  DATABASE_URL: url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
const database = openDatabase(url);
const { knex } = database;
test.after.always(async () => {
  await database.close();
  await Promise.all([service.close(), receiver.close()]);
  await drop();
});

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
  const link = await api.createLink({ metadata: largest("€") });
  for (let n = 0; n < 10; n++) await patch(api, link, { title: `Title ${n}` });
  await patch(api, link, { metadata: largest("x") });
  await patch(api, link, { metadata: { campaign: "spring" }, url: "https://example.com/new" });
  const { body: last } = await patch(api, link, { title: null, tags: ["a"] });
  const updates = (await storedEvents(link.id)).filter(({ type }) => type === "link.updated");
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
  const link = await api.createLink({ metadata: largest("€") });
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
