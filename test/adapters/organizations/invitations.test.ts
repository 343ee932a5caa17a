import test from "ava";
import { lockOrganization, type Role } from "../../../adapters/organizations/store.ts";
import { type EventType, OPERATOR } from "../../../resources/events/types.ts";
import { createTestStorage } from "../../harness/database/storage.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

const LIFETIME_MS = 60_000;
let count = 0;

async function createUser(membership?: { organizationId: string; role: Role }): Promise<string> {
  const user = await first.accounts.create(`user${++count}`, "a hash", OPERATOR, membership);
  return user?.id as string;
}

/** Creates an organization with two owners, and an invitation by the second one to become an owner. */
async function createTeam() {
  const { organization } = await first.organizations.create("Team", "free", OPERATOR);
  const organizationId = organization.id;
  const ada = await createUser({ organizationId, role: "owner" });
  const eve = await createUser({ organizationId, role: "owner" });
  const guest = await createUser();
  const { token } = await first.invitations.create(organizationId, "owner", LIFETIME_MS, { id: eve });
  return { organizationId, ada, eve, guest, token };
}

type Team = Awaited<ReturnType<typeof createTeam>>;

const demote = ({ organizationId, ada, eve }: Team, by = second) =>
  by.members.changeRole({
    organizationId,
    userId: eve,
    manageableRoles: ["owner"],
    role: "admin",
    actor: { id: ada },
  });

const ownersOf = async ({ organizationId }: Team) =>
  (await second.members.list(organizationId)).filter(({ role }) => role === "owner").map(({ id }) => id);

/** Returns when a change was recorded. Changes of one organization are serialized. */
const timeOf = async ({ organizationId }: Team, type: EventType, subject: string): Promise<number> => {
  const event = { organization_id: organizationId, type, subject };
  return Number((await database.knex("events").where(event).first())?.created_at);
};

test("accepting an invitation while its creator is demoted happens before or fails", async (t) => {
  for (let round = 0; round < 20; round++) {
    const team = await createTeam();
    const [accepted, refusal] = await Promise.all([
      first.invitations.accept(team.token, { id: team.guest }),
      demote(team),
    ]);
    t.is(refusal, undefined);
    const owners = [team.ada, ...(accepted ? [team.guest] : [])];
    t.deepEqual((await ownersOf(team)).sort(), owners.sort());
    if (!accepted) continue;
    const [added, demoted] = [
      await timeOf(team, "member.added", team.guest),
      await timeOf(team, "member.role_changed", team.eve),
    ];
    t.true(added <= demoted);
  }
});

test("accepting an invitation waits for an uncommitted demotion of its creator and then fails", async (t) => {
  const team = await createTeam();
  let accepting: Promise<unknown> = Promise.resolve(true);
  await database.transaction(async (trx) => {
    await lockOrganization(trx, team.organizationId);
    await trx("memberships").where({ user_id: team.eve }).update({ role: "admin" });
    accepting = first.invitations.accept(team.token, { id: team.guest });
    for (let poll = 0; poll < 20; poll++) t.is((await ownersOf(team)).length, 2);
  });
  t.is(await accepting, undefined);
  t.deepEqual(await ownersOf(team), [team.ada]);
});

test("a registration with an invitation by a demoted owner fails", async (t) => {
  const team = await createTeam();
  const { organizationId, eve } = team;
  await demote(team);
  const { token } = await first.invitations.create(organizationId, "owner", LIFETIME_MS, { id: eve });
  for (const invitation of [team.token, token]) {
    const registration = { username: `newcomer${++count}`, passwordHash: "a hash", address: "::1" };
    const registered = await second.registrations.register({
      ...registration,
      organizationName: "Own",
      invitation,
    });
    t.is(registered, "uninvited");
    t.is(await first.accounts.findByUsername(registration.username), undefined);
  }
  t.deepEqual(await ownersOf(team), [team.ada]);
});
