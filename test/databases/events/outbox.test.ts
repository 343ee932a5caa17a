import test from "ava";
import { createTestStorage, linkFields, OPERATOR } from "../../harness/database/storage.ts";

const MAX_BYTES = 1_000;
const storage = await createTestStorage({ limitsOf: () => ({ links: 100, link_bytes: MAX_BYTES }) });
const { knex } = storage;
const { links, suspensions } = storage.first;

let count = 0;

async function createOrganization() {
  const id = await storage.createOrganization();
  return { id, link: await storage.createLink(id) };
}

type Organization = Awaited<ReturnType<typeof createOrganization>>;

const CHANGES: Record<
  string,
  Record<"change" | "state", (organization: Organization) => Promise<unknown>>
> = {
  "an update of a link": {
    change: ({ id, link }) => links.update(id, link.id, { title: "New" }, OPERATOR),
    state: ({ id, link }) => links.find(id, link.id),
  },
  "a new link": {
    change: ({ id }) => links.create(id, OPERATOR, linkFields({ slug: `outbox-${++count}` })),
    state: ({ id }) => links.list(id, {}, 10),
  },
  "a suspension": {
    change: ({ id }) => suspensions.suspend(id, null, OPERATOR),
    state: ({ id }) => suspensions.find(id),
  },
};

for (const [name, { change, state }] of Object.entries(CHANGES))
  test.serial(`${name} is undone if its event can't be stored`, async (t) => {
    const organization = await createOrganization();
    const before = await state(organization);
    await knex.schema.renameTable("events", "hidden_events");
    await t.throwsAsync(change(organization));
    await knex.schema.renameTable("hidden_events", "events");
    t.deepEqual(await state(organization), before);
    await change(organization);
    t.notDeepEqual(await state(organization), before);
  });

test.serial("the event of a change that fails afterwards isn't stored", async (t) => {
  const { id, link } = await createOrganization();
  const typesOf = () => knex("events").where({ organization_id: id }).orderBy("id").pluck("type");
  const before = await typesOf();
  const metadata = { large: "x".repeat(MAX_BYTES) };
  // Checked after the event was recorded, because the quota depends on what the change adds.
  await t.throwsAsync(links.update(id, link.id, { metadata }, OPERATOR), { code: "ERR_QUOTA_EXCEEDED" });
  t.deepEqual(await typesOf(), before);
});
