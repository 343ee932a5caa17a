import test, { type ExecutionContext } from "ava";
import type { Knex } from "knex";
import { lockOrganization } from "../../../adapters/locks.ts";
import { addMember } from "../../../adapters/organizations/store.ts";
import { ROLES, type Role } from "../../../resources/access/scopes.ts";
import { atOnce, createTestStorage, OPERATOR } from "../../harness/database/storage.ts";

export const databases = "all";

const { first, second, either, database, knex, createOrganization, createUser } = await createTestStorage();

const ROUNDS = 5;
const OLD = "a hash";

async function createTeam() {
  const organizationId = await createOrganization("free");
  const ada = await createUser(organizationId, "owner");
  const eve = await createUser(organizationId, "owner");
  return { organizationId, ada, eve, user: await createUser(organizationId) };
}

type Team = Awaited<ReturnType<typeof createTeam>>;

const createLink = ({ organizationId, ada, user }: Team, by = first) =>
  by.accounts.createResetTokenAsOwner(user, 60_000, { organizationId, actor: { id: ada } });

async function withLink() {
  const team = await createTeam();
  const created = await createLink(team);
  if ("refused" in created) throw new Error(created.refused);
  return { ...team, token: created.token };
}

const hashOf = async (user: string) => (await second.accounts.find(user))?.passwordHash;

async function assertRejected(t: ExecutionContext, token: string, user: string) {
  t.is(await first.accounts.findByResetToken(token), undefined);
  t.false(await second.accounts.resetPassword(token, "stolen"));
  t.is(await hashOf(user), OLD);
}

const membershipOf = (user_id: string) => knex("memberships").where({ user_id });
const userRow = (id: string) => knex("users").where({ id });

// Written without the stores, which would also revoke the link.
const CHANGES: Record<string, (team: Team) => Promise<unknown>> = {
  "its creator is an admin": ({ ada }) => membershipOf(ada).update({ role: "admin" }),
  "its creator has left": ({ ada }) => membershipOf(ada).delete(),
  "its creator is disabled": ({ ada }) => userRow(ada).update({ disabled_at: Date.now() }),
  "its creator no longer exists": ({ ada }) => userRow(ada).delete(),
  "the user belongs to no organization": ({ user }) => membershipOf(user).delete(),
  "the user belongs to another organization as well": async ({ user: user_id }) => {
    const organization_id = await createOrganization("free");
    const membership = { user_id, organization_id, role: "owner" as const, created_at: Date.now() };
    await knex("memberships").insert(membership);
  },
  "the user belongs only to another organization of its creator": async ({ user, ada }) => {
    const { organization } = await first.organizations.create("Other", "free", OPERATOR, ada);
    await membershipOf(user).update({ organization_id: organization.id });
  },
  "its creator is not recorded": ({ user }) =>
    knex("one_time_links").where({ user_id: user }).update({ created_by: null }),
};

for (const [condition, change] of Object.entries(CHANGES))
  test(`a reset link is rejected if ${condition}`, async (t) => {
    const team = await withLink();
    t.is((await second.accounts.findByResetToken(team.token))?.id, team.user);
    await change(team);
    await assertRejected(t, team.token, team.user);
  });

const add = (organizationId: string, userId: string) =>
  first.organizations.addMember(organizationId, userId, "owner", OPERATOR);
const remove = (organizationId: string, userId: string) =>
  first.members.remove({ organizationId, userId, manageableRoles: ROLES, actor: OPERATOR });
const setRole = (organizationId: string, userId: string, role: Role) =>
  first.members.changeRole({ organizationId, userId, role, manageableRoles: ROLES, actor: OPERATOR });

// What the state of the database no longer shows.
const ENDS: Record<string, (team: Team) => Promise<unknown>> = {
  "the user creates an organization and leaves the first one": async ({ organizationId, user }) => {
    await first.organizations.create("Own", "free", { id: user }, user);
    await remove(organizationId, user);
  },
  "the user leaves and comes back": async ({ organizationId, user }) => {
    await remove(organizationId, user);
    await add(organizationId, user);
  },
  "the user joins another organization and leaves it": async ({ user }) => {
    const { organizationId: other } = await createTeam();
    await add(other, user);
    await remove(other, user);
  },
  "the organization is deleted": ({ organizationId }) => first.organizations.remove(organizationId, OPERATOR),
  "its creator loses the owner role and gets it back": async ({ organizationId, ada }) => {
    await setRole(organizationId, ada, "member");
    await setRole(organizationId, ada, "owner");
  },
  "the account of its creator is deleted": ({ ada }) =>
    first.accountDeletions.deleteAccount(ada, { id: ada }),
};

for (const [what, change] of Object.entries(ENDS))
  test(`a reset link that an owner created is no longer valid after ${what}`, async (t) => {
    const team = await withLink();
    await change(team);
    await assertRejected(t, team.token, team.user);
  });

test("a reset link stays valid while its creator owns every organization of the user", async (t) => {
  const { organizationId, ada, eve, user, token } = await withLink();
  const { organizationId: other } = await createTeam();
  await remove(organizationId, eve);
  await setRole(organizationId, user, "admin");
  await add(other, ada);
  await remove(other, ada);
  t.true(await second.accounts.resetPassword(token, "new"));
});

test("a reset link of the operator does not depend on organizations", async (t) => {
  const { organizationId, user } = await createTeam();
  const token = await first.accounts.createResetToken(user, 60_000);
  await first.organizations.create("Own", "free", { id: user }, user);
  await remove(organizationId, user);
  t.true(await second.accounts.resetPassword(token, "new"));
});

test("a reset link created while its user joins another organization is rejected", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const team = await createTeam();
    const [created] = await Promise.all([
      createLink(team, first),
      second.organizations.create("Own", "free", OPERATOR, team.user),
    ]);
    if ("token" in created) await assertRejected(t, created.token, team.user);
    else t.deepEqual(created, { refused: "not_owner" });
    t.deepEqual(await createLink(team, second), { refused: "not_owner" });
  }
});

// Uncommitted changes that hold their locks.
const PENDING: Record<string, (trx: Knex.Transaction, team: Team, other: string) => Promise<unknown>> = {
  "a new membership of its user": (trx, { user }, other) =>
    addMember(
      { trx, actor: OPERATOR, async record() {} },
      { userId: user, organizationId: other, role: "member" },
    ),
  "a demotion of its creator": async (trx, { organizationId, ada }) => {
    await lockOrganization(trx, organizationId);
    await trx("memberships").where({ user_id: ada }).update({ role: "admin" });
  },
};

for (const [condition, change] of Object.entries(PENDING))
  test(`redeeming a reset link waits for ${condition} and then fails`, async (t) => {
    const team = await withLink();
    const other = await createOrganization("free");
    let using = Promise.resolve(true);
    await database.transaction(async (trx) => {
      await change(trx, team, other);
      using = first.accounts.resetPassword(team.token, "new");
      for (let poll = 0; poll < 20; poll++) t.is(await hashOf(team.user), OLD);
    });
    t.false(await using);
    t.is(await hashOf(team.user), OLD);
  });

test("concurrent uses of an owner's reset link in two processes succeed exactly once", async (t) => {
  const { user, token } = await withLink();
  const answers = await atOnce(10, (index) => either(index).accounts.resetPassword(token, `hash-${index}`));
  t.is(answers.filter(Boolean).length, 1);
  t.is(await hashOf(user), `hash-${answers.indexOf(true)}`);
});

test("concurrent changes of reset links, roles and memberships do not deadlock", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const team = await withLink();
    const { organizationId, ada, eve, user, token } = team;
    const { organization: other } = await first.organizations.create("Other", "free", OPERATOR, ada);
    const created = await first.accounts.createResetToken(user, 60_000);
    const results = await Promise.allSettled([
      first.accounts.resetPassword(token, "new"),
      second.accounts.resetPassword(created, "newer"),
      createLink(team, second),
      second.organizations.addMember(other.id, user, "member", OPERATOR),
      first.organizations.create("Own", "free", OPERATOR, user),
      first.members.remove({ organizationId, userId: user, manageableRoles: ["member"], actor: { id: eve } }),
      second.accountDeletions.deleteAccount(ada, { id: ada }),
      first.organizations.remove(other.id, OPERATOR),
      second.accounts.changePassword({ currentHash: "old", newHash: "newest" }, "", { id: user }),
    ]);
    for (const one of results) t.is(one.status === "rejected" ? String(one.reason) : undefined, undefined);
  }
});
