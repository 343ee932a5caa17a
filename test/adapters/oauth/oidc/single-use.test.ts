import test from "ava";
import type { Adapter } from "oidc-provider";
import type { ReplayStore } from "../../../../adapters/oauth/replay.ts";
import { tokenKey } from "../../../../adapters/oauth/token-row.ts";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { createTestStorage, settledAtOnce } from "../../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, database } = storage;
// Only a member can authorize a client for an organization.
const { organization } = await first.organizations.create("Consumed", "growth", OPERATOR);
const membership = { organizationId: organization.id, role: "owner" } as const;
const owner = await first.accounts.create("owner", "a hash", OPERATOR, membership);

test.after.always(() => storage.close());

const accountId = owner?.id as string;

let count = 0;
const seconds = () => Math.floor(Date.now() / 1000);

/** Returns the adapters of a model in two processes. */
const adapters = (kind: string): [Adapter, Adapter] => [first.oidcAdapter(kind), second.oidcAdapter(kind)];

async function newGrant(): Promise<string> {
  const id = `grant-${++count}`;
  await first
    .oidcAdapter("Grant")
    .upsert(id, { clientId: "lgc_a", accountId, organizationId: organization.id, exp: seconds() + 600 }, 600);
  return id;
}

async function newToken(kind: string, fields: object = {}): Promise<string> {
  const id = `token-${++count}`;
  const payload = { kind, clientId: "lgc_a", grantId: await newGrant(), exp: seconds() + 60, ...fields };
  await first.oidcAdapter(kind).upsert(id, payload, 60);
  return id;
}

const consumeAtOnce = ([one, other]: [Adapter, Adapter], id: string) =>
  settledAtOnce(20, async (index) => (index % 2 ? one : other).consume(id));

for (const [kind, error] of [
  ["AuthorizationCode", "invalid_grant"],
  ["PushedAuthorizationRequest", "invalid_request_uri"],
] as const) {
  test(`${kind}: concurrent uses in two processes succeed exactly once`, async (t) => {
    for (let round = 0; round < 20; round++) {
      const id = await newToken(kind);
      const results = await consumeAtOnce(adapters(kind), id);
      t.is(results.filter(({ status }) => status === "fulfilled").length, 1);
      for (const result of results) if (result.status === "rejected") t.is(result.reason.error, error);
    }
  });
}

for (const [what, isPublic] of [
  ["public", true],
  ["confidential", false],
] as const) {
  test(`RefreshToken of a ${what} client: of concurrent uses in two processes, the first and ten retries succeed`, async (t) => {
    for (let round = 0; round < 10; round++) {
      const id = await newToken("RefreshToken", { isPublic });
      const results = await consumeAtOnce(adapters("RefreshToken"), id);
      t.is(results.filter(({ status }) => status === "fulfilled").length, 11);
      for (const result of results)
        if (result.status === "rejected") t.is(result.reason.error, "invalid_grant");
      const row = await database
        .knex("tokens")
        .where({ id_hash: tokenKey(id) })
        .first("consumed_at", "retries");
      t.true(Math.abs(Date.now() - Number(row?.consumed_at)) < 60_000);
      t.is(Number(row?.retries), 10);
    }
  });
}

test("an unknown, destroyed or different kind of token cannot be used", async (t) => {
  const code = await newToken("AuthorizationCode");
  const destroyed = await newToken("AuthorizationCode");
  await second.oidcAdapter("AuthorizationCode").destroy(destroyed);
  for (const [kind, id] of [
    ["AuthorizationCode", "nothing"],
    ["RefreshToken", code],
    ["PushedAuthorizationRequest", code],
    ["AuthorizationCode", destroyed],
  ] as const) {
    await t.throwsAsync(async () => first.oidcAdapter(kind).consume(id));
  }
  t.is(await first.oidcAdapter("RefreshToken").find(code), undefined);
  await t.notThrowsAsync(async () => first.oidcAdapter("AuthorizationCode").consume(code));
});

test("storing a token twice fails", async (t) => {
  const id = await newToken("AccessToken");
  await t.throwsAsync(async () =>
    second.oidcAdapter("AccessToken").upsert(id, { clientId: "lgc_b", exp: seconds() + 60 }, 60),
  );
  t.is((await first.oidcAdapter("AccessToken").find(id))?.clientId, "lgc_a");
});

test("a token stored after its grant was revoked is not found", async (t) => {
  for (const kind of ["AccessToken", "RefreshToken", "AuthorizationCode"]) {
    const [one, other] = adapters(kind);
    const grantId = await newGrant();
    await one.upsert(`early-${kind}`, { kind, clientId: "lgc_a", grantId, exp: seconds() + 60 }, 60);
    t.truthy(await other.find(`early-${kind}`));
    await first.oidcAdapter("Grant").destroy(grantId);
    await one.upsert(`late-${kind}`, { kind, clientId: "lgc_a", grantId, exp: seconds() + 60 }, 60);
    t.is(await other.find(`early-${kind}`), undefined);
    t.is(await other.find(`late-${kind}`), undefined);
    t.is(await second.findActiveToken(`late-${kind}`), undefined);
  }
});

test("a late save does not restore a revoked grant", async (t) => {
  const grants = adapters("Grant");
  const id = await newGrant();
  await grants[0].destroy(id);
  await t.throwsAsync(async () =>
    grants[1].upsert(id, { clientId: "lgc_a", accountId: "usr_a", exp: seconds() + 600 }, 600),
  );
  t.is(await grants[1].find(id), undefined);
  await t.notThrowsAsync(async () => grants[1].destroy(id));
});

test("concurrent revocations of a grant succeed and are recorded exactly once", async (t) => {
  for (let round = 0; round < 20; round++) {
    const id = `revoked-${round}`;
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

const stores = [first.replays, second.replays] as const;
let turn = 0;
/** Uses a JWT on one process, then on the other. */
const useOnce: ReplayStore["useOnce"] = (jwt) => (stores[turn++ % 2] as ReplayStore).useOnce(jwt);
const expiresAt = Date.now() + 60_000;

test("of 20 concurrent uses of a JWT, one is the first", async (t) => {
  const jwt = { issuer: "https://issuer.example", jti: "concurrent", expiresAt };
  const uses = await Promise.all(Array.from({ length: 20 }, () => useOnce(jwt)));
  t.is(uses.filter(Boolean).length, 1);
  t.false(await useOnce(jwt));
});

test("concurrent uses of many JWTs in different orders all have one first use", async (t) => {
  const jwts = Array.from({ length: 50 }, (_, index) => ({
    issuer: "https://issuer.example",
    jti: `many-${index}`,
    expiresAt,
  }));
  const orders = [jwts, jwts.toReversed(), jwts, jwts.toReversed()];
  const uses = await Promise.all(orders.flat().map((jwt) => useOnce(jwt)));
  t.is(uses.filter(Boolean).length, jwts.length);
});

test("the same id of another issuer is another JWT, however the two are divided", async (t) => {
  t.true(await useOnce({ issuer: "https://a.example/", jti: "bc", expiresAt }));
  t.true(await useOnce({ issuer: "https://a.example/b", jti: "c", expiresAt }));
  t.true(await useOnce({ issuer: "https://other.example/", jti: "bc", expiresAt }));
});

test("expired uses are purged", async (t) => {
  const jwt = { issuer: "https://issuer.example", jti: "expired", expiresAt: Date.now() - 1 };
  t.true(await useOnce(jwt));
  t.truthy(await first.purgeExpired());
  t.true(await useOnce(jwt));
});
