import test from "ava";
import { openStorage, type Storage } from "../../adapters/index.ts";
import type { Attempt, Principal } from "../../resources/idempotency/run-once.ts";
import { advanceClock, DAY_MS, MINUTE_MS } from "../harness/clock.ts";
import { atOnce, createTestStorage } from "../harness/database/storage.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

const { first, second, either, knex, url, encryptionKey } = await createTestStorage();

const LEASE_MS = 5000;
let count = 0;
const newKey = () => `key-${++count}`;
const PRINCIPAL = { organizationId: "org_a", clientId: "lgc_a", userId: "usr_a" };
const begin = (key: string, fingerprint = "one", by: Pick<Storage, "idempotency"> = first) =>
  by.idempotency.begin(PRINCIPAL, key, fingerprint);

async function attempt(...args: Parameters<typeof begin>): Promise<Attempt> {
  const begun = await begin(...args);
  if (!("attempt" in begun)) throw new Error(JSON.stringify(begun));
  return begun.attempt;
}

test.serial("concurrent requests with one key get exactly one attempt", async (t) => {
  for (let round = 0; round < 3; round++) {
    const key = newKey();
    const begun = await atOnce(50, (index) => begin(key, "one", either(index)));
    t.is(begun.filter((one) => "attempt" in one).length, 1);
    for (const one of begun) if (!("attempt" in one)) t.deepEqual(one, { refused: "in_use" });
  }
});

test.serial("a stored response is replayed in every process for 24 hours", async (t) => {
  const key = newKey();
  const { keep, linkId } = await attempt(key);
  await keep("an answer");
  advanceClock(DAY_MS - MINUTE_MS);
  t.deepEqual(await begin(key, "one", second), { answer: "an answer" });
  t.deepEqual(await begin(key, "another", second), { refused: "reused" });
  advanceClock(MINUTE_MS);
  const anew = await attempt(key, "another");
  t.not(anew.linkId(0), linkId(0), "the new attempt creates other links");
});

test.serial("an attempt that died holds its key for 5 s, and the next one gets the same ids", async (t) => {
  const key = newKey();
  const process = openStorage(url, encryptionKey);
  const dead = await attempt(key, "one", process);
  await process.close();
  advanceClock(LEASE_MS / 2);
  t.deepEqual(await begin(key, "one", second), { refused: "in_use" });
  t.deepEqual(await begin(key, "another", second), { refused: "reused" });
  advanceClock(LEASE_MS / 2);
  const begun = await atOnce(20, (index) => begin(key, "one", either(index)));
  const [next] = begun.flatMap((one) => ("attempt" in one ? one.attempt : []));
  t.is(begun.filter((one) => "attempt" in one).length, 1);
  for (const place of [0, 1, 99]) t.is(next?.linkId(place), dead.linkId(place));
});

test.serial("an attempt that takes longer than 5 seconds keeps its key", async (t) => {
  advanceClock(1000);
  const key = newKey();
  const { keep } = await attempt(key);
  const leasedUntil = async () =>
    (await knex("idempotency_keys").orderBy("created_at", "desc").first())?.leased_until ?? 0;
  const before = await leasedUntil();
  advanceClock(LEASE_MS - 1000);
  await until(async () => (await leasedUntil()) > before || undefined);
  t.deepEqual(await begin(key, "one", second), { refused: "in_use" });
  advanceClock(LEASE_MS - 1000);
  t.deepEqual(await begin(key, "one", second), { refused: "in_use" });
  await keep("an answer");
  t.deepEqual(await begin(key, "one", second), { answer: "an answer" });
});

test.serial("writes of an attempt that was presumed dead have no effect", async (t) => {
  const key = newKey();
  const late = await attempt(key);
  advanceClock(MINUTE_MS);
  const next = await attempt(key);
  for (const act of [() => late.keep("late"), late.forget, late.release]) {
    await act();
    t.deepEqual(await begin(key), { refused: "in_use" });
  }
  await next.keep("in time");
  await late.keep("late");
  await late.forget();
  t.deepEqual(await begin(key), { answer: "in time" });
});

test.serial("a forgotten key accepts any request, a released one only the same", async (t) => {
  const [forgotten, released] = [newKey(), newKey()];
  await (await attempt(forgotten)).forget();
  const one = await attempt(released);
  await one.release();
  t.truthy(await attempt(forgotten, "another"));
  t.deepEqual(await begin(released, "another"), { refused: "reused" });
  t.is((await attempt(released)).linkId(0), one.linkId(0));
});

// Some of these would be the same text if they were joined by a separator.
const OTHERS: Record<string, Principal> = {
  "the client by itself": { organizationId: "org_a", clientId: "lgc_a" },
  "another organization": { ...PRINCIPAL, organizationId: "org_b" },
  "a user named as the client": { ...PRINCIPAL, userId: "lgc_a" },
  "a client whose id contains the user's": { organizationId: "org_a", clientId: 'lgc_a","usr_a' },
  "a client with a metadata document": { ...PRINCIPAL, clientId: "https://lgc_a" },
};

for (const [name, principal] of Object.entries(OTHERS))
  test.serial(`the keys of a principal are unused for ${name}`, async (t) => {
    const [inUse, answered] = [newKey(), newKey()];
    await attempt(inUse);
    await (await attempt(answered)).keep("an answer");
    for (const key of [inUse, answered]) {
      const begun = await second.idempotency.begin(principal, key, "another");
      if (!("attempt" in begun)) return t.fail(JSON.stringify(begun));
      await begun.attempt.keep("another answer");
      t.deepEqual(await second.idempotency.begin(principal, key, "another"), { answer: "another answer" });
    }
    t.deepEqual(await begin(inUse), { refused: "in_use" });
    t.deepEqual(await begin(answered), { answer: "an answer" });
  });

test.serial("neither the key nor the response is readable in the database", async (t) => {
  const secret = "whsec_readable";
  await (await attempt("readable-key")).keep(JSON.stringify({ secret }));
  const rows = JSON.stringify(await knex("idempotency_keys"));
  t.false(rows.includes("whsec_") || rows.includes("readable"));
});

test.serial("a response of several megabytes is replayed completely", async (t) => {
  const key = newKey();
  const answer = JSON.stringify("ä".repeat(2_000_000));
  await (await attempt(key)).keep(answer);
  t.deepEqual(await begin(key), { answer });
});

test.serial("the purge deletes expired keys and no others", async (t) => {
  await knex("idempotency_keys").delete();
  const [old, young] = [newKey(), newKey()];
  await (await attempt(old)).keep("old");
  await attempt(newKey());
  advanceClock(DAY_MS / 2);
  await (await attempt(young)).keep("young");
  advanceClock(DAY_MS / 2);
  t.is((await second.purgeExpired())?.idempotency_keys, 2);
  t.deepEqual(await begin(young), { answer: "young" });
  t.truthy(await attempt(old, "another"));
});
