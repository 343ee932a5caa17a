import test from "ava";
import { AUDIT_LOG_DAYS } from "../../../adapters/events/retention.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { PLANS, type Plan } from "../../../resources/plans.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestStorage } from "../../harness/database/storage.ts";

const storage = await createTestStorage();
const { first, database } = storage;
const { knex } = database;
test.after.always(() => storage.close());

const DAY_MS = 24 * 60 * 60 * 1000;

const createLog = async (plan: Plan) =>
  (await first.organizations.create("Log", plan, OPERATOR)).organization.id;
const rename = (id: string, name: string) => first.organizations.rename(id, name, OPERATOR);
const verify = async (id: string) => (await first.verifyAuditLogs(id))[0];
const seqs = (id: string) => knex("events").where({ organization_id: id }).orderBy("seq").pluck("seq");

/** Returns how many days the entries of a log are kept. */
async function daysOf(id: string) {
  const rows = await knex("events").where({ organization_id: id }).orderBy("seq");
  return rows.map((row) => Math.round((row.expires_at - row.created_at) / DAY_MS));
}

test.serial("the plan decides how long entries are kept, from the next entry on", async (t) => {
  for (const plan of PLANS) {
    const id = await createLog(plan);
    await first.auditChain.append(id);
    t.deepEqual([...new Set(await daysOf(id))], [AUDIT_LOG_DAYS[plan]], plan);
  }
  const id = await createLog("free");
  await first.auditChain.append(id);
  await first.organizations.setPlan(id, "growth", OPERATOR);
  await first.auditChain.append(id);
  t.deepEqual(await daysOf(id), [30, 365, 365]);
  await first.organizations.setPlan(id, "free", OPERATOR);
  await first.auditChain.append(id);
  t.deepEqual(await daysOf(id), [30, 365, 365, 365], "entries are deleted in their order");
});

test.serial(
  "a purge deletes expired entries from the start, and the rest is verified from there",
  async (t) => {
    const id = await createLog("free");
    for (let name = 0; name < 149; name++) await rename(id, `Name ${name}`);
    await first.auditChain.append(id);
    advanceClock(20 * DAY_MS);
    await rename(id, "Later");
    await first.auditChain.append(id);
    const head = await first.audit.head(id);

    advanceClock(11 * DAY_MS);
    await rename(id, "Not chained");
    t.true(((await first.purgeExpired())?.events ?? 0) >= 150);

    const report = await verify(id);
    t.like(report, { ok: true, first_seq: 151, last_seq: 152 });
    const [, entry] = await first.audit.list(id, {}, 10);
    t.like(entry, { seq: 151, hash: head?.hash });
    t.regex(entry?.previousHash ?? "", /^[0-9a-f]{64}$/);

    await knex("events").where({ organization_id: id, seq: 151 }).update({ seq: 150 });
    t.like(await verify(id), { ok: false, broken: { seq: 150, reason: "the entry was inserted" } });
    await knex("events").where({ organization_id: id, seq: 150 }).delete();
    t.like(await verify(id), { ok: false, broken: { seq: 151, reason: "the entry is missing" } });
  },
);

test.serial("a purge never deletes an entry that is not chained", async (t) => {
  const id = await createLog("free");
  advanceClock(800 * DAY_MS);
  await first.purgeExpired();
  t.deepEqual(await seqs(id), [null]);
  await first.auditChain.append(id);
  advanceClock(2 * DAY_MS);
  await first.purgeExpired();
  t.deepEqual(await seqs(id), []);
  t.like(await verify(id), { ok: true, first_seq: 2, last_seq: 1 });
  await rename(id, "Next");
  t.like(await verify(id), { ok: true, first_seq: 2, last_seq: 2 });
});
