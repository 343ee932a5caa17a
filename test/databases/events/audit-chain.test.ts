import test from "ava";
import type { AuditEntry } from "../../../adapters/events/audit-log.ts";
import type { ChainReport } from "../../../adapters/events/verify-chain.ts";
import { AUDIT_LOG_DAYS, PLANS } from "../../../resources/plans.ts";
import { advanceClock, DAY_MS } from "../../harness/clock.ts";
import { atOnce, createTestStorage, OPERATOR } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, either, knex, createOrganization } = storage;

/** Creates an organization with `count` links, which leaves `count` + 2 entries. */
async function createLog(count = 3): Promise<string> {
  const id = await createOrganization();
  for (let link = 0; link < count; link++) await createLink(id);
  return id;
}

const createLink = (id: string, by = first) => storage.createLink(id, { title: "“Ünïcode” \\ 🚀" }, by);
const verify = async (id: string): Promise<ChainReport> =>
  (await first.verifyAuditLogs(id))[0] as ChainReport;
const rowsOf = (id: string) => knex("events").where({ organization_id: id, audited: true }).orderBy("seq");
const unchained = (id: string) => knex("events").where({ organization_id: id, audited: true, seq: null });

test.serial("verification covers the entries that are not chained yet, and every log", async (t) => {
  const id = await createLog();
  t.is((await unchained(id)).length, 5);
  await first.auditChain.appendAll(); // holds the lease from now on
  await first.organizations.setPlan(id, "premium", OPERATOR);
  t.is((await unchained(id)).length, 1);
  const reports = await second.verifyAuditLogs();
  const report = reports.find(({ organization_id }) => organization_id === id);
  t.like(report, { ok: true, last_seq: 6 });
  t.is((await unchained(id)).length, 0);
});

test.serial("what a dead process left is chained by another one once the lease has expired", async (t) => {
  const id = await createLog();
  await first.auditChain.appendAll();
  await createLink(id);
  await second.auditChain.appendAll();
  t.is((await unchained(id)).length, 1);
  advanceClock(16_000);
  await createLink(id, second);
  await second.auditChain.appendAll();
  t.is((await unchained(id)).length, 0);
  t.like(await verify(id), { ok: true, first_seq: 1, last_seq: 7 });
});

test("links are chained after the entries before them, also if many wait", async (t) => {
  const id = await createLog(0);
  for (let change = 0; change < 60; change++)
    await first.organizations.setPlan(id, change % 2 ? "growth" : "premium", OPERATOR);
  await atOnce(5, () => createLink(id));
  t.like(await verify(id), { ok: true, last_seq: 67 });
  const ids = (await rowsOf(id)).map((row) => row.id);
  t.deepEqual(ids, ids.toSorted());
});

test("every entry gets one place in its log, however many processes append", async (t) => {
  const ids = await Promise.all([createLog(0), createLog(0), createLog(0)]);
  await atOnce(60, async (index) => {
    const store = either(index);
    await createLink(ids[index % 3] as string, store);
    await (index % 5 ? store.auditChain.append(ids[index % 3] as string) : store.auditChain.appendAll());
  });
  for (const id of ids) {
    const report = await verify(id);
    t.like(report, { ok: true, first_seq: 1, last_seq: 22 });
    for (const [index, { seq }] of (await rowsOf(id)).entries()) t.is(seq, index + 1);
  }
});

const rename = (id: string, name: string) => first.organizationSettings.change(id, { name }, OPERATOR);
const seqs = (id: string) => knex("events").where({ organization_id: id }).orderBy("seq").pluck("seq");

async function daysOf(id: string) {
  return (await rowsOf(id)).map((row) => Math.round((row.expires_at - row.created_at) / DAY_MS));
}

test.serial("the plan decides how long entries are kept, from the next entry on", async (t) => {
  for (const plan of PLANS) {
    const id = await createOrganization(plan);
    await first.auditChain.append(id);
    t.deepEqual([...new Set(await daysOf(id))], [AUDIT_LOG_DAYS[plan]], plan);
  }
  const id = await createOrganization("free");
  await first.auditChain.append(id);
  await first.organizations.setPlan(id, "growth", OPERATOR);
  await first.auditChain.append(id);
  t.deepEqual(await daysOf(id), [30, 365, 365]);
  await first.organizations.setPlan(id, "free", OPERATOR);
  await first.auditChain.append(id);
  t.deepEqual(await daysOf(id), [30, 365, 365, 365], "entries are deleted in their order");
});

test.serial("a purge deletes expired entries, and the log is verified from the next one on", async (t) => {
  const id = await createOrganization("free");
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
});

test.serial("a purge never deletes an entry that is not chained", async (t) => {
  const id = await createOrganization("free");
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

test("a page of the log has up to so many bytes of data, at least one entry, and leads to the next", async (t) => {
  const id = await createLog(5);
  await first.auditChain.append(id);
  // Without the names, which a page has of its own entries.
  const shown = ({ names, ...entry }: AuditEntry) => entry;
  const all = (await first.audit.list(id, {}, 10)).map(shown);
  t.is(all.length, 7);
  const bytes = Math.max(...(await rowsOf(id)).map(({ data }) => Buffer.byteLength(data)));
  for (const [maxBytes, limit, pages] of [
    [1, 10, 7],
    [2 * bytes, 2, 4],
    [10 * bytes, 10, 1],
  ] as const) {
    const found: AuditEntry[] = [];
    let count = 0;
    for (let hasMore = true; hasMore; count++) {
      const page = await first.audit.page(id, {}, { limit, maxBytes, before: found.at(-1)?.id });
      found.push(...page.entries);
      hasMore = page.end !== undefined;
    }
    t.deepEqual(found.map(shown), all);
    t.is(count, pages);
  }
  const none = { entries: [], lines: new Map(), end: undefined };
  t.deepEqual(await first.audit.page(id, { actor: "x" }, { limit: 1, maxBytes: 1, before: undefined }), none);
});

test("entries that continue each other are one line, across parts that are read and pages", async (t) => {
  const id = await createLog(2);
  const archive = (links: string[], archived: boolean) =>
    Promise.all(links.map((link) => first.links.update(id, link, { archived }, OPERATOR)));
  const { id: link } = await createLink(id);
  for (let change = 0; change < 205; change++) await archive([link], change % 2 === 0);
  const all = (await first.audit.list(id, {}, 1000)).map((entry) => entry.id);
  const continues = (newer: { type: string }, older: { type: string }) => newer.type === older.type;
  for (const limit of [1, 2, 10]) {
    const counts: number[] = [];
    let end: string | undefined;
    do {
      const page = await first.audit.page(id, {}, { limit, maxBytes: 1e6, before: end, continues });
      counts.push(...page.entries.map((entry) => page.lines.get(entry.id)?.length ?? 0));
      end = page.end;
    } while (end !== undefined);
    t.deepEqual(counts, [205, 3, 1, 1], String(limit));
  }
  const part = `${all[0]}..${all[204]}`;
  t.deepEqual(
    (await first.audit.list(id, { part }, 1000)).map((entry) => entry.id),
    all.slice(0, 205),
  );
});
