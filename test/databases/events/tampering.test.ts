import { randomBytes } from "node:crypto";
import test from "ava";
import type { AuditChainRow, EventRow } from "../../../adapters/database/tables/events.ts";
import { chainHash, GENESIS, recordOf } from "../../../adapters/events/chain-record.ts";
import type { LogHead } from "../../../adapters/events/verify-chain.ts";
import { DAY_MS } from "../../harness/clock.ts";
import { createTestStorage } from "../../harness/database/storage.ts";

export const databases = "all";

const { first, second, knex, createOrganization, createLink } = await createTestStorage();
// A verification of all logs takes long with many of them.
test.afterEach.always(async () => {
  for (const table of ["events", "audit_chains", ...OWNED, "organizations"] as const)
    await knex(table).delete();
});

/** The tables whose rows refer to an organization. */
const OWNED = ["clients", "organization_usage", "links"] as const;
const COMMAND = { command: "org create", arguments: [], options: {}, osUser: "ada", host: "host" };

async function createLog(): Promise<string> {
  const id = await createOrganization();
  for (let link = 0; link < 3; link++) await createLink(id);
  await first.auditChain.append();
  return id;
}

const entries = (id: string) => knex("events").where({ organization_id: id });
const entry = (id: string, seq: number) => entries(id).where({ seq });
const head = (id: string) => knex("audit_chains").where({ organization_id: id });

async function insertCopy(id: string, seq: number, changes: Partial<EventRow>) {
  const row = (await entry(id, seq).first()) as EventRow & { unchained?: unknown };
  delete row.unchained; // generated, only on MariaDB
  // IDs created in the same millisecond differ only in their last characters.
  const copyId = `${row.id.slice(0, -6)}+${randomBytes(3).toString("hex").slice(1)}`;
  await knex("events").insert({ ...row, id: copyId, ...changes });
}

/** Computes all hashes of a log again, as someone could who knows the format. */
async function rechain(id: string) {
  let hash = GENESIS;
  for (const row of await entries(id).orderBy("seq")) {
    hash = chainHash(hash, recordOf(row.seq as number, row));
    await knex("events").where({ id: row.id }).update({ hash });
  }
  await head(id).update({ hash });
}

async function deleteUpTo(id: string, seq: number) {
  const row = await entry(id, seq).first();
  await entries(id).where("seq", "<=", seq).delete();
  await head(id).update({ purged_seq: seq, purged_hash: row?.hash as string });
}

async function deleteLog(id: string) {
  await entries(id).delete();
  await head(id).delete();
}

async function recordCommand() {
  await first.operatorLog.finish(await first.operatorLog.start(COMMAND));
  await first.auditChain.append("operator");
}

async function brokenLogs(kept?: LogHead[]) {
  const reports = await first.verifyAuditLogs(undefined, kept);
  return new Map(reports.filter(({ ok }) => !ok).map((report) => [report.organization_id, report.broken]));
}

const CHANGED = "the entry or its hash was changed";
const MISSING = "the entry is missing";
const INSERTED = "the entry was inserted";
const HEAD_CHANGED = "the head of the chain was changed";
const HEAD_MISSING = "the head of the chain is missing";
const EXPIRY = "the expiry of the entry was changed";
const OLDER = "the entry is older than the entries before it";
const CUT = "the log ends before the kept head";
const REWRITTEN = "the log was rewritten before the kept head";
const GONE = "the entry of the kept head has expired or was deleted";

/** A change of a log, the first entry that is reported, and why. */
const reported = (seq: number, reason: string, change: (id: string) => PromiseLike<unknown>) => ({
  change,
  expected: { seq, reason },
});
const update = (seq: number, values: object, reason = CHANGED) =>
  reported(seq, reason, (id) => entry(id, seq).update(values));

const NOTICED: Record<string, ReturnType<typeof reported>> = {
  "changing the data of an entry": update(3, { data: "{}" }),
  ...Object.fromEntries(
    ["id", "type", "actor", "via", "address", "subject"].map((column) => [
      `changing the ${column} of an entry`,
      update(2, { [column]: "usr_other" }),
    ]),
  ),
  "changing the time of an entry by a millisecond": update(4, { created_at: knex.raw("created_at + 1") }),
  "hiding an entry": update(3, { audited: false }, MISSING),
  "chaining an entry again": update(3, { seq: null, hash: null }, MISSING),
  "changing the expiry of an entry": update(3, { expires_at: 1 }, EXPIRY),
  "deleting an entry": reported(3, MISSING, (id) => entry(id, 3).delete()),
  "deleting the first entry": reported(1, MISSING, (id) => entry(id, 1).delete()),
  "deleting every entry": reported(1, MISSING, (id) => entries(id).delete()),
  "deleting the last entry": reported(5, MISSING, (id) => entry(id, 5).delete()),
  "deleting the head": reported(0, HEAD_MISSING, (id) => head(id).delete()),
  "deleting a log with its head": reported(0, HEAD_MISSING, deleteLog),
  "deleting an organization": reported(0, "the organization of the log is missing", deleteOrganization),
  "deleting the last entry and moving the head back": reported(4, HEAD_CHANGED, async (id) => {
    await entry(id, 5).delete();
    await head(id).update({ seq: 4 });
  }),
  "swapping two entries": reported(3, CHANGED, async (id) => {
    await entry(id, 3).update({ seq: 900 });
    await entry(id, 4).update({ seq: 3 });
    await entry(id, 900).update({ seq: 4 });
  }),
  "inserting an entry after the others": reported(6, INSERTED, (id) => insertCopy(id, 5, { seq: 6 })),
  "inserting an old entry, which the server chains": reported(6, OLDER, async (id) => {
    await insertCopy(id, 3, { seq: null, hash: null, created_at: Date.now() - DAY_MS });
  }),
  "moving an entry to another organization": reported(3, MISSING, async (id) => {
    await entry(id, 3).update({ organization_id: await createLog(), seq: 9 });
  }),
  "replacing a log by that of another organization": reported(1, CHANGED, async (id) => {
    const other = await createLog();
    await deleteLog(id);
    await entries(other).update({ organization_id: id });
    await head(other).update({ organization_id: id });
  }),
  "moving the mark of deleted entries": reported(1, CHANGED, async (id) => {
    await head(id).update({ purged_seq: 0, purged_hash: "1".repeat(64) });
  }),
  "changing every expiry, and letting the server delete the entries": reported(5, EXPIRY, async (id) => {
    await entries(id).update({ expires_at: 1 });
    await first.purgeExpired();
  }),
  "making an entry seem old, and letting the server delete it": reported(1, CHANGED, async (id) => {
    await entry(id, 1).update({ created_at: Date.now() - 100 * DAY_MS, expires_at: 1 });
    await first.purgeExpired();
  }),
  "restoring an earlier head": reported(6, INSERTED, async (id) => {
    const earlier = await head(id).first();
    await createLink(id);
    await first.auditChain.append();
    await head(id).update(earlier as AuditChainRow);
  }),
};

async function deleteOrganization(id: string) {
  for (const table of OWNED) await knex(table).where({ organization_id: id }).delete();
  await knex("organizations").where({ id }).delete();
}

for (const [title, { change, expected }] of Object.entries(NOTICED))
  test.serial(`${title} is noticed`, async (t) => {
    const id = await createLog();
    t.false((await brokenLogs()).has(id));
    await change(id);
    t.like((await brokenLogs()).get(id), expected);
  });

/** What only a head that was kept elsewhere shows. The log has six entries. */
const NOTICED_WITH_A_HEAD: typeof NOTICED = {
  "changing an entry and all later hashes": reported(6, REWRITTEN, async (id) => {
    await entry(id, 3).update({ data: "{}" });
    await rechain(id);
  }),
  "deleting the last entry and computing the head again": reported(6, CUT, async (id) => {
    await entry(id, 6).delete();
    await rechain(id);
    await head(id).update({ seq: 5, expires_at: (await entry(id, 5).first())?.expires_at as number });
  }),
  "inserting an entry between the others": reported(6, REWRITTEN, async (id) => {
    for (const seq of [6, 5, 4]) await entry(id, seq).update({ seq: seq + 1 });
    await insertCopy(id, 3, { seq: 4 });
    await head(id).update({ seq: 7 });
    await rechain(id);
  }),
  "deleting all entries, later ones too, and moving the mark of the deleted": reported(
    6,
    GONE,
    async (id) => {
      await createLink(id);
      await first.auditChain.append();
      await deleteUpTo(id, 7);
    },
  ),
  "deleting a log with its head and its organization": reported(0, HEAD_MISSING, async (id) => {
    await deleteLog(id);
    await deleteOrganization(id);
  }),
};

for (const [title, { change, expected }] of Object.entries(NOTICED_WITH_A_HEAD))
  test.serial(`${title} is noticed with a head that was kept elsewhere, and not without`, async (t) => {
    const id = await createLog();
    await createLink(id);
    const kept = await first.audit.heads(id);
    t.like(kept, [{ organization_id: id, seq: 6 }]);
    t.false((await brokenLogs(kept)).has(id));
    await change(id);
    t.false((await brokenLogs()).has(id));
    t.like((await brokenLogs(kept)).get(id), expected);
    t.like(await first.verifyAuditLogs(id, kept), [{ organization_id: id, ok: false }]);
  });

test.serial("a log contains its kept heads after further entries", async (t) => {
  const id = await createLog();
  const kept = await first.audit.heads(id);
  await createLink(id);
  kept.push(...(await first.audit.heads(id)));
  await createLink(id);
  t.false((await brokenLogs(kept)).has(id));
  await deleteUpTo(id, 5);
  t.false((await brokenLogs(kept)).has(id), "the hash of the last expired entry is kept");
});

test.serial("deleting the first entries as if they had expired is only seen in first_seq", async (t) => {
  for (const last of [4, 5]) {
    const id = await createLog();
    const kept = await first.audit.heads(id);
    await deleteUpTo(id, last);
    t.like(await first.verifyAuditLogs(id, kept), [{ ok: true, first_seq: last + 1, last_seq: 5 }]);
  }
});

test.serial("a missing entry of the operator's log is noticed", async (t) => {
  await recordCommand();
  await entry("operator", 1).update({ seq: 900 });
  t.like((await brokenLogs()).get("operator"), { seq: 1, reason: MISSING });
  await entry("operator", 900).update({ seq: 1 });
  t.false((await brokenLogs()).has("operator"));
});

test.serial("deleting the operator's log with its head is noticed with a kept head", async (t) => {
  await recordCommand();
  const kept = await first.audit.heads("operator");
  await deleteLog("operator");
  t.false((await brokenLogs()).has("operator"));
  t.like((await brokenLogs(kept)).get("operator"), { reason: CUT });
  await recordCommand();
  t.true((await brokenLogs(kept)).has("operator"));
});

test.serial("what the server writes at the same time is no fault", async (t) => {
  const ids = await Promise.all([createLog(), createLog(), createLog()]);
  const kept = await first.audit.heads();
  const verifying = Array.from({ length: 5 }, async () => {
    const broken = await brokenLogs(kept.filter(({ organization_id }) => ids.includes(organization_id)));
    for (const id of ids) t.false(broken.has(id));
  });
  const writing = Array.from({ length: 30 }, (_, index) => createLink(ids[index % 3] as string));
  const chaining = [first, second, first, second].map(({ auditChain }) => auditChain.append());
  await Promise.all([...verifying, ...writing, ...chaining]);
  const broken = await brokenLogs();
  for (const id of ids) t.false(broken.has(id));
});
