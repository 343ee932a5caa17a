import test from "ava";
import { type NoticeKind, recordNotice } from "../../../adapters/accounts/notices.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestStorage, OPERATOR } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, database, knex } = storage;

const ISSUER = "https://idp.example";
let users = 0;

async function createUser() {
  const user = await first.accounts.create(`user-${++users}`, "a hash", OPERATOR);
  return { ...(user as { id: string; username: string }), address: "192.0.2.7" };
}

function record(userId: string, kind: NoticeKind) {
  return database.transaction((trx) => recordNotice(trx, { userId, kind, data: { address: "192.0.2.9" } }));
}

async function kindsOf(userId: string, options?: { open: true }): Promise<NoticeKind[]> {
  return (await second.notices.list(userId, options)).map(({ kind }) => kind);
}

const AUDITED = ["member.identity_linked", "member.identity_unlinked", "member.password_changed"] as const;

test.serial("each change to how a user signs in leaves a notice and entries, with its address", async (t) => {
  const [user, owner] = [await createUser(), await createUser()];
  const organizations = [await storage.createOrganization(), await storage.createOrganization()] as const;
  for (const id of organizations) {
    await first.organizations.addMember(id, user.id, "member", OPERATOR);
    await first.organizations.addMember(id, owner.id, "owner", OPERATOR);
  }
  const actor = { id: user.id, address: user.address };
  const identity = { issuer: ISSUER, subject: user.id, label: null };
  await first.identities.link(user.id, identity, actor);
  await first.identities.unlink(user.id, identity, actor);
  await first.accounts.changePassword({ currentHash: "a hash", newHash: "another" }, "", actor);
  const byOwner = { organizationId: organizations[0], actor: { id: owner.id, address: owner.address } };
  await first.accounts.createResetTokenAsOwner(user.id, 60_000, byOwner);
  const token = await first.accounts.createResetToken(user.id, 60_000);
  await first.accounts.resetPassword(token, "b", "192.0.2.8");
  const expected = [
    { kind: "reset_link_used", data: { address: "192.0.2.8", by: "operator" } },
    { kind: "reset_link_created", data: { by: "operator" } },
    { kind: "reset_link_created", data: { address: "192.0.2.7", by: owner.username } },
    { kind: "password_changed", data: { address: "192.0.2.7" } },
    { kind: "identity_unlinked", data: { address: "192.0.2.7", name: ISSUER } },
    { kind: "identity_linked", data: { address: "192.0.2.7", name: ISSUER } },
  ];
  const listed = await second.notices.list(user.id);
  const shown: { kind: string; data: object }[] = listed.map(({ kind, data }) => ({ kind, data }));
  t.deepEqual(shown, expected);
  for (const id of organizations) {
    const entries = await first.audit.list(id, { types: [...AUDITED] }, 10);
    for (const entry of entries) t.like(entry, { actor: user.id, subject: user.id });
    const shown = entries.map(({ type, address }) => `${type} ${address}`);
    t.deepEqual(shown, [
      "member.password_changed 192.0.2.8",
      ...AUDITED.toReversed().map((type) => `${type} 192.0.2.7`),
    ]);
  }
});

test.serial("a change that fails leaves no notice and no entry", async (t) => {
  const [{ id }, other] = [await createUser(), await createUser()];
  const organizationId = await storage.createOrganization();
  await first.organizations.addMember(organizationId, id, "member", OPERATOR);
  const identity = { issuer: ISSUER, subject: other.id, label: null };
  t.true(await first.identities.link(other.id, identity, { id: other.id }));
  t.false(await first.identities.link(id, identity, { id }));
  t.false(await first.identities.unlink(id, identity, { id }));
  t.is(await first.identities.findUserId(identity), other.id);
  await first.accounts.changePassword({ currentHash: "wrong", newHash: "another" }, "", { id });
  await first.identities.unlink(id, { issuer: ISSUER, subject: "unknown" }, { id });
  t.false(await first.accounts.resetPassword("unknown", "a hash"));
  t.deepEqual(await first.notices.list(id), []);
  t.deepEqual(await first.audit.list(organizationId, { types: [...AUDITED] }, 10), []);
});

test.serial("a dismissed notice is no longer open, but remains listed", async (t) => {
  const { id } = await createUser();
  const other = await createUser();
  for (const kind of ["new_device", "password_changed"] as const) await record(id, kind);
  const [latest] = await first.notices.list(id, { open: true });
  t.false(await first.notices.dismiss(other.id, latest?.id));
  t.true(await first.notices.dismiss(id, latest?.id));
  t.false(await second.notices.dismiss(id, latest?.id));
  t.deepEqual(await kindsOf(id, { open: true }), ["new_device"]);
  t.true(await first.notices.dismiss(id));
  t.deepEqual(await kindsOf(id, { open: true }), []);
  t.deepEqual(await kindsOf(id), ["password_changed", "new_device"]);
});

test.serial("notices of one kind are bounded and don't push out those of another", async (t) => {
  const { id } = await createUser();
  await record(id, "password_changed");
  for (let count = 0; count < 25; count++) await record(id, "new_device");
  const kinds = await kindsOf(id);
  t.is(kinds.filter((kind) => kind === "new_device").length, 20);
  t.true(kinds.includes("password_changed"));
});

test.serial("notices are deleted with the account, and after 90 days", async (t) => {
  const [deleted, kept] = [await createUser(), await createUser()];
  for (const { id } of [deleted, kept]) await record(id, "new_device");
  await first.accountDeletions.deleteAccount(deleted.id, { id: deleted.id });
  t.deepEqual(await kindsOf(deleted.id), []);
  advanceClock(89 * 24 * 3600_000);
  t.deepEqual(await kindsOf(kept.id), ["new_device"]);
  advanceClock(25 * 3600_000);
  t.deepEqual(await kindsOf(kept.id), []);
  await first.purgeExpired();
  t.is((await knex("notices").where({ user_id: kept.id })).length, 0);
});
