import { AsyncLocalStorage } from "node:async_hooks";
import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { type EventType, OPERATOR } from "../../../resources/events/types.ts";
import { atOnce, clickAt, createTestStorage } from "../../harness/database/storage.ts";
import { LEASE_LIMITS, markVerified, until } from "../../harness/webhooks.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first: untraced, database, knex, createLink } = storage;
const requests = new AsyncLocalStorage<string>();
const traced = openStorage(storage.url, storage.encryptionKey, {
  currentTraceparent: () => requests.getStore(),
});
test.after.always(() => traced.close());

const traceparent = (number: number) => `00-${"0af7651916cd43dd8448eb211c80319c"}-${idOf(number)}-01`;
const idOf = (number: number) => number.toString(16).padStart(16, "0");

async function createSubscriber() {
  const id = await storage.createOrganization();
  const events = ["link.created" as const, "link.updated" as const, "link.clicked" as const];
  await markVerified(database, [(await storage.createWebhook(id, { events })).id]);
  return id;
}

const eventsOf = (organization_id: string, type: EventType) =>
  knex("events").where({ organization_id, type }).orderBy("id");
const clicksOf = (id: string) => until(async () => (await eventsOf(id, "link.clicked"))[0]);

test("each event and its delivery have the trace of the request that caused it, also among concurrent ones", async (t) => {
  const organizationId = await createSubscriber();
  const create = (index: number) => createLink(organizationId, { slug: `concurrent-${index}` }, traced);
  await atOnce(20, (index) => requests.run(traceparent(index), () => create(index)));
  const events = await eventsOf(organizationId, "link.created");
  t.is(events.length, 20);
  for (const { data, traceparent: stored } of events) {
    const { slug } = JSON.parse(data).link;
    t.is(stored, traceparent(Number(slug.split("-")[1])));
  }
  const traceOf = new Map(events.map((event) => [event.id, event.traceparent]));
  const leased = await untraced.deliveries.lease(LEASE_LIMITS);
  const own = leased.filter((delivery) => delivery.organizationId === organizationId);
  t.is(own.length, 20);
  for (const { event, traceparent } of own) t.is(traceparent, traceOf.get(event.id) as string);
});

test("the audit log and its hashes have no trace: of an update, only the copy for webhooks does", async (t) => {
  const organizationId = await createSubscriber();
  await requests.run(traceparent(2), async () => {
    const link = await createLink(organizationId, {}, traced);
    await traced.links.update(organizationId, link.id, { title: "A title" }, OPERATOR);
    await traced.organizationSettings.change(organizationId, { name: "renamed" }, OPERATOR);
  });
  const updates = await eventsOf(organizationId, "link.updated");
  t.deepEqual(updates.map(({ audited, traceparent: stored }) => [Boolean(audited), stored]).sort(), [
    [false, traceparent(2)],
    [true, null],
  ]);
  const [renamed] = await eventsOf(organizationId, "organization.renamed");
  t.is(renamed?.traceparent, null);

  const before = await traced.audit.head(organizationId);
  const entries = await traced.audit.list(organizationId, {}, 100);
  t.false(JSON.stringify(entries.map((entry) => ({ ...entry, names: [] }))).includes(traceparent(2)));
  await knex("events").where({ organization_id: organizationId }).update({ traceparent: null });
  t.deepEqual(await traced.audit.head(organizationId), before);
  t.like(await traced.verifyAuditLogs(organizationId), [{ ok: true }]);
});

test("the event of one click has its trace, and that of several clicks has none", async (t) => {
  const single = await createSubscriber();
  const several = await createSubscriber();
  const click = async (organizationId: string, slug: string, times: number) => {
    await createLink(organizationId, { slug });
    const link = await traced.links.resolve(slug);
    if (!link) throw new Error("no link");
    // Concurrently, so all are part of one event.
    await atOnce(times, (index) =>
      requests.run(traceparent(index + 3), () => traced.links.click(link, clickAt(Date.now()))),
    );
  };
  await Promise.all([click(single, "once", 1), click(several, "often", 5)]);
  t.is((await clicksOf(single)).traceparent, traceparent(3));
  const merged = await clicksOf(several);
  t.deepEqual([JSON.parse(merged.data).clicks, merged.traceparent], [5, null]);
});
