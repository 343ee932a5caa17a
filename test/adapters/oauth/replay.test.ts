import test from "ava";
import type { ReplayStore } from "../../../adapters/oauth/replay.ts";
import { createTestStorage } from "../../harness/database/storage.ts";

const { first, second, close } = await createTestStorage();
test.after.always(close);

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
