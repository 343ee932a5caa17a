import test from "ava";
import { lockOrganization, type Role } from "../../adapters/organizations.ts";
import { OPERATOR } from "../../resources/events.ts";
import { createTestStorage } from "../harness/storage.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

const LIFETIME_MS = 60_000;
let count = 0;

async function createUser(membership?: { organizationId: string; role: Role }): Promise<string> {
  const user = await first.accounts.create(`user${++count}`, "a hash", OPERATOR, membership);
  return user?.id as string;
}

/** An organization with two owners, and an invitation of the second one to be an owner. */
async function createTeam() {
  const { organization } = await first.organizations.create("Team", "free", OPERATOR);
  const organizationId = organization.id;
  const ada = await createUser({ organizationId, role: "owner" });
  const eve = await createUser({ organizationId, role: "owner" });
  const guest = await createUser();
  const { token } = await first.invitations.create(organizationId, "owner", LIFETIME_MS, { actor: eve });
  return { organizationId, ada, eve, guest, token };
}

type Team = Awaited<ReturnType<typeof createTeam>>;

const demote = ({ organizationId, ada, eve }: Team, by = second) =>
  by.members.changeRole({
    organizationId,
    userId: eve,
    touches: ["owner"],
    role: "admin",
    by: { actor: ada },
  });

const ownersOf = async ({ organizationId }: Team) =>
  (await second.members.list(organizationId)).filter(({ role }) => role === "owner").map(({ id }) => id);

/** When a change was recorded; changes of one organization follow one another. */
const timeOf = async ({ organizationId }: Team, type: string, subject: string): Promise<number> =>
  (await database.knex("events").where({ organization_id: organizationId, type, subject }).first())
    .created_at;

test("sec 112: an acceptance during the demotion of the creator comes before it or is refused", async (t) => {
  for (let round = 0; round < 20; round++) {
    const team = await createTeam();
    const [accepted, refusal] = await Promise.all([
      first.invitations.accept(team.token, { actor: team.guest }),
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

test("sec 112: an acceptance waits for a demotion that is not committed, and is then refused", async (t) => {
  const team = await createTeam();
  let accepting: Promise<unknown> = Promise.resolve(true);
  await database.transaction(async (trx) => {
    await lockOrganization(trx, team.organizationId);
    await trx("memberships").where({ user_id: team.eve }).update({ role: "admin" });
    accepting = first.invitations.accept(team.token, { actor: team.guest });
    for (let look = 0; look < 20; look++) t.is((await ownersOf(team)).length, 2);
  });
  t.is(await accepting, undefined);
  t.deepEqual(await ownersOf(team), [team.ada]);
});

test("sec 112: a registration with the invitation of a demoted owner is refused", async (t) => {
  const team = await createTeam();
  const { organizationId, eve } = team;
  await demote(team);
  const { token } = await first.invitations.create(organizationId, "owner", LIFETIME_MS, { actor: eve });
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
