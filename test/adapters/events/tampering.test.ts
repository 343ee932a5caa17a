import { randomBytes } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import type { AuditChainRow, EventRow } from "../../../adapters/database/tables/events.ts";
import { chainHash, GENESIS, recordOf } from "../../../adapters/events/chain-record.ts";
import type { LogHead } from "../../../adapters/events/verify-chain.ts";
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

type State = { events: EventRow[]; heads: AuditChainRow[] };

const stateOf = async (id: string): Promise<State> => ({
  events: await rowsOf(entries(id)),
  heads: await rowsOf(head(id)),
});

/** Takes a log back to an earlier state. */
async function restore(id: string, { events, heads }: State) {
  await deleteLog(id);
  await knex("events").insert(events);
  await knex("audit_chains").insert(heads);
}

async function recordCommand() {
  await first.operatorLog.finish(await first.operatorLog.start({ command: "org create", ...COMMAND }));
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

type Case = [change: (id: string) => Promise<unknown>, seq: number, reason: string];

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
  "moving the mark of deleted entries": [
    (id) => head(id).update({ purged_seq: 0, purged_hash: "1".repeat(64) }),
    1,
    CHANGED,
  ],
  "changing the expiry of an entry": [(id) => entry(id, 3).update({ expires_at: 1 }), 3, EXPIRY],
  "changing the expiry of every entry": [(id) => entries(id).update({ expires_at: 1 }), 5, EXPIRY],
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
  "deleting the head": [(id) => head(id).delete(), 0, HEAD_MISSING],
  "deleting a log with its head": [deleteLog, 0, HEAD_MISSING],
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
};

async function deleteOrganization(id: string) {
  await knex("clients").where({ organization_id: id }).delete();
  await knex("organization_usage").where({ organization_id: id }).delete();
  await knex("links").where({ organization_id: id }).delete();
  await knex("organizations").where({ id }).delete();
}

async function assertNoticed(t: ExecutionContext, [change, seq, reason]: Case) {
  const id = await createLog();
  t.false((await brokenLogs()).has(id));
  await change(id);
  t.like((await brokenLogs()).get(id), { seq, reason });
}

for (const [title, noticed] of Object.entries(NOTICED))
  test.serial(`${title} is noticed`, (t) => assertNoticed(t, noticed));

type KeptCase = [change: (id: string, earlier: State) => Promise<unknown>, seq: number, reason: string];

/** What only a head that was kept elsewhere shows. The log has six entries, and five in its earlier state. */
const NOTICED_WITH_A_HEAD: Record<string, KeptCase> = {
  "changing an entry and all later hashes": [
    async (id) => {
      await entry(id, 3).update({ data: "{}" });
      await rechain(id);
    },
    6,
    REWRITTEN,
  ],
  "deleting the last entry and computing the head again": [
    async (id) => {
      await entry(id, 6).delete();
      await rechain(id);
      await head(id).update({ seq: 5, expires_at: (await entry(id, 5).first())?.expires_at as number });
    },
    6,
    CUT,
  ],
  "deleting an entry and numbering the others again": [
    async (id) => {
      await entry(id, 3).delete();
      for (const seq of [4, 5, 6]) await entry(id, seq).update({ seq: seq - 1 });
      await head(id).update({ seq: 5 });
      await rechain(id);
    },
    6,
    CUT,
  ],
  "inserting an entry between the others": [
    async (id) => {
      for (const seq of [6, 5, 4]) await entry(id, seq).update({ seq: seq + 1 });
      await insertCopy(id, 3, { seq: 4 });
      await head(id).update({ seq: 7 });
      await rechain(id);
    },
    6,
    REWRITTEN,
  ],
  "deleting all entries, even later ones, and moving the mark of deleted ones": [
    async (id) => {
      await createLink(id);
      await first.auditChain.append();
      await deleteUpTo(id, 7);
    },
    6,
    GONE,
  ],
  "beginning again at 1": [
    async (id) => {
      await entries(id).where("seq", ">", 1).delete();
      const row = await entry(id, 1).first();
      await head(id).update({ seq: 1, hash: row?.hash as string, expires_at: row?.expires_at as number });
    },
    6,
    CUT,
  ],
  "deleting a log with its head before the next entry": [
    async (id) => {
      await deleteLog(id);
      await createLink(id);
    },
    6,
    CUT,
  ],
  "deleting a log with its head and its organization": [
    async (id) => {
      await deleteLog(id);
      await deleteOrganization(id);
    },
    0,
    HEAD_MISSING,
  ],
  "restoring a log with its head": [restore, 6, CUT],
  "restoring a log with its head before the next entry": [
    async (id, earlier) => {
      await restore(id, earlier);
      await createLink(id);
    },
    6,
    REWRITTEN,
  ],
};

for (const [title, [change, seq, reason]] of Object.entries(NOTICED_WITH_A_HEAD)) {
  test.serial(`${title} is noticed with a head that was kept elsewhere, and not without`, async (t) => {
    const id = await createLog();
    const earlier = await stateOf(id);
    await createLink(id);
    const kept = await first.audit.heads(id);
    t.like(kept, [{ organization_id: id, seq: 6 }]);
    t.false((await brokenLogs(kept)).has(id));
    await change(id, earlier);
    t.false((await brokenLogs()).has(id));
    t.like((await brokenLogs(kept)).get(id), { seq, reason });
    t.like(await first.verifyAuditLogs(id, kept), [{ organization_id: id, ok: false }]);
  });
}

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

// docs/audit-log.md says why.
const UNNOTICED: Record<string, (id: string) => Promise<unknown>> = {
  "inserting an event of now": (id) => insertCopy(id, 3, { seq: null, hash: null, created_at: Date.now() }),
  "letting the oldest entries expire earlier": (id) =>
    entries(id).where("seq", "<", 4).update({ expires_at: 1 }),
  "changing the expiry of every entry, and of the head": async (id) => {
    await entries(id).update({ expires_at: 1 });
    await head(id).update({ expires_at: 1 });
  },
};

for (const [title, change] of Object.entries(UNNOTICED)) {
  test.serial(`${title} is not noticed, even with a head`, async (t) => {
    const id = await createLog();
    const kept = await first.audit.heads(id);
    await change(id);
    await first.purgeExpired();
    t.false((await brokenLogs(kept)).has(id));
    t.is((await entries(id).orderBy("seq").first())?.seq, 1, "no entry is deleted within 30 days");
  });
}

for (const last of [4, 5]) {
  test.serial(
    `deleting the first ${last} of 5 entries as if they had expired is only seen in first_seq`,
    async (t) => {
      const id = await createLog();
      const kept = await first.audit.heads(id);
      await deleteUpTo(id, last);
      t.like(await first.verifyAuditLogs(id, kept), [{ ok: true, first_seq: last + 1, last_seq: 5 }]);
    },
  );
}

test.serial("deleting an entry of the operator's log is noticed", async (t) => {
  await recordCommand();
  const [row] = await rowsOf<EventRow>(entry("operator", 1));
  await entry("operator", 1).delete();
  t.like((await brokenLogs()).get("operator"), { seq: 1, reason: MISSING });
  await knex("events").insert(row as EventRow);
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
