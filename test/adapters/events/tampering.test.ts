import { randomBytes } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import type { AuditChainRow, EventRow } from "../../../adapters/database/tables/events.ts";
import { chainHash, GENESIS, recordOf } from "../../../adapters/events/chain-record.ts";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { createTestStorage, linkFields } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, database } = storage;
const { knex } = database;
test.after.always(() => storage.close());

const DAY_MS = 24 * 60 * 60 * 1000;
const COMMAND = { arguments: [], options: {}, osUser: "ada", host: "host" };

let slugs = 0;
const createLink = (id: string) =>
  first.links.create(id, OPERATOR, linkFields({ slug: `tampering-${++slugs}` }));

/** Creates an organization with five chained entries. */
async function createLog(): Promise<string> {
  const { organization } = await first.organizations.create("Log", "growth", OPERATOR);
  for (let link = 0; link < 3; link++) await createLink(organization.id);
  await first.auditChain.append();
  return organization.id;
}

const entries = (id: string) => knex("events").where({ organization_id: id });
const entry = (id: string, seq: number) => entries(id).where({ seq });
const head = (id: string) => knex("audit_chains").where({ organization_id: id });

/** Reads the rows of a table, to insert them again. */
async function rowsOf<Row extends object>(query: PromiseLike<Row[]>): Promise<Row[]> {
  const rows = await query;
  for (const row of rows) delete (row as { unchained?: unknown }).unchained; // generated, only on MariaDB
  return rows;
}

/** Inserts a row like that of an entry. */
async function insertCopy(id: string, seq: number, changes: Partial<EventRow>) {
  const [row] = await rowsOf<EventRow>(entry(id, seq));
  // IDs created in the same millisecond differ only in their last characters.
  const copyId = `${row?.id.slice(0, -6)}+${randomBytes(3).toString("hex").slice(1)}`;
  await knex("events").insert({ ...(row as EventRow), id: copyId, ...changes });
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

/** Deletes the entries up to one, and moves the mark of the last deleted entry there. */
async function deleteUpTo(id: string, seq: number) {
  const row = await entry(id, seq).first();
  await entries(id).where("seq", "<=", seq).delete();
  await head(id).update({ purged_seq: seq, purged_hash: row?.hash as string });
}

async function deleteLog(id: string) {
  await entries(id).delete();
  await head(id).delete();
}

/** Takes a log back to its state of a moment ago. */
async function restoreEarlier(id: string) {
  const [events, heads] = [await rowsOf(entries(id)), await rowsOf(head(id))];
  await createLink(id);
  await first.auditChain.append();
  await deleteLog(id);
  await knex("events").insert(events);
  await knex("audit_chains").insert(heads);
}

const recordCommand = async () =>
  first.operatorLog.finish(await first.operatorLog.start({ command: "org create", ...COMMAND }));

async function brokenLogs() {
  const reports = await first.verifyAuditLogs();
  return new Map(reports.filter(({ ok }) => !ok).map((report) => [report.organization_id, report.broken]));
}

const CHANGED = "the entry or its hash was changed";
const MISSING = "the entry is missing";
const INSERTED = "the entry was inserted";
const HEAD_CHANGED = "the head of the chain was changed";
const HEAD_MISSING = "the head of the chain is missing";
const EXPIRY = "the expiry of the entry was changed";
const OLDER = "the entry is older than the entries before it";
const NOT_NEWEST = "a log was deleted, or replaced by an earlier state";

type Case = [change: (id: string) => Promise<unknown>, seq: number, reason: string, log?: string];

const NOTICED: Record<string, Case> = {
  "changing the data of an entry": [(id) => entry(id, 3).update({ data: "{}" }), 3, CHANGED],
  ...Object.fromEntries(
    (["id", "type", "actor", "via", "address", "subject"] as const).map((column) => [
      `changing the ${column} of an entry`,
      [(id: string) => entry(id, 2).update({ [column]: "usr_other" }), 2, CHANGED] satisfies Case,
    ]),
  ),
  "changing the time of an entry by a millisecond": [
    (id) => entry(id, 4).update({ created_at: knex.raw("created_at + 1") }),
    4,
    CHANGED,
  ],
  "changing the hash of an entry": [(id) => entry(id, 2).update({ hash: GENESIS }), 2, CHANGED],
  "changing an entry and all later hashes": [
    (id) =>
      entry(id, 3)
        .update({ data: "{}" })
        .then(() => rechain(id)),
    5,
    HEAD_CHANGED,
  ],
  "hiding an entry": [(id) => entry(id, 3).update({ audited: false }), 3, MISSING],
  "chaining an entry again": [(id) => entry(id, 3).update({ seq: null, hash: null }), 3, MISSING],
  "deleting the first entry": [(id) => entry(id, 1).delete(), 1, MISSING],
  "deleting an entry": [(id) => entry(id, 3).delete(), 3, MISSING],
  "deleting the last entry": [(id) => entry(id, 5).delete(), 5, MISSING],
  "deleting every entry": [(id) => entries(id).delete(), 1, MISSING],
  "deleting the last entry and moving the head back": [
    (id) =>
      entry(id, 5)
        .delete()
        .then(() => head(id).update({ seq: 4 })),
    4,
    HEAD_CHANGED,
  ],
  "deleting the last entry and computing the head again": [
    async (id) => {
      await entry(id, 5).delete();
      await rechain(id);
      await head(id).update({ seq: 4, expires_at: (await entry(id, 4).first())?.expires_at as number });
    },
    4,
    HEAD_CHANGED,
  ],
  "deleting an entry and numbering the others again": [
    async (id) => {
      await entry(id, 3).delete();
      for (const seq of [4, 5]) await entry(id, seq).update({ seq: seq - 1 });
      await head(id).update({ seq: 4 });
      await rechain(id);
    },
    4,
    HEAD_CHANGED,
  ],
  "swapping two entries": [
    async (id) => {
      await entry(id, 3).update({ seq: 900 });
      await entry(id, 4).update({ seq: 3 });
      await entry(id, 900).update({ seq: 4 });
    },
    3,
    CHANGED,
  ],
  "inserting an entry after the others": [(id) => insertCopy(id, 5, { seq: 6 }), 6, INSERTED],
  "inserting an entry between the others": [
    async (id) => {
      for (const seq of [5, 4]) await entry(id, seq).update({ seq: seq + 1 });
      await insertCopy(id, 3, { seq: 4 });
      await head(id).update({ seq: 6 });
      await rechain(id);
    },
    6,
    HEAD_CHANGED,
  ],
  "inserting an old entry, which the server chains": [
    (id) => insertCopy(id, 3, { seq: null, hash: null, created_at: Date.now() - DAY_MS }),
    6,
    OLDER,
  ],
  "moving an entry to another organization": [
    async (id) => entry(id, 3).update({ organization_id: await createLog(), seq: 9 }),
    3,
    MISSING,
  ],
  "replacing a log by that of another organization": [
    async (id) => {
      const other = await createLog();
      await deleteLog(id);
      await entries(other).update({ organization_id: id });
      await head(other).update({ organization_id: id });
    },
    1,
    CHANGED,
  ],
  "deleting all entries but the last, and moving the mark of deleted ones": [
    (id) => deleteUpTo(id, 4),
    5,
    HEAD_CHANGED,
  ],
  "deleting all entries, and moving the mark of deleted ones": [(id) => deleteUpTo(id, 5), 5, HEAD_CHANGED],
  "moving the mark of deleted entries": [
    (id) => head(id).update({ purged_seq: 0, purged_hash: "1".repeat(64) }),
    1,
    CHANGED,
  ],
  "changing the expiry of an entry": [(id) => entry(id, 3).update({ expires_at: 1 }), 3, EXPIRY],
  "changing the expiry of every entry": [(id) => entries(id).update({ expires_at: 1 }), 5, EXPIRY],
  "changing the expiry of every entry, and of the head": [
    (id) =>
      entries(id)
        .update({ expires_at: 1 })
        .then(() => head(id).update({ expires_at: 1 })),
    5,
    HEAD_CHANGED,
  ],
  "changing the expiry of every entry, and letting the server delete them": [
    async (id) => {
      await entries(id).update({ expires_at: 1 });
      await first.purgeExpired();
    },
    5,
    EXPIRY,
  ],
  "making an entry seem old, and letting the server delete it": [
    async (id) => {
      await entry(id, 1).update({ created_at: Date.now() - 100 * DAY_MS, expires_at: 1 });
      await first.purgeExpired();
    },
    1,
    CHANGED,
  ],
  "beginning again at 1": [
    async (id) => {
      await entries(id).where("seq", ">", 1).delete();
      const row = await entry(id, 1).first();
      await head(id).update({ seq: 1, hash: row?.hash as string, expires_at: row?.expires_at as number });
    },
    1,
    HEAD_CHANGED,
  ],
  "deleting the head": [(id) => head(id).delete(), 0, HEAD_MISSING],
  "deleting the code of a head": [(id) => head(id).update({ mac: null }), 5, HEAD_CHANGED],
  "deleting the code of a head before the next entry": [
    async (id) => {
      await head(id).update({ mac: null });
      await createLink(id);
    },
    6,
    HEAD_CHANGED,
  ],
  "deleting a log with its head": [deleteLog, 0, HEAD_MISSING],
  "deleting a log with its head before the next entry": [
    async (id) => {
      await deleteLog(id);
      await createLink(id);
    },
    0,
    NOT_NEWEST,
    "all",
  ],
  "deleting a log with its head and its organization": [
    async (id) => {
      await deleteLog(id);
      await deleteOrganization(id);
    },
    0,
    NOT_NEWEST,
    "all",
  ],
  "deleting an organization": [deleteOrganization, 0, "the organization of the log is missing"],
  "restoring an earlier head": [
    async (id) => {
      const earlier = await head(id).first();
      await createLink(id);
      await first.auditChain.append();
      await head(id).update(earlier as AuditChainRow);
    },
    6,
    INSERTED,
  ],
  "restoring a log with its head": [restoreEarlier, 0, NOT_NEWEST, "all"],
  "restoring a log with its head before the next entry": [
    async (id) => {
      await restoreEarlier(id);
      await createLink(id);
    },
    0,
    NOT_NEWEST,
    "all",
  ],
  "deleting the head of all logs": [
    async () => head("all").delete(),
    0,
    "the head of all logs is missing or was changed",
    "all",
  ],
  "restoring an earlier head of all logs": [
    async (id) => {
      const earlier = await head("all").first();
      await createLink(id);
      await first.auditChain.append();
      await head("all").update(earlier as AuditChainRow);
    },
    0,
    NOT_NEWEST,
    "all",
  ],
};

async function deleteOrganization(id: string) {
  await knex("clients").where({ organization_id: id }).delete();
  await knex("organization_usage").where({ organization_id: id }).delete();
  await knex("links").where({ organization_id: id }).delete();
  await knex("organizations").where({ id }).delete();
}

async function assertNoticed(t: ExecutionContext, [change, seq, reason, log]: Case) {
  const id = await createLog();
  await first.acceptAuditLogs(); // what earlier tests broke
  const before = await brokenLogs();
  t.false(before.has(id));
  t.false(before.has("all"));
  await change(id);
  t.like((await brokenLogs()).get(log ?? id), { seq, reason });
}

for (const [title, noticed] of Object.entries(NOTICED))
  test.serial(`${title} is noticed`, (t) => assertNoticed(t, noticed));

// docs/audit-log.md says why.
const UNNOTICED: Record<string, (id: string) => Promise<unknown>> = {
  "restoring all logs with all heads": async (id) => {
    const events = await rowsOf(knex("events"));
    const heads = await rowsOf(knex("audit_chains"));
    await createLink(id);
    await first.auditChain.append();
    await knex("events").delete();
    await knex("audit_chains").delete();
    await knex.batchInsert("events", events as never, 50);
    await knex.batchInsert("audit_chains", heads as never, 50);
  },
  "inserting an event of now": (id) => insertCopy(id, 3, { seq: null, hash: null, created_at: Date.now() }),
  "letting the oldest entries expire earlier": (id) =>
    entries(id).where("seq", "<", 4).update({ expires_at: 1 }),
};

for (const [title, change] of Object.entries(UNNOTICED)) {
  test.serial(`${title} is not noticed`, async (t) => {
    const id = await createLog();
    await first.acceptAuditLogs();
    await change(id);
    await first.purgeExpired();
    const broken = await brokenLogs();
    t.false(broken.has(id));
    t.false(broken.has("all"));
    t.is((await entries(id).orderBy("seq").first())?.seq, 1, "no entry is deleted within 30 days");
  });
}

test.serial("deleting an entry of the operator's log is noticed", async (t) => {
  await recordCommand();
  const [row] = await rowsOf<EventRow>(entry("operator", 1));
  await entry("operator", 1).delete();
  t.like((await brokenLogs()).get("operator"), { seq: 1, reason: MISSING });
  await knex("events").insert(row as EventRow);
  t.false((await brokenLogs()).has("operator"));
});

test.serial("deleting the operator's log with its head is noticed", async (t) => {
  await recordCommand();
  await first.acceptAuditLogs();
  await deleteLog("operator");
  t.like((await brokenLogs()).get("all"), { reason: NOT_NEWEST });
  await recordCommand();
  t.like((await brokenLogs()).get("all"), { reason: NOT_NEWEST });
});

test.serial("an entry in the name of all logs is never chained", async (t) => {
  const id = await createLog();
  await first.acceptAuditLogs();
  await insertCopy(id, 3, { organization_id: "all", seq: null, hash: null });
  await createLink(id);
  t.false((await brokenLogs()).has("all"));
  t.is((await entries("all").first())?.seq, null);
});

test.serial("what the server writes at the same time is no fault", async (t) => {
  await first.acceptAuditLogs();
  const ids = await Promise.all([createLog(), createLog(), createLog()]);
  const verifying = Array.from({ length: 5 }, async () => {
    const broken = await brokenLogs();
    t.false(broken.has("all"));
    for (const id of ids) t.false(broken.has(id));
  });
  const writing = Array.from({ length: 30 }, (_, index) => createLink(ids[index % 3] as string));
  const chaining = [first, second, first, second].map(({ auditChain }) => auditChain.append());
  await Promise.all([...verifying, ...writing, ...chaining]);
  t.false((await brokenLogs()).has("all"));
});

test.serial(
  "heads are authentic during a rotation of the encryption key, and with only the new key after it",
  async (t) => {
    const id = await createLog();
    await first.acceptAuditLogs();
    const newKey = randomBytes(32);
    first.useEncryptionKeys([newKey, storage.encryptionKey]);
    t.teardown(() => first.useEncryptionKeys(storage.encryptionKey));
    t.true((await first.countOutdatedCiphertexts()) > 1);
    await createLink(id);
    t.false((await brokenLogs()).has("all"));
    t.true(((await first.reencrypt())?.reencrypted ?? 0) > 1);
    t.is(await first.countOutdatedCiphertexts(), 0);
    first.useEncryptionKeys(newKey);
    const broken = await brokenLogs();
    t.false(broken.has(id));
    t.false(broken.has("all"));
  },
);

test.serial(
  "with another encryption key, every log is reported until the operator accepts them",
  async (t) => {
    const id = await createLog();
    const other = openStorage(storage.url, randomBytes(32));
    t.teardown(() => other.close());
    await other.migrate();
    const reports = async () =>
      (await other.verifyAuditLogs(id)).map(({ organization_id, ok }) => [organization_id, ok]);
    t.deepEqual(await reports(), [
      [id, false],
      ["all", false],
    ]);
    await other.acceptAuditLogs();
    t.deepEqual(await reports(), [[id, true]]);
  },
);

test.serial("heads without codes are reported after a restart", async (t) => {
  const id = await createLog();
  await head("all").delete();
  await knex("audit_chains").update({ mac: null });
  const restarted = openStorage(storage.url, storage.encryptionKey);
  t.teardown(() => restarted.close());
  await restarted.migrate();
  t.like((await brokenLogs()).get(id), { reason: HEAD_CHANGED });
  t.true((await brokenLogs()).has("all"));
});

test.serial("emptying both tables before a restart is noticed", async (t) => {
  const id = await createLog();
  await knex("events").delete();
  await knex("audit_chains").delete();
  const restarted = openStorage(storage.url, storage.encryptionKey);
  t.teardown(() => restarted.close());
  await restarted.migrate();
  await createLink(id);
  t.like((await brokenLogs()).get("all"), { reason: "the head of all logs is missing or was changed" });
});
