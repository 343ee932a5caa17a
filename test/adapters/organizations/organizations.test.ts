import test from "ava";
import { lockOrganization } from "../../../adapters/locks.ts";
import type { Role } from "../../../adapters/organizations/store.ts";
import { MAX_TRUST_RULES, type NewTrustRule } from "../../../adapters/organizations/trust-rules.ts";
import { type EventType, OPERATOR } from "../../../resources/events/types.ts";
import { advanceClock } from "../../harness/clock.ts";
import { oldLinkId, storeManyLinks } from "../../harness/database/many-links.ts";
import { atOnce, createTestStorage, linkFields } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();

test.after.always(() => storage.close());

const { first, second, database } = storage;

const either = (index: number) => (index % 2 ? first : second);

test("concurrent upgrades create exactly one client", async (t) => {
  for (let round = 0; round < 10; round++) {
    const { organization } = await first.organizations.create("Racing", "free", OPERATOR);
    const answers = await atOnce(10, (index) =>
      either(index).organizations.setPlan(organization.id, index % 3 ? "growth" : "premium", OPERATOR),
    );
    const created = answers.flatMap((answer) => answer?.client ?? []);
    t.is(created.length, 1);
    t.is(answers.filter(Boolean).length, 10);
    t.is(
      (await second.clients.findByOrganization(organization.id))?.clientId,
      created[0]?.clientId as string,
    );
    t.is((await database.knex("clients").where({ organization_id: organization.id })).length, 1);
  }
});

test("an upgrade after a downgrade keeps the client and its secret", async (t) => {
  const { organization, client } = await first.organizations.create("Back", "growth", OPERATOR);
  await second.organizations.setPlan(organization.id, "free", OPERATOR);
  t.deepEqual(await first.organizations.setPlan(organization.id, "premium", OPERATOR), {
    organization: { ...organization, plan: "premium" },
  });
  const found = await second.clients.find(client?.clientId as string);
  t.is(found?.secrets.length, 1);
  t.is(found?.organization.plan, "premium");
});

test("creating an organization with an unknown owner fails completely", async (t) => {
  await t.throwsAsync(first.organizations.create("Ownerless", "growth", OPERATOR, "usr_unknown"));
  t.false((await second.organizations.list()).some(({ name }) => name === "Ownerless"));
  t.deepEqual(
    await database
      .knex("clients as c")
      .leftJoin("organizations as o", "o.id", "c.organization_id")
      .whereNull("o.id"),
    [],
  );
});

test("concurrent creations of a username, in any case, succeed exactly once", async (t) => {
  const answers = await atOnce(10, (index) =>
    either(index).accounts.create(index % 3 ? "Racer" : "rACER", "a hash", OPERATOR),
  );
  t.is(answers.filter(Boolean).length, 1);
});

test("concurrent uses of a reset token set exactly one password", async (t) => {
  const user = await first.accounts.create("forgetful", "old", OPERATOR);
  const token = await first.accounts.createResetToken(user?.id as string, 60_000);
  const answers = await atOnce(10, (index) => either(index).accounts.resetPassword(token, `hash-${index}`));
  const winner = answers.indexOf(true);
  t.is(answers.filter(Boolean).length, 1);
  t.is((await second.accounts.find(user?.id as string))?.passwordHash, `hash-${winner}`);
});

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
  const { token } = await first.invitations.create({
    organizationId,
    role: "owner",
    lifetimeMs: LIFETIME_MS,
    actor: { id: eve },
  });
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
  const { token } = await first.invitations.create({
    organizationId,
    role: "owner",
    lifetimeMs: LIFETIME_MS,
    actor: { id: eve },
  });
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

const RULE: NewTrustRule = {
  name: "Deploy",
  issuer: "https://issuer.example",
  subject: "repo:octo-org/octo-repo:*",
  audience: "https://links.example",
  claims: { repository_owner_id: "65" },
  scopes: ["links:read", "webhooks:write"],
};

async function createOrganization(): Promise<string> {
  return (await first.organizations.create("Team", "growth", OPERATOR)).organization.id;
}

async function createRule(organizationId: string, changes: Partial<NewTrustRule> = {}): Promise<string> {
  const created = await first.trustRules.create(organizationId, { ...RULE, ...changes }, OPERATOR);
  if (typeof created === "string") throw new Error(created);
  return created.id;
}

const eventsOf = (organizationId: string, type: string) =>
  database.knex("events").where({ organization_id: organizationId, type: type as "trust_rule.created" });

test("a rule is stored with who created it, and listed oldest first", async (t) => {
  const organizationId = await createOrganization();
  const user = await first.accounts.create("ada", "a hash", OPERATOR);
  const actor = { id: user?.id as string };
  const created = await first.trustRules.create(organizationId, RULE, actor);
  const id = await createRule(organizationId, { name: "Second" });
  const rules = await second.trustRules.list(organizationId);
  t.deepEqual(rules[0], created as (typeof rules)[0]);
  t.like(rules[0], { ...RULE, createdBy: "ada", lastUsedAt: null });
  t.like(rules[1], { id, name: "Second", createdBy: "operator" });
});

test("concurrent additions never exceed the limit", async (t) => {
  const organizationId = await createOrganization();
  const attempts = Array.from({ length: MAX_TRUST_RULES + 5 }, (_, index) =>
    [first, second][index % 2]?.trustRules.create(organizationId, RULE, OPERATOR),
  );
  const created = await Promise.all(attempts);
  t.is(created.filter((one) => one === "limit").length, 5);
  t.is((await first.trustRules.list(organizationId)).length, MAX_TRUST_RULES);
  t.is((await eventsOf(organizationId, "trust_rule.created")).length, MAX_TRUST_RULES);
});

test("of several concurrent deletions, one succeeds and is recorded", async (t) => {
  const organizationId = await createOrganization();
  const id = await createRule(organizationId);
  const deleted = await Promise.all(
    [first, second, first, second].map(({ trustRules }) => trustRules.remove(organizationId, id, OPERATOR)),
  );
  t.is(deleted.filter(Boolean).length, 1);
  const events = await eventsOf(organizationId, "trust_rule.deleted");
  t.is(events.length, 1);
  t.deepEqual(JSON.parse(events[0]?.data ?? ""), { trust_rule_id: id, ...RULE });
});

test("issuers are compared exactly", async (t) => {
  const organizationId = await createOrganization();
  const id = await createRule(organizationId);
  const idsOf = async (issuer: string) =>
    (await first.trustRules.listByIssuer(organizationId, issuer)).map((rule) => rule.id);
  t.deepEqual(await idsOf(RULE.issuer), [id]);
  for (const issuer of ["https://ISSUER.example", `${RULE.issuer} `, `${RULE.issuer}/`, "", "%"]) {
    t.deepEqual(await idsOf(issuer), [], issuer);
  }
});

test("a rule of another organization is neither listed nor deleted", async (t) => {
  const [own, other] = [await createOrganization(), await createOrganization()];
  const id = await createRule(other);
  t.deepEqual(await first.trustRules.list(own), []);
  t.deepEqual(await first.trustRules.listByIssuer(own, RULE.issuer), []);
  t.false(await first.trustRules.remove(own, id, OPERATOR));
  t.is((await first.trustRules.list(other)).length, 1);
});

test("a deleted organization has no rules and gets no new ones", async (t) => {
  const organizationId = await createOrganization();
  await createRule(organizationId);
  await first.organizations.remove(organizationId, OPERATOR);
  t.deepEqual(await first.trustRules.list(organizationId), []);
  t.is(await first.trustRules.create(organizationId, RULE, OPERATOR), "missing");
});

test("the last use of several rules is recorded", async (t) => {
  const organizationId = await createOrganization();
  const ids = [await createRule(organizationId), await createRule(organizationId)];
  await createRule(organizationId);
  await first.trustRules.markUsed(ids, 1_700_000_000_000);
  const used = (await second.trustRules.list(organizationId)).map(({ lastUsedAt }) => lastUsedAt);
  t.deepEqual(used, [1_700_000_000_000, 1_700_000_000_000, null]);
});

const { knex } = database;

const COUNT = 5000;
const CONTENT = { title: "a secret title", tags: ["secret"], metadata: { secret: "yes" } };

/** Stores an organization with many links, one of which has changed since. */
async function createLarge(): Promise<string> {
  const { organization } = await first.organizations.create("Large", "premium", OPERATOR);
  const { id } = organization;
  const prefix = (number: number) => `${id.slice(-8)}-external-${number}`;
  await storeManyLinks(knex, id, COUNT, (number) => ({ ...CONTENT, externalId: prefix(number) }));
  await knex("organization_usage").where({ organization_id: id }).update({ links: COUNT });
  await first.links.update(id, oldLinkId(7), { title: "another secret title" }, OPERATOR);
  return id;
}

const rowsOf = (table: "links" | "organization_usage", id: string) =>
  knex(table).where({ organization_id: id });
const contentOf = (id: string) =>
  rowsOf("links", id).where((content) =>
    content
      .whereNotNull("title")
      .orWhereNotNull("external_id")
      .orWhereNot({ tags: "" })
      .orWhereNot({ metadata: "{}" })
      .orWhereNot({ searched: "" }),
  );

test.serial("the content of a deleted organization's links is erased, and no other", async (t) => {
  const id = await createLarge();
  const { organization: other } = await first.organizations.create("Kept", "premium", OPERATOR);
  const fields = linkFields({ slug: "kept", ...CONTENT, externalId: "kept" });
  const kept = await first.links.create(other.id, OPERATOR, fields);
  await first.organizations.remove(id, OPERATOR);

  await first.purgeExpired();
  t.is((await contentOf(id)).length, COUNT, "requests that write a link may not have ended yet");

  advanceClock(61_000);
  const stopping = new AbortController();
  const stop = second.onStatement((sql) => /^update .links/.test(sql) && stopping.abort());
  await second.purgeExpired(stopping.signal);
  stop();
  const left = (await contentOf(id)).length;
  t.true(left > 0 && left < COUNT, "a purge that is stopped ends after a batch");

  await first.purgeExpired();
  t.deepEqual(await contentOf(id), []);
  t.deepEqual(await rowsOf("organization_usage", id), []);
  t.is((await rowsOf("links", id).whereNotNull("deleted_at")).length, COUNT);
  if (!("id" in kept)) return t.fail();
  t.like(await first.links.find(other.id, kept.id), { ...CONTENT, externalId: "kept" });

  const slug = `${id.slice(-8)}-5`;
  const created = await first.links.create(other.id, OPERATOR, linkFields({ slug }));
  t.false("id" in created, "its slug is never reused");
});

test.serial("an erased organization costs later purges no writes", async (t) => {
  const statements: string[] = [];
  t.teardown(first.onStatement((sql) => statements.push(sql)));
  await first.purgeExpired();
  t.deepEqual(
    statements.filter((sql) => /^(update|delete from) .(links|organization_usage)/.test(sql)),
    [],
  );
});
