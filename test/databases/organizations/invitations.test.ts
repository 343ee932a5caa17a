import test from "ava";
import { lockOrganization } from "../../../adapters/locks.ts";
import { ROLES } from "../../../resources/access/scopes.ts";
import { atOnce, createTestStorage, OPERATOR } from "../../harness/database/storage.ts";

export const databases = "all";

const { first, second, either, database, knex, createOrganization, createUser } = await createTestStorage();
const { invitations, members } = first;

type Role = (typeof ROLES)[number];

async function createTeam() {
  const organizationId = await createOrganization("growth");
  const ada = await createUser(organizationId, "owner");
  const eve = await createUser(organizationId, "owner");
  const admin = await createUser(organizationId, "admin");
  return {
    organizationId,
    ada,
    eve,
    admin,
    invite: (id: string, role: Role) =>
      invitations.create({ organizationId, role, lifetimeMs: 60_000, actor: { id } }),
    setRole: (userId: string, role: Role) =>
      members.changeRole({ organizationId, userId, role, manageableRoles: ROLES, actor: { id: ada } }),
    remove: (userId: string) =>
      members.remove({ organizationId, userId, manageableRoles: ROLES, actor: { id: ada } }),
    ownersOf: async () =>
      (await second.members.list(organizationId)).filter(({ role }) => role === "owner").length,
  };
}

type Team = Awaited<ReturnType<typeof createTeam>>;

async function isValid(token: string): Promise<boolean> {
  const guest = await createUser();
  const found = await invitations.find(token);
  const accepted = await second.invitations.accept(token, { id: guest });
  if (Boolean(found) !== Boolean(accepted)) throw new Error("found, but not accepted");
  return accepted !== undefined;
}

test("concurrent acceptances of one invitation in two processes succeed exactly once", async (t) => {
  const { organizationId, ada, invite } = await createTeam();
  const { token } = await invite(ada, "member");
  const guests = await atOnce(10, () => createUser());
  const accepted = await atOnce(10, (index) =>
    either(index).invitations.accept(token, { id: guests[index] ?? "" }),
  );
  t.is(accepted.filter(Boolean).length, 1);
  t.is((await members.list(organizationId)).length, 4);
});

test("concurrent acceptances by one user of two invitations add one membership", async (t) => {
  const { organizationId, ada, eve, invite } = await createTeam();
  const [invited, guest] = [[await invite(ada, "owner"), await invite(eve, "owner")], await createUser()];
  const answers = await atOnce(2, (index) =>
    either(index).invitations.accept(String(invited[index]?.token), { id: guest }),
  );
  t.deepEqual(answers.map((answer) => answer?.isNew).sort(), [false, true]);
  t.is((await second.members.list(organizationId)).filter(({ id }) => id === guest).length, 1);
  t.is((await knex("events").where({ organization_id: organizationId, subject: guest })).length, 1);
});

test("accepting an invitation waits for an uncommitted demotion of its creator and then fails", async (t) => {
  const { organizationId, eve, invite, ownersOf } = await createTeam();
  const [{ token }, guest] = [await invite(eve, "owner"), await createUser()];
  let accepting: Promise<unknown> = Promise.resolve(true);
  await database.transaction(async (trx) => {
    await lockOrganization(trx, organizationId);
    await trx("memberships").where({ user_id: eve }).update({ role: "admin" });
    accepting = invitations.accept(token, { id: guest });
    for (let poll = 0; poll < 20; poll++) t.is(await ownersOf(), 2);
  });
  t.is(await accepting, undefined);
  t.is(await ownersOf(), 1);
});

test("a registration with an invitation by a demoted owner fails", async (t) => {
  const { eve, invite, setRole, ownersOf } = await createTeam();
  const before = await invite(eve, "owner");
  await setRole(eve, "admin");
  for (const [index, { token: invitation }] of [before, await invite(eve, "owner")].entries()) {
    const user = { username: `newcomer${index}`, passwordHash: "a hash", address: "::1" };
    const registered = await second.registrations.register({ ...user, organizationName: "Own", invitation });
    t.is(registered, "uninvited");
    t.is(await first.accounts.findByUsername(user.username), undefined);
  }
  t.is(await ownersOf(), 1);
});

test("a member who opens an invitation neither gets its role nor uses it up", async (t) => {
  const { admin, ada, invite, ownersOf } = await createTeam();
  const { token } = await invite(ada, "owner");
  t.like(await invitations.accept(token, { id: admin }), { isNew: false });
  t.is(await ownersOf(), 2);
  t.true(await isValid(token));
  t.is(await ownersOf(), 3);
});

const ENDS: Record<string, (team: Team, id: string) => Promise<unknown>> = {
  "that was revoked": ({ organizationId, ada }, id) =>
    invitations.revoke(organizationId, id, ROLES, { id: ada }),
  "of a deleted organization": ({ organizationId }) => first.organizations.remove(organizationId, OPERATOR),
  "of a suspended organization": ({ organizationId }) =>
    first.suspensions.suspend(organizationId, null, OPERATOR),
  "of a removed admin": ({ remove, admin }) => remove(admin),
  "of an admin who becomes a member": ({ setRole, admin }) => setRole(admin, "member"),
};

for (const [what, end] of Object.entries(ENDS))
  test(`an invitation ${what} is rejected`, async (t) => {
    const team = await createTeam();
    const { token, invitation } = await team.invite(team.admin, "member");
    t.truthy(await invitations.find(token));
    await end(team, invitation.id);
    t.false(await isValid(token));
  });

for (const [to, stay] of [
  ["admin", ["admin", "member"]],
  ["member", []],
] as [to: Role, stay: Role[]][])
  test(`invitations of an owner who becomes ${to} stay valid only for the roles that this role can grant`, async (t) => {
    const { organizationId, eve, invite, setRole, ownersOf } = await createTeam();
    const invited = [];
    for (const role of ROLES) invited.push({ role, token: (await invite(eve, role)).token });
    t.is(await setRole(eve, to), undefined);
    for (const { role, token } of invited) t.is(await isValid(token), stay.includes(role), role);
    t.is(await ownersOf(), 1);
    const event = { organization_id: organizationId, type: "invitation.revoked" as const };
    t.is((await knex("events").where(event)).length, ROLES.length - stay.length);
  });

test("invitations stay valid when another member's role changes, their creator gains one or is the operator", async (t) => {
  const { ada, eve, admin, invite, setRole } = await createTeam();
  const invited = [
    await invite(ada, "owner"),
    await invite(admin, "admin"),
    await invite(OPERATOR.id, "owner"),
  ];
  await setRole(eve, "member");
  await setRole(admin, "owner");
  for (const { token } of invited) t.true(await isValid(token));
});

test("an invitation that is created after its creator lost the role or left is rejected", async (t) => {
  const { admin, invite, setRole, remove } = await createTeam();
  const isOwnerInvited = async () => isValid((await invite(admin, "owner")).token);
  t.false(await isOwnerInvited(), "an admin");
  await setRole(admin, "member");
  t.false(await isOwnerInvited(), "a member");
  await remove(admin);
  t.false(await isOwnerInvited(), "not a member");
});
