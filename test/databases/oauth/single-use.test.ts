import test from "ava";
import type { ReplayStore } from "../../../adapters/oauth/replay.ts";
import { tokenKey } from "../../../adapters/oauth/token-row.ts";
import { now } from "../../harness/clock.ts";
import { atOnce, createTestStorage, OPERATOR, settledAtOnce } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, either, database, knex } = storage;
// Only a member can authorize a client for an organization.
const organizationId = await storage.createOrganization();
const accountId = await storage.createUser(organizationId, "owner");
const clientId = (await first.clients.findByOrganization(organizationId))?.clientId ?? "";

let count = 0;

async function newGrant(): Promise<string> {
  const id = `grant-${++count}`;
  const grant = { clientId, accountId, organizationId, exp: now() + 600 };
  await first.oidcAdapter("Grant").upsert(id, grant, 600);
  return id;
}

async function newToken(kind: string, fields: object = {}): Promise<string> {
  const id = `token-${++count}`;
  const payload = {
    ...{ kind, clientId, grantId: await newGrant(), exp: now() + 60 },
    ...(kind === "DeviceCode" && { userCode: `code of ${id}` }),
    ...fields,
  };
  await first.oidcAdapter(kind).upsert(id, payload, 60);
  return id;
}

async function consumeAtOnce(kind: string, id: string): Promise<string[]> {
  const results = await settledAtOnce(20, async (index) => either(index).oidcAdapter(kind).consume(id));
  return results.flatMap((result) => (result.status === "rejected" ? [result.reason.error] : []));
}

for (const [kind, error] of [
  ["AuthorizationCode", "invalid_grant"],
  ["DeviceCode", "invalid_grant"],
  ["PushedAuthorizationRequest", "invalid_request_uri"],
] as const)
  test(`${kind}: concurrent uses in two processes succeed exactly once`, async (t) => {
    for (let round = 0; round < 10; round++)
      t.deepEqual(await consumeAtOnce(kind, await newToken(kind)), Array(19).fill(error));
  });

for (const isPublic of [true, false])
  test(`RefreshToken of a ${isPublic ? "public" : "confidential"} client: of concurrent uses in two processes, the first and ten retries succeed`, async (t) => {
    for (let round = 0; round < 5; round++) {
      const id = await newToken("RefreshToken", { isPublic });
      t.deepEqual(await consumeAtOnce("RefreshToken", id), Array(9).fill("invalid_grant"));
      const row = await database.knex("tokens").where("id_hash", tokenKey(id)).first();
      t.true(Math.abs(Date.now() - Number(row?.consumed_at)) < 60_000);
      t.is(Number(row?.retries), 10);
    }
  });

test("DeviceCode: of concurrent answers in two processes, one is kept", async (t) => {
  for (let round = 0; round < 10; round++) {
    const id = await newToken("DeviceCode", { grantId: undefined });
    const code = await first.oidcAdapter("DeviceCode").findByUserCode(`code of ${id}`);
    const answers = await settledAtOnce(10, async (index) =>
      either(index)
        .oidcAdapter("DeviceCode")
        .upsert(
          code?.jti as string,
          { ...code, ...(index % 2 ? { accountId } : { error: "access_denied" }) },
          60,
        ),
    );
    t.is(answers.filter(({ status }) => status === "fulfilled").length, 1);
    const { error, accountId: by } = (await second.oidcAdapter("DeviceCode").find(id)) ?? {};
    t.not(error === undefined, by === undefined);
  }
});

test("an unknown, destroyed or different kind of token cannot be used", async (t) => {
  const code = await newToken("AuthorizationCode");
  const destroyed = await newToken("AuthorizationCode");
  await second.oidcAdapter("AuthorizationCode").destroy(destroyed);
  for (const [kind, id] of [
    ["AuthorizationCode", "nothing"],
    ["RefreshToken", code],
    ["PushedAuthorizationRequest", code],
    ["AuthorizationCode", destroyed],
  ] as const)
    await t.throwsAsync(async () => first.oidcAdapter(kind).consume(id));
  t.is(await first.oidcAdapter("RefreshToken").find(code), undefined);
  await t.notThrowsAsync(async () => first.oidcAdapter("AuthorizationCode").consume(code));
});

test("storing a token twice fails", async (t) => {
  const id = await newToken("AccessToken");
  const again = { clientId: "lgc_b", exp: now() + 60 };
  await t.throwsAsync(async () => second.oidcAdapter("AccessToken").upsert(id, again, 60));
  t.is((await first.oidcAdapter("AccessToken").find(id))?.clientId, clientId);
});

test("a token stored after its grant was revoked is not found", async (t) => {
  for (const kind of ["AccessToken", "RefreshToken", "AuthorizationCode"]) {
    const [one, other] = [first.oidcAdapter(kind), second.oidcAdapter(kind)];
    const grantId = await newGrant();
    const payload = { kind, clientId, aud: "https://example.com", grantId, exp: now() + 60 };
    await one.upsert(`early-${kind}`, payload, 60);
    t.truthy(await other.find(`early-${kind}`));
    t.is(Boolean(await second.findActiveToken(`early-${kind}`)), kind === "AccessToken");
    await first.oidcAdapter("Grant").destroy(grantId);
    await one.upsert(`late-${kind}`, payload, 60);
    for (const id of [`early-${kind}`, `late-${kind}`]) {
      t.is(await other.find(id), undefined);
      t.is(await second.findActiveToken(id), undefined);
    }
  }
});

test("a late save does not restore a revoked grant", async (t) => {
  const grants = [first.oidcAdapter("Grant"), second.oidcAdapter("Grant")] as const;
  const id = await newGrant();
  await grants[0].destroy(id);
  const grant = { clientId, accountId: "usr_a", exp: now() + 600 };
  await t.throwsAsync(async () => grants[1].upsert(id, grant, 600));
  t.is(await grants[1].find(id), undefined);
  await t.notThrowsAsync(async () => grants[1].destroy(id));
});

test("concurrent revocations of a grant succeed and are recorded exactly once", async (t) => {
  for (let round = 0; round < 10; round++) {
    const id = await newGrant();
    const revoked = await atOnce(6, (index) => either(index).grants.revoke(organizationId, id, OPERATOR));
    t.is(revoked.filter(Boolean).length, 1, `round ${round}`);
    const events = knex("events").where({ type: "authorization.revoked", subject: id });
    t.is((await events).length, 1, `round ${round}`);
  }
});

let turn = 0;
const useOnce: ReplayStore["useOnce"] = (jwt) => either(turn++).replays.useOnce(jwt);
const expiresAt = Date.now() + 60_000;

test("of concurrent uses of JWTs, 20 of one or 4 of many in different orders, one is the first of each", async (t) => {
  const issuer = "https://issuer.example";
  const jwts = Array.from({ length: 50 }, (_, index) => ({ issuer, jti: `many-${index}`, expiresAt }));
  const one = { issuer, jti: "concurrent", expiresAt };
  for (const uses of [Array(20).fill(one), [jwts, jwts.toReversed(), jwts, jwts.toReversed()].flat()]) {
    const areFirst = await Promise.all(uses.map(useOnce));
    t.is(areFirst.filter(Boolean).length, new Set(uses).size);
  }
  t.false(await useOnce(one));
});

test("the same id of another issuer is another JWT, however the two are divided", async (t) => {
  t.true(await useOnce({ issuer: "https://a.example/", jti: "bc", expiresAt }));
  t.true(await useOnce({ issuer: "https://a.example/b", jti: "c", expiresAt }));
  t.true(await useOnce({ issuer: "https://other.example/", jti: "bc", expiresAt }));
});
