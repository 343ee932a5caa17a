import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { createTestStorage, settledAtOnce } from "../../harness/database/storage.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
const { organization } = await first.organizations.create("Granted", "growth", OPERATOR);
const membership = { organizationId: organization.id, role: "owner" } as const;
const owner = await first.accounts.create("owner", "a hash", OPERATOR, membership);
const accountId = owner?.id as string;
test.after.always(() => storage.close());

test("concurrent revocations of a grant succeed and are recorded exactly once", async (t) => {
  for (let round = 0; round < 20; round++) {
    const id = `grant-${round}`;
    const grant = { clientId: "lgc_a", accountId, organizationId: organization.id };
    await first.oidcAdapter("Grant").upsert(id, { ...grant, exp: Date.now() / 1000 + 600 }, 600);
    const results = await settledAtOnce(6, (index) =>
      (index % 2 ? first : second).grants.revoke(organization.id, id, OPERATOR),
    );
    const revoked = results.filter((one) => one.status === "fulfilled" && one.value);
    t.is(revoked.length, 1, `round ${round}`);
    const recorded = await database
      .knex("events")
      .where({ type: "authorization.revoked", subject: id })
      .select("id");
    t.is(recorded.length, 1, `round ${round}`);
  }
});
