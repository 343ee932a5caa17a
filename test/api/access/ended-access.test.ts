import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startServiceWithDatabase } from "../../harness/database/service.ts";

// `oauth/switches` has the other changes that end or limit access, for every part of the service.
export const databases = "all";

const { service, knex } = await startServiceWithDatabase();
const LIFETIME_MS = 3_600_000;

// Only what is named changes in the database, so the check doesn't depend on what else the service does with it.
const CHANGES: Record<string, (id: string) => Promise<unknown>> = {
  "its user was disabled": (id) => knex("users").where({ id }).update({ disabled_at: Date.now() }),
  "its user left the organization": (id) => knex("memberships").where({ user_id: id }).delete(),
};
for (const [name, change] of Object.entries(CHANGES))
  test(`a user's token is rejected on the next request after ${name}`, async (t) => {
    const [app, own] = [await service.createOrganization(), await service.createOrganization()];
    const user = await service.createUser([own.id]);
    const api = apiAt(service.url, (await tokensFor(service, app, user)).access_token);
    t.is((await api.get("/v1/links")).status, 200);
    await change(user.id);
    isProblem(t, await api.get("/v1/links"), { status: 401, code: "invalid_token" });
  });

test.serial("an access token expires after an hour", async (t) => {
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  advanceClock(LIFETIME_MS - 10_000);
  t.is((await api.get("/v1/links")).status, 200);
  advanceClock(10_001);
  const reply = await api.get("/v1/links");
  isProblem(t, reply, { status: 401, code: "invalid_token" });
  t.is(challengeOf(reply)?.error, "invalid_token");
  isProblem(t, await api.send("POST", "/mcp"), { status: 401, code: "invalid_token" });
});
