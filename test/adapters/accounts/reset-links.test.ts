import test, { type ExecutionContext } from "ava";
import type { Knex } from "knex";
import { lockOrganization } from "../../../adapters/locks.ts";
import { addMember, type Role } from "../../../adapters/organizations/store.ts";
import { type EventType, OPERATOR } from "../../../resources/events/types.ts";
import { atOnce, createTestStorage } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

const LIFETIME_MS = 60_000;
const ROUNDS = 10;
const OLD = "the old hash";
let count = 0;

type Membership = { organizationId: string; role: Role };

async function createUser(membership?: Membership): Promise<string> {
  const user = await first.accounts.create(`user${++count}`, OLD, OPERATOR, membership);
  return user?.id as string;
}

/** Creates an organization with two owners, `ada` and `eve`, and a member, `user`. */
async function createTeam() {
  const { organization } = await first.organizations.create("Team", "free", OPERATOR);
  const organizationId = organization.id;
  const [ada, eve] = [
    await createUser({ organizationId, role: "owner" }),
    await createUser({ organizationId, role: "owner" }),
  ];
  const user = await createUser({ organizationId, role: "member" });
  return { organizationId, ada, eve, user };
}

type Team = Awaited<ReturnType<typeof createTeam>>;

const createLink = ({ organizationId, ada, user }: Team, by = first) =>
  by.accounts.createResetTokenAsOwner(user, LIFETIME_MS, { organizationId, actor: { id: ada } });

async function withLink() {
  const team = await createTeam();
  const created = await createLink(team);
  if ("refused" in created) throw new Error(created.refused);
  return { ...team, token: created.token };
}

const hashOf = async (user: string) => (await second.accounts.find(user))?.passwordHash;
const eventsOf = (organization_id: string, type: EventType) =>
  database.knex("events").where({ organization_id, type });

async function assertRejected(t: ExecutionContext, token: string, user: string) {
  t.is(await first.accounts.findByResetToken(token), undefined);
  t.false(await second.accounts.resetPassword(token, "stolen"));
  t.is(await hashOf(user), OLD);
}

// Written without the stores, which would also revoke the link.
const CHANGES: Record<string, (team: Team) => Promise<unknown>> = {
  "its creator is an admin": ({ ada }) =>
    database.knex("memberships").where({ user_id: ada }).update({ role: "admin" }),
  "its creator has left": ({ ada }) => database.knex("memberships").where({ user_id: ada }).delete(),
  "its creator is disabled": ({ ada }) =>
    database.knex("users").where({ id: ada }).update({ disabled_at: Date.now() }),
  "its creator no longer exists": ({ ada }) => database.knex("users").where({ id: ada }).delete(),
  "the user belongs to no organization": ({ user }) =>
    database.knex("memberships").where({ user_id: user }).delete(),
  "the user belongs to another organization as well": async ({ user }) => {
    const { organization } = await first.organizations.create("Other", "free", OPERATOR);
    await database.knex("memberships").insert({
      user_id: user,
      organization_id: organization.id,
      role: "owner",
      created_at: Date.now(),
    });
  },
  "the user belongs only to another organization of its creator": async ({ user, ada }) => {
    const { organization } = await first.organizations.create("Other", "free", OPERATOR, ada);
    await database.knex("memberships").where({ user_id: user }).update({ organization_id: organization.id });
  },
  "its creator is not recorded": ({ user }) =>
    database.knex("one_time_links").where({ user_id: user }).update({ created_by: null }),
};

for (const [condition, change] of Object.entries(CHANGES)) {
  test(`a reset link is rejected if ${condition}`, async (t) => {
    const team = await withLink();
    t.is((await second.accounts.findByResetToken(team.token))?.id, team.user);
    await change(team);
    await assertRejected(t, team.token, team.user);
  });
}

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

test("redeeming a reset link while its user creates an organization happens before or fails", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const { user, token, organizationId } = await withLink();
    const [isUsed, { organization }] = await Promise.all([
      first.accounts.resetPassword(token, "new"),
      second.organizations.create("Own", "free", OPERATOR, user),
    ]);
    t.is(await hashOf(user), isUsed ? "new" : OLD);
    t.is((await eventsOf(organizationId, "member.password_changed")).length, isUsed ? 1 : 0);
    t.deepEqual(await eventsOf(organization.id, "member.password_changed"), []);
  }
});

test("redeeming a reset link while its creator is demoted happens before or fails", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const { user, ada, eve, token, organizationId } = await withLink();
    const [isUsed, refusal] = await Promise.all([
      first.accounts.resetPassword(token, "new"),
      second.members.changeRole({
        organizationId,
        userId: ada,
        manageableRoles: ["owner"],
        role: "member",
        actor: { id: eve },
      }),
    ]);
    t.is(refusal, undefined);
    t.is(await hashOf(user), isUsed ? "new" : OLD);
    const [changed] = await eventsOf(organizationId, "member.password_changed");
    const [demoted] = await eventsOf(organizationId, "member.role_changed");
    t.is(changed !== undefined, isUsed);
    if (changed && demoted) t.true(changed.created_at <= demoted.created_at);
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

for (const [condition, change] of Object.entries(PENDING)) {
  test(`redeeming a reset link waits for ${condition} and then fails`, async (t) => {
    const team = await withLink();
    const { organization } = await first.organizations.create("Other", "free", OPERATOR);
    let using = Promise.resolve(true);
    await database.transaction(async (trx) => {
      await change(trx, team, organization.id);
      using = first.accounts.resetPassword(team.token, "new");
      for (let poll = 0; poll < 20; poll++) t.is(await hashOf(team.user), OLD);
    });
    t.false(await using);
    t.is(await hashOf(team.user), OLD);
  });
}

test("concurrent uses of an owner's reset link in two processes succeed exactly once", async (t) => {
  const { user, token } = await withLink();
  const answers = await atOnce(10, (index) =>
    (index % 2 ? first : second).accounts.resetPassword(token, `hash-${index}`),
  );
  t.is(answers.filter(Boolean).length, 1);
  t.is(await hashOf(user), `hash-${answers.indexOf(true)}`);
});

test("concurrent changes of reset links, roles and memberships do not deadlock", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const team = await withLink();
    const { organizationId, ada, eve, user, token } = team;
    const { organization: other } = await first.organizations.create("Other", "free", OPERATOR, ada);
    const created = await first.accounts.createResetToken(user, LIFETIME_MS);
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
    t.deepEqual(
      results.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : [])),
      [],
    );
  }
});
