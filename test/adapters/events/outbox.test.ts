import test, { type ExecutionContext } from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { Link } from "../../../resources/links/types.ts";
import { createTestStorage, linkFields } from "../../harness/database/storage.ts";

const MAX_BYTES = 1_000;
const storage = await createTestStorage();
const { knex } = storage.database;
const { links, members, organizations, accounts, suspensions, close } = openStorage(
  storage.url,
  storage.encryptionKey,
  { limitsOf: () => ({ links: 100, link_bytes: MAX_BYTES }) },
);
test.after.always(async () => {
  await close();
  await storage.close();
});

let count = 0;

async function createOrganization() {
  const owner = await accounts.create(`owner${++count}`, "hash", OPERATOR);
  if (!owner) throw new Error("the username is taken");
  const { organization } = await organizations.create(`Outbox ${count}`, "growth", OPERATOR, owner.id);
  const link = (await links.create(
    organization.id,
    OPERATOR,
    linkFields({ slug: `outbox-${count}` }),
  )) as Link;
  return { id: organization.id, link, owner };
}

type Organization = Awaited<ReturnType<typeof createOrganization>>;

/** Changes that record an event, and what they change. */
const CHANGES: Record<
  string,
  {
    change(organization: Organization): Promise<unknown>;
    state(organization: Organization): Promise<unknown>;
  }
> = {
  "an update of a link": {
    change: ({ id, link }) => links.update(id, link.id, { title: "New" }, OPERATOR),
    state: ({ id, link }) => links.find(id, link.id),
  },
  "a deletion of a link": {
    change: ({ id, link }) => links.remove(id, link.id, OPERATOR),
    state: ({ id, link }) => links.find(id, link.id),
  },
  "a new link": {
    change: ({ id }) => links.create(id, OPERATOR, linkFields({ slug: `outbox-${++count}` })),
    state: ({ id }) => links.list(id, {}, 10),
  },
  "a new member": {
    async change({ id }) {
      const user = await accounts.create(`member${++count}`, "hash", OPERATOR);
      await organizations.addMember(id, user?.id as string, "member", OPERATOR);
    },
    state: ({ id }) => members.list(id),
  },
  "a suspension": {
    change: ({ id }) => suspensions.suspend(id, null, OPERATOR),
    state: ({ id }) => suspensions.find(id),
  },
};

/** Keeps every event from being stored while `work` runs. */
async function withoutEvents(work: () => Promise<unknown>) {
  await knex.schema.renameTable("events", "hidden_events");
  try {
    await work();
  } finally {
    await knex.schema.renameTable("hidden_events", "events");
  }
}

for (const [name, { change, state }] of Object.entries(CHANGES)) {
  test.serial(`${name} is undone if its event can't be stored`, async (t: ExecutionContext) => {
    const organization = await createOrganization();
    const before = await state(organization);
    await withoutEvents(() => t.throwsAsync(change(organization)));
    t.deepEqual(await state(organization), before);
    await change(organization);
    t.notDeepEqual(await state(organization), before);
  });
}

test.serial("the event of a change that fails afterwards isn't stored", async (t) => {
  const { id, link } = await createOrganization();
  const typesOf = () => knex("events").where({ organization_id: id }).orderBy("id").pluck("type");
  const before = await typesOf();
  const metadata = { large: "x".repeat(MAX_BYTES) };
  // Checked after the event was recorded, because the quota depends on what the change adds.
  await t.throwsAsync(links.update(id, link.id, { metadata }, OPERATOR), { code: "ERR_QUOTA_EXCEEDED" });
  t.deepEqual(await typesOf(), before);
});
