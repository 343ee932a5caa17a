import test from "ava";
import { MAX_TRUST_RULES, type NewTrustRule } from "../../../adapters/organizations/trust-rules.ts";
import { advanceClock } from "../../harness/clock.ts";
import { oldLinkId, storeManyLinks } from "../../harness/database/many-links.ts";
import { atOnce, createTestStorage, linkFields, OPERATOR } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, either, knex, createOrganization } = storage;

test("concurrent upgrades create exactly one client", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { organization } = await first.organizations.create("Racing", "free", OPERATOR);
    const answers = await atOnce(10, (index) =>
      either(index).organizations.setPlan(organization.id, index % 3 ? "growth" : "premium", OPERATOR),
    );
    const created = answers.flatMap((answer) => answer?.client ?? []);
    t.is(created.length, 1);
    t.is(answers.filter(Boolean).length, 10);
    const client = await second.clients.findByOrganization(organization.id);
    t.is(client?.clientId, created[0]?.clientId as string);
    t.is((await knex("clients").where({ organization_id: organization.id })).length, 1);
  }
});

test("an organization whose owner doesn't exist isn't created", async (t) => {
  await t.throwsAsync(first.organizations.create("Ownerless", "growth", OPERATOR, "usr_unknown"));
  t.deepEqual(await knex("organizations").where({ name: "Ownerless" }), []);
});

const RULE: NewTrustRule = {
  name: "Deploy",
  issuer: "https://issuer.example",
  subject: "repo:octo-org/octo-repo:*",
  audience: "https://links.example",
  claims: { repository_owner_id: "65" },
  scopes: ["links:read", "webhooks:write"],
};

async function createRule(organizationId?: string) {
  const owner = organizationId ?? (await createOrganization());
  const created = await first.trustRules.create(owner, RULE, OPERATOR);
  if (typeof created === "string") throw new Error(created);
  return { organizationId: owner, id: created.id };
}

const eventsOf = (organizationId: string, type: string) =>
  knex("events").where({ organization_id: organizationId, type: type as "trust_rule.created" });

test("concurrent additions never exceed the limit", async (t) => {
  const organizationId = await createOrganization();
  const created = await atOnce(MAX_TRUST_RULES + 5, (index) =>
    either(index).trustRules.create(organizationId, RULE, OPERATOR),
  );
  t.is(created.filter((one) => one === "limit").length, 5);
  t.is((await first.trustRules.list(organizationId)).length, MAX_TRUST_RULES);
  t.is((await eventsOf(organizationId, "trust_rule.created")).length, MAX_TRUST_RULES);
});

test("of several concurrent deletions, one succeeds and is recorded", async (t) => {
  const { organizationId, id } = await createRule();
  const deleted = await atOnce(4, (index) => either(index).trustRules.remove(organizationId, id, OPERATOR));
  t.is(deleted.filter(Boolean).length, 1);
  const events = await eventsOf(organizationId, "trust_rule.deleted");
  t.is(events.length, 1);
  t.deepEqual(JSON.parse(events[0]?.data ?? ""), { trust_rule_id: id, ...RULE });
});

test("a rule is found by its exact issuer, and neither listed nor deleted by another organization", async (t) => {
  const [{ organizationId: own, id }, other] = [await createRule(), await createOrganization()];
  const idsOf = async (issuer: string, organizationId = own) =>
    (await first.trustRules.listByIssuer(organizationId, issuer)).map((rule) => rule.id);
  t.deepEqual(await idsOf(RULE.issuer), [id]);
  for (const issuer of ["https://ISSUER.example", `${RULE.issuer} `, `${RULE.issuer}/`, "", "%"])
    t.deepEqual(await idsOf(issuer), [], issuer);
  t.deepEqual(await idsOf(RULE.issuer, other), []);
  t.deepEqual(await first.trustRules.list(other), []);
  t.false(await first.trustRules.remove(other, id, OPERATOR));
  t.is((await first.trustRules.list(own)).length, 1);
});

test("a deleted organization has no rules and gets no new ones", async (t) => {
  const { organizationId } = await createRule();
  await first.organizations.remove(organizationId, OPERATOR);
  t.deepEqual(await first.trustRules.list(organizationId), []);
  t.is(await first.trustRules.create(organizationId, RULE, OPERATOR), "missing");
});

const COUNT = 2500;
const CONTENT = { title: "a secret title", tags: ["secret"], metadata: { secret: "yes" } };

async function createLarge(): Promise<string> {
  const id = await createOrganization("premium");
  const externalId = (number: number) => `${id.slice(-8)}-external-${number}`;
  await storeManyLinks(knex, id, COUNT, (number) => ({ ...CONTENT, externalId: externalId(number) }));
  await knex("organization_usage").where({ organization_id: id }).update({ links: COUNT });
  await first.links.update(id, oldLinkId(7), { title: "another secret title" }, OPERATOR);
  return id;
}

const ERASED = { title: null, external_id: null, tags: "", metadata: "{}", searched: "" };
const rowsOf = (table: "links" | "organization_usage", id: string) =>
  knex(table).where({ organization_id: id });
const countContent = async (id: string) => COUNT - (await rowsOf("links", id).where(ERASED)).length;

test.serial("the content of a deleted organization's links is erased, and no other", async (t) => {
  const id = await createLarge();
  const other = await createOrganization("premium");
  const kept = await storage.createLink(other, { ...CONTENT, externalId: "kept" });
  await first.organizations.remove(id, OPERATOR);

  await first.purgeExpired();
  t.is(await countContent(id), COUNT, "requests that write a link may not have ended yet");

  advanceClock(61_000);
  const stopping = new AbortController();
  const stop = second.onStatement((sql) => /^update .links/.test(sql) && stopping.abort());
  await second.purgeExpired(stopping.signal);
  stop();
  const left = await countContent(id);
  t.true(left > 0 && left < COUNT, "a purge that is stopped ends after a batch");

  await first.purgeExpired();
  t.is(await countContent(id), 0);
  t.deepEqual(await rowsOf("organization_usage", id), []);
  t.is((await rowsOf("links", id).whereNotNull("deleted_at")).length, COUNT);
  t.like(await first.links.find(other, kept.id), { ...CONTENT, externalId: "kept" });

  const slug = `${id.slice(-8)}-5`;
  const created = await first.links.create(other, OPERATOR, linkFields({ slug }));
  t.false("id" in created, "its slug is never reused");
});

test.serial("an erased organization costs later purges no writes", async (t) => {
  const statements: string[] = [];
  t.teardown(first.onStatement((sql) => statements.push(sql)));
  await first.purgeExpired();
  t.false(statements.some((sql) => /^(update|delete from) .(links|organization_usage)/.test(sql)));
});
