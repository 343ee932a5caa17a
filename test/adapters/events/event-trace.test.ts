import { AsyncLocalStorage } from "node:async_hooks";
import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { type EventType, OPERATOR } from "../../../resources/events/types.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { atOnce, clickAt, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { markVerified, uniqueUrl, until } from "../../harness/webhooks.ts";

export const databases = "all";

const storage = await createTestStorage();
const { database } = storage;
const requests = new AsyncLocalStorage<string>();
const traced = openStorage(storage.url, storage.encryptionKey, {
  currentTraceparent: () => requests.getStore(),
});
const untraced = storage.first;
test.after.always(async () => {
  await traced.close();
  await storage.close();
});

const traceparent = (number: number) => `00-${"0af7651916cd43dd8448eb211c80319c"}-${idOf(number)}-01`;
const idOf = (number: number) => number.toString(16).padStart(16, "0");
let count = 0;

/** Creates an organization with a verified webhook for these events. */
async function createSubscriber() {
  const { organization } = await untraced.organizations.create(`traced-${++count}`, "growth", OPERATOR);
  const events = ["link.created", "link.updated", "link.clicked"] as const;
  const fields = { url: uniqueUrl(), events: [...events], enabled: true };
  const created = await untraced.webhooks.create(organization.id, OPERATOR, fields, "whsec_c2VjcmV0");
  if (!("id" in created)) throw new Error("no webhook was created");
  await markVerified(database, [created.id]);
  return organization.id;
}

const eventsOf = (organization_id: string, type: EventType) =>
  database.knex("events").where({ organization_id, type }).orderBy("id");

const clicksOf = (organizationId: string) =>
  until(async () => {
    const events = await eventsOf(organizationId, "link.clicked");
    return events.length > 0 ? events : undefined;
  });

test("each event has the trace of the request that caused it, also among concurrent ones", async (t) => {
  const organizationId = await createSubscriber();
  await atOnce(20, (index) =>
    requests.run(traceparent(index), () =>
      traced.links.create(organizationId, OPERATOR, linkFields({ slug: `concurrent-${index}` })),
    ),
  );
  const events = await eventsOf(organizationId, "link.created");
  t.is(events.length, 20);
  for (const { data, traceparent: stored } of events) {
    const { slug } = JSON.parse(data).link;
    t.is(stored, traceparent(Number(slug.split("-")[1])));
  }
});

test("a leased delivery has the trace of its event", async (t) => {
  const organizationId = await createSubscriber();
  const { id } = await requests.run(traceparent(1), async () => {
    const link = await traced.links.create(organizationId, OPERATOR, linkFields({ slug: "leased" }));
    if (!("id" in link)) throw new Error("no link was created");
    return link;
  });
  const limits = { max: 100, perWebhook: 100, perHost: 100, perOrganization: 100 };
  const leased = await untraced.deliveries.lease({
    ...limits,
    failing: limits,
    inFlight: new Map(),
    limitsOf,
    slow: new Set(),
  });
  const delivery = leased.find(
    ({ event }) => event.data.link && (event.data.link as { id: string }).id === id,
  );
  t.is(delivery?.traceparent, traceparent(1));
});

test("of an update, only the copy for webhooks has a trace, and other events have none", async (t) => {
  const organizationId = await createSubscriber();
  await requests.run(traceparent(2), async () => {
    const link = await traced.links.create(organizationId, OPERATOR, linkFields({ slug: "updated" }));
    if (!("id" in link)) throw new Error("no link was created");
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
});

test("the event of one click has its trace, and that of several clicks has none", async (t) => {
  const single = await createSubscriber();
  const several = await createSubscriber();
  const click = async (organizationId: string, slug: string, times: number) => {
    await untraced.links.create(organizationId, OPERATOR, linkFields({ slug }));
    const link = await traced.links.resolve(slug);
    if (!link) throw new Error("no link");
    // Concurrently, so all are part of one event.
    await atOnce(times, (index) =>
      requests.run(traceparent(index + 3), () => traced.links.click(link, clickAt(Date.now()))),
    );
  };
  await Promise.all([click(single, "once", 1), click(several, "often", 5)]);
  const [one] = await clicksOf(single);
  t.is(one?.traceparent, traceparent(3));
  const [merged] = await clicksOf(several);
  t.is(JSON.parse(merged?.data ?? "{}").clicks, 5);
  t.is(merged?.traceparent, null);
});

test("a trace is not part of the audit log or of its hashes", async (t) => {
  const organizationId = await createSubscriber();
  await requests.run(traceparent(9), () =>
    traced.links.create(organizationId, OPERATOR, linkFields({ slug: "audited" })),
  );
  const before = await traced.audit.head(organizationId);
  const entries = await traced.audit.list(organizationId, {}, 100);
  t.false(JSON.stringify(entries.map((entry) => ({ ...entry, names: [] }))).includes(traceparent(9)));
  await database.knex("events").where({ organization_id: organizationId }).update({ traceparent: null });
  t.deepEqual(await traced.audit.head(organizationId), before);
  const [log] = await traced.verifyAuditLogs(organizationId);
  t.true(log?.ok);
});

test("unless requests are traced, no statement writes a trace", async (t) => {
  const organizationId = await createSubscriber();
  const statements: string[] = [];
  const stop = untraced.onStatement((sql) => void statements.push(sql));
  const link = await untraced.links.create(organizationId, OPERATOR, linkFields({ slug: "untraced" }));
  if (!("id" in link)) throw new Error("no link was created");
  await untraced.links.update(organizationId, link.id, { title: "A title" }, OPERATOR);
  stop();
  t.true(
    statements.some((sql) => /insert into .events./.test(sql)),
    "the test can tell",
  );
  t.deepEqual(
    statements.filter((sql) => sql.includes("traceparent") && !sql.startsWith("select")),
    [],
  );
  for (const { traceparent: stored } of await eventsOf(organizationId, "link.created")) t.is(stored, null);
});
