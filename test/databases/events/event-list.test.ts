import { setImmediate as nextTurn } from "node:timers/promises";
import test from "ava";
import { createOutbox } from "../../../adapters/events/outbox.ts";
import { OPERATOR, type WebhookEvent } from "../../../resources/events/types.ts";
import { DAY_MS } from "../../harness/clock.ts";
import { atOnce, createTestStorage } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, either, database, knex, createLink } = storage;
const outbox = createOutbox(database, undefined);

const TYPES: WebhookEvent[] = ["link.created", "link.updated", "link.deleted", "client.secret_rotated"];
const createOrganization = () => storage.createOrganization("premium");
const LIMIT = 7;

async function readOn(organizationId: string, after: number, types = TYPES) {
  const end = await second.events.end(organizationId);
  const ids: string[] = [];
  let position = after;
  while (position < end) {
    const range = { after: position, end, since: Date.now() - DAY_MS, types, limit: LIMIT };
    const page = await second.events.read(organizationId, range);
    ids.push(...page.events.map(({ id }) => id));
    position = page.position;
  }
  return { ids, position };
}

// SQLite has one transaction at a time.
if (engine !== "sqlite")
  test("an event that commits after a later one is listed after it", async (t) => {
    const id = await createOrganization();
    await first.auditChain.append(id);
    const before = await readOn(id, 0);
    const [late, position] = await outbox.change(OPERATOR, async ({ trx, record }) => {
      const type = "client.secret_rotated" as const;
      const data = { client_id: "lgc_x", compromised: false, previous_expires_at: null };
      await record({ organizationId: id, type, subject: null, data });
      const own = (await trx("events").where({ organization_id: id, type }).first("id"))?.id as string;
      await createLink(id);
      await first.auditChain.append(id);
      const seen = await readOn(id, before.position);
      t.is(seen.ids.length, 1);
      t.true(own < (seen.ids[0] as string));
      return [own, seen.position];
    });
    await second.auditChain.append(id);
    t.deepEqual((await readOn(id, position)).ids, [late]);
  });

test("a reader gets every event once, in one order, while concurrent transactions commit", async (t) => {
  const id = await createOrganization();
  let isWriting = true;
  const write = async (index: number) => {
    const { links } = either(index);
    const link = await createLink(id, {}, either(index));
    await links.update(id, link.id, { title: "New" }, OPERATOR);
    await links.remove(id, link.id, OPERATOR);
  };
  const seen: string[] = [];
  let position = 0;
  const readNext = async () => {
    const part = await readOn(id, position);
    seen.push(...part.ids);
    position = part.position;
  };
  const whileWriting = async (work: () => Promise<unknown>) => {
    while (isWriting) {
      await work();
      await nextTurn();
    }
  };
  const writing = atOnce(40, write).finally(() => {
    isWriting = false;
  });
  const append = () => first.auditChain.append(id);
  await Promise.all([writing, whileWriting(append), whileWriting(readNext)]);
  await append();
  await readNext();
  t.is(seen.length, 120);
  t.is(new Set(seen).size, 120);
  t.deepEqual(seen, (await readOn(id, 0)).ids);
});

test("what an earlier version recorded of an updated link isn't listed", async (t) => {
  const id = await createOrganization();
  const link = await createLink(id);
  await first.links.update(id, link.id, { title: "One" }, OPERATOR);
  await knex("events").where({ organization_id: id }).update({ copy_id: null });
  await first.links.update(id, link.id, { title: "Two" }, OPERATOR);
  await first.auditChain.append(id);
  t.is((await readOn(id, 0, ["link.updated"])).ids.length, 1);
});

test("a page looks at a limited part of a long log, and reading on reaches the end", async (t) => {
  const id = await createOrganization();
  await first.auditChain.append(id);
  const end = await first.events.end(id);
  const [row] = await knex("events").where({ organization_id: id }).limit(1);
  if (!row) return t.fail();
  // Gaps stand for entries of other types.
  const far = { ...row, id: `${row.id.slice(0, -1)}!`, type: "link.created", seq: end + 12_000 };
  await knex("events").insert(far as never);
  await knex("audit_chains").where({ organization_id: id }).update({ seq: far.seq });
  const range = { after: 0, end: far.seq, since: Date.now() - DAY_MS, types: TYPES, limit: LIMIT };
  const page = await first.events.read(id, range);
  t.deepEqual(page, { events: [], position: 5000 });
  t.deepEqual(await readOn(id, 0), { ids: [far.id], position: far.seq });
});
