import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { atOnce, createTestStorage } from "../../harness/database/storage.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
test.after.always(() => storage.close());

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
