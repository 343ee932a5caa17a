import test from "ava";
import { MAX_TRUST_RULES, type NewTrustRule } from "../../../adapters/organizations/trust-rules.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { createTestStorage } from "../../harness/database/storage.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

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
