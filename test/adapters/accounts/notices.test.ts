import test from "ava";
import { type NoticeKind, recordNotice } from "../../../adapters/accounts/notices.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestStorage } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

const ISSUER = "https://idp.example";
let users = 0;

async function createUser(username = `user-${++users}`) {
  const user = await first.accounts.create(username, "a hash", OPERATOR);
  return { ...(user as { id: string; username: string }), address: "192.0.2.7" };
}

function record(userId: string, kind: NoticeKind) {
  return database.transaction((trx) => recordNotice(trx, { userId, kind, data: { address: "192.0.2.9" } }));
}

async function kindsOf(userId: string): Promise<NoticeKind[]> {
  return (await second.notices.list(userId)).map(({ kind }) => kind);
}

test.serial("each change to how a user signs in leaves a notice that says from where", async (t) => {
  const user = await createUser();
  const actor = { id: user.id, address: user.address };
  const identity = { issuer: ISSUER, subject: user.id, label: null };
  await first.identities.link(user.id, identity, actor);
  await first.identities.unlink(user.id, identity, actor);
  await first.accounts.changePassword({ currentHash: "a hash", newHash: "another" }, "", actor);
  await first.accounts.resetPassword(
    await first.accounts.createResetToken(user.id, 60_000),
    "b",
    "192.0.2.8",
  );
  const expected = [
    { kind: "reset_link_used", data: { address: "192.0.2.8", by: "operator" } },
    { kind: "reset_link_created", data: { by: "operator" } },
    { kind: "password_changed", data: { address: "192.0.2.7" } },
    { kind: "identity_unlinked", data: { address: "192.0.2.7", name: ISSUER } },
    { kind: "identity_linked", data: { address: "192.0.2.7", name: ISSUER } },
  ];
  const listed = await second.notices.list(user.id);
  const shown: { kind: string; data: object }[] = listed.map(({ kind, data }) => ({ kind, data }));
  t.deepEqual(shown, expected);
});

test.serial("a notice of a reset link names the owner who created it", async (t) => {
  const [owner, member] = [await createUser(), await createUser()];
  const { organization } = await first.organizations.create("Works", "free", OPERATOR, owner.id);
  const invited = await first.invitations.create({
    organizationId: organization.id,
    role: "member",
    lifetimeMs: 60_000,
    actor: { id: owner.id },
  });
  await first.invitations.accept(invited.token, { id: member.id });
  const actor = { id: owner.id, address: owner.address };
  await first.accounts.createResetTokenAsOwner(member.id, 60_000, {
    organizationId: organization.id,
    actor,
  });
  const [notice] = await first.notices.list(member.id);
  t.is(notice?.kind, "reset_link_created");
  t.deepEqual(notice?.data, { by: owner.username, address: owner.address });
});

test.serial("a change that fails leaves no notice", async (t) => {
  const { id } = await createUser();
  await first.accounts.changePassword({ currentHash: "wrong", newHash: "another" }, "", { id });
  await first.identities.unlink(id, { issuer: ISSUER, subject: "unknown" }, { id });
  t.false(await first.accounts.resetPassword("unknown", "a hash"));
  t.deepEqual(await first.notices.list(id), []);
});

test.serial("a dismissed notice is no longer open, but remains listed", async (t) => {
  const { id } = await createUser();
  const other = await createUser();
  for (const kind of ["new_device", "password_changed"] as const) await record(id, kind);
  const [latest] = await first.notices.list(id, { open: true });
  t.false(await first.notices.dismiss(other.id, latest?.id));
  t.true(await first.notices.dismiss(id, latest?.id));
  t.false(await second.notices.dismiss(id, latest?.id));
  t.deepEqual(
    (await first.notices.list(id, { open: true })).map(({ kind }) => kind),
    ["new_device"],
  );
  t.true(await first.notices.dismiss(id));
  t.deepEqual(await first.notices.list(id, { open: true }), []);
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
  t.is((await database.knex("notices").where({ user_id: kept.id })).length, 0);
});
