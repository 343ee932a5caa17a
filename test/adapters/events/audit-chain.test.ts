import test from "ava";
import type { EventRow } from "../../../adapters/database/tables.ts";
import type { ChainReport } from "../../../adapters/events/verify-chain.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { atOnce, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
const { knex } = database;
test.after.always(() => storage.close());

let slugs = 0;

/** Creates an organization with `count` links, which leaves `count` + 2 entries. */
async function createLog(count = 3): Promise<string> {
  const { organization } = await first.organizations.create("Log", "growth", OPERATOR);
  for (let link = 0; link < count; link++) await createLink(organization.id);
  return organization.id;
}

function createLink(organizationId: string, store = first) {
  const fields = linkFields({ slug: `audit-chain-${++slugs}`, title: "“Ünïcode” \\ 🚀" });
  return store.links.create(organizationId, OPERATOR, fields);
}

const verify = async (id: string): Promise<ChainReport> =>
  (await first.verifyAuditLogs(id))[0] as ChainReport;
const rowsOf = (id: string) => knex("events").where({ organization_id: id, audited: true }).orderBy("seq");
const entry = (id: string, seq: number) => knex("events").where({ organization_id: id, seq });

/** Inserts a row like that of an entry. */
async function insertCopy(id: string, seq: number, changes: Partial<EventRow>) {
  const row = (await entry(id, seq).first()) as EventRow & { unchained?: unknown };
  delete row.unchained; // generated, only on MariaDB
  await knex("events").insert({ ...row, id: `evt_${id.slice(4)}`, ...changes });
}

test.serial("verification covers the entries that are not chained yet, and every log", async (t) => {
  const id = await createLog();
  const unchained = () => knex("events").where({ organization_id: id, audited: true, seq: null });
  // On SQLite, the entries of new links are chained when they are written, after those that waited.
  t.is((await unchained()).length, engine === "sqlite" ? 0 : 5);
  await first.auditChain.appendAll(); // holds the lease from now on
  await first.organizations.setPlan(id, "premium", OPERATOR);
  t.is((await unchained()).length, 1);
  const reports = await second.verifyAuditLogs();
  const report = reports.find(({ organization_id }) => organization_id === id);
  t.like(report, { ok: true, last_seq: 6 });
  t.is((await unchained()).length, 0);
});

test("links that are not created leave no entry and no gap", async (t) => {
  const id = await createLog(0);
  const results = await atOnce(90, async (index) => {
    const fields = linkFields({ slug: `audit-chain-taken-${index % 30}` });
    return (index % 2 ? first : second).links.create(id, OPERATOR, fields);
  });
  t.is(results.filter((result) => "id" in result).length, 30);
  t.like(await verify(id), { ok: true, last_seq: 32 });
  t.is((await rowsOf(id)).length, 32);
});

test("links are chained after the entries before them, also if many wait", async (t) => {
  const id = await createLog(0);
  for (let change = 0; change < 60; change++)
    await first.organizations.setPlan(id, change % 2 ? "growth" : "premium", OPERATOR);
  await atOnce(5, () => createLink(id));
  t.like(await verify(id), { ok: true, last_seq: 67 });
  const rows = await rowsOf(id);
  t.deepEqual(
    rows.map((row) => row.id),
    rows.map((row) => row.id).sort(),
  );
});

test("every entry gets one place in its log, however many processes append", async (t) => {
  const ids = await Promise.all([createLog(0), createLog(0), createLog(0)]);
  await atOnce(60, async (index) => {
    const store = index % 2 ? first : second;
    await createLink(ids[index % 3] as string, store);
    await (index % 5 ? store.auditChain.append(ids[index % 3] as string) : store.auditChain.appendAll());
  });
  for (const id of ids) {
    const report = await verify(id);
    t.like(report, { ok: true, first_seq: 1, last_seq: 22 });
    t.deepEqual(
      (await rowsOf(id)).map(({ seq }) => seq),
      Array.from({ length: 22 }, (_, index) => index + 1),
    );
  }
});

test("an entry that was chained never changes its place or hash", async (t) => {
  const id = await createLog();
  await verify(id);
  const before = await rowsOf(id);
  await createLink(id);
  await Promise.all([first.auditChain.append(id), second.auditChain.append(id)]);
  t.deepEqual((await rowsOf(id)).slice(0, before.length), before);
});

const TAMPERING: Record<string, [change: (id: string) => Promise<unknown>, seq: number, reason: string]> = {
  "changing the data of an entry": [
    (id) => entry(id, 3).update({ data: "{}" }),
    3,
    "the entry or its hash was changed",
  ],
  "changing the actor of an entry": [
    (id) => entry(id, 2).update({ actor: "usr_other" }),
    2,
    "the entry or its hash was changed",
  ],
  "changing the time of an entry by a millisecond": [
    (id) => entry(id, 4).update({ created_at: knex.raw("created_at + 1") }),
    4,
    "the entry or its hash was changed",
  ],
  "changing the hash of an entry": [
    (id) => entry(id, 2).update({ hash: "0".repeat(64) }),
    2,
    "the entry or its hash was changed",
  ],
  "hiding an entry": [(id) => entry(id, 3).update({ audited: false }), 3, "the entry is missing"],
  "chaining an entry again": [
    (id) => entry(id, 3).update({ seq: null, hash: null }),
    3,
    "the entry is missing",
  ],
  "deleting the first entry": [(id) => entry(id, 1).delete(), 1, "the entry is missing"],
  "deleting an entry": [(id) => entry(id, 3).delete(), 3, "the entry is missing"],
  "deleting the last entry": [(id) => entry(id, 5).delete(), 5, "the entry is missing"],
  "deleting every entry": [
    (id) => knex("events").where({ organization_id: id }).delete(),
    1,
    "the entry is missing",
  ],
  "deleting the last entry and moving the head back": [
    async (id) => {
      await entry(id, 5).delete();
      await knex("audit_chains").where({ organization_id: id }).update({ seq: 4 });
    },
    4,
    "the head of the chain was changed",
  ],
  "deleting the head": [
    (id) => knex("audit_chains").where({ organization_id: id }).delete(),
    5,
    "the entry was inserted",
  ],
  "swapping two entries": [
    async (id) => {
      await entry(id, 3).update({ seq: 900 });
      await entry(id, 4).update({ seq: 3 });
      await entry(id, 900).update({ seq: 4 });
    },
    3,
    "the entry or its hash was changed",
  ],
  "inserting an entry after the others": [
    async (id) => {
      await insertCopy(id, 5, { seq: 6 });
    },
    6,
    "the entry was inserted",
  ],
  "moving an entry to another organization": [
    async (id) => entry(id, 3).update({ organization_id: await createLog(0), seq: 9 }),
    3,
    "the entry is missing",
  ],
};

for (const [title, [change, seq, reason]] of Object.entries(TAMPERING)) {
  test(`${title} breaks the proof`, async (t) => {
    const id = await createLog();
    t.true((await verify(id)).ok);
    await change(id);
    const report = await verify(id);
    t.false(report.ok);
    t.like(report.broken, { seq, reason });
  });
}

test("clicks and test events are not chained", async (t) => {
  const id = await createLog(0);
  await first.auditChain.append(id);
  await insertCopy(id, 1, { type: "link.clicked", audited: false, seq: null, hash: null });
  await first.auditChain.append(id);
  t.is((await knex("events").where({ organization_id: id, type: "link.clicked" }).first())?.seq, null);
});
